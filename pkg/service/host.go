package service

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/caller"
	"hub.internal/pkg/discover"
	"hub.internal/pkg/jobs"
	"hub.internal/pkg/postgres"
	"hub.internal/pkg/remote"
	"hub.internal/pkg/rpc"
	"hub.internal/pkg/telemetry"
	"hub.internal/pkg/tool"
	"hub.internal/pkg/web"
	"hub.internal/pkg/write"
)

// Host owns what every service has: settings, keys, the write store, the audit log, neighbours,
// the listener, readiness and the ordered stop.
type Host struct {
	name      string
	process   *process
	pool      *postgres.Pool
	audit     *audit.Log
	directory *discover.Directory
	server    rpc.Server
	addr      net.Addr
	manifest  tool.Manifest
	public    bool
}

// newHost makes what every service has, and listens. It serves nothing before run. effective is the configuration to log.
func newHost(ctx context.Context, name string, s Settings, effective any, connections int) (*Host, error) {
	pool, err := postgres.Open(postgres.Config{URL: s.WriteStoreURL.Reveal(), MaxConns: int32(connections)})
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	p, err := start(ctx, name, s, effective)
	if err != nil {
		return nil, err
	}
	h := &Host{name: name, process: p, pool: pool, audit: audit.NewLog(pool, p.logger),
		server: rpc.Server{Mux: http.NewServeMux(), Keys: p.keys, Logger: p.logger}, manifest: tool.Manifest{Service: name, Tools: []tool.Spec{}}}
	if h.directory, err = discover.Open(s.directory(), p.logger); err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	forget := postgres.Observe("write store", pool)
	p.onStop("write store", func(context.Context) error { forget(); pool.Close(); return nil })
	p.onStop("audit log", func(ctx context.Context) error {
		// A store that is away leaves time for what closes after it.
		ctx, cancel := context.WithTimeout(ctx, closeTimeout/2)
		defer cancel()
		return h.audit.Close(ctx)
	})
	p.health(name, h.server.Mux)
	if h.addr, err = p.open("internal", h.server.Mux); err != nil {
		return nil, err
	}
	return h, nil
}

// run serves what was handed over until the process ends; a process that is not public tells neighbours where it is.
func (h *Host) run(ctx context.Context) error {
	if !h.public {
		h.server.Manifest(h.manifest)
		h.server.Trust()
		h.process.announce(h.directory, h.name, h.addr)
	}
	return h.process.run(ctx)
}

// Logger is the process's.
func (h *Host) Logger() *slog.Logger { return h.process.logger }

// Context ends when the calls have drained.
func (h *Host) Context() context.Context { return h.process.tasks }

// Keys sign for this process, and judge who calls it.
func (h *Host) Keys() *caller.Keys { return h.process.keys }

// Store is the write store, as the service's own role.
func (h *Host) Store() *postgres.Pool { return h.pool }

// Audit is the log for calls that have no transaction of their own.
func (h *Host) Audit() *audit.Log { return h.audit }

// Neighbour is a client of another service, which need not be there yet.
func (h *Host) Neighbour(name string) *remote.Client {
	c := h.Client(name, 0)
	h.OnStop("client of "+name, func(context.Context) error { c.Close(); return nil })
	return c
}

// Client is Neighbour for the edge, which hears of services while it runs: it takes this many calls
// in flight (0 means 256), and the caller closes it. It may be called at any time.
func (h *Host) Client(name string, concurrency int) *remote.Client {
	c := remote.New(remote.Options{Service: name, Instancer: h.directory.Instancer(name), Keys: h.Keys(), Logger: h.Logger(),
		Concurrency: concurrency})
	if h.process.idle {
		h.process.examined = append(h.process.examined, h.checkNeighbour(name, c))
	}
	return c
}

// Discovered tells the names of the services that discovery lists, at once and when they change, until
// ctx ends.
func (h *Host) Discovered(ctx context.Context, tell func(names []string)) error {
	return h.directory.Watch(ctx, tell)
}

// Public makes the process the edge: its listener serves what mount adds, and no neighbour. It has no
// manifest, and no service is told where it is. Proxied tells that all clients come through a few proxies: then
// no network is held to a share of the connections.
func (h *Host) Public(proxied bool, mount func(*http.ServeMux)) {
	calls, part := h.process.calls, networkShare
	if proxied {
		part = 1
	}
	h.public, calls.name = true, "public"
	calls.places.limit(h.process.settings.network(h.process.memory.connections, part))
	mount(h.server.Mux)
}

// Tools serves tools to the gateway.
func (h *Host) Tools(tools ...tool.Tool) {
	for _, t := range tools {
		h.manifest.Tools = append(h.manifest.Tools, t.Spec)
	}
	Tools(h.server, h.audit, tools...)
}

// Tools serves tools to the gateway, each with a span, metrics and the audit row of a read or of
// a refusal.
func Tools(s rpc.Server, log *audit.Log, tools ...tool.Tool) {
	for _, t := range tools {
		s.Tool(t, telemetry.Endpoint(t.Spec.Name), log.Calls(t))
	}
}

// Routes serves routes of the API to the gateway.
func (h *Host) Routes(routes ...tool.APIRoute) {
	h.manifest = h.manifest.WithRoutes(routes...)
	Routes(h.server, h.audit, routes...)
}

// Notifications tells the gateway what the service sends to Connected Apps.
func (h *Host) Notifications(n *tool.Notifications) { h.manifest.Notifications = n }

// Routes serves routes of the API to the gateway, each as Tools does a tool.
func Routes(s rpc.Server, log *audit.Log, routes ...tool.APIRoute) {
	for _, r := range routes {
		s.Route(r, telemetry.Endpoint(r.Spec.Name), log.Calls(r.Tool))
	}
}

// Operations serves operations to neighbours.
func (h *Host) Operations(operations ...rpc.Operation) {
	for _, o := range operations {
		h.manifest.Operations = append(h.manifest.Operations, o.Spec)
	}
	Operations(h.server, operations...)
}

// Operations serves operations to neighbours, each with a span and metrics.
func Operations(s rpc.Server, operations ...rpc.Operation) {
	for _, o := range operations {
		s.Operation(o, telemetry.Endpoint(o.Name()))
	}
}

// Console is a service's pages.
type Console interface {
	// Routes are the parts of the console that they are.
	Routes() []tool.Route
	Mount(*http.ServeMux)
}

// Pages serves pages to the gateway.
func (h *Host) Pages(c Console) {
	h.manifest.Console = append(h.manifest.Console, c.Routes()...)
	c.Mount(h.server.Mux)
}

// Site makes the site of the service's pages, for its Console.
func (h *Host) Site(o web.Options) (*web.Site, error) {
	o.Service, o.Keys, o.Logger = h.name, h.Keys(), h.Logger()
	return web.New(o)
}

// Ready adds a readiness check. Only what no replica can do without belongs here: a
// dependency that all share takes every replica out at once.
func (h *Host) Ready(name string, ask func(context.Context) error) {
	h.process.checks = append(h.process.checks, check{name, ask})
}

// Go runs a background task until the calls have drained; one that returns an error before that
// ends the process.
func (h *Host) Go(name string, task func(context.Context) error) {
	h.process.spawn(h.process.tasks, name, task)
}

// OnStop registers what has to be closed; the last registered closes first.
func (h *Host) OnStop(name string, run func(context.Context) error) { h.process.onStop(name, run) }

// Reap deletes old idempotency keys from time to time, and shows how the leases of claims are.
func (h *Host) Reap(keys *write.Keys) {
	h.Go("reaper", keys.Reaper(h.Logger()))
	h.Go("claims", keys.Sample(h.Logger()).Run)
}

// Work runs jobs on the write store. Kinds, queues and periodic jobs are the caller's to set.
func (h *Host) Work(r jobs.Runner) {
	r.Pool, r.Service, r.Schema, r.Instance, r.Logger = h.pool, h.name, postgres.Schema(h.name), h.instance(), h.Logger()
	h.Go("jobs", r.Run)
}

// instance names this process: a container that starts again has the same host name and address.
func (h *Host) instance() string {
	host, err := os.Hostname()
	if err != nil {
		return "" // takes over nothing
	}
	return host + " " + h.addr.String()
}
