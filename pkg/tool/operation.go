package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"

	"github.com/go-kit/kit/endpoint"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
)

// Operation serves do at path for those of a service's neighbours whom takes names: what
// remote.Call calls. Unlike a tool it ignores members that it does not know, because the
// JSON between services only grows and a neighbour may be ahead. Its name in spans, metrics
// and messages is the path without /internal/ and with dots. maxBody 0 means DefaultMaxBody;
// mw wraps the operation, outermost first.
func Operation[In, Out any](mux *http.ServeMux, path string, takes caller.Rule, maxBody int64, keys *caller.Keys, logger *slog.Logger,
	do func(context.Context, In) (Out, error), mw ...func(name string) endpoint.Middleware) {
	name := strings.ReplaceAll(strings.TrimPrefix(path, "/internal/"), "/", ".")
	if maxBody == 0 {
		maxBody = DefaultMaxBody
	}
	e := Recover(logger)(func(ctx context.Context, request any) (any, error) {
		var in In
		// The decoder's error may quote the input, and the input may be a secret.
		if json.Unmarshal(request.(*Call).Input, &in) != nil {
			return nil, fault.New(fault.Validation, "The body is not the JSON that %s takes.", name)
		}
		out, err := do(ctx, in)
		if err != nil {
			return nil, err
		}
		var b bytes.Buffer
		encoder := json.NewEncoder(&b)
		encoder.SetEscapeHTML(false) // nothing here is a page, and mails are full of <
		if err := encoder.Encode(out); err != nil {
			return nil, fmt.Errorf("encode answer of %s: %w", name, err)
		}
		return &Result{Head: Head{Count: 1}, Data: bytes.TrimSuffix(b.Bytes(), []byte("\n"))}, nil
	})
	for i := len(mw) - 1; i >= 0; i-- {
		e = mw[i](name)(e)
	}
	mux.Handle("POST "+path, Handler(e, name, takes, maxBody, keys, logger))
}
