package policy

import (
	"maps"
	"path"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"hub.internal/pkg/inventory"
)

// Secrets that are not one service's alone.
const (
	// trustedSecret holds whom all believe.
	trustedSecret = "trusted-keys"
	// migrateSecret holds the owner's address of the write store.
	migrateSecret = "migrate"
)

// secretRules keep secrets in files of one Secret for each service.
func secretRules() []Rule {
	return []Rule{
		{Name: "no secret is a value of the environment", broken: noSecretValues},
		{Name: "no Secret is part of the manifests", broken: noSecrets},
		{Name: "a secret's file is in a volume of the service's own Secret", broken: filesMounted},
		{Name: "the owner's password is in no container that serves", broken: ownerApart},
		{Name: "secret files are for the group alone", broken: fileModes},
	}
}

// noSecretValues finds secrets in the environment, which every child process and crash report inherits.
func noSecretValues(r *review) {
	r.eachContainer(func(w workload, c *corev1.Container) {
		for _, from := range c.EnvFrom {
			r.require(from.SecretRef == nil, "%s: container %s takes all of a Secret", w, c.Name)
		}
		for _, e := range c.Env {
			r.require(e.ValueFrom == nil || e.ValueFrom.SecretKeyRef == nil, "%s: container %s: %s", w, c.Name, e.Name)
			r.require(!strings.HasSuffix(e.Name, "_PASSWORD") || e.Value == "", "%s: container %s: %s", w, c.Name, e.Name)
		}
	})
	r.eachProgram(func(d *appsv1.Deployment, c *corev1.Container, reads []inventory.Setting) {
		for _, v := range r.environment(c) {
			s, _ := inventory.Find(reads, v.name)
			r.require(!s.Secret, "%s: container %s: %s", d.Name, c.Name, v.name)
		}
	})
}

// noSecrets refuses Secrets among the manifests: an operator fills them, and a repository keeps none.
func noSecrets(r *review) {
	for _, s := range r.Secrets {
		r.violated("Secret %s", s.Name)
	}
}

// mounted is the Secret that a volume mounts for a service, or none.
// The key tells which one of several Secrets in a projected volume is meant.
func mounted(d *appsv1.Deployment, volume, key string) string {
	for _, v := range d.Spec.Template.Spec.Volumes {
		switch {
		case v.Name != volume:
		case v.Secret != nil:
			return v.Secret.SecretName
		case v.Projected != nil:
			// Without items each gives all that it has: which one has the key is the convention of k8s/README.md.
			for _, source := range v.Projected.Sources {
				if source.Secret != nil && (source.Secret.Name == trustedSecret) == (key == trustedSecret) {
					return source.Secret.Name
				}
			}
		}
	}
	return ""
}

// file is a secret that a container reads.
// The setting without _FILE, the Secret that is mounted where it points to, and the key in it.
type file struct{ setting, secret, key string }

// files are those that a container is told of; one that no Secret holds has none.
func (r *review) files(d *appsv1.Deployment, c *corev1.Container) []file {
	var all []file
	for _, v := range r.environment(c) {
		if !strings.HasSuffix(v.name, "_FILE") {
			continue
		}
		f := file{setting: setting(v.name), key: path.Base(v.value)}
		for _, m := range c.VolumeMounts {
			if m.MountPath == path.Dir(v.value) && m.ReadOnly && m.SubPath == "" { // a subPath would never see a rotation
				f.secret = mounted(d, m.Name, f.key)
			}
		}
		all = append(all, f)
	}
	return all
}

// filesMounted follows each NAME_FILE to the Secret that is mounted there: the service's own, or one of the two
// that several share. The key is the setting's name, in lower case and with hyphens.
func filesMounted(r *review) {
	r.eachProgram(func(d *appsv1.Deployment, c *corev1.Container, _ []inventory.Setting) {
		for _, f := range r.files(d, c) {
			want := d.Name
			switch f.setting {
			case "HUB_TRUSTED_KEYS":
				want = trustedSecret
			case "HUB_MIGRATE_URL":
				want = migrateSecret
			}
			r.require(f.secret == want, "%s: container %s reads %s from Secret %q, key %s", d.Name, c.Name, f.setting, f.secret, f.key)
			named := strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(f.setting, "HUB_"), "_", "-"))
			r.require(f.key == named, "%s: %s is the key %s", d.Name, f.setting, f.key)
		}
	})
}

// ownerApart keeps the owner of the store out of containers that serve, and the service's own secrets out of the
// migration.
func ownerApart(r *review) {
	r.each(func(d *appsv1.Deployment, _ inventory.Service) {
		for _, c := range d.Spec.Template.Spec.Containers {
			for _, m := range c.VolumeMounts {
				r.require(mounted(d, m.Name, "") != migrateSecret, "%s: container %s mounts it", d.Name, c.Name)
			}
		}
		if c := container(d, "migrate"); c != nil {
			for _, m := range c.VolumeMounts {
				r.require(mounted(d, m.Name, "") != d.Name, "%s: its migration mounts what only the service needs", d.Name)
			}
		}
	})
}

// fileModes wants 0440: the volume's group is the container's, and nobody else reads.
func fileModes(r *review) {
	for _, w := range r.workloads() {
		for _, v := range w.pod.Volumes {
			var mode *int32
			switch {
			case v.Secret != nil:
				mode = v.Secret.DefaultMode
			case v.Projected != nil:
				mode = v.Projected.DefaultMode
			default:
				continue
			}
			r.require(equals(mode, 0o440), "%s: volume %s", w, v.Name)
		}
	}
}

// Secrets are those that have to be there for the services among the manifests: the keys of each, and the services
// that read them.
func Secrets(m *Manifests, p Programs) map[string]map[string][]string {
	r := &review{Manifests: m, programs: p}
	all := map[string]map[string][]string{}
	r.eachProgram(func(d *appsv1.Deployment, c *corev1.Container, _ []inventory.Setting) {
		for _, f := range r.files(d, c) {
			if all[f.secret] == nil {
				all[f.secret] = map[string][]string{}
			}
			readers := append(all[f.secret][f.key], d.Name)
			all[f.secret][f.key] = slices.Compact(slices.Sorted(slices.Values(readers)))
		}
	})
	maps.DeleteFunc(all, func(secret string, _ map[string][]string) bool { return secret == "" })
	return all
}
