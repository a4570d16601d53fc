package service

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

// Version is what Hub says of itself: the contract that it keeps. What a program was released as is Release.
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

// process is the life of a program: it owns what runs, and stops it in the reverse order of its start.
type process struct {
	logger   *slog.Logger
	settings Settings
	keys     *caller.Keys

	// effective is the configuration, logged once when nothing is wrong with it.
	effective any
	memory    memory
	telemetry *telemetry.Telemetry
	bodies    *quota.Quota // bytes of requests' bodies in memory
	active    atomic.Int64 // requests that are being answered, those for operations aside
	draining  atomic.Bool
	checks    []check
	// idle is a process that is only looked at: its tasks never start. examined are what the doctor asks beside the checks.
	idle     bool
	examined []check
	// proofs are what has to hold before it takes calls.
	proofs []check
	// calls is the listener that takes the calls.
	calls *server
	// operations is apart: it answers while calls drain. Nil when there is none.
	operations *server
	stops      []stop
	work       sync.WaitGroup
	failed     chan error
	// tasks is what background tasks run under: it ends when the calls have drained.
	tasks  context.Context
	cancel context.CancelFunc
	// withdraw tells neighbours to stop choosing this process.
	withdraw func()
}

// check is a question with its name: its error says what is wrong.
type check struct {
	name string
	ask  func(context.Context) error
}

// stop is what has to be closed, by name.
type stop struct {
	name string
	run  func(context.Context) error
}

// server is a listener with what bounds its connections and what answers.
type server struct {
	name     string
	listener net.Listener
	places   *connections
	http     *http.Server
}

// start prepares a process: keys, logger, telemetry, and the listener for operations. run logs
// effective, the configuration.
func start(ctx context.Context, service string, settings Settings, effective any) (*process, error) {
	if err := settings.check(); err != nil {
		return nil, err
	}
	keys, err := caller.NewKeys(service, settings.SigningKey, settings.TrustedKeys, time.Now)
	if err != nil {
		return nil, fmt.Errorf("configuration: HUB_TRUSTED_KEYS: %w", err)
	}
	logger := telemetry.Logger(os.Stderr, service, settings.LogLevel)
	slog.SetDefault(logger)
	t, err := telemetry.Start(ctx, telemetry.Config{Service: "hub-" + service, Version: Release(),
		Endpoint: settings.OTLPEndpoint, SampleRatio: settings.TraceRatio})
	if err != nil {
		return nil, err
	}
	memory, err := limitMemory(settings)
	if err != nil {
		logger.Warn("the memory limit of the container cannot be read; HUB_MEMORY_LIMIT sets one", "error", err)
	}
	p := &process{effective: effective, memory: memory, logger: logger, settings: settings, keys: keys, telemetry: t,
		bodies: quota.New(int64(memory.bodies)), failed: make(chan error, 1)}
	p.observe()
	p.tasks, p.cancel = context.WithCancel(context.WithoutCancel(ctx))
	if settings.OpsAddr != noOperations {
		if p.operations, err = p.listen(operations, settings.OpsAddr, p.operate()); err != nil {
			return nil, fmt.Errorf("HUB_OPS_ADDR: %w", err)
		}
	}
	p.onStop("telemetry", func(ctx context.Context) error {
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

func (p *process) onStop(name string, run func(context.Context) error) {
	p.stops = append(p.stops, stop{name, run})
}

// spawn runs a task until ctx ends; one that returns an error before that ends the process.
func (p *process) spawn(ctx context.Context, name string, task func(context.Context) error) {
	if p.idle {
		return
	}
	p.work.Go(func() {
		if err := task(ctx); err != nil && ctx.Err() == nil {
			p.fail(fmt.Errorf("%s: %w", name, err))
		}
	})
}

// fail ends the process; the first cause wins, later ones have nobody left to hear them.
func (p *process) fail(err error) {
	select {
	case p.failed <- err:
	default:
		p.logger.Error("failed while stopping", "error", err)
	}
}

// open listens at HUB_ADDR, and serves handler there from run until the process stops.
func (p *process) open(name string, handler http.Handler) (net.Addr, error) {
	s, err := p.listen(name, p.settings.Addr, handler)
	if err != nil {
		return nil, err
	}
	p.calls = s
	return s.listener.Addr(), nil
}

// listen opens a listener at addr whose requests are counted, paced and bounded before handler sees them.
func (p *process) listen(name, addr string, handler http.Handler) (*server, error) {
	pace := p.settings.pace()
	// One call a connection at a time: what bounds connections bounds calls.
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	places := newConnections(p.memory.connections, p.settings.network(p.memory.connections, neighbourShare))
	if name == operations {
		places = newConnections(operationsConnections, operationsConnections/neighbourShare)
	}
	listener, err := pace.listen(addr, places)
	if err != nil {
		return nil, fmt.Errorf("%s: cannot listen at %q: %w", name, addr, err)
	}
	p.observeConnections(name, places)
	return &server{name: name, listener: listener, places: places, http: &http.Server{
		Handler:           p.count(name, p.leave(places.answer(pace.bodies(p.bodies, handler)))),
		ConnContext:       withSlot,
		ConnState:         connState,
		ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout:       90 * time.Second,
		MaxHeaderBytes:    32 << 10,
		Protocols:         protocols,
		ErrorLog:          slog.NewLogLogger(p.logger.Handler(), slog.LevelWarn),
	}}, nil
}

// announce lets neighbours find this process at addr, or at HUB_ADVERTISE when that is
// set, from now until it begins to stop.
func (p *process) announce(directory *discover.Directory, service string, addr net.Addr) {
	ctx, cancel := context.WithCancel(p.tasks)
	done := make(chan struct{})
	p.spawn(ctx, "discovery", func(ctx context.Context) error {
		defer close(done)
		return directory.Announce(ctx, service, cmp.Or(p.settings.Advertise, addr.String()))
	})
	p.withdraw = func() { cancel(); <-done }
}

// run serves until SIGTERM, SIGINT, a failed task or a failed listener. Then
// readiness fails, neighbours are told for DrainDelay that it leaves, the listener drains
// in-flight calls for at most DrainTimeout, tasks end, and what was registered closes, last first.
func (p *process) run(ctx context.Context) error {
	ctx, restore := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer restore()
	p.logger.Info("configuration", "settings", config.LogValue(p.effective),
		"memory_limit", p.memory.limit, "memory_limit_from", p.memory.from, "body_bytes", p.memory.bodies,
		"connections", p.memory.connections, "connections_of_a_network", p.calls.places.share)
	p.work.Go(func() { p.serve(p.calls) })
	p.logger.Info("serving", "listener", p.calls.name, "addr", p.calls.listener.Addr().String())
	if s := p.operations; s != nil {
		ended := make(chan struct{})
		go func() { defer close(ended); p.serve(s) }()
		// Registered here so that it closes first of all that is closed: until then it shows how calls drain and tasks end.
		p.onStop(s.name, func(context.Context) error { defer func() { <-ended }(); return s.http.Close() })
		p.logger.Info("serving", "listener", s.name, "addr", s.listener.Addr().String())
	}
	var cause error
	select {
	case <-ctx.Done():
		p.logger.Info("stopping")
	case cause = <-p.failed:
		p.logger.Error("stopping", "error", cause)
	}
	return errors.Join(cause, p.stop())
}

// leave ends each connection with its next answer once the process has begun to stop, so that few lie idle when they are
// closed: whoever keeps them may just be sending a call. It does so always after a request whose end another reader may
// see elsewhere: one in chunks, which may have had a Content-Length that net/http has dropped (RFC 9112, 6.1), and one of
// HTTP/1.0, of which it has dropped a Transfer-Encoding. What was sent behind it is then nobody's request.
func (p *process) leave(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.draining.Load() || len(r.TransferEncoding) > 0 || !r.ProtoAtLeast(1, 1) {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// serve answers until the listener is closed; its failure ends the process.
func (p *process) serve(s *server) {
	if err := s.http.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		p.fail(fmt.Errorf("%s: %w", s.name, err))
	}
}

// stop is the ordered end that run tells of.
func (p *process) stop() error {
	p.draining.Store(true)
	if p.withdraw != nil {
		p.withdraw()
	}
	// Neighbours and load balancers need a moment to see that it leaves. Until then nothing may close: a call that
	// arrives on a connection while it closes is lost, and most must not be made twice.
	time.Sleep(p.settings.DrainDelay)
	ctx, cancel := context.WithTimeout(context.Background(), p.settings.DrainTimeout)
	defer cancel()
	var errs []error
	if err := p.calls.http.Shutdown(ctx); err != nil {
		errs = append(errs, fmt.Errorf("%s did not drain: %w", p.calls.name, err), p.calls.http.Close())
	}
	p.cancel()
	ended := make(chan struct{})
	go func() {
		p.work.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(min(closeTimeout, p.settings.DrainTimeout)):
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

// health adds /healthz (the process lives) and /readyz (it may get calls): to the listener
// that takes the calls, because neighbours and orchestrators ask there whether it does.
func (p *process) health(name string, mux *http.ServeMux) {
	mux.HandleFunc("GET "+discover.AlivePath, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set(discover.ServiceHeader, name)
		status := "ok"
		if p.draining.Load() {
			w.Header().Set(discover.LeavingHeader, "true")
			status = "draining"
		}
		writeJSON(w, http.StatusOK, map[string]string{"status": status, "version": Release()})
	})
	mux.HandleFunc("GET "+discover.ReadyPath, p.ready)
}

// operate is what the listener for operations serves.
func (p *process) operate() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", p.telemetry.Metrics)
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	return mux
}

// ready answers 200 while all checks hold, and 503 with the name of the first that does not, or while calls drain.
func (p *process) ready(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
	defer cancel()
	if p.draining.Load() {
		writeJSON(w, http.StatusServiceUnavailable, map[string]string{"status": "draining"})
		return
	}
	for _, c := range p.checks {
		if err := c.ask(ctx); err != nil {
			p.logger.Warn("not ready", "check", c.name, "error", err)
			writeJSON(w, http.StatusServiceUnavailable, map[string]string{"status": "not ready", "check": c.name})
			return
		}
	}
	writeJSON(w, http.StatusOK, map[string]string{"status": "ready"})
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}
