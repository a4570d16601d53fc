package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/remote"
	"hub.internal/pkg/service"
	"hub.internal/services/gateway"
	"hub.internal/services/gateway/catalog"
	"hub.internal/services/gateway/console"
	"hub.internal/services/gateway/edge"
	"hub.internal/services/gateway/lease"
	"hub.internal/services/gateway/mcp"
	"hub.internal/services/gateway/redis"
)

// build puts the rooms together, and starts what runs in the background once all of them are made.
func build(h *service.Host, s settings) error {
	manifests, err := catalog.Load(s.CatalogFile, h.Logger())
	if err != nil {
		return err
	}
	shared, err := openRedis(h, s)
	if err != nil {
		return err
	}
	clients := newClients(h, s, manifests)
	leases := lease.New(shared, time.Now)
	limiter := edge.NewFallback(leases, edge.NewMemory(time.Now), func(down bool, err error) {
		h.Logger().Warn("shared rate limits", "down", down, "error", err)
	})
	keys := edge.NewKeyCache(edge.AskAuth(clients.Client("auth")), time.Now)
	keys.ServeStale(s.StaleAuth)
	if err := edge.Observe(limiter, manifests, keys); err != nil {
		return err
	}
	refused := audit.NewTally(h.Audit(), "calls.refused")
	e := newEdge(s, clients.Client("auth"), keys)
	e.Limiter, e.Catalog, e.Services, e.Audit, e.Refused, e.Logger = limiter, manifests, clients, h.Audit(), refused, h.Logger()
	menus := console.NewMenus(console.AskAdminForMenus(clients.Client("admin")), h.Logger())
	if err := serve(h, s, e, menus); err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	h.Go("rate limits", limiter.Run)
	h.Go("shares of rate limits", leases.Run)
	h.Go("refused calls", refused.Run)
	h.Go("key notices", func(ctx context.Context) error { return shared.Subscribe(ctx, h.Logger(), keys) })
	h.Go("menus", menus.Follow)
	h.Go("manifests", func(ctx context.Context) error { return manifests.Follow(ctx, clients, h.Discovered) })
	return nil
}

// openRedis prepares the client of Redis, with its check for the doctor and its end. It connects when it is first used: the
// gateway starts without Redis, and limits in memory until it answers.
func openRedis(h *service.Host, s settings) (*redis.Redis, error) {
	shared, err := redis.Open(s.RedisURL.Reveal())
	if err == nil {
		h.Check("Redis", "HUB_REDIS_URL", shared.Ping)
		h.OnStop("redis", func(context.Context) error { return shared.Close() })
	}
	return shared, err
}

// newClients makes clients of the services that the catalog knows, and of those that the edge and the console ask.
func newClients(h *service.Host, s settings, manifests *catalog.Catalog) *catalog.Clients {
	dial := func(name string) *remote.Client { return h.Client(name, s.Concurrency) }
	clients := catalog.NewClients(dial, append(manifests.Owners(), "auth", "admin")...)
	h.OnStop("clients", func(context.Context) error { clients.Close(); return nil })
	return clients
}

// newEdge makes the edge as the settings say.
func newEdge(s settings, auth *remote.Client, keys edge.KeyVerifier) *edge.Gateway {
	open := edge.Rate{PerMinute: s.OpenRate, Burst: s.OpenBurst}
	return &edge.Gateway{
		Authenticators: edge.Authenticators(keys, edge.Tokens{Auth: auth, PublicURL: s.PublicURL}, open),
		Failures:       edge.Rate{PerMinute: s.FailuresRate, Burst: s.FailureBurst},
		TrustedHops:    s.TrustedHops,
	}
}

// serve serves the transports and the console on the public listener. Its error names the setting to mend.
func serve(h *service.Host, s settings, e *edge.Gateway, menus *console.Menus) error {
	pages, err := console.New(console.Options{Edge: e, Auth: e.Services.Client("auth"), Menus: menus, Site: h.Site,
		PlainCookies: s.InsecureCookies, PublicURL: s.PublicURL})
	if err != nil {
		return err
	}
	protocol, err := mcp.New(e, mcp.Options{PublicURL: s.PublicURL, Origins: s.MCPOrigins,
		Newest: mcp.AskQuery(e.Services.Client("query"))})
	if err != nil {
		return err
	}
	hosts, err := edge.NewHosts(s.PublicURL, s.Hosts)
	if err != nil {
		return err
	}
	public := gateway.Gateway{Gateway: e, Console: pages, MCP: protocol}
	h.Public(s.TrustedHops > 0, func(mux *http.ServeMux) {
		routes := http.NewServeMux()
		public.Routes(routes)
		mux.Handle("/", e.RestrictHosts(hosts, routes))
	})
	h.Go("newest rows", protocol.Follow)
	return nil
}
