package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/tool"
)

const goodKey = "crm_good"

// gateway is one that answers of the committed catalog: the list, the details, and to a call the answer of its first example.
type gateway struct {
	*httptest.Server
	specs []tool.Spec

	mu sync.Mutex
	// asked are the requests, as "GET /api/tools".
	asked []string
	// body and key are those of the last call.
	body, key string
	// answer, when it is set, answers calls in place of the example.
	answer func(w http.ResponseWriter, r *http.Request)
	// listing, when it is set, answers the list.
	listing func(w http.ResponseWriter, r *http.Request)
}

func newGateway(t *testing.T) *gateway { return gatewayOf(t, "../../../../deploy/catalog.json") }

func gatewayOf(t *testing.T, catalog string) *gateway {
	t.Helper()
	b, err := os.ReadFile(catalog)
	if err != nil {
		t.Fatal(err)
	}
	var file tool.Catalog
	if err := json.Unmarshal(b, &file); err != nil {
		t.Fatal(err)
	}
	g := &gateway{}
	for _, m := range file.Manifests {
		g.specs = append(g.specs, m.Tools...)
	}
	slices.SortFunc(g.specs, func(a, b tool.Spec) int { return a.Position - b.Position })
	g.Server = httptest.NewServer(http.HandlerFunc(g.serve))
	t.Cleanup(g.Close)
	return g
}

// shell is one that is logged in by its environment.
func (g *gateway) shell(t *testing.T) *shell {
	return shellOf(t, map[string]string{"HUB_URL": g.URL, "HUB_API_KEY": goodKey})
}

func (g *gateway) spec(name string) *tool.Spec {
	for i := range g.specs {
		if g.specs[i].Name == name {
			return &g.specs[i]
		}
	}
	return nil
}

// sent returns the body and the Idempotency-Key of the last call.
func (g *gateway) sent() (body, key string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.body, g.key
}

// answers answers calls from here on; nil answers of the examples.
func (g *gateway) answers(answer func(w http.ResponseWriter, r *http.Request)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.answer = answer
}

// lists answers the list from here on.
func (g *gateway) lists(listing func(w http.ResponseWriter, r *http.Request)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.listing = listing
}

// takeAsked returns what was asked since it was called last.
func (g *gateway) takeAsked() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	defer func() { g.asked = nil }()
	return g.asked
}

func (g *gateway) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	g.mu.Lock()
	g.asked = append(g.asked, r.Method+" "+r.URL.EscapedPath())
	answer, listing := g.answer, g.listing
	if r.Method == http.MethodPost {
		g.body, g.key = string(body), r.Header.Get("Idempotency-Key")
	}
	g.mu.Unlock()
	name := strings.Split(strings.TrimPrefix(r.URL.Path, "/api/tools/"), "/")[0]
	switch spec := g.spec(name); {
	case r.Header.Get("Authorization") != "Bearer "+goodKey:
		refuse(w, 401, "E_AUTH_INVALID", "The API key is not valid.", "")
	case r.URL.Path == "/api/tools" && listing != nil:
		listing(w, r)
	case r.URL.Path == "/api/tools":
		g.list(w, r)
	case spec == nil:
		refuse(w, 404, "E_NOT_FOUND", fmt.Sprintf("There is no tool %q.", name), "")
	case r.Method == http.MethodGet:
		reply(w, name, 1, g.detail(spec))
	case answer != nil:
		answer(w, r)
	default:
		reply(w, name, 1, spec.Examples[0].Data)
	}
}

func (g *gateway) list(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("ETag", `"1"`)
	if r.Header.Get("If-None-Match") == `"1"` {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	tools := make([]map[string]any, len(g.specs))
	for i := range g.specs {
		tools[i] = head(&g.specs[i])
	}
	reply(w, "catalog", len(tools), map[string]any{"version": "0.2.0", "tools": tools})
}

// allowed tells whether goodKey may call a tool.
func allowed(s *tool.Spec) bool { return s.Scope != "admin:write" }

// allowed is how many tools goodKey may call.
func (g *gateway) allowed() (n int) {
	for i := range g.specs {
		if allowed(&g.specs[i]) {
			n++
		}
	}
	return n
}

func head(s *tool.Spec) map[string]any {
	return map[string]any{"name": s.Name, "category": s.Category, "description": s.Description, "scope": s.Scope, "write": s.Write,
		"allowed": allowed(s), "input_schema": s.Input, "of_a_newer_gateway": map[string]any{"method": "POST"}}
}

func (g *gateway) detail(s *tool.Spec) map[string]any {
	d := head(s)
	d["output_schema"], d["errors"], d["limits"], d["examples"] = s.Output, s.Errors, s.Limits, s.Examples
	return d
}

func reply(w http.ResponseWriter, name string, count int, data any) {
	send(w, map[string]any{"ok": true, "tool": name, "count": count, "request_id": "req_1", "took_ms": 1, "data": data})
}

func refuse(w http.ResponseWriter, status int, code, message, details string) {
	refusal := map[string]any{"code": code, "message": message,
		"retryable": (&fault.Error{Code: fault.Code(code)}).Answered(status).Retryable()}
	if details != "" {
		refusal["details"] = json.RawMessage(details)
	}
	w.WriteHeader(status)
	send(w, map[string]any{"ok": false, "error": refusal, "request_id": "req_1", "took_ms": 1})
}

func send(w io.Writer, envelope any) {
	if err := json.NewEncoder(w).Encode(envelope); err != nil {
		panic(err)
	}
}

// hang answers nothing until its client has gone, and not for ever.
func hang(_ http.ResponseWriter, r *http.Request) {
	select {
	case <-r.Context().Done():
	case <-time.After(10 * time.Second):
	}
}
