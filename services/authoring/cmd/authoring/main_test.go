package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-kit/kit/sd"
	"github.com/jackc/pgx/v5"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/caller/callertest"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/remote"
	"hub.internal/pkg/rpc"
	"hub.internal/pkg/tool"
)

// keys are the settings of authoring's keys.
var keys = callertest.Environ("authoring", caller.Gateway, "review-control")

func TestMain(m *testing.M) { hubtest.ProgramMain(m, main) }

// start runs authoring serve.
func start(t *testing.T, db hubtest.WriteStoreDB, environ ...string) *hubtest.Program {
	t.Helper()
	return hubtest.Launch(t, slices.Concat(keys, []string{"HUB_WRITE_STORE_URL=" + db.URL("authoring")}, environ), "serve")
}

func migrate(t *testing.T, db hubtest.WriteStoreDB) {
	t.Helper()
	p := hubtest.Launch(t, []string{"HUB_MIGRATE_URL=" + db.OwnerURL}, "migrate")
	if code := p.Wait(t); code != 0 {
		t.Fatalf("exit %d: %s", code, p.Log)
	}
}

// connect waits until the program is ready and returns a client of it.
func connect(t *testing.T, p *hubtest.Program) *remote.Client {
	t.Helper()
	p.Ready(t)
	c := remote.New(
		remote.Options{
			Service:   "authoring",
			Instancer: sd.FixedInstancer{p.Addr(t)},
			Keys:      callertest.Keys(t, caller.Gateway),
			Logger:    slog.New(slog.DiscardHandler),
			Patience:  hubtest.Patience,
		},
	)
	t.Cleanup(c.Close)
	return c
}

func call(t *testing.T, c *remote.Client, name, key string, input []byte) (string, error) {
	return callAs(t, c, "ak_1", name, key, input)
}

// callAs is call with a credential.
func callAs(t *testing.T, c *remote.Client, credential, name, key string, input []byte) (string, error) {
	ctx, cancel := context.WithTimeout(caller.With(t.Context(), caller.Caller{Kind: caller.Key, CredentialID: credential}), hubtest.Patience)
	defer cancel()
	response, err := c.Do(ctx, remote.Request{Path: rpc.ToolPath(name), Body: input, IdempotencyKey: key})
	if err != nil {
		return "", err
	}
	defer response.Data.Close()
	b, err := io.ReadAll(response.Data)
	return string(b), err
}

func migrated(t *testing.T) hubtest.WriteStoreDB {
	t.Helper()
	db := hubtest.WriteStore(t)
	migrate(t, db)
	return db
}

func TestServe(t *testing.T) {
	t.Parallel()
	db := migrated(t)
	began := time.Now()
	p := start(t, db)
	p.Ready(t)
	t.Logf("ready after %v", time.Since(began))
	for path, want := range map[string]int{"/healthz": 200, "/readyz": 200, "/metrics": 404, "/debug/pprof/": 404, rpc.ManifestPath: 401,
		"/internal/drafts/get": 405, "/": 404} {
		if got := p.Get(path); got != want {
			t.Errorf("GET %s: %d, want %d", path, got, want)
		}
	}
	c := connect(t, p)
	if data, err := call(
		t,
		c,
		"create_segment",
		"k",
		[]byte(`{"name":"n","kind":"partner","targets":[]}`),
	); err != nil ||
		!strings.Contains(data, `"segment_id":"1"`) {
		t.Errorf("%s, %v", data, err)
	}
	// Nobody has told it where query is.
	began = time.Now()
	_, err := call(
		t,
		c,
		"save_message_draft",
		"k",
		[]byte(
			`{"segmentId":"1","name":"n","subjectTemplate":"s","bodyTemplate":"b","targets":[{"externalId":1,"toEmail":"a@b.example"}]}`,
		),
	)
	if !fault.Is(err, fault.DB) || !strings.Contains(err.Error(), "query") {
		t.Errorf("without query: %v", err)
	}
	t.Logf("without query: refused after %v", time.Since(began))
	if code := p.Stop(t); code != 0 {
		t.Errorf("exit %d: %s", code, p.Log)
	}
	for line := range strings.Lines(p.Out.String() + p.Log.String()) {
		if !json.Valid([]byte(line)) || strings.Contains(line, callertest.Signing("authoring").Reveal()) ||
			strings.Contains(line, "hub_authoring-test") {
			t.Errorf("log line %s", line)
		}
	}
}

func TestServeBeforeItsStore(t *testing.T) {
	t.Parallel()
	db := hubtest.WriteStore(t)
	p := start(t, db)
	hubtest.Eventually(t, "the log says what is missing", func() bool {
		return p.Get("/readyz") == http.StatusServiceUnavailable && strings.Contains(p.Log.String(), "authoring migrate")
	})
	migrate(t, db)
	p.Ready(t)
}

func TestBadSettings(t *testing.T) {
	t.Parallel()
	good := append(slices.Clone(keys), "HUB_WRITE_STORE_URL=postgres://hub_authoring:secret-word@127.0.0.1:1/hub")
	for setting, bad := range map[string]string{
		"HUB_DRAFT_RECIPIENTS": "HUB_DRAFT_RECIPIENTS=anybody", "HUB_PUBLIC_URL": "HUB_PUBLIC_URL=ftp://hub.example",
		"HUB_WRITE_STORE_URL": "HUB_WRITE_STORE_URL=secret-word", "HUB_SIGNING_KEY": "HUB_SIGNING_KEY=secret-word",
		"HUB_TRUSTED_KEYS": "HUB_TRUSTED_KEYS=secret-word", "HUB_DISCOVERY": "HUB_DISCOVERY=pigeon",
	} {
		p := hubtest.Launch(t, append(good, bad), "serve")
		code, lines := p.Wait(t), p.Out.String()+p.Log.String()
		last := lines[strings.LastIndex(strings.TrimSpace(lines), "\n")+1:]
		if code != 1 || !strings.HasPrefix(last, "authoring: ") ||
			!strings.Contains(last, strings.TrimPrefix(setting, "HUB_")) && !strings.Contains(last, "pigeon") ||
			strings.Contains(lines, "secret-word") {
			t.Errorf("%s: exit %d: %s", setting, code, lines)
		}
	}
}

func TestManifest(t *testing.T) {
	t.Parallel()
	p := hubtest.Launch(t, nil, "manifest")
	if code := p.Wait(t); code != 0 {
		t.Fatalf("exit %d: %s", code, p.Log)
	}
	var m tool.Manifest
	if err := json.Unmarshal([]byte(p.Out.String()), &m); err != nil || m.Service != "authoring" || len(m.Tools) != 4 {
		t.Errorf("%+v, %v", m, err)
	}
}

// TestKilledInMidWrite kills the process (not its store) at twenty moments of a large write
// and sends the call again to the next one: it happens once and whole.
func TestKilledInMidWrite(t *testing.T) {
	t.Parallel()
	db := migrated(t)
	var body bytes.Buffer
	body.WriteString(`{"name":"n","kind":"partner","targets":[`)
	const targets = 20_000
	for i := range targets {
		fmt.Fprintf(&body, `%s{"externalId":%d,"snapshot":{"name":"%0100d"}}`, strings.Repeat(",", min(i, 1)), i, i)
	}
	body.WriteString(`]}`)
	const rounds = 20
	cut := 0
	for round := range rounds {
		p := start(t, db)
		c := connect(t, p)
		done := make(chan error, 1)
		go func() {
			_, err := call(t, c, "create_segment", fmt.Sprint(round/4), body.Bytes())
			done <- err
		}()
		time.Sleep(time.Duration(round) * 17 * time.Millisecond)
		p.Kill()
		if err := <-done; err != nil {
			cut++
		}
	}
	c := connect(t, start(t, db))
	for i := range rounds / 4 {
		if _, err := call(t, c, "create_segment", fmt.Sprint(i), body.Bytes()); err != nil {
			t.Error(err)
		}
	}
	t.Logf("%d of %d calls were cut", cut, rounds)
	conn, err := pgx.Connect(t.Context(), db.SuperuserURL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	var segments, rows, audited int
	if err := conn.QueryRow(
		t.Context(),
		`SELECT (SELECT count(*) FROM authoring.segments), (SELECT count(*) FROM authoring.segment_targets), (SELECT count(*) `+
			`FROM audit.calls WHERE outcome = 'ok')`,
	).Scan(
		&segments,
		&rows,
		&audited,
	); err != nil {
		t.Fatal(err)
	}
	if segments != rounds/4 || rows != targets*rounds/4 || audited != rounds/4 {
		t.Errorf("%d segments, %d targets, %d audit rows", segments, rows, audited)
	}
}
