// Package console is payments' pages for operators. It speaks HTML and HTTP to people, and refuses to judge: what may
// happen is the services' to say.
//
// The gateway is the only one that reaches these pages: it has signed the person in, and its token says who that is and
// with which roles. A page about a credential never has the secret in it, not even the one that was typed just now.
package console

import (
	"context"
	"embed"
	"log/slog"
	"net/http"
	"time"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/rpc"
	"hub.internal/pkg/tool"
	"hub.internal/pkg/web"
	"hub.internal/services/payments"
	"hub.internal/services/payments/console/orders"
	"hub.internal/services/payments/credentials"
)

//go:embed pages/*.html pages/*.json
var files embed.FS

// admin is the role that every page of payments needs.
const admin = "admin"

// Config is what a Console is made of.
type Config struct {
	Service     *payments.Service
	Credentials *credentials.Service
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Trusted are the keys of whose word is taken.
	Trusted *caller.Keys
	Logger  *slog.Logger
}

// Console is payments' pages.
type Console struct {
	Config
	site   *web.Site
	orders *orders.Pages
}

// New returns the pages.
func New(c Config) (*Console, error) {
	site, err := web.New(web.Options{Service: "payments", Files: files, Keys: c.Trusted, Logger: c.Logger})
	if err != nil {
		return nil, err
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	o, err := orders.New(c.Service, c.Now, func(o web.Options) (*web.Site, error) {
		o.Service, o.Keys, o.Logger = "payments", c.Trusted, c.Logger
		return web.New(o)
	})
	if err != nil {
		return nil, err
	}
	return &Console{c, site, o}, nil
}

// Routes are the parts of the console that are payments'.
func Routes() []tool.Route {
	return web.Routes("payments", append(orders.Routes(),
		tool.Route{Prefix: credentialsPath, Role: admin, Tab: "Admin", Title: "Payment credentials", Position: 45},
	)...)
}

// Operations declares what the gateway asks of the console beside its pages.
func Operations(c *Console) []rpc.Operation {
	find := func(ctx context.Context, u web.User, text string) (web.FindResponse, error) {
		return c.orders.Find(ctx, u, text)
	}
	return []rpc.Operation{web.FindOperation(func() *web.Site { return c.orders.Site() }, find)}
}

// Routes implements service.Console.
func (c *Console) Routes() []tool.Route { return Routes() }

// Mount serves the pages and their assets.
func (c *Console) Mount(mux *http.ServeMux) {
	c.site.Mount(mux)
	c.mountCredentials(mux)
	c.orders.Mount(mux)
}

// back goes to a page and says what was done, or why it was not.
func back(w http.ResponseWriter, r *http.Request, path, done string, err error) error {
	return web.Back(w, r, path, done, err, fault.Conflict, fault.Validation)
}
