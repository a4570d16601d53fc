package service

import (
	"context"
	"net/http"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"

	"hub.internal/pkg/telemetry"
)

// operations is the listener that calls do not come to.
const operations = "operations"

// observe shows what requests take: http.server.active_requests, and the memory of their bodies.
func (p *process) observe() {
	forget := telemetry.ObserveBulkhead("bodies", func() telemetry.Bulkhead {
		taken, waiting, refused := p.bodies.Use()
		return telemetry.Bulkhead{Limit: p.bodies.Size(), Used: taken, Waiting: waiting, Refused: refused}
	})
	p.onStop("gauges", func(context.Context) error { forget(); return nil })
	_, err := otel.Meter("hub.internal/pkg/service").Int64ObservableUpDownCounter("http.server.active_requests",
		metric.WithDescription("Requests that are being answered."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error { o.Observe(p.active.Load()); return nil }))
	if err != nil {
		otel.Handle(err)
	}
}

// count counts the requests to a listener while they are answered.
func (p *process) count(listener string, next http.Handler) http.Handler {
	if listener == operations {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.active.Add(1)
		defer p.active.Add(-1)
		next.ServeHTTP(w, r)
	})
}
