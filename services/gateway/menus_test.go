package gateway_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/web"
	"hub.internal/services/gateway"
	"hub.internal/services/gateway/console"
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
	m := console.NewMenus(func(ctx context.Context) ([]web.Tab, error) {
		if away.Load() {
			return nil, errors.New("admin is away")
		}
		select {
		case <-slow.Load().(chan struct{}):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		return []web.Tab{
			{Slug: "menu-reports", Name: name.Load().(string), Items: []web.Item{{Name: "Weekly", Href: "/p/reports/weekly"}}},
		}, nil
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
	if r := h.visit(
		t,
		"GET",
		"/nowhere",
		"",
		asPerson...); r.status != 404 || strings.Contains(r.body, "Reports") ||
		strings.Contains(r.body, "System") {
		t.Errorf("a stranger sees tabs: %d %s", r.status, r.body)
	}
	if r := h.visit(
		t,
		"GET",
		"/nowhere",
		"",
		with(session(endedSession), asPerson)...); r.status != 404 ||
		strings.Contains(r.body, "Reports") {
		t.Errorf("an ended session sees tabs: %d %s", r.status, r.body)
	}
	// Whoever changes a menu sees it on the next page.
	name.Store("Numbers")
	if r := h.visit(
		t,
		"POST",
		"/drafts/menus",
		"",
		with(session(reviewerSession), asPerson)...); r.status != 200 ||
		r.header.Get(web.NavigationHeader) != "" {
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
