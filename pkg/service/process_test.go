package service_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/caller/callertest"
	"hub.internal/pkg/discover"
	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/service"
	"hub.internal/pkg/tool"
)

// The tests watch a real process from outside: this test binary, run again as the program below.
func TestMain(m *testing.M) { hubtest.ProgramMain(m, main) }

// main is that of a small service: the last argument says what goes wrong, and SIGUSR1 releases
// what waits.
func main() {
	mode := os.Args[len(os.Args)-1]
	if mode == "doctor" {
		os.Exit(patient().Main())
	}
	os.Args = []string{"tester", "serve"}
	if err := errors.Join(enterCgroup(), fewDescriptors()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(
		service.Program[service.Settings]{
			Name:  "tester",
			Build: func(h *service.Host, _ service.Settings) error { return build(h, mode) },
		}.Main(),
	)
}

func build(h *service.Host, mode string) error {
	for _, name := range []string{"first", "second"} {
		h.OnStop(name, func(context.Context) error { h.Logger().Info("closed", "what", name); return nil })
	}
	released, release := signal.NotifyContext(context.Background(), syscall.SIGUSR1)
	h.OnStop("signals", func(context.Context) error { release(); return nil })
	h.Ready("store", func(context.Context) error {
		if mode == "store down" {
			return errors.New("dial tcp 10.0.0.7: secret")
		}
		return nil
	})
	h.Go("task", func(ctx context.Context) error {
		switch mode {
		case "task fails":
			<-released.Done()
			return errors.New("the task broke")
		case "task hangs":
			select {}
		}
		<-ctx.Done()
		h.Logger().Info("closed", "what", "task")
		return ctx.Err() // an error while it stops is none
	})
	for i := range 20 {
		h.Go(fmt.Sprint("failing while stopping ", i), func(context.Context) error {
			if mode != "tasks fail late" {
				return nil
			}
			for !h.Draining() {
				time.Sleep(time.Millisecond)
			}
			return errors.New("late")
		})
	}
	switch p := (pages{h.Logger(), released}); mode {
	case "public", "proxied":
		h.Public(mode == "proxied", p.Mount)
	default:
		h.Pages(p)
	}
	return nil
}

// pages are what the tests call.
type pages struct {
	logger   *slog.Logger
	released context.Context
}

func (pages) Routes() []tool.Route { return nil }

func (p pages) Mount(mux *http.ServeMux) {
	mux.HandleFunc("GET /slow", func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		<-p.released.Done()
		if r.Context().Err() != nil {
			p.logger.Error("the call was cut off")
		}
		_, _ = io.WriteString(w, "done")
		p.logger.Info("closed", "what", "call")
	})
	mux.HandleFunc("POST /work", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, "{}")
	})
	transfers(p.logger, mux)
	keepers(mux, p.released)
}

// keys are the settings that every process needs. Nobody asks the store here.
var keys = append(callertest.Environ("tester", "tester", "gateway"), "HUB_WRITE_STORE_URL=postgres://hub_tester@127.0.0.1:1/hub")

// secret is a part of the signing key.
var secret = callertest.Signing("tester").Reveal()[30:]

// with are the keys and other settings.
func with(environ ...string) []string { return slices.Concat(keys, environ) }

// running is the program as a process.
type running struct{ *hubtest.Program }

func run(t *testing.T, mode string, environ ...string) running {
	t.Helper()
	return running{hubtest.Launch(t, environ, mode)}
}

// events are the lines of the log.
func (r running) events() (events []map[string]any) {
	for line := range strings.Lines(r.Log.String()) {
		var event map[string]any
		if json.Unmarshal([]byte(line), &event) == nil {
			events = append(events, event)
		}
	}
	return events
}

// closed lists what has ended, in order.
func (r running) closed() (what []string) {
	for _, event := range r.events() {
		if event["msg"] == "closed" {
			what = append(what, event["what"].(string))
		}
	}
	return what
}

func get(url string) (status int, body string) {
	resp, err := (&http.Client{Timeout: 20 * time.Second}).Get(url)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(b)
}

// TestHealthNamesTheService, so that neighbours know who answers at an address.
func TestHealthNamesTheService(t *testing.T) {
	t.Parallel()
	resp, err := http.Get("http://" + run(t, "", with()...).Addr(t) + discover.AlivePath)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if got := resp.Header.Get(discover.ServiceHeader); got != "tester" {
		t.Errorf("it is the service %q", got)
	}
}

func TestCallsInFlightFinishAtSIGTERM(t *testing.T) {
	t.Parallel()
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(s.String(), func(t *testing.T) {
			t.Parallel()
			r := run(t, "", with("HUB_DRAIN_DELAY=5s")...) // for us to see it drain, on a busy machine too
			api := "http://" + r.Addr(t)
			for path, want := range map[string]string{"/healthz": `"ok"`, "/readyz": `"ready"`} {
				if status, body := get(api + path); status != 200 || !strings.Contains(body, want) {
					t.Errorf("%s: %d %s", path, status, body)
				}
			}
			call, err := http.Get(api + "/slow") //nolint:noctx // the answer has begun when it returns
			if err != nil {
				t.Fatal(err)
			}
			defer call.Body.Close()
			r.Signal(t, s)
			hubtest.Eventually(t, "readiness fails", func() bool {
				status, body := get(api + "/readyz")
				return status == http.StatusServiceUnavailable && strings.Contains(body, "draining")
			})
			if status, _ := get(api + "/healthz"); status != 200 {
				t.Errorf("a draining process is not alive: %d", status)
			}
			hubtest.Eventually(t, "the listener closes", func() bool {
				c, err := net.Dial("tcp", strings.TrimPrefix(api, "http://"))
				if err == nil {
					_ = c.Close()
				}
				return err != nil
			})
			r.Signal(t, syscall.SIGUSR1)
			if b, err := io.ReadAll(call.Body); err != nil || string(b) != "done" {
				t.Errorf("the call in flight got %q, %v", b, err)
			}
			if code := r.Wait(t); code != 0 {
				t.Errorf("exit %d:\n%s", code, r.Log)
			}
			if got, want := r.closed(), []string{"call", "task", "second", "first"}; !slices.Equal(got, want) {
				t.Errorf("ended in the order %v, want %v", got, want)
			}
		})
	}
}

func TestEnds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		mode    string
		environ []string
		release bool // what waits is released, in place of a signal
		code    int
		says    string
	}{
		"nothing to drain":          {environ: keys},
		"a task breaks":             {mode: "task fails", environ: keys, release: true, code: 1, says: "task: the task broke"},
		"many break while it stops": {mode: "tasks fail late", environ: with("HUB_DRAIN_DELAY=200ms")},
		"a task does not end":       {mode: "task hangs", environ: with("HUB_DRAIN_TIMEOUT=100ms"), code: 1, says: "a task did not end"},
		"no collector":              {environ: with("OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1"), says: "telemetry"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := run(t, c.mode, c.environ...)
			r.Listener(t, "operations")
			if c.release {
				r.Signal(t, syscall.SIGUSR1)
			} else {
				r.Signal(t, syscall.SIGTERM)
			}
			if code := r.Wait(t); code != c.code || !strings.Contains(r.Log.String(), c.says) {
				t.Errorf("exit %d, want %d and %q:\n%s", code, c.code, c.says, r.Log)
			}
			if got := r.closed(); len(got) < 2 || got[len(got)-2] != "second" || got[len(got)-1] != "first" {
				t.Errorf("closed %v", got)
			}
		})
	}
}

func TestCallThatDoesNotFinishIsCutOff(t *testing.T) {
	t.Parallel()
	r := run(t, "", with("HUB_DRAIN_TIMEOUT=100ms")...)
	call, err := http.Get("http://" + r.Addr(t) + "/slow") //nolint:noctx // the answer has begun when it returns
	if err != nil {
		t.Fatal(err)
	}
	defer call.Body.Close()
	r.Signal(t, syscall.SIGTERM)
	if code := r.Wait(t); code != 1 || !strings.Contains(r.Log.String(), "internal did not drain") {
		t.Errorf("exit %d:\n%s", code, r.Log)
	}
	if b, err := io.ReadAll(call.Body); err == nil {
		t.Errorf("the call got %q and no error", b)
	}
}

func TestReadinessNamesTheCheckAndNoMore(t *testing.T) {
	t.Parallel()
	r := run(t, "store down", keys...)
	api := "http://" + r.Addr(t)
	status, body := get(api + "/readyz")
	if status != http.StatusServiceUnavailable || !strings.Contains(body, `"store"`) || strings.Contains(body, "secret") {
		t.Errorf("%d %s", status, body)
	}
	if status, _ := get(api + "/healthz"); status != 200 {
		t.Errorf("alive: %d", status)
	}
	if !strings.Contains(r.Log.String(), "10.0.0.7") {
		t.Error("the log does not say why")
	}
}

// TestOperationsAreOnTheirOwnListener: what tells of the process, and can load it for half a
// minute, answers where the operator says, or on this machine alone, and nowhere else.
func TestOperationsAreOnTheirOwnListener(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		environ []string
		want    int
	}{
		"by default": {nil, 200},
		"told":       {[]string{"HUB_OPS_ADDR=127.0.0.2:0"}, 200},
		"off":        {[]string{"HUB_OPS_ADDR=off"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := run(t, "", with(c.environ...)...)
			api := r.Addr(t)
			r.Ready(t)
			if c.want != 0 {
				ops := r.Listener(t, "operations")
				if host, _, _ := net.SplitHostPort(ops); host != "127.0.0.1" && name != "told" || host == "127.0.0.1" && name == "told" {
					t.Errorf("served at %s", ops)
				}
			}
			for _, path := range []string{"/metrics", "/debug/pprof/", "/debug/pprof/heap", "/debug/pprof/profile?seconds=1",
				"/debug/pprof/trace?seconds=1", "/debug/pprof/symbol", "/debug/vars"} {
				if status, _ := get("http://" + api + path); status != http.StatusNotFound {
					t.Errorf("%s on the listener for calls: %d", path, status)
				}
				want := c.want
				if path == "/debug/vars" && want != 0 {
					want = http.StatusNotFound
				}
				if status := r.GetFrom("operations", path); status != want {
					t.Errorf("%s on the listener for operations: %d, want %d", path, status, want)
				}
			}
			if n := strings.Count(r.Log.String(), `"msg":"serving"`); n != 1+min(c.want, 1) {
				t.Errorf("%d listeners", n)
			}
		})
	}
}

// TestOperationsAnswerWhileCallsDrain: who asks why a process does not end gets an answer.
func TestOperationsAnswerWhileCallsDrain(t *testing.T) {
	t.Parallel()
	r := run(t, "", keys...)
	call, err := http.Get("http://" + r.Addr(t) + "/slow") //nolint:noctx // the answer has begun when it returns
	if err != nil {
		t.Fatal(err)
	}
	defer call.Body.Close()
	ops := r.Listener(t, "operations")
	r.Signal(t, syscall.SIGTERM)
	hubtest.Eventually(t, "the listener for calls closes", func() bool { return r.Get("/healthz") == 0 })
	if status, body := get("http://" + ops + "/debug/pprof/goroutine?debug=1"); status != 200 || !strings.Contains(body, "Shutdown") {
		t.Errorf("%d %.300s", status, body)
	}
	r.Signal(t, syscall.SIGUSR1)
	if code := r.Wait(t); code != 0 {
		t.Errorf("exit %d:\n%s", code, r.Log)
	}
}

func TestBadConfigurationIsOneLine(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { taken.Close() }) // after the parallel ones
	for name, c := range map[string]struct {
		environ []string
		says    string
	}{
		"missing":       {nil, "HUB_SIGNING_KEY"},
		"bad duration":  {with("HUB_DRAIN_TIMEOUT=soon"), "HUB_DRAIN_TIMEOUT"},
		"bad level":     {with("HUB_LOG_LEVEL=loud"), "HUB_LOG_LEVEL"},
		"bad collector": {with("OTEL_EXPORTER_OTLP_ENDPOINT=collector:4318"), "OTEL_EXPORTER_OTLP_ENDPOINT"},
		"secret twice":  {with("HUB_SIGNING_KEY_FILE=/x"), "HUB_SIGNING_KEY"},
		"nobody trusted": {slices.DeleteFunc(with(), func(v string) bool { return strings.HasPrefix(v, "HUB_TRUSTED_KEYS") }),
			"HUB_TRUSTED_KEYS"},
		"bad key":              {with("HUB_SIGNING_KEY=" + callertest.Signing("tester").Reveal()[1:]), "HUB_SIGNING_KEY"},
		"public key":           {with("HUB_SIGNING_KEY=" + strings.TrimPrefix(callertest.Trusted("tester"), "tester=")), "HUB_SIGNING_KEY"},
		"private key in list":  {with("HUB_TRUSTED_KEYS=tester=" + callertest.Signing("tester").Reveal()), "HUB_TRUSTED_KEYS"},
		"not in the list":      {with("HUB_TRUSTED_KEYS=" + caller.NewSigningKey().Trusted("tester")), "HUB_TRUSTED_KEYS"},
		"bad address":          {with("HUB_ADDR=nowhere", "HUB_LOG_LEVEL=error"), "nowhere"},
		"address in use":       {with("HUB_ADDR="+taken.Addr().String(), "HUB_LOG_LEVEL=error"), taken.Addr().String()},
		"unknown discovery":    {with("HUB_DISCOVERY=etcd", "HUB_LOG_LEVEL=error"), "HUB_DISCOVERY"},
		"bad static instances": {with("HUB_STATIC=auth", "HUB_LOG_LEVEL=error"), "HUB_STATIC"},
		"operations' in use":   {with("HUB_OPS_ADDR="+taken.Addr().String(), "HUB_LOG_LEVEL=error"), "HUB_OPS_ADDR"},
		"bad number":           {with("HUB_CONNECTIONS=-1"), "HUB_CONNECTIONS"},
		"no store":             {keys[:len(keys)-1], "HUB_WRITE_STORE_URL"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := run(t, "", c.environ...)
			code := r.Wait(t)
			if log := r.Log.String(); code != 1 || strings.Count(log, "\n") != 1 || !strings.Contains(log, c.says) ||
				strings.Contains(log, secret) {
				t.Errorf("exit %d, want one line with %s:\n%s", code, c.says, log)
			}
		})
	}
}

func TestConfigurationIsLoggedOnceAndMasked(t *testing.T) {
	t.Parallel()
	r := run(t, "", keys...)
	r.Listener(t, "operations")
	if log := r.Log.String(); strings.Count(log, `"msg":"configuration"`) != 1 || !strings.Contains(log, `"HUB_DRAIN_TIMEOUT":"25s"`) ||
		strings.Contains(log, secret) ||
		!strings.Contains(log, `"HUB_SIGNING_KEY":"kid `) ||
		!strings.Contains(log, `"HUB_TRUSTED_KEYS":"gateway `) {
		t.Errorf("%s", log)
	}
}
