package console

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/text"
	"hub.internal/pkg/web"
	"hub.internal/pkg/web/i18n"
	"hub.internal/services/auth"
)

const (
	// admin is the role that the pages of keys, apps and users want.
	admin = auth.Admin
	// maxSearch bounds what is searched for, in bytes.
	maxSearch = 200
	// everything is the choice that leaves out nothing.
	everything = "all"
)

// listState is what a page of a list shows, as its address says: search term, filter and keyset position.
type listState struct {
	path, search, show, after string
}

// listStateOf reads the address of a list's page; without one of the choices it shows the first.
func listStateOf(r *http.Request, path string, choices ...string) listState {
	q := r.URL.Query()
	p := listState{path: path, search: queryText(strings.TrimSpace(q.Get("q"))), show: q.Get("show"), after: queryText(q.Get("after"))}
	if !slices.Contains(choices, p.show) {
		p.show = choices[0]
	}
	return p
}

// queryText is a text of an address as it may be searched for and kept.
// Storable replaces what PostgreSQL does not store (NUL, broken UTF-8); an address can hold both.
func queryText(s string) string { return text.HeadBytes(text.Storable(s), maxSearch) }

// String is the address of the page, without what is empty.
// Encode sorts by name, so one state has one address.
func (p listState) String() string {
	v := url.Values{}
	for name, text := range map[string]string{"q": p.search, "show": p.show, "after": p.after} {
		if text != "" {
			v.Set(name, text)
		}
	}
	return p.path + "?" + v.Encode()
}

// finder stands above the list. choices are values and texts.
// A choice keeps the search term and drops the keyset position, which is one in another list.
func (p listState) finder(label, which string, add web.Link, choices ...[2]string) web.Finder {
	f := web.Finder{Action: p.path, Label: label, Value: p.search, Hidden: map[string]string{"show": p.show},
		Clear: listState{path: p.path, show: p.show}.String(), Which: which, Add: add}
	for _, c := range choices {
		f.Choices = append(f.Choices, web.Choice{
			Text: c[1], Href: listState{path: p.path, search: p.search, show: c[0]}.String(), Active: c[0] == p.show, Count: -1,
		})
	}
	return f
}

// pager leads on to what comes after next, and back to the first page.
// Keyset pagination knows no page before, only the first one.
func (p listState) pager(ctx context.Context, label, next string) web.Pager {
	pager := web.Pager{Label: label, Key: "n"}
	if p.after != "" {
		pager.Back = web.Link{Text: i18n.T(ctx, "First page"), Href: listState{path: p.path, search: p.search, show: p.show}.String()}
	}
	if next != "" {
		pager.Next = web.Link{Text: i18n.T(ctx, "Next page"), Href: listState{p.path, p.search, p.show, next}.String()}
	}
	return pager
}

// listKeys are the shortcuts of a list, of which one is a row.
func listKeys(ctx context.Context, one string) []web.Key {
	return []web.Key{{Press: "j", Does: i18n.T(ctx, "Next %s", one)}, {Press: "k", Does: i18n.T(ctx, "The %s before", one)},
		{Press: "o", Does: i18n.T(ctx, "Open the %s", one)}, {Press: "n", Does: i18n.T(ctx, "Next page")}}
}

// redirect leads to a page and tells there what came of what was asked for, E_CONFLICT and E_VALIDATION too.
func redirect(w http.ResponseWriter, r *http.Request, path, done string, err error) error {
	if fault.Is(err, fault.Validation) {
		err = fault.New(fault.Validation, "%s", refusalText(err))
	}
	return web.Back(w, r, path, done, err, fault.Conflict, fault.Validation)
}

// refusalText is a refusal in words.
// It names the field where there is one: the page that shows the text has no form to mark.
func refusalText(err error) string {
	for field, problem := range web.Problems(err) {
		if field != "" {
			return strings.ToUpper(field[:1]) + field[1:] + ": " + problem
		}
	}
	return fault.From(err).Message
}
