// Command gateway is the edge of Hub.
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"time"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/config"
	"hub.internal/pkg/remote"
	"hub.internal/pkg/service"
	"hub.internal/services/gateway"
	"hub.internal/services/gateway/mcp"
	"hub.internal/services/gateway/redis"
)

type settings struct {
	service.Settings
	CatalogFile  string        `env:"HUB_CATALOG" envDefault:"deploy/catalog.json"`
	RedisURL     config.Secret `env:"HUB_REDIS_URL,required,notEmpty"`
	Concurrency  int           `env:"HUB_SERVICE_CONCURRENCY" envDefault:"256"`
	StaleAuth    time.Duration `env:"HUB_STALE_AUTH" envDefault:"60s"`
	FailuresRate int           `env:"HUB_FAILED_AUTH_PER_MINUTE" envDefault:"300"`
	FailureBurst int           `env:"HUB_FAILED_AUTH_BURST" envDefault:"300"`
	OpenRate     int           `env:"HUB_OPEN_PER_MINUTE" envDefault:"6000"`
	OpenBurst    int           `env:"HUB_OPEN_BURST" envDefault:"2000"`
	TrustedHops  int           `env:"HUB_TRUSTED_PROXY_HOPS" envDefault:"0"`
	// InsecureCookies is for a console over plain HTTP: cookies are then not Secure.
	InsecureCookies bool `env:"HUB_INSECURE_COOKIES"`
	// PublicURL is where clients reach the gateway: it answers to no other name but Hosts, which are what a proxy in front
	// makes of it, or names inside a cluster. What auth says of where to link accounts has to begin with it.
	PublicURL string   `env:"HUB_PUBLIC_URL"`
	Hosts     []string `env:"HUB_HOSTS"`
	// MCPOrigins are the origins, as https://example.com, whose pages may call /mcp.
	MCPOrigins []string `env:"HUB_MCP_ORIGINS"`
}

// maxStaleAuth is the longest that may be asked for: an operator who sets it has an outage in mind.
const maxStaleAuth = time.Hour

// program has no tables but the audit log that it appends to.
var program = service.Program[settings]{Name: "gateway", Short: "The edge of Hub", Migrate: audit.Migrate, Build: build,
	Connections: func(settings) int { return 4 }}

func main() { os.Exit(program.Main()) }

func build(h *service.Host, s settings) error {
	catalog, err := gateway.LoadCatalog(s.CatalogFile, h.Logger())
	if err != nil {
		return err
	}
	shared, err := redis.Open(s.RedisURL.Reveal())
	if err != nil {
		return err
	}
	h.Check("Redis", "HUB_REDIS_URL", shared.Ping)
	h.OnStop("redis", func(context.Context) error { return shared.Close() })
	limiter := gateway.NewFallback(shared, gateway.NewMemory(time.Now), func(down bool, err error) {
		h.Logger().Warn("shared rate limits", "down", down, "error", err)
	})
	dial := func(name string) *remote.Client { return h.Client(name, s.Concurrency) }
	clients := gateway.NewClients(dial, append(catalog.Owners(), "auth", "admin")...)
	h.OnStop("clients", func(context.Context) error { clients.Close(); return nil })
	auth := clients.Client("auth")
	keys := gateway.NewKeyCache(gateway.AskAuth(auth), time.Now)
	if s.StaleAuth < 0 || s.StaleAuth > maxStaleAuth {
		return fmt.Errorf("configuration: HUB_STALE_AUTH is %s; it has to be between 0 (never) and %s", s.StaleAuth, maxStaleAuth)
	}
	keys.StandIn(s.StaleAuth)
	menus := gateway.NewMenus(gateway.AskAdminForMenus(clients.Client("admin")), h.Logger())
	console, err := gateway.NewConsole(gateway.ConsoleOptions{Auth: auth, Menus: menus, Site: h.Site,
		PlainCookies: s.InsecureCookies, PublicURL: s.PublicURL})
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	refused := audit.NewTally(h.Audit(), "calls.refused")
	g := &gateway.Gateway{Console: console, Authenticators: gateway.Authenticators(keys,
		gateway.Tokens{Auth: auth, PublicURL: s.PublicURL}, gateway.Rate{PerMinute: s.OpenRate, Burst: s.OpenBurst}),
		Limiter: limiter, Catalog: catalog, Services: clients, Audit: h.Audit(), Refused: refused, Logger: h.Logger(),
		Failures: gateway.Rate{PerMinute: s.FailuresRate, Burst: s.FailureBurst}, TrustedHops: s.TrustedHops}
	if err := gateway.Observe(limiter, catalog, keys); err != nil {
		return err
	}
	clientsOfMCP, err := mcp.New(g, mcp.Options{PublicURL: s.PublicURL, Origins: s.MCPOrigins})
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	hosts, err := gateway.NewHosts(s.PublicURL, s.Hosts)
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	h.Go("rate limits", limiter.Run)
	h.Go("refused calls", refused.Run)
	h.Go("key notices", func(ctx context.Context) error { return shared.Subscribe(ctx, h.Logger(), keys) })
	h.Go("menus", menus.Follow)
	h.Go("manifests", func(ctx context.Context) error { return catalog.Follow(ctx, clients, h.Discovered) })
	h.Public(s.TrustedHops > 0, func(mux *http.ServeMux) {
		public := http.NewServeMux()
		g.Routes(public)
		clientsOfMCP.Routes(public)
		mux.Handle("/", g.Only(hosts, public))
	})
	return nil
}
