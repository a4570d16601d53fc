package main

import (
	"context"
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/localserver"
)

// inProcess runs a supervisor in this process; the returned function gives it a plan and
// waits till it is applied.
func inProcess(t *testing.T, c checkout) (apply func(plan) status, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	hangup := make(chan os.Signal, 1)
	ended := make(chan error, 1)
	go func() { ended <- supervise(ctx, c.layout, hangup, testLog{t}) }()
	stop = func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		ended <- nil
	}
	t.Cleanup(stop)
	generation := int64(0)
	return func(p plan) status {
		t.Helper()
		generation++
		p.Generation = generation
		if err := writeJSON(c.plan(), p, 0o600); err != nil {
			t.Fatal(err)
		}
		hangup <- syscall.SIGHUP
		var now status
		hubtest.Eventually(t, "plan applied", func() bool {
			now = status{} // or the maps of the last reading would shine through
			if err := readJSON(c.status(), &now); err != nil {
				t.Fatal(err)
			}
			return now.Applied == generation
		})
		return now
	}, stop
}

type testLog struct{ t *testing.T }

func (l testLog) Write(b []byte) (int, error) {
	l.t.Logf("%s", strings.TrimSpace(string(b)))
	return len(b), nil
}

func TestAKilledServiceIsBackWithinASecond(t *testing.T) {
	c := newCheckout(t)
	apply, _ := inProcess(t, c)
	now := apply(plan{Services: []serviceSpec{c.fake("query", layerServices), c.fake("auth", layerServices)}})
	if got := slices.Sorted(maps.Keys(c.pidFile())); !slices.Equal(got, []string{"auth", "query"}) {
		t.Fatalf("pids.json names %v", got)
	}
	authPID := now.Programs["auth"].PID
	kill := func() {
		t.Helper()
		old := c.pidFile()["query"]
		if err := syscall.Kill(old, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		hubtest.Eventually(t, "a new pid of query", func() bool {
			pid := c.pidFile()["query"]
			return pid != 0 && pid != old && alive(pid)
		})
	}
	hubtest.Within(t, time.Second, "a restart", kill)
	kill()
	kill()
	if pid := c.pidFile()["auth"]; pid != authPID {
		t.Errorf("auth was restarted as well: %d, before %d", pid, authPID)
	}
}

func TestACrashLoopIsSlowAndExplained(t *testing.T) {
	c := newCheckout(t)
	apply, _ := inProcess(t, c)
	apply(plan{Services: []serviceSpec{c.fake("query", layerServices, "FAKE_CRASH=1")}})
	var now status
	hubtest.Eventually(t, "three restarts", func() bool {
		if err := readJSON(c.status(), &now); err != nil {
			t.Fatal(err)
		}
		return now.Programs["query"].Restarts >= 3
	})
	if why := now.Programs["query"].Error; !strings.Contains(why, "exit status 3") {
		t.Errorf("error = %q", why)
	}
	if words := lastLines(
		c.log("query"),
		1,
	); !strings.Contains(words, "HUB_SOMETHING is not set") ||
		!strings.Contains(words, "set it to this") {
		t.Errorf("last line of the log = %q", words)
	}
	before, began := len(c.journal()), time.Now()
	time.Sleep(2 * time.Second) // the pause has grown to its limit meanwhile
	if starts, took := len(c.journal())-before, time.Since(began); starts > 4+int(took/longPause) {
		t.Errorf("%d starts in %v", starts, took)
	}
}

func TestStopOrder(t *testing.T) {
	c := newCheckout(t)
	apply, stop := inProcess(t, c)
	apply(plan{Services: []serviceSpec{
		c.fake(
			"auth",
			layerServices,
		),
		c.fake("gateway", layerEdge),
		c.fake("query", layerServices),
		c.fake("stand-in-for-postgres", layerServers),
	}})
	hubtest.Eventually(t, "four starts", func() bool { return len(c.journal()) == 4 })
	stop()
	var stops []string
	for _, line := range c.journal() {
		if name, ok := strings.CutSuffix(line, ":stop"); ok {
			stops = append(stops, name)
		}
	}
	if len(stops) != 4 || stops[0] != "gateway" || stops[3] != "stand-in-for-postgres" {
		t.Errorf("stopped in the order %v", stops)
	}
	if left := c.pidFile(); len(left) != 0 {
		t.Errorf("pids.json still names %v", left)
	}
}

func TestOnlyWhatChangedIsRestarted(t *testing.T) {
	c := newCheckout(t)
	apply, _ := inProcess(t, c)
	gateway, auth, query := c.fake("gateway", layerEdge), c.fake("auth", layerServices), c.fake("query", layerServices)
	first := apply(plan{Services: []serviceSpec{gateway, auth, query}})
	auth.Digest = "another build"
	second := apply(plan{Services: []serviceSpec{gateway, auth}})
	if first.Programs["gateway"].PID != second.Programs["gateway"].PID {
		t.Error("gateway was restarted without a reason")
	}
	if first.Programs["auth"].PID == second.Programs["auth"].PID {
		t.Error("auth was not restarted though its program changed")
	}
	if _, there := second.Programs["query"]; there || alive(first.Programs["query"].PID) {
		t.Error("query runs though the plan dropped it")
	}
}

func TestAKilledServerIsBackOnItsPort(t *testing.T) {
	if missing := localserver.Missing(); len(missing) > 0 {
		t.Skip("missing servers: ", missing)
	}
	c := newCheckout(t)
	port, err := localserver.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	apply, stop := inProcess(t, c)
	now := apply(plan{Servers: []serverSpec{{Name: "redis", Port: port, Password: "x"}}})
	old := now.Programs["redis"].PID
	if old == 0 {
		t.Fatalf("redis does not run: %+v", now.Programs["redis"])
	}
	if err := syscall.Kill(old, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	hubtest.Eventually(t, "redis is back", func() bool { pid := c.pidFile()["redis"]; return pid != 0 && pid != old })
	if localserver.PortFree(port) {
		t.Error("redis came back on another port")
	}
	stop()
	if !localserver.PortFree(port) {
		t.Error("redis still listens after the stop")
	}
}

// The real thing: a detached supervisor that is told by files and signals, that hangs, and
// that is killed.
func TestControlOfADetachedSupervisor(t *testing.T) {
	c := newCheckout(t)
	ctl := control{c.layout}
	t.Cleanup(func() {
		if err := ctl.kill(context.Background()); err != nil {
			t.Error(err)
		}
	})
	wanted := plan{Generation: 1, Services: []serviceSpec{c.fake("query", layerServices)}}
	now, err := ctl.run(t.Context(), wanted)
	if err != nil {
		t.Fatal(err, lastLines(c.log("supervisor"), 9))
	}
	supervisor, service := now.PID, now.Programs["query"].PID
	if err := supervise(t.Context(), c.layout, nil, testLog{t}); err == nil || !strings.Contains(err.Error(), "another supervisor") {
		t.Errorf("a second supervisor: %v", err)
	}
	wanted.Generation = 2
	if now, err = ctl.run(t.Context(), wanted); err != nil || now.PID != supervisor || now.Programs["query"].PID != service {
		t.Fatalf("the same plan again: %+v, %v", now, err)
	}

	if err := syscall.Kill(supervisor, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	wanted.Generation = 3
	if _, err := ctl.run(t.Context(), wanted); !errors.Is(err, errUnresponsive) {
		t.Fatalf("a hung supervisor: %v", err)
	}
	if err := ctl.kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	hubtest.Eventually(t, "the service died with its supervisor", func() bool { return !alive(service) })
	if now, err = ctl.run(t.Context(), wanted); err != nil || now.PID == supervisor || !alive(now.Programs["query"].PID) {
		t.Fatalf("after the kill: %+v, %v", now, err)
	}
	if err := ctl.stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if pid, err := ctl.pid(); pid != 0 || err != nil {
		t.Errorf("supervisor after stop: %d, %v", pid, err)
	}
	if len(c.pidFile()) != 0 {
		t.Errorf("pids.json after stop: %v", c.pidFile())
	}
}
