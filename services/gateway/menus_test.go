package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-kit/kit/sd"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/caller/callertest"
	"hub.internal/pkg/hop"
	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/hubtest/contract"
	"hub.internal/pkg/remote"
	"hub.internal/pkg/web"
	"hub.internal/services/gateway"
)

// TestMenus: the tabs that admin keeps are on each page of whoever has a role, on the gateway's own too; what changes is seen at once
// by whoever has changed it; and an admin service that is away, or slow, costs no page anything.
func TestMenus(t *testing.T) {
	var name atomic.Value
	var away atomic.Bool
	name.Store("Reports")
	hold := make(chan struct{})
	close(hold)
	var slow atomic.Value
	slow.Store(hold)
	m := gateway.NewMenus(func(ctx context.Context) ([]web.Tab, error) {
		if away.Load() {
			return nil, errors.New("admin is away")
		}
		select {
		case <-slow.Load().(chan struct{}):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		return []web.Tab{{Slug: "menu-reports", Name: name.Load().(string), Items: []web.Item{{Name: "Weekly", Href: "/p/reports/weekly"}}}}, nil
	}, slog.New(slog.DiscardHandler))
	h := newHouse(t, func(g *gateway.Gateway) { g.Console.Menus = m })
	ctx, stop := context.WithCancel(t.Context())
	followed := make(chan error, 1)
	go func() { followed <- m.Follow(ctx) }()
	defer func() {
		stop()
		if err := <-followed; err != nil {
			t.Error(err)
		}
	}()
	shows := func(path, who, tab string) bool {
		return strings.Contains(h.visit(t, "GET", path, "", with(session(who), asPerson)...).body, `<bdi>`+tab+`</bdi>`)
	}
	hubtest.Eventually(t, "the tab is there", func() bool { return shows("/nowhere", reviewerSession, "Reports") })
	for _, tab := range []string{"System", "Reports"} {
		if !shows("/p/none", adminSession, tab) {
			t.Errorf("the page of nothing lacks the tab %s", tab)
		}
	}
	if r := h.visit(t, "GET", "/nowhere", "", asPerson...); r.status != 404 || strings.Contains(r.body, "Reports") || strings.Contains(r.body, "System") {
		t.Errorf("a stranger sees tabs: %d %s", r.status, r.body)
	}
	if r := h.visit(t, "GET", "/nowhere", "", with(session(endedSession), asPerson)...); r.status != 404 || strings.Contains(r.body, "Reports") {
		t.Errorf("an ended session sees tabs: %d %s", r.status, r.body)
	}
	// Whoever changes a menu sees it on the next page.
	name.Store("Numbers")
	if r := h.visit(t, "POST", "/drafts/menus", "", with(session(reviewerSession), asPerson)...); r.status != 200 || r.header.Get(web.NavigationHeader) != "" {
		t.Errorf("%d %v", r.status, r.header)
	}
	if !shows("/nowhere", reviewerSession, "Numbers") {
		t.Error("the change is not seen at once")
	}
	// Away: the menus known before are shown.
	away.Store(true)
	h.visit(t, "POST", "/drafts/menus", "", with(session(reviewerSession), asPerson)...)
	if !shows("/nowhere", reviewerSession, "Numbers") {
		t.Error("the menus are lost while admin is away")
	}
	// Slow: nobody waits, but whoever has just changed something, and not for long.
	away.Store(false)
	slow.Store(make(chan struct{}))
	began := time.Now()
	if !shows("/nowhere", reviewerSession, "Numbers") {
		t.Error("the menus are lost while admin is slow")
	}
	h.visit(t, "POST", "/drafts/menus", "", with(session(reviewerSession), asPerson)...)
	if took := time.Since(began); took > hubtest.Patience/2 {
		t.Errorf("two pages took %s", took)
	}
}

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
	hrefs := []string{"javascript:alert(1)", "//evil.example", `/\evil.example`, "data:text/html,x", "http://plain.example", "", "drafts", "/p/a/b", "https://ok.example/x"}
	lie := contract.Fake(t, "admin", hop.Declaration{Path: "/internal/menus/navigation", Takes: caller.Neighbour(caller.Gateway)},
		func(context.Context, struct{}) (menuGroups, error) {
			g := menuGroup{Slug: "s", Name: "N"}
			for _, href := range hrefs {
				g.Items = append(g.Items, menuItem{Name: "x", Href: href})
			}
			many := menuGroup{Slug: "many", Name: "Many"}
			for range 60 {
				many.Items = append(many.Items, menuItem{Name: "x", Href: "/p/a/b"})
			}
			return menuGroups{append([]menuGroup{g, {Slug: "bad", Name: "Bad", Items: []menuItem{{Name: "x", Href: "javascript:x"}}}}, slices.Repeat([]menuGroup{many}, 30)...)}, nil
		})
	client := remote.New(remote.Options{Service: "admin", Instancer: sd.FixedInstancer{contract.Serve(t, "admin", lie)},
		Keys: callertest.Keys(t, caller.Gateway), Logger: slog.New(slog.DiscardHandler), Patience: hubtest.Patience})
	defer client.Close()
	tabs, err := gateway.AskAdminForMenus(client)(t.Context())
	if len(tabs) != 19 || len(tabs[18].Items) != 50 {
		t.Fatalf("%d groups, %v", len(tabs), err)
	}
	tabs = tabs[:1]
	if err != nil || fmt.Sprint(tabs) != fmt.Sprint([]web.Tab{{Slug: "menu-s", Name: "N", Menu: true, Items: []web.Item{{Name: "x", Href: "/p/a/b"}, {Name: "x", Href: "https://ok.example/x"}}}}) {
		t.Errorf("%v, %v", tabs, err)
	}
}
