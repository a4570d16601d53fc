package main

import (
	"fmt"
	"time"

	"hub.internal/pkg/config"
	"hub.internal/pkg/service"
)

// settings are read from the environment; OPERATING.md tells them.
type settings struct {
	service.Settings
	// CatalogFile has the manifests that the gateway begins with, before any service has answered.
	CatalogFile string        `env:"HUB_CATALOG" envDefault:"deploy/catalog.json"`
	RedisURL    config.Secret `env:"HUB_REDIS_URL,required,notEmpty"`
	// Concurrency is how many calls one client of a service has under way at once.
	Concurrency int `env:"HUB_SERVICE_CONCURRENCY" envDefault:"256"`
	// StaleAuth is how long a key is good by an earlier answer while auth does not answer; 0 is never.
	StaleAuth time.Duration `env:"HUB_STALE_AUTH" envDefault:"60s"`
	// FailuresRate and FailureBurst limit the credentials of one network that do not hold.
	FailuresRate int `env:"HUB_FAILED_AUTH_PER_MINUTE" envDefault:"300"`
	FailureBurst int `env:"HUB_FAILED_AUTH_BURST" envDefault:"300"`
	// OpenRate and OpenBurst limit the calls of one network that need no credential.
	OpenRate  int `env:"HUB_OPEN_PER_MINUTE" envDefault:"6000"`
	OpenBurst int `env:"HUB_OPEN_BURST" envDefault:"2000"`
	// TrustedHops is how many proxies in front append to X-Forwarded-For; what is left of theirs is not believed.
	TrustedHops int `env:"HUB_TRUSTED_PROXY_HOPS" envDefault:"0"`
	// InsecureCookies is for a console over plain HTTP: cookies are then not Secure.
	InsecureCookies bool `env:"HUB_INSECURE_COOKIES"`
	// PublicURL is where clients reach the gateway: it answers to no other name but Hosts, which are what a proxy in front
	// makes of it, or names inside a cluster. What auth says of where to link accounts has to begin with it.
	PublicURL string   `env:"HUB_PUBLIC_URL"`
	Hosts     []string `env:"HUB_HOSTS"`
	// MCPOrigins are the origins, as https://example.com, whose pages may call /mcp.
	MCPOrigins []string `env:"HUB_MCP_ORIGINS"`
}

// Check judges what the types do not.
func (s settings) Check() error {
	if s.StaleAuth < 0 || s.StaleAuth > maxStaleAuth {
		return fmt.Errorf("HUB_STALE_AUTH is %s; it has to be between 0 (never) and %s", s.StaleAuth, maxStaleAuth)
	}
	return nil
}

// maxStaleAuth is the longest that may be asked for: an operator who sets it has an outage in mind.
const maxStaleAuth = time.Hour
