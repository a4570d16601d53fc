package discover_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-kit/kit/sd"
	"github.com/hashicorp/consul/api"

	"hub.internal/pkg/discover"
	"hub.internal/pkg/hubtest"
)

func TestMain(m *testing.M) { hubtest.Main(m) }

var quiet = slog.New(slog.DiscardHandler)

func open(t testing.TB, c discover.Config) *discover.Directory {
	t.Helper()
	d, err := discover.Open(c, quiet)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// follower is what a client knows of a service: the last list that was no error.
type follower struct {
	mu        sync.Mutex
	instances []string
}

func follow(t testing.TB, i sd.Instancer) *follower {
	t.Helper()
	f := &follower{}
	events := make(chan sd.Event)
	go func() {
		for e := range events {
			if e.Err == nil {
				f.mu.Lock()
				f.instances = slices.Sorted(slices.Values(e.Instances))
				f.mu.Unlock()
			}
		}
	}()
	i.Register(events)
	t.Cleanup(func() { i.Stop(); i.Deregister(events); close(events) })
	return f
}

func (f *follower) knows(addrs ...string) func() bool {
	slices.Sort(addrs)
	return func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return slices.Equal(f.instances, addrs)
	}
}

func TestSettingsAreRefusedInOneLineThatNamesThem(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config discover.Config
		names  string
	}{
		"no mode":         {discover.Config{}, "HUB_DISCOVERY"},
		"unknown mode":    {discover.Config{Mode: "etcd"}, "HUB_DISCOVERY"},
		"no domain":       {discover.Config{Mode: discover.DNS}, "HUB_DNS_DOMAIN"},
		"no equals sign":  {discover.Config{Mode: discover.Static, Instances: "auth"}, "HUB_STATIC"},
		"no name":         {discover.Config{Mode: discover.Static, Instances: "=10.0.0.1:7000"}, "HUB_STATIC"},
		"no port":         {discover.Config{Mode: discover.Static, Instances: "auth=10.0.0.1"}, "HUB_STATIC"},
		"no host":         {discover.Config{Mode: discover.Static, Instances: "auth=:7000"}, "HUB_STATIC"},
		"port 0":          {discover.Config{Mode: discover.Static, Instances: "auth=10.0.0.1:0"}, "HUB_STATIC"},
		"port no number":  {discover.Config{Mode: discover.Static, Instances: "auth=10.0.0.1:http"}, "HUB_STATIC"},
		"port too large":  {discover.Config{Mode: discover.Static, Instances: "auth=10.0.0.1:70000"}, "HUB_STATIC"},
		"one of them bad": {discover.Config{Mode: discover.Static, Instances: "auth=10.0.0.1:7000, query"}, "HUB_STATIC"},
		"URL":             {discover.Config{Mode: discover.Static, Instances: "auth=http://10.0.0.1:7000"}, "HUB_STATIC"},
	} {
		if _, err := discover.Open(
			c.config,
			quiet,
		); err == nil || !strings.Contains(err.Error(), c.names) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want one line with %s", name, err, c.names)
		}
	}
}

func TestStatic(t *testing.T) {
	t.Parallel()
	d := open(t, discover.Config{Mode: discover.Static, Instances: " query=10.0.0.2:7000, auth=[::1]:7000 ,query=10.0.0.1:7000,"})
	hubtest.Eventually(t, "the names", watch(t, d).told("auth", "query"))
	// Two clients of one list, as a gateway has them, each sort it.
	for _, f := range []*follower{follow(t, d.Instancer("query")), follow(t, d.Instancer("query"))} {
		hubtest.Eventually(t, "both instances", f.knows("10.0.0.1:7000", "10.0.0.2:7000"))
	}
	hubtest.Eventually(t, "the other service", follow(t, d.Instancer("auth")).knows("[::1]:7000"))
	hubtest.Eventually(t, "an unknown service has none", follow(t, d.Instancer("payments")).knows())
	if err := d.Announce(t.Context(), "auth", "not even an address"); err != nil { // nothing to do
		t.Error(err)
	}
	hubtest.Eventually(t, "no names", watch(t, open(t, discover.Config{Mode: discover.Static})).told())
	dns := open(t, discover.Config{Mode: discover.DNS, DNSDomain: "hub.example", DNSServices: []string{"query", "admin"}})
	hubtest.Eventually(t, "the names", watch(t, dns).told("admin", "query"))
}

// watcher is what a Directory has told last.
type watcher struct {
	mu    sync.Mutex
	times int
	names []string
}

func watch(t testing.TB, d *discover.Directory) *watcher {
	t.Helper()
	w := &watcher{}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		err := d.Watch(ctx, func(names []string) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.times, w.names = w.times+1, names
		})
		if err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
	return w
}

func (w *watcher) told(names ...string) func() bool {
	return func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.times > 0 && slices.Equal(w.names, names)
	}
}

// TestConsulTellsOfServices that come and go, and not of what else the agent knows.
func TestConsulTellsOfServices(t *testing.T) {
	t.Parallel()
	consul := hubtest.Consul(t)
	d := open(t, discover.Config{Mode: discover.Consul, ConsulAddr: consul.Addr()})
	agent, err := api.NewClient(&api.Config{Address: consul.Addr()})
	if err != nil {
		t.Fatal(err)
	}
	if err := agent.Agent().ServiceRegister(&api.AgentServiceRegistration{Name: "somebody-elses"}); err != nil {
		t.Fatal(err)
	}
	names := func(w *watcher, name string) func() bool {
		return func() bool {
			w.mu.Lock()
			defer w.mu.Unlock()
			return slices.Contains(w.names, name) && !slices.Contains(w.names, "somebody-elses") && !slices.Contains(w.names, "consul")
		}
	}
	w := watch(t, d)
	hubtest.Eventually(t, "it is told at once", func() bool { w.mu.Lock(); defer w.mu.Unlock(); return w.times > 0 })
	withdraw := announce(t, d, "newcomer", newProcess(t).addr)
	hubtest.Eventually(t, "a newcomer is told of", names(w, "newcomer"))
	hubtest.Eventually(t, "a later watcher agrees", names(watch(t, d), "newcomer"))
	withdraw()
	hubtest.Eventually(t, "it has gone", func() bool { return !names(w, "newcomer")() })
}

// process is something that listens and can be announced.
type process struct {
	addr        string
	well, ready atomic.Bool
}

func newProcess(t testing.TB) *process {
	t.Helper()
	p := &process{}
	p.well.Store(true)
	p.ready.Store(true)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !p.well.Load() || r.URL.Path == discover.ReadyPath && !p.ready.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(server.Close)
	p.addr = strings.TrimPrefix(server.URL, "http://")
	return p
}

// announce keeps the process announced until the function that it returns is called.
func announce(t testing.TB, d *discover.Directory, service, addr string) (withdraw func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := d.Announce(ctx, service, addr); err != nil {
			t.Error(err)
		}
	}()
	withdraw = func() { cancel(); <-done }
	t.Cleanup(withdraw)
	return withdraw
}

func TestConsulFindsWhatIsAnnounced(t *testing.T) {
	t.Parallel()
	d := open(t, discover.Config{Mode: discover.Consul, ConsulAddr: hubtest.Consul(t).Addr()})
	a, b := newProcess(t), newProcess(t)
	f := follow(t, d.Instancer("found"))
	withdraw := announce(t, d, "found", a.addr)
	announce(t, d, "found", b.addr)
	announce(t, d, "another", newProcess(t).addr)
	hubtest.Eventually(t, "both are found", f.knows(a.addr, b.addr))
	withdraw()
	hubtest.Eventually(t, "one has withdrawn", f.knows(b.addr))
	hubtest.Eventually(t, "a later follower agrees", follow(t, d.Instancer("found")).knows(b.addr))
}

func TestConsulDropsTheUnwell(t *testing.T) {
	t.Parallel()
	d := open(t, discover.Config{Mode: discover.Consul, ConsulAddr: hubtest.Consul(t).Addr()})
	a, b := newProcess(t), newProcess(t)
	f := follow(t, d.Instancer("unwell"))
	announce(t, d, "unwell", a.addr)
	announce(t, d, "unwell", b.addr)
	hubtest.Eventually(t, "both are found", f.knows(a.addr, b.addr))
	a.well.Store(false)
	hubtest.Eventually(t, "the unwell one is dropped", f.knows(b.addr))
	a.well.Store(true)
	hubtest.Eventually(t, "it is back", f.knows(a.addr, b.addr))
	// One that has never been ready gets no call before it is.
	c := newProcess(t)
	c.well.Store(false)
	announce(t, d, "unwell", c.addr)
	agent, err := api.NewClient(&api.Config{Address: hubtest.Consul(t).Addr()})
	if err != nil {
		t.Fatal(err)
	}
	hubtest.Eventually(t, "the agent knows it", func() bool {
		all, _, err := agent.Health().Service("unwell", "", false, nil)
		return err == nil && len(all) == 3
	})
	if !f.knows(a.addr, b.addr)() {
		t.Error("a process is found before it is ready")
	}
	c.well.Store(true)
	hubtest.Eventually(t, "it is ready", f.knows(a.addr, b.addr, c.addr))
}

// TestConsulWaitsForReadiness: a process that lives and is not ready gets no calls, at its start and later, and is not
// forgotten for that.
func TestConsulWaitsForReadiness(t *testing.T) {
	t.Parallel()
	consul := hubtest.Consul(t)
	d := open(t, discover.Config{Mode: discover.Consul, ConsulAddr: consul.Addr()})
	a, b := newProcess(t), newProcess(t)
	b.ready.Store(false)
	f := follow(t, d.Instancer("waits"))
	announce(t, d, "waits", a.addr)
	hubtest.Eventually(t, "the ready one is found", f.knows(a.addr))
	announce(t, d, "waits", b.addr)
	client, err := api.NewClient(&api.Config{Address: consul.Addr()})
	if err != nil {
		t.Fatal(err)
	}
	listed := func() bool {
		all, _, err := client.Health().Service("waits", "", false, nil)
		return err == nil && len(all) == 2
	}
	hubtest.Eventually(t, "the other is on the list", listed)
	if !f.knows(a.addr)() {
		t.Error("it gets calls before it is ready")
	}
	b.ready.Store(true)
	hubtest.Eventually(t, "it gets calls", f.knows(a.addr, b.addr))
	a.ready.Store(false)
	hubtest.Eventually(t, "the one that is no more ready gets none", f.knows(b.addr))
	if !listed() {
		t.Error("it was forgotten")
	}
}

// TestConsulIsToldAnAddressThatCanBeReached, although the process listens on all interfaces.
func TestConsulIsToldAnAddressThatCanBeReached(t *testing.T) {
	t.Parallel()
	d := open(t, discover.Config{Mode: discover.Consul, ConsulAddr: hubtest.Consul(t).Addr()})
	p := newProcess(t)
	_, port, _ := strings.Cut(p.addr, ":")
	withdraw := announce(t, d, "everywhere", "0.0.0.0:"+port)
	f := follow(t, d.Instancer("everywhere"))
	hubtest.Eventually(t, "it is found", f.knows(p.addr))
	withdraw()
	hubtest.Eventually(t, "it has withdrawn", f.knows())
}

// TestConsulMayStartLateAndForget: a development agent forgets everything when it restarts.
func TestConsulMayStartLateAndForget(t *testing.T) {
	t.Parallel()
	agent := hubtest.NewConsul(t)
	agent.Kill()
	d := open(t, discover.Config{Mode: discover.Consul, ConsulAddr: agent.Addr()})
	p := newProcess(t)
	f := follow(t, d.Instancer("late"))
	announce(t, d, "late", p.addr)
	for range 2 {
		if err := agent.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		hubtest.Eventually(t, "it is found", f.knows(p.addr))
		agent.Kill()
		if !f.knows(p.addr)() {
			t.Error("an agent that is away has cost us the last known instances")
		}
	}
}

func TestHungConsulKeepsNobodyFromStopping(t *testing.T) {
	t.Parallel()
	agent := hubtest.NewConsul(t)
	d := open(t, discover.Config{Mode: discover.Consul, ConsulAddr: agent.Addr()})
	p := newProcess(t)
	withdraw := announce(t, d, "hung", p.addr)
	hubtest.Eventually(t, "it is found", follow(t, d.Instancer("hung")).knows(p.addr))
	if err := agent.Pause(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = agent.Resume() }()
	begin := time.Now()
	withdraw()
	if took := time.Since(begin); took > hubtest.Patience {
		t.Errorf("it took %v", took)
	}
}

func TestAnnounceNeedsAnAddress(t *testing.T) {
	t.Parallel()
	d := open(t, discover.Config{Mode: discover.Consul, ConsulAddr: "127.0.0.1:1"})
	for _, addr := range []string{"", "host", ":7000", "host:", "host:http", "host:0"} {
		if err := d.Announce(t.Context(), "auth", addr); err == nil || !strings.Contains(err.Error(), "HUB_ADVERTISE") {
			t.Errorf("%q: %v", addr, err)
		}
	}
}
