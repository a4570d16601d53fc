package catalog

import (
	"sync"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/service"
	"hub.internal/pkg/web"
	"hub.internal/services/gateway/reference"
)

// description is what a version of the catalog says to those who write programs, made when it is asked for first.
type description struct {
	document func() (*web.Static, error)
	pages    func(*web.Site) (map[string]*web.Static, error)
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
	var pages map[string]*web.Static
	var err error
	v.description = description{
		document: sync.OnceValues(func() (*web.Static, error) {
			b, err := api().OpenAPI()
			if err != nil {
				return nil, err
			}
			return web.NewStatic("application/json", b), nil
		}),
		pages: func(site *web.Site) (map[string]*web.Static, error) { // a process has one site
			once.Do(func() { pages, err = api().Pages(site) })
			return pages, err
		},
	}
	return v
}

// OpenAPI is the public API as an OpenAPI document.
func (c *Catalog) OpenAPI() (*web.Static, error) { return c.current.Load().document() }

// Docs is the page of the public API's reference at a path. E_NOT_FOUND.
func (c *Catalog) Docs(site *web.Site, path string) (*web.Static, error) {
	pages, err := c.current.Load().pages(site)
	if err != nil {
		return nil, err
	}
	if pages[path] == nil {
		return nil, fault.New(fault.NotFound, "The API reference has no page %s; it begins at %s.", Shown(path), reference.Path)
	}
	return pages[path], nil
}
