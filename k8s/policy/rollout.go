package policy

import (
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"hub.internal/pkg/inventory"
	"hub.internal/pkg/service"
)

const (
	// calm is how many seconds the autoscaler waits before it takes an instance away.
	calm = 300
	// least is how many instances production has of each service.
	least = 3
	// connections is the annotation of who reads the source: how many connections it may have there in all.
	connections = "hub.internal/source-connections"
)

func rolloutRules() []Rule {
	return []Rule{
		{Name: "a rollout takes no instance away before its successor is ready", broken: rolling},
		{Name: "a budget of one missing instance", broken: budgeted},
		{Name: "an autoscaler says how many there are, and is slow to take one away", broken: scaled},
		{Name: "a pod has longer to stop than its program takes", broken: drained},
		{Name: "readiness fails before the listener closes", broken: delayed},
		{Name: "pods spread over nodes and zones", broken: spread},
		{Name: "all pods together have no more connections to the source than it gives", broken: pooled},
		{Name: "three or more of each", Production: true, broken: replicated},
		{Name: "nodes have evenly many, at any cost", Production: true, broken: even},
	}
}

func rolling(r *review) {
	r.each(func(d *appsv1.Deployment, _ inventory.Service) {
		u := d.Spec.Strategy.RollingUpdate
		rolls := d.Spec.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType && u != nil && u.MaxUnavailable != nil && u.MaxSurge != nil
		r.require(rolls && u.MaxUnavailable.String() == "0" && u.MaxSurge.String() != "0", "%s: %+v", d.Name, d.Spec.Strategy)
	})
}

// selects tells whether a selector is for the service's own pods and not for another's.
func (r *review) selects(s *metav1.LabelSelector, d *appsv1.Deployment) bool {
	if s == nil {
		return false
	}
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil || selector.Empty() || !selector.Matches(labels.Set(d.Spec.Template.Labels)) {
		return false
	}
	for _, other := range r.programs.Services {
		if other.Name != d.Name && selector.Matches(podLabels(other.Name)) {
			return false
		}
	}
	return true
}

// podLabels are those of the pods of a service.
func podLabels(service string) labels.Set { return labels.Set{nameLabel: service, partLabel: part} }

func budgeted(r *review) {
	r.each(func(d *appsv1.Deployment, _ inventory.Service) {
		b := named(r.Budgets, d.Name)
		r.require(b != nil && b.Spec.MaxUnavailable != nil && b.Spec.MaxUnavailable.String() == "1" && b.Spec.MinAvailable == nil &&
			r.selects(b.Spec.Selector, d), "%s: %+v", d.Name, b)
	})
}

func scaled(r *review) {
	r.each(func(d *appsv1.Deployment, _ inventory.Service) {
		r.require(d.Spec.Replicas == nil, "%s: each apply would set the replicas back", d.Name)
		h := named(r.Autoscalers, d.Name)
		if h == nil {
			r.violated("%s has none", d.Name)
			return
		}
		target := autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: d.Name}
		r.require(h.Spec.ScaleTargetRef == target, "%s scales %+v", d.Name, h.Spec.ScaleTargetRef)
		r.require(h.Spec.MinReplicas != nil && *h.Spec.MinReplicas > 0 && h.Spec.MaxReplicas > *h.Spec.MinReplicas && len(h.Spec.Metrics) > 0,
			"%s: %+v", d.Name, h.Spec)
		b := h.Spec.Behavior
		r.require(b != nil && b.ScaleDown != nil && is(b.ScaleDown.StabilizationWindowSeconds, calm), "%s: %+v", d.Name, b)
	})
}

func replicated(r *review) {
	r.each(func(d *appsv1.Deployment, _ inventory.Service) {
		h := named(r.Autoscalers, d.Name)
		r.require(h != nil && h.Spec.MinReplicas != nil && *h.Spec.MinReplicas >= least, "%s", d.Name)
	})
}

// duration is a setting's value or its default.
func (r *review) duration(d *appsv1.Deployment, name string) time.Duration {
	text, _ := r.value(d, name)
	got, err := time.ParseDuration(text)
	if err != nil {
		r.violated("%s: %s: %v", d.Name, name, err)
	}
	return got
}

func drained(r *review) {
	r.each(func(d *appsv1.Deployment, _ inventory.Service) {
		s := service.Settings{DrainDelay: r.duration(d, "HUB_DRAIN_DELAY"), DrainTimeout: r.duration(d, "HUB_DRAIN_TIMEOUT")}
		grace := d.Spec.Template.Spec.TerminationGracePeriodSeconds
		r.require(grace != nil && time.Duration(*grace)*time.Second > s.StopsWithin(), "%s: the program takes up to %s", d.Name, s.StopsWithin())
	})
}

func delayed(r *review) {
	r.each(func(d *appsv1.Deployment, _ inventory.Service) {
		c := container(d, "service")
		if c == nil || c.ReadinessProbe == nil {
			return // said elsewhere
		}
		unready := time.Duration(c.ReadinessProbe.PeriodSeconds*c.ReadinessProbe.FailureThreshold) * time.Second
		delay := r.duration(d, "HUB_DRAIN_DELAY")
		r.require(delay > unready, "%s: it is seen after %s, and the listener closes after %s", d.Name, unready, delay)
	})
}

func spread(r *review) {
	r.each(func(d *appsv1.Deployment, _ inventory.Service) {
		for _, key := range []string{corev1.LabelHostname, corev1.LabelTopologyZone} {
			c := spreadOver(d, key)
			r.require(c != nil && c.MaxSkew == 1 && r.selects(c.LabelSelector, d), "%s over %s: %+v", d.Name, key, c)
			r.require(c == nil || is(c.NodeTaintsPolicy, corev1.NodeInclusionPolicyHonor),
				"%s over %s counts nodes that its pods may not run on: set nodeTaintsPolicy: Honor", d.Name, key)
		}
	})
}

func spreadOver(d *appsv1.Deployment, key string) *corev1.TopologySpreadConstraint {
	for i, c := range d.Spec.Template.Spec.TopologySpreadConstraints {
		if c.TopologyKey == key {
			return &d.Spec.Template.Spec.TopologySpreadConstraints[i]
		}
	}
	return nil
}

func even(r *review) {
	r.each(func(d *appsv1.Deployment, _ inventory.Service) {
		c := spreadOver(d, corev1.LabelHostname)
		r.require(c != nil && c.WhenUnsatisfiable == corev1.DoNotSchedule, "%s: %+v", d.Name, c)
	})
}

// pooled counts as services/query/OPERATING.md does: the pool, one and a half times the statements, three, and those that the
// source has not ended yet. A rollout adds its surge.
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
		each := number("HUB_SOURCE_POOL") + statements*3/2 + 3 + statements
		pods := int(h.Spec.MaxReplicas) + u.MaxSurge.IntValue()
		r.require(pods*each <= given, "%s: %d pods with %d connections each, and the source gives %d", d.Name, pods, each, given)
	})
}
