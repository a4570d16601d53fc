// Package gateway puts the rooms of the gateway together: it serves the edge by its transports, and the console. The rooms
// have an order, and none imports one above it:
//
//	reference, cache → catalog → edge → lease → rest, v1, mcp, console, redis → this package → cmd
package gateway

import (
	"net/http"
	"strings"

	"hub.internal/pkg/tool"
	"hub.internal/services/gateway/console"
	"hub.internal/services/gateway/edge"
	"hub.internal/services/gateway/mcp"
	"hub.internal/services/gateway/reference"
	"hub.internal/services/gateway/rest"
	"hub.internal/services/gateway/v1"
)

// Gateway is what is served to the public.
type Gateway struct {
	*edge.Gateway
	// Console is the part for people; nil serves none, and no /docs.
	Console *console.Console
	// MCP is the transport for clients of the Model Context Protocol; nil serves none.
	MCP *mcp.Server
}

// Routes adds the public routes to mux. What no route has is the console's, or answered with E_NOT_FOUND.
func (g *Gateway) Routes(mux *http.ServeMux) {
	rest.Routes(mux, g.Gateway)
	routes := v1.Handler(g.Gateway)
	mux.Handle(tool.RouteRoot, routes)
	mux.Handle(strings.TrimSuffix(tool.RouteRoot, "/"), routes)
	if g.MCP != nil {
		g.MCP.Routes(mux)
	}
	if g.Console == nil {
		mux.HandleFunc("/", g.NotFound)
		return
	}
	g.Handle(mux, http.MethodGet, reference.Path, g.Console.Docs)
	g.Handle(mux, http.MethodGet, reference.Path+"/", g.Console.Docs)
	mux.Handle("/", g.Console)
}
