package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-kit/kit/sd"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/discover"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/hubtest/servers"
	"hub.internal/pkg/remote"
	"hub.internal/pkg/tool"
)

const internalKey = "internal-0123456789abcdef01234567"

// program is a running auth serve.
type program struct {
	cmd   *exec.Cmd
	addr  string
	began time.Time
	ready time.Duration
	log   *syncBuffer
	done  chan error
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// start runs auth serve in a process of its own and waits until it is ready.
func start(t *testing.T, x *terminal, environ ...string) *program {
	t.Helper()
	p := launch(t, x, environ...)
	p.await(t)
	return p
}

// launch runs auth serve in a process of its own.
func launch(t *testing.T, x *terminal, environ ...string) *program {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	port, err := servers.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	p := &program{cmd: exec.Command(self, "serve"), addr: fmt.Sprintf("127.0.0.1:%d", port), log: &syncBuffer{}, done: make(chan error, 1)}
	p.cmd.Env = append(append(append(os.Environ(), x.environ...), "HUB_INTERNAL_KEYS="+internalKey+","+internalKey+"2", "HUB_ADDR="+p.addr, asProgram+"=1"), environ...)
	p.cmd.Stderr = p.log
	p.began = time.Now()
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.done <- p.cmd.Wait() }()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.done
	})
	return p
}

// await waits until the program is ready.
func (p *program) await(t *testing.T) {
	t.Helper()
	hubtest.Eventually(t, "auth serve is ready", func() bool { return p.get("/readyz") == http.StatusOK })
	p.ready = time.Since(p.began)
}

func (p *program) get(path string) int {
	res, err := http.Get("http://" + p.addr + path)
	if err != nil {
		return 0
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, res.Body)
	return res.StatusCode
}

// stop ends the program as Kubernetes would and returns its exit code.
func (p *program) stop(t *testing.T) int {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-p.done:
		p.done <- err
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			return exit.ExitCode()
		}
		return 0
	case <-time.After(20 * time.Second):
		t.Fatal("auth serve does not stop")
		return -1
	}
}

func TestServe(t *testing.T) {
	t.Parallel()
	x := newTerminal(t)
	k := x.issue(t)
	p := start(t, x)
	t.Logf("ready after %v", p.ready)
	for path, want := range map[string]int{"/healthz": 200, "/readyz": 200, "/metrics": 200, "/debug/pprof/": 200, tool.ManifestPath: 401, "/internal/apikeys/verify": 405, "/": 404} {
		if got := p.get(path); got != want {
			t.Errorf("GET %s: %d, want %d", path, got, want)
		}
	}
	keys, err := caller.NewKeys([]string{internalKey}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	client := remote.New(remote.Options{Service: "auth", Instancer: sd.FixedInstancer{p.addr}, Keys: keys, Logger: slog.New(slog.DiscardHandler)})
	defer client.Close()
	type answer struct{ ID, Status string }
	ask := func(key string) (answer, error) {
		return remote.Call[map[string]string, answer](t.Context(), client, "/internal/apikeys/verify", true, map[string]string{"key": key})
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
	if code := p.stop(t); code != 0 {
		t.Errorf("exit %d: %s", code, p.log)
	}
	log := p.log.String()
	for _, secret := range []string{k.Key[8:42], pepper, internalKey, "hub_auth-test"} {
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
	p := launch(t, x)
	hubtest.Eventually(t, "the log says what is missing", func() bool {
		return p.get("/readyz") == http.StatusServiceUnavailable && strings.Contains(p.log.String(), "auth migrate")
	})
	if _, errs, _ := x.run("migrate"); errs != "" {
		t.Error(errs)
	}
	p.await(t)
}

func TestServeRegistersInConsul(t *testing.T) {
	t.Parallel()
	agent := hubtest.Consul(t)
	x := newTerminal(t)
	p := start(t, x, "HUB_DISCOVERY=consul", "HUB_CONSUL_ADDR="+agent.Addr(), "HUB_DRAIN_DELAY=300ms")
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
	hubtest.Eventually(t, "auth is registered", func() bool { got := instances(); return len(got) == 1 && got[0] == p.addr })
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	hubtest.Eventually(t, "auth is deregistered", func() bool { return len(instances()) == 0 })
	if p.get("/healthz") != http.StatusOK {
		t.Error("auth was deregistered after its listener had gone")
	}
	if code := p.stop(t); code != 0 {
		t.Errorf("exit %d: %s", code, p.log)
	}
}
