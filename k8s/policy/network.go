package policy

// This is what a network plugin does with NetworkPolicies, as far as Hub's use them: policies of a direction add up, a
// pod that none selects may do anything, and a connection needs both ends to agree.

import (
	"net/netip"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// endpoint is one end of a connection: a pod, or an address outside of the cluster.
type endpoint struct {
	// The labels of the pod, nil for an address.
	pod labels.Set
	// namespace is the pod's, its labels included.
	namespace string
	access    string // of the namespace: accessLabel
	addr      netip.Addr
}

// namespaceLabels are those that a namespaceSelector sees: the name, which Kubernetes sets itself, and who may
// come in.
func (e endpoint) namespaceLabels() labels.Set {
	set := labels.Set{corev1.LabelMetadataName: e.namespace}
	if e.access != "" {
		set[accessLabel] = e.access
	}
	return set
}

// port is where a connection goes.
type port struct {
	number   int32
	protocol corev1.Protocol
}

// tcp is a TCP port.
func tcp(number int32) port { return port{number, corev1.ProtocolTCP} }

// selected are the policies of a direction that bind a pod; whom none binds may do anything.
func (m *Manifests) selected(e endpoint, direction networkingv1.PolicyType) []*networkingv1.NetworkPolicy {
	var all []*networkingv1.NetworkPolicy
	for _, p := range m.Networks {
		if p.Namespace == e.namespace && slices.Contains(p.Spec.PolicyTypes, direction) && selects(&p.Spec.PodSelector, e.pod) {
			all = append(all, p)
		}
	}
	return all
}

// selects tells whether a selector is for something with these labels. One that is not valid selects nothing: the
// server refuses it.
func selects(s *metav1.LabelSelector, set labels.Set) bool {
	if s != nil && len(s.MatchExpressions) == 0 { // nearly all: to judge their labels each time would be most of a check's work
		return labels.SelectorFromValidatedSet(s.MatchLabels).Matches(set)
	}
	selector, err := metav1.LabelSelectorAsSelector(s)
	return err == nil && selector.Matches(set)
}

// out tells whether the policies let a pod's connection to the other end leave.
func (m *Manifests) out(from, to endpoint, at port) bool {
	policies := m.selected(from, networkingv1.PolicyTypeEgress)
	return len(policies) == 0 || slices.ContainsFunc(policies, func(p *networkingv1.NetworkPolicy) bool {
		return slices.ContainsFunc(p.Spec.Egress, func(r networkingv1.NetworkPolicyEgressRule) bool {
			return opens(r.Ports, at) && reaches(r.To, p.Namespace, to)
		})
	})
}

// in tells whether the policies let a connection from the other end reach a pod.
func (m *Manifests) in(from, to endpoint, at port) bool {
	policies := m.selected(to, networkingv1.PolicyTypeIngress)
	return len(policies) == 0 || slices.ContainsFunc(policies, func(p *networkingv1.NetworkPolicy) bool {
		return slices.ContainsFunc(p.Spec.Ingress, func(r networkingv1.NetworkPolicyIngressRule) bool {
			return opens(r.Ports, at) && reaches(r.From, p.Namespace, from)
		})
	})
}

// opens: a rule without ports opens all.
func opens(ports []networkingv1.NetworkPolicyPort, at port) bool {
	return len(ports) == 0 || slices.ContainsFunc(ports, func(p networkingv1.NetworkPolicyPort) bool {
		protocol := corev1.ProtocolTCP
		if p.Protocol != nil {
			protocol = *p.Protocol
		}
		if protocol != at.protocol {
			return false
		}
		last := p.EndPort
		if p.Port == nil || p.Port.Type == intstr.String { // a name may be any
			return true
		}
		return p.Port.IntVal == at.number || last != nil && p.Port.IntVal <= at.number && at.number <= *last
	})
}

// reaches: a rule without peers is for all.
func reaches(peers []networkingv1.NetworkPolicyPeer, namespace string, e endpoint) bool {
	return len(peers) == 0 || slices.ContainsFunc(peers, func(p networkingv1.NetworkPolicyPeer) bool {
		if p.IPBlock != nil {
			return e.addr.IsValid() && within(p.IPBlock, e.addr)
		}
		if e.addr.IsValid() {
			return false
		}
		there := e.namespace == namespace
		if p.NamespaceSelector != nil {
			there = selects(p.NamespaceSelector, e.namespaceLabels())
		}
		return there && (p.PodSelector == nil || selects(p.PodSelector, e.pod))
	})
}

// within tells whether an address lies in a block and in none of its exceptions.
// An exception that is no network excepts nothing; the server refuses it.
func within(b *networkingv1.IPBlock, addr netip.Addr) bool {
	contains := func(cidr string) bool {
		prefix, err := netip.ParsePrefix(cidr)
		return err == nil && prefix.Contains(addr)
	}
	return contains(b.CIDR) && !slices.ContainsFunc(b.Except, contains)
}

// podOf is a pod of a Deployment.
func podOf(d *appsv1.Deployment) endpoint {
	return endpoint{pod: d.Spec.Template.Labels, namespace: d.Namespace}
}
