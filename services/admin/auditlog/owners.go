package auditlog

import (
	"strings"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/caller"
	"hub.internal/pkg/postgres"
	"hub.internal/pkg/tool"
)

// Owners names the database role of the service that records a tool, a route, or, by the word before the first dot and that dot,
// acts such as user.add. Of a name that is not in it nobody knows whose it is.
type Owners map[string]string

// OwnersIn returns those that the catalog names.
func OwnersIn(c tool.Catalog) Owners {
	o := Owners{}
	// Acts are declared by their first word: deploy/services.json gives a word to one service.
	for word, service := range c.Acts {
		o[word+"."] = postgres.ServiceRole(service)
	}
	for _, m := range c.Manifests {
		role := postgres.ServiceRole(m.Service)
		for _, t := range m.Tools {
			o[t.Name] = role
		}
		for _, r := range m.Routes {
			o[r.Name] = role
		}
	}
	return o
}

// EdgeRole is the role that records what is refused before it comes to its owner, under whatever name it was asked for.
func EdgeRole() string { return postgres.ServiceRole(caller.Gateway) }

// Foreign tells that a row was recorded by a role that does not own its name. The store lets each service's role write rows of any
// name: what such a row says did not happen where it would have. A refusal by the edge is no foreign row, nor is one from before the
// log named its writers.
func (o Owners) Foreign(c Call) bool {
	owner := o.of(c.Tool)
	return owner != "" && c.Writer != "" && c.Writer != owner && (c.Writer != EdgeRole() || c.Outcome == audit.OK)
}

// of is the role that owns a name, itself or by its first word; empty when nobody knows.
func (o Owners) of(name string) string {
	if role, known := o[name]; known {
		return role
	}
	// A name that is not listed may be an act.
	word, _, dotted := strings.Cut(name, ".")
	if !dotted {
		return ""
	}
	return o[word+"."]
}
