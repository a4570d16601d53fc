// Package console is auth's pages: signing in and out, a user's own account, and the administration of users, API
// keys and apps. It speaks HTML and HTTP to people, and refuses to judge: who may sign in is People's to say, and what
// may happen to a key or an app that of its service.
package console

import (
	"embed"
	"html/template"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/tool"
	"hub.internal/pkg/web"
	"hub.internal/services/auth"
	"hub.internal/services/auth/apps"
)

//go:embed pages/*.html pages/*.json assets
var files embed.FS

// Config is what a Console is made of.
type Config struct {
	People *auth.People
	// Service is that of the API keys.
	Service *auth.Service
	Apps    *apps.Service
	// SingleSignOn may be nil.
	SingleSignOn auth.SingleSignOn
	// RolesFromProvider tells that the log-in provider decides on roles.
	RolesFromProvider bool
	// PublicURL is where browsers reach Hub, for links that leave it. Without one they are paths.
	PublicURL string
	// Trusted are the keys of whose word is taken.
	Trusted *caller.Keys
	Now     func() time.Time
	Logger  *slog.Logger
}

// Console is auth's pages.
type Console struct {
	Config
	site *web.Site
}

// New returns the pages.
// It parses the templates in every language; one that does not parse is the error.
func New(c Config) (*Console, error) {
	site, err := web.New(web.Options{Service: "auth", Files: files, Keys: c.Trusted, Logger: c.Logger,
		Funcs: template.FuncMap{"appstate": appBadge, "role": roleName}})
	if err != nil {
		return nil, err
	}
	return &Console{c, site}, nil
}

// Routes are the parts of the console that are auth's.
// They go into the manifest before anything is opened, so they need no Console. The gateway holds visitors to the role of a route;
// Public ones it shows to anybody.
func Routes() []tool.Route {
	return web.Routes("auth",
		tool.Route{Prefix: "/login", Public: true},
		tool.Route{Prefix: "/logout", Public: true},
		tool.Route{Prefix: "/language", Public: true},
		tool.Route{Prefix: "/account/sessions", Tab: "System", Title: "Your account", Position: 90},
		tool.Route{Prefix: usersPath, Role: admin, Tab: "Admin", Title: "Users", Position: 10},
		tool.Route{Prefix: keysPath, Role: admin, Tab: "Admin", Title: "API keys", Position: 20},
		tool.Route{Prefix: appsPath, Role: admin, Tab: "Admin", Title: "Apps", Position: 30},
	)
}

// Routes implements service.Console.
func (c *Console) Routes() []tool.Route { return Routes() }

// Mount serves the pages and their assets.
// Each handler names whom it takes once more, although the gateway has judged already.
// A GET shows or asks, and only a POST changes something. What cannot be taken back has a page that asks first.
func (c *Console) Mount(mux *http.ServeMux) {
	c.site.Mount(mux)
	c.site.Handle(mux, "GET /login", web.Anybody, c.loginPage)
	c.site.Handle(mux, "POST /login", web.Anybody, web.Posted(c.login))
	c.site.Handle(mux, "GET /login/oidc", web.Anybody, c.begin)
	c.site.Handle(mux, "GET /login/oidc/callback", web.Anybody, c.finish)
	c.site.Handle(mux, "GET /logout", web.Anybody, c.logoutPage)
	c.site.Handle(mux, "POST /logout", web.Anybody, web.Posted(c.logout))
	c.site.Handle(mux, "POST /language", web.Anybody, web.Posted(c.language))
	c.site.Handle(mux, "GET /account/sessions", web.SignedIn, c.account)
	c.site.Handle(mux, "POST /account/sessions/end", web.SignedIn, web.Posted(c.endSession))
	c.site.Handle(mux, "POST /account/sessions/password", web.SignedIn, web.Posted(c.changePassword))
	c.site.Handle(mux, "GET /login/invitation", web.Anybody, c.invitation)
	c.site.Handle(mux, "POST /login/invitation", web.Anybody, web.Posted(c.accept))

	c.site.Handle(mux, "GET /admin/users", web.Role(admin), c.users)
	c.site.Handle(mux, "GET /admin/users/new", web.Role(admin), c.newUser)
	c.site.Handle(mux, "POST /admin/users", web.Role(admin), web.Posted(c.inviteUser))
	c.site.Handle(mux, "POST /admin/users/roles", web.Role(admin), web.Posted(c.setRoles))
	c.site.Handle(mux, "GET /admin/users/{id}", web.Role(admin), c.user)
	c.site.Handle(mux, "POST /admin/users/{id}/invite", web.Role(admin), c.onUser(c.inviteAgain))
	c.site.Handle(mux, "GET /admin/users/{id}/disable", web.Role(admin), c.onUser(c.disabling))
	c.site.Handle(mux, "POST /admin/users/{id}/disable", web.Role(admin), c.onUser(c.disable))
	c.site.Handle(mux, "POST /admin/users/{id}/enable", web.Role(admin), c.onUser(c.enable))
	c.site.Handle(mux, "POST /admin/users/{id}/sessions", web.Role(admin), c.onUser(c.endSessionOf))

	c.site.Handle(mux, "GET /admin/keys", web.Role(admin), c.keys)
	c.site.Handle(mux, "GET /admin/keys/new", web.Role(admin), c.newKey)
	c.site.Handle(mux, "POST /admin/keys", web.Role(admin), web.Posted(c.issueKey))
	c.site.Handle(mux, "GET /admin/keys/{id}", web.Role(admin), c.key)
	c.site.Handle(mux, "POST /admin/keys/{id}/scopes", web.Role(admin), web.Posted(c.rescopeKey))
	c.site.Handle(mux, "POST /admin/keys/{id}/rotate", web.Role(admin), web.Posted(c.rotateKey))
	c.site.Handle(mux, "GET /admin/keys/{id}/revoke", web.Role(admin), c.keyRevocation)
	c.site.Handle(mux, "POST /admin/keys/{id}/revoke", web.Role(admin), web.Posted(c.revokeKey))

	c.site.Handle(mux, "GET /admin/apps", web.Role(admin), c.apps)
	c.site.Handle(mux, "GET /admin/apps/_new", web.Role(admin), c.newApp) // no code begins so
	c.site.Handle(mux, "POST /admin/apps", web.Role(admin), web.Posted(c.createApp))
	c.site.Handle(mux, "GET /admin/apps/{code}", web.Role(admin), c.app)
	c.site.Handle(mux, "GET /admin/apps/{code}/edit", web.Role(admin), c.editApp)
	c.site.Handle(mux, "POST /admin/apps/{code}/edit", web.Role(admin), web.Posted(c.saveApp))
	c.site.Handle(mux, "GET /admin/apps/{code}/suspend", web.Role(admin), c.suspension)
	c.site.Handle(mux, "POST /admin/apps/{code}/suspend", web.Role(admin), web.Posted(c.suspendApp))
	c.site.Handle(mux, "POST /admin/apps/{code}/resume", web.Role(admin), c.resumeApp)
	c.site.Handle(mux, "GET /admin/apps/{code}/revoke", web.Role(admin), c.appRevocation)
	c.site.Handle(mux, "POST /admin/apps/{code}/revoke", web.Role(admin), web.Posted(c.revokeApp))
	c.site.Handle(mux, "POST /admin/apps/{code}/secrets", web.Role(admin), c.issueSecret)
	c.site.Handle(mux, "POST /admin/apps/{code}/secrets/rotate", web.Role(admin), web.Posted(c.rotateSecret))
	c.site.Handle(mux, "POST /admin/apps/{code}/webhook-secrets/rotate", web.Role(admin), c.rotateWebhookSecret)
	c.site.Handle(mux, "GET /admin/apps/{code}/secrets/{id}/revoke", web.Role(admin), c.secretRevocation)
	c.site.Handle(mux, "POST /admin/apps/{code}/secrets/{id}/revoke", web.Role(admin), c.revokeSecret)
}

// browser is the browser of a request, as throttles and sessions know it.
func browser(r *http.Request) auth.Browser {
	u, _ := web.UserOf(r.Context())
	return auth.Browser{Address: web.Address(r), Agent: r.UserAgent(), Session: u.Session, Known: web.ReadCookie(r, web.BrowserCookie)}
}

// retryAfter is the value of the header Retry-After: whole seconds, at least one.
func retryAfter(d time.Duration) string {
	return strconv.Itoa(max(1, int((d + time.Second - 1).Seconds())))
}
