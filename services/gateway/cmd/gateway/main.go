// Command gateway is the edge of Hub.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/caller"
	"hub.internal/pkg/config"
	"hub.internal/pkg/discover"
	"hub.internal/pkg/postgres"
	"hub.internal/pkg/process"
	"hub.internal/pkg/remote"
	"hub.internal/pkg/web"
	"hub.internal/services/gateway"
	"hub.internal/services/gateway/redis"
)

type settings struct {
	process.Settings
	CatalogFile  string        `env:"HUB_CATALOG" envDefault:"deploy/catalog.json"`
	RedisURL     config.Secret `env:"HUB_REDIS_URL,required,notEmpty"`
	StoreURL     config.Secret `env:"HUB_WRITE_STORE_URL,required,notEmpty"`
	Concurrency  int           `env:"HUB_SERVICE_CONCURRENCY" envDefault:"256"`
	FailuresRate int           `env:"HUB_FAILED_AUTH_PER_MINUTE" envDefault:"300"`
	FailureBurst int           `env:"HUB_FAILED_AUTH_BURST" envDefault:"300"`
	TrustedHops  int           `env:"HUB_TRUSTED_PROXY_HOPS" envDefault:"0"`
	// InsecureCookies is for a console over plain HTTP: cookies are then not Secure.
	InsecureCookies bool `env:"HUB_INSECURE_COOKIES"`
	// PublicURL is where browsers reach the gateway, when a proxy in front changes the Host header.
	PublicURL string `env:"HUB_PUBLIC_URL"`
}

func main() {
	os.Exit(process.Program{Name: "gateway", Short: "The edge of Hub", Serve: serve, Migrate: audit.Migrate}.Main())
}

func serve(ctx context.Context, environ []string) error {
	s, err := config.Load[settings](environ)
	if err != nil {
		return err
	}
	p, err := process.Start(ctx, "gateway", s.Settings, s)
	if err != nil {
		return err
	}
	background := p.Background()
	catalog, err := gateway.LoadCatalog(s.CatalogFile, p.Logger)
	if err != nil {
		return err
	}
	pool, err := postgres.Open(postgres.Config{URL: s.StoreURL.Reveal(), MaxConns: 4})
	if err != nil {
		return err
	}
	log := audit.NewLog(pool, p.Logger)
	p.OnStop("write store", func(context.Context) error { pool.Close(); return nil })
	p.OnStop("audit log", log.Close)
	shared, err := redis.Open(s.RedisURL.Reveal())
	if err != nil {
		return err
	}
	p.OnStop("redis", func(context.Context) error { return shared.Close() })
	limiter := gateway.NewFallback(shared, gateway.NewMemory(time.Now), func(down bool, err error) {
		p.Logger.Warn("shared rate limits", "down", down, "error", err)
	})
	if err := gauge(limiter); err != nil {
		return err
	}
	clients, err := dial(s, p, catalog)
	if err != nil {
		return err
	}
	p.OnStop("clients", func(context.Context) error { clients.Close(); return nil })
	cache := gateway.NewKeyCache(gateway.AskAuth(clients["auth"]), time.Now)
	console, err := consoleOf(s, p.Keys, clients["auth"], p.Logger)
	if err != nil {
		return err
	}
	refused := audit.NewTally(log, "calls.refused")
	g := &gateway.Gateway{Console: console, Keys: cache, Limiter: limiter, Catalog: catalog, Services: clients,
		Audit: log, Refused: refused, Logger: p.Logger,
		Failures: gateway.Rate{PerMinute: s.FailuresRate, Burst: s.FailureBurst}, TrustedHops: s.TrustedHops}

	p.Go(background, "rate limits", limiter.Run)
	p.Go(background, "refused calls", refused.Run)
	p.Go(background, "key notices", func(ctx context.Context) error {
		return shared.Subscribe(ctx, p.Logger, cache.Forget, cache.ForgetAll)
	})
	for name, client := range clients {
		p.Go(background, "manifest of "+name, func(ctx context.Context) error { return catalog.Follow(ctx, client, name) })
	}
	mux := http.NewServeMux()
	g.Routes(mux)
	p.Health(mux)
	if _, err := p.Serve("public", s.Addr, mux); err != nil {
		return err
	}
	return p.Run(ctx)
}

// consoleOf makes the part for people with browsers.
func consoleOf(s settings, keys *caller.Keys, auth *remote.Client, logger *slog.Logger) (*gateway.Console, error) {
	pages, err := web.New(web.Options{Service: "gateway", Keys: keys, Logger: logger})
	if err != nil {
		return nil, err
	}
	c := &gateway.Console{Sessions: gateway.NewSessionCache(gateway.AskAuthForSession(auth), time.Now), Pages: pages,
		PlainCookies: s.InsecureCookies, Visitors: gateway.NewVisitors()}
	if s.PublicURL != "" {
		if err := c.Protection.AddTrustedOrigin(strings.TrimRight(s.PublicURL, "/")); err != nil {
			return nil, fmt.Errorf("configuration: HUB_PUBLIC_URL: %w", err)
		}
	}
	return c, nil
}

// dial makes a client for auth, for each service that the catalog knows and for each
// that static discovery lists.
func dial(s settings, p *process.Process, catalog *gateway.Catalog) (gateway.Clients, error) {
	directory, err := discover.Open(s.Directory(), p.Logger)
	if err != nil {
		return nil, err
	}
	names := append(append([]string{"auth"}, catalog.Owners()...), directory.Services()...)
	slices.Sort(names)
	clients := gateway.Clients{}
	for _, name := range slices.Compact(names) {
		clients[name] = remote.New(remote.Options{Service: name, Instancer: directory.Instancer(name), Keys: p.Keys, Logger: p.Logger, Concurrency: s.Concurrency})
	}
	return clients, nil
}

// gauge shows whether the limits hold in memory.
func gauge(limiter *gateway.Fallback) error {
	_, err := otel.Meter("hub.internal/services/gateway").Int64ObservableGauge("hub.ratelimit.local",
		metric.WithDescription("1 while Redis is away and each replica limits by itself."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			n := int64(0)
			if limiter.Down() {
				n = 1
			}
			o.Observe(n)
			return nil
		}))
	return err
}
