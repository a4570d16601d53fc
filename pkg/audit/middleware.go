package audit

import (
	"context"
	"slices"
	"time"

	"github.com/go-kit/kit/endpoint"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/tool"
)

// Middleware queues a row for each call of a read tool, refusals included, and has the
// form that tool.Mount takes. It leaves out write tools, whose row joins the
// transaction of their effect, and the named tools, which record themselves.
func (l *Log) Middleware(except ...string) func(tool.Spec) endpoint.Middleware {
	return func(spec tool.Spec) endpoint.Middleware {
		if spec.Write || slices.Contains(except, spec.Name) {
			return func(next endpoint.Endpoint) endpoint.Endpoint { return next }
		}
		return func(next endpoint.Endpoint) endpoint.Endpoint {
			return func(ctx context.Context, request any) (any, error) {
				start := time.Now()
				response, err := next(ctx, request)
				e := Entry{At: start, Caller: caller.From(ctx), Tool: spec.Name, Outcome: Outcome(err), Took: time.Since(start)}
				if call, ok := request.(*tool.Call); ok {
					e.InputHash = HashInput(call.Input)
				}
				if r, ok := response.(*tool.Result); ok && err == nil {
					e.Count = r.Count
				}
				l.Queue(e)
				return response, err
			}
		}
	}
}

// Refusals queues a row for each refused call of a write tool: the row of one that
// succeeds joins the transaction of its effect, so a refusal has none. It has the form
// that tool.Mount takes.
func (l *Log) Refusals(spec tool.Spec) endpoint.Middleware {
	return func(next endpoint.Endpoint) endpoint.Endpoint {
		if !spec.Write {
			return next
		}
		return func(ctx context.Context, request any) (any, error) {
			start := time.Now()
			response, err := next(ctx, request)
			if err != nil {
				e := Entry{At: start, Caller: caller.From(ctx), Tool: spec.Name, Outcome: Outcome(err), Took: time.Since(start)}
				if call, ok := request.(*tool.Call); ok {
					e.InputHash = HashInput(call.Input)
				}
				l.Queue(e)
			}
			return response, err
		}
	}
}
