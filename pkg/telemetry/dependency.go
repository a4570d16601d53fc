package telemetry

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"hub.internal/pkg/fault"
)

// Dependency has the RED metrics of what a process calls: one histogram
// hub.dependency.duration (seconds), whose count is the rate. Its attributes are the
// dependency's name, the operation, and the outcome. All three come from bounded sets.
type Dependency struct {
	name     string
	duration metric.Float64Histogram
	series   seriesCache
}

// NewDependency names what is called: a service, or a server such as postgres.
func NewDependency(name string) *Dependency {
	return &Dependency{name: name,
		duration: durations("hub.dependency.duration", "Time that a dependency took to answer, by dependency, operation and outcome.")}
}

// Done records one call that began at start; a nil Dependency records nothing.
func (d *Dependency) Done(ctx context.Context, operation string, start time.Time, outcome string) {
	if d == nil {
		return
	}
	d.duration.Record(ctx, time.Since(start).Seconds(), d.series.of(operation, outcome, func() metric.MeasurementOption {
		return Set(attribute.String("dependency", d.name), attribute.String("operation", operation),
			attribute.String("outcome", outcome))
	}))
}

// shed is the outcome of a call that there was no capacity for, and which therefore did not begin.
const shed = "shed"

// Outcome is "ok", "canceled" for a caller who went away, "shed" for a call that there was no capacity for, or the code of
// err's fault.
func Outcome(err error) string {
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, context.Canceled):
		return "canceled"
	case fault.Shed(err):
		return shed
	}
	return string(fault.From(err).Code)
}
