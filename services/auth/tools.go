package auth

import (
	"hub.internal/pkg/tool"
	"hub.internal/pkg/web"
)

// Tools declares the tools that auth owns: none yet. The manifest is served all the same,
// so that the gateway knows the service.
func Tools(*Service) []tool.Tool { return nil }

// Manifest is what the gateway learns of auth.
func Manifest(s *Service) tool.Manifest {
	return tool.ManifestOf("auth", Tools(s), web.Routes("auth",
		tool.Route{Prefix: "/login", Public: true},
		tool.Route{Prefix: "/logout", Public: true},
		tool.Route{Prefix: "/account/sessions", Tab: "System", Title: "Your account", Position: 90},
	)...)
}
