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
	telemetry.Instrument(otel.Meter("hub.internal/pkg/service").Int64ObservableUpDownCounter("http.server.active_requests",
		metric.WithDescription("Requests that are being answered."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error { o.Observe(p.active.Load()); return nil })))
}

// observeConnections shows the places of a listener: hub.bulkhead.* of connections, and hub.connections.closed.
func (p *process) observeConnections(listener string, places *connections) {
	name := "connections"
	if listener == operations {
		name = "connections for operations"
	}
	forget := telemetry.ObserveBulkhead(name, func() telemetry.Bulkhead {
		limit, used, refused := places.use()
		return telemetry.Bulkhead{Limit: limit, Used: used, Refused: refused}
	})
	p.onStop("gauges", func(context.Context) error { forget(); return nil })
	if listener == operations {
		return
	}
	telemetry.Instrument(otel.Meter("hub.internal/pkg/service").Int64ObservableCounter("hub.connections.closed",
		metric.WithDescription("Connections without a call that were closed to make room for others."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error { o.Observe(places.closed.Load()); return nil })))
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
