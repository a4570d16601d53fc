// Package rest is the transport of the pipeline for /api/tools: the path names a tool, the body is its input. It also
// answers the catalog, the detail of a tool and the OpenAPI document. It refuses to judge a call itself.
package rest

import (
	"context"
	"net/http"

	"github.com/go-kit/kit/endpoint"

	"hub.internal/pkg/tool"
	"hub.internal/pkg/web"
	"hub.internal/services/gateway/catalog"
	"hub.internal/services/gateway/edge"
	"hub.internal/services/gateway/reference"
)

// Routes adds the routes of the transport to mux: the call of a tool goes the whole way of the pipeline, the catalog and a detail
// need a key alone, and the OpenAPI document nothing.
func Routes(mux *http.ServeMux, g *edge.Gateway) {
	keys := g.Authenticators[tool.KeyCredential]
	listing := func(_ context.Context, request any) (any, error) {
		d, err := g.Catalog.Listing(request.(*edge.Call).Caller)
		return edge.Document{Document: d}, err
	}
	detail := func(_ context.Context, request any) (any, error) {
		c := request.(*edge.Call)
		e := c.Find()
		if e == nil {
			return nil, g.Catalog.Unknown(c.Name)
		}
		d, err := e.Detail(c.Caller, c.Rates())
		return edge.Document{Document: d}, err
	}
	g.Handle(mux, http.MethodGet, reference.ToolList, serve(g, g.Listing(keys, listing)))
	g.Handle(mux, http.MethodPost, reference.ToolRoot+"{name}", serve(g, g.Pipeline(keys, g.Route)))
	g.Handle(mux, http.MethodGet, reference.ToolRoot+"{name}/detail", serve(g, g.Listing(keys, detail)))
	g.Handle(mux, http.MethodGet, "/openapi.json", func(w http.ResponseWriter, r *http.Request) {
		c := g.NewCall(r)
		document, err := g.Open(r.Context(), c, func() (*web.Static, error) { return g.Catalog.OpenAPI() })
		if err != nil {
			g.Refuse(r.Context(), c, w, err, 0)
			return
		}
		c.WriteStatic(document, w, r)
	})
}

// serve answers requests by a pipeline.
func serve(g *edge.Gateway, pipeline endpoint.Endpoint) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c := g.NewCall(r)
		c.Name = r.PathValue("name")
		c.Transport = transport{r, g.Catalog, c.Name}
		g.Serve(w, r, c, pipeline)
	}
}

// transport is a request for the tool that its path names.
type transport struct {
	request *http.Request
	catalog *catalog.Catalog
	name    string
}

// Find implements edge.Transport.
func (t transport) Find() *catalog.Entry { return t.catalog.Entry(t.name) }

// Read implements edge.Transport: the body is the input.
func (t transport) Read(ctx context.Context, limit int64) ([]byte, error) {
	return edge.ReadJSON(ctx, t.request, limit)
}
