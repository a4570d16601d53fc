package telemetry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-kit/kit/endpoint"
	io_prometheus_client "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/telemetry"
)

// The providers are the process's, so no test here is parallel.

func start(t *testing.T, c telemetry.Config) *telemetry.Telemetry {
	t.Helper()
	c.Service, c.Version = "hub-test", "1.2.3"
	tel, err := telemetry.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = tel.Close(context.Background())
		otel.SetTracerProvider(noop.NewTracerProvider())
	})
	return tel
}

func answer(err error) endpoint.Endpoint {
	return func(context.Context, any) (any, error) { return nil, err }
}

func TestSpansReachTheCollector(t *testing.T) {
	collector := hubtest.OTLP(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1") // what is configured counts
	tel := start(t, telemetry.Config{Endpoint: collector.URL, SampleRatio: 1})
	inner := telemetry.Endpoint("inner")(answer(fault.New(fault.DB, "away").Because(errors.New("secret"))))
	refused := telemetry.Endpoint("refused")(answer(fault.New(fault.NotFound, "no")))
	outer := telemetry.EndpointBy("first name", func(any) string { return "outer" })(func(ctx context.Context, _ any) (any, error) {
		_, _ = refused(ctx, nil)
		return inner(ctx, nil)
	})
	if _, err := outer(t.Context(), nil); !fault.Is(err, fault.DB) {
		t.Errorf("the error is %v", err)
	}
	if err := tel.Close(t.Context()); err != nil { // flushes
		t.Fatal(err)
	}
	spans := collector.WaitFor(t, func(s []hubtest.Span) bool { return len(s) == 3 })
	if got, want := hubtest.Tree(spans), "hub-test: outer\n  hub-test: refused\n  hub-test: inner\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	for _, s := range spans {
		want := map[string]string{"outer": "E_DB", "inner": "E_DB", "refused": "E_NOT_FOUND"}[s.Name]
		if s.Kind != "server" || s.Error != (want == "E_DB") || s.Attributes["error.type"] != want ||
			strings.Contains(fmt.Sprint(s.Attributes), "secret") {
			t.Errorf("%+v", s)
		}
	}
}

func TestCallersDecisionToSampleIsKept(t *testing.T) {
	collector := hubtest.OTLP(t)
	tel := start(t, telemetry.Config{Endpoint: collector.URL, SampleRatio: 0})
	e := telemetry.Endpoint("e")(answer(nil))
	const parent = "4bf92f3577b34da6a3ce929d0e0e4736"
	from := func(header string) context.Context {
		return otel.GetTextMapPropagator().Extract(t.Context(), propagation.MapCarrier{"traceparent": header})
	}
	for _, ctx := range []context.Context{t.Context(), from("00-" + parent + "-00f067aa0ba902b7-00"), from("garbage"),
		from("00-" + parent + "-00f067aa0ba902b7-01")} {
		if _, err := e(ctx, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := tel.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if spans := collector.Spans(); len(spans) != 1 || spans[0].TraceID != parent || spans[0].ParentID != "00f067aa0ba902b7" {
		t.Errorf("got %+v", spans)
	}
}

func TestNothingIsExportedWithoutAnEndpoint(t *testing.T) {
	var requests sync.Map
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { requests.Store(r.URL.Path, true) }))
	defer server.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	tel := start(t, telemetry.Config{Endpoint: "", SampleRatio: 1})
	const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	ctx := otel.GetTextMapPropagator().Extract(t.Context(), propagation.MapCarrier{"traceparent": parent})
	passed := propagation.MapCarrier{}
	_, err := telemetry.Endpoint("e")(func(ctx context.Context, _ any) (any, error) {
		if trace.SpanFromContext(ctx).IsRecording() {
			t.Error("a span is recorded that nobody will see")
		}
		otel.GetTextMapPropagator().Inject(ctx, passed)
		return nil, nil
	})(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	if passed["traceparent"] != parent {
		t.Errorf("the trace ends here: %v", passed)
	}
	if err := tel.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	requests.Range(func(path, _ any) bool { t.Errorf("exported to %v", path); return true })
}

func TestEndpointThatIsNoURLStopsTheStart(t *testing.T) {
	for _, bad := range []string{"localhost:4318", "collector", "ftp://collector", "http://", "http://a b", "://"} {
		if _, err := telemetry.Start(
			t.Context(),
			telemetry.Config{Service: "x", Endpoint: bad},
		); err == nil || !strings.Contains(err.Error(), "OTEL_EXPORTER_OTLP_ENDPOINT") ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// TestCollectorThatIsAwayHoldsNobodyUp: neither a call nor the end waits for it.
func TestCollectorThatIsAwayHoldsNobodyUp(t *testing.T) {
	tel := start(t, telemetry.Config{Endpoint: "http://127.0.0.1:1", SampleRatio: 1})
	e := telemetry.Endpoint("e")(answer(nil))
	start := time.Now()
	for range 5000 { // more than its queue holds
		_, _ = e(t.Context(), nil)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_ = tel.Close(ctx)
	if took := time.Since(start); took > 20*time.Second { // its exports give up after half a minute
		t.Errorf("it took %v", took)
	}
}

func TestLogLinesLeadToTheirTrace(t *testing.T) {
	collector := hubtest.OTLP(t)
	start(t, telemetry.Config{Endpoint: collector.URL, SampleRatio: 1})
	var out bytes.Buffer
	logger := telemetry.Logger(&out, "query", slog.LevelInfo)
	var sc trace.SpanContext
	_, _ = telemetry.Endpoint("e")(func(ctx context.Context, _ any) (any, error) {
		sc = trace.SpanContextFromContext(ctx)
		logger.InfoContext(ctx, "plain")
		logger.With("a", 1).WithGroup("").InfoContext(ctx, "with attributes")
		logger.DebugContext(ctx, "too fine")
		return nil, nil
	})(t.Context(), nil)
	logger.Info("outside of a call")
	var lines []map[string]any
	for d := json.NewDecoder(&out); d.More(); {
		var line map[string]any
		if err := d.Decode(&line); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, line)
	}
	if len(lines) != 3 {
		t.Fatalf("%d lines", len(lines))
	}
	for i, line := range lines {
		inside := i < 2
		if line["service"] != "query" || inside != (line["trace_id"] == sc.TraceID().String()) ||
			inside != (line["span_id"] == sc.SpanID().String()) {
			t.Errorf("%v, trace %v", line, sc)
		}
	}
}

// scrape reads the exposition as Prometheus does.
func scrape(t *testing.T, tel *telemetry.Telemetry) map[string]*io_prometheus_client.MetricFamily {
	t.Helper()
	w := httptest.NewRecorder()
	tel.Metrics.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	p := expfmt.NewTextParser(model.UTF8Validation)
	families, err := p.TextToMetricFamilies(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	return families
}

func TestMetricsAreBoundedSeries(t *testing.T) {
	tel := start(t, telemetry.Config{})
	known := telemetry.EndpointBy("tool", func(request any) string {
		if name := request.(string); slices.Contains([]string{"get_brand", "search_brands"}, name) {
			return name
		}
		return "unknown"
	})
	var wg sync.WaitGroup
	for i, err := range []error{nil, nil, fault.New(fault.DB, "x"), errors.New("SELECT secret"),
		fmt.Errorf("x: %w", fault.New(fault.Scope, "x"))} {
		e := known(answer(err))
		for range 4 {
			wg.Go(func() {
				for j := range 25 {
					_, _ = e(t.Context(), []string{"get_brand", "search_brands", fmt.Sprint("made up ", i, j)}[j%3])
				}
			})
		}
	}
	wg.Wait()
	families := scrape(t, tel)
	calls := families["hub_call_duration_seconds"]
	if calls == nil {
		t.Fatalf("no hub_call_duration_seconds")
	}
	got := map[string]uint64{}
	var total uint64
	for _, m := range calls.GetMetric() {
		labels := map[string]string{}
		for _, l := range m.GetLabel() {
			labels[l.GetName()] = l.GetValue()
		}
		got[labels["name"]+" "+labels["outcome"]] += m.GetHistogram().GetSampleCount()
		total += m.GetHistogram().GetSampleCount()
		if n := len(m.GetHistogram().GetBucket()); n < 10 || n > 20 {
			t.Errorf("%d buckets", n)
		}
	}
	if total != 500 || len(got) != 12 {
		t.Errorf("%d calls in %d series: %v", total, len(got), got)
	}
	for _, name := range []string{"get_brand", "search_brands", "unknown"} {
		for _, outcome := range []string{"ok", "E_DB", "E_INTERNAL", "E_SCOPE"} {
			if got[name+" "+outcome] == 0 {
				t.Errorf("no series %s %s", name, outcome)
			}
		}
	}
	for _, name := range []string{"go_goroutines", "process_resident_memory_bytes", "target_info"} {
		if families[name] == nil {
			t.Errorf("no %s", name)
		}
	}
}

func BenchmarkEndpoint(b *testing.B) {
	tel, err := telemetry.Start(b.Context(), telemetry.Config{Service: "x"})
	if err != nil {
		b.Fatal(err)
	}
	defer tel.Close(b.Context())
	e := telemetry.Endpoint("e")(answer(nil))
	b.ReportAllocs()
	for b.Loop() {
		_, _ = e(b.Context(), nil)
	}
}
