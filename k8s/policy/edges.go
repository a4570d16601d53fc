package policy

import (
	"net/netip"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"hub.internal/pkg/discover"
	"hub.internal/pkg/inventory"
)

const (
	// The ports: of a service for calls and for operations, of a collector's OTLP over HTTP, of a Consul agent, and of
	// the Internet.
	calls      = 8080
	operations = 9090
	otlp       = 4318
	agent      = 8500
	https      = 443
)

// stores are the ports at which a need is met. No other service has a rule that opens one.
func stores() map[string][]int32 {
	return map[string][]int32{inventory.Store: {5432}, inventory.Source: {3306}, inventory.Redis: {6379},
		inventory.Mail: {1025, 465, 587}, inventory.Provider: {https}}
}

// networkRules hold the network policies to who calls whom and to what each service needs. They are judged by
// simulation: a connection is tried against all policies together, as the network plugin does, so that a policy
// which a component or an overlay adds counts too.
func networkRules() []Rule {
	return []Rule{
		{Name: "what no policy names gets nothing and reaches nothing", broken: deniedByDefault},
		{Name: "services reach those that they call, and no other", broken: edges},
		{Name: "only what is in front of Hub reaches the edge", broken: edgeIngress},
		{Name: "only monitoring reaches the port for operations", broken: monitored},
		{Name: "names are asked for in the cluster's DNS", broken: dns},
		{Name: "egress is to ports that the service needs", broken: egress},
		{Name: "only payments reaches the Internet, and no private network by that", broken: internet},
		{Name: "stores are reached by those that need them", broken: stored},
	}
}

// deniedByDefault wants a policy of each direction for every pod, because a pod that no policy selects may do
// anything, and a namespace whose own policy denies all to pods that come later.
func deniedByDefault(r *review) {
	both := []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress}
	for _, w := range r.workloads() {
		for _, n := range r.namespacesOf(w) {
			for _, direction := range both {
				r.require(len(r.selected(endpoint{pod: w.meta.Labels, namespace: n}, direction)) > 0, "%s: %s", w, direction)
			}
		}
	}
	for _, n := range r.Namespaces {
		everybody := slices.ContainsFunc(r.Networks, func(p *networkingv1.NetworkPolicy) bool {
			all := len(p.Spec.PodSelector.MatchLabels)+len(p.Spec.PodSelector.MatchExpressions) == 0
			return all && p.Namespace == n.Name && len(p.Spec.Ingress)+len(p.Spec.Egress) == 0 && slices.Equal(p.Spec.PolicyTypes, both)
		})
		r.require(everybody, "namespace %s denies nothing by itself", n.Name)
	}
}

// namespacesOf are the namespaces that a workload's pods run in; none for jobs, which only the namespace's own
// policy binds.
func (r *review) namespacesOf(w workload) []string {
	for _, d := range r.Deployments {
		if w.kind == "Deployment" && d.Name == w.name {
			return []string{d.Namespace}
		}
	}
	if s := named(r.StatefulSets, w.name); s != nil {
		return []string{s.Namespace}
	}
	return nil
}

// edges judges each side by itself: a service may be applied without the others.
func edges(r *review) {
	r.each(func(d *appsv1.Deployment, s inventory.Service) {
		self := podOf(d)
		for _, o := range r.programs.Services {
			other := endpoint{pod: podLabels(o.Name), namespace: d.Namespace}
			// Port 1 stands for all others.
			for _, at := range []port{tcp(calls), tcp(operations), tcp(1)} {
				want := at.number == calls && slices.Contains(s.Calls, o.Name)
				r.require(r.out(self, other, at) == want, "%s to %s at %d: %t", s.Name, o.Name, at.number, !want)
				want = at.number == calls && slices.Contains(o.Calls, s.Name)
				r.require(r.in(other, self, at) == want, "%s from %s at %d: %t", s.Name, o.Name, at.number, !want)
			}
		}
	})
}

// outsiders are pods that nobody has invited: in Hub's namespace, with its labels elsewhere, and anywhere.
func outsiders(namespace string) []endpoint {
	return []endpoint{
		{pod: labels.Set{nameLabel: "stranger"}, namespace: namespace},
		// A policy that goes by the name alone would let this in.
		{pod: labels.Set{nameLabel: "gateway"}, namespace: namespace}, // the name alone
		{pod: podLabels("gateway"), namespace: "elsewhere"},
		{pod: labels.Set{}, namespace: "elsewhere"},
		{addr: netip.MustParseAddr("203.0.113.7")},
		{addr: netip.MustParseAddr("10.0.0.7")},
	}
}

// accessNamespace is one of the namespaces that the platform team gives a label.
func accessNamespace(access string) endpoint {
	return endpoint{pod: labels.Set{}, namespace: access, access: access}
}

// edgeIngress lets the ingress controller's namespace reach the edge alone, and outsiders reach no service's port
// for calls.
func edgeIngress(r *review) {
	r.each(func(d *appsv1.Deployment, s inventory.Service) {
		self := podOf(d)
		r.require(r.in(accessNamespace("ingress"), self, tcp(calls)) == s.Edge, "%s from the ingress: %t", s.Name, !s.Edge)
		for _, from := range outsiders(d.Namespace) {
			r.require(!r.in(from, self, tcp(calls)), "%s from %+v", s.Name, from)
		}
	})
}

// monitored opens the port for metrics and profiles to the monitoring namespace, and to nobody else: profiles show
// what a process holds.
func monitored(r *review) {
	r.each(func(d *appsv1.Deployment, s inventory.Service) {
		self := podOf(d)
		r.require(r.in(accessNamespace("monitoring"), self, tcp(operations)), "%s is not watched", s.Name)
		r.require(!r.in(accessNamespace("monitoring"), self, tcp(calls)), "%s takes calls from who watches it", s.Name)
		for _, from := range append(outsiders(d.Namespace), accessNamespace("ingress")) {
			r.require(!r.in(from, self, tcp(operations)), "%s from %+v", s.Name, from)
		}
	})
}

// dns lets every service ask the cluster's DNS over UDP and TCP, and no other server: a name is a way to carry
// data out.
func dns(r *review) {
	r.each(func(d *appsv1.Deployment, s inventory.Service) {
		server := endpoint{pod: labels.Set{"k8s-app": "kube-dns"}, namespace: "kube-system"}
		for _, protocol := range []corev1.Protocol{corev1.ProtocolUDP, corev1.ProtocolTCP} {
			r.require(r.out(podOf(d), server, port{53, protocol}), "%s has no DNS over %s", s.Name, protocol)
			for _, to := range outsiders(d.Namespace) {
				r.require(!r.out(podOf(d), to, port{53, protocol}), "%s asks %+v for names", s.Name, to)
			}
		}
	})
}

// egress looks at the rules themselves: a port that is opened to anybody at all has to be a need.
func egress(r *review) {
	r.each(func(d *appsv1.Deployment, s inventory.Service) {
		may := []int32{53}
		if len(s.Calls) > 0 {
			may = append(may, calls)
		}
		if endpoint, _ := r.value(d, "OTEL_EXPORTER_OTLP_ENDPOINT"); endpoint != "" {
			may = append(may, otlp)
		}
		if mode, _ := r.value(d, "HUB_DISCOVERY"); mode == discover.Consul {
			may = append(may, agent)
		}
		var opened []int32
		for _, p := range r.selected(podOf(d), networkingv1.PolicyTypeEgress) {
			for _, rule := range p.Spec.Egress {
				r.require(len(rule.To) > 0 && len(rule.Ports) > 0, "%s: %s opens all", s.Name, p.Name)
				for _, to := range rule.Ports {
					if to.Port == nil || to.Port.Type != intstr.Int || to.EndPort != nil {
						r.violated("%s: %s opens more than a number", s.Name, p.Name)
						continue
					}
					opened = append(opened, to.Port.IntVal)
				}
			}
		}
		for need, ports := range stores() {
			if !s.Has(need) {
				continue
			}
			may = append(may, ports...)
			open := slices.ContainsFunc(ports, func(p int32) bool { return slices.Contains(opened, p) })
			r.require(open, "%s needs %s, and no policy opens %v", s.Name, need, ports)
		}
		for _, number := range opened {
			r.require(slices.Contains(may, number), "%s reaches port %d", s.Name, number)
		}
	})
}

// internet lets the service with the payment provider reach public addresses at 443, and no other. Private, link-
// local and metadata addresses stay closed to it, so that a receiver's address that leads there leads nowhere.
func internet(r *review) {
	r.each(func(d *appsv1.Deployment, s inventory.Service) {
		reach := func(addr string, at port) bool { return r.out(podOf(d), endpoint{addr: netip.MustParseAddr(addr)}, at) }
		for _, addr := range []string{"8.8.8.8", "203.0.114.1", "2606:4700::1"} {
			r.require(reach(addr, tcp(https)) == s.Has(inventory.Provider), "%s to %s", s.Name, addr)
			for _, at := range []port{tcp(80), tcp(22), {https, corev1.ProtocolUDP}} {
				r.require(!reach(addr, at), "%s to %s at %v", s.Name, addr, at)
			}
		}
		// One of each network that is not public: private, link-local with the metadata of clouds, shared, loopback,
		// multicast, and IPv4 in IPv6.
		for _, addr := range []string{"10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "169.254.169.254", "100.64.0.1", "127.0.0.1",
			"0.0.0.0", "224.0.0.1", "255.255.255.255", "::1", "fe80::1", "fd00:ec2::254", "::ffff:10.0.0.1", "ff02::1"} {
			r.require(!reach(addr, tcp(https)), "%s to %s", s.Name, addr)
		}
	})
}

// stored judges the stores' own side, where they are among the manifests.
// A store is known by the port that its container opens.
func stored(r *review) {
	for _, store := range r.StatefulSets {
		var need string
		var at int32
		for n, ports := range stores() {
			for _, c := range store.Spec.Template.Spec.Containers {
				for _, p := range c.Ports {
					if slices.Contains(ports, p.ContainerPort) {
						need, at = n, p.ContainerPort
					}
				}
			}
		}
		if need == "" {
			r.violated("%s is a store that nobody needs", store.Name)
			continue
		}
		self := endpoint{pod: store.Spec.Template.Labels, namespace: store.Namespace}
		for _, s := range r.programs.Services {
			from := endpoint{pod: podLabels(s.Name), namespace: store.Namespace}
			r.require(r.in(from, self, tcp(at)) == s.Has(need) && r.out(from, self, tcp(at)) == s.Has(need), "%s from %s", store.Name, s.Name)
		}
		for _, from := range outsiders(store.Namespace) {
			r.require(!r.in(from, self, tcp(at)), "%s from %+v", store.Name, from)
			r.require(!r.out(self, from, tcp(https)), "%s to %+v", store.Name, from)
		}
	}
}
