package web_test

import (
	"fmt"
	"strings"
	"testing"

	"hub.internal/pkg/web"
)

// TestNavigationFits: however much the menus hold, the header stays small, the tabs stay, and the page's own comes first.
func TestNavigationFits(t *testing.T) {
	d := newDesk(t)
	for _, long := range []int{1, 10, 50} {
		var tabs []web.Tab
		for g := range 22 {
			tab := web.Tab{Slug: fmt.Sprint("g", g), Name: strings.Repeat("가", long) + fmt.Sprint(g)}
			for i := range 50 {
				tab.Items = append(tab.Items, web.Item{Name: strings.Repeat("나", long) + fmt.Sprint(g, "-", i), Href: fmt.Sprintf("/g%d/%d", g, i)})
			}
			tabs = append(tabs, tab)
		}
		tabs = append(tabs, web.Tab{Name: "Here", Items: []web.Item{{Name: "Elsewhere", Href: "https://x.example"}, {Name: "This", Href: "/page"}, {Name: "Other", Href: "/other"}}})
		nav := web.EncodeNavigation(tabs, "/page")
		if len(nav) > 16<<10 {
			t.Errorf("%d: %d bytes", long, len(nav))
		}
		page := d.do(t, user, "GET", "/page", "", web.NavigationHeader, nav).Body.String()
		for _, want := range []string{`<a href="/page" aria-current="true"><bdi>Here</bdi>`, `<a href="/page" aria-current="page"><bdi>This</bdi>`,
			`<a href="https://x.example" rel="noopener noreferrer"><bdi>Elsewhere</bdi>`, `<a href="/g21/0">`} {
			if !strings.Contains(page, want) {
				t.Errorf("%d: the page lacks %s", long, want)
			}
		}
	}
	if web.EncodeNavigation(nil, "/") != "" {
		t.Error("no tabs are something")
	}
}
