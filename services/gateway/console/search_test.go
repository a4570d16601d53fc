package console_test

import (
	"fmt"
	"maps"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"hub.internal/pkg/web"
	"hub.internal/services/gateway/console"
)

// TestFound: hits of a kind stand together, what is no page is left out, a service cannot fill the page, and one hit is gone to
// unless it is on another site or there may be others.
func TestFound(t *testing.T) {
	of := func(kind string, hrefs ...string) (f web.FindResponse) {
		for _, href := range hrefs {
			f.Hits = append(f.Hits, web.Hit{Kind: kind, Title: href, Href: href})
		}
		return f
	}
	many := of("Mails")
	for i := range 1000 {
		many.Hits = append(many.Hits, web.Hit{Kind: "Mails", Href: fmt.Sprintf("/drafts/%d", i)})
	}
	many.More = []string{"Mails"}
	for name, c := range map[string]struct {
		away  []string
		found []web.FindResponse
		kinds map[string]int
		more  []string
		to    string
	}{
		"nothing":         {nil, []web.FindResponse{{}}, map[string]int{}, nil, ""},
		"one":             {nil, []web.FindResponse{{}, of("Orders", "/admin/orders/1")}, map[string]int{"Orders": 1}, nil, "/admin/orders/1"},
		"one, not all":    {[]string{"auth"}, []web.FindResponse{of("Orders", "/admin/orders/1")}, map[string]int{"Orders": 1}, nil, ""},
		"two of one kind": {nil, []web.FindResponse{of("Drafts", "/drafts/1"), of("Drafts", "/drafts/2")}, map[string]int{"Drafts": 2}, nil, ""},
		"one of two kinds": {nil, []web.FindResponse{of("Drafts", "/drafts/1"), of("Apps", "/x")},
			map[string]int{"Drafts": 1, "Apps": 1}, nil, ""},
		"another site": {nil, []web.FindResponse{of("Pages", "https://wiki.example/x")}, map[string]int{"Pages": 1}, nil, ""},
		"no pages": {nil, []web.FindResponse{of("Pages", "javascript:alert(1)", "//evil.example", "http://evil.example", `/\evil.example`, "")},
			map[string]int{}, nil, ""},
		"too many": {nil, []web.FindResponse{many}, map[string]int{"Mails": 100}, []string{"Mails"}, ""},
	} {
		kinds, more, to := console.Found(c.away, c.found...)
		if !maps.Equal(kinds, c.kinds) || !slices.Equal(more, c.more) || to != c.to {
			t.Errorf("%s: %v, more of %v, to %q", name, kinds, more, to)
		}
	}
}

// TestPagesAreFoundInEachLanguage: a page is found by its name in the reader's language and in English, and one of a menu by its own.
func TestPagesAreFoundInEachLanguage(t *testing.T) {
	tabs := []web.Tab{{Name: "System", Items: []web.Item{{Name: "Drafts", Href: "/drafts"}, {Name: "Your account", Href: "/account"}}},
		{Name: "Drafts", Menu: true, Items: []web.Item{{Name: "Orders", Href: "/p/x"}}}}
	for _, c := range []struct{ language, text, want string }{
		{"en", "drafts", "[Drafts of System, Orders of Drafts]"}, {"en", "초안", "[]"}, {"en", "your", "[Your account of System]"},
		{"ko", "초안", "[초안 of 시스템]"}, {"ko", "DRAFT", "[초안 of 시스템, Orders of Drafts]"}, {"ko", "시스템", "[초안 of 시스템, 내 계정 of 시스템]"},
	} {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/search", nil)
		r.Header.Set("Accept-Language", c.language)
		hits, err := console.PagesNamed(r, tabs, c.text)
		if err != nil {
			t.Fatal(err)
		}
		var found []string
		for _, h := range hits {
			found = append(found, h.Title+" of "+h.Note)
		}
		if got := "[" + strings.Join(found, ", ") + "]"; got != c.want {
			t.Errorf("%s: %q finds %s, want %s", c.language, c.text, got, c.want)
		}
	}
}
