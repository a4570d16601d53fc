package auth

import (
	"hub.internal/pkg/hop"
	"hub.internal/pkg/tool"
	"hub.internal/pkg/web"
)

// Tools declares the tools that auth owns: none yet. The manifest is served all the same,
// so that the gateway knows the service.
func Tools(*Service) []tool.Tool { return nil }

// Routes are the parts of the console that are auth's.
func Routes() []tool.Route {
	return web.Routes("auth",
		tool.Route{Prefix: "/login", Public: true},
		tool.Route{Prefix: "/logout", Public: true},
		tool.Route{Prefix: "/account/sessions", Tab: "System", Title: "Your account", Position: 90},
	)
}

// Manifest is what auth owns.
func Manifest() tool.Manifest {
	return hop.Manifest("auth", Tools(nil), Operations(nil, nil), Routes()...)
}
