package main

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-kit/kit/sd"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/caller/callertest"
	"hub.internal/pkg/discover"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/remote"
	"hub.internal/pkg/rpc"
)

// serve starts auth serve.
func (x *terminal) serve(t *testing.T, environ ...string) *hubtest.Program {
	t.Helper()
	return hubtest.Launch(t, slices.Concat(x.environ, callertest.Environ("auth", "auth", caller.Gateway), environ), "serve")
}

func TestServe(t *testing.T) {
	t.Parallel()
	x := newTerminal(t)
	k := x.issue(t)
	began := time.Now()
	p := x.serve(t)
	p.Ready(t)
	t.Logf("ready after %v", time.Since(began))
	for path, want := range map[string]int{"/healthz": 200, "/readyz": 200, "/metrics": 404, "/debug/pprof/": 404, rpc.ManifestPath: 401,
		"/internal/apikeys/verify": 405, "/": 404} {
		if got := p.Get(path); got != want {
			t.Errorf("GET %s: %d, want %d", path, got, want)
		}
	}
	client := remote.New(
		remote.Options{
			Service:   "auth",
			Instancer: sd.FixedInstancer{p.Addr(t)},
			Keys:      callertest.Keys(t, caller.Gateway),
			Logger:    slog.New(slog.DiscardHandler),
			Patience:  hubtest.Patience,
		},
	)
	defer client.Close()
	type answer struct{ ID, Status string }
	ask := func(key string) (answer, error) {
		return remote.Operation[map[string]string, answer]{
			Path:       "/internal/apikeys/verify",
			Repeatable: true,
		}.Call(
			t.Context(),
			client,
			map[string]string{"key": key},
		)
	}
	if got, err := ask(k.Key); err != nil || got != (answer{k.ID, "active"}) {
		t.Errorf("%+v, %v", got, err)
	}
	x.ok(t, "apikey", "revoke", k.ID, "--reason", "over")
	if got, err := ask(k.Key); err != nil || got.Status != "revoked" {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := ask("crm_x"); !fault.Is(err, fault.AuthInvalid) {
		t.Error(err)
	}
	if code := p.Stop(t); code != 0 {
		t.Errorf("exit %d: %s", code, p.Log)
	}
	log := p.Log.String()
	for _, secret := range []string{k.Key[8:42], pepper, callertest.Signing("auth").Reveal(), "hub_auth-test"} {
		if strings.Contains(log, secret) {
			t.Errorf("the log holds a secret: %s", log)
		}
	}
	for line := range strings.Lines(log) {
		if !json.Valid([]byte(line)) {
			t.Errorf("log line %s", line)
		}
	}
}

// TestServeBeforeItsStore starts in the wrong order: without tables, then with them.
func TestServeBeforeItsStore(t *testing.T) {
	t.Parallel()
	db := hubtest.WriteStore(t)
	x := &terminal{db, []string{"HUB_WRITE_STORE_URL=" + db.URL("auth"), "HUB_KEY_PEPPER=" + pepper, "HUB_MIGRATE_URL=" + db.OwnerURL}}
	p := x.serve(t)
	hubtest.Eventually(t, "the log says what is missing", func() bool {
		return p.Get("/readyz") == http.StatusServiceUnavailable && strings.Contains(p.Log.String(), "auth migrate")
	})
	if _, errs, _ := x.run("migrate"); errs != "" {
		t.Error(errs)
	}
	p.Ready(t)
}

func TestServeRegistersInConsul(t *testing.T) {
	t.Parallel()
	agent := hubtest.Consul(t)
	x := newTerminal(t)
	p := x.serve(t, "HUB_DISCOVERY=consul", "HUB_CONSUL_ADDR="+agent.Addr(), "HUB_DRAIN_DELAY=5s")
	p.Ready(t)
	directory, err := discover.Open(discover.Config{Mode: discover.Consul, ConsulAddr: agent.Addr()}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	instances := func() []string {
		i := directory.Instancer("auth")
		defer i.Stop()
		events := make(chan sd.Event, 1)
		i.Register(events)
		defer i.Deregister(events)
		return (<-events).Instances
	}
	hubtest.Eventually(t, "auth is registered", func() bool { got := instances(); return len(got) == 1 && got[0] == p.Addr(t) })
	p.Signal(t, syscall.SIGTERM)
	hubtest.Eventually(t, "auth is deregistered", func() bool { return len(instances()) == 0 })
	if p.Get("/healthz") != http.StatusOK {
		t.Error("auth was deregistered after its listener had gone")
	}
	if code := p.Stop(t); code != 0 {
		t.Errorf("exit %d: %s", code, p.Log)
	}
}
