package admin

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"hub.internal/pkg/tool"
)

// LoadCatalog reads deploy/catalog.json, for the built-in groups and for who records what in the audit log: what the services
// declare is said there once.
func LoadCatalog(path string) (c tool.Catalog, err error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return c, fmt.Errorf("HUB_CATALOG: %w", err)
	}
	if err := json.Unmarshal(b, &c); err != nil {
		return c, fmt.Errorf("HUB_CATALOG: %s: %w", path, err)
	}
	return c, nil
}

// Fixed makes the built-in groups of what services declare of their pages: System, Admin, and what
// another one may add.
func Fixed(manifests []tool.Manifest) []Group {
	groups := []Group{{Slug: "system", Name: "System", Fixed: true}, {Slug: "admin", Name: "Admin", Fixed: true}}
	for _, m := range manifests {
		for _, r := range m.Console {
			if r.Tab == "" || r.Title == "" {
				continue
			}
			slug := strings.ToLower(r.Tab)
			at := slices.IndexFunc(groups, func(g Group) bool { return g.Slug == slug })
			if at < 0 {
				at = len(groups)
				groups = append(groups, Group{Slug: slug, Name: r.Tab, Fixed: true})
			}
			groups[at].Items = append(groups[at].Items, Item{Slug: strings.ReplaceAll(strings.TrimPrefix(r.Prefix, "/"), "/", "-"),
				Name: r.Title, Href: &r.Prefix, Position: int64(r.Position)})
		}
	}
	for n := range groups {
		groups[n].Position = int64(n)
		slices.SortFunc(groups[n].Items, func(a, b Item) int {
			if a.Position != b.Position {
				return int(a.Position - b.Position)
			}
			return strings.Compare(*a.Href, *b.Href)
		})
	}
	return groups
}
