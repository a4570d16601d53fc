package edge

import (
	"context"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"

	"hub.internal/services/gateway/catalog"
)

// Observe shows whether the limits hold in memory, whether keys are good by older answers of auth, and how many services'
// manifests are refused. Each is a gauge that is read when metrics are collected; its error is that of a name that is taken.
func Observe(limiter *Fallback, manifests *catalog.Catalog, keys *KeyCache) error {
	meter := otel.Meter("hub.internal/services/gateway")
	gauge := func(name, description string, value func() int64) error {
		_, err := meter.Int64ObservableGauge(name, metric.WithDescription(description),
			metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error { o.Observe(value()); return nil }))
		return err
	}
	flag := func(is func() bool) func() int64 {
		return func() int64 {
			if is() {
				return 1
			}
			return 0
		}
	}
	if err := gauge("hub.ratelimit.local", "1 while Redis is away and each replica limits by itself.", flag(limiter.Unreachable)); err != nil {
		return err
	}
	err := gauge("hub.auth.stale", "1 while auth cannot be asked and keys are good by what it said before.", flag(keys.ServesStale))
	if err != nil {
		return err
	}
	return gauge("hub.manifests.refused",
		"Services whose last manifest was refused; what they said before still holds.", manifests.Refused)
}
