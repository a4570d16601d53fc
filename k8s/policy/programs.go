package policy

import (
	"cmp"
	"net"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"hub.internal/pkg/discover"
	"hub.internal/pkg/inventory"
)

// Ports by name. SRV records are made of the first: pkg/discover asks for _http._tcp.
const (
	callsPort = "http"
	opsPort   = "ops"
)

// programRules hold the manifests to what the programs do: their commands, settings, ports and probes.
func programRules() []Rule {
	return []Rule{
		{Name: "a service serves, after it has migrated", broken: commands},
		{Name: "every variable is one that the program reads", broken: known},
		{Name: "every setting that the program requires is there", broken: required},
		{Name: "a service is told what it needs by deploy/services.json", broken: needed},
		{Name: "a variable is made of those before it", broken: expanded},
		{Name: "ports are those that the program and its image say", broken: ports},
		{Name: "probes ask what the program answers", broken: probes},
		{Name: "a service is found by its name", broken: found},
		{Name: "all name the same public address", broken: onePublicURL},
		{Name: "a route leads to the edge and to no other", broken: routed},
	}
}

// container is the one of that name, of those that start a pod or run in it; nil without one.
func container(d *appsv1.Deployment, name string) *corev1.Container {
	for _, c := range (workload{pod: &d.Spec.Template.Spec}).containers() {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// variable is one of a container's environment.
type variable struct {
	// A value that comes from elsewhere is empty here.
	name, value string
	// from is set when the value comes from the pod, a ConfigMap or a Secret.
	from *corev1.EnvVarSource
}

// environment is what a container has, the image's part included; a later one wins.
// The order is Kubernetes' own: the image, then envFrom, then env.
func (r *review) environment(c *corev1.Container) []variable {
	var all []variable
	set := func(v variable) {
		all = append(slices.DeleteFunc(all, func(o variable) bool { return o.name == v.name }), v)
	}
	for name, value := range r.programs.Image.Environment {
		set(variable{name: name, value: value})
	}
	for _, from := range c.EnvFrom {
		if from.ConfigMapRef == nil {
			continue // secretRules judge it
		}
		settings := named(r.ConfigMaps, from.ConfigMapRef.Name)
		if settings == nil {
			r.violated("container %s: there is no ConfigMap %s", c.Name, from.ConfigMapRef.Name)
			continue
		}
		for name, value := range settings.Data {
			set(variable{name: from.Prefix + name, value: value})
		}
	}
	for _, e := range c.Env {
		set(variable{name: e.Name, value: e.Value, from: e.ValueFrom})
	}
	return all
}

// value is what a service is told of a setting, or the program's default.
// told is false where it is the default.
func (r *review) value(d *appsv1.Deployment, name string) (value string, told bool) {
	if c := container(d, "service"); c != nil {
		for _, v := range r.environment(c) {
			if v.name == name {
				return v.value, true
			}
		}
	}
	s, _ := inventory.Find(r.programs.Settings[d.Name].Serve, name)
	return s.Default, false
}

// eachServing calls for the container of each service that serves; one without is a violation of another rule (commands).
func (r *review) eachServing(judge func(*appsv1.Deployment, *corev1.Container, inventory.Service)) {
	r.each(func(d *appsv1.Deployment, s inventory.Service) {
		if c := container(d, "service"); c != nil {
			judge(d, c, s)
		}
	})
}

// eachProgram calls for the two containers of each service, with what the command in it reads.
func (r *review) eachProgram(judge func(*appsv1.Deployment, *corev1.Container, []inventory.Setting)) {
	r.eachServing(func(d *appsv1.Deployment, c *corev1.Container, s inventory.Service) {
		judge(d, c, r.programs.Settings[s.Name].Serve)
	})
	r.each(func(d *appsv1.Deployment, s inventory.Service) {
		if c := container(d, "migrate"); c != nil {
			judge(d, c, r.programs.Settings[s.Name].Migrate)
		}
	})
}

// commands wants one container that serves, after an init container that migrates as the owner of the store. A
// sidecar would share the pod's secrets.
func commands(r *review) {
	r.each(func(d *appsv1.Deployment, _ inventory.Service) {
		pod := d.Spec.Template.Spec
		alone := func(list []corev1.Container, name, command string) bool {
			return len(list) == 1 && list[0].Name == name && slices.Equal(list[0].Args, []string{command}) && list[0].RestartPolicy == nil
		}
		r.require(alone(pod.InitContainers, "migrate", "migrate"), "%s starts with %v", d.Name, pod.InitContainers)
		r.require(alone(pod.Containers, "service", "serve"), "%s runs %v", d.Name, pod.Containers)
	})
}

// setting is the name of the setting that a variable is or points to.
func setting(name string) string { return strings.TrimSuffix(name, "_FILE") }

// known finds misspelt settings: a program ignores a variable that it does not know, and nothing else would tell.
func known(r *review) {
	r.eachProgram(func(d *appsv1.Deployment, c *corev1.Container, reads []inventory.Setting) {
		for _, v := range r.environment(c) {
			_, reads := inventory.Find(reads, setting(v.name))
			_, images := r.programs.Image.Environment[v.name]
			// Others' settings have names of their own; one of Hub's that is misspelt does nothing, and nobody says so.
			ours := strings.HasPrefix(v.name, "HUB_") || strings.HasPrefix(v.name, "MCP_")
			r.require(reads || images || !ours, "%s: container %s does not read %s", d.Name, c.Name, v.name)
		}
	})
}

// required finds settings without a default that a container is not told: its program would not start.
func required(r *review) {
	r.eachProgram(func(d *appsv1.Deployment, c *corev1.Container, reads []inventory.Setting) {
		has := r.environment(c)
		for _, s := range reads {
			told := slices.ContainsFunc(has, func(v variable) bool { return setting(v.name) == s.Name && (v.value != "" || v.from != nil) })
			r.require(!s.Required || told, "%s: container %s is not told %s", d.Name, c.Name, s.Name)
		}
	})
}

// alternatives are settings that say more in place of another: the source may be several servers.
var alternatives = map[string]string{"HUB_SOURCE_DSN": "HUB_SOURCE_DSNS"}

// needed compares the settings that stand for a need (inventory.SettingsOfNeeds) with deploy/services.json, in
// both directions: what a service is told beyond its needs, it could leak.
func needed(r *review) {
	r.eachServing(func(d *appsv1.Deployment, c *corev1.Container, s inventory.Service) {
		has := r.environment(c)
		for need, names := range inventory.SettingsOfNeeds() {
			for _, name := range names {
				told := slices.ContainsFunc(has, func(v variable) bool { return setting(v.name) == name || setting(v.name) == alternatives[name] })
				_, images := r.programs.Image.Environment[name] // each has the catalog
				r.require(told == s.Has(need) || told && images, "%s is told %s: %t; it needs %v", d.Name, name, told, s.Needs)
			}
		}
	})
}

// expanded wants $(NAME) to follow the variable that it names, else Kubernetes leaves the text as it is; and DNS
// names of the pod's own namespace.
func expanded(r *review) {
	r.eachContainer(func(w workload, c *corev1.Container) {
		known := map[string]bool{}
		for _, e := range c.Env {
			for rest := e.Value; ; {
				_, after, more := strings.Cut(rest, "$(")
				name, next, closed := strings.Cut(after, ")")
				if !more || !closed {
					break
				}
				r.require(known[name], "%s: container %s: %s needs %s, which is not before it", w, c.Name, e.Name, name)
				rest = next
			}
			known[e.Name] = true
		}
	})
	r.eachServing(func(d *appsv1.Deployment, c *corev1.Container, _ inventory.Service) {
		if mode, _ := r.value(d, "HUB_DISCOVERY"); mode != discover.DNS {
			return
		}
		domain, _ := r.value(d, "HUB_DNS_DOMAIN")
		fits := domain == d.Namespace+".svc.cluster.local"
		for _, e := range c.Env {
			if e.ValueFrom != nil && e.ValueFrom.FieldRef != nil && e.ValueFrom.FieldRef.FieldPath == "metadata.namespace" {
				fits = fits || domain == "$("+e.Name+").svc.cluster.local"
			}
		}
		r.require(fits, "%s looks for its neighbours in %s", d.Name, domain)
	})
}

// ports compares the container's ports with the addresses that the program listens at, and both with what the
// image exposes.
func ports(r *review) {
	r.eachServing(func(d *appsv1.Deployment, c *corev1.Container, _ inventory.Service) {
		want := map[string]string{callsPort: "HUB_ADDR", opsPort: "HUB_OPS_ADDR"}
		r.require(len(c.Ports) == len(want), "%s has %v", d.Name, c.Ports)
		for _, p := range c.Ports {
			addr, _ := r.value(d, want[p.Name])
			_, listens, err := net.SplitHostPort(addr)
			r.require(err == nil && listens == strconv.Itoa(int(p.ContainerPort)),
				"%s: port %s is %d, and it listens at %q", d.Name, p.Name, p.ContainerPort, addr)
			r.require(r.programs.Image.Environment[want[p.Name]] == addr && slices.Contains(r.programs.Image.Ports, listens),
				"%s: the image exposes %v and listens at %s", d.Name, r.programs.Image.Ports, r.programs.Image.Environment[want[p.Name]])
		}
	})
	r.require(r.programs.Image.User == "65532:65532" && r.programs.Image.Entrypoint == `["/service"]`, "the image: %+v", r.programs.Image)
}

// probes wants liveness to ask the path that says only whether the process lives: one that asked readiness would
// restart every pod when a store is away.
func probes(r *review) {
	r.eachServing(func(d *appsv1.Deployment, c *corev1.Container, _ inventory.Service) {
		asks := func(what string, p *corev1.Probe, path string, most int32) {
			if p == nil || p.HTTPGet == nil {
				r.violated("%s has no %s probe", d.Name, what)
				return
			}
			r.require(p.HTTPGet.Path == path && p.HTTPGet.Port == intstr.FromString(callsPort),
				"%s: %s asks %s at %s", d.Name, what, p.HTTPGet.Path, p.HTTPGet.Port.String())
			r.require(p.PeriodSeconds > 0 && p.PeriodSeconds <= most && p.FailureThreshold > 0,
				"%s: %s asks every %d s, %d times", d.Name, what, p.PeriodSeconds, p.FailureThreshold)
		}
		asks("start-up", c.StartupProbe, discover.AlivePath, 1)
		asks("liveness", c.LivenessProbe, discover.AlivePath, 10)
		asks("readiness", c.ReadinessProbe, discover.ReadyPath, 5)
		r.require(c.ReadinessProbe == nil || c.ReadinessProbe.TimeoutSeconds > 2, "%s: readiness is not waited for; its checks have 2 s", d.Name)
	})
}

// found wants a Service of the discovery name that selects the service's own pods. It is headless but for the
// edge, so that callers see instances and balance by themselves.
func found(r *review) {
	r.each(func(d *appsv1.Deployment, s inventory.Service) {
		r.require(d.Spec.Template.Labels[nameLabel] == d.Name && d.Spec.Template.Labels[partLabel] == part && r.selects(d.Spec.Selector, d),
			"%s: labels %v", d.Name, d.Spec.Template.Labels)
		service := named(r.Services, s.Name)
		if service == nil {
			r.violated("%s has no Service", s.Name)
			return
		}
		own := r.selects(&metav1.LabelSelector{MatchLabels: service.Spec.Selector}, d)
		r.require(own, "%s: its Service selects %v", s.Name, service.Spec.Selector)
		// One address in front of the edge; of the others each instance is found.
		address := corev1.ClusterIPNone
		if s.Edge {
			address = ""
		}
		r.require(service.Spec.ClusterIP == address && cmp.Or(service.Spec.Type, corev1.ServiceTypeClusterIP) == corev1.ServiceTypeClusterIP,
			"%s: %s %q", s.Name, service.Spec.Type, service.Spec.ClusterIP)
		r.require(!service.Spec.PublishNotReadyAddresses, "%s is found before it is ready", s.Name)
		r.require(len(service.Spec.Ports) == 1 && called(service.Spec.Ports[0]), "%s: ports %+v", s.Name, service.Spec.Ports)
	})
}

// called tells whether calls come by this port, and SRV records are made of it.
func called(p corev1.ServicePort) bool {
	return p.Name == callsPort && p.TargetPort == intstr.FromString(callsPort) && cmp.Or(p.Protocol, corev1.ProtocolTCP) == corev1.ProtocolTCP
}

// onePublicURL compares HUB_PUBLIC_URL between services: links in mails and at the log-in have to lead to one
// place.
func onePublicURL(r *review) {
	told := map[string][]string{}
	r.each(func(d *appsv1.Deployment, _ inventory.Service) {
		if url, ok := r.value(d, "HUB_PUBLIC_URL"); ok {
			told[url] = append(told[url], d.Name)
		}
	})
	r.require(len(told) < 2, "%v", told)
}

// routed wants each backend of a route to be the edge at its port for calls.
func routed(r *review) {
	for _, route := range r.Routes {
		for _, rule := range route.Spec.Rules {
			for _, b := range rule.BackendRefs {
				s := named(r.Services, string(b.Name))
				service, err := r.programs.Services.Find(string(b.Name))
				leads := err == nil && service.Edge && (b.Kind == nil || *b.Kind == "Service") && b.Port != nil &&
					(s == nil || s.Spec.Ports[0].Port == *b.Port)
				r.require(leads, "%s leads to %s", route.Name, b.Name)
			}
		}
	}
}
