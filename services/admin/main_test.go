package admin_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-kit/kit/sd"
	"github.com/jackc/pgx/v5/pgxpool"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/caller"
	"hub.internal/pkg/caller/callertest"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/remote"
	"hub.internal/pkg/rpc"
	"hub.internal/pkg/schema"
	"hub.internal/pkg/service"
	"hub.internal/pkg/tool"
	"hub.internal/services/admin"
	"hub.internal/services/admin/console"
	"hub.internal/services/admin/postgres"
)

func TestMain(m *testing.M) { hubtest.Main(m) }

// house is the service on a store of its own.
type house struct {
	t     testing.TB
	clock *hubtest.Clock
	// super reads and breaks what no role of Hub's may.
	super *pgxpool.Pool
	mux   *http.ServeMux
	// client is the gateway's.
	client *remote.Client
	logs   *bytes.Buffer
}

// builtIn are pages as services declare them.
var builtIn = []tool.Manifest{
	{Service: "review-control", Console: []tool.Route{{Prefix: "/drafts", Role: "reviewer", Tab: "System", Title: "Drafts", Position: 10},
		{Prefix: "/unsubscribe", Public: true}}},
	{Service: "auth", Console: []tool.Route{{Prefix: "/account/sessions", Tab: "System", Title: "Your account", Position: 90}}},
	{Service: "admin", Console: console.Routes()},
}

func newHouse(t testing.TB) *house {
	t.Helper()
	db := hubtest.MigratedStore(t, "admin", postgres.Migrate)
	h := &house{t: t, clock: hubtest.NewClock(time.Time{}), logs: &bytes.Buffer{}}
	var err error
	if h.super, err = pgxpool.New(t.Context(), db.SuperuserURL); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.super.Close)
	pool := hubtest.Pool(t, db.URL("admin"))
	keys, logger := callertest.Keys(t, "admin", caller.Gateway), slog.New(slog.NewJSONHandler(h.logs, nil))
	log := audit.NewLog(pool, slog.New(slog.DiscardHandler))
	t.Cleanup(func() { _ = log.Close(context.Background()) })
	svc := admin.New(admin.Config{Store: postgres.New(pool), Fixed: admin.Fixed(builtIn), Now: h.clock.Now})
	pages, err := console.New(svc, keys, logger)
	if err != nil {
		t.Fatal(err)
	}
	internal := rpc.Server{Mux: http.NewServeMux(), Keys: keys, Logger: logger}
	service.Tools(internal, log, admin.Tools(svc)...)
	service.Operations(internal, admin.Operations(svc)...)
	pages.Mount(internal.Mux)
	server := httptest.NewServer(internal.Mux)
	t.Cleanup(server.Close)
	h.mux = internal.Mux
	h.client = remote.New(remote.Options{Service: "admin", Instancer: sd.FixedInstancer{strings.TrimPrefix(server.URL, "http://")},
		Keys: callertest.Keys(t, caller.Gateway), Logger: slog.New(slog.DiscardHandler), Patience: hubtest.Patience})
	t.Cleanup(h.client.Close)
	return h
}

type answer struct {
	data     string
	count    int
	replayed bool
}

// send calls a tool as an agent. It is patient: what is tested is not the machine's load.
func (h *house) send(name, key, input string) (answer, error) {
	ctx, cancel := context.WithTimeout(caller.With(h.t.Context(), caller.Caller{Kind: caller.Key, Service: "crm", ExternalUserID: "u1",
		CredentialID: "ak_1", Scopes: []string{"admin:write", "query"}, RequestID: "req_1"}), 5*hubtest.Patience)
	defer cancel()
	response, err := h.client.Do(ctx, remote.Request{Path: rpc.ToolPath(name), Body: []byte(input), IdempotencyKey: key})
	if err != nil {
		return answer{}, err
	}
	defer response.Data.Close()
	b, err := io.ReadAll(response.Data)
	return answer{string(b), response.Count, response.Replayed}, err
}

var keys atomic.Int64

func newKey() string { return fmt.Sprint("key-", keys.Add(1)) }

type object = map[string]any

// ok calls a tool with a fresh key and reads its answer.
func (h *house) ok(name string, input any) object {
	h.t.Helper()
	a, err := h.send(name, newKey(), text(input))
	if err != nil {
		h.t.Fatalf("%s %.300s: %v\n%s", name, text(input), err, h.logs)
	}
	var out object
	if err := json.Unmarshal([]byte(a.data), &out); err != nil {
		h.t.Fatalf("%s: %v in %s", name, err, a.data)
	}
	return out
}

// refused calls a tool that has to answer the code, and returns the violations that it lists.
func (h *house) refused(name string, input any, code fault.Code) (*fault.Error, []schema.Violation) {
	h.t.Helper()
	a, err := h.send(name, newKey(), text(input))
	if err == nil {
		h.t.Fatalf("%s %.300s answers %s, want %s", name, text(input), a.data, code)
	}
	f := fault.From(err)
	if f.Code != code {
		h.t.Fatalf("%s %.300s: %v, want %s", name, text(input), err, code)
	}
	return f, schema.ViolationsOf(err)
}

func (h *house) count(sql string, args ...any) (n int) {
	h.t.Helper()
	if err := h.super.QueryRow(h.t.Context(), sql, args...).Scan(&n); err != nil {
		h.t.Fatal(err)
	}
	return n
}

func (h *house) row(sql string, args ...any) (text string) {
	h.t.Helper()
	if err := h.super.QueryRow(h.t.Context(), sql, args...).Scan(&text); err != nil {
		h.t.Fatal(err)
	}
	return text
}

func text(v any) string {
	if s, isText := v.(string); isText {
		return s
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err)
	}
	return strings.TrimSpace(b.String())
}
