package console

import (
	"slices"
	"sort"
	"strings"

	"hub.internal/pkg/web"
	"hub.internal/services/gateway/catalog"
	"hub.internal/services/gateway/reference"
)

// lastPosition is the position behind all that a manifest names.
const lastPosition = 1 << 20

// navigation lists the tabs that a user with these roles may see. System and Admin come
// first.
func navigation(routes []*catalog.ConsoleRoute, roles []string) []web.Tab {
	type placed struct {
		web.Item
		position int
	}
	tabs := map[string][]placed{}
	for _, r := range routes {
		if r.Tab != "" && r.Title != "" && r.Allows(roles) {
			tabs[r.Tab] = append(tabs[r.Tab], placed{web.Item{Name: r.Title, Href: r.Prefix}, r.Position})
		}
	}
	if admin := tabs["Admin"]; admin != nil { // for those who issue keys and register apps
		tabs["Admin"] = append(admin, placed{web.Item{Name: "API reference", Href: reference.Path}, lastPosition})
	}
	rank := func(name string) int {
		if i := slices.Index([]string{"System", "Admin"}, name); i >= 0 {
			return i
		}
		return 2
	}
	var out []web.Tab
	for name, items := range tabs {
		sort.Slice(items, func(i, j int) bool {
			if items[i].position != items[j].position {
				return items[i].position < items[j].position
			}
			return items[i].Href < items[j].Href
		})
		t := web.Tab{Slug: strings.ToLower(name), Name: name}
		for _, it := range items {
			t.Items = append(t.Items, it.Item)
		}
		out = append(out, t)
	}
	sort.Slice(out, func(i, j int) bool {
		if a, b := rank(out[i].Name), rank(out[j].Name); a != b {
			return a < b
		}
		return out[i].Name < out[j].Name
	})
	return out
}
