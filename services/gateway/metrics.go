package gateway

import (
	"context"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
)

// Observe shows whether the limits hold in memory, and how many services' manifests are refused.
func Observe(limiter *Fallback, catalog *Catalog) error {
	meter := otel.Meter("hub.internal/services/gateway")
	gauge := func(name, description string, value func() int64) error {
		_, err := meter.Int64ObservableGauge(name, metric.WithDescription(description),
			metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error { o.Observe(value()); return nil }))
		return err
	}
	if err := gauge("hub.ratelimit.local", "1 while Redis is away and each replica limits by itself.", func() int64 {
		if limiter.Down() {
			return 1
		}
		return 0
	}); err != nil {
		return err
	}
	return gauge("hub.manifests.refused",
		"Services whose last manifest was refused; what they said before still holds.", catalog.refusals.count)
}
