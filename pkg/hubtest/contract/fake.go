package contract

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/caller/callertest"
	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/rpc"
	"hub.internal/pkg/schema"
)

// Fake is rpc.New for a test's stand-in of owner. It has to have the path and the callers of an operation that
// owner declares, and both what it is asked and what it answers have to keep to the declared
// schemas, call by call; what does not fails the test.
func Fake[In, Out any](t testing.TB, owner string, d rpc.Declaration, do func(context.Context, In) (Out, error)) rpc.Operation {
	t.Helper()
	return standIn(t, known(t, owner, d.Path), owner, d, do, true)
}

// Lie is Fake for a neighbour that answers on purpose what its schema does not allow.
func Lie[In, Out any](t testing.TB, owner string, d rpc.Declaration, do func(context.Context, In) (Out, error)) rpc.Operation {
	t.Helper()
	return standIn(t, known(t, owner, d.Path), owner, d, do, false)
}

// known is the operation as its owner declares it; the test fails where there is none.
func known(t testing.TB, owner, path string) operation {
	t.Helper()
	root := hubtest.Root(t)
	place := root + " " + owner + path
	if o, found := declarations.Load(place); found {
		return o.(operation)
	}
	o, err := find(root, owner, path)
	if err != nil {
		t.Fatal(err)
	}
	declarations.Store(place, o)
	return o
}

// declarations are the operations that stand-ins have asked for: with the race detector, reading the catalog takes a tenth of a second.
var declarations sync.Map

// standIn makes the operation of a stand-in. What it is asked, and what an honest one answers, is held to the declared schemas.
func standIn[In, Out any](t testing.TB, o operation, owner string, d rpc.Declaration, do func(context.Context, In) (Out, error),
	honest bool) rpc.Operation {
	t.Helper()
	if takes := slices.Sorted(maps.Keys(d.Takes)); !slices.Equal(takes, o.Callers) {
		t.Errorf("the stand-in for %s %s takes %v, and %s takes %v", owner, d.Path, takes, owner, o.Callers)
	}
	problems := read(schema.Of[In](), o.input, "read")
	if honest {
		problems = append(problems, sent(schema.Of[Out](), o.output, "answered")...)
	}
	for _, problem := range problems {
		t.Errorf("the stand-in for %s %s: %s", owner, d.Path, problem)
	}
	asked, answered := resolve(t, o.input), resolve(t, o.output)
	return rpc.New(d, func(ctx context.Context, body json.RawMessage) (answer json.RawMessage, err error) {
		var in In
		if err := keeps(asked, body); err != nil {
			t.Errorf("%s is asked what it does not declare: %v in %.500s", d.Path, err, body)
		}
		if err := json.Unmarshal(body, &in); err != nil {
			return nil, err
		}
		out, err := do(ctx, in)
		if err != nil {
			return nil, err
		}
		if answer, err = json.Marshal(out); err != nil {
			return nil, err
		}
		if err := keeps(answered, answer); honest && err != nil {
			t.Errorf("the stand-in for %s %s answers what it does not declare: %v in %.500s", owner, d.Path, err, answer)
		}
		return answer, nil
	})
}

// resolve prepares a schema for keeps.
func resolve(t testing.TB, s *schema.Schema) *jsonschema.Resolved {
	t.Helper()
	r, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// keeps tells in what a body breaks a schema.
func keeps(s *jsonschema.Resolved, body []byte) error {
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		return err
	}
	return s.Validate(v)
}

// Serve serves the operations of a stand-in for owner to all whom they take, with owner's key, until
// the test ends. It returns its address.
// It listens on this machine, at a port that the system picks.
func Serve(t testing.TB, owner string, operations ...rpc.Operation) (addr string) {
	t.Helper()
	callers := []string{caller.Gateway} // which says for whom a neighbour calls
	for _, o := range operations {
		callers = append(callers, o.Spec.Callers...)
	}
	slices.Sort(callers)
	mux := http.NewServeMux()
	s := rpc.Server{Mux: mux, Keys: callertest.Keys(t, owner, slices.Compact(callers)...), Logger: slog.New(slog.DiscardHandler)}
	for _, o := range operations {
		s.Operation(o)
	}
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}
