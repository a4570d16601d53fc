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
	connections := Instrument(meter.Int64ObservableGauge("hub.pool.connections",
		metric.WithDescription("Connections of a pool, by state.")))
	limit := Instrument(meter.Int64ObservableGauge("hub.pool.connections.max",
		metric.WithDescription("Connections that a pool may have.")))
	waits := Instrument(meter.Int64ObservableCounter("hub.pool.waits",
		metric.WithDescription("Uses of a pool that had to wait for a connection.")))
	waited := Instrument(meter.Float64ObservableCounter("hub.pool.wait.time", metric.WithUnit("s"),
		metric.WithDescription("Time that was waited for connections of a pool.")))
	pool := attribute.String("pool", name)
	used, idle, all := Set(pool, attribute.String("state", "used")), Set(pool, attribute.String("state", "idle")), Set(pool)
	return Observe(meter, func(_ context.Context, o metric.Observer) error {
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
	used := Instrument(meter.Int64ObservableGauge("hub.bulkhead.used", metric.WithDescription("What of a bounded resource is taken.")))
	limit := Instrument(meter.Int64ObservableGauge("hub.bulkhead.limit", metric.WithDescription("What of a bounded resource there is.")))
	waiting := Instrument(meter.Int64ObservableGauge("hub.bulkhead.waiting", metric.WithDescription("Who waits for a bounded resource.")))
	refused := Instrument(meter.Int64ObservableCounter("hub.bulkhead.refusals",
		metric.WithDescription("How often nothing was left of a bounded resource.")))
	bulkhead := Set(attribute.String("bulkhead", name))
	return Observe(meter, func(_ context.Context, o metric.Observer) error {
		b := read()
		o.ObserveInt64(used, b.Used, bulkhead)
		o.ObserveInt64(limit, b.Limit, bulkhead)
		o.ObserveInt64(waiting, b.Waiting, bulkhead)
		o.ObserveInt64(refused, b.Refused, bulkhead)
		return nil
	}, used, limit, waiting, refused)
}

// Set is an attribute set as instruments take it. Each attribute's values come from a bounded set: each set is a series.
func Set(attributes ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(attributes...))
}

// Instrument is the instrument that a meter has made. One that it could not make measures nothing, and otel's error handler is told
// why: no process stops for a measurement.
func Instrument[T any](instrument T, err error) T {
	if err != nil {
		otel.Handle(err)
	}
	return instrument
}

// Observe has a callback asked at each scrape for the values of these instruments, until forget is called.
func Observe(meter metric.Meter, callback metric.Callback, of ...metric.Observable) (forget func()) {
	registration, err := meter.RegisterCallback(callback, of...)
	if err != nil {
		otel.Handle(err)
		return func() {}
	}
	return sync.OnceFunc(func() {
		if err := registration.Unregister(); err != nil {
			otel.Handle(err)
		}
	})
}
