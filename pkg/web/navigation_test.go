package web_test

import (
	"fmt"
	"runtime"
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
				tab.Items = append(
					tab.Items,
					web.Item{Name: strings.Repeat("나", long) + fmt.Sprint(g, "-", i), Href: fmt.Sprintf("/g%d/%d", g, i)},
				)
			}
			tabs = append(tabs, tab)
		}
		tabs = append(
			tabs,
			web.Tab{
				Name: "Here",
				Items: []web.Item{
					{Name: "Elsewhere", Href: "https://x.example"},
					{Name: "This", Href: "/page"},
					{Name: "Other", Href: "/other"},
				},
			},
		)
		nav := web.EncodeNavigation(tabs, "/page")
		if len(nav) > 16<<10 {
			t.Errorf("%d: %d bytes", long, len(nav))
		}
		page := d.do(t, user, "GET", "/page", "", web.NavigationHeader, nav).Body.String()
		for _, want := range []string{`<a href="/page" aria-current="true"><bdi>Here</bdi>`,
			`<a href="/page" aria-current="page"><bdi>This</bdi>`,
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

// TestMenusLeaveTheConsolesOwn: no menu, however long its links and wherever they lead, hides the sidebar of a page that is the
// console's own, or passes for it.
func TestMenusLeaveTheConsolesOwn(t *testing.T) {
	d := newDesk(t)
	own := web.Tab{
		Slug:  "admin",
		Name:  "Admin",
		Items: []web.Item{{Name: "Overview", Href: "/page"}, {Name: "Users", Href: "/page/users"}, {Name: "Menus", Href: "/page/menus"}},
	}
	tabs := []web.Tab{own}
	for n := range 20 {
		href := fmt.Sprintf("/x?%d=", n) + strings.Repeat("x", 1990)
		if n == 3 {
			href = "/short"
		}
		tabs = append(
			tabs,
			web.Tab{
				Slug:  fmt.Sprint("menu-", n),
				Name:  "M",
				Menu:  true,
				Items: []web.Item{{Name: "M", Href: href}, {Name: "Evil", Href: "/page/"}, {Name: "Evil", Href: "/page/users/"}},
			},
		)
	}
	for _, path := range []string{"/page", "/page/users", "/page/users/5"} {
		nav := web.EncodeNavigation(tabs, path)
		if len(nav) > 16<<10 {
			t.Errorf("%s: %d bytes", path, len(nav))
		}
		page := d.do(t, user, "GET", "/page", "", web.NavigationHeader, nav).Body.String()
		for _, want := range []string{`<bdi>Overview</bdi>`, `<bdi>Users</bdi>`, `<bdi>Menus</bdi>`, `<a href="/short">`} {
			if !strings.Contains(page, want) {
				t.Errorf("%s: the page lacks %s", path, want)
			}
		}
		if strings.Contains(page, "Evil") {
			t.Errorf("%s: a menu has the page's sidebar", path)
		}
	}
	// Without cuts, too.
	nav := web.EncodeNavigation(
		[]web.Tab{
			own,
			{Slug: "menu-x", Name: "M", Menu: true, Items: []web.Item{{Name: "Evil", Href: "/page/"}, {Name: "Evil", Href: "/page"}}},
		},
		"/page",
	)
	if page := d.do(
		t,
		user,
		"GET",
		"/page",
		"",
		web.NavigationHeader,
		nav,
	).Body.String(); strings.Contains(page, "Evil") ||
		!strings.Contains(page, `<a href="/page" aria-current="page"><bdi>Overview</bdi>`) {
		t.Error("a menu has the page's sidebar")
	}
}

// TestNavigationIsCheap: each page of everybody pays for it, so menus as long as they may be must not cost more than short ones.
func TestNavigationIsCheap(t *testing.T) {
	tabs := []web.Tab{{Slug: "system", Name: "System", Items: []web.Item{{Name: "Drafts", Href: "/drafts"}}}}
	for g := range 20 {
		tab := web.Tab{Slug: fmt.Sprint("menu-", g), Name: "M", Menu: true}
		for i := range 50 {
			tab.Items = append(tab.Items, web.Item{Name: "M", Href: fmt.Sprint("/p/", g, "/", i, "?", strings.Repeat("&", 1900))})
		}
		tabs = append(tabs, tab)
	}
	for _, path := range []string{"/drafts", "/p/7/7", "/nowhere"} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		web.EncodeNavigation(tabs, path)
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > 8<<20 {
			t.Errorf("%s takes %d bytes", path, used)
		}
	}
}
