package telemetry

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

const (
	// sampleEvery is how often a sample is taken, sampleTakes what one may take, and sampleHolds how
	// long it is shown: what is older says nothing of now.
	sampleEvery = 15 * time.Second
	sampleTakes = 2 * time.Second
	sampleHolds = time.Minute
)

// Gauge is one of a Sample's.
type Gauge struct {
	// Name is dotted; Unit is "s", "By" or empty.
	Name, Unit, Description string
}

// Reading is a value of a gauge. Its attributes come from a bounded set.
type Reading struct {
	// Gauge is the name of one of the sample's.
	Gauge      string
	Value      float64
	Attributes []attribute.KeyValue
}

// Sample is gauges whose values cost a query: they are asked for every 15 s and not at each scrape, and
// are gone a minute after the last answer. hub.sample.age tells how old that is.
type Sample struct {
	// Name names the sample in the metrics.
	Name   string
	Gauges []Gauge
	// Ask returns the readings; it has two seconds.
	Ask    func(context.Context) ([]Reading, error)
	Logger *slog.Logger
	// Every is for tests; 0 means 15 s.
	Every time.Duration

	mu       sync.Mutex
	at       time.Time
	readings []Reading
}

// Run takes samples until ctx ends: a background task. What fails is tried again at the next turn.
func (s *Sample) Run(ctx context.Context) error {
	s.at = time.Now()
	defer s.show()()
	tick := time.NewTicker(cmp.Or(s.Every, sampleEvery))
	defer tick.Stop()
	for failing := false; ; {
		asking, cancel := context.WithTimeout(ctx, sampleTakes)
		readings, err := s.Ask(asking)
		cancel()
		switch {
		case err == nil:
			s.mu.Lock()
			s.at, s.readings = time.Now(), readings
			s.mu.Unlock()
		case ctx.Err() == nil && !failing: // once, until it works again
			s.Logger.WarnContext(ctx, "gauges cannot be sampled", "sample", s.Name, "error", err)
		}
		failing = err != nil
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// show hands the last sample to scrapes.
func (s *Sample) show() (forget func()) {
	meter := otel.Meter("hub.internal/pkg/telemetry")
	age := Instrument(meter.Float64ObservableGauge("hub.sample.age", metric.WithUnit("s"),
		metric.WithDescription("Time since gauges that cost a query were asked for with success.")))
	gauges, all := map[string]metric.Float64ObservableGauge{}, []metric.Observable{age}
	for _, g := range s.Gauges {
		gauge := Instrument(meter.Float64ObservableGauge(g.Name, metric.WithUnit(g.Unit), metric.WithDescription(g.Description)))
		gauges[g.Name], all = gauge, append(all, gauge)
	}
	name := Set(attribute.String("sample", s.Name))
	return Observe(meter, func(_ context.Context, o metric.Observer) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		old := time.Since(s.at)
		o.ObserveFloat64(age, old.Seconds(), name)
		if old > sampleHolds {
			return nil
		}
		for _, r := range s.readings {
			if gauge, known := gauges[r.Gauge]; known {
				o.ObserveFloat64(gauge, r.Value, Set(r.Attributes...))
			}
		}
		return nil
	}, all...)
}
