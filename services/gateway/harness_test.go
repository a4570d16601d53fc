package gateway_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-kit/kit/sd"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/caller"
	"hub.internal/pkg/caller/callertest"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/hubtest/contract"
	"hub.internal/pkg/remote"
	"hub.internal/pkg/rpc"
	"hub.internal/pkg/schema"
	"hub.internal/pkg/tool"
	"hub.internal/services/gateway"
	"hub.internal/services/gateway/catalog"
	"hub.internal/services/gateway/edge"
)

// The keys of the tests; auth's stand-in knows them by their last letter.
var (
	allScopes = "crm_" + strings.Repeat("a", 42)
	readOnly  = "crm_" + strings.Repeat("r", 42)
	revoked   = "crm_" + strings.Repeat("x", 42)
	lapsed    = "crm_" + strings.Repeat("e", 42)
	tight     = "crm_" + strings.Repeat("t", 42)
	unknown   = "crm_" + strings.Repeat("u", 42)
)

// fixture is a gateway before two real neighbours: a service with an echoing read tool
// and a write tool, and an auth that knows the keys above.
type fixture struct {
	url     string
	gateway *gateway.Gateway

	mu      sync.Mutex
	entries []audit.Entry
	// during, when set, runs inside the read tool.
	during func(context.Context) error
	asked  int
}

type echoIn struct {
	Text  string `json:"text"`
	Limit int64  `json:"limit"`
}

type echoOut struct {
	Text     string        `json:"text"`
	Limit    int64         `json:"limit"`
	Caller   caller.Caller `json:"caller"`
	Deadline bool          `json:"deadline"`
	Key      string        `json:"key"`
}

func (e *fixture) Queue(entry audit.Entry) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.entries = append(e.entries, entry)
}

func newFixture(t testing.TB, options ...func(*gateway.Gateway)) *fixture {
	t.Helper()
	e := &fixture{}
	logger := slog.New(slog.DiscardHandler)
	input := schema.Object(
		schema.Required("text", schema.String("Any text.", schema.Length(1, 20))),
		schema.Optional("limit", schema.Integer("A number.", schema.Range(1, 200), schema.Default(50))))
	echo := func(ctx context.Context, in echoIn) (echoOut, error) {
		e.mu.Lock()
		during := e.during
		e.mu.Unlock()
		if during != nil {
			if err := during(ctx); err != nil {
				return echoOut{}, err
			}
		}
		_, deadline := ctx.Deadline()
		return echoOut{Text: in.Text, Limit: in.Limit, Caller: caller.From(ctx), Deadline: deadline}, nil
	}
	tools := []tool.Tool{
		tool.New(
			tool.Declaration{
				Name:        "search_echo",
				Category:    tool.Query,
				Description: "Echoes.",
				Scope:       "query",
				Input:       input,
				Position:    1,
				Timeout:     5 * time.Second,
			},
			echo,
		),
		tool.New(
			tool.Declaration{
				Name:        "store_echo",
				Category:    tool.Author,
				Description: "Echoes and writes.",
				Scope:       "author",
				Write:       true,
				Input:       input,
				Position:    2,
				MaxBody:     4096,
			},
			echo,
		),
	}
	services := http.NewServeMux()
	internal := rpc.Server{Mux: services, Keys: callertest.Keys(t, "echo", caller.Gateway), Logger: logger}
	for _, t := range tools {
		internal.Tool(t)
	}
	services.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})
	rpc.Server{Mux: services, Keys: callertest.Keys(t, "auth", caller.Gateway), Logger: logger}.Operation(contract.Fake(t, "auth",
		rpc.Declaration{Path: "/internal/apikeys/verify", Takes: caller.Neighbour(caller.Gateway)}, e.verify))
	server := httptest.NewServer(services)
	t.Cleanup(server.Close)
	clients := catalog.NewClients(func(name string) *remote.Client {
		return remote.New(remote.Options{Service: name, Instancer: sd.FixedInstancer{strings.TrimPrefix(server.URL, "http://")},
			Keys: callertest.Keys(t, caller.Gateway), Logger: logger, Patience: hubtest.Patience})
	}, "auth", "echo")
	t.Cleanup(clients.Close)
	manifests := catalog.New(logger)
	if err := manifests.Update(rpc.Manifest("echo", tools, nil)); err != nil {
		t.Fatal(err)
	}
	e.gateway = &gateway.Gateway{Gateway: &edge.Gateway{
		Authenticators: map[string]edge.Authenticator{
			tool.KeyCredential: edge.APIKeys{Keys: edge.NewKeyCache(edge.AskAuth(clients.Client("auth")), time.Now)},
		},
		Limiter:  edge.NewMemory(hubtest.NewClock(time.Time{}).Now),
		Catalog:  manifests,
		Services: clients,
		Audit:    e,
		Logger:   logger,
		Failures: edge.Rate{PerMinute: 1000, Burst: 1000},
	}}
	for _, o := range options {
		o(e.gateway)
	}
	mux := http.NewServeMux()
	e.gateway.Routes(mux)
	public := httptest.NewServer(mux)
	t.Cleanup(public.Close)
	e.url = public.URL
	return e
}

func (e *fixture) verify(_ context.Context, in struct {
	Key string `json:"key"`
}) (map[string]any, error) {
	e.mu.Lock()
	e.asked++
	e.mu.Unlock()
	limits := map[string]int{"user_per_minute": 600000, "user_burst": 10000, "service_per_minute": 600000, "service_burst": 10000}
	answer := map[string]any{
		"id":         "ak_" + in.Key[4:5],
		"service":    "svc",
		"scopes":     []string{"query", "author"},
		"limits":     limits,
		"status":     "active",
		"expires_at": nil,
	}
	switch in.Key {
	case allScopes:
	case readOnly:
		answer["scopes"] = []string{"query"}
	case revoked:
		answer["status"] = "revoked"
	case lapsed:
		answer["status"] = "expired"
	case tight:
		limits["user_per_minute"], limits["user_burst"] = 6, 2
	default:
		return nil, fault.New(fault.AuthInvalid, "The API key is not valid.")
	}
	return answer, nil
}

// reply is a response, read.
type reply struct {
	status int
	header http.Header
	body   string
	env    struct {
		OK    bool            `json:"ok"`
		Tool  string          `json:"tool"`
		Data  json.RawMessage `json:"data"`
		Count *int            `json:"count"`
		Error *struct {
			Code      string          `json:"code"`
			Message   string          `json:"message"`
			Details   json.RawMessage `json:"details"`
			Retryable *bool           `json:"retryable"`
		} `json:"error"`
		RequestID string `json:"request_id"`
		TookMS    *int64 `json:"took_ms"`
	}
}

func (r reply) code() string {
	if r.env.Error == nil {
		return ""
	}
	return r.env.Error.Code
}

func (e *fixture) do(t *testing.T, method, path, body string, headers ...string) reply {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, e.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	r := reply{status: resp.StatusCode, header: resp.Header, body: string(b)}
	if len(b) > 0 {
		if err := json.Unmarshal(b, &r.env); err != nil {
			t.Fatalf("%s %s answers no envelope: %v\n%s", method, path, err, b)
		}
	}
	return r
}

func bearer(key string) []string { return []string{"Authorization", "Bearer " + key} }
