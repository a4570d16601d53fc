package console

import (
	"cmp"
	"slices"
	"strings"

	"hub.internal/pkg/web"
	"hub.internal/pkg/web/i18n"
	"hub.internal/services/gateway/catalog"
	"hub.internal/services/gateway/reference"
)

// firstTabs are those that come before all others, which are ordered by name.
var firstTabs = []string{"Admin", "System"}

// navigation lists the tabs that a user with these roles may see, with their pages in the order of the positions that manifests
// give them. The API reference is the last page of Admin: it is for those who issue keys and register apps.
func navigation(routes []*catalog.ConsoleRoute, roles []string) []web.Tab {
	shown := slices.DeleteFunc(slices.Clone(routes), func(r *catalog.ConsoleRoute) bool {
		return r.Tab == "" || r.Title == "" || !r.Allows(roles)
	})
	slices.SortFunc(shown, func(a, b *catalog.ConsoleRoute) int {
		return cmp.Or(cmp.Compare(a.Position, b.Position), cmp.Compare(a.Prefix, b.Prefix))
	})
	var tabs []web.Tab
	for _, r := range shown {
		i := slices.IndexFunc(tabs, func(t web.Tab) bool { return t.Name == r.Tab })
		if i < 0 {
			i, tabs = len(tabs), append(tabs, web.Tab{Slug: strings.ToLower(r.Tab), Name: r.Tab})
		}
		tabs[i].Items = append(tabs[i].Items, web.Item{Name: r.Title, Href: r.Prefix})
	}
	if i := slices.IndexFunc(tabs, func(t web.Tab) bool { return t.Name == "Admin" }); i >= 0 {
		tabs[i].Items = append(tabs[i].Items, web.Item{Name: i18n.N("API reference"), Href: reference.Path})
	}
	slices.SortFunc(tabs, func(a, b web.Tab) int {
		return cmp.Or(slices.Index(firstTabs, b.Name)-slices.Index(firstTabs, a.Name), cmp.Compare(a.Name, b.Name))
	})
	return tabs
}
