package policy

import (
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"

	"hub.internal/pkg/inventory"
)

const (
	// calm is how many seconds the autoscaler waits before it takes an instance away.
	calm = 300
	// least is how many instances production has of each service.
	least = 3
)

// rolloutRules are about how the services of this repository are replaced, scaled and spread.
func rolloutRules() []Rule {
	return []Rule{
		{Name: "a rollout takes no instance away before its successor is ready", broken: rolling},
		{Name: "a budget of one missing instance", broken: budgeted},
		{Name: "an autoscaler says how many there are, and is slow to take one away", broken: scaled},
		{Name: "pods spread over nodes and zones", broken: spread},
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
		r.require(b != nil && b.ScaleDown != nil && equals(b.ScaleDown.StabilizationWindowSeconds, calm), "%s: %+v", d.Name, b)
	})
}

func replicated(r *review) {
	r.each(func(d *appsv1.Deployment, _ inventory.Service) {
		h := named(r.Autoscalers, d.Name)
		r.require(h != nil && h.Spec.MinReplicas != nil && *h.Spec.MinReplicas >= least, "%s", d.Name)
	})
}

func spread(r *review) {
	r.each(func(d *appsv1.Deployment, _ inventory.Service) {
		for _, key := range []string{corev1.LabelHostname, corev1.LabelTopologyZone} {
			c := spreadOver(d, key)
			r.require(c != nil && c.MaxSkew == 1 && r.selects(c.LabelSelector, d), "%s over %s: %+v", d.Name, key, c)
			r.require(c == nil || equals(c.NodeTaintsPolicy, corev1.NodeInclusionPolicyHonor),
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
