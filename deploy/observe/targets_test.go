package observe_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"
	"github.com/prometheus/prometheus/storage"
	"go.yaml.in/yaml/v3"
)

// discovery is a way in which Prometheus finds Hub's processes.
type discovery struct {
	// found are the targets that it finds of one process, before they are relabelled.
	found func(service, instance string) []labels.Labels
	rules []*relabel.Config
}

// scrapeJob is the job hub of a configuration of Prometheus: the names whose addresses it looks up, and its rules.
func scrapeJob(t *testing.T, file string) (names []string, rules []*relabel.Config) {
	t.Helper()
	var config struct {
		ScrapeConfigs []struct {
			JobName        string            `yaml:"job_name"`
			RelabelConfigs []*relabel.Config `yaml:"relabel_configs"`
			DNS            []struct {
				Names []string
				Type  string
				Port  int
			} `yaml:"dns_sd_configs"`
		} `yaml:"scrape_configs"`
	}
	if err := yaml.Unmarshal([]byte(read(t, file)), &config); err != nil {
		t.Fatal(err)
	}
	if len(config.ScrapeConfigs) != 1 || config.ScrapeConfigs[0].JobName != "hub" {
		t.Fatalf("%s: %+v", file, config)
	}
	job := config.ScrapeConfigs[0]
	for _, c := range job.DNS {
		if c.Type != "A" || c.Port != 9090 {
			t.Errorf("%s: %+v", file, c)
		}
		names = append(names, c.Names...)
	}
	return names, job.RelabelConfigs
}

// podMonitor are the rules of k8s/monitoring, behind those that the operator puts before them.
func podMonitor(t *testing.T) []*relabel.Config {
	t.Helper()
	var monitor struct {
		Spec struct {
			Selector struct {
				MatchLabels map[string]string `yaml:"matchLabels"`
			}
			PodMetricsEndpoints []struct {
				Port        string
				Relabelings []struct {
					SourceLabels model.LabelNames `yaml:"sourceLabels"`
					TargetLabel  string           `yaml:"targetLabel"`
					Replacement  *string
					Action       relabel.Action
				}
			} `yaml:"podMetricsEndpoints"`
		}
	}
	if err := yaml.Unmarshal(
		[]byte(read(t, "../../k8s/monitoring/pods.yaml")),
		&monitor,
	); err != nil ||
		len(monitor.Spec.PodMetricsEndpoints) != 1 {
		t.Fatalf("%v %+v", err, monitor)
	}
	rule := func(action relabel.Action, regex, target, replacement string, sources ...model.LabelName) *relabel.Config {
		c := relabel.DefaultRelabelConfig
		c.Action, c.Regex, c.TargetLabel, c.Replacement, c.SourceLabels = action, relabel.MustNewRegexp(regex), target, replacement, sources
		return &c
	}
	var rules []*relabel.Config
	for name, value := range monitor.Spec.Selector.MatchLabels {
		rules = append(
			rules,
			rule(
				relabel.Keep,
				value,
				"",
				"",
				model.LabelName("__meta_kubernetes_pod_label_"+strings.NewReplacer(".", "_", "/", "_", "-", "_").Replace(name)),
			),
		)
	}
	endpoint := monitor.Spec.PodMetricsEndpoints[0]
	rules = append(
		rules,
		rule(relabel.Keep, endpoint.Port, "", "", "__meta_kubernetes_pod_container_port_name"),
		rule(relabel.Drop, "(Failed|Succeeded)", "", "", "__meta_kubernetes_pod_phase"),
		rule(
			relabel.Replace,
			"(.*)",
			"namespace",
			"$1",
			"__meta_kubernetes_namespace",
		),
		rule(relabel.Replace, "(.*)", "container", "$1", "__meta_kubernetes_pod_container_name"),
		rule(
			relabel.Replace,
			"(.*)",
			"pod",
			"$1",
			"__meta_kubernetes_pod_name",
		),
		rule(relabel.Replace, "(.*)", "job", "hub/hub"),
		rule(relabel.Replace, "(.*)", "endpoint", endpoint.Port),
	)
	for _, r := range endpoint.Relabelings {
		replacement := "$1"
		if r.Replacement != nil {
			replacement = *r.Replacement
		}
		rules = append(rules, rule(cmp.Or(r.Action, relabel.Replace), "(.*)", r.TargetLabel, replacement, r.SourceLabels...))
	}
	return rules
}

// pod is what Kubernetes' discovery says of a pod of a service: a target for each of its ports.
func pod(service, instance string) (found []labels.Labels) {
	number := 7
	for _, c := range instance {
		number = (number*31 + int(c)) % 250
	}
	for name, port := range map[string]int{"http": 8080, "ops": 9090} {
		found = append(found, labels.FromStrings(
			"__address__",
			fmt.Sprintf("10.244.1.%d:%d", number, port),
			"__meta_kubernetes_namespace",
			"hub",
			"__meta_kubernetes_pod_name",
			service+"-6d4cf56db6-"+instance,
			"__meta_kubernetes_pod_label_app_kubernetes_io_name",
			service,
			"__meta_kubernetes_pod_label_app_kubernetes_io_part_of",
			"hub",
			"__meta_kubernetes_pod_phase",
			"Running",
			"__meta_kubernetes_pod_container_name",
			"service",
			"__meta_kubernetes_pod_container_port_name",
			name,
			"__meta_kubernetes_pod_container_port_number",
			fmt.Sprint(port),
		))
	}
	return found
}

// containers is the discovery that finds the processes of a service at each address that its name has.
const containers = "containers"

// container is what Prometheus' discovery by DNS says of one.
func container(service, instance string) []labels.Labels {
	return []labels.Labels{labels.FromStrings("__address__", "172.18.0."+fmt.Sprint(instance[0])+":9090",
		"__meta_dns_name", service, "__meta_dns_srv_record_target", "", "__meta_dns_srv_record_port", "")}
}

func discoveries(t *testing.T) map[string]discovery {
	t.Helper()
	_, named := scrapeJob(t, "../prometheus/prometheus.yml")
	_, plain := scrapeJob(t, "../prometheus/kubernetes.yml")
	all := map[string]discovery{
		containers:     {container, named},
		"the operator": {pod, podMonitor(t)},
		"pods":         {pod, plain},
	}
	for what, d := range all {
		for _, r := range d.rules {
			if err := r.Validate(model.LegacyValidation); err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
	return all
}

// targets are the labels of what is scraped of a process, as Prometheus makes them.
func (d discovery) targets(service, instance string) (list []labels.Labels) {
	for _, one := range d.found(service, instance) {
		b := labels.NewBuilder(one)
		b.Set("job", "hub") // the job's name, where no rule sets another
		if !relabel.ProcessBuilder(b, d.rules...) {
			continue
		}
		b.Set("instance", b.Get("__address__"))
		b.Range(func(l labels.Label) {
			if strings.HasPrefix(l.Name, "__") {
				b.Del(l.Name)
			}
		})
		list = append(list, b.Labels())
	}
	return list
}

// scraped is the world where its processes are found in this way: what a program shows keeps its labels, and those of its target are
// this discovery's.
func (d discovery) scraped(t *testing.T, w *world) *world {
	t.Helper()
	other := &world{end: w.end}
	for _, s := range w.series {
		if job := s.Lset.Get("job"); job != "" && job != "hub" {
			other.series = append(other.series, s)
			continue
		}
		targets := d.targets(cmp.Or(s.Lset.Get("service"), "gateway"), cmp.Or(s.Lset.Get("instance"), "a"))
		if len(targets) != 1 {
			t.Fatalf("%s is scraped as %v", s.Lset, targets)
		}
		b := labels.NewBuilder(s.Lset).Del("job", "service", "instance")
		targets[0].Range(func(l labels.Label) { b.Set(l.Name, l.Value) })
		other.series = append(other.series, &storage.SeriesEntry{Lset: b.Labels(), SampleIteratorFn: s.SampleIteratorFn})
	}
	return other
}

// TestTargets: however a process is found, it is scraped once, and alerts and dashboards know its job and its service.
func TestTargets(t *testing.T) {
	names, _ := scrapeJob(t, "../prometheus/prometheus.yml")
	for what, d := range discoveries(t) {
		for _, service := range targetLabels["service"] {
			got := d.targets(service, "a")
			if len(got) != 1 || got[0].Get("service") != service || got[0].Get("job") != "hub" ||
				!strings.HasSuffix(got[0].Get("instance"), ":9090") {
				t.Errorf("%s of %s: %v", what, service, got)
			}
			if !slices.Contains(names, service) {
				t.Errorf("%s is none of %v", service, names)
			}
			if b := d.targets(service, "b"); len(b) != 1 || len(got) == 1 && b[0].Get("instance") == got[0].Get("instance") {
				t.Errorf("%s: a second process of %s is %v", what, service, b)
			}
		}
		// What stands beside Hub in its namespace, and what has ended, is none of it.
		for label, value := range map[string]string{"__meta_kubernetes_pod_label_app_kubernetes_io_part_of": "other",
			"__meta_kubernetes_pod_phase": "Failed"} {
			beside := d
			beside.found = func(service, instance string) (list []labels.Labels) {
				for _, one := range pod(service, instance) {
					list = append(list, labels.NewBuilder(one).Set(label, value).Labels())
				}
				return list
			}
			if got := beside.targets("gateway", "a"); len(got) > 0 && what != containers {
				t.Errorf("%s: %v", what, got)
			}
		}
	}
}

// TestAlertsFireHoweverTargetsAreFound: what fires and what stays quiet in a scene does so with the labels that each discovery gives.
func TestAlertsFireHoweverTargetsAreFound(t *testing.T) {
	e := newEvaluator(t)
	for what, d := range discoveries(t) {
		for name, s := range scenes() {
			step := cmp.Or(s.step, time.Minute)
			if firing := e.firing(t, name, d.scraped(t, newWorld(t, step, s.fires...))); len(firing) != 1 {
				t.Errorf("%s: %s fires %d times: %v", what, name, len(firing), firing)
			}
			for scene, series := range s.quiet {
				if firing := e.firing(t, name, d.scraped(t, newWorld(t, step, series...))); len(firing) > 0 {
					t.Errorf("%s: %s fires: %v with %s", what, name, firing, scene)
				}
			}
		}
	}
}

// TestNoTargetIsDown: a service without a target is down, and so are all where Prometheus finds pods in some other way.
func TestNoTargetIsDown(t *testing.T) {
	e := newEvaluator(t)
	up := func(job string, without ...string) *world {
		var series []string
		for _, service := range targetLabels["service"] {
			if !slices.Contains(without, service) {
				series = append(series, gauge(fmt.Sprintf(`up{job=%q,service=%q,instance="a"}`, job, service), 1, 5))
			}
		}
		return newWorld(t, time.Minute, series...)
	}
	for _, service := range targetLabels["service"] {
		if firing := e.firing(t, "HubServiceDown", up("hub", service)); !slices.Equal(firing, []string{`{service="` + service + `"}`}) {
			t.Errorf("without %s: %v", service, firing)
		}
	}
	if firing := e.firing(t, "HubServiceDown", up("hub")); len(firing) > 0 {
		t.Errorf("all are there: %v", firing)
	}
	if firing := e.firing(t, "HubServiceDown", up("kubernetes-pods")); len(firing) != len(targetLabels["service"]) {
		t.Errorf("none is found as Hub's: %v", firing)
	}
}

// TestWhoIsTold: the example for Alertmanager routes and inhibits by alerts that there are.
func TestWhoIsTold(t *testing.T) {
	type route struct {
		Receiver string
		Matchers []string
		Routes   []route
	}
	var config struct {
		Route        route
		Receivers    []struct{ Name string }
		InhibitRules []struct {
			Source []string `yaml:"source_matchers"`
			Target []string `yaml:"target_matchers"`
		} `yaml:"inhibit_rules"`
	}
	if err := yaml.Unmarshal([]byte(read(t, "../prometheus/alertmanager.yml")), &config); err != nil {
		t.Fatal(err)
	}
	e := newEvaluator(t)
	named := func(matchers []string) {
		for _, m := range matchers {
			for _, name := range strings.FieldsFunc(m, func(r rune) bool { return strings.ContainsRune(`=~"|`, r) })[1:] {
				if _, there := e.alerts[name]; !there && strings.HasPrefix(m, "alertname") ||
					strings.HasPrefix(m, "severity") && name != "page" {
					t.Errorf("%s: there is no %s", m, name)
				}
			}
		}
	}
	for _, r := range append(config.Route.Routes, config.Route) {
		named(r.Matchers)
		if !slices.ContainsFunc(config.Receivers, func(one struct{ Name string }) bool { return one.Name == r.Receiver }) {
			t.Errorf("there is no receiver %q", r.Receiver)
		}
	}
	for _, r := range config.InhibitRules {
		named(r.Source)
		named(r.Target)
	}
	if len(config.Route.Routes) != 2 || len(config.InhibitRules) == 0 {
		t.Errorf("%+v", config)
	}
}

// silences tells whether the example for Alertmanager silences an alert while another fires, as Alertmanager decides: labels that are
// to be equal are when neither has them.
func silences(t *testing.T, source, target labels.Labels) bool {
	t.Helper()
	var config struct {
		InhibitRules []struct {
			Source []string `yaml:"source_matchers"`
			Target []string `yaml:"target_matchers"`
			Equal  []string
		} `yaml:"inhibit_rules"`
	}
	if err := yaml.Unmarshal([]byte(read(t, "../prometheus/alertmanager.yml")), &config); err != nil {
		t.Fatal(err)
	}
	match := func(matchers []string, l labels.Labels) bool {
		all, err := language.ParseMetricSelector("{" + strings.Join(matchers, ",") + "}")
		if err != nil {
			t.Fatal(err)
		}
		return !slices.ContainsFunc(all, func(m *labels.Matcher) bool { return !m.Matches(l.Get(m.Name)) })
	}
	for _, r := range config.InhibitRules {
		if match(r.Source, source) && match(r.Target, target) &&
			!slices.ContainsFunc(r.Equal, func(name string) bool { return source.Get(name) != target.Get(name) }) {
			return true
		}
	}
	return false
}

// TestACauseSilencesWhatItExplains, and nothing else that happens at that time.
func TestACauseSilencesWhatItExplains(t *testing.T) {
	e := newEvaluator(t)
	// sent is an alert as Alertmanager gets it: with the labels of its rule. It has the labels of one that fires.
	sent := func(text string) labels.Labels {
		t.Helper()
		l, err := language.ParseMetric(text)
		if err != nil {
			t.Fatal(err)
		}
		name := l.Get(model.MetricNameLabel)
		b := labels.NewBuilder(l).Del(model.MetricNameLabel)
		firing, err := language.ParseMetric(e.firing(t, name, newWorld(t, cmp.Or(scenes()[name].step, time.Minute), scenes()[name].fires...))[0])
		if err != nil || !slices.Equal(slices.Sorted(maps.Keys(firing.Map())), slices.Sorted(maps.Keys(b.Labels().Map()))) {
			t.Errorf("%s fires with the labels %s: %v", name, firing, err)
		}
		for label, value := range e.alerts[name].Labels {
			l.Range(func(of labels.Label) { value = strings.ReplaceAll(value, "{{ $labels."+of.Name+" }}", of.Value) })
			b.Set(label, value)
		}
		return b.Set("alertname", name).Labels()
	}
	for _, tt := range []struct {
		source, target string
		silenced       bool
	}{
		{`HubServiceDown{service="query"}`, `HubInstanceDown{job="hub",service="query",instance="a"}`, true},
		{`HubServiceDown{service="query"}`, `HubInstanceDown{job="hub",service="auth",instance="a"}`, false},
		{`HubServiceDown{service="query"}`, `HubRestarts{job="hub",service="query",instance="a"}`, true},
		{`HubServiceDown{service="query"}`, `HubNeighbourOut{dependency="query"}`, true},
		{`HubServiceDown{service="admin"}`, `HubNeighbourOut{dependency="query"}`, false},
		{`HubServiceDown{service="query"}`, `HubNeighbourErrors{service="gateway",dependency="query"}`, true},
		{`HubServiceDown{service="admin"}`, `HubNeighbourErrors{service="gateway",dependency="query"}`, false},
		{`HubServiceDown{service="admin"}`, `HubEdgeErrorsFast`, false},
		{`HubServiceDown{service="gateway"}`, `HubEdgeErrorsSlow`, false},
		{`HubWriteStoreErrors{service="admin"}`, `HubEdgeErrorsFast`, false},
		{`HubWriteStoreErrors{service="auth"}`, `HubAuditDropped{service="auth"}`, true},
		{`HubWriteStoreErrors{service="auth"}`, `HubAuditDropped{service="gateway"}`, false},
		{`HubWriteStoreErrors{service="auth"}`, `HubAuditBacklog{service="auth",instance="a",bulkhead="audit"}`, true},
		{`HubWriteStoreErrors{service="auth"}`, `HubSamplesStale{service="auth",sample="jobs"}`, true},
		{`HubWriteStoreErrors{service="auth"}`, `HubSamplesStale{service="payments",sample="jobs"}`, false},
		{`HubWriteStoreErrors{service="query"}`, `HubPoolWaits{service="query",instance="a",pool="write store"}`, true},
		{`HubWriteStoreErrors{service="query"}`, `HubPoolWaits{service="query",instance="a",pool="source"}`, false},
		{`HubWriteStoreErrors{service="auth"}`, `HubNeighbourErrors{service="gateway",dependency="auth"}`, true},
		{`HubWriteStoreErrors{service="auth"}`, `HubNeighbourErrors{service="auth",dependency="query"}`, false},
	} {
		if got := silences(t, sent(tt.source), sent(tt.target)); got != tt.silenced {
			t.Errorf("while %s fires, %s is silenced: %t", tt.source, tt.target, got)
		}
	}
}
