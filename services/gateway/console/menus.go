package console

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/remote"
	"hub.internal/pkg/web"
)

const (
	// menusEvery is how old the menus may be while admin answers.
	menusEvery = 2 * time.Second
	// menusPatience bounds what somebody waits who needs them at once.
	menusPatience = 250 * time.Millisecond
	// maxMenus and maxMenuItems are as many groups, and items in each, as admin has: each page of everybody pays for them.
	maxMenus, maxMenuItems = 20, 50
)

// Menus are the groups of the menu beside System and Admin, as admin keeps them: asked for from time to time,
// so that no page waits for them, and kept as they are while admin is away. nil has none.
type Menus struct {
	ask    func(context.Context) ([]web.Tab, error)
	logger *slog.Logger

	mu    sync.Mutex
	known []web.Tab
	// begun counts the questions, answered is the last one that known is the answer to.
	begun, answered int
}

// NewMenus returns Menus that know nothing yet.
func NewMenus(ask func(context.Context) ([]web.Tab, error), logger *slog.Logger) *Menus {
	return &Menus{ask: ask, logger: logger}
}

// Follow asks until ctx ends.
func (m *Menus) Follow(ctx context.Context) error {
	tick := time.NewTicker(menusEvery)
	defer tick.Stop()
	away := false
	for {
		err := m.read(ctx, menusEvery)
		if err != nil && !away && ctx.Err() == nil {
			m.logger.Warn("menus not read; those known before are shown", "error", err)
		}
		away = err != nil
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// read asks once. An answer to an earlier question replaces none to a later one.
func (m *Menus) read(ctx context.Context, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	m.mu.Lock()
	m.begun++
	// Two questions may be under way at once, and their answers may come in any order: the later question's is kept.
	mine := m.begun
	m.mu.Unlock()
	tabs, err := m.ask(ctx)
	m.mu.Lock()
	defer m.mu.Unlock()
	if err == nil && mine > m.answered {
		m.known, m.answered = tabs, mine
	}
	return err
}

// refresh asks at once, for somebody who waits 250 ms for it at most; Follow catches up on what fails.
func (m *Menus) refresh(ctx context.Context) {
	if m != nil {
		_ = m.read(ctx, menusPatience)
	}
}

// tabs are those that a user sees: everybody who has a role sees all.
func (m *Menus) tabs(s Session) []web.Tab {
	if m == nil || len(s.Roles) == 0 {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.known
}

// menusQuestion asks admin for the menus of everybody.
type menusQuestion struct{}

// menusAnswer is the wire form of admin's answer. Whatever else admin says of a menu is ignored.
type menusAnswer struct {
	Groups []struct {
		Slug  string `json:"slug"`
		Name  string `json:"name"`
		Icon  string `json:"icon"`
		Items []struct {
			Name string `json:"name"`
			Icon string `json:"icon"`
			Href string `json:"href"`
		} `json:"items"`
	} `json:"groups"`
}

// Twenty groups of fifty links, each of 2,000 characters that JSON escapes, are 12 MB.
var readMenus = remote.Operation[menusQuestion, menusAnswer]{Path: "/internal/menus/navigation", Most: 16 << 20, Repeatable: true}

// AskAdminForMenus returns the question that Menus put to the admin service. Of its answer only what is a link stays.
func AskAdminForMenus(admin *remote.Client) func(context.Context) ([]web.Tab, error) {
	return func(ctx context.Context) ([]web.Tab, error) {
		a, err := readMenus.Call(caller.Alone(ctx, caller.Gateway), admin, menusQuestion{})
		if err != nil {
			return nil, err
		}
		var tabs []web.Tab
		for _, g := range a.Groups[:min(len(a.Groups), maxMenus)] {
			t := web.Tab{Slug: "menu-" + g.Slug, Name: g.Name, Icon: g.Icon, Menu: true}
			for _, i := range g.Items[:min(len(g.Items), maxMenuItems)] {
				if isLink(i.Href) {
					t.Items = append(t.Items, web.Item{Name: i.Name, Icon: i.Icon, Href: i.Href})
				}
			}
			if len(t.Items) > 0 {
				tabs = append(tabs, t)
			}
		}
		return tabs, nil
	}
}

// isLink tells whether an address is a page of the console, or one of https elsewhere.
func isLink(href string) bool {
	return web.LocalPath(href, "") != "" || len(href) > len("https://") && href[:len("https://")] == "https://"
}
