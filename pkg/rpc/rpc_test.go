package rpc_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-kit/kit/endpoint"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/caller/callertest"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/rpc"
	"hub.internal/pkg/schema"
	"hub.internal/pkg/tool"
)

type in struct {
	Name  string `json:"name"`
	Limit int64  `json:"limit"`
}

type out struct {
	Said string   `json:"said"`
	Rows []string `json:"rows"`
}

func (o out) Count() int { return len(o.Rows) }

func declaration(change func(*tool.Declaration)) tool.Declaration {
	d := tool.Declaration{Name: "say", Category: tool.Query, Description: "Says it.", Scope: "query", Position: 1, Input: schema.Object(
		schema.Required("name", schema.String("", schema.Length(1, 20))),
		schema.Optional("limit", schema.Integer("", schema.Range(1, 5), schema.Default(2))))}
	if change != nil {
		change(&d)
	}
	return d
}

func say(_ context.Context, i in) (out, error) {
	switch i.Name {
	case "panic":
		panic("SELECT secret")
	case "fault":
		return out{}, fault.New(fault.Suppressed, "Suppressed.").With(map[string]any{"targets": []int{1}}).After(2 * time.Second)
	case "foreign":
		return out{}, errors.New("dial tcp 10.0.0.7: SELECT secret")
	case "bad details":
		return out{}, fault.New(fault.Validation, "x").With(func() {})
	}
	return out{Said: "<" + i.Name + ">", Rows: make([]string, i.Limit)}, nil
}

// service is a mounted tool behind a real listener.
type service struct {
	url string
	log *bytes.Buffer
}

func serve(t *testing.T, tools []tool.Tool, mw ...endpoint.Middleware) service {
	t.Helper()
	var log bytes.Buffer
	mux := http.NewServeMux()
	s := rpc.Server{
		Mux:    mux,
		Keys:   callertest.Keys(t, "speaker", caller.Gateway, "authoring"),
		Logger: slog.New(slog.NewJSONHandler(&log, nil)),
	}
	for _, t := range tools {
		s.Tool(t, mw...)
	}
	s.Manifest(rpc.Manifest("speaker", tools, nil))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return service{server.URL, &log}
}

func (s service) do(t *testing.T, method, path string, body io.Reader, headers ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.url+path, body)
	if err != nil {
		t.Fatal(err)
	}
	who := caller.Caller{Kind: caller.Key, CredentialID: "ak_1", RequestID: "req_1"}
	if path == rpc.ManifestPath {
		who = caller.Itself(caller.Gateway)
	}
	r.Header = callertest.Header(t, "speaker", who)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(b)
}

func (s service) call(t *testing.T, input string, headers ...string) (*http.Response, string) {
	t.Helper()
	return s.do(t, http.MethodPost, rpc.ToolPath("say"), strings.NewReader(input), headers...)
}

func TestCallOverTheWire(t *testing.T) {
	s := serve(t, []tool.Tool{tool.New(declaration(nil), say)})
	resp, body := s.call(t, `{"name":"x","limit":3}`)
	h := resp.Header
	if resp.StatusCode != 200 || body != `{"said":"\u003cx\u003e","rows":["","",""]}` || h.Get(rpc.CountHeader) != "3" ||
		h.Get("Content-Length") != strconv.Itoa(len(body)) ||
		h.Get(rpc.FaultHeader) != "" ||
		h.Get(rpc.ReplayedHeader) != "" ||
		h.Get("Content-Type") != "application/json" {
		t.Errorf("%s %v %s", resp.Status, h, body)
	}
	if resp, _ := s.do(t, http.MethodGet, rpc.ToolPath("say"), nil); resp.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("GET: %s", resp.Status)
	}
	if resp, _ := s.do(t, http.MethodPost, rpc.ToolPath("other"), nil); resp.StatusCode != http.StatusNotFound {
		t.Errorf("an unknown tool: %s", resp.Status)
	}
}

func TestTokenIsRequired(t *testing.T) {
	called := false
	s := serve(
		t,
		[]tool.Tool{tool.New(declaration(nil), func(ctx context.Context, i in) (out, error) { called = true; return say(ctx, i) })},
	)
	for token, code := range map[string]string{"": "E_AUTH_MISSING", "x": "E_AUTH_INVALID", "a.b.c": "E_AUTH_INVALID"} {
		for _, path := range []string{rpc.ToolPath("say"), rpc.ManifestPath} {
			method := http.MethodPost
			if path == rpc.ManifestPath {
				method = http.MethodGet
			}
			resp, body := s.do(t, method, path, strings.NewReader(`{"name":"x"}`), caller.Header, token)
			if resp.StatusCode != 401 || resp.Header.Get(rpc.FaultHeader) != code || strings.Contains(body, "say") {
				t.Errorf("%s with token %q: %s %s", path, token, resp.Status, body)
			}
		}
	}
	if called {
		t.Error("the tool ran without a token")
	}
}

// TestOnlyTheGatewaySaysWhoCalls tries what others may send in its place, and whom else it may
// present.
func TestOnlyTheGatewaySaysWhoCalls(t *testing.T) {
	called := false
	s := serve(
		t,
		[]tool.Tool{tool.New(declaration(nil), func(ctx context.Context, i in) (out, error) { called = true; return say(ctx, i) })},
	)
	attempt := func(name, method, path string, h http.Header, status int) {
		t.Helper()
		resp, body := s.do(
			t,
			method,
			path,
			strings.NewReader(`{"name":"x"}`),
			caller.Header,
			h.Get(caller.Header),
			caller.ShownHeader,
			h.Get(caller.ShownHeader),
		)
		if resp.StatusCode != status || (resp.Header.Get(rpc.RefusedHeader) == "") != (status == 200) {
			t.Errorf("%s at %s: %s %s", name, path, resp.Status, body)
		}
	}
	agent := caller.Caller{Kind: caller.Key, CredentialID: "ak_1"}
	for _, f := range callertest.Forgeries(caller.Gateway, "speaker", agent, "authoring", "speaker") {
		attempt(f.Name, http.MethodPost, rpc.ToolPath("say"), f.Header, 401)
	}
	for _, f := range callertest.Forgeries(caller.Gateway, "speaker", caller.Itself(caller.Gateway), "authoring", "speaker") {
		attempt(f.Name, http.MethodGet, rpc.ManifestPath, f.Header, 401)
	}
	for kind, status := range map[string]int{caller.User: 403, caller.Visitor: 403, caller.Service: 403} {
		attempt(kind, http.MethodPost, rpc.ToolPath("say"), callertest.Header(t, "speaker", caller.Caller{Kind: kind}), status)
	}
	for kind, status := range map[string]int{caller.User: 403, caller.Visitor: 403, caller.Key: 403, caller.App: 403, caller.Service: 200} {
		attempt(kind, http.MethodGet, rpc.ManifestPath, callertest.Header(t, "speaker", caller.Caller{Kind: kind}), status)
	}
	attempt("authoring", http.MethodPost, rpc.ToolPath("say"), callertest.HeaderOf(t, "authoring", "speaker"), 403)
	attempt("authoring", http.MethodGet, rpc.ManifestPath, callertest.HeaderOf(t, "authoring", "speaker"), 403)
	if called {
		t.Error("the tool ran")
	}
	if log := s.log.String(); !strings.Contains(log, "internal token refused") || !strings.Contains(log, "unknown kid") {
		t.Errorf("nothing tells why: %s", log)
	}
	attempt("an app", http.MethodPost, rpc.ToolPath("say"), callertest.Header(t, "speaker", caller.Caller{Kind: caller.App}), 200)
}

func TestManifest(t *testing.T) {
	second := declaration(func(d *tool.Declaration) { d.Name, d.Position = "again", 2 })
	s := serve(t, []tool.Tool{tool.New(declaration(nil), say), tool.New(second, say)})
	resp, body := s.do(t, http.MethodGet, rpc.ManifestPath, nil)
	var m tool.Manifest
	if err := json.Unmarshal(
		[]byte(body),
		&m,
	); err != nil || resp.StatusCode != 200 || m.Service != "speaker" || len(m.Tools) != 2 || m.Tools[0].Name != "say" ||
		m.Tools[1].Name != "again" ||
		m.Tools[1].Position != 2 {
		t.Errorf("%s %s, %v", resp.Status, body, err)
	}
}

func TestFaultsOverTheWire(t *testing.T) {
	s := serve(t, []tool.Tool{tool.New(declaration(nil), say)})
	for name, c := range map[string]struct {
		status int
		body   string // in part
		logged string
	}{
		"fault":       {422, `{"code":"E_SUPPRESSED","message":"Suppressed.","details":{"targets":[1]},"retry_after_ms":2000}`, ""},
		"foreign":     {500, `"code":"E_INTERNAL"`, "SELECT secret"},
		"panic":       {500, `"code":"E_INTERNAL"`, "SELECT secret"},
		"bad details": {500, `"code":"E_INTERNAL"`, "fault not encoded"},
		"":            {400, `"path":"/name","rule":"minLength"`, ""},
	} {
		s.log.Reset()
		resp, body := s.call(t, fmt.Sprintf(`{"name":%q}`, name))
		var f fault.Error
		if err := json.Unmarshal(
			[]byte(body),
			&f,
		); err != nil || resp.StatusCode != c.status || f.Status() != c.status || resp.Header.Get(rpc.FaultHeader) != string(f.Code) ||
			!strings.Contains(body, c.body) ||
			strings.Contains(body, "secret") {
			t.Errorf("%q: %s %v %s", name, resp.Status, resp.Header, body)
		}
		if log := s.log.String(); (log == "") != (c.logged == "") || !strings.Contains(log, c.logged) ||
			log != "" && !strings.Contains(log, "req_1") && name != "bad details" {
			t.Errorf("%q logged: %s", name, log)
		}
	}
	if resp, body := s.call(t, `{"name":"x"}`); resp.StatusCode != 200 { // after a panic
		t.Errorf("%s %s", resp.Status, body)
	}
}

// chunked hides a body's length.
type chunked struct{ io.Reader }

func TestBodyCap(t *testing.T) {
	s := serve(t, []tool.Tool{tool.New(declaration(func(d *tool.Declaration) { d.MaxBody = 100 }), say)})
	input := func(n int) string { return `{"name":"x"}` + strings.Repeat(" ", n-len(`{"name":"x"}`)) }
	for n, status := range map[int]int{12: 200, 99: 200, 100: 200, 101: 400, 1 << 20: 400} {
		for kind, body := range map[string]io.Reader{"of known length": strings.NewReader(input(n)),
			"chunked": chunked{strings.NewReader(input(n))}} {
			resp, answer := s.do(t, http.MethodPost, rpc.ToolPath("say"), body)
			if resp.StatusCode != status ||
				status == 400 && (!strings.Contains(answer, `"limit_bytes":100`) || !strings.Contains(answer, "E_VALIDATION")) {
				t.Errorf("%d bytes %s: %s %s", n, kind, resp.Status, answer)
			}
		}
	}
	if _, err := rpc.ReadBody(t.Context(), io.MultiReader(strings.NewReader("half"), broken{}), -1, 100); !fault.Is(err, fault.Validation) {
		t.Errorf("a body that breaks off: %v", err)
	}
	if b, err := rpc.ReadBody(
		t.Context(),
		strings.NewReader("more than announced"),
		4,
		100,
	); err != nil ||
		string(b) != "more than announced" {
		t.Errorf("%q, %v", b, err)
	}
}

// holding is a body that counts what is held of it.
type holding struct {
	io.ReadCloser
	held *int64
}

func (h holding) Hold(_ context.Context, n int64) error {
	*h.held += n
	if *h.held > 100 {
		return fault.New(fault.RateLimit, "full")
	}
	return nil
}

// TestHold: what an endpoint reads from elsewhere counts as its request's body does; where nothing bounds bodies it is free.
func TestHold(t *testing.T) {
	quiet, keys := slog.New(slog.DiscardHandler), callertest.Keys(t, "speaker", caller.Gateway)
	reads := func(ctx context.Context, _ any) (any, error) {
		return &tool.Result{Data: []byte(`{}`)}, rpc.Hold(ctx, 60)
	}
	handler := rpc.Handler(reads, "x", caller.Agents(), 100, keys, quiet)
	var held int64
	for i, want := range []int{200, 429, 200} {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(`{}`))
		r.Header = callertest.Header(t, "speaker", caller.Caller{Kind: caller.Key, CredentialID: "ak_1"})
		if i < 2 {
			r.Body = holding{r.Body, &held}
		}
		w := httptest.NewRecorder()
		if handler.ServeHTTP(w, r); w.Code != want || held != int64(60*min(i+1, 2)) {
			t.Errorf("%d: %d %s, %d held", i, w.Code, w.Body, held)
		}
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("connection reset") }

func TestContextHasCallerDeadlineAndKey(t *testing.T) {
	var left time.Duration
	var has bool
	var who caller.Caller
	var key string
	d := declaration(nil)
	s := serve(t, []tool.Tool{tool.New(d, say)}, func(next endpoint.Endpoint) endpoint.Endpoint {
		return func(ctx context.Context, request any) (any, error) {
			var deadline time.Time
			deadline, has = ctx.Deadline()
			left, who, key = time.Until(deadline), caller.From(ctx), request.(*tool.Call).IdempotencyKey
			r, err := next(ctx, request)
			if r, ok := r.(*tool.Result); ok {
				r.Replayed = true
			}
			return r, err
		}
	})
	resp, _ := s.call(t, `{"name":"x"}`, rpc.DeadlineHeader, "5000", tool.KeyHeader, "k 1")
	if !has || left > 5*time.Second || left < time.Second || who.CredentialID != "ak_1" || who.RequestID != "req_1" || key != "k 1" ||
		resp.Header.Get(rpc.ReplayedHeader) != "true" {
		t.Errorf("deadline %v %v, caller %+v, key %q, headers %v", has, left, who, key, resp.Header)
	}
	if s.call(t, `{"name":"x"}`); has {
		t.Error("a deadline that nobody set")
	}
	if s.call(t, `{"name":"x"}`, rpc.DeadlineHeader, "soon"); has {
		t.Error("a deadline that is no number")
	}
}

func TestMiddlewareRunsOutermostFirstAndSeesPanicsAsErrors(t *testing.T) {
	var order []string
	layer := func(name string) endpoint.Middleware {
		return func(next endpoint.Endpoint) endpoint.Endpoint {
			return func(ctx context.Context, request any) (any, error) {
				order = append(order, name)
				r, err := next(ctx, request)
				order = append(order, fmt.Sprint(name, " ", fault.From(err).Code))
				return r, err
			}
		}
	}
	s := serve(t, []tool.Tool{tool.New(declaration(nil), say)}, layer("outer"), layer("inner"))
	s.call(t, `{"name":"panic"}`)
	if got := strings.Join(order, ", "); got != "outer, inner, inner E_INTERNAL, outer E_INTERNAL" {
		t.Errorf("got %s", got)
	}
}

func TestTwoToolsOfOneNameStopTheProgram(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	serve(t, []tool.Tool{tool.New(declaration(nil), say), tool.New(declaration(nil), say)})
}

// TestOperation: it ignores what it does not know, quotes no input, and names its two ends in the manifest.
func TestOperation(t *testing.T) {
	mux := http.NewServeMux()
	o := rpc.New(rpc.Declaration{Path: "/internal/things/say", Takes: caller.Neighbour("authoring")}, say)
	rpc.Server{Mux: mux, Keys: callertest.Keys(t, "speaker", "authoring"), Logger: slog.New(slog.DiscardHandler)}.Operation(o)
	call := func(body string) (int, string) {
		r := httptest.NewRequest(http.MethodPost, "/internal/things/say", strings.NewReader(body))
		r.Header = callertest.HeaderOf(t, "authoring", "speaker")
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	if status, body := call(`{"name":"x","limit":1,"newer":true}`); status != 200 || body != `{"said":"<x>","rows":[""]}` {
		t.Errorf("%d %s", status, body)
	}
	if status, body := call(
		`{"name":"the secret"`,
	); status != 400 || strings.Contains(body, "secret") ||
		!strings.Contains(body, "things.say") {
		t.Errorf("%d %s", status, body)
	}
	if o.Name() != "things.say" || !slices.Equal(o.Spec.Callers, []string{"authoring"}) ||
		!strings.Contains(string(o.Spec.Input), `"limit"`) ||
		!strings.Contains(string(o.Spec.Output), `"said"`) {
		t.Errorf("%s, %+v", o.Name(), o.Spec)
	}
	for name, d := range map[string]rpc.Declaration{"nobody": {Path: "/internal/x"},
		"elsewhere": {Path: "/x", Takes: caller.Neighbour("authoring")}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			rpc.New(d, say)
		}()
	}
}

// TestStatus: what a write answers beside 200 arrives.
func TestStatus(t *testing.T) {
	s := serve(
		t,
		[]tool.Tool{
			tool.New(
				declaration(func(d *tool.Declaration) { d.Output = schema.FreeObject("") }),
				func(context.Context, in) (tool.Result, error) {
					return tool.Result{Head: tool.Head{Status: 201, Count: 1, Replayed: true}, Data: []byte(`{}`)}, nil
				},
			),
		},
	)
	if resp, body := s.call(t, `{"name":"x"}`); resp.StatusCode != 201 || body != "{}" || resp.Header.Get(rpc.ReplayedHeader) != "true" {
		t.Errorf("%s %s", resp.Status, body)
	}
}

// raw writes its own JSON.
type raw string

func (r raw) JSON() []byte { return []byte(r) }

// held is an answer that has to be released.
type held struct {
	raw
	release func()
}

func (h held) Release() { h.release() }

// TestAnswerIsReleasedOnceItIsWritten, read by its caller or not.
func TestAnswerIsReleasedOnceItIsWritten(t *testing.T) {
	released := make(chan struct{}, 2)
	s := serve(
		t,
		[]tool.Tool{
			tool.New(
				declaration(func(d *tool.Declaration) { d.Output = schema.FreeObject("") }),
				func(_ context.Context, i in) (held, error) {
					return held{raw(`"` + strings.Repeat("x", int(i.Limit)<<20) + `"`), func() { released <- struct{}{} }}, nil
				},
			),
		},
	)
	resp, body := s.call(t, `{"name":"x","limit":1}`)
	if resp.StatusCode != http.StatusOK || len(body) != 1<<20+2 {
		t.Errorf("%s, %d bytes", resp.Status, len(body))
	}
	<-released
	r, err := http.NewRequestWithContext(
		t.Context(),
		http.MethodPost,
		s.url+rpc.ToolPath("say"),
		strings.NewReader(`{"name":"x","limit":5}`),
	)
	if err != nil {
		t.Fatal(err)
	}
	r.Header = callertest.Header(t, "speaker", caller.Caller{Kind: caller.Key, CredentialID: "ak_1", RequestID: "req_1"})
	if resp, err = http.DefaultClient.Do(r); err != nil {
		t.Fatal(err)
	}
	resp.Body.Close() // unread
	<-released
	if len(released) > 0 {
		t.Error("released twice")
	}
}

// TestARouteTakesWhomItsCredentialMakes: whoever has another one, and whoever is no gateway, is refused.
func TestARouteTakesWhomItsCredentialMakes(t *testing.T) {
	t.Parallel()
	type in struct{}
	for credential, want := range map[string]string{tool.KeyCredential: caller.Key, tool.AppCredential: caller.App,
		tool.AppUnlinkedCredential: caller.App, tool.NoCredential: caller.Visitor, "later": ""} {
		scope := "query"
		if credential == tool.NoCredential {
			scope = ""
		}
		mux := http.NewServeMux()
		rpc.Server{Mux: mux, Keys: callertest.Keys(t, "shop", caller.Gateway), Logger: slog.New(slog.DiscardHandler)}.Route(tool.NewRoute(
			tool.RouteDeclaration{
				Declaration: tool.Declaration{Name: "orders.get", Description: "Orders.", Scope: scope, Input: schema.Object()},
				Method:      "POST",
				Path:        "/v1/orders",
				Idempotency: tool.KeyIgnored,
				Credential:  credential,
			},
			func(context.Context, in) (map[string]string, error) { return map[string]string{}, nil },
		))
		for _, kind := range []string{caller.Key, caller.App, caller.User, caller.Visitor, caller.Service} {
			who := caller.Caller{Kind: kind, Service: "x", CredentialID: "x"}
			if kind == caller.Service {
				who = caller.Itself(caller.Gateway)
			}
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, rpc.RoutePath("orders.get"), strings.NewReader(`{}`))
			maps.Copy(r.Header, callertest.Header(t, "shop", who))
			w := httptest.NewRecorder()
			mux.ServeHTTP(w, r)
			if (w.Code == http.StatusOK) != (kind == want) {
				t.Errorf("%s by a %s: %d", credential, kind, w.Code)
			}
		}
	}
}
