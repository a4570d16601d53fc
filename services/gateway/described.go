package gateway

import (
	"context"
	"net/http"
	"sync"

	"hub.internal/pkg/service"
	"hub.internal/pkg/tool"
	"hub.internal/pkg/web"
	"hub.internal/services/gateway/reference"
)

// described is what a version of the catalog says to those who write programs, made when it is asked for first.
type described struct {
	document func() (*web.Static, error)
	page     func(*web.Site) (*web.Static, error)
}

// describe is the public API, of the tools and the routes.
func (m *merged) describe() described {
	api := sync.OnceValue(func() reference.API {
		a := reference.API{Version: service.Version}
		for _, e := range m.ordered {
			a.Tools = append(a.Tools, e.Spec)
		}
		for _, routes := range m.routes {
			for _, e := range routes {
				a.Routes = append(a.Routes, *e.Route)
			}
		}
		return a
	})
	var once sync.Once
	var page *web.Static
	var err error
	return described{
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
}

// openAPI answers the description of the public API.
func (g *Gateway) openAPI(w http.ResponseWriter, r *http.Request) {
	c := g.NewCall(r)
	made, err := g.open(r.Context(), c, func() (*web.Static, error) { return g.Catalog.merged.Load().document() })
	if err != nil {
		g.Refuse(r.Context(), c, w, err, 0)
		return
	}
	c.still(made, w, r)
}

// docs answers the same as a page. It is the same for everybody, so it has no tabs of whoever is signed in.
func (g *Gateway) docs(w http.ResponseWriter, r *http.Request) {
	if g.Console == nil {
		g.nothing(w, r)
		return
	}
	v := &visit{Call: g.NewCall(r), w: w, r: r, tls: g.encrypted(r)}
	g.Console.begin(v)
	made, err := g.open(r.Context(), v.Call, func() (*web.Static, error) { return g.Catalog.merged.Load().page(g.Console.Pages) })
	if err != nil {
		g.Console.fail(g, v, err)
		return
	}
	v.still(made, w, r)
}

// open is the way of what needs no credential and is nobody's in particular: it counts against the limit of its network.
func (g *Gateway) open(ctx context.Context, c *Call, make func() (*web.Static, error)) (*web.Static, error) {
	last := func(context.Context, any) (any, error) { return make() }
	visitors := g.Authenticators[tool.NoCredential]
	if visitors == nil {
		return make()
	}
	made, err := g.Listing(visitors, last)(ctx, c)
	if err != nil {
		return nil, err
	}
	return made.(*web.Static), nil
}

// still answers what is the same for everybody: a reader asks whether it is still so.
func (c *Call) still(made *web.Static, w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-cache") // but for a 304
	w.Header().Set("X-Request-Id", c.RequestID)
	c.Limits.headers(w.Header())
	made.ServeHTTP(w, r)
}
