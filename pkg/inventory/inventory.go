// Package inventory reads deploy/services.json, the one list of Hub's services: what the local
// stack, the benchmark, the suite of processes and the catalog are made from, and what Compose,
// the workspace and the grants are held to. It refuses to know any of them by name.
package inventory

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"hub.internal/pkg/postgres"
)

// File is where the list is, below the root of the repository.
const File = "deploy/services.json"

// What a service may need, beside what every one has (pkg/service): each stands for settings
// that whoever starts it has to give.
const (
	Store   = "store"   // a role of its own in the write store
	Redis   = "redis"   // rate limits and notices
	Source  = "source"  // the marketplace's own database
	Pepper  = "pepper"  // of API keys
	Catalog = "catalog" // the file to boot from
	Audit   = "audit"   // the role that reads the audit log
	Mail    = "mail"    // an SMTP server and Hub's mailbox
	Links   = "links"   // where people reach the console
	Keyset  = "keyset"  // that seals what the store keeps and has to be read again
	// Provider is a payment provider, or what stands in for one.
	Provider = "provider"
)

var needs = []string{Store, Redis, Source, Pepper, Catalog, Audit, Mail, Links, Keyset, Provider}

// SettingsOfNeeds are those that a need stands for, and that a service without it is not told.
func SettingsOfNeeds() map[string][]string {
	return map[string][]string{
		Store: {"HUB_WRITE_STORE_URL"}, Redis: {"HUB_REDIS_URL"}, Source: {"HUB_SOURCE_DSN"}, Pepper: {"HUB_KEY_PEPPER"},
		Catalog: {"HUB_CATALOG"}, Audit: {"HUB_AUDIT_URL"}, Mail: {"HUB_SMTP_ADDR", "HUB_MAIL_FROM"}, Links: {"HUB_PUBLIC_URL"},
		Keyset:   {"HUB_SECRETS_KEYSET"},
		Provider: {"HUB_PAY_ENV"},
	}
}

// Service is one of Hub's services. Its folder below services/, its program, its image and its
// discovery name are the same word.
type Service struct {
	Name string `json:"name"`
	// Edge is the one that takes calls from outside. Each of the others takes them from its
	// neighbours alone, and has a manifest.
	Edge bool `json:"edge"`
	// Calls are the neighbours that it is told of.
	Calls []string `json:"calls"`
	// Needs are of the constants above.
	Needs []string `json:"needs"`
	// Acts are the first words of the names, such as user.add, under which it records in the audit log what is no tool.
	Acts []string `json:"acts"`
	// Pool bounds the connections of one of its processes to the write store; 10 without.
	Pool int `json:"pool"`
}

// Has tells whether the service needs this.
func (s Service) Has(need string) bool { return slices.Contains(s.Needs, need) }

// Module is its Go module's folder.
func (s Service) Module() string { return "./services/" + s.Name }

// Program is the package of its program.
func (s Service) Program() string { return s.Module() + "/cmd/" + s.Name }

// Development is the version of what is built of a working tree and was never released; it is the tag of its images.
const Development = "dev"

// Image is the name of its container image at a version, as 1.2.3 or Development, without the registry.
func (s Service) Image(version string) string { return "hub/" + s.Name + ":" + version }

// Client is the module of the program for people and scripts, and ClientProgram its package. It is released as a service is,
// with a changelog and a tag of its own; but nothing deploys it, so it is not in the list and has no image.
const (
	Client        = "client"
	ClientProgram = "./services/client/cmd/hub"
)

// BuildTags is a flag of each go build of a program. It leaves out gRPC's record of requests (golang.org/x/net/trace), which comes with
// OpenTelemetry's exporters and which nobody reads: it renders an html/template, and the linker cannot tell which methods a template
// calls, so it would keep every exported one. Without it a program that has no pages is a quarter smaller.
const BuildTags = "-tags=grpcnotrace"

// Role is what it logs in to the write store as.
func (s Service) Role() string { return postgres.ServiceRole(s.Name) }

// Schema is the one of the write store that is its own, if it has tables.
func (s Service) Schema() string { return s.Role()[len("hub_"):] }

// Inventory is the list, in the order in which a person names them: the edge first.
type Inventory []Service

// Connections are those that one process of each service has to the write store, at most, by the role that it logs in as. The
// owner is among them with 0: it is bounded by nothing.
func (i Inventory) Connections() map[string]int {
	roles := map[string]int{postgres.Owner: 0, postgres.AuditReader: 0}
	for _, s := range i {
		roles[s.Role()] = s.Pool
		if s.Has(Audit) {
			roles[postgres.AuditReader] += postgres.AuditConnections
		}
	}
	return roles
}

// Acts are those of all services, each with the service's name.
func (i Inventory) Acts() map[string]string {
	acts := map[string]string{}
	for _, s := range i {
		for _, word := range s.Acts {
			acts[word] = s.Name
		}
	}
	return acts
}

// Load reads the list of the repository at root.
func Load(root string) (Inventory, error) {
	b, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(File)))
	if err != nil {
		return nil, err
	}
	list, err := parse(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", File, err)
	}
	return list, nil
}

// names are those that a folder, a host and, with _ for -, a role can have.
var names = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)

// parse reads the list and refuses what cannot be: an unknown field or need, a name twice, a call to oneself or to
// the edge.
func parse(b []byte) (Inventory, error) {
	var file struct {
		Services Inventory `json:"services"`
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&file); err != nil {
		return nil, err
	}
	list := file.Services
	if len(list) == 0 || !list[0].Edge {
		return nil, errors.New("the first service has to be the edge")
	}
	for i, s := range list {
		list[i].Pool = cmp.Or(s.Pool, 10)
		switch {
		case !names.MatchString(s.Name):
			return nil, fmt.Errorf("%q cannot be the name of a service", s.Name)
		case slices.ContainsFunc(list[:i], func(o Service) bool { return o.Name == s.Name || o.Edge && s.Edge }):
			return nil, fmt.Errorf("%s is there twice, or a second edge", s.Name)
		}
		for _, name := range s.Calls {
			if other, err := list.Find(name); err != nil || other.Edge || name == s.Name {
				return nil, fmt.Errorf("%s cannot call %q", s.Name, name)
			}
		}
		for _, word := range s.Acts {
			if !names.MatchString(word) {
				return nil, fmt.Errorf("%s cannot have acts of %q", s.Name, word)
			}
			if other := list[:i].Acts()[word]; other != "" {
				return nil, fmt.Errorf("%s and %s both have acts of %q", other, s.Name, word)
			}
		}
		for _, n := range s.Needs {
			if !slices.Contains(needs, n) {
				return nil, fmt.Errorf("%s needs %q, which is none of %v", s.Name, n, needs)
			}
		}
	}
	return list, nil
}

// Find returns a service by its name.
func (i Inventory) Find(name string) (Service, error) {
	if n := slices.IndexFunc(i, func(s Service) bool { return s.Name == name }); n >= 0 {
		return i[n], nil
	}
	return Service{}, fmt.Errorf("there is no service %q in %s", name, File)
}

// Pick returns services by their names, in that order.
func (i Inventory) Pick(names ...string) (Inventory, error) {
	var picked Inventory
	for _, name := range names {
		s, err := i.Find(name)
		if err != nil {
			return nil, err
		}
		picked = append(picked, s)
	}
	return picked, nil
}

// Edge is the service that takes calls from outside.
func (i Inventory) Edge() Service {
	return i[slices.IndexFunc(i, func(s Service) bool { return s.Edge })]
}

// Inner are all but the edge.
func (i Inventory) Inner() Inventory {
	return slices.DeleteFunc(slices.Clone(i), func(s Service) bool { return s.Edge })
}

// Names lists them.
func (i Inventory) Names() []string {
	list := make([]string, len(i))
	for n, s := range i {
		list[n] = s.Name
	}
	return list
}
