package policy

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// broken is what somebody might do to the manifests, and the rule that says so.
type broken struct {
	rule  string
	local bool // it is about the stores of the overlay local; otherwise production is broken
	do    func(*Manifests)
}

func query(m *Manifests) *corev1.PodSpec     { return &named(m.Deployments, "query").Spec.Template.Spec }
func serving(m *Manifests) *corev1.Container { return &query(m).Containers[0] }
func migrating(m *Manifests) *corev1.Container {
	return &query(m).InitContainers[0]
}

// told sets a variable of the query service.
func told(m *Manifests, name, value string) {
	c := serving(m)
	c.Env = append(slices.DeleteFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == name }), corev1.EnvVar{Name: name, Value: value})
}

func rule(m *Manifests, policy string) *networkingv1.NetworkPolicySpec {
	return &named(m.Networks, policy).Spec
}

func egressTo(cidr string, number int32) networkingv1.NetworkPolicyEgressRule {
	return networkingv1.NetworkPolicyEgressRule{To: []networkingv1.NetworkPolicyPeer{{IPBlock: &networkingv1.IPBlock{CIDR: cidr}}},
		Ports: []networkingv1.NetworkPolicyPort{{Port: new(intstr.FromInt32(number))}}}
}

func mutations() map[string]broken {
	return map[string]broken{
		"privileged": {rule: "Pod Security restricted", do: func(m *Manifests) { serving(m).SecurityContext.Privileged = new(true) }},
		"root":       {rule: "Pod Security restricted", do: func(m *Manifests) { query(m).SecurityContext.RunAsNonRoot = nil }},
		"escalation": {
			rule: "Pod Security restricted",
			do:   func(m *Manifests) { migrating(m).SecurityContext.AllowPrivilegeEscalation = nil },
		},
		"no seccomp":   {rule: "Pod Security restricted", do: func(m *Manifests) { query(m).SecurityContext.SeccompProfile = nil }},
		"host network": {rule: "Pod Security restricted", do: func(m *Manifests) { query(m).HostNetwork = true }},
		"host path": {rule: "Pod Security restricted", do: func(m *Manifests) {
			query(m).Volumes[0].VolumeSource = corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}
		}},
		"a store as root": {
			rule:  "Pod Security restricted",
			local: true,
			do:    func(m *Manifests) { m.StatefulSets[0].Spec.Template.Spec.SecurityContext.RunAsUser = new(int64(0)) },
		},
		"namespace enforces less": {
			rule: "the namespace enforces",
			do:   func(m *Manifests) { m.Namespaces[0].Labels["pod-security.kubernetes.io/enforce"] = "baseline" },
		},
		"another user": {
			rule: "a service runs as 65532",
			do:   func(m *Manifests) { query(m).SecurityContext.RunAsUser = new(int64(1000)) },
		},
		"a container's own user": {
			rule: "a service runs as 65532",
			do:   func(m *Manifests) { serving(m).SecurityContext.RunAsUser = new(int64(1000)) },
		},
		"no group of volumes": {rule: "a service runs as 65532", do: func(m *Manifests) { query(m).SecurityContext.FSGroup = nil }},
		"writable root": {
			rule: "the root file system",
			do:   func(m *Manifests) { serving(m).SecurityContext.ReadOnlyRootFilesystem = nil },
		},
		"a store's writable root": {rule: "the root file system", local: true, do: func(m *Manifests) {
			m.StatefulSets[1].Spec.Template.Spec.Containers[0].SecurityContext.ReadOnlyRootFilesystem = new(false)
		}},
		"a capability": {rule: "Pod Security restricted", do: func(m *Manifests) {
			serving(m).SecurityContext.Capabilities.Add = []corev1.Capability{"SYS_TIME"}
		}},
		"capabilities kept": {rule: "Pod Security restricted", do: func(m *Manifests) { migrating(m).SecurityContext.Capabilities = nil }},
		"a token":           {rule: "no token", do: func(m *Manifests) { query(m).AutomountServiceAccountToken = nil }},
		"a projected token": {rule: "no token", do: func(m *Manifests) {
			query(m).Volumes[1].Projected.Sources[0] = corev1.VolumeProjection{
				ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "t"},
			}
		}},
		"an account with a token": {rule: "no token", do: func(m *Manifests) { m.Accounts[0].AutomountServiceAccountToken = nil }},
		"another's account": {
			rule: "a service has an account",
			do:   func(m *Manifests) { query(m).ServiceAccountName = "payments" },
		},
		"endless scratch": {
			rule: "/tmp and every emptyDir",
			do:   func(m *Manifests) { query(m).Volumes[0].EmptyDir.SizeLimit = nil },
		},
		"no scratch": {
			rule: "/tmp and every emptyDir",
			do:   func(m *Manifests) { serving(m).VolumeMounts = serving(m).VolumeMounts[1:] },
		},
		"memory beyond the request": {
			rule: "memory limit is the request",
			do:   func(m *Manifests) { serving(m).Resources.Limits[corev1.ResourceMemory] = resource.MustParse("1Gi") },
		},
		"no memory limit": {rule: "memory limit is the request", do: func(m *Manifests) { migrating(m).Resources.Limits = nil }},
		"a CPU limit": {
			rule: "memory limit is the request",
			do:   func(m *Manifests) { serving(m).Resources.Limits[corev1.ResourceCPU] = resource.MustParse("1") },
		},
		"no CPU request": {
			rule: "memory limit is the request",
			do:   func(m *Manifests) { delete(serving(m).Resources.Requests, corev1.ResourceCPU) },
		},
		"latest": {rule: "an image has a version", do: func(m *Manifests) {
			serving(m).Image, migrating(m).Image = "x.example.com/hub/query:latest", "x.example.com/hub/query:latest"
		}},
		"no version": {
			rule: "an image has a version",
			do:   func(m *Manifests) { serving(m).Image = "x.example.com:5000/hub/query" },
		},
		"a working tree's": {
			rule: "an image has a version",
			do:   func(m *Manifests) { serving(m).Image = "x.example.com/hub/query:dev" },
		},
		"latest from a registry": {
			rule:  "an image has a version",
			local: true,
			do:    func(m *Manifests) { serving(m).ImagePullPolicy = corev1.PullIfNotPresent },
		},
		"another's image": {
			rule: "a service runs its own image",
			do:   func(m *Manifests) { serving(m).Image = "x.example.com/hub/auth:0.2.0" },
		},
		"another name on this machine": {rule: "a service runs its own image", local: true, do: func(m *Manifests) {
			serving(m).Image, migrating(m).Image = "hub/query:latest", "hub/query:latest"
		}},
		"migrated by another": {
			rule: "a service runs its own image",
			do:   func(m *Manifests) { migrating(m).Image = "x.example.com/hub/query:0.1.0" },
		},
		"a shell": {
			rule: "a service runs its own image",
			do:   func(m *Manifests) { serving(m).Command = []string{"/bin/sh", "-c"} },
		},
		"a hook": {
			rule: "a service runs its own image",
			do:   func(m *Manifests) { serving(m).Lifecycle = &corev1.Lifecycle{} },
		},
		"an unknown Deployment": {rule: "probes ask", do: func(m *Manifests) { named(m.Deployments, "query").Name = "search" }},
		"one missing while rolling": {rule: "a rollout takes", do: func(m *Manifests) {
			named(m.Deployments, "query").Spec.Strategy.RollingUpdate.MaxUnavailable = new(intstr.FromInt32(1))
		}},
		"recreated": {rule: "a rollout takes", do: func(m *Manifests) {
			named(m.Deployments, "query").Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
		}},
		"no budget": {rule: "a budget of one", do: func(m *Manifests) { m.Budgets = m.Budgets[1:] }},
		"a budget of two": {
			rule: "a budget of one",
			do:   func(m *Manifests) { m.Budgets[0].Spec.MaxUnavailable = new(intstr.FromInt32(2)) },
		},
		"a budget of all services": {rule: "a budget of one", do: func(m *Manifests) {
			m.Budgets[0].Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{partLabel: part}}
		}},
		"no autoscaler": {rule: "an autoscaler says", do: func(m *Manifests) { m.Autoscalers = m.Autoscalers[1:] }},
		"hasty": {rule: "an autoscaler says", do: func(m *Manifests) {
			m.Autoscalers[0].Spec.Behavior.ScaleDown.StabilizationWindowSeconds = new(int32(60))
		}},
		"scales another": {
			rule: "an autoscaler says",
			do:   func(m *Manifests) { m.Autoscalers[0].Spec.ScaleTargetRef.Name = "query" },
		},
		"two masters": {
			rule: "an autoscaler says",
			do:   func(m *Manifests) { named(m.Deployments, "query").Spec.Replicas = new(int32(3)) },
		},
		"killed while it drains": {
			rule: "a pod has longer to stop",
			do:   func(m *Manifests) { query(m).TerminationGracePeriodSeconds = new(int64(30)) },
		},
		"drains longer": {rule: "a pod has longer to stop", do: func(m *Manifests) { told(m, "HUB_DRAIN_TIMEOUT", "60s") }},
		"replaced at once": {
			rule: "a pod has stopped before",
			do:   func(m *Manifests) { named(m.Deployments, "query").Spec.MinReadySeconds = 0 },
		},
		"stops later than the next goes": {
			rule: "a pod has stopped before",
			do:   func(m *Manifests) { query(m).TerminationGracePeriodSeconds = new(int64(90)) },
		},
		"a slower statement": {
			rule: "calls in flight have as long",
			do:   func(m *Manifests) { told(m, "MCP_QUERY_TIMEOUT_MS", "40000") },
		},
		"a statement cut": {rule: "calls in flight have as long", do: func(m *Manifests) { told(m, "HUB_DRAIN_TIMEOUT", "25s") }},
		"closes at once":  {rule: "readiness fails before", do: func(m *Manifests) { told(m, "HUB_DRAIN_DELAY", "0s") }},
		"readiness seen late": {
			rule: "readiness fails before",
			do:   func(m *Manifests) { serving(m).ReadinessProbe.FailureThreshold = 5 },
		},
		"on one node": {
			rule: "pods spread",
			do:   func(m *Manifests) { query(m).TopologySpreadConstraints = query(m).TopologySpreadConstraints[1:] },
		},
		"counts others' pods": {rule: "pods spread", do: func(m *Manifests) {
			query(m).TopologySpreadConstraints[1].LabelSelector.MatchLabels = map[string]string{partLabel: part}
		}},
		"counts cordoned nodes": {
			rule: "pods spread",
			do:   func(m *Manifests) { query(m).TopologySpreadConstraints[0].NodeTaintsPolicy = nil },
		},
		"counts tainted zones": {rule: "pods spread", do: func(m *Manifests) {
			query(m).TopologySpreadConstraints[1].NodeTaintsPolicy = new(corev1.NodeInclusionPolicyIgnore)
		}},
		"too many connections": {rule: "all pods together", do: func(m *Manifests) { named(m.Autoscalers, "query").Spec.MaxReplicas = 20 }},
		"a larger pool":        {rule: "all pods together", do: func(m *Manifests) { told(m, "HUB_SOURCE_POOL", "64") }},
		"no limit stated": {
			rule: "all pods together",
			do:   func(m *Manifests) { delete(named(m.Deployments, "query").Annotations, connections) },
		},
		"two": {rule: "three or more", do: func(m *Manifests) { m.Autoscalers[3].Spec.MinReplicas = new(int32(2)) }},
		"crowded": {
			rule: "nodes have evenly many",
			do:   func(m *Manifests) { query(m).TopologySpreadConstraints[0].WhenUnsatisfiable = corev1.ScheduleAnyway },
		},
		"never migrates": {rule: "a service serves", do: func(m *Manifests) { query(m).InitContainers = nil }},
		"serves twice":   {rule: "a service serves", do: func(m *Manifests) { migrating(m).Args = []string{"serve"} }},
		"a sidecar": {
			rule: "a service serves",
			do:   func(m *Manifests) { query(m).Containers = append(query(m).Containers, corev1.Container{Name: "proxy"}) },
		},
		"a misspelt setting": {rule: "every variable", do: func(m *Manifests) { told(m, "HUB_MAX_ROWS", "10") }},
		"another's setting":  {rule: "every variable", do: func(m *Manifests) { told(m, "HUB_SMTP_ADDR", "mail:1025") }},
		"a misspelt file": {
			rule: "every variable",
			do:   func(m *Manifests) { told(m, "HUB_SOURCE_DNS_FILE", "/run/secrets/hub/source-dns") },
		},
		"a setting lost": {rule: "every setting", do: func(m *Manifests) {
			named(m.Deployments, "review-control").Spec.Template.Spec.Containers[0].EnvFrom = nil
		}},
		"an empty setting":  {rule: "every setting", do: func(m *Manifests) { told(m, "HUB_WRITE_STORE_URL_FILE", "") }},
		"no way to migrate": {rule: "every setting", do: func(m *Manifests) { migrating(m).Env = nil }},
		"redis for query": {
			rule: "a service is told what",
			do:   func(m *Manifests) { told(m, "HUB_REDIS_URL_FILE", "/run/secrets/hub/redis-url") },
		},
		"made of what comes later": {rule: "a variable is made", do: func(m *Manifests) { slices.Reverse(serving(m).Env) }},
		"another namespace's names": {
			rule: "a variable is made",
			do:   func(m *Manifests) { told(m, "HUB_DNS_DOMAIN", "prod.svc.cluster.local") },
		},
		"another port":              {rule: "ports are those", do: func(m *Manifests) { told(m, "HUB_ADDR", "0.0.0.0:8081") }},
		"a port that nobody serves": {rule: "ports are those", do: func(m *Manifests) { serving(m).Ports[1].ContainerPort = 9091 }},
		"a port of the node":        {rule: "Pod Security restricted", do: func(m *Manifests) { serving(m).Ports[0].HostPort = 8080 }},
		"no start-up probe":         {rule: "probes ask", do: func(m *Manifests) { serving(m).StartupProbe = nil }},
		"readiness by liveness":     {rule: "probes ask", do: func(m *Manifests) { serving(m).ReadinessProbe.HTTPGet.Path = "/healthz" }},
		"liveness by readiness":     {rule: "probes ask", do: func(m *Manifests) { serving(m).LivenessProbe.HTTPGet.Path = "/readyz" }},
		"asks the wrong port": {
			rule: "probes ask",
			do:   func(m *Manifests) { serving(m).LivenessProbe.HTTPGet.Port = intstr.FromString("ops") },
		},
		"impatient readiness": {rule: "probes ask", do: func(m *Manifests) { serving(m).ReadinessProbe.TimeoutSeconds = 1 }},
		"another name":        {rule: "a service is found", do: func(m *Manifests) { named(m.Services, "query").Name = "hub-query" }},
		"no SRV record": {
			rule: "a service is found",
			do:   func(m *Manifests) { named(m.Services, "query").Spec.Ports[0].Name = "web" },
		},
		"one address for all": {
			rule: "a service is found",
			do:   func(m *Manifests) { named(m.Services, "query").Spec.ClusterIP = "" },
		},
		"on every node": {
			rule: "a service is found",
			do:   func(m *Manifests) { named(m.Services, "gateway").Spec.Type = corev1.ServiceTypeNodePort },
		},
		"found before it is ready": {
			rule: "a service is found",
			do:   func(m *Manifests) { named(m.Services, "query").Spec.PublishNotReadyAddresses = true },
		},
		"finds all": {
			rule: "a service is found",
			do:   func(m *Manifests) { named(m.Services, "query").Spec.Selector = map[string]string{partLabel: part} },
		},
		"the operations' port": {
			rule: "a service is found",
			do:   func(m *Manifests) { named(m.Services, "query").Spec.Ports[0].TargetPort = intstr.FromString("ops") },
		},
		"two addresses": {rule: "all name the same", do: func(m *Manifests) {
			for _, c := range m.ConfigMaps {
				if strings.HasPrefix(c.Name, "auth-") {
					c.Data["HUB_PUBLIC_URL"] = "https://other.example.com"
				}
			}
		}},
		"a route to a service": {
			rule: "a route leads",
			do:   func(m *Manifests) { m.Routes[0].Spec.Rules[0].BackendRefs[0].Name = "admin" },
		},
		"a route to operations": {
			rule: "a route leads",
			do:   func(m *Manifests) { m.Routes[0].Spec.Rules[0].BackendRefs[0].Port = new(gatewayv1.PortNumber(9090)) },
		},
		"a secret value": {
			rule: "no secret is a value",
			do:   func(m *Manifests) { told(m, "HUB_SOURCE_DSN", "hub_ro:secret@tcp(db)/marketplace") },
		},
		"a secret's reference": {rule: "no secret is a value", do: func(m *Manifests) {
			serving(m).Env[0].ValueFrom = &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "k"}}
		}},
		"all of a Secret": {rule: "no secret is a value", do: func(m *Manifests) {
			serving(m).EnvFrom = append(serving(m).EnvFrom, corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{}})
		}},
		"a secret in a ConfigMap": {rule: "no secret is a value", do: func(m *Manifests) {
			for _, c := range m.ConfigMaps {
				if strings.HasPrefix(c.Name, "query-") {
					c.Data["HUB_WRITE_STORE_URL"] = "postgres://hub_query:secret@db/hub"
				}
			}
		}},
		"a store's password": {rule: "no secret is a value", local: true, do: func(m *Manifests) {
			c := &m.StatefulSets[0].Spec.Template.Spec.Containers[0]
			c.Env = append(c.Env, corev1.EnvVar{Name: "POSTGRES_PASSWORD", Value: "x"})
		}},
		"a Secret": {rule: "no Secret is part", do: func(m *Manifests) { m.Secrets = append(m.Secrets, &corev1.Secret{}) }},
		"another's Secret": {
			rule: "a secret's file is in",
			do:   func(m *Manifests) { query(m).Volumes[1].Projected.Sources[0].Secret.Name = "auth" },
		},
		"a file elsewhere": {
			rule: "a secret's file is in",
			do:   func(m *Manifests) { told(m, "HUB_SOURCE_DSN_FILE", "/tmp/source-dsn") },
		},
		"another's key": {
			rule: "a secret's file is in",
			do:   func(m *Manifests) { told(m, "HUB_SOURCE_DSN_FILE", "/run/secrets/hub/write-store-url") },
		},
		"whom it trusts by itself": {
			rule: "a secret's file is in",
			do:   func(m *Manifests) { query(m).Volumes[1].Projected.Sources[1].Secret.Name = "query" },
		},
		"the owner serves": {rule: "the owner's password", do: func(m *Manifests) {
			serving(m).VolumeMounts = append(serving(m).VolumeMounts, migrating(m).VolumeMounts[1])
		}},
		"migrates with all secrets": {rule: "the owner's password", do: func(m *Manifests) {
			migrating(m).VolumeMounts = append(migrating(m).VolumeMounts, serving(m).VolumeMounts[1])
		}},
		"open files": {rule: "secret files are", do: func(m *Manifests) { query(m).Volumes[1].Projected.DefaultMode = new(int32(0o444)) }},
		"a store's open files": {rule: "secret files are", local: true, do: func(m *Manifests) {
			for i, v := range m.StatefulSets[0].Spec.Template.Spec.Volumes {
				if v.Secret != nil {
					m.StatefulSets[0].Spec.Template.Spec.Volumes[i].Secret.DefaultMode = nil
				}
			}
		}},
		"no denial": {rule: "what no policy names", do: func(m *Manifests) {
			m.Networks = slices.DeleteFunc(m.Networks, func(p *networkingv1.NetworkPolicy) bool { return p.Name == "deny" })
		}},
		"a denial of one way": {
			rule: "what no policy names",
			do:   func(m *Manifests) { rule(m, "deny").PolicyTypes = rule(m, "deny").PolicyTypes[:1] },
		},
		"no policies": {rule: "what no policy names", do: func(m *Manifests) { m.Networks, m.Namespaces = nil, nil }},
		"a call that is not listed": {rule: "services reach", do: func(m *Manifests) {
			rule(m, "query-edges").Ingress[0].From[0].PodSelector.MatchExpressions[0].Values = []string{
				"gateway",
				"authoring",
				"admin",
				"payments",
			}
		}},
		"a call that is missing": {rule: "services reach", do: func(m *Manifests) { rule(m, "authoring-edges").Egress = nil }},
		"calls all": {
			rule: "services reach",
			do:   func(m *Manifests) { rule(m, "authoring-edges").Egress[0].To[0].PodSelector = &metav1.LabelSelector{} },
		},
		"any port of a neighbour": {rule: "services reach", do: func(m *Manifests) { rule(m, "authoring-edges").Egress[0].Ports = nil }},
		"anybody's call":          {rule: "only what is in front", do: func(m *Manifests) { rule(m, "query-edges").Ingress[0].From = nil }},
		"called from elsewhere": {rule: "only what is in front", do: func(m *Manifests) {
			rule(m, "query-edges").Ingress[0].From[0].NamespaceSelector = &metav1.LabelSelector{}
		}},
		"the edge closed": {rule: "only what is in front", do: func(m *Manifests) { rule(m, "gateway-edges").Ingress = nil }},
		"the edge for everybody": {rule: "only what is in front", do: func(m *Manifests) {
			rule(m, "gateway-edges").Ingress[0].From = []networkingv1.NetworkPolicyPeer{{IPBlock: &networkingv1.IPBlock{CIDR: "0.0.0.0/0"}}}
		}},
		"operations for everybody": {rule: "only monitoring", do: func(m *Manifests) { rule(m, "query").Ingress[0].From = nil }},
		"operations for nobody":    {rule: "only monitoring", do: func(m *Manifests) { rule(m, "query").Ingress = nil }},
		"no names": {
			rule: "names are asked",
			do:   func(m *Manifests) { rule(m, "query").Egress = rule(m, "query").Egress[1:] },
		},
		"anybody's names": {rule: "names are asked", do: func(m *Manifests) { rule(m, "query").Egress[0].To = nil }},
		"a new port": {rule: "egress is to ports", do: func(m *Manifests) {
			rule(m, "query").Egress = append(rule(m, "query").Egress, egressTo("192.0.2.1/32", 9200))
		}},
		"the source for admin": {rule: "egress is to ports", do: func(m *Manifests) {
			rule(m, "admin-edges").Egress = append(rule(m, "admin-edges").Egress, egressTo("192.0.2.20/32", 3306))
		}},
		"mail for admin": {rule: "egress is to ports", do: func(m *Manifests) {
			rule(m, "admin-edges").Egress = append(rule(m, "admin-edges").Egress, egressTo("192.0.2.40/32", 587))
		}},
		"the source closed": {
			rule: "egress is to ports",
			do:   func(m *Manifests) { rule(m, "query-edges").Egress, rule(m, "source").Egress = nil, nil },
		},
		"ports by name": {
			rule: "egress is to ports",
			do:   func(m *Manifests) { rule(m, "query-edges").Egress[0].Ports[0].Port = new(intstr.FromString("mysql")) },
		},
		"the Internet for admin": {rule: "only payments reaches", do: func(m *Manifests) {
			rule(m, "admin-edges").Egress = append(rule(m, "admin-edges").Egress, egressTo("0.0.0.0/0", 443))
		}},
		"private networks": {
			rule: "only payments reaches",
			do:   func(m *Manifests) { rule(m, "payments-edges").Egress[1].To[0].IPBlock.Except = nil },
		},
		"the node's metadata": {rule: "only payments reaches", do: func(m *Manifests) {
			b := rule(m, "payments-edges").Egress[1].To[0].IPBlock
			b.Except = slices.DeleteFunc(b.Except, func(c string) bool { return c == "169.254.0.0/16" })
		}},
		"the provider closed": {
			rule: "only payments reaches",
			do:   func(m *Manifests) { rule(m, "payments-edges").Egress = rule(m, "payments-edges").Egress[:1] },
		},
		"plain HTTP": {rule: "only payments reaches", do: func(m *Manifests) {
			e := &rule(m, "payments-edges").Egress[1]
			e.Ports = append(e.Ports, networkingv1.NetworkPolicyPort{Port: new(intstr.FromInt32(80))})
		}},
		"the source for all": {rule: "stores are reached", local: true, do: func(m *Manifests) {
			rule(m, "mysql").Ingress[0].From[0].PodSelector = &metav1.LabelSelector{MatchLabels: map[string]string{partLabel: part}}
		}},
		"the write store for anyone": {
			rule:  "stores are reached",
			local: true,
			do:    func(m *Manifests) { rule(m, "postgres").Ingress[0].From = nil },
		},
		"a store that talks": {rule: "stores are reached", local: true, do: func(m *Manifests) {
			rule(m, "mail").Egress = append(rule(m, "mail").Egress, networkingv1.NetworkPolicyEgressRule{})
		}},
		"a store that nobody needs": {
			rule:  "stores are reached",
			local: true,
			do:    func(m *Manifests) { m.StatefulSets[0].Spec.Template.Spec.Containers[0].Ports[0].ContainerPort = 9200 },
		},
	}
}

// TestEveryRuleCanBreak: what somebody might do wrong is found, by the rule that is about it; and there is no rule that
// nothing breaks.
func TestEveryRuleCanBreak(t *testing.T) {
	t.Parallel()
	broken := map[string]bool{}
	for name, c := range mutations() {
		folder := "production"
		if c.local {
			folder = "local"
		}
		m := overlay(t, folder)
		c.do(m)
		violations := Check(m, loaded(t), !c.local, ownRules()...)
		i := slices.IndexFunc(violations, func(v Violation) bool { return strings.HasPrefix(v.Rule, c.rule) })
		if i < 0 {
			t.Errorf("%s does not break %q, but %v", name, c.rule, violations)
			continue
		}
		broken[violations[i].Rule] = true
	}
	for _, r := range slices.Concat(Rules(), ownRules()) {
		if !broken[r.Name] {
			t.Errorf("nothing breaks %q", r.Name)
		}
	}
}
