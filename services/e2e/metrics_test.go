package e2e_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"hub.internal/pkg/hubtest"
)

var updateMetrics = flag.Bool("update-metrics", false, "write deploy/observe/metrics.json as the running suite has it")

// inventoryOfMetrics is deploy/observe/metrics.json: what dashboards and alerts may name. Its own test holds them to it; the one
// here holds it to running programs.
type inventoryOfMetrics map[string]listedMetric

type listedMetric struct {
	Type string `json:"type"`
	// Labels are the values of each label. Those of an open one are what a test has seen at some time; "*" is any.
	Labels map[string][]string `json:"labels"`
	// Open names the labels whose values depend on what has happened.
	Open []string `json:"open,omitempty"`
}

// ours are the metrics that the inventory has all of. Those of Go and of the process are the libraries': it has what is used.
var ours = regexp.MustCompile(`^(hub_|http_server_|target_info$)`)

// ofReplicas are those of them that a source on several servers has: a test of services/query/cmd/query holds them to its program.
var ofReplicas = regexp.MustCompile(`^hub_source_`)

// open are the labels whose values depend on what has happened; any value of those in anything is right.
var open = map[string][]string{
	"hub_call_duration_seconds":       {"name", "outcome"},
	"hub_dependency_duration_seconds": {"dependency", "operation", "outcome"},
	"target_info":                     {"service_version"},
}

var anything = []string{"hub_call_duration_seconds name", "target_info service_version"}

// scraped is what the processes of the suite show for operations.
func (s *suite) scraped(t testing.TB) inventoryOfMetrics {
	t.Helper()
	found := inventoryOfMetrics{}
	for name, addr := range s.ops {
		resp, err := http.Get("http://" + addr + "/metrics")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		parser := expfmt.NewTextParser(model.LegacyValidation)
		families, err := parser.TextToMetricFamilies(resp.Body)
		resp.Body.Close()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for family, f := range families {
			found.add(family, f)
		}
	}
	return found
}

func (i inventoryOfMetrics) add(name string, f *dto.MetricFamily) {
	m, known := i[name]
	if !known {
		m = listedMetric{Type: strings.ToLower(f.GetType().String()), Labels: map[string][]string{}, Open: open[name]}
	}
	for _, one := range f.GetMetric() {
		for _, label := range one.GetLabel() {
			value := label.GetValue()
			if strings.HasPrefix(label.GetName(), "otel_scope_") || !ours.MatchString(name) {
				continue
			}
			switch {
			case slices.Contains(anything, name+" "+label.GetName()):
				value = "*"
			case strings.HasPrefix(value, "sqlstate_"): // and a class of SQLSTATE
				value = "sqlstate_*"
			}
			m.see(label.GetName(), value)
		}
		for _, bucket := range one.GetHistogram().GetBucket() {
			if ours.MatchString(name) {
				m.see("le", boundOf(bucket.GetUpperBound()))
			}
		}
	}
	i[name] = m
}

func (m listedMetric) see(label, value string) {
	if !slices.Contains(m.Labels[label], value) {
		m.Labels[label] = append(m.Labels[label], value)
		slices.Sort(m.Labels[label])
	}
}

// boundOf is a bucket's le as Prometheus stores it.
func boundOf(bound float64) string {
	text := strconv.FormatFloat(bound, 'g', -1, 64)
	if strings.ContainsAny(text, ".eI") {
		return text
	}
	return text + ".0"
}

// differences are what a listed inventory has wrong of what was found.
func (i inventoryOfMetrics) differences(found inventoryOfMetrics) (list []string) {
	say := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if _, listed := i[name]; !listed && ours.MatchString(name) {
			say("%s is not listed", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(i)) {
		if ofReplicas.MatchString(name) {
			continue
		}
		want := i[name]
		got, exists := found[name]
		if !exists {
			say("%s is listed, and no process shows it", name)
			continue
		}
		if got.Type != want.Type {
			say("%s is a %s, not a %s", name, got.Type, want.Type)
		}
		if !slices.Equal(slices.Sorted(maps.Keys(got.Labels)), slices.Sorted(maps.Keys(want.Labels))) {
			say("%s has the labels %v, not %v", name, slices.Sorted(maps.Keys(got.Labels)), slices.Sorted(maps.Keys(want.Labels)))
			continue
		}
		for label, values := range want.Labels {
			isOpen := slices.Contains(open[name], label)
			for _, v := range got.Labels[label] {
				if !slices.Contains(values, v) {
					say("%s{%s=%q} is not listed", name, label, v)
				}
			}
			for _, v := range values {
				if !isOpen && !slices.Contains(got.Labels[label], v) {
					say("%s{%s=%q} is listed, and no process shows it", name, label, v)
				}
			}
		}
	}
	return list
}

// metricsAreListed holds deploy/observe/metrics.json to what the suite shows, once calls have been made.
func (s *suite) metricsAreListed(t *testing.T) {
	path := filepath.Join(hubtest.Root(t), "deploy", "observe", "metrics.json")
	listed := inventoryOfMetrics{}
	b, err := os.ReadFile(path)
	if err != nil || json.Unmarshal(b, &listed) != nil {
		t.Fatalf("%s cannot be read: %v", path, err)
	}
	s.call("get_brand", `{"brandId":1}`)
	s.call("execute_read_sql", `{"sql":"SELECT 1"}`)
	var wrong []string
	if *updateMetrics {
		hubtest.Eventually(t, "samples are there", func() bool { return len(s.scraped(t)["hub_sample_age_seconds"].Labels["sample"]) >= 4 })
		s.writeMetrics(t, path, listed)
	}
	defer func() {
		if len(wrong) > 0 {
			t.Logf(
				"go test ./services/e2e -run TestOperationsAreApart -update-metrics writes deploy/observe/metrics.json anew; wrong in it:\n  %s",
				strings.Join(wrong, "\n  "),
			)
		}
	}()
	hubtest.Eventually(t, "the metrics are those that are listed", func() bool {
		wrong = listed.differences(s.scraped(t))
		return len(wrong) == 0
	})
	// What is not there is found missing, whether a metric, a label or a value of it.
	for what, change := range map[string]func(inventoryOfMetrics){
		"hub_no_such_thing is listed, and no process shows it": func(i inventoryOfMetrics) {
			i["hub_no_such_thing"] = listedMetric{Type: "gauge"}
		},
		"hub_jobs_due is not listed": func(i inventoryOfMetrics) { delete(i, "hub_jobs_due") },
		`hub_jobs_due{queue="nobody"} is listed, and no process shows it`: func(i inventoryOfMetrics) {
			i["hub_jobs_due"].Labels["queue"] = append(slices.Clone(i["hub_jobs_due"].Labels["queue"]), "nobody")
		},
	} {
		lie := inventoryOfMetrics{}
		for name, m := range listed {
			m.Labels = maps.Clone(m.Labels)
			lie[name] = m
		}
		change(lie)
		if got := lie.differences(s.scraped(t)); !slices.Contains(got, what) {
			t.Errorf("%q is not found: %v", what, got)
		}
	}
}

// writeMetrics writes what the suite shows: what is ours, and of the rest what was listed. Values of open labels are kept.
func (s *suite) writeMetrics(t *testing.T, path string, listed inventoryOfMetrics) {
	t.Helper()
	for name, m := range s.scraped(t) {
		before, known := listed[name]
		if !known && !ours.MatchString(name) {
			continue
		}
		for _, label := range open[name] {
			for _, v := range before.Labels[label] {
				if !slices.Contains(m.Labels[label], v) {
					m.Labels[label] = append(m.Labels[label], v)
				}
			}
			slices.Sort(m.Labels[label])
		}
		listed[name] = m
	}
	b, err := json.MarshalIndent(listed, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(b, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}

// exemplars are the trace ids that a process shows with a histogram's buckets.
func (s *suite) exemplars(t testing.TB, name, histogram string) (traces []string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.ops[name]+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "application/openmetrics-text; version=1.0.0")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^`+histogram+
		`_bucket\{.*\} \d+ # \{.*trace_id="([0-9a-f]{32})"`).FindAllStringSubmatch(string(b), -1) {
		traces = append(traces, m[1])
	}
	return traces
}
