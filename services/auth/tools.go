package auth

import "hub.internal/pkg/tool"

// Tools declares the tools that auth owns: none yet. The manifest is served all the same,
// so that the gateway knows the service.
func Tools(*Service) []tool.Tool { return nil }
