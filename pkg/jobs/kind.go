package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/go-kit/kit/endpoint"
	"github.com/riverqueue/river"
	"go.opentelemetry.io/otel/trace"

	"hub.internal/pkg/telemetry"
)

// Kind is a kind of job bound to what does it.
type Kind struct {
	name string
	add  func(*river.Workers)
	// abandoned is told of a job that a dead process of this instance was in the middle of.
	abandoned func(ctx context.Context, args []byte) error
}

// On binds the jobs of a kind to do, which has to be safe to repeat: a job may run late, twice, or
// twice at once. An error lets it run again later; Later too, without a failure being counted.
func On[T Job](do func(context.Context, T) error, options ...Option[T]) Kind {
	var zero T
	w := &worker[T]{run: telemetry.EndpointOf(trace.SpanKindConsumer, "job."+zero.Kind())(func(ctx context.Context, job any) (any, error) {
		err := do(ctx, job.(T))
		var later *river.JobSnoozeError
		if errors.As(err, &later) {
			return later, nil
		}
		return nil, err
	})}
	k := Kind{name: zero.Kind(), add: func(all *river.Workers) { river.AddWorker(all, w) }}
	for _, option := range options {
		option(w, &k)
	}
	return k
}

// Option changes how the jobs of a kind run.
type Option[T Job] func(*worker[T], *Kind)

// Within bounds one run of a job; else the runner's Timeout does.
func Within[T Job](d time.Duration) Option[T] {
	return func(w *worker[T], _ *Kind) { w.timeout = d }
}

// Abandoned lets do put in order what a dead process of this instance was in the middle of,
// before its job runs again. It has to be safe to repeat.
func Abandoned[T Job](do func(context.Context, T) error) Option[T] {
	return func(_ *worker[T], k *Kind) {
		k.abandoned = func(ctx context.Context, args []byte) error {
			var job T
			if err := json.Unmarshal(args, &job); err != nil {
				return fmt.Errorf("arguments of %s: %w", job.Kind(), err)
			}
			return do(ctx, job)
		}
	}
}

// Later is what a job returns that has to run again after d, without having failed.
func Later(d time.Duration) error { return river.JobSnooze(d) }

// Stopping is done when the process has begun to stop: a job that only waits ends then. It
// is never done outside a job.
func Stopping(ctx context.Context) <-chan struct{} {
	if c, ok := ctx.Value(stopping{}).(context.Context); ok {
		return c.Done()
	}
	return nil
}

type stopping struct{}

// worker runs the jobs of a kind, each with a span and in the metrics of calls.
type worker[T Job] struct {
	river.WorkerDefaults[T]
	run     endpoint.Endpoint
	timeout time.Duration
}

// Timeout implements river.Worker; 0 is the client's.
func (w *worker[T]) Timeout(*river.Job[T]) time.Duration { return w.timeout }

// Work implements river.Worker.
func (w *worker[T]) Work(ctx context.Context, job *river.Job[T]) error {
	later, err := w.run(ctx, job.Args)
	if err != nil {
		return err
	}
	if later, ok := later.(*river.JobSnoozeError); ok {
		return later
	}
	return nil
}
