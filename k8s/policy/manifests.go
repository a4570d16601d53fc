// Package policy judges what k8s/ makes: it renders a kustomize folder, decodes each object strictly into the API's own types and
// holds it to rules, each of which is one line of Hub's security design or one fact about the programs. It refuses to change or
// apply anything; what only a server knows (admission of other objects, quotas, versions) it does not know.
package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/json"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// Manifests are the objects of a folder, by their kinds.
type Manifests struct {
	Namespaces   []*corev1.Namespace
	Accounts     []*corev1.ServiceAccount
	ConfigMaps   []*corev1.ConfigMap
	Secrets      []*corev1.Secret
	Services     []*corev1.Service
	Deployments  []*appsv1.Deployment
	StatefulSets []*appsv1.StatefulSet
	Autoscalers  []*autoscalingv2.HorizontalPodAutoscaler
	Budgets      []*policyv1.PodDisruptionBudget
	Networks     []*networkingv1.NetworkPolicy
	Routes       []*gatewayv1.HTTPRoute
	CronJobs     []*batchv1.CronJob
	Jobs         []*batchv1.Job
	// Others are objects of kinds that no rule judges.
	Others []*metav1.PartialObjectMetadata
}

// Render makes the objects of a kustomize folder, as `kubectl kustomize` does.
// It reads files only: no cluster is asked.
func Render(folder string) (*Manifests, error) {
	texts, err := render(folder)
	if err != nil {
		return nil, err
	}
	m := &Manifests{}
	for _, text := range texts {
		if err := m.decode(text); err != nil {
			return nil, fmt.Errorf("%s: %w in %s", folder, err, text)
		}
	}
	return m, nil
}

// render returns the JSON of each object.
func render(folder string) (texts [][]byte, err error) {
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", folder, err)
	}
	for _, r := range resources.Resources() {
		text, err := r.MarshalJSON()
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", folder, r.CurId(), err)
		}
		texts = append(texts, text)
	}
	return texts, nil
}

// Add decodes one object from YAML. A field that the API has not got is refused, and one that is there twice. So is a kind of
// Kubernetes' own that is not known here, because it may have pods that no rule would judge; what others have added to the API is
// one of Others.
func (m *Manifests) Add(text []byte) error {
	b, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return err
	}
	return m.decode(b)
}

// decode puts an object into the list of its kind. It refuses kinds of Kubernetes' own that are not known.
func (m *Manifests) decode(text []byte) error {
	// Other fields are not TypeMeta's, and no error yet.
	var kind metav1.TypeMeta
	if _, err := json.UnmarshalStrict(text, &kind); err != nil {
		return err
	}
	if put, known := m.kinds()[kind.APIVersion+" "+kind.Kind]; known {
		return put(text)
	}
	// Groups without a dot are Kubernetes' own, and so is what is below k8s.io.
	if group, _, _ := strings.Cut(kind.APIVersion, "/"); strings.Contains(group, ".") && !strings.HasSuffix(group, "k8s.io") {
		o := new(metav1.PartialObjectMetadata)
		m.Others = append(m.Others, o)
		return json.UnmarshalCaseSensitivePreserveInts(text, o)
	}
	return fmt.Errorf("%s %s is of no kind that the policy knows: add it, and what it must not do", kind.APIVersion, kind.Kind)
}

// kinds are those that the rules know, each with what puts an object of it into its list.
func (m *Manifests) kinds() map[string]func([]byte) error {
	return map[string]func([]byte) error{
		"v1 Namespace":                           to(&m.Namespaces),
		"v1 ServiceAccount":                      to(&m.Accounts),
		"v1 ConfigMap":                           to(&m.ConfigMaps),
		"v1 Secret":                              to(&m.Secrets),
		"v1 Service":                             to(&m.Services),
		"apps/v1 Deployment":                     to(&m.Deployments),
		"apps/v1 StatefulSet":                    to(&m.StatefulSets),
		"autoscaling/v2 HorizontalPodAutoscaler": to(&m.Autoscalers),
		"policy/v1 PodDisruptionBudget":          to(&m.Budgets),
		"networking.k8s.io/v1 NetworkPolicy":     to(&m.Networks),
		"gateway.networking.k8s.io/v1 HTTPRoute": to(&m.Routes),
		"batch/v1 CronJob":                       to(&m.CronJobs),
		"batch/v1 Job":                           to(&m.Jobs),
	}
}

// to decodes strictly: a field that the kind has not got, and one that is there twice, is an error.
func to[T any](list *[]*T) func(text []byte) error {
	return func(text []byte) error {
		// The API server's own decoder: to encoding/json, clusterIp is clusterIP.
		o := new(T)
		problems, err := json.UnmarshalStrict(text, o)
		if err := errors.Join(append(problems, err)...); err != nil {
			return err
		}
		*list = append(*list, o)
		return nil
	}
}

// named returns the object with the name, or nil.
func named[T metav1.Object](list []T, name string) (none T) {
	if i := slices.IndexFunc(list, func(o T) bool { return o.GetName() == name }); i >= 0 {
		return list[i]
	}
	return none
}

// Labels by which objects say what they are.
const (
	nameLabel   = "app.kubernetes.io/name"
	partLabel   = "app.kubernetes.io/part-of"
	part        = "hub"
	accessLabel = "hub.internal/access"
)

// workload is whatever has pods.
type workload struct {
	kind, name string
	meta       metav1.ObjectMeta // of its pods
	pod        *corev1.PodSpec
}

// String is the kind and the name, for messages.
func (w workload) String() string { return w.kind + " " + w.name }

// containers are all of a pod, those that start it first.
func (w workload) containers() []*corev1.Container {
	var all []*corev1.Container
	for i := range w.pod.InitContainers {
		all = append(all, &w.pod.InitContainers[i])
	}
	for i := range w.pod.Containers {
		all = append(all, &w.pod.Containers[i])
	}
	return all
}

// workloads are all objects that make pods, Hub's own and what stands beside them.
func (m *Manifests) workloads() []workload {
	var all []workload
	for _, d := range m.Deployments {
		all = append(all, workload{"Deployment", d.Name, d.Spec.Template.ObjectMeta, &d.Spec.Template.Spec})
	}
	for _, s := range m.StatefulSets {
		all = append(all, workload{"StatefulSet", s.Name, s.Spec.Template.ObjectMeta, &s.Spec.Template.Spec})
	}
	for _, j := range m.Jobs {
		all = append(all, workload{"Job", j.Name, j.Spec.Template.ObjectMeta, &j.Spec.Template.Spec})
	}
	for _, c := range m.CronJobs {
		template := &c.Spec.JobTemplate.Spec.Template
		all = append(all, workload{"CronJob", c.Name, template.ObjectMeta, &template.Spec})
	}
	return all
}
