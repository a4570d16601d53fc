package policy

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hub.internal/pkg/hubtest"
)

// programs are read once.
var programs = sync.OnceValues(func() (Programs, error) { return Load(filepath.Join("..", "..")) })

func loaded(t testing.TB) Programs {
	t.Helper()
	p, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// at is a path below the root of the repository.
func at(t testing.TB, path ...string) string {
	t.Helper()
	return filepath.Join(append([]string{hubtest.Root(t)}, path...)...)
}

// overlays are rendered once; each use decodes them anew.
var overlays = map[string]func() ([][]byte, error){
	"local":      sync.OnceValues(func() ([][]byte, error) { return render(filepath.Join("..", "overlays", "local")) }),
	"production": sync.OnceValues(func() ([][]byte, error) { return render(filepath.Join("..", "overlays", "production")) }),
}

func overlay(t *testing.T, name string) *Manifests {
	t.Helper()
	texts, err := overlays[name]()
	if err != nil {
		t.Fatal(err)
	}
	m := &Manifests{}
	for _, text := range texts {
		if err := m.decode(text); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// judge renders a folder, strictly, and reports every rule that it breaks.
func judge(t *testing.T, folder string, production bool) *Manifests {
	t.Helper()
	m, err := Render(folder)
	if err != nil {
		t.Fatal(err)
	}
	held(t, m, production)
	return m
}

// ownRules are those for this repository's manifests beside Rules.
func ownRules() []Rule { return slices.Concat(podRules(), rolloutRules()) }

// ownOverlay is a folder that is judged beside those of the repository.
var ownOverlay = flag.String("folder", "", "judge this kustomize folder, for production, by all rules")

// TestOverlayOfYourOwn judges the folder that -folder names.
func TestOverlayOfYourOwn(t *testing.T) {
	if *ownOverlay == "" {
		t.Skip("-folder names no folder")
	}
	judge(t, *ownOverlay, true)
}

func held(t *testing.T, m *Manifests, production bool) {
	t.Helper()
	for _, v := range Check(m, loaded(t), production, ownRules()...) {
		t.Error(v)
	}
}

// TestServicesApplyAlone: each is whole, and there is one for each of the list.
func TestServicesApplyAlone(t *testing.T) {
	t.Parallel()
	for _, s := range loaded(t).Services {
		for _, folder := range []string{"services", "overlays/production"} {
			t.Run(folder+"/"+s.Name, func(t *testing.T) {
				t.Parallel()
				m := judge(t, at(t, "k8s", folder, s.Name), folder != "services")
				if len(m.Deployments) != 1 || m.Deployments[0].Name != s.Name || len(m.Services) != 1 || len(m.Budgets) != 1 ||
					len(m.Autoscalers) != 1 ||
					len(m.Accounts) != 1 || len(m.ConfigMaps) != 1 || len(m.Networks) != 2 ||
					len(m.Namespaces) != 0 {
					t.Errorf("%+v", m)
				}
			})
		}
	}
	folders, err := os.ReadDir(at(t, "k8s", "services"))
	if err != nil {
		t.Fatal(err)
	}
	if len(folders) != len(loaded(t).Services) {
		t.Errorf("k8s/services has %v", folders)
	}
}

func TestOverlays(t *testing.T) {
	t.Parallel()
	for name, production := range map[string]bool{"local": false, "production": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := overlay(t, name)
			held(t, m, production)
			if len(m.Deployments) != len(loaded(t).Services) || len(m.Namespaces) != 1 || (len(m.Routes) == 1) != production {
				t.Errorf("%d Deployments, %d namespaces, %d routes", len(m.Deployments), len(m.Namespaces), len(m.Routes))
			}
			if !production && len(m.StatefulSets) != 4 {
				t.Errorf("%d stores", len(m.StatefulSets))
			}
		})
	}
	judge(t, at(t, "k8s", "namespace"), false)
	copied, err := os.ReadFile(at(t, "k8s", "overlays", "local", "bootstrap.sql"))
	if err != nil {
		t.Fatal(err)
	}
	if original, err := os.ReadFile(at(t, "pkg", "postgres", "bootstrap.sql")); err != nil || string(copied) != string(original) {
		t.Errorf("k8s/overlays/local/bootstrap.sql is no copy of pkg/postgres/bootstrap.sql: %v", err)
	}
}

// with is an overlay of one service and components, in another namespace.
func with(t *testing.T, service string, components ...string) *Manifests {
	t.Helper()
	dir := t.TempDir()
	rel := func(path ...string) string {
		r, err := filepath.Rel(dir, at(t, path...))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	text := "namespace: another\nresources: [" + rel("k8s", "services", service) + "]\ncomponents:\n"
	for _, c := range components {
		text += "  - " + rel("k8s", "components", c) + "\n"
	}
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return judge(t, dir, slices.Contains(components, "production"))
}

// TestComponents fit every service, alone and together, in a namespace of another name.
func TestComponents(t *testing.T) {
	t.Parallel()
	for i, s := range loaded(t).Services {
		components := [][]string{{"consul"}, {"otel"}, {"consul", "otel", "production"}}[i%3]
		t.Run(s.Name+" "+strings.Join(components, " "), func(t *testing.T) {
			t.Parallel()
			m := with(t, s.Name, components...)
			r := &review{Manifests: m, programs: loaded(t)}
			d := m.Deployments[0]
			mode, _ := r.value(d, "HUB_DISCOVERY")
			exporter, _ := r.value(d, "OTEL_EXPORTER_OTLP_ENDPOINT")
			agents := endpoint{pod: map[string]string{"app": "consul"}, namespace: "consul"}
			collector := accessNamespace("monitoring")
			if has := slices.Contains(
				components,
				"consul",
			); (mode == "consul") != has || m.out(podOf(d), agents, tcp(agent)) != has ||
				m.in(agents, podOf(d), tcp(calls)) != has {
				t.Errorf("it looks for its neighbours in %s, and the agent is reached or reaches it otherwise", mode)
			}
			if has := slices.Contains(
				components,
				"otel",
			); (exporter != "") != has || m.out(podOf(d), collector, tcp(otlp)) != has ||
				len(d.Spec.Template.Annotations) > 0 {
				t.Errorf("it sends to %q, and is annotated with %v", exporter, d.Spec.Template.Annotations)
			}
			if d.Namespace != "another" {
				t.Errorf("it is in %s", d.Namespace)
			}
		})
	}
}

// TestMonitoring: what the operator is told fits the pods of every service, and lies in their namespace.
func TestMonitoring(t *testing.T) {
	t.Parallel()
	texts, err := render(at(t, "k8s", "monitoring"))
	if err != nil || len(texts) != 2 {
		t.Fatalf("%d objects, %v", len(texts), err)
	}
	m := overlay(t, "production")
	for _, text := range texts {
		if err := m.decode(text); err != nil {
			t.Fatal(err)
		}
		var monitor struct {
			Kind string
			Spec struct {
				Selector            metav1.LabelSelector
				PodMetricsEndpoints []struct{ Port string }
				Groups              []any
			}
		}
		if err := json.Unmarshal(text, &monitor); err != nil {
			t.Fatal(err)
		}
		if monitor.Kind == "PrometheusRule" {
			if len(monitor.Spec.Groups) < 5 {
				t.Errorf("%d groups of rules", len(monitor.Spec.Groups))
			}
			continue
		}
		for _, d := range m.Deployments {
			port := func(p corev1.ContainerPort) bool {
				return p.Name == monitor.Spec.PodMetricsEndpoints[0].Port && p.ContainerPort == operations
			}
			if !selects(&monitor.Spec.Selector, d.Spec.Template.Labels) || d.Spec.Template.Labels[nameLabel] != d.Name ||
				!slices.ContainsFunc(container(d, "service").Ports, port) {
				t.Errorf("%s is not scraped: %+v", d.Name, monitor)
			}
		}
	}
	if len(m.Others) != 2 || m.Others[0].Namespace != "hub" || m.Others[1].Kind != "PrometheusRule" {
		t.Errorf("%+v", m.Others)
	}
	held(t, m, true)
}

// TestJobsAreJudged as all that has pods.
func TestJobsAreJudged(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"Job": "apiVersion: batch/v1\nkind: Job\nmetadata: {name: backup}\nspec: {template: {spec: {hostNetwork: true}}}\n",
		"CronJob": "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: backup}\nspec: {jobTemplate: {spec: {template: {spec: " +
			"{hostNetwork: true}}}}}\n",
	} {
		m := overlay(t, "production")
		if err := m.Add([]byte(text)); err != nil {
			t.Fatal(err)
		}
		violations := Check(m, loaded(t), true)
		if !slices.ContainsFunc(violations, func(v Violation) bool {
			return strings.HasPrefix(v.Rule, "Pod Security") && strings.Contains(v.Text, name+" backup")
		}) {
			t.Errorf("%s: %v", name, violations)
		}
	}
}

func TestWhatTheAPIHasNotGotIsRefused(t *testing.T) {
	t.Parallel()
	for text, says := range map[string]string{
		"apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {clusterIp: None}\n":               "unknown field",
		"apiVersion: apps/v1\nkind: Deployment\nspec: {template: {spec: {readonly: true}}}\n":         "unknown field",
		"apiVersion: v1\nkind: Service\nspec: {type: ClusterIP, type: NodePort}\n":                    "already set",
		"apiVersion: v1\nkind: Service\nspec: {ports: [{port: http}]}\n":                              "cannot unmarshal",
		"apiVersion: apps/v1\nkind: DaemonSet\n":                                                      "no kind that the policy knows",
		"apiVersion: v1\nkind: Pod\n":                                                                 "no kind that the policy knows",
		"apiVersion: batch/v1\nkind: CronJob\nspec: {schedules: x}\n":                                 "unknown field",
		"apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingWebhookConfiguration\n":           "no kind that the policy knows",
		"apiVersion: apps/v1beta1\nkind: Deployment\n":                                                "no kind that the policy knows",
		"apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nspec: {hostname: a}\n":            "unknown field",
		"apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nspec: {egress: [{from: []}]}\n":       "unknown field",
		"apiVersion: policy/v1\nkind: PodDisruptionBudget\nspec: {maxUnavailables: 1}\n":              "unknown field",
		"apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nspec: {behaviour: {}}\n":          "unknown field",
		"apiVersion: v1\nkind: ServiceAccount\nautomountServiceAccountToken: perhaps\n":               "cannot unmarshal",
		"apiVersion: v1\nkind: Namespace\nmetadata: {name: a, label: {x: y}}\n":                       "unknown field",
		"apiVersion: apps/v1\nkind: StatefulSet\nspec: {template: {spec: {containers: {name: a}}}}\n": "cannot unmarshal",
	} {
		if err := new(Manifests).Add([]byte(text)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", text, err, says)
		}
	}
}

func TestDockerfile(t *testing.T) {
	t.Parallel()
	i := loaded(t).Image
	if fmt.Sprint(i.Ports) != "[8080 9090]" || i.Environment["HUB_ADDR"] != "0.0.0.0:8080" {
		t.Errorf("%+v", i)
	}
}
