package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/tool"
	"hub.internal/services/review-control/postgres"
)

// asProgram makes the test binary be the program review-control.
const asProgram = "REVIEW_CONTROL_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	hubtest.Main(m)
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

const password = "smtp-password-that-nobody-may-see"

// environment is a whole one; a setting given again replaces it, and one without a value removes it.
func environment(store string, changes ...string) []string {
	settings := map[string]string{"HUB_WRITE_STORE_URL": store, "HUB_PUBLIC_URL": "https://hub.example", "HUB_SMTP_ADDR": "127.0.0.1:1", "HUB_SMTP_TLS": "none", "HUB_MAIL_FROM": "hub@hub.example",
		"HUB_INTERNAL_KEYS": "internal-0123456789abcdef01234567", "HUB_ADDR": "127.0.0.1:0", "HUB_STATIC": "authoring=127.0.0.1:1", "HUB_DRAIN_TIMEOUT": "10s"}
	for _, c := range changes {
		name, value, set := strings.Cut(c, "=")
		if settings[name] = value; !set {
			delete(settings, name)
		}
	}
	env := []string{asProgram + "=1", "PATH=" + os.Getenv("PATH")}
	for name, value := range settings {
		env = append(env, name+"="+value)
	}
	return env
}

func run(t *testing.T, env []string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, log bytes.Buffer
	c := exec.CommandContext(t.Context(), os.Args[0], args...)
	c.Env, c.Stdout, c.Stderr = env, &out, &log
	err = c.Run()
	return out.String(), log.String(), err
}

func TestSettings(t *testing.T) {
	t.Parallel()
	const store = "postgres://hub_review_control:hush-hush@127.0.0.1:1/hub"
	for change, names := range map[string]string{
		"HUB_WRITE_STORE_URL": "HUB_WRITE_STORE_URL", "HUB_WRITE_STORE_URL=x y:z": "HUB_WRITE_STORE_URL", "HUB_PUBLIC_URL": "HUB_PUBLIC_URL", "HUB_PUBLIC_URL=hub.example": "HUB_PUBLIC_URL",
		"HUB_PUBLIC_URL=ftp://hub.example": "HUB_PUBLIC_URL", "HUB_SMTP_ADDR": "HUB_SMTP_ADDR", "HUB_SMTP_ADDR=x": "HUB_SMTP_ADDR", "HUB_SMTP_TLS=perhaps": "HUB_SMTP_TLS", "HUB_MAIL_FROM": "HUB_MAIL_FROM",
		"HUB_MAIL_FROM=Hub <hub@hub.example>": "HUB_MAIL_FROM", "HUB_SEND_PER_MINUTE=0": "HUB_SEND_PER_MINUTE", "HUB_SEND_PER_MINUTE=x": "HUB_SEND_PER_MINUTE", "HUB_SEND_WORKERS=0": "HUB_SEND_WORKERS",
		"HUB_SEND_TIMEOUT=1ms": "HUB_SEND_TIMEOUT", "HUB_SEND_RETRY=0s": "HUB_SEND_RETRY", "HUB_SEND_GIVE_UP=0s": "HUB_SEND_GIVE_UP", "HUB_INTERNAL_KEYS=short": "HUB_INTERNAL_KEYS",
	} {
		_, log, err := run(t, environment(store, change, "HUB_SMTP_PASSWORD="+password), "serve")
		if err == nil || strings.Count(strings.TrimSpace(log), "\n") != 0 || !strings.Contains(log, names) || strings.Contains(log, password) || strings.Contains(log, "hush-hush") {
			t.Errorf("%s: %v, %s", change, err, log)
		}
	}
}

func TestManifest(t *testing.T) {
	t.Parallel()
	out, _, err := run(t, environment(""), "manifest")
	var m tool.Manifest
	if err := json.Unmarshal([]byte(out), &m); err != nil {
		t.Fatal(err)
	}
	var console []string
	for _, r := range m.Console {
		console = append(console, fmt.Sprintf("%s:%s:%v", r.Prefix, r.Role, r.Public))
	}
	if got := strings.Join(console, " "); err != nil || m.Service != "review-control" || len(m.Tools) != 1 || m.Tools[0].Name != "queue_for_review" || m.Tools[0].Position != 15 || m.Tools[0].Scope != "control" || !m.Tools[0].Write ||
		!strings.HasPrefix(got, "/drafts:reviewer:false /admin/suppressions:admin:false /unsubscribe::true") {
		t.Errorf("%v, %+v, %s", err, m, got)
	}
}

// TestServe starts the program before its store is there; it works once that has its tables,
// and stops in order.
func TestServe(t *testing.T) {
	t.Parallel()
	db := hubtest.WriteStore(t)
	log := &syncBuffer{}
	c := exec.Command(os.Args[0], "serve")
	c.Env, c.Stderr = environment(db.URL("review-control"), "HUB_SMTP_PASSWORD="+password, "HUB_SMTP_USER=hub", "HUB_SMTP_TLS=starttls"), log
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	t.Cleanup(func() { _ = c.Process.Kill() })
	var addr string
	listening := regexp.MustCompile(`"addr":"(127\.0\.0\.1:\d+)"`)
	hubtest.Eventually(t, "it listens", func() bool {
		found := listening.FindStringSubmatch(log.String())
		if found != nil {
			addr = found[1]
		}
		return found != nil
	})
	get := func(path string) (int, string) {
		response, err := http.Get("http://" + addr + path)
		if err != nil {
			return 0, err.Error()
		}
		defer response.Body.Close()
		b, _ := io.ReadAll(response.Body)
		return response.StatusCode, string(b)
	}
	if status, body := get("/healthz"); status != 200 {
		t.Errorf("healthz: %d %s", status, body)
	}
	if status, body := get("/readyz"); status != 503 {
		t.Errorf("readyz: %d %s", status, body)
	}
	if err := postgres.Migrate(t.Context(), db.OwnerURL); err != nil {
		t.Fatal(err)
	}
	hubtest.Eventually(t, "it is ready", func() bool { status, _ := get("/readyz"); return status == 200 })
	hubtest.Eventually(t, "its jobs run", func() bool { return strings.Contains(log.String(), "River client started") })
	for path, want := range map[string]int{tool.ManifestPath: 401, "/drafts": 401, "/unsubscribe/x": 401, "/metrics": 200} {
		if status, body := get(path); status != want {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	start := time.Now()
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil || time.Since(start) > 5*time.Second {
		t.Errorf("%v after %s\n%s", err, time.Since(start), log)
	}
	if strings.Contains(log.String(), password) || strings.Contains(log.String(), "hub_review_control-test") {
		t.Error("the log has a secret")
	}
}
