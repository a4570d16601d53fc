package replicas

import (
	"context"
	"net"
	"strconv"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// metrics tell how the servers are.
type metrics struct {
	moves    metric.Int64Counter
	observed metric.Registration
}

// newMetrics registers the series; their states are read when they are collected, and not when they change.
func newMetrics(s *Set) *metrics {
	meter := otel.Meter("hub.internal/services/query/mysql/replicas")
	kept := func(err error) {
		if err != nil {
			otel.Handle(err)
		}
	}
	up, err := meter.Int64ObservableGauge("hub.source.replica.up", metric.WithDescription("1 while the replica of the source answers."))
	kept(err)
	asked, err := meter.Int64ObservableGauge("hub.source.replica.asked",
		metric.WithDescription("1 while the replica of the source answers and is within the lag limit, or its lag is unknown."))
	kept(err)
	lag, err := meter.Float64ObservableGauge("hub.source.replica.lag", metric.WithUnit("s"),
		metric.WithDescription("How far the replica of the source is behind; absent while nobody knows."))
	kept(err)
	stale, err := meter.Int64ObservableGauge("hub.source.stale",
		metric.WithDescription("1 while every replica of the source that answers lags beyond the limit and is asked all the same."))
	kept(err)
	moves, err := meter.Int64Counter("hub.source.replica.moves",
		metric.WithDescription("Calls that left a replica of the source for another one, by the one that failed."))
	kept(err)
	m := &metrics{moves: moves}
	for _, member := range s.members {
		moves.Add(context.Background(), 0, member.named()) // an alarm needs the series before the first of them
	}
	m.observed, err = meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		for _, member := range s.members {
			v := member.view()
			o.ObserveInt64(up, number(v.up), member.named())
			o.ObserveInt64(asked, number(v.rank(s.maxLag) == current), member.named())
			if v.up && !v.standing.Unknown && !v.standing.Stopped {
				o.ObserveFloat64(lag, v.standing.Lag.Seconds(), member.named())
			}
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		o.ObserveInt64(stale, number(s.stale))
		return nil
	}, up, asked, lag, stale)
	kept(err)
	return m
}

// moved counts a call that has left a server.
func (m *metrics) moved(ctx context.Context, from *member) { m.moves.Add(ctx, 1, from.named()) }

// close ends the callback, so that a closed Set is not observed.
func (m *metrics) close() error {
	if m.observed == nil {
		return nil
	}
	return m.observed.Unregister()
}

// named are the attributes of a server, as the conventions of OpenTelemetry call them.
func (m *member) named() metric.MeasurementOption {
	host, port, err := net.SplitHostPort(m.addr)
	if err != nil { // a socket
		return metric.WithAttributes(attribute.String("server.address", m.addr))
	}
	number, _ := strconv.Atoi(port)
	return metric.WithAttributes(attribute.String("server.address", host), attribute.Int("server.port", number))
}

// number is a gauge's way to say yes or no.
func number(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
