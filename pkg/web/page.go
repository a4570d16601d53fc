package web

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/web/i18n"
)

// Page is what a handler hands to the layout.
type Page struct {
	// Title is the heading and, with the product's name, the window's title.
	Title string
	// Lead is a line below the heading.
	Lead string
	// Crumbs lead up from the page.
	Crumbs []Link
	// Tab is the slug of the active tab; empty finds it by the path.
	Tab string
	// Plain pages have no navigation: log-in, consent, unsubscribe.
	Plain bool
	// Wide pages use the whole window.
	Wide bool
	// Desk pages are one tool that uses the whole window: they have no sidebar, and a body of class desk, which the rules of
	// their room hold on to. What a page looks like must not wait for an element that comes later: it would jump.
	Desk bool
	// Status of the answer; 0 means 200.
	Status int
	// FormActions are origins beside ours that forms of the page may end at, also by a redirect.
	FormActions []string
	// Search stands in the field of the header, on the page of what was searched for.
	Search string
	// Keys are shortcuts of the page, for the help that `?` opens.
	Keys []Key
	// Data is the page's own.
	Data any
}

// Link is a text that leads somewhere.
type Link struct{ Text, Href string }

// Key is a keyboard shortcut.
type Key struct{ Press, Does string }

// pageView is what templates see.
type pageView struct {
	Page
	User     User
	SignedIn bool
	Tabs     []Tab
	Path     string
	// Here is where a form that comes back to this page leads; empty for a page that is the same for everybody.
	Here      string
	Flash     Flash
	RequestID string
}

// Items are those of the active tab, by what they stand under: the sidebar.
func (v pageView) Items() []itemGroup {
	if v.Desk {
		return nil
	}
	for _, t := range v.Tabs {
		if t.Active {
			return groupsOf(t.Items)
		}
	}
	return nil
}

// User is who is signed in.
type User struct {
	// ID is stable; Session names the session without being its secret.
	ID, Email, Name, Session string
	Roles                    []string
}

// Is tells whether the user has the role.
func (u User) Is(role string) bool { return slices.Contains(u.Roles, role) }

// Initial stands for the user where there is no room for a name.
func (u User) Initial() string {
	for _, r := range u.Display() {
		return string(unicode.ToUpper(r))
	}
	return "?"
}

// Display is the name, or the address of a user without one.
func (u User) Display() string { return cmp.Or(u.Name, u.Email) }

// UserOf returns the user of the session, as the gateway's token says; false for a visitor,
// an agent or a neighbour.
func UserOf(ctx context.Context) (User, bool) {
	c := caller.From(ctx)
	if c.Kind != caller.User {
		return User{}, false
	}
	return User{ID: c.HubUser, Email: c.Email, Name: c.Name, Session: c.CredentialID, Roles: c.Roles}, true
}

// Tab is a group of pages in the header.
type Tab struct {
	Slug  string `json:"s"`
	Name  string `json:"n"`
	Icon  string `json:"i,omitempty"`
	Items []Item `json:"m"`
	// Menu tells that the tab is none of the console's own, which go before it wherever both would do.
	Menu bool `json:"d,omitempty"`
	// Active is set for the page that is rendered.
	Active bool `json:"-"`
}

// Href is where the tab leads: to its first page, of this site if there is one.
func (t Tab) Href() string {
	for _, i := range t.Items {
		if !i.External() {
			return i.Href
		}
	}
	if len(t.Items) > 0 {
		return t.Items[0].Href
	}
	return "/"
}

// External tells whether the tab leads to another site.
func (t Tab) External() bool { return Item{Href: t.Href()}.External() }

// Item is a page in the sidebar.
type Item struct {
	Name   string `json:"n,omitempty"`
	Href   string `json:"h"`
	Icon   string `json:"i,omitempty"`
	Active bool   `json:"-"`
	// Group is what the item stands under, with those beside it of the same; empty for none.
	Group string `json:"-"`
}

// itemGroup are items that stand under one name; empty for none.
type itemGroup struct {
	Name  string
	Items []Item
}

// groupsOf are the items in their order, put together by what they stand under.
func groupsOf(items []Item) (groups []itemGroup) {
	for _, i := range items {
		if last := len(groups) - 1; last < 0 || groups[last].Name != i.Group {
			groups = append(groups, itemGroup{Name: i.Group})
		}
		last := &groups[len(groups)-1]
		last.Items = append(last.Items, i)
	}
	return groups
}

// External tells whether the item leads to another site.
func (i Item) External() bool { return !strings.HasPrefix(i.Href, "/") }

// NavigationHeader carries the tabs that the user sees, from the gateway to the services. A service that
// answers with it has changed the menus.
const NavigationHeader = "Hub-Navigation"

// maxNavigation keeps the header well below what a listener takes.
const maxNavigation = 16 << 10

// EncodeNavigation is the value of NavigationHeader for the page at path; empty when there is nothing to
// say. Of tabs beyond what fits, those that the page is not in keep where they lead; then items go from the end of its
// own, if that is made of menus, then tabs of menus, the largest first. What is the console's own goes last.
func EncodeNavigation(tabs []Tab, path string) string {
	if fitsHeader(tabs) {
		return encodeTabs(tabs)
	}
	active, _ := whereIs(tabs, path)
	short := make([]Tab, len(tabs))
	for n, t := range tabs {
		if short[n] = t; n != active && len(t.Items) > 0 {
			short[n].Items = []Item{{Href: t.Href()}}
		}
	}
	trim := func() {
		for t := &short[active]; len(t.Items) > 1 && !fitsHeader(short); {
			t.Items = t.Items[:len(t.Items)-1-len(t.Items)/8]
		}
	}
	if active >= 0 && short[active].Menu {
		trim()
	}
	for !fitsHeader(short) {
		largest := -1
		for n, t := range short {
			if t.Menu && n != active && (largest < 0 || length(short[n:n+1]) > length(short[largest:largest+1])) {
				largest = n
			}
		}
		if largest < 0 {
			break
		}
		short = slices.Delete(short, largest, largest+1)
		if largest < active {
			active--
		}
	}
	if active >= 0 {
		trim()
	}
	for !fitsHeader(short) {
		short = short[:len(short)-1]
	}
	return encodeTabs(short)
}

// fitsHeader tells whether the header has room for tabs. Of too many of them, which every page would pay for, it encodes none.
func fitsHeader(tabs []Tab) bool {
	return length(tabs) <= maxNavigation && len(encodeTabs(tabs)) <= maxNavigation
}

// length is that of the texts of tabs, which are longer when they are encoded.
func length(tabs []Tab) (n int) {
	for _, t := range tabs {
		n += len(t.Slug) + len(t.Name) + len(t.Icon)
		for _, i := range t.Items {
			n += len(i.Name) + len(i.Icon) + len(i.Href)
		}
	}
	return n
}

func encodeTabs(tabs []Tab) string {
	b, err := json.Marshal(tabs)
	if err != nil || len(tabs) == 0 {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// navigationOf reads the tabs and marks where the page is.
func navigationOf(r *http.Request, p Page) []Tab {
	b, err := base64.RawURLEncoding.DecodeString(r.Header.Get(NavigationHeader))
	if err != nil || len(b) == 0 {
		return nil
	}
	var tabs []Tab
	if json.Unmarshal(b, &tabs) != nil {
		return nil
	}
	return activated(tabs, r.URL.Path, p)
}

// NamesIn are tabs with the names of the console's own in the language of who is answered. Those of menus are as their administrators
// have written them.
func NamesIn(ctx context.Context, tabs []Tab) []Tab {
	say := i18n.From(ctx)
	named := slices.Clone(tabs)
	for n := range named {
		t := &named[n]
		if t.Menu {
			continue
		}
		t.Name, t.Items = say.Text(t.Name), slices.Clone(t.Items)
		for i := range t.Items {
			t.Items[i].Name = say.Text(t.Items[i].Name)
		}
	}
	return named
}

// activated marks which of the tabs the page at path is in.
func activated(tabs []Tab, path string, p Page) []Tab {
	tab, item := whereIs(tabs, path)
	for i, t := range tabs {
		if p.Tab != "" && t.Slug == p.Tab && tab < 0 {
			tab = i
		}
	}
	if tab >= 0 {
		tabs[tab].Active = true
		if item >= 0 {
			tabs[tab].Items[item].Active = true
		}
	}
	return tabs
}

// whereIs finds the longest address that the path lies below; -1 for none. A page that the console's own tabs have is in
// no other, whatever menus lead to.
func whereIs(tabs []Tab, path string) (tab, item int) {
	tab, item, longest := -1, -1, 0
	for i, t := range tabs {
		if t.Menu && tab >= 0 && !tabs[tab].Menu {
			continue
		}
		for j, it := range t.Items {
			if Below(path, it.Href) && len(it.Href) > longest {
				tab, item, longest = i, j, len(it.Href)
			}
		}
	}
	return tab, item
}

// Below tells whether path is prefix or lies below it.
func Below(path, prefix string) bool {
	rest, ok := strings.CutPrefix(path, prefix)
	return ok && (rest == "" || rest[0] == '/' || strings.HasSuffix(prefix, "/"))
}

// maxNext bounds the address that a form goes on to, in bytes.
const maxNext = 2048

// LocalPath is next when it leads to a page of this console, and fallback otherwise: where a
// log-in goes on to must not be somebody else's site.
func LocalPath(next, fallback string) string {
	if len(next) > maxNext || !strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") {
		return fallback
	}
	// Browsers take a backslash for a slash, and drop tabs and line breaks.
	if strings.ContainsFunc(next, func(r rune) bool { return r == '\\' || r < 0x21 || r == 0x7f || r == unicode.ReplacementChar }) {
		return fallback
	}
	u, err := url.Parse(next)
	if err != nil || u.IsAbs() || u.Host != "" || u.User != nil || u.Opaque != "" || strings.HasPrefix(u.Path, "//") ||
		strings.Contains(u.Path, "\\") {
		return fallback
	}
	return next
}

// Address is the client's, as the gateway found it.
func Address(r *http.Request) string { return r.Header.Get("X-Forwarded-For") }
