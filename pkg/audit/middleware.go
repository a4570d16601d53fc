package audit

import (
	"context"
	"time"

	"github.com/go-kit/kit/endpoint"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/tool"
)

// Calls queues a row for each call of a read tool, refusals included, and for each refused call
// of a write tool: the row of one that succeeds joins the transaction of its effect. A tool that
// records itself is left alone.
func (l *Log) Calls(t tool.Tool) endpoint.Middleware {
	return func(next endpoint.Endpoint) endpoint.Endpoint {
		if t.RecordsItself {
			return next
		}
		return func(ctx context.Context, request any) (any, error) {
			start := time.Now()
			response, err := next(ctx, request)
			if t.Spec.Write && err == nil {
				return response, nil
			}
			e := Entry{At: start, Caller: caller.From(ctx), Tool: t.Spec.Name, Outcome: Outcome(err), Took: time.Since(start),
				TraceID: TraceID(ctx)}
			if call, ok := request.(*tool.Call); ok {
				e.InputHash = HashInput(call.Input)
			}
			if err != nil {
				e.Detail = Refusal{Refused: ToldOf(err)}
			}
			if r, ok := response.(*tool.Result); ok && err == nil {
				e.Count = r.Count
			}
			l.Queue(e)
			return response, err
		}
	}
}
