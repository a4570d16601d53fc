package console

import (
	"net/http"

	"hub.internal/pkg/web"
)

func (c *Console) menus(w http.ResponseWriter, r *http.Request) error {
	return c.site.Render(w, r, "menus", web.Page{Title: "Menus", Lead: "Tabs and sidebars of the console."})
}
