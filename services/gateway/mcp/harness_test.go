package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strconv"
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
	"hub.internal/pkg/tool"
	"hub.internal/pkg/web"
	"hub.internal/services/gateway"
	"hub.internal/services/gateway/catalog"
	"hub.internal/services/gateway/console"
	"hub.internal/services/gateway/edge"
	"hub.internal/services/gateway/mcp"
	"hub.internal/services/gateway/reference"
)

// The keys of the tests; auth's stand-in knows them by their last letter.
var (
	allScopes = "crm_" + strings.Repeat("a", 42)
	readOnly  = "crm_" + strings.Repeat("r", 42) // query
	writeOnly = "crm_" + strings.Repeat("w", 42) // what readOnly has not
	revoked   = "crm_" + strings.Repeat("x", 42)
	tight     = "crm_" + strings.Repeat("t", 42) // two calls
	noSQL     = "crm_" + strings.Repeat("q", 42) // all but sql
	unknown   = "crm_" + strings.Repeat("u", 42)
)

var scopes = []string{"explore", "sql", "query", "author", "control", "admin:read", "admin:write"}

// fixture is two gateways with the committed catalog before one owner of all tools, which answers each with the tool's
// first example, and keeps the keys of writes.
type fixture struct {
	urls    []string
	servers []*mcp.Server
	catalog *catalog.Catalog

	mu      sync.Mutex
	entries []audit.Entry
	written map[string][]byte // input by key
	seen    []http.Header
	// data, when set, is what every tool answers; during runs in each call.
	data   []byte
	during func(*http.Request)
	// owner, when set, answers itself.
	owner http.HandlerFunc
}

func (e *fixture) Queue(entry audit.Entry) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.entries = append(e.entries, entry)
}

// outcomes are those of the rows of what was refused, in order.
func (e *fixture) outcomes() (list []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, row := range e.entries {
		list = append(list, row.Outcome)
	}
	return list
}

func newFixture(t testing.TB, options ...func(*mcp.Options)) *fixture {
	t.Helper()
	e := &fixture{written: map[string][]byte{}}
	logger := slog.New(slog.DiscardHandler)
	services := http.NewServeMux()
	services.HandleFunc("POST /internal/tools/{name}", e.tool)
	services.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})
	rpc.Server{Mux: services, Keys: callertest.Keys(t, "auth", caller.Gateway), Logger: logger}.Operation(contract.Fake(t, "auth",
		rpc.Declaration{Path: "/internal/apikeys/verify", Takes: caller.Neighbour(caller.Gateway)}, verify))
	server := httptest.NewServer(services)
	t.Cleanup(server.Close)
	var err error
	if e.catalog, err = catalog.Load(filepath.Join(hubtest.Root(t), "deploy", "catalog.json"), logger); err != nil {
		t.Fatal(err)
	}
	clients := catalog.NewClients(func(name string) *remote.Client {
		return remote.New(remote.Options{Service: name, Instancer: sd.FixedInstancer{strings.TrimPrefix(server.URL, "http://")},
			Keys: callertest.Keys(t, caller.Gateway), Logger: logger, Patience: hubtest.Patience})
	}, append(e.catalog.Owners(), "auth")...)
	t.Cleanup(clients.Close)
	pages, err := web.New(web.Options{Service: "gateway", Files: reference.Files, Keys: callertest.Keys(t, caller.Gateway), Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		g := &edge.Gateway{
			Authenticators: map[string]edge.Authenticator{
				tool.KeyCredential: edge.APIKeys{Keys: edge.NewKeyCache(edge.AskAuth(clients.Client("auth")), time.Now)},
			},
			Limiter:  edge.NewMemory(hubtest.NewClock(time.Time{}).Now),
			Catalog:  e.catalog,
			Services: clients,
			Audit:    e,
			Logger:   logger,
			Failures: edge.Rate{PerMinute: 10000, Burst: 10000},
		}
		o := mcp.Options{Origins: []string{"https://inspector.example"}, Now: hubtest.NewClock(time.Time{}).Now}
		for _, change := range options {
			change(&o)
		}
		s, err := mcp.New(g, o)
		if err != nil {
			t.Fatal(err)
		}
		e.servers = append(e.servers, s)
		mux := http.NewServeMux()
		public := gateway.Gateway{Gateway: g, MCP: s,
			Console: &console.Console{Edge: g, Pages: pages, Visitors: console.NewVisitors(nil, time.Now)}}
		public.Routes(mux)
		listener := httptest.NewServer(mux)
		t.Cleanup(listener.Close)
		e.urls = append(e.urls, listener.URL)
	}
	return e
}

func verify(_ context.Context, in struct {
	Key string `json:"key"`
}) (map[string]any, error) {
	limits := map[string]int{"user_per_minute": 600000, "user_burst": 10000, "service_per_minute": 600000, "service_burst": 10000}
	answer := map[string]any{
		"id":         "ak_" + in.Key[4:5],
		"service":    "svc",
		"scopes":     scopes,
		"limits":     limits,
		"status":     "active",
		"expires_at": nil,
	}
	switch in.Key {
	case allScopes:
	case readOnly:
		answer["scopes"] = []string{"query"}
	case writeOnly:
		answer["scopes"] = slices.DeleteFunc(slices.Clone(scopes), func(s string) bool { return s == "query" })
	case noSQL:
		answer["scopes"] = slices.DeleteFunc(slices.Clone(scopes), func(s string) bool { return s == "sql" })
	case revoked:
		answer["status"] = "revoked"
	case tight:
		limits["user_per_minute"], limits["user_burst"] = 6, 2
	default:
		return nil, fault.New(fault.AuthInvalid, "The API key is not valid.")
	}
	return answer, nil
}

// tool is every tool.
func (e *fixture) tool(w http.ResponseWriter, r *http.Request) {
	input, _ := io.ReadAll(r.Body)
	e.mu.Lock()
	during, data, owner := e.during, e.data, e.owner
	e.seen = append(e.seen, r.Header.Clone())
	key := r.PathValue("name") + " " + r.Header.Get(tool.KeyHeader)
	if r.Header.Get(tool.DeriveHeader) != "" { // as an owner does
		key = r.PathValue("name") + " " + string(input)
	}
	before, again := e.written[key]
	if r.Header.Get(tool.KeyHeader) != "" && !again {
		e.written[key] = input
	}
	e.mu.Unlock()
	if during != nil {
		during(r)
	}
	if owner != nil {
		owner(w, r)
		return
	}
	switch spec := e.catalog.Entry(r.PathValue("name")).Spec; {
	case again && !bytes.Equal(before, input):
		rpc.WriteFault(
			r.Context(),
			slog.New(slog.DiscardHandler),
			w,
			fault.New(fault.Idempotency, "The key was used before with another input."),
		)
		return
	case data == nil:
		data = spec.Examples[0].Data
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	w.Header().Set(rpc.CountHeader, "3")
	if again {
		w.Header().Set(rpc.ReplayedHeader, "true")
		w.Header().Set(rpc.AgeHeader, "245000")
	}
	_, _ = w.Write(data)
}

func (e *fixture) last() http.Header {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.seen[len(e.seen)-1]
}

// answer is a message that answers, and how HTTP carried it.
type answer struct {
	status int
	header http.Header
	body   string
	ID     json.RawMessage `json:"id"`
	Result struct {
		Meta              map[string]any  `json:"_meta"`
		StructuredContent json.RawMessage `json:"structuredContent"`
		Content           []struct{ Type, Text string }
		IsError           bool
		CacheScope        string
		NextCursor        string
		ProtocolVersion   string
		Instructions      string
		Capabilities      map[string]any
		SupportedVersions []string
		Tools             []listed
	} `json:"result"`
	Error *struct {
		Code    any
		Message string
	} `json:"error"`
}

type listed struct {
	Name, Title, Description  string
	InputSchema, OutputSchema json.RawMessage
	Annotations               map[string]any
}

// code is that of a failure, however it came; empty for a success.
func (a answer) code(t testing.TB) string {
	t.Helper()
	var wire struct {
		Error struct {
			Code any
			Data struct{ Error struct{ Code string } }
		}
	}
	said := []byte(a.body)
	if a.Result.IsError {
		said = a.Result.StructuredContent
	}
	if err := json.Unmarshal(said, &wire); err != nil {
		t.Fatalf("%d %s", a.status, a.body)
	}
	if code, ok := wire.Error.Code.(string); ok {
		return code
	}
	return wire.Error.Data.Error.Code
}

func (e *fixture) post(t testing.TB, url, key, body string, headers ...string) answer {
	t.Helper()
	return e.send(t, http.MethodPost, url+mcp.Path, key, body, headers...)
}

func (e *fixture) send(t testing.TB, method, url, key, body string, headers ...string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
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
	a := answer{status: resp.StatusCode, header: resp.Header, body: string(b)}
	if len(b) > 0 && b[0] == '{' {
		if err := json.Unmarshal(b, &a); err != nil && method == http.MethodPost && resp.StatusCode/100 == 2 {
			t.Fatalf("%v\n%s", err, b)
		}
	}
	return a
}

// call is the message of a call.
func call(id int, name, arguments, meta string) string {
	if meta == "" {
		meta = "{}"
	}
	return `{"jsonrpc":"2.0","id":` + strconv.Itoa(
		id,
	) + `,"method":"tools/call","params":{"name":"` + name + `","arguments":` + arguments + `,"_meta":` + meta + `}}`
}
