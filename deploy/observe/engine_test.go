package observe_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

// sample is a number at a moment, in milliseconds.
type sample struct {
	t int64
	v float64
}

func (s sample) T() int64                      { return s.t }
func (s sample) ST() int64                     { return 0 }
func (s sample) F() float64                    { return s.v }
func (s sample) H() *histogram.Histogram       { return nil }
func (s sample) FH() *histogram.FloatHistogram { return nil }
func (s sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample           { return s }

// world is series over time, as Prometheus would have stored them.
type world struct {
	series []*storage.SeriesEntry
	end    time.Time
}

// newWorld reads series in the notation of promtool's tests: a metric, its labels, and a value for each step.
func newWorld(t testing.TB, step time.Duration, notation ...string) *world {
	t.Helper()
	w := &world{}
	for _, line := range notation {
		name, values, err := language.ParseSeriesDesc(line)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		var list []chunks.Sample
		for i, v := range values {
			at := time.Unix(0, 0).Add(time.Duration(i) * step)
			if w.end.Before(at) {
				w.end = at
			}
			if !v.Omitted {
				list = append(list, sample{at.UnixMilli(), v.Value})
			}
		}
		w.series = append(w.series, storage.NewListSeries(name, list))
	}
	return w
}

// Querier implements storage.Queryable.
func (w *world) Querier(int64, int64) (storage.Querier, error) { return querier{w}, nil }

type querier struct{ *world }

func (querier) Close() error { return nil }

func (querier) LabelValues(context.Context, string, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

func (querier) LabelNames(context.Context, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

// Select implements storage.Querier.
func (q querier) Select(_ context.Context, _ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	var found []storage.Series
	for _, s := range q.series {
		if !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(s.Lset.Get(m.Name)) }) {
			found = append(found, s)
		}
	}
	slices.SortFunc(found, func(a, b storage.Series) int { return labels.Compare(a.Labels(), b.Labels()) })
	return &set{found, -1}
}

type set struct {
	list []storage.Series
	at   int
}

func (s *set) Next() bool                        { s.at++; return s.at < len(s.list) }
func (s *set) At() storage.Series                { return s.list[s.at] }
func (s *set) Err() error                        { return nil }
func (s *set) Warnings() annotations.Annotations { return nil }

// evaluator answers what alerts say of a world.
type evaluator struct {
	engine *promql.Engine
	alerts map[string]rulefmt.Rule
	// records are the rules that record, by name.
	records map[string]rulefmt.Rule
}

func newEvaluator(t testing.TB) *evaluator {
	t.Helper()
	e := &evaluator{alerts: map[string]rulefmt.Rule{}, records: map[string]rulefmt.Rule{},
		engine: promql.NewEngine(promql.EngineOpts{MaxSamples: 1 << 24, Timeout: time.Minute, LookbackDelta: 5 * time.Minute, Parser: language})}
	for _, g := range rules(t) {
		for _, r := range g.Rules {
			if r.Alert == "" {
				e.records[r.Record] = r
				continue
			}
			if _, twice := e.alerts[r.Alert]; twice {
				t.Errorf("%s is there twice", r.Alert)
			}
			e.alerts[r.Alert] = r
		}
	}
	return e
}

// ask evaluates a query at a moment, with what it reads of the rules that record, as of that moment.
func (e *evaluator) ask(t testing.TB, w *world, query string, at time.Time) promql.Vector {
	t.Helper()
	expr, err := language.ParseExpr(query)
	if err != nil {
		t.Fatal(err)
	}
	with, done := &world{series: slices.Clone(w.series)}, map[string]bool{}
	parser.Inspect(expr, func(node parser.Node, path []parser.Node) error {
		s, ok := node.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		record, recorded := e.records[s.Name]
		if !recorded || done[s.Name] {
			return nil
		}
		done[s.Name] = true
		if _, ranged := path[len(path)-1].(*parser.MatrixSelector); ranged || s.OriginalOffset != 0 {
			t.Fatalf("%s: what %s was is not known here", query, s.Name)
		}
		for _, one := range e.ask(t, w, record.Expr, at) {
			b := labels.NewBuilder(one.Metric)
			b.Set(model.MetricNameLabel, s.Name)
			with.series = append(with.series, storage.NewListSeries(b.Labels(), []chunks.Sample{sample{at.UnixMilli(), one.F}}))
		}
		return nil
	})
	q, err := e.engine.NewInstantQuery(t.Context(), with, nil, query, at)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	result := q.Exec(t.Context())
	if result.Err != nil {
		t.Fatalf("%s: %v", query, result.Err)
	}
	vector, err := result.Vector()
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return slices.Clone(vector)
}

// firing are the label sets for which an alert fires at the end of a world: its expression has held for as long as it has to.
func (e *evaluator) firing(t testing.TB, name string, w *world) (list []string) {
	t.Helper()
	alert, known := e.alerts[name]
	if !known {
		t.Fatalf("there is no alert %s", name)
	}
	held := map[string]int{}
	since := time.Duration(alert.For)
	moments := []time.Time{w.end.Add(-since), w.end.Add(-since / 2), w.end}
	for _, at := range moments {
		seen := map[string]bool{}
		for _, one := range e.ask(t, w, alert.Expr, at) {
			what := one.Metric.DropReserved(func(name string) bool { return name == model.MetricNameLabel }).String()
			if seen[what] {
				t.Errorf("%s: two results for %s, which Prometheus refuses", name, what)
			}
			seen[what] = true
			held[what]++
		}
	}
	for what, n := range held {
		if n == len(moments) {
			list = append(list, what)
		}
	}
	slices.Sort(list)
	return list
}

// count is notation for a counter: what it grows by each step.
func count(series string, each float64, steps int) string {
	return fmt.Sprintf("%s 0+%gx%d", series, each, steps)
}

// gauge is notation for a gauge that stays.
func gauge(series string, value float64, steps int) string {
	return fmt.Sprintf("%s %gx%d", series, value, steps)
}
