package telemetry

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Pool is what a pool of connections has at a moment. Waits and Waited are sums since its start.
type Pool struct {
	Max, Used, Idle int64
	// Waits are those who had to wait for a connection, Waited how long they all did.
	Waits  int64
	Waited time.Duration
}

// ObservePool shows a pool: hub.pool.connections by state, hub.pool.connections.max, hub.pool.waits
// and hub.pool.wait.time. read is asked at each scrape and must not block. forget ends it.
func ObservePool(name string, read func() Pool) (forget func()) {
	meter := otel.Meter("hub.internal/pkg/telemetry")
	connections, err1 := meter.Int64ObservableGauge("hub.pool.connections", metric.WithDescription("Connections of a pool, by state."))
	limit, err2 := meter.Int64ObservableGauge("hub.pool.connections.max", metric.WithDescription("Connections that a pool may have."))
	waits, err3 := meter.Int64ObservableCounter("hub.pool.waits", metric.WithDescription("Uses of a pool that had to wait for a connection."))
	waited, err4 := meter.Float64ObservableCounter("hub.pool.wait.time", metric.WithUnit("s"),
		metric.WithDescription("Time that was waited for connections of a pool."))
	report(err1, err2, err3, err4)
	pool := attribute.String("pool", name)
	used, idle, all := set(pool, attribute.String("state", "used")), set(pool, attribute.String("state", "idle")), set(pool)
	return observe(meter, func(_ context.Context, o metric.Observer) error {
		p := read()
		o.ObserveInt64(connections, p.Used, used)
		o.ObserveInt64(connections, p.Idle, idle)
		o.ObserveInt64(limit, p.Max, all)
		o.ObserveInt64(waits, p.Waits, all)
		o.ObserveFloat64(waited, p.Waited.Seconds(), all)
		return nil
	}, connections, limit, waits, waited)
}

// Bulkhead is what of a bounded resource is taken at a moment. Refused is a sum since its start.
type Bulkhead struct {
	Limit, Used, Waiting int64
	// Refused are those who got nothing.
	Refused int64
}

// ObserveBulkhead shows a bounded resource: hub.bulkhead.used, hub.bulkhead.limit, hub.bulkhead.waiting and
// hub.bulkhead.refusals. read is asked at each scrape and must not block. forget ends it.
func ObserveBulkhead(name string, read func() Bulkhead) (forget func()) {
	meter := otel.Meter("hub.internal/pkg/telemetry")
	used, err1 := meter.Int64ObservableGauge("hub.bulkhead.used", metric.WithDescription("What of a bounded resource is taken."))
	limit, err2 := meter.Int64ObservableGauge("hub.bulkhead.limit", metric.WithDescription("What of a bounded resource there is."))
	waiting, err3 := meter.Int64ObservableGauge("hub.bulkhead.waiting", metric.WithDescription("Who waits for a bounded resource."))
	refused, err4 := meter.Int64ObservableCounter("hub.bulkhead.refusals",
		metric.WithDescription("How often nothing was left of a bounded resource."))
	report(err1, err2, err3, err4)
	bulkhead := set(attribute.String("bulkhead", name))
	return observe(meter, func(_ context.Context, o metric.Observer) error {
		b := read()
		o.ObserveInt64(used, b.Used, bulkhead)
		o.ObserveInt64(limit, b.Limit, bulkhead)
		o.ObserveInt64(waiting, b.Waiting, bulkhead)
		o.ObserveInt64(refused, b.Refused, bulkhead)
		return nil
	}, used, limit, waiting, refused)
}

func set(attributes ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(attributes...))
}

func report(errs ...error) {
	for _, err := range errs {
		if err != nil {
			otel.Handle(err)
		}
	}
}

func observe(meter metric.Meter, callback metric.Callback, of ...metric.Observable) (forget func()) {
	registration, err := meter.RegisterCallback(callback, of...)
	if err != nil {
		otel.Handle(err)
		return func() {}
	}
	return sync.OnceFunc(func() { report(registration.Unregister()) })
}
