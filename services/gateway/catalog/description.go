package catalog

import (
	"sync"

	"hub.internal/pkg/service"
	"hub.internal/pkg/web"
	"hub.internal/services/gateway/reference"
)

// description is what a version of the catalog says to those who write programs, made when it is asked for first.
type description struct {
	document func() (*web.Static, error)
	page     func(*web.Site) (*web.Static, error)
}

// describe ends the making of a version: its description is that of its tools and routes.
func (v *version) describe() *version {
	api := sync.OnceValue(func() reference.API {
		a := reference.API{Version: service.Version, Notifications: v.notifications}
		for _, e := range v.ordered {
			a.Tools = append(a.Tools, e.Spec)
		}
		for _, routes := range v.routes {
			for _, e := range routes {
				a.Routes = append(a.Routes, *e.Route)
			}
		}
		return a
	})
	var once sync.Once
	var page *web.Static
	var err error
	v.description = description{
		document: sync.OnceValues(func() (*web.Static, error) {
			b, err := api().OpenAPI()
			if err != nil {
				return nil, err
			}
			return web.NewStatic("application/json", b)
		}),
		page: func(site *web.Site) (*web.Static, error) { // a process has one site
			once.Do(func() { page, err = api().Page(site) })
			return page, err
		},
	}
	return v
}

// OpenAPI is the public API as an OpenAPI document.
func (c *Catalog) OpenAPI() (*web.Static, error) { return c.current.Load().document() }

// Docs is the public API as a page of the site.
func (c *Catalog) Docs(site *web.Site) (*web.Static, error) { return c.current.Load().page(site) }
