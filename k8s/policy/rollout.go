package policy

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"hub.internal/pkg/inventory"
	"hub.internal/pkg/service"
)

// connections is the annotation of who reads the source: how many connections it may have there in all.
const connections = "hub.internal/source-connections"

// drainRules hold the ends of pods, and their number, to what the programs take and the source gives.
func drainRules() []Rule {
	return []Rule{
		{Name: "a pod has longer to stop than its program takes", broken: drained},
		{Name: "a pod has stopped before the next one is replaced", broken: apart},
		{Name: "calls in flight have as long as a statement may take", broken: finished},
		{Name: "readiness fails before the listener closes", broken: delayed},
		{Name: "all pods together have no more connections to the source than it gives", broken: pooled},
	}
}

// selects tells whether a selector is for the service's own pods and not for another's.
func (r *review) selects(s *metav1.LabelSelector, d *appsv1.Deployment) bool {
	if s == nil || len(s.MatchLabels)+len(s.MatchExpressions) == 0 || !selects(s, d.Spec.Template.Labels) {
		return false
	}
	return !slices.ContainsFunc(r.programs.Services, func(other inventory.Service) bool {
		return other.Name != d.Name && selects(s, podLabels(other.Name))
	})
}

// podLabels are those of the pods of a service.
func podLabels(service string) labels.Set { return labels.Set{nameLabel: service, partLabel: part} }

// duration is a setting's value or its default.
// What is no duration is a violation, and counts as none.
func (r *review) duration(d *appsv1.Deployment, name string) time.Duration {
	text, _ := r.value(d, name)
	got, err := time.ParseDuration(text)
	if err != nil {
		r.violated("%s: %s: %v", d.Name, name, err)
	}
	return got
}

// drained compares the grace period with how long the program may take to stop (service.Settings.StopsWithin).
func drained(r *review) {
	r.each(func(d *appsv1.Deployment, _ inventory.Service) {
		s := service.Settings{DrainDelay: r.duration(d, "HUB_DRAIN_DELAY"), DrainTimeout: r.duration(d, "HUB_DRAIN_TIMEOUT")}
		grace := d.Spec.Template.Spec.TerminationGracePeriodSeconds
		r.require(grace != nil && time.Duration(*grace)*time.Second > s.StopsWithin(), "%s: the program takes up to %s", d.Name, s.StopsWithin())
	})
}

// apart wants a new pod to be ready for as long as an old one may take to stop before another old one has to go: Kubernetes counts pods
// that drain nowhere, and each still has its connections.
func apart(r *review) {
	r.each(func(d *appsv1.Deployment, _ inventory.Service) {
		grace := d.Spec.Template.Spec.TerminationGracePeriodSeconds
		r.require(grace != nil && int64(d.Spec.MinReadySeconds) >= *grace, "%s: the next one goes after %d s", d.Name, d.Spec.MinReadySeconds)
	})
}

// finished compares the drain with what a call takes whose statement runs to its limit after the longest wait for its turn, and a second:
// where it runs, and at the edge, which waits for it. A folder without the service that runs it is held to that program's defaults.
func finished(r *review) {
	var longest time.Duration
	for _, s := range r.programs.Services {
		if !s.Has(inventory.Source) {
			continue
		}
		d := cmp.Or(named(r.Deployments, s.Name), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: s.Name}})
		text, _ := r.value(d, "MCP_QUERY_TIMEOUT_MS")
		limit, err := time.ParseDuration(text + "ms")
		r.require(err == nil, "%s: MCP_QUERY_TIMEOUT_MS is %q", s.Name, text)
		longest = max(longest, limit+r.duration(d, "HUB_SQL_WAIT")+time.Second)
	}
	r.each(func(d *appsv1.Deployment, s inventory.Service) {
		if s.Edge || s.Has(inventory.Source) {
			drain := r.duration(d, "HUB_DRAIN_TIMEOUT")
			r.require(drain >= longest, "%s: they have %s, and a statement takes up to %s", d.Name, drain, longest)
		}
	})
}

// delayed wants the listener to stay open until the failed readiness has been seen: else calls arrive at a closed
// port during each rollout.
func delayed(r *review) {
	r.eachServing(func(d *appsv1.Deployment, c *corev1.Container, _ inventory.Service) {
		if c.ReadinessProbe == nil {
			return // said elsewhere
		}
		unready := time.Duration(c.ReadinessProbe.PeriodSeconds*c.ReadinessProbe.FailureThreshold) * time.Second
		delay := r.duration(d, "HUB_DRAIN_DELAY")
		r.require(delay > unready, "%s: it is seen after %s, and the listener closes after %s", d.Name, unready, delay)
	})
}

// pooled counts as services/query/OPERATING.md does: the pool, one and a half times the statements, three, and those that the
// source has not ended yet. A rollout adds its surge, and the one that drains (apart).
// A source that gives fewer would refuse a pod in the middle of a rollout.
func pooled(r *review) {
	r.each(func(d *appsv1.Deployment, s inventory.Service) {
		if !s.Has(inventory.Source) {
			return
		}
		given, err := strconv.Atoi(d.Annotations[connections])
		h, u := named(r.Autoscalers, d.Name), d.Spec.Strategy.RollingUpdate
		if err != nil || h == nil || u == nil || u.MaxSurge == nil {
			r.violated("%s: %s is %q", d.Name, connections, d.Annotations[connections])
			return
		}
		number := func(name string) int {
			text, _ := r.value(d, name)
			n, err := strconv.Atoi(text)
			r.require(err == nil, "%s: %s is %q", d.Name, name, text)
			return n
		}
		statements := number("HUB_SQL_CONCURRENT")
		each := number("HUB_SOURCE_POOL") + statements*3/2 + 5 + statements
		pods := int(h.Spec.MaxReplicas) + u.MaxSurge.IntValue() + 1
		r.require(pods*each <= given, "%s: %d pods with %d connections each, and the source gives %d", d.Name, pods, each, given)
	})
}
