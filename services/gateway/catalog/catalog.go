// Package catalog is what the services have said of themselves: their manifests, judged, compiled and merged into one
// catalog of tools, routes of the API and parts of the console, and what is answered of it. It refuses to know who calls,
// and how.
//
// A version of the catalog is never changed. A manifest that is new makes another version, which takes the place of the one
// before in one step, so that a call sees one version from its first check to its last, and no reader waits for a lock.
package catalog

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/schema"
	"hub.internal/pkg/text"
	"hub.internal/pkg/tool"
)

// Catalog merges the manifests of the services. It begins with the committed file,
// follows what the services say, and keeps the last good word of each.
type Catalog struct {
	logger *slog.Logger
	mu     sync.Mutex
	// owners are the services with the manifests that hold, latest what each has said last.
	owners map[string]*owner
	latest map[string]announcement
	// compiled counts manifests that were compiled.
	compiled int
	current  atomic.Pointer[version]
	// refused are the services whose last manifest was refused.
	refused map[string]bool
}

// announcement is a service's word as it came, and what it was compiled to, or why not.
type announcement struct {
	sum   [sha256.Size]byte
	owner *owner
	err   error
}

// version is one version of the catalog, and what is answered from it.
type version struct {
	// byName finds a tool, and ordered lists them by their positions.
	byName  map[string]*Entry
	ordered []*Entry
	// routes are those of the API, by the first element of their path: each has one owner.
	routes map[string][]*Entry
	// console are the parts of the console, the longest prefix first: the first that fits a path has it.
	console []*ConsoleRoute
	// finders are the services that are asked for what people look for in the console.
	finders []string
	// notifications are what services tell apps.
	notifications []*tool.Notifications
	description
	// rendered is what was made of the tools for callers, by its name and the scopes held (ForScopes): there are as many as
	// combinations of scopes in use.
	rendered sync.Map
}

// New returns a catalog without tools.
func New(logger *slog.Logger) *Catalog {
	c := &Catalog{logger: logger, owners: map[string]*owner{}, latest: map[string]announcement{}, refused: map[string]bool{}}
	c.current.Store((&version{}).describe())
	return c
}

// Load reads deploy/catalog.json, so that a gateway starts before any service.
func Load(path string, logger *slog.Logger) (*Catalog, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("HUB_CATALOG: %w", err)
	}
	var file tool.Catalog
	if err := json.Unmarshal(b, &file); err != nil {
		return nil, fmt.Errorf("HUB_CATALOG: %s: %w", path, err)
	}
	c := New(logger)
	for _, m := range file.Manifests {
		if err := c.Update(m); err != nil {
			return nil, fmt.Errorf("HUB_CATALOG: %s: %w", path, err)
		}
	}
	return c, nil
}

// Update takes a service's manifest. It refuses one that contradicts itself, claims what another
// service has or holds a schema that cannot be enforced, and keeps what it had.
func (c *Catalog) Update(m tool.Manifest) error {
	b, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("manifest of %s: %w", m.Service, err)
	}
	return c.apply(m.Service, b)
}

// apply is Update for a manifest in its wire form. The same bytes again are not decoded again; that
// they were refused is judged again, because what stood in their way may have gone.
func (c *Catalog) apply(name string, b []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	sum := sha256.Sum256(b)
	if known := c.owners[name]; known != nil && known.sum == sum {
		return nil // as nearly always: what is rendered and compiled stays
	}
	last := c.latest[name]
	if last.sum != sum {
		last = announcement{sum: sum}
		last.owner, last.err = compile(name, b)
		c.compiled++
		c.latest[name] = last
	}
	if last.err != nil {
		return fmt.Errorf("manifest of %s: %w", name, last.err)
	}
	next := maps.Clone(c.owners)
	next[name] = last.owner
	all, err := merge(next)
	if err != nil {
		return fmt.Errorf("manifest of %s: %w", name, err)
	}
	c.owners = next
	c.current.Store(all)
	return nil
}

// merge makes a version of the catalog of what the services own; nothing has two owners.
func merge(owners map[string]*owner) (*version, error) {
	all := &version{byName: map[string]*Entry{}, routes: map[string][]*Entry{}}
	taken := map[string]string{}
	claim := func(what, by string) error {
		if other, ok := taken[what]; ok && other != by {
			return fmt.Errorf("%s is claimed by %s and by %s", what, other, by)
		}
		taken[what] = by
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(owners)) {
		o := owners[name]
		if o.finds {
			all.finders = append(all.finders, name)
		}
		for _, e := range o.tools {
			if err := claim("tool "+e.Spec.Name, name); err != nil {
				return nil, err
			}
			all.byName[e.Spec.Name] = e
			all.ordered = append(all.ordered, e)
		}
		for _, e := range o.routes {
			if err := errors.Join(claim("route "+e.Spec.Name, name), claim("path "+tool.RouteRoot+e.elements[0], name)); err != nil {
				return nil, err
			}
			all.routes[e.elements[0]] = append(all.routes[e.elements[0]], e)
		}
		if n := o.notifications; n != nil {
			all.notifications = append(all.notifications, n)
			for _, t := range n.Types {
				if err := claim("notification "+t.Type, name); err != nil {
					return nil, err
				}
			}
		}
		for _, r := range o.console {
			if err := claim("console route "+r.Prefix, name); err != nil {
				return nil, err
			}
			all.console = append(all.console, r)
		}
	}
	slices.SortFunc(all.console, func(a, b *ConsoleRoute) int {
		return cmp.Or(len(b.Prefix)-len(a.Prefix), cmp.Compare(a.Prefix, b.Prefix))
	})
	slices.SortFunc(all.ordered, func(a, b *Entry) int {
		return cmp.Or(cmp.Compare(a.Spec.Position, b.Spec.Position), cmp.Compare(a.Spec.Name, b.Spec.Name))
	})
	return all.describe(), nil
}

// Entry returns a tool by name, or nil.
func (c *Catalog) Entry(name string) *Entry { return c.current.Load().byName[name] }

// Entries lists the tools in the order of their positions (CONTRACT.md 6.1).
func (c *Catalog) Entries() []*Entry { return c.current.Load().ordered }

// Owners lists the services that the catalog knows, sorted.
func (c *Catalog) Owners() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Keys(c.owners))
}

// Unknown is the refusal (E_NOT_FOUND) of a tool that does not exist; it names the one that was meant, or those that sound alike.
func (c *Catalog) Unknown(name string) error {
	var all, alike []string
	for _, e := range c.Entries() {
		all = append(all, e.Spec.Name)
		for _, word := range strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return r == '_' || r == '-' || r == ' ' }) {
			if len(word) > 3 && strings.Contains(e.Spec.Name, word) {
				alike = append(alike, e.Spec.Name)
				break
			}
		}
	}
	if nearest := schema.Nearest(name, all); nearest != "" {
		alike = []string{nearest}
	}
	if len(alike) > 0 {
		return fault.New(fault.NotFound,
			"There is no tool %q. Did you mean %s? GET /api/tools lists all.", Shown(name), strings.Join(alike, ", "))
	}
	return fault.New(fault.NotFound, "There is no tool %q. GET /api/tools lists the tools.", Shown(name))
}

// Shown is a text of somebody else's as a message quotes it: printable, and at most 64 characters of it.
func Shown(s string) string { return text.Shown(s, 64) }
