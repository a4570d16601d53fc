package telemetry_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/telemetry"
)

// values are the samples of a family, as "name{a=b,…} value" without the labels of the scope.
func values(t *testing.T, tel *telemetry.Telemetry, family string) (list []string) {
	t.Helper()
	for _, m := range scrape(t, tel)[family].GetMetric() {
		var labels []string
		for _, l := range m.GetLabel() {
			if !strings.HasPrefix(l.GetName(), "otel_") {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
		}
		value := m.GetGauge().GetValue() + m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
		list = append(list, fmt.Sprintf("{%s} %g", strings.Join(labels, ","), value))
	}
	slices.Sort(list)
	return list
}

func TestWhatIsBoundedShowsHowFullItIs(t *testing.T) {
	tel := start(t, telemetry.Config{})
	pool := telemetry.ObservePool("p", func() telemetry.Pool {
		return telemetry.Pool{Max: 10, Used: 3, Idle: 2, Waits: 7, Waited: 1500 * time.Millisecond}
	})
	bulkhead := telemetry.ObserveBulkhead(
		"b",
		func() telemetry.Bulkhead { return telemetry.Bulkhead{Limit: 8, Used: 5, Waiting: 4, Refused: 6} },
	)
	calls := telemetry.NewDependency("d")
	for _, err := range []error{nil, nil, fault.New(fault.DB, "x"), errors.New("secret"), fmt.Errorf("x: %w", context.Canceled)} {
		calls.Done(t.Context(), "get", time.Now(), telemetry.Outcome(err))
	}
	for family, want := range map[string][]string{
		"hub_pool_connections":             {"{pool=p,state=idle} 2", "{pool=p,state=used} 3"},
		"hub_pool_connections_max":         {"{pool=p} 10"},
		"hub_pool_waits_total":             {"{pool=p} 7"},
		"hub_pool_wait_time_seconds_total": {"{pool=p} 1.5"},
		"hub_bulkhead_used":                {"{bulkhead=b} 5"},
		"hub_bulkhead_limit":               {"{bulkhead=b} 8"},
		"hub_bulkhead_waiting":             {"{bulkhead=b} 4"},
		"hub_bulkhead_refusals_total":      {"{bulkhead=b} 6"},
		"hub_dependency_duration_seconds": {"{dependency=d,operation=get,outcome=E_DB} 1",
			"{dependency=d,operation=get,outcome=E_INTERNAL} 1", "{dependency=d,operation=get,outcome=canceled} 1",
			"{dependency=d,operation=get,outcome=ok} 2"},
	} {
		if got := values(t, tel, family); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", family, got, want)
		}
	}
	pool()
	pool()
	bulkhead()
	if got := append(values(t, tel, "hub_pool_connections"), values(t, tel, "hub_bulkhead_used")...); len(got) > 0 {
		t.Errorf("what has gone still shows %v", got)
	}
}

// TestSamplesAreTakenByTheClock: scrapes ask nobody; what is old is not shown for new.
func TestSamplesAreTakenByTheClock(t *testing.T) {
	tel := start(t, telemetry.Config{})
	synctest.Test(t, func(t *testing.T) {
		var log hubtest.Buffer
		asked := 0
		var broken atomic.Bool
		s := &telemetry.Sample{
			Name:   "s",
			Logger: slog.New(slog.NewTextHandler(&log, nil)),
			Gauges: []telemetry.Gauge{{Name: "hub.test.lag", Unit: "s"}},
			Ask: func(ctx context.Context) ([]telemetry.Reading, error) {
				if asked++; broken.Load() {
					<-ctx.Done() // a store that hangs
					return nil, ctx.Err()
				}
				return []telemetry.Reading{
					{Gauge: "hub.test.lag", Value: float64(asked), Attributes: []attribute.KeyValue{attribute.String("queue", "q")}},
					{Gauge: "unknown"},
				}, nil
			},
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- s.Run(ctx) }()
		synctest.Wait()
		shows := func(when string, age float64, lag ...string) {
			t.Helper()
			if got, want := values(
				t,
				tel,
				"hub_sample_age_seconds",
			), []string{
				fmt.Sprintf("{sample=s} %g", age),
			}; !slices.Equal(
				got,
				want,
			) {
				t.Errorf("%s: %v, want %v", when, got, want)
			}
			if got := values(t, tel, "hub_test_lag_seconds"); !slices.Equal(got, lag) {
				t.Errorf("%s: %v, want %v", when, got, lag)
			}
		}
		shows("at once", 0, "{queue=q} 1")
		for range 5 {
			shows("however often it is scraped", 0, "{queue=q} 1")
		}
		time.Sleep(16 * time.Second)
		shows("after 16 s", 1, "{queue=q} 2")
		broken.Store(true)
		time.Sleep(40 * time.Second)
		shows("while the store hangs", 41, "{queue=q} 2")
		time.Sleep(40 * time.Second)
		shows("when that is too old", 81)
		if n := strings.Count(log.String(), "gauges cannot be sampled"); n != 1 {
			t.Errorf("said %d times: %s", n, log.String())
		}
		broken.Store(false)
		time.Sleep(20 * time.Second)
		if got := values(t, tel, "hub_test_lag_seconds"); len(got) != 1 {
			t.Errorf("it is back, and shows %v", got)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if got := values(t, tel, "hub_sample_age_seconds"); len(got) > 0 {
			t.Errorf("what has ended shows %v", got)
		}
	})
}

// TestExemplarsAreOfOpenMetricsAlone: who asks for the older text gets what it can read.
func TestExemplarsAreOfOpenMetricsAlone(t *testing.T) {
	tel := start(t, telemetry.Config{})
	for accept, want := range map[string]string{"application/openmetrics-text; version=1.0.0": "# EOF", "": ""} {
		r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		r.Header.Set("Accept", accept)
		w := httptest.NewRecorder()
		tel.Metrics.ServeHTTP(w, r)
		if has := strings.Contains(w.Body.String(), "# EOF"); w.Code != http.StatusOK || has != (want != "") {
			t.Errorf("%q: %d, OpenMetrics %v", accept, w.Code, has)
		}
	}
}
