// Package process is the life of a service's main: settings that each process has,
// listeners, health and readiness, metrics, and an ordered stop. It refuses to be a
// container: a main builds its parts in a straight line and hands over what has to
// be served, watched and stopped.
package process

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/config"
	"hub.internal/pkg/discover"
	"hub.internal/pkg/quota"
	"hub.internal/pkg/telemetry"
)

// Version is what Hub says of itself.
const Version = "0.2.0"

const (
	// flushTimeout bounds the wait for the collector at the end.
	flushTimeout = 3 * time.Second
	// closeTimeout bounds the wait for tasks after the calls have drained, and then for
	// all that is closed.
	closeTimeout = 10 * time.Second
)

// noOperations as HUB_OPS_ADDR means that there is no such listener.
const noOperations = "off"

// Settings are those that every service has.
type Settings struct {
	Addr string `env:"HUB_ADDR" envDefault:"127.0.0.1:0"`
	// OpsAddr is where /metrics and /debug/pprof answer, and nothing else: they ask nobody who
	// they are. By default only this machine reaches them, at a port that the log names; "off"
	// serves none.
	OpsAddr      string        `env:"HUB_OPS_ADDR" envDefault:"127.0.0.1:0"`
	LogLevel     slog.Level    `env:"HUB_LOG_LEVEL" envDefault:"info"`
	DrainTimeout time.Duration `env:"HUB_DRAIN_TIMEOUT" envDefault:"25s"`
	DrainDelay   time.Duration `env:"HUB_DRAIN_DELAY" envDefault:"0s"`
	// SigningKey is what this process signs with, TrustedKeys whom it believes.
	SigningKey      caller.SigningKey  `env:"HUB_SIGNING_KEY,required,notEmpty"`
	TrustedKeys     caller.TrustedKeys `env:"HUB_TRUSTED_KEYS,required,notEmpty"`
	OTLPEndpoint    string             `env:"OTEL_EXPORTER_OTLP_ENDPOINT"`
	TraceRatio      float64            `env:"HUB_TRACE_RATIO" envDefault:"1"`
	Discovery       string             `env:"HUB_DISCOVERY" envDefault:"static"`
	StaticInstances string             `env:"HUB_STATIC"`
	ConsulAddr      string             `env:"HUB_CONSUL_ADDR" envDefault:"127.0.0.1:8500"`
	DNSDomain       string             `env:"HUB_DNS_DOMAIN" envDefault:"hub.svc.cluster.local"`
	// StallTimeout is how long a peer may keep an answer, or its own request's body, waiting
	// beyond what LeastRate takes; LeastRate is in a second.
	StallTimeout time.Duration `env:"HUB_STALL_TIMEOUT" envDefault:"20s"`
	LeastRate    config.Bytes  `env:"HUB_LEAST_RATE" envDefault:"16KiB"`
	// MemoryLimit is what the process may have in all; 0 is what its container may.
	MemoryLimit config.Bytes `env:"HUB_MEMORY_LIMIT"`
	// BodyBytes is what the bodies of requests may take at once, and half of it those of one
	// caller; 0 is a quarter of the memory limit, 256 MiB where there is none.
	BodyBytes config.Bytes `env:"HUB_BODY_BYTES"`
	// Advertise is the host:port that neighbours reach this process at; empty means Addr.
	Advertise string `env:"HUB_ADVERTISE"`
}

func (s Settings) pace() pace { return pace{stall: s.StallTimeout, rate: int64(s.LeastRate)} }

// check judges what the types of the settings do not.
func (s Settings) check() error {
	if s.StallTimeout <= 0 || s.LeastRate <= 0 {
		return fmt.Errorf("configuration: HUB_STALL_TIMEOUT and HUB_LEAST_RATE have to be positive, not %s and %s", s.StallTimeout, s.LeastRate)
	}
	return nil
}

// Directory is the discovery part of the settings.
func (s Settings) Directory() discover.Config {
	return discover.Config{Mode: s.Discovery, Instances: s.StaticInstances, ConsulAddr: s.ConsulAddr, DNSDomain: s.DNSDomain}
}

// Process owns what runs and stops it in the reverse order of its start.
type Process struct {
	Logger   *slog.Logger
	Settings Settings
	// Keys sign for this process, and judge who calls it.
	Keys *caller.Keys

	// effective is the configuration, logged once when nothing is wrong with it.
	effective any
	memory    memory
	telemetry *telemetry.Telemetry
	bodies    *quota.Quota // bytes of requests' bodies in memory
	draining  atomic.Bool
	checks    []check
	servers   []*server
	// operations is apart from servers: it answers while they drain. Nil when there is none.
	operations *server
	stops      []stop
	work       sync.WaitGroup
	failed     chan error
	cancel     context.CancelFunc
	// withdraw tells neighbours to stop choosing this process.
	withdraw func()
}

type check struct {
	name string
	ask  func(context.Context) error
}

type stop struct {
	name string
	run  func(context.Context) error
}

type server struct {
	name     string
	listener net.Listener
	http     *http.Server
}

// Start prepares a process: keys, logger, telemetry, and the listener for operations. Run logs
// effective, the configuration.
func Start(ctx context.Context, service string, settings Settings, effective any) (*Process, error) {
	if err := settings.check(); err != nil {
		return nil, err
	}
	keys, err := caller.NewKeys(service, settings.SigningKey, settings.TrustedKeys, time.Now)
	if err != nil {
		return nil, fmt.Errorf("configuration: HUB_TRUSTED_KEYS: %w", err)
	}
	logger := telemetry.Logger(os.Stderr, service, settings.LogLevel)
	slog.SetDefault(logger)
	t, err := telemetry.Start(ctx, telemetry.Config{Service: "hub-" + service, Version: Version, Endpoint: settings.OTLPEndpoint, SampleRatio: settings.TraceRatio})
	if err != nil {
		return nil, err
	}
	memory, err := limitMemory(settings)
	if err != nil {
		logger.Warn("the memory limit of the container cannot be read; HUB_MEMORY_LIMIT sets one", "error", err)
	}
	p := &Process{effective: effective, memory: memory, Logger: logger, Settings: settings, Keys: keys, telemetry: t, bodies: quota.New(int64(memory.bodies)), failed: make(chan error, 1)}
	if settings.OpsAddr != noOperations {
		if p.operations, err = p.listen("operations", settings.OpsAddr, p.operate()); err != nil {
			return nil, fmt.Errorf("HUB_OPS_ADDR: %w", err)
		}
	}
	p.OnStop("telemetry", func(ctx context.Context) error {
		// A collector that is away is no reason to call an orderly stop a failure.
		ctx, cancel := context.WithTimeout(ctx, flushTimeout)
		defer cancel()
		if err := t.Close(ctx); err != nil {
			logger.Warn("telemetry not flushed", "error", err)
		}
		return nil
	})
	return p, nil
}

// OnStop registers what has to be closed; the last registered closes first.
func (p *Process) OnStop(name string, run func(context.Context) error) {
	p.stops = append(p.stops, stop{name, run})
}

// Ready adds a readiness check. Only what no replica can do without belongs here: a
// dependency that all share takes every replica out at once.
func (p *Process) Ready(name string, ask func(context.Context) error) {
	p.checks = append(p.checks, check{name, ask})
}

// Go runs a background task until the process stops; a task that returns an error
// before that ends the process.
func (p *Process) Go(ctx context.Context, name string, task func(context.Context) error) {
	p.work.Add(1)
	go func() {
		defer p.work.Done()
		if err := task(ctx); err != nil && ctx.Err() == nil {
			p.fail(fmt.Errorf("%s: %w", name, err))
		}
	}()
}

// fail ends the process; the first cause wins, later ones have nobody left to hear them.
func (p *Process) fail(err error) {
	select {
	case p.failed <- err:
	default:
		p.Logger.Error("failed while stopping", "error", err)
	}
}

// Serve listens at addr and serves handler until the process stops.
func (p *Process) Serve(name, addr string, handler http.Handler) (net.Addr, error) {
	s, err := p.listen(name, addr, handler)
	if err != nil {
		return nil, err
	}
	p.servers = append(p.servers, s)
	return s.listener.Addr(), nil
}

func (p *Process) listen(name, addr string, handler http.Handler) (*server, error) {
	pace := p.Settings.pace()
	// One call a connection at a time: what bounds connections bounds calls.
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	listener, err := pace.listen(addr)
	if err != nil {
		return nil, fmt.Errorf("%s: cannot listen at %q: %w", name, addr, err)
	}
	return &server{name: name, listener: listener, http: &http.Server{
		Handler:           pace.bodies(p.bodies, handler),
		ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout:       90 * time.Second,
		MaxHeaderBytes:    32 << 10,
		Protocols:         protocols,
		ErrorLog:          slog.NewLogLogger(p.Logger.Handler(), slog.LevelWarn),
	}}, nil
}

// Announce lets neighbours find this process at addr, or at HUB_ADVERTISE when that is
// set, from now until it begins to stop.
func (p *Process) Announce(service string, addr net.Addr) error {
	directory, err := discover.Open(p.Settings.Directory(), p.Logger)
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	p.Go(ctx, "discovery", func(ctx context.Context) error {
		defer close(done)
		return directory.Announce(ctx, service, cmp.Or(p.Settings.Advertise, addr.String()))
	})
	p.withdraw = func() { cancel(); <-done }
	return nil
}

// Run serves until SIGTERM, SIGINT, a failed task or a failed listener. Then
// readiness fails, listeners drain in-flight calls for at most DrainTimeout, tasks
// end, and what was registered closes, last first.
func (p *Process) Run(ctx context.Context) error {
	ctx, restore := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer restore()
	p.Logger.Info("configuration", "settings", config.LogValue(p.effective),
		"memory_limit", p.memory.limit, "memory_limit_from", p.memory.from, "body_bytes", p.memory.bodies)
	for _, s := range p.servers {
		p.work.Go(func() { p.serve(s) })
		p.Logger.Info("serving", "listener", s.name, "addr", s.listener.Addr().String())
	}
	if s := p.operations; s != nil {
		ended := make(chan struct{})
		go func() { defer close(ended); p.serve(s) }()
		// Registered here so that it closes first of all that is closed: until then it shows how calls drain and tasks end.
		p.OnStop(s.name, func(context.Context) error { defer func() { <-ended }(); return s.http.Close() })
		p.Logger.Info("serving", "listener", s.name, "addr", s.listener.Addr().String())
	}
	var cause error
	select {
	case <-ctx.Done():
		p.Logger.Info("stopping")
	case cause = <-p.failed:
		p.Logger.Error("stopping", "error", cause)
	}
	return errors.Join(cause, p.stop())
}

func (p *Process) serve(s *server) {
	if err := s.http.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		p.fail(fmt.Errorf("%s: %w", s.name, err))
	}
}

func (p *Process) stop() error {
	p.draining.Store(true)
	if p.withdraw != nil {
		p.withdraw()
	}
	// Load balancers need a moment to see that readiness fails.
	time.Sleep(p.Settings.DrainDelay)
	ctx, cancel := context.WithTimeout(context.Background(), p.Settings.DrainTimeout)
	defer cancel()
	var errs []error
	for _, s := range p.servers {
		if err := s.http.Shutdown(ctx); err != nil {
			errs = append(errs, fmt.Errorf("%s did not drain: %w", s.name, err), s.http.Close())
		}
	}
	if p.cancel != nil {
		p.cancel()
	}
	ended := make(chan struct{})
	go func() {
		p.work.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(min(closeTimeout, p.Settings.DrainTimeout)):
		errs = append(errs, errors.New("a task did not end"))
	}
	closing, done := context.WithTimeout(context.Background(), closeTimeout)
	defer done()
	for i := len(p.stops) - 1; i >= 0; i-- {
		if err := p.stops[i].run(closing); err != nil {
			errs = append(errs, fmt.Errorf("close %s: %w", p.stops[i].name, err))
		}
	}
	return errors.Join(errs...)
}

// Background returns a context that ends when the process has drained its calls:
// the one that Go's tasks run under.
func (p *Process) Background() context.Context {
	if p.cancel != nil {
		panic("process: Background is called once")
	}
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	return ctx
}

// Draining tells whether the process has begun to stop.
func (p *Process) Draining() bool { return p.draining.Load() }

// Health adds /healthz (the process lives) and /readyz (it may get calls): to the listener
// that takes the calls, because neighbours and orchestrators ask there whether it does.
func (p *Process) Health(mux *http.ServeMux) {
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, map[string]string{"status": "ok"})
	})
	mux.HandleFunc("GET /readyz", p.ready)
}

// operate is what the listener for operations serves.
func (p *Process) operate() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", p.telemetry.Metrics)
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	return mux
}

func (p *Process) ready(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
	defer cancel()
	if p.Draining() {
		answer(w, http.StatusServiceUnavailable, map[string]string{"status": "draining"})
		return
	}
	for _, c := range p.checks {
		if err := c.ask(ctx); err != nil {
			p.Logger.Warn("not ready", "check", c.name, "error", err)
			answer(w, http.StatusServiceUnavailable, map[string]string{"status": "not ready", "check": c.name})
			return
		}
	}
	answer(w, http.StatusOK, map[string]string{"status": "ready"})
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}
