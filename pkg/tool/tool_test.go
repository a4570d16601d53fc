package tool_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-kit/kit/endpoint"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/caller/callertest"
	"hub.internal/pkg/fault"
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

// raw writes its own JSON.
type raw string

func (r raw) JSON() []byte { return []byte(r) }

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

func TestBrokenDeclarationStopsTheProgram(t *testing.T) {
	for name, change := range map[string]func(*tool.Declaration){
		"no name":        func(d *tool.Declaration) { d.Name = "" },
		"no category":    func(d *tool.Declaration) { d.Category = "" },
		"no description": func(d *tool.Declaration) { d.Description = "" },
		"no scope":       func(d *tool.Declaration) { d.Scope = "" },
		"no position":    func(d *tool.Declaration) { d.Position = 0 },
		"no input":       func(d *tool.Declaration) { d.Input = nil },
		"open input":     func(d *tool.Declaration) { d.Input = schema.FreeObject("") },
		"no object":      func(d *tool.Declaration) { d.Input = schema.String("") },
		"other members":  func(d *tool.Declaration) { d.Input = schema.Object(schema.Required("other", schema.String(""))) },
		"not enforced":   func(d *tool.Declaration) { d.Input.Properties["name"].Const = new(any) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			tool.New(declaration(change), say)
		})
	}
}

func TestSpecSaysItAll(t *testing.T) {
	s := tool.New(declaration(func(d *tool.Declaration) { d.Write, d.Timeout, d.MaxBody = true, 35*time.Second, 32<<20 }), say).Spec
	if !s.Write || s.Timeout() != 35*time.Second || s.MaxBody != 32<<20 || s.Errors == nil || s.Examples == nil {
		t.Errorf("got %+v", s)
	}
	if s = tool.New(declaration(nil), say).Spec; s.Timeout() != 10*time.Second || s.MaxBody != 1<<20 {
		t.Errorf("defaults: %+v", s)
	}
	for _, text := range []string{`"additionalProperties":false`, `"required":["name"]`, `"maximum":5`, `"default":2`} {
		if !bytes.Contains(s.Input, []byte(text)) {
			t.Errorf("input schema %s lacks %s", s.Input, text)
		}
	}
	if !bytes.Contains(s.Output, []byte(`"said"`)) {
		t.Errorf("output schema %s", s.Output)
	}
}

func TestResult(t *testing.T) {
	call := func(t tool.Tool, input string) (*tool.Result, error) {
		r, err := t.Endpoint(context.Background(), &tool.Call{Input: []byte(input)})
		if err != nil {
			return nil, err
		}
		return r.(*tool.Result), nil
	}
	for name, c := range map[string]struct {
		tool  tool.Tool
		data  string
		count int
	}{
		"counts rows":     {tool.New(declaration(nil), say), `{"said":"\u003cx\u003e","rows":["",""]}`, 2},
		"counts as one":   {tool.New(declaration(nil), func(context.Context, in) (map[string]int, error) { return map[string]int{"a": 1}, nil }), `{"a":1}`, 1},
		"writes its own":  {tool.New(declaration(func(d *tool.Declaration) { d.Output = schema.FreeObject("") }), func(context.Context, in) (raw, error) { return `{"b": 1e2}`, nil }), `{"b": 1e2}`, 1},
		"answers nothing": {tool.New(declaration(nil), func(context.Context, in) (struct{}, error) { return struct{}{}, nil }), `{}`, 1},
	} {
		if r, err := call(c.tool, `{"name":"x"}`); err != nil || string(r.Data) != c.data || r.Count != c.count {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
	if _, err := call(tool.New(declaration(nil), say), `{"limit":9}`); !fault.Is(err, fault.Validation) {
		t.Errorf("invalid input: %v", err)
	}
	unencodable := tool.New(declaration(func(d *tool.Declaration) { d.Output = schema.FreeObject("") }), func(context.Context, in) (any, error) { return func() {}, nil })
	if _, err := call(unencodable, `{"name":"x"}`); fault.From(err).Code != fault.Internal {
		t.Errorf("an answer that JSON cannot hold: %v", err)
	}
}

// service is a mounted tool behind a real listener.
type service struct {
	url string
	log *bytes.Buffer
}

func serve(t *testing.T, tools []tool.Tool, mw ...func(tool.Spec) endpoint.Middleware) service {
	t.Helper()
	var log bytes.Buffer
	mux := http.NewServeMux()
	tool.Mount(mux, "speaker", tools, callertest.Keys(t, "speaker", caller.Gateway, "authoring"), slog.New(slog.NewJSONHandler(&log, nil)), mw...)
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
	if path == tool.ManifestPath {
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
	return s.do(t, http.MethodPost, tool.Path("say"), strings.NewReader(input), headers...)
}

func TestCallOverTheWire(t *testing.T) {
	s := serve(t, []tool.Tool{tool.New(declaration(nil), say)})
	resp, body := s.call(t, `{"name":"x","limit":3}`)
	h := resp.Header
	if resp.StatusCode != 200 || body != `{"said":"\u003cx\u003e","rows":["","",""]}` || h.Get(tool.CountHeader) != "3" || h.Get("Content-Length") != strconv.Itoa(len(body)) ||
		h.Get(tool.FaultHeader) != "" || h.Get(tool.ReplayedHeader) != "" || h.Get("Content-Type") != "application/json" {
		t.Errorf("%s %v %s", resp.Status, h, body)
	}
	if resp, _ := s.do(t, http.MethodGet, tool.Path("say"), nil); resp.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("GET: %s", resp.Status)
	}
	if resp, _ := s.do(t, http.MethodPost, tool.Path("other"), nil); resp.StatusCode != http.StatusNotFound {
		t.Errorf("an unknown tool: %s", resp.Status)
	}
}

// held is an answer that has to be released.
type held struct {
	raw
	release func()
}

func (h held) Release() { h.release() }

// TestAnswerIsReleasedOnceItIsWritten, read by its caller or not.
func TestAnswerIsReleasedOnceItIsWritten(t *testing.T) {
	released := make(chan struct{}, 2)
	s := serve(t, []tool.Tool{tool.New(declaration(func(d *tool.Declaration) { d.Output = schema.FreeObject("") }), func(_ context.Context, i in) (held, error) {
		return held{raw(`"` + strings.Repeat("x", int(i.Limit)<<20) + `"`), func() { released <- struct{}{} }}, nil
	})})
	resp, body := s.call(t, `{"name":"x","limit":1}`)
	if resp.StatusCode != http.StatusOK || len(body) != 1<<20+2 {
		t.Errorf("%s, %d bytes", resp.Status, len(body))
	}
	<-released
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+tool.Path("say"), strings.NewReader(`{"name":"x","limit":5}`))
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

func TestTokenIsRequired(t *testing.T) {
	called := false
	s := serve(t, []tool.Tool{tool.New(declaration(nil), func(ctx context.Context, i in) (out, error) { called = true; return say(ctx, i) })})
	for token, code := range map[string]string{"": "E_AUTH_MISSING", "x": "E_AUTH_INVALID", "a.b.c": "E_AUTH_INVALID"} {
		for _, path := range []string{tool.Path("say"), tool.ManifestPath} {
			method := http.MethodPost
			if path == tool.ManifestPath {
				method = http.MethodGet
			}
			resp, body := s.do(t, method, path, strings.NewReader(`{"name":"x"}`), caller.Header, token)
			if resp.StatusCode != 401 || resp.Header.Get(tool.FaultHeader) != code || strings.Contains(body, "say") {
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
	s := serve(t, []tool.Tool{tool.New(declaration(nil), func(ctx context.Context, i in) (out, error) { called = true; return say(ctx, i) })})
	attempt := func(name, method, path string, h http.Header, status int) {
		t.Helper()
		resp, body := s.do(t, method, path, strings.NewReader(`{"name":"x"}`), caller.Header, h.Get(caller.Header), caller.ShownHeader, h.Get(caller.ShownHeader))
		if resp.StatusCode != status || (resp.Header.Get(tool.RefusedHeader) == "") != (status == 200) {
			t.Errorf("%s at %s: %s %s", name, path, resp.Status, body)
		}
	}
	agent := caller.Caller{Kind: caller.Key, CredentialID: "ak_1"}
	for _, f := range callertest.Forgeries(caller.Gateway, "speaker", agent, "authoring", "speaker") {
		attempt(f.Name, http.MethodPost, tool.Path("say"), f.Header, 401)
	}
	for _, f := range callertest.Forgeries(caller.Gateway, "speaker", caller.Itself(caller.Gateway), "authoring", "speaker") {
		attempt(f.Name, http.MethodGet, tool.ManifestPath, f.Header, 401)
	}
	for kind, status := range map[string]int{caller.User: 403, caller.Visitor: 403, caller.Service: 403} {
		attempt(kind, http.MethodPost, tool.Path("say"), callertest.Header(t, "speaker", caller.Caller{Kind: kind}), status)
	}
	for kind, status := range map[string]int{caller.User: 403, caller.Visitor: 403, caller.Key: 403, caller.App: 403, caller.Service: 200} {
		attempt(kind, http.MethodGet, tool.ManifestPath, callertest.Header(t, "speaker", caller.Caller{Kind: kind}), status)
	}
	attempt("authoring", http.MethodPost, tool.Path("say"), callertest.HeaderOf(t, "authoring", "speaker"), 403)
	attempt("authoring", http.MethodGet, tool.ManifestPath, callertest.HeaderOf(t, "authoring", "speaker"), 403)
	if called {
		t.Error("the tool ran")
	}
	if log := s.log.String(); !strings.Contains(log, "internal token refused") || !strings.Contains(log, "unknown kid") {
		t.Errorf("nothing tells why: %s", log)
	}
	attempt("an app", http.MethodPost, tool.Path("say"), callertest.Header(t, "speaker", caller.Caller{Kind: caller.App}), 200)
}

func TestManifest(t *testing.T) {
	second := declaration(func(d *tool.Declaration) { d.Name, d.Position = "again", 2 })
	s := serve(t, []tool.Tool{tool.New(declaration(nil), say), tool.New(second, say)})
	resp, body := s.do(t, http.MethodGet, tool.ManifestPath, nil)
	var m tool.Manifest
	if err := json.Unmarshal([]byte(body), &m); err != nil || resp.StatusCode != 200 || m.Service != "speaker" || len(m.Tools) != 2 || m.Tools[0].Name != "say" || m.Tools[1].Name != "again" || m.Tools[1].Position != 2 {
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
		if err := json.Unmarshal([]byte(body), &f); err != nil || resp.StatusCode != c.status || f.Status() != c.status || resp.Header.Get(tool.FaultHeader) != string(f.Code) || !strings.Contains(body, c.body) || strings.Contains(body, "secret") {
			t.Errorf("%q: %s %v %s", name, resp.Status, resp.Header, body)
		}
		if log := s.log.String(); (log == "") != (c.logged == "") || !strings.Contains(log, c.logged) || log != "" && !strings.Contains(log, "req_1") && name != "bad details" {
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
		for kind, body := range map[string]io.Reader{"of known length": strings.NewReader(input(n)), "chunked": chunked{strings.NewReader(input(n))}} {
			resp, answer := s.do(t, http.MethodPost, tool.Path("say"), body)
			if resp.StatusCode != status || status == 400 && (!strings.Contains(answer, `"limit_bytes":100`) || !strings.Contains(answer, "E_VALIDATION")) {
				t.Errorf("%d bytes %s: %s %s", n, kind, resp.Status, answer)
			}
		}
	}
	if _, err := tool.ReadBody(io.MultiReader(strings.NewReader("half"), broken{}), -1, 100); !fault.Is(err, fault.Validation) {
		t.Errorf("a body that breaks off: %v", err)
	}
	if b, err := tool.ReadBody(strings.NewReader("more than announced"), 4, 100); err != nil || string(b) != "more than announced" {
		t.Errorf("%q, %v", b, err)
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
	s := serve(t, []tool.Tool{tool.New(d, say)}, func(spec tool.Spec) endpoint.Middleware {
		if spec.Name != d.Name {
			t.Errorf("middleware for %q", spec.Name)
		}
		return func(next endpoint.Endpoint) endpoint.Endpoint {
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
		}
	})
	resp, _ := s.call(t, `{"name":"x"}`, tool.DeadlineHeader, "5000", tool.KeyHeader, "k 1")
	if !has || left > 5*time.Second || left < time.Second || who.CredentialID != "ak_1" || who.RequestID != "req_1" || key != "k 1" || resp.Header.Get(tool.ReplayedHeader) != "true" {
		t.Errorf("deadline %v %v, caller %+v, key %q, headers %v", has, left, who, key, resp.Header)
	}
	if s.call(t, `{"name":"x"}`); has {
		t.Error("a deadline that nobody set")
	}
	if s.call(t, `{"name":"x"}`, tool.DeadlineHeader, "soon"); has {
		t.Error("a deadline that is no number")
	}
}

func TestMiddlewareRunsOutermostFirstAndSeesPanicsAsErrors(t *testing.T) {
	var order []string
	layer := func(name string) func(tool.Spec) endpoint.Middleware {
		return func(tool.Spec) endpoint.Middleware {
			return func(next endpoint.Endpoint) endpoint.Endpoint {
				return func(ctx context.Context, request any) (any, error) {
					order = append(order, name)
					r, err := next(ctx, request)
					order = append(order, fmt.Sprint(name, " ", fault.From(err).Code))
					return r, err
				}
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
