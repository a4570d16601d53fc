// Package console is admin's pages: what agents have written for people, and the menus that lead there. It
// speaks HTML and HTTP to people, and refuses to judge: what may be is the Service's to say.
package console

import (
	"embed"
	"log/slog"
	"net/http"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/tool"
	"hub.internal/pkg/web"
	"hub.internal/services/admin"
)

//go:embed pages/*.html pages/*.json assets
var files embed.FS

// Console is admin's pages.
type Console struct {
	service *admin.Service
	site    *web.Site
}

// New returns the pages.
func New(s *admin.Service, keys *caller.Keys, logger *slog.Logger) (*Console, error) {
	site, err := web.New(web.Options{Service: "admin", Files: files, Keys: keys, Logger: logger})
	if err != nil {
		return nil, err
	}
	return &Console{s, site}, nil
}

// Routes are the parts of the console that are admin's.
func Routes() []tool.Route {
	return web.Routes("admin",
		tool.Route{Prefix: "/p"}, // for whoever has a role, as its pages say
		tool.Route{Prefix: menusPath, Role: administrator, Tab: "Admin", Title: "Menus", Position: 50},
	)
}

// Routes implements service.Console.
func (c *Console) Routes() []tool.Route { return Routes() }

// Mount serves the pages and their assets.
func (c *Console) Mount(mux *http.ServeMux) {
	c.site.Mount(mux)
	c.site.Handle(mux, "GET /p", web.SignedIn, c.index)
	c.site.Handle(mux, "GET /p/{group}/{item}", web.AnyRole, c.page)
	c.site.Handle(mux, "GET /p/{group}/{item}/tables/{section}", web.AnyRole, c.csv)
	c.site.Handle(mux, "GET /p/{group}/{item}/versions", web.Role(administrator), c.versions)
	c.site.Handle(mux, "GET /p/{group}/{item}/versions/{version}", web.Role(administrator), c.version)
	c.site.Handle(mux, "POST /p/{group}/{item}/versions/{version}/restore", web.Role(administrator), c.restore)
	c.site.Handle(mux, "GET /admin/menus", web.Role(administrator), c.menus)
	c.site.Handle(mux, "POST /admin/menus/move", web.Role(administrator), web.Posted(c.move))
	c.site.Handle(mux, "POST /admin/menus/order", web.Role(administrator), web.Posted(c.order))
	c.site.Handle(mux, "GET /admin/menus/edit", web.Role(administrator), c.edit)
	c.site.Handle(mux, "POST /admin/menus/edit", web.Role(administrator), web.Posted(c.save))
	c.site.Handle(mux, "GET /admin/menus/delete", web.Role(administrator), c.deletion)
	c.site.Handle(mux, "POST /admin/menus/delete", web.Role(administrator), web.Posted(c.remove))
}

const administrator = "admin"
