package remote

import (
	"context"
	"net/http"
	"sync"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"hub.internal/pkg/admission"
	"hub.internal/pkg/telemetry"
)

// metrics are those of one neighbour: its calls as a dependency's, hub.dependency.retries, the calls in
// flight, until they are answered, as the bulkhead of its name, and hub.dependency.instances by state: "ok", or "out" of order.
type metrics struct {
	calls   *telemetry.Dependency
	retries metric.Int64Counter
	service metric.MeasurementOption
	forget  func()

	mu        sync.Mutex
	instances map[*func() bool]struct{}
}

func newMetrics(service string, calls *admission.Limiter) *metrics {
	meter := otel.Meter("hub.internal/pkg/remote")
	name := attribute.String("dependency", service)
	m := &metrics{calls: telemetry.NewDependency(service), service: telemetry.Set(name),
		retries: telemetry.Instrument(meter.Int64Counter("hub.dependency.retries",
			metric.WithDescription("Second and third attempts at calls."))),
		instances: map[*func() bool]struct{}{}}
	m.retries.Add(context.Background(), 0, m.service)
	instances := telemetry.Instrument(meter.Int64ObservableGauge("hub.dependency.instances",
		metric.WithDescription("Instances of a neighbour that this process has heard of, by state.")))
	ok, out := telemetry.Set(name, attribute.String("state", "ok")), telemetry.Set(name, attribute.String("state", "out"))
	unregister := telemetry.Observe(meter, func(_ context.Context, o metric.Observer) error {
		inOrder, all := m.count()
		o.ObserveInt64(instances, inOrder, ok)
		o.ObserveInt64(instances, all-inOrder, out)
		return nil
	}, instances)
	release := telemetry.ObserveBulkhead(service, func() telemetry.Bulkhead {
		limit, working, waiting, refused := calls.Use()
		return telemetry.Bulkhead{Limit: limit, Used: working, Waiting: waiting, Refused: refused}
	})
	m.forget = func() { release(); unregister() }
	return m
}

// follow counts an instance until gone is called.
func (m *metrics) follow(inOrder *func() bool) (gone func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.instances[inOrder] = struct{}{}
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.instances, inOrder)
	}
}

func (m *metrics) count() (inOrder, all int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for instance := range m.instances {
		if (*instance)() {
			inOrder++
		}
	}
	return inOrder, int64(len(m.instances))
}

// outcome is that of a call: "unanswered" when no instance has answered it.
func outcome(err error) string {
	if Unanswered(err) {
		return "unanswered"
	}
	return telemetry.Outcome(err)
}

// proxyOutcome is the outcome of a request that was handed on: what a page answers is its own affair, unless it broke.
func proxyOutcome(answer *http.Response, err error) string {
	if err == nil && answer.StatusCode >= http.StatusInternalServerError {
		return "http_5xx"
	}
	return outcome(err)
}
