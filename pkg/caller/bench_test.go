package caller_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/caller/callertest"
)

// The same caller again, as nearly all calls are, and another each time.
func BenchmarkPresent(b *testing.B) {
	for name, context := range contexts {
		b.Run(name, func(b *testing.B) {
			gateway, h := callertest.Keys(b, caller.Gateway), http.Header{}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if err := gateway.Present(context(i), h, "query", false); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkAccept(b *testing.B) {
	for name, context := range contexts {
		b.Run(name, func(b *testing.B) {
			gateway, query := callertest.Keys(b, caller.Gateway), callertest.Keys(b, "query", caller.Gateway)
			headers := make([]http.Header, 20_000)
			for i := range headers {
				headers[i] = http.Header{}
				if err := gateway.Present(context(i), headers[i], "query", false); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if _, err := query.Accept(b.Context(), headers[i%len(headers)], caller.Agents()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

var contexts = map[string]func(int) context.Context{
	"hit": func() func(int) context.Context {
		ctx := caller.With(context.Background(), agent)
		return func(int) context.Context { return ctx }
	}(),
	"miss": func(i int) context.Context {
		c := agent
		c.ExternalUserID = fmt.Sprint(i)
		return caller.With(context.Background(), c)
	},
}
