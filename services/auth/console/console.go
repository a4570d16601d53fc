// Package console is auth's pages: signing in and out, and a user's own account. It speaks HTML and
// HTTP to people, and refuses to judge: who may sign in is People's to say.
package console

import (
	"embed"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/tool"
	"hub.internal/pkg/web"
	"hub.internal/services/auth"
)

//go:embed pages/*.html
var files embed.FS

// Console is auth's pages.
type Console struct {
	people *auth.People
	sso    auth.SingleSignOn
	site   *web.Site
	logger *slog.Logger
}

// New returns the pages; sso may be nil.
func New(p *auth.People, sso auth.SingleSignOn, keys *caller.Keys, logger *slog.Logger) (*Console, error) {
	site, err := web.New(web.Options{Service: "auth", Files: files, Keys: keys, Logger: logger})
	if err != nil {
		return nil, err
	}
	return &Console{p, sso, site, logger}, nil
}

// Routes are the parts of the console that are auth's.
func Routes() []tool.Route {
	return web.Routes("auth",
		tool.Route{Prefix: "/login", Public: true},
		tool.Route{Prefix: "/logout", Public: true},
		tool.Route{Prefix: "/account/sessions", Tab: "System", Title: "Your account", Position: 90},
	)
}

// Routes implements service.Console.
func (c *Console) Routes() []tool.Route { return Routes() }

// Mount serves the pages and their assets.
func (c *Console) Mount(mux *http.ServeMux) {
	c.site.Mount(mux)
	c.site.Handle(mux, "GET /login", web.Anybody, c.loginPage)
	c.site.Handle(mux, "POST /login", web.Anybody, c.login)
	c.site.Handle(mux, "GET /login/oidc", web.Anybody, c.begin)
	c.site.Handle(mux, "GET /login/oidc/callback", web.Anybody, c.finish)
	c.site.Handle(mux, "GET /logout", web.Anybody, c.logoutPage)
	c.site.Handle(mux, "POST /logout", web.Anybody, c.logout)
	c.site.Handle(mux, "GET /account/sessions", web.SignedIn, c.account)
	c.site.Handle(mux, "POST /account/sessions/end", web.SignedIn, c.endSession)
	c.site.Handle(mux, "POST /account/sessions/password", web.SignedIn, c.changePassword)
}

func browser(r *http.Request) auth.Browser {
	u, _ := web.UserOf(r.Context())
	return auth.Browser{Address: web.Address(r), Agent: r.UserAgent(), Session: u.Session, Known: web.ReadCookie(r, browserCookie)}
}

func seconds(d time.Duration) string {
	return strconv.Itoa(max(1, int((d + time.Second - 1).Seconds())))
}
