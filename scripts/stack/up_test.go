package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/localserver"
)

// TestUpTwice brings up real servers and fake services, and looks at what a second, a third
// and a later start do again.
func TestUpTwice(t *testing.T) {
	if missing := localserver.Missing(); len(missing) > 0 {
		t.Skip("missing servers: ", missing)
	}
	c := newCheckout(t)
	for _, name := range fakes {
		if err := os.Symlink(os.Args[0], c.bin(name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"deploy/source/schema.sql", "deploy/redis/users.acl"} {
		content, err := os.ReadFile(filepath.Join(hubtest.Root(t), file))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(c.path(file)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(c.path(file), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	quiet := progress{io.Discard}
	t.Cleanup(func() {
		if err := reset(context.Background(), c.layout, quiet); err != nil {
			t.Error(err)
		}
	})
	caller, source := map[string]string{}, sampleMariaDB
	start := func() (pids map[string]int, devEnv string) {
		t.Helper()
		st, err := loadState(c.layout)
		if err != nil {
			t.Fatal(err)
		}
		e := environment{
			layout:   c.layout,
			state:    st,
			options:  upOptions{source: source, discovery: "static"},
			services: pick("gateway", "auth", "query", "payments"),
			caller:   caller,
		}
		if err := bringUp(t.Context(), e, quiet); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(c.env())
		if err != nil {
			t.Fatal(err)
		}
		return c.pidFile(), string(b)
	}

	first, env := start()
	for _, name := range []string{"gateway", "auth", "query", "payments", mailSink, pgSim, echo, "mariadb", "postgres", "redis"} {
		if first[name] == 0 {
			t.Fatalf("%s does not run: %v", name, first)
		}
	}
	if !strings.Contains(env, "export HUB_API_KEY='crm_dev'\n") ||
		!strings.Contains(env, "export HUB_API_KEY_READONLY='crm_dev-readonly'\n") {
		t.Errorf("dev.env lacks the keys:\n%s", env)
	}
	for _, line := range []string{"HUB_SERVICE_CODE='hub-dev'", "HUB_SERVICE_SECRET='hss_1'", "HUB_WEBHOOK_SECRET='whsec_1'",
		"HUB_LINKED_USER='customer-1'",
		"HUB_PGSIM_URL='http://127.0.0.1:", "HUB_ECHO_URL='http://127.0.0.1:"} {
		if !strings.Contains(env, "export "+line) {
			t.Errorf("dev.env lacks %s:\n%s", line, env)
		}
	}
	if b, err := os.ReadFile(c.webhookSecret()); err != nil || string(b) != "whsec_1\n" {
		t.Errorf("the echo finds %q, %v", b, err)
	}
	want := []string{
		"auth:keyset:new",
		"payments:keyring:new",
		"gateway:migrate",
		"auth:migrate",
		"query:migrate",
		"payments:migrate",
		"gen:scale",
	}
	if got := c.journal(); !slices.Equal(got[:len(want)], want) {
		t.Errorf("order of the first start: %v", got)
	}

	// The administrator is known; the reviewer is not.
	for _, want := range []string{"auth:add:reviewer@hub.example:Rae:Reviewer"} {
		if !slices.Contains(c.journal(), want) {
			t.Errorf("%s did not happen: %v", want, c.journal())
		}
	}

	second, again := start()
	wantRestarted(t, "nothing new", first, second)
	if again != env {
		t.Errorf("a second up changed dev.env:\n%s\nwas:\n%s", again, env)
	}

	replaceProgram(t, c.bin("query"))
	third, _ := start()
	wantRestarted(t, "another build of query", second, third, "query")
	caller["MCP_MAX_ROW_LIMIT"] = "7"
	fourth, _ := start()
	wantRestarted(t, "another setting", third, fourth, "auth", "gateway", "payments", "query")

	samples := 1
	if _, err := localserver.SideBySideMySQL.Root(); err == nil {
		source, samples = sampleMySQL, 2
		fifth, inMySQL := start()
		wantRestarted(t, "the sample on MySQL", fourth, fifth, "mariadb", "query")
		if fifth["mysql"] == 0 || fifth["mariadb"] != 0 || inMySQL == env {
			t.Errorf("the sample on MySQL: %v\n%s", fifth, inMySQL)
		}
		source = sampleMariaDB
		fourth, _ = start()
	}

	if err := down(t.Context(), c.layout, quiet); err != nil {
		t.Fatal(err)
	}
	for name, pid := range fourth {
		if alive(pid) {
			t.Errorf("%s lives after down", name)
		}
	}
	if _, later := start(); later != env {
		t.Errorf("dev.env after down and up:\n%s\nwas:\n%s", later, env)
	}
	for what, times := range map[string]int{"auth:issues:dev": 1, "auth:issues:dev-readonly": 1, "gen:scale": samples,
		"auth:keyset:new": 1, "payments:keyring:new": 1, "auth:app:issue-secret:hub-dev": 1, "auth:app:rotate-secret:hub-dev": 0} {
		n := 0
		for _, line := range c.journal() {
			if line == what {
				n++
			}
		}
		if n != times {
			t.Errorf("%s happened %d times, want %d", what, n, times)
		}
	}
}

func wantRestarted(t *testing.T, why string, before, after map[string]int, want ...string) {
	t.Helper()
	var got []string
	for name, pid := range before {
		if after[name] != pid {
			got = append(got, name)
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("%s: restarted %v, want %v", why, got, want)
	}
}

// replaceProgram puts another build in a program's place.
func replaceProgram(t *testing.T, path string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(b, 0), 0o755); err != nil {
		t.Fatal(err)
	}
}
