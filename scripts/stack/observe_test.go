package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hub.internal/pkg/inventory"
)

func observed(t *testing.T, observers map[string]string) environment {
	t.Helper()
	all, err := inventory.Load(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	e := testEnvironment(nil)
	e.services, e.observers = all, observers
	if err := e.state.choosePorts(portNames(e), func(int) bool { return true }); err != nil {
		t.Fatal(err)
	}
	return e
}

// TestPrometheusScrapesThisStack: the file of production, with the addresses of this stack.
func TestPrometheusScrapesThisStack(t *testing.T) {
	e := observed(t, map[string]string{prometheus: "/bin/prometheus"})
	b, err := os.ReadFile(filepath.Join("..", "..", "deploy", "prometheus", "prometheus.yml"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := localScrapes(e, string(b))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range e.services {
		if want := `{ targets: ["` + e.state.addr(
			s.Name+"-ops",
		) + `"], labels: { service: ` + s.Name + ` } }`; !strings.Contains(
			got,
			want,
		) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
	if !strings.Contains(got, `rule_files: ["/repo/deploy/prometheus/rules/*.yml"]`) || strings.Contains(got, "dns_sd_configs") ||
		strings.Contains(got, "relabel") ||
		!strings.Contains(got, "scrape_interval: 15s") {
		t.Errorf("%s", got)
	}
	if _, err := localScrapes(e, strings.Replace(string(b), "names: [gateway,", "names: [edge,", 1)); err == nil {
		t.Error("targets that are no services are taken")
	}
}

// TestObserversKeepToThisMachine: each listens on the loopback address, and services send where the collector is.
func TestObserversKeepToThisMachine(t *testing.T) {
	e := observed(t, map[string]string{otelcol: "/bin/o", jaeger: "/bin/j", prometheus: "/bin/p"})
	var names []string
	for _, s := range observerSpecs(e) {
		names = append(names, s.Name)
		for _, a := range append(slices.Clone(s.Args), s.Env...) {
			if _, addr, found := strings.Cut(
				a,
				"=",
			); found && (strings.Contains(a, "host-port") || strings.Contains(a, "listen-address") || strings.Contains(a, "_ADDR=")) &&
				!strings.HasPrefix(addr, "127.0.0.1:") {
				t.Errorf("%s: %s", s.Name, a)
			}
		}
		if s.Layer != layerServers {
			t.Errorf("%s stops before what it watches", s.Name)
		}
	}
	if want := []string{otelcol, jaeger, prometheus}; !slices.Equal(names, want) {
		t.Errorf("%v run", names)
	}
	if got, want := e.settings(e.services[0])["OTEL_EXPORTER_OTLP_ENDPOINT"], "http://"+e.state.addr(otelcol+"-http"); got != want {
		t.Errorf("services send to %q, not to %q", got, want)
	}
	none := observed(t, nil)
	if specs, endpoint := observerSpecs(
		none,
	), none.settings(none.services[0])["OTEL_EXPORTER_OTLP_ENDPOINT"]; len(specs) > 0 ||
		endpoint != "" {
		t.Errorf("without them %v run, and services send to %q", specs, endpoint)
	}
}
