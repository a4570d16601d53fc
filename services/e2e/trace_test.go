package e2e_test

import (
	"slices"
	"strings"
	"testing"

	"hub.internal/pkg/hubtest"
)

// TestOneTraceFromAgentToDatabase: gateway → call of query → query's tool → MySQL, in one
// trace that continues the agent's own.
func TestOneTraceFromAgentToDatabase(t *testing.T) {
	collector := hubtest.OTLP(t)
	s := start(t, options{env: []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + collector.URL, "OTEL_BSP_SCHEDULE_DELAY=50"}})
	const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	for tool, input := range map[string]string{"get_brand": `{"brandId":1}`, "execute_read_sql": `{"sql":"SELECT 1"}`} {
		t.Run(tool, func(t *testing.T) {
			parent := "00f067aa0ba902b" + map[string]string{"get_brand": "1", "execute_read_sql": "2"}[tool]
			if r := s.call(tool, input, "traceparent", "00-"+trace+"-"+parent+"-01"); r.status != 200 {
				t.Fatal(r.raw)
			}
			path := []struct{ service, name, kind string }{
				{
					"hub-gateway",
					"gateway " + tool,
					"server",
				},
				{"hub-gateway", "query", "client"},
				{"hub-query", tool, "server"},
				{"hub-query", "mysql", "client"},
			}
			var missing string
			spans := collector.WaitFor(t, func(spans []hubtest.Span) bool {
				at := parent
				for _, step := range path {
					next := ""
					for _, span := range spans {
						if span.TraceID == trace && span.ParentID == at && span.Service == step.service &&
							strings.HasPrefix(span.Name, step.name) &&
							span.Kind == step.kind {
							next = span.SpanID
						}
					}
					if missing = step.service + " " + step.name; next == "" {
						return false
					}
					at = next
				}
				return true
			})
			if t.Failed() {
				t.Logf("missing %s in\n%s", missing, hubtest.Tree(spans))
			}
		})
	}
	// A dashboard leads from a slow call to its trace.
	if traces := s.exemplars(t, "query", "hub_call_duration_seconds"); !slices.Contains(traces, trace) {
		t.Errorf("the exemplars of query's calls are of %v, not of %s", traces, trace)
	}
}
