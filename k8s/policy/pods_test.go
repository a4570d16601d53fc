package policy

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"hub.internal/pkg/inventory"
)

// user is the one that Hub's images name.
const user = 65532

// podRules are about the pods of this repository: what every service has from k8s/components/service.
func podRules() []Rule {
	return []Rule{
		{Name: "the namespace enforces restricted", broken: enforced},
		{Name: "a service runs as 65532, its volumes are that group's", broken: asUser},
		{Name: "the root file system is read-only", broken: readOnlyRoot},
		{Name: "no token of the API server", broken: noToken},
		{Name: "a service has an account of its own", broken: ownAccount},
		{Name: "/tmp and every emptyDir has a size", broken: sizedScratch},
		{Name: "memory limit is the request, CPU is requested and has no limit", broken: resources},
		{Name: "an image has a version, or comes from this machine", broken: versioned},
		{Name: "a service runs its own image, which no shell enters", broken: ownImage},
	}
}

func enforced(r *review) {
	for _, n := range r.Namespaces {
		for _, mode := range []string{"enforce", "audit", "warn"} {
			level := n.Labels["pod-security.kubernetes.io/"+mode]
			r.require(level == "restricted", "namespace %s: %s is %q", n.Name, mode, level)
		}
	}
}

func asUser(r *review) {
	r.each(func(d *appsv1.Deployment, _ inventory.Service) {
		c := d.Spec.Template.Spec.SecurityContext
		r.require(c != nil && equals(c.RunAsUser, user) && equals(c.RunAsGroup, user) && equals(c.FSGroup, user), "%s: %+v", d.Name, c)
		for _, container := range (workload{pod: &d.Spec.Template.Spec}).containers() {
			s := container.SecurityContext
			r.require(s == nil || s.RunAsUser == nil && s.RunAsGroup == nil, "%s: container %s has a user of its own", d.Name, container.Name)
		}
	})
}

func readOnlyRoot(r *review) {
	r.eachContainer(func(w workload, c *corev1.Container) {
		r.require(c.SecurityContext != nil && equals(c.SecurityContext.ReadOnlyRootFilesystem, true), "%s: container %s", w, c.Name)
	})
}

func noToken(r *review) {
	for _, w := range r.workloads() {
		r.require(equals(w.pod.AutomountServiceAccountToken, false), "%s mounts one", w)
		for _, v := range w.pod.Volumes {
			if v.Projected != nil {
				for _, source := range v.Projected.Sources {
					r.require(source.ServiceAccountToken == nil, "%s: volume %s is one", w, v.Name)
				}
			}
		}
	}
	for _, a := range r.Accounts {
		r.require(equals(a.AutomountServiceAccountToken, false), "account %s gives one", a.Name)
	}
}

func ownAccount(r *review) {
	r.each(func(d *appsv1.Deployment, _ inventory.Service) {
		name := d.Spec.Template.Spec.ServiceAccountName
		r.require(name == d.Name && named(r.Accounts, d.Name) != nil, "%s runs as %q", d.Name, name)
	})
}

func sizedScratch(r *review) {
	for _, w := range r.workloads() {
		for _, v := range w.pod.Volumes {
			r.require(v.EmptyDir == nil || v.EmptyDir.SizeLimit != nil && v.EmptyDir.SizeLimit.Sign() > 0, "%s: volume %s has none", w, v.Name)
		}
	}
	r.each(func(d *appsv1.Deployment, _ inventory.Service) {
		w := workload{pod: &d.Spec.Template.Spec}
		for _, c := range w.containers() {
			mounted := slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool {
				empty := func(v corev1.Volume) bool { return v.Name == m.Name && v.EmptyDir != nil }
				return m.MountPath == "/tmp" && slices.ContainsFunc(w.pod.Volumes, empty)
			})
			r.require(mounted, "%s: container %s has no /tmp", d.Name, c.Name)
		}
	})
}

func resources(r *review) {
	r.eachContainer(func(w workload, c *corev1.Container) {
		requests, limits := c.Resources.Requests, c.Resources.Limits
		r.require(requests.Cpu().Sign() > 0 && limits.Cpu().IsZero(),
			"%s: container %s requests CPU %s, up to %s", w, c.Name, requests.Cpu(), limits.Cpu())
		r.require(requests.Memory().Sign() > 0 && requests.Memory().Equal(*limits.Memory()),
			"%s: container %s requests memory %s, up to %s", w, c.Name, requests.Memory(), limits.Memory())
	})
}

// split parts an image's name from its version, a tag or a digest.
func split(image string) (name, version string) {
	if name, digest, ok := strings.Cut(image, "@"); ok {
		return name, digest
	}
	if i := strings.LastIndex(image, ":"); i > strings.LastIndex(image, "/") {
		return image[:i], image[i+1:]
	}
	return image, ""
}

func versioned(r *review) {
	r.eachContainer(func(w workload, c *corev1.Container) {
		_, version := split(c.Image)
		here := c.ImagePullPolicy == corev1.PullNever && !r.production
		moves := version == "latest" || version == inventory.Development
		r.require(version != "" && (!moves || here), "%s: container %s runs %s, pulled %s", w, c.Name, c.Image, c.ImagePullPolicy)
	})
}

func ownImage(r *review) {
	r.each(func(d *appsv1.Deployment, s inventory.Service) {
		for _, c := range (workload{pod: &d.Spec.Template.Spec}).containers() {
			name, _ := split(c.Image)
			r.require(name == "hub/"+s.Name || strings.HasSuffix(name, "/hub/"+s.Name), "%s: container %s runs %s", d.Name, c.Name, c.Image)
			r.require(c.ImagePullPolicy != corev1.PullNever || c.Image == s.Image(inventory.Development),
				"%s: container %s runs %s, and what `make image` makes is %s", d.Name, c.Name, c.Image, s.Image(inventory.Development))
			r.require(c.Image == d.Spec.Template.Spec.Containers[0].Image, "%s: its containers run different versions", d.Name)
			r.require(len(c.Command) == 0 && c.Lifecycle == nil, "%s: container %s has a command or a hook", d.Name, c.Name)
		}
	})
}
