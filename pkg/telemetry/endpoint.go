package telemetry

import (
	"context"
	"sync"
	"time"

	"github.com/go-kit/kit/endpoint"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"hub.internal/pkg/fault"
)

// Endpoint gives the endpoint called name a server's span and its RED metrics: one
// histogram hub.call.duration (seconds), whose count is the rate and whose outcome
// attribute holds "ok", the error's code, or "shed" (Outcome).
func Endpoint(name string) endpoint.Middleware { return EndpointOf(trace.SpanKindServer, name) }

// EndpointOf is Endpoint with a span of another kind: a job's is a consumer's.
func EndpointOf(kind trace.SpanKind, name string) endpoint.Middleware {
	return endpointBy(kind, name, func(any) string { return name })
}

// EndpointBy is Endpoint for an endpoint that serves several names: the span begins
// as initial, and name says after the call what the request turned out to be. It
// must answer from a bounded set: each name is a metric series.
func EndpointBy(initial string, name func(request any) string) endpoint.Middleware {
	return endpointBy(trace.SpanKindServer, initial, name)
}

func endpointBy(kind trace.SpanKind, initial string, name func(request any) string) endpoint.Middleware {
	tracer := otel.Tracer("hub.internal/pkg/telemetry")
	duration := durations("hub.call.duration", "Time to answer a call, by name and outcome.")
	series := &seriesCache{}
	return func(next endpoint.Endpoint) endpoint.Endpoint {
		return func(ctx context.Context, request any) (any, error) {
			start := time.Now()
			ctx, span := tracer.Start(ctx, initial, trace.WithSpanKind(kind))
			defer span.End()
			response, err := next(ctx, request)
			called, outcome := name(request), "ok"
			if called != initial {
				span.SetName(called)
			}
			if err != nil {
				f := fault.From(err)
				outcome = string(f.Code)
				if f.Status() >= 500 {
					span.SetStatus(codes.Error, outcome)
				}
				span.SetAttributes(attribute.String("error.type", outcome))
				if fault.Shed(f) {
					outcome = shed
				}
			}
			duration.Record(ctx, time.Since(start).Seconds(), series.of(called, outcome, func() metric.MeasurementOption {
				return Set(attribute.String("name", called), attribute.String("outcome", outcome))
			}))
			return response, err
		}
	}
}

// durations is a histogram of the seconds that something takes.
func durations(name, description string) metric.Float64Histogram {
	return Instrument(otel.Meter("hub.internal/pkg/telemetry").Float64Histogram(name, metric.WithUnit("s"),
		metric.WithDescription(description),
		metric.WithExplicitBucketBoundaries(.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30)))
}

// seriesCache binds each attribute set once, so that a call allocates none.
type seriesCache struct {
	bound sync.Map // [2]string → metric.MeasurementOption
}

func (s *seriesCache) of(first, second string, set func() metric.MeasurementOption) metric.MeasurementOption {
	key := [2]string{first, second}
	if bound, ok := s.bound.Load(key); ok {
		return bound.(metric.MeasurementOption)
	}
	option := set()
	s.bound.Store(key, option)
	return option
}
