package console_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"

	"github.com/go-kit/kit/sd"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/caller/callertest"
	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/hubtest/contract"
	"hub.internal/pkg/remote"
	"hub.internal/pkg/rpc"
	"hub.internal/pkg/web"
	"hub.internal/services/gateway/console"
)

type menuItem struct {
	Name string `json:"name"`
	Icon string `json:"icon"`
	Href string `json:"href"`
}

type menuGroup struct {
	Slug  string     `json:"slug"`
	Name  string     `json:"name"`
	Icon  string     `json:"icon"`
	Items []menuItem `json:"items"`
}

type menuGroups struct {
	Groups []menuGroup `json:"groups"`
}

// TestMenusThatLie: an admin service that answers links which run or lead astray gets none of them onto a page.
func TestMenusThatLie(t *testing.T) {
	hrefs := []string{
		"javascript:alert(1)",
		"//evil.example",
		`/\evil.example`,
		"data:text/html,x",
		"http://plain.example",
		"",
		"drafts",
		"/p/a/b",
		"https://ok.example/x",
	}
	lie := contract.Fake(t, "admin", rpc.Declaration{Path: "/internal/menus/navigation", Takes: caller.Neighbour(caller.Gateway)},
		func(context.Context, struct{}) (menuGroups, error) {
			g := menuGroup{Slug: "s", Name: "N"}
			for _, href := range hrefs {
				g.Items = append(g.Items, menuItem{Name: "x", Href: href})
			}
			many := menuGroup{Slug: "many", Name: "Many"}
			for range 60 {
				many.Items = append(many.Items, menuItem{Name: "x", Href: "/p/a/b"})
			}
			return menuGroups{
				append(
					[]menuGroup{g, {Slug: "bad", Name: "Bad", Items: []menuItem{{Name: "x", Href: "javascript:x"}}}},
					slices.Repeat([]menuGroup{many}, 30)...),
			}, nil
		})
	client := remote.New(remote.Options{Service: "admin", Instancer: sd.FixedInstancer{contract.Serve(t, "admin", lie)},
		Keys: callertest.Keys(t, caller.Gateway), Logger: slog.New(slog.DiscardHandler), Patience: hubtest.Patience})
	defer client.Close()
	tabs, err := console.AskAdminForMenus(client)(t.Context())
	if len(tabs) != 19 || len(tabs[18].Items) != 50 {
		t.Fatalf("%d groups, %v", len(tabs), err)
	}
	tabs = tabs[:1]
	if err != nil ||
		fmt.Sprint(
			tabs,
		) != fmt.Sprint(
			[]web.Tab{
				{
					Slug:  "menu-s",
					Name:  "N",
					Menu:  true,
					Items: []web.Item{{Name: "x", Href: "/p/a/b"}, {Name: "x", Href: "https://ok.example/x"}},
				},
			},
		) {
		t.Errorf("%v, %v", tabs, err)
	}
}
