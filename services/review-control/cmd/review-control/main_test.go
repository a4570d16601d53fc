package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/caller/callertest"
	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/rpc"
	"hub.internal/pkg/tool"
	"hub.internal/services/review-control/postgres"
)

func TestMain(m *testing.M) { hubtest.ProgramMain(m, main) }

const password = "smtp-password-that-nobody-may-see"

// environment is a whole one; a setting given again replaces it, and one without a value removes it.
func environment(store string, changes ...string) []string {
	settings := map[string]string{"HUB_WRITE_STORE_URL": store, "HUB_PUBLIC_URL": "https://hub.example", "HUB_SMTP_ADDR": "127.0.0.1:1",
		"HUB_SMTP_TLS": "none", "HUB_MAIL_FROM": "hub@hub.example",
		"HUB_STATIC": "authoring=127.0.0.1:1", "HUB_DRAIN_TIMEOUT": "40s"}
	for _, c := range append(callertest.Environ("review-control", caller.Gateway, "authoring"), changes...) {
		name, value, set := strings.Cut(c, "=")
		if settings[name] = value; !set {
			delete(settings, name)
		}
	}
	var environ []string
	for name, value := range settings {
		environ = append(environ, name+"="+value)
	}
	return environ
}

func TestSettings(t *testing.T) {
	t.Parallel()
	const store = "postgres://hub_review_control:hush-hush@127.0.0.1:1/hub"
	for change, names := range map[string]string{
		"HUB_WRITE_STORE_URL": "HUB_WRITE_STORE_URL", "HUB_WRITE_STORE_URL=x y:z": "HUB_WRITE_STORE_URL", "HUB_PUBLIC_URL": "HUB_PUBLIC_URL",
		"HUB_PUBLIC_URL=hub.example":       "HUB_PUBLIC_URL",
		"HUB_PUBLIC_URL=ftp://hub.example": "HUB_PUBLIC_URL", "HUB_SMTP_ADDR": "HUB_SMTP_ADDR", "HUB_SMTP_ADDR=x": "HUB_SMTP_ADDR",
		"HUB_MAIL_MARK= (광고)": "HUB_MAIL_MARK", "HUB_MAIL_FOOTER=a\nb": "HUB_MAIL_FOOTER",
		"HUB_SMTP_TLS=perhaps": "HUB_SMTP_TLS", "HUB_MAIL_FROM": "HUB_MAIL_FROM",
		"HUB_MAIL_FROM=Hub <hub@hub.example>": "HUB_MAIL_FROM", "HUB_SEND_PER_MINUTE=0": "HUB_SEND_PER_MINUTE",
		"HUB_SEND_PER_MINUTE=x": "HUB_SEND_PER_MINUTE", "HUB_SEND_WORKERS=0": "HUB_SEND_WORKERS",
		"HUB_SEND_TIMEOUT=1ms": "HUB_SEND_TIMEOUT", "HUB_SEND_RETRY=0s": "HUB_SEND_RETRY", "HUB_SEND_GIVE_UP=0s": "HUB_SEND_GIVE_UP",
		"HUB_SIGNING_KEY=short": "HUB_SIGNING_KEY", "HUB_TRUSTED_KEYS=short": "HUB_TRUSTED_KEYS",
	} {
		// a warning about the store may come first
		p := hubtest.Launch(t, environment(store, change, "HUB_LOG_LEVEL=error", "HUB_SMTP_PASSWORD="+password), "serve")
		code, log := p.Wait(t), p.Log.String()
		if code != 1 || strings.Count(strings.TrimSpace(log), "\n") != 0 || !strings.Contains(log, names) ||
			strings.Contains(log, password) || strings.Contains(log, "hush-hush") {
			t.Errorf("%s: exit %d, %s", change, code, log)
		}
	}
}

func TestManifest(t *testing.T) {
	t.Parallel()
	p := hubtest.Launch(t, environment(""), "manifest")
	code := p.Wait(t)
	var m tool.Manifest
	if err := json.Unmarshal([]byte(p.Out.String()), &m); err != nil {
		t.Fatal(err)
	}
	var console []string
	for _, r := range m.Console {
		console = append(console, fmt.Sprintf("%s:%s:%v", r.Prefix, r.Role, r.Public))
	}
	if got := strings.Join(console, " "); code != 0 || m.Service != "review-control" || len(m.Tools) != 1 ||
		m.Tools[0].Name != "queue_for_review" || m.Tools[0].Position != 15 || m.Tools[0].Scope != "control" || !m.Tools[0].Write ||
		!strings.HasPrefix(got, "/drafts:reviewer:false /admin/suppressions:admin:false /unsubscribe::true") {
		t.Errorf("exit %d, %+v, %s", code, m, got)
	}
}

// TestServe starts the program before its store is there; it works once that has its tables,
// and stops in order.
func TestServe(t *testing.T) {
	t.Parallel()
	db := hubtest.WriteStore(t)
	p := hubtest.Launch(t, environment(db.URL("review-control"), "HUB_SMTP_PASSWORD="+password, "HUB_SMTP_USER=hub",
		"HUB_SMTP_TLS=starttls"), "serve")
	p.Addr(t)
	if status := p.Get("/healthz"); status != 200 {
		t.Errorf("healthz: %d", status)
	}
	if status := p.Get("/readyz"); status != 503 {
		t.Errorf("readyz: %d", status)
	}
	if err := postgres.Migrate(t.Context(), db.OwnerURL); err != nil {
		t.Fatal(err)
	}
	p.Ready(t)
	hubtest.Eventually(t, "its jobs run", func() bool { return strings.Contains(p.Log.String(), "River client started") })
	for path, want := range map[string]int{rpc.ManifestPath: 401, "/drafts": 401, "/unsubscribe/x": 401, "/metrics": 404,
		"/debug/pprof/": 404} {
		if status := p.Get(path); status != want {
			t.Errorf("%s: %d", path, status)
		}
	}
	start := time.Now()
	if code := p.Stop(t); code != 0 || time.Since(start) > 30*time.Second { // it has forty
		t.Errorf("exit %d after %s\n%s", code, time.Since(start), p.Log)
	}
	if strings.Contains(p.Log.String(), password) || strings.Contains(p.Log.String(), "hub_review_control-test") {
		t.Error("the log has a secret")
	}
}
