package policy

import (
	"cmp"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/pod-security-admission/api"
	podsecurity "k8s.io/pod-security-admission/policy"

	"hub.internal/pkg/inventory"
)

// Programs are what the manifests have to agree with.
type Programs struct {
	// Services are those of deploy/services.json, Settings what each one's program reads, and Image what
	// deploy/Dockerfile says.
	Services inventory.Inventory
	Settings map[string]inventory.Settings
	Image    Image
}

// Load reads the list of services, what each of their programs reads, and what their image says, of the repository at root.
func Load(root string) (Programs, error) {
	var p Programs
	var err error
	if p.Services, err = inventory.Load(root); err != nil {
		return p, err
	}
	p.Settings = map[string]inventory.Settings{}
	for _, s := range p.Services {
		if p.Settings[s.Name], err = inventory.SettingsOf(root, s); err != nil {
			return p, err
		}
	}
	p.Image, err = loadImage(root)
	return p, err
}

// Rule is something that has to be so. To add one, write a function that calls require with what
// has to hold and a text that names the object, list it in the file that it is about, and add to
// broken_test.go what somebody might do to the manifests that it finds: TestEveryRuleCanBreak
// fails for a rule that nothing breaks. A rule that follows from deploy/services.json or from a
// program belongs here; one about the manifests of this repository alone is a test.
type Rule struct {
	// Name says what, in a few words.
	Name string
	// Production says that only a folder for production is held to it.
	Production bool
	broken     func(*review)
}

// Violation is where a rule is broken.
type Violation struct {
	// The rule's name, and what breaks it: the object and what is wrong.
	Rule, Text string
}

// String is one line: the rule, and what breaks it.
func (v Violation) String() string { return v.Rule + ": " + v.Text }

// Rules are what ties manifests to deploy/services.json, to the settings that each program reads and to its image; and Pod Security.
// Whatever else this repository's own manifests are held to is in the tests.
func Rules() []Rule {
	return slices.Concat([]Rule{{Name: "Pod Security restricted, by its own evaluator", broken: restricted}},
		drainRules(), programRules(), secretRules(), networkRules())
}

// Check holds manifests to Rules and to further ones, and to those for production where it is one.
// Violations come sorted, and each once.
func Check(m *Manifests, p Programs, production bool, further ...Rule) []Violation {
	r := &review{Manifests: m, programs: p, production: production}
	for _, rule := range slices.Concat(Rules(), further) {
		if rule.Production && !production {
			continue
		}
		r.rule = rule.Name
		rule.broken(r)
	}
	slices.SortFunc(r.violations, func(a, b Violation) int { return cmp.Or(cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Text, b.Text)) })
	return slices.Compact(r.violations)
}

// review is manifests under judgement.
type review struct {
	*Manifests
	programs   Programs
	production bool
	rule       string
	violations []Violation
}

// violated reports a violation of the rule that is judged at the moment.
func (r *review) violated(format string, args ...any) {
	r.violations = append(r.violations, Violation{r.rule, fmt.Sprintf(format, args...)})
}

// require reports unless it is so.
func (r *review) require(so bool, format string, args ...any) {
	if !so {
		r.violated(format, args...)
	}
}

// each calls for each of Hub's services that is there.
// A Deployment that is none of Hub's services is a violation.
func (r *review) each(judge func(*appsv1.Deployment, inventory.Service)) {
	for _, d := range r.Deployments {
		s, err := r.programs.Services.Find(d.Name)
		if err != nil {
			r.violated("Deployment %s is no service of %s", d.Name, inventory.File)
			continue
		}
		judge(d, s)
	}
}

// restricted has Pod Security's own evaluator judge each pod at the level restricted of its newest version, as the
// API server does where a namespace enforces it.
func restricted(r *review) {
	evaluator, err := podsecurity.NewEvaluator(podsecurity.DefaultChecks(), nil)
	if err != nil {
		r.violated("%v", err)
		return
	}
	level := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	for _, w := range r.workloads() {
		result := podsecurity.AggregateCheckResults(evaluator.EvaluatePod(level, &w.meta, w.pod))
		r.require(result.Allowed, "%s: %s", w, result.ForbiddenDetail())
	}
}

// eachContainer calls for each container, of Hub's services and of what stands beside them.
func (r *review) eachContainer(judge func(workload, *corev1.Container)) {
	for _, w := range r.workloads() {
		for _, c := range w.containers() {
			judge(w, c)
		}
	}
}

// equals tells whether an optional field is there and has the value.
func equals[T comparable](p *T, want T) bool { return p != nil && *p == want }
