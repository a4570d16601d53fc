package gateway_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-kit/kit/sd"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/caller/callertest"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/remote"
	"hub.internal/pkg/rpc"
	"hub.internal/pkg/schema"
	"hub.internal/pkg/tool"
	"hub.internal/services/gateway"
	"hub.internal/services/gateway/catalog"
	"hub.internal/services/gateway/edge"
)

// shop is an edge before an owner of routes as well: real ones, served by rpc, and lies, served as they are.
type shop struct {
	*fixture
	catalog *catalog.Catalog

	mu    sync.Mutex
	asked []asked
	lie   http.HandlerFunc
}

// asked is what reached the owner.
type asked struct {
	Route  string        `json:"route"`
	Input  any           `json:"input"`
	Key    string        `json:"key"`
	Caller caller.Caller `json:"caller"`
}

type (
	orderIn struct {
		OrderID string `json:"orderId"`
	}
	amountIn struct {
		Amount int64 `json:"amount"`
	}
	changeIn struct {
		OrderID string `json:"orderId"`
		Amount  int64  `json:"amount"`
	}
	eventsIn struct {
		Status string   `json:"status"`
		Limit  int64    `json:"limit"`
		All    bool     `json:"all"`
		Tags   []string `json:"tags"`
	}
)

// routes are those of the owner.
func (s *shop) routes() []tool.APIRoute {
	orderID := schema.Required("orderId", schema.String("The order.", schema.Length(1, 20)))
	amount := schema.Required("amount", schema.Integer("Won.", schema.Range(1, 1000)))
	return []tool.APIRoute{
		declare[amountIn](s, "orders.create", "POST", "/v1/orders", tool.KeyRequired, 201, "/v1/orders/o_1", amount),
		declare[orderIn](s, "orders.get", "GET", "/v1/orders/{orderId}", tool.KeyIgnored, 200, "/ignored", orderID),
		declare[eventsIn](s, "orders.events", "GET", "/v1/orders/events", tool.KeyIgnored, 200, "",
			schema.Optional("status", schema.String("", schema.Enum("open", "paid"))),
			schema.Optional("limit", schema.Integer("", schema.Range(1, 100), schema.Default(20))),
			schema.Optional("all", schema.Boolean("")), schema.Optional("tags", schema.Array("", schema.String(""), schema.Items(0, 3)))),
		declare[orderIn](s, "orders.redeliver", "POST", "/v1/orders/{orderId}/redeliver", tool.KeyOptional, 202, "", orderID),
		declare[orderIn](
			s,
			"orders.delete",
			"DELETE",
			"/v1/orders/{orderId}",
			tool.KeyIgnored,
			303,
			"/v1/orders/events?status=open",
			orderID,
		),
		declare[changeIn](s, "orders.change", "PUT", "/v1/orders/{orderId}", tool.KeyOptional, 200, "", orderID, amount),
	}
}

// declare makes a route that answers what it was asked.
func declare[In any](s *shop, name, method, path, key string, success int, location string, members ...schema.Property) tool.APIRoute {
	return tool.NewRoute(
		tool.RouteDeclaration{Declaration: tool.Declaration{Name: name, Description: "Orders. All of them.", Scope: "query",
			Input: schema.Object(members...), Output: schema.FreeObject(""), MaxBody: 1024, Timeout: 5 * time.Second},
			Method: method, Path: path, Success: []int{success}, Idempotency: key, Credential: tool.KeyCredential},
		func(ctx context.Context, in In) (tool.Result, error) {
			s.mu.Lock()
			s.asked = append(s.asked, asked{name, in, tool.IdempotencyFrom(ctx).Key, caller.From(ctx)})
			s.mu.Unlock()
			b, err := json.Marshal(in)
			return tool.Result{Head: tool.Head{Count: 1, Location: location}, Data: b}, err
		},
	)
}

// lieSpec is the route whose owner lies.
func lieSpec(success ...int) tool.RouteSpec {
	return tool.RouteSpec{
		Spec: tool.Spec{
			Name:        "lies.tell",
			Description: "Lies.",
			Scope:       "query",
			Input:       json.RawMessage(closed),
			Output:      json.RawMessage(`{}`),
			MaxBody:     1024,
			TimeoutMS:   5000,
		},
		Method:      "POST",
		Path:        "/v1/lies",
		Success:     success,
		Idempotency: tool.KeyIgnored,
		Credential:  tool.KeyCredential,
	}
}

const closed = `{"type":"object","additionalProperties":false}`

func newShop(t *testing.T, options ...func(*gateway.Gateway)) *shop {
	t.Helper()
	s := &shop{}
	mux := http.NewServeMux()
	server := rpc.Server{Mux: mux, Keys: callertest.Keys(t, "shop", caller.Gateway), Logger: slog.New(slog.DiscardHandler)}
	m := tool.Manifest{Service: "shop", Tools: []tool.Spec{}}
	for _, r := range s.routes() {
		server.Route(r)
		m = m.WithRoutes(r)
	}
	mux.HandleFunc("POST "+rpc.RoutePath("lies.tell"), func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		lie := s.lie
		s.mu.Unlock()
		lie(w, r)
	})
	mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})
	owner := httptest.NewServer(mux)
	t.Cleanup(owner.Close)
	m.Routes = append(m.Routes, lieSpec(200, 201, 303))
	s.fixture = newFixture(t, append([]func(*gateway.Gateway){func(g *gateway.Gateway) {
		client := remote.New(remote.Options{Service: "shop", Instancer: sd.FixedInstancer{strings.TrimPrefix(owner.URL, "http://")},
			Keys: callertest.Keys(t, caller.Gateway), Logger: g.Logger, Patience: hubtest.Patience})
		t.Cleanup(client.Close)
		g.Services = neighbours{"echo": g.Services.Client("echo"), "auth": g.Services.Client("auth"), "shop": client}
		s.catalog = g.Catalog
		if err := g.Catalog.Update(m); err != nil {
			t.Fatal(err)
		}
	}}, options...)...)
	return s
}

func (s *shop) last(t *testing.T) asked {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.asked) == 0 {
		t.Fatal("nothing reached the owner")
	}
	return s.asked[len(s.asked)-1]
}

func (s *shop) reached() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.asked)
}

func TestRoutesAnswer(t *testing.T) {
	s := newShop(t)
	key := bearer(allScopes)
	keyed := append(bearer(allScopes), "Idempotency-Key", `"k-1"`)
	for name, c := range map[string]struct {
		method, path, body string
		headers            []string
		status             int
		location, input    string
		key                string
	}{
		"created":       {"POST", "/v1/orders", `{"amount":7}`, keyed, 201, "/v1/orders/o_1", `{"amount":7}`, "k-1"},
		"one":           {"GET", "/v1/orders/o_7", "", key, 200, "", `"orderId":"o_7"`, ""},
		"the word wins": {"GET", "/v1/orders/events", "", key, 200, "", `"limit":20`, ""},
		"a query": {"GET", "/v1/orders/events?status=paid&limit=5&all=true&tags=1&tags=%EA%B0%80", "", key, 200, "",
			`"status":"paid","limit":5,"all":true,"tags":["1","가"]`, ""},
		"accepted":         {"POST", "/v1/orders/o.7/redeliver", "", key, 202, "", `"orderId":"o.7"`, ""},
		"accepted, a key":  {"POST", "/v1/orders/o_7/redeliver", " {} ", keyed, 202, "", `"orderId":"o_7"`, "k-1"},
		"see other":        {"DELETE", "/v1/orders/o_7", "", key, 303, "/v1/orders/events?status=open", `"orderId":"o_7"`, ""},
		"ignores a key":    {"DELETE", "/v1/orders/o_7", "", keyed, 303, "/v1/orders/events?status=open", `"orderId":"o_7"`, ""},
		"body and a value": {"PUT", "/v1/orders/o_7", "\n{ \"amount\":3}", key, 200, "", `{"orderId":"o_7","amount":3}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := s.once(t, c.method, c.path, c.body, c.headers...)
			if r.status != c.status || r.header.Get("Location") != c.location || !r.env.OK ||
				!strings.Contains(string(r.env.Data), c.input) {
				t.Fatalf("%d Location %q: %s", r.status, r.header.Get("Location"), r.body)
			}
			if strings.Contains(r.body, `"tool"`) || r.env.RequestID == "" || r.env.TookMS == nil || r.header.Get("RateLimit") == "" {
				t.Errorf("envelope %s %v", r.body, r.header)
			}
			if a := s.last(
				t,
			); a.Key != c.key || a.Caller.Kind != caller.Key || a.Caller.CredentialID != "ak_a" ||
				a.Caller.RequestID != r.env.RequestID {
				t.Errorf("the owner saw %+v", a)
			}
		})
	}
	if r := s.do(t, "HEAD", "/v1/orders/o_7", "", key...); r.status != 200 || r.body != "" {
		t.Errorf("HEAD: %d %s", r.status, r.body)
	}
}

// once is do without following a redirect.
func (s *shop) once(t *testing.T, method, path, body string, headers ...string) reply {
	t.Helper()
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	req, err := http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	r := reply{status: resp.StatusCode, header: resp.Header, body: string(b)}
	if err := json.Unmarshal(b, &r.env); err != nil {
		t.Fatalf("no envelope: %v: %.300s", err, b)
	}
	return r
}

// TestOrderOfChecksOfARoute is TestOrderOfChecks below /v1.
func TestOrderOfChecksOfARoute(t *testing.T) {
	s := newShop(t)
	for range 2 {
		s.do(t, "GET", "/v1/orders/o_1", "", bearer(tight)...)
	}
	none := "crm_" + strings.Repeat("n", 42)
	big := `{"amount":"` + strings.Repeat("x", 2048) + `"}`
	for _, c := range []struct {
		name, method, path, body string
		headers                  []string
		status                   int
		code                     string
	}{
		{"path before all", "POST", "/v1/nothing", big, nil, 404, "E_NOT_FOUND"},
		{"method before all", "PATCH", "/v1/orders", big, nil, 405, "E_VALIDATION"},
		{"body cap before credential", "POST", "/v1/orders", big, nil, 400, "E_VALIDATION"},
		{"credential", "POST", "/v1/orders", `{`, nil, 401, "E_AUTH_MISSING"},
		{"unknown credential", "POST", "/v1/orders", `{`, bearer(unknown), 401, "E_AUTH_INVALID"},
		{"revoked", "POST", "/v1/orders", `{`, bearer(revoked), 403, "E_AUTH_REVOKED"},
		{"malformed", "POST", "/v1/orders", `{`, bearer(none), 401, "E_AUTH_INVALID"},
		{"limit before key and schema", "POST", "/v1/orders", `{`, bearer(tight), 429, "E_RATE_LIMIT"},
		{"key before schema", "POST", "/v1/orders", `{`, bearer(allScopes), 400, "E_VALIDATION"},
		{"schema", "POST", "/v1/orders", `{`, append(bearer(allScopes), "Idempotency-Key", "k"), 400, "E_VALIDATION"},
		{"nothing wrong", "POST", "/v1/orders", `{"amount":1}`, append(bearer(allScopes), "Idempotency-Key", "k"), 201, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := s.reached()
			r := s.once(t, c.method, c.path, c.body, c.headers...)
			if r.status != c.status || r.code() != c.code {
				t.Errorf("%d %s, want %d %s: %s", r.status, r.code(), c.status, c.code, r.body)
			}
			if c.code != "" && s.reached() != before {
				t.Error("the owner was asked")
			}
		})
	}
	if r := s.once(
		t,
		"PATCH",
		"/v1/orders/o_1",
		"",
		bearer(allScopes)...); r.status != 405 ||
		r.header.Get("Allow") != "DELETE, GET, HEAD, PUT" {
		t.Errorf("%d Allow %q", r.status, r.header.Get("Allow"))
	}
}

func TestInputsOfRoutes(t *testing.T) {
	s := newShop(t)
	keyed := append(bearer(allScopes), "Idempotency-Key", "k")
	for name, c := range map[string]struct{ method, path, body, rule, at string }{
		"a value in the body too":  {"PUT", "/v1/orders/o_1", `{"amount":1,"orderId":"o_2"}`, "json", "/orderId"},
		"its escaped twin":         {"PUT", "/v1/orders/o_1", `{"amount":1,"\u006frderId":"o_2"}`, "json", "/orderId"},
		"a value and no object":    {"PUT", "/v1/orders/o_1", `[1]`, "type", ""},
		"a value and a cut object": {"PUT", "/v1/orders/o_1", `{`, "json", ""},
		"two objects":              {"PUT", "/v1/orders/o_1", `{"amount":1}{}`, "json", ""},
		"a comma in front":         {"PUT", "/v1/orders/o_1", `{,"amount":1}`, "json", ""},
		"a value too long":         {"GET", "/v1/orders/" + strings.Repeat("a", 21), "", "maxLength", "/orderId"},
		"no amount":                {"PUT", "/v1/orders/o_1", "", "required", "/amount"},
		"a query beside a body":    {"PUT", "/v1/orders/o_1?amount=1", `{"amount":1}`, "query", ""},
		"a body beside a query":    {"GET", "/v1/orders/o_1", `{}`, "body", ""},
		"a value in the query":     {"GET", "/v1/orders/o_1?orderId=o_2", "", "query", "/orderId"},
		"an unknown parameter":     {"GET", "/v1/orders/events?x=1", "", "additionalProperties", "/x"},
		"given twice":              {"GET", "/v1/orders/events?status=open&status=paid", "", "type", "/status"},
		"no number":                {"GET", "/v1/orders/events?limit=5x", "", "type", "/limit"},
		"a number too large":       {"GET", "/v1/orders/events?limit=101", "", "maximum", "/limit"},
		"a number beyond 64 bits":  {"GET", "/v1/orders/events?limit=9999999999999999999", "", "maximum", "/limit"},
		"a JSON value":             {"GET", "/v1/orders/events?limit={}", "", "type", "/limit"},
		"a list in a parameter":    {"GET", "/v1/orders/events?tags=1&tags=2&tags=3&tags=4", "", "maxItems", "/tags"},
		"not a boolean":            {"GET", "/v1/orders/events?all=1", "", "type", "/all"},
		"a broken escape":          {"GET", "/v1/orders/events?status=%zz", "", "query", ""},
		"a semicolon":              {"GET", "/v1/orders/events?status=open;limit=1", "", "query", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := s.once(t, c.method, c.path, c.body, keyed...)
			var details struct {
				Violations []struct{ Path, Rule, Message string }
			}
			if r.env.Error == nil || json.Unmarshal(r.env.Error.Details, &details) != nil || len(details.Violations) != 1 {
				t.Fatalf("want one violation: %s", r.body)
			}
			if v := details.Violations[0]; r.status != 400 || v.Rule != c.rule || v.Path != c.at {
				t.Errorf("%+v, want %s at %q", v, c.rule, c.at)
			}
		})
	}
	if n := s.reached(); n != 0 {
		t.Errorf("%d reached the owner", n)
	}
}

// TestOwnersThatLie: what an owner has not declared, or may not say, reaches nobody.
func TestOwnersThatLie(t *testing.T) {
	s := newShop(t)
	say := func(status int, body string, headers ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			for i := 0; i+1 < len(headers); i += 2 {
				w.Header().Add(headers[i], headers[i+1])
			}
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}
	}
	tell := func(lie http.HandlerFunc) reply {
		t.Helper()
		s.mu.Lock()
		s.lie = lie
		s.mu.Unlock()
		return s.once(t, "POST", "/v1/lies", `{}`, bearer(allScopes)...)
	}
	for _, status := range []int{202, 204, 206, 301, 302, 304, 307, 400, 401, 404, 418, 500, 503} {
		if r := tell(say(status, "", "Location", "/x")); r.status != 503 || r.code() != "E_DB" || r.header.Get("Location") != "" {
			t.Errorf("status %d: %d %s %v", status, r.status, r.body, r.header)
		}
		// Five of these in a row would open the breaker.
		if r := tell(say(200, `{}`)); r.status != 200 {
			t.Fatalf("the truth after %d: %s", status, r.body)
		}
	}
	for _, location := range []string{"https://evil.example/", "//evil.example/", `/\evil.example`, `\\evil.example`,
		"javascript:alert(1)", "data:text/html,x", "http:/x",
		"x", "?x", "/\tx", "/x y", "/é", "/" + strings.Repeat("x", 2048), ""} {
		for _, status := range []int{201, 303} {
			if status == 201 && location == "" {
				continue
			}
			if r := tell(
				say(status, `{}`, "Location", location),
			); r.code() != "E_INTERNAL" || r.header.Get("Location") != "" ||
				strings.Contains(r.body, "evil") {
				t.Errorf("%d to %.40q: %d %s %v", status, location, r.status, r.body, r.header)
			}
		}
	}
	r := tell(
		say(
			200,
			`{"a":1}`,
			"Set-Cookie",
			"__Host-hub=x",
			"Location",
			"/x",
			"Access-Control-Allow-Origin",
			"*",
			"Content-Type",
			"text/html",
			"X-Request-Id",
			"theirs",
			"Hub-Token",
			"x",
			"Content-Security-Policy",
			"none",
			"Refresh",
			"0;url=//evil",
			"Link",
			"</x>; rel=preload",
			"Cache-Control",
			"public",
			"X-Content-Type-Options",
			"x",
		),
	)
	allowed := map[string]bool{
		"Content-Type":           true,
		"X-Request-Id":           true,
		"X-Content-Type-Options": true,
		"Cache-Control":          true,
		"Ratelimit":              true,
		"Ratelimit-Policy":       true,
		"Content-Length":         true,
		"Date":                   true,
	}
	for name := range r.header {
		if !allowed[name] {
			t.Errorf("the owner set %s: %s", name, r.header.Get(name))
		}
	}
	if r.header.Get("Content-Type") != "application/json" || r.header.Get("Cache-Control") != "no-store" ||
		r.header.Get("X-Request-Id") == "theirs" ||
		r.header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("%v", r.header)
	}
	if r := tell(say(200, strings.Repeat(" ", 100<<20), "Content-Length", fmt.Sprint(100<<20))); r.code() != "E_INTERNAL" {
		t.Errorf("100 MB announced: %d %.200s", r.status, r.body)
	}
	s.mu.Lock()
	s.lie = func(w http.ResponseWriter, _ *http.Request) {
		w.(http.Flusher).Flush()
		for range 100 {
			if _, err := io.WriteString(w, strings.Repeat(" ", 1<<20)); err != nil {
				return
			}
		}
	}
	s.mu.Unlock()
	req, err := http.NewRequestWithContext(t.Context(), "POST", s.url+"/v1/lies", strings.NewReader(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+allScopes)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if n, err := io.Copy(io.Discard, resp.Body); err == nil || n > 17<<20 {
		t.Errorf("100 MB unannounced: %d bytes, %v", n, err)
	}
}

// TestPathTricks sends what no client writes, as it is: none of it reaches an owner, the console or the API
// by another name.
func TestPathTricks(t *testing.T) {
	s := newShop(t)
	ask := func(method, target string) (*http.Response, string) {
		t.Helper()
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: hub\r\nAuthorization: Bearer %s\r\nConnection: close\r\n\r\n", method, target, allScopes)
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatalf("%s %.60s: %v", method, target, err)
		}
		b, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		return resp, string(b)
	}
	for _, target := range []string{
		"/v1", "/v1/", "/V1/orders/o_1", "/v1/orders/", "/v1/orders/o_1/", "/v1/orders/o_1/x", "/v1/Orders/o_1", "/v1/orders/o_1;x=1",
		"/v1/orders/o_1%00", "/v1/orders/%2e%2e",
		"/v1/orders/%2e", "/v1/orders/o%2f1", "/v1/orders/o%5c1", "/v1/orders%2fo_1", "/%76%31/orders/o_1", "/v1/%6frders/o_1",
		"/v1/orders/%6f_1", "/v1/%2e%2e/login", "/v1/orders/%2e%2e/%2e%2e/login",
		"/v1/orders/...", "/v1/orders/o_1%0d%0aX:y", "/v1/orders/%EA%B0%80", "/v1/orders/" + strings.Repeat("a", 129), "/v1/orders/" +
			strings.Repeat("a", 20_000), "/v1/orders/{orderId}",
		"/v1/" + strings.Repeat("a/", 5000), "/internal/routes/orders.get", "/api/tools/orders.create", "/v1/orders/o_1%20", "/v1/orders/o+1",
		"/v1/orders/o:1", "/v1/orders/o@x",
	} {
		resp, body := ask("GET", target)
		if resp.StatusCode != 404 && resp.StatusCode != 405 || !strings.Contains(body, `"ok":false`) {
			t.Errorf("GET %.60s: %d %.200s", target, resp.StatusCode, body)
		}
	}
	for target, to := range map[string]string{"//v1/orders/o_1": "/v1/orders/o_1", "/v1//orders/o_1": "/v1/orders/o_1",
		"/v1/../v1/orders/o_1": "/v1/orders/o_1", "/v1/./orders": "/v1/orders", "/v1/orders/..": "/v1", "//evil.example/v1": "/evil.example/v1"} {
		if resp, _ := ask("GET", target); resp.StatusCode/100 != 3 || resp.Header.Get("Location") != to {
			t.Errorf("GET %s: %d to %s", target, resp.StatusCode, resp.Header.Get("Location"))
		}
	}
	for _, method := range []string{"TRACE", "OPTIONS", "CONNECT", "PROPFIND", "get", "POSTX", strings.Repeat("M", 2000)} {
		resp, body := ask(method, "/v1/orders/o_1")
		if resp.StatusCode != 405 || resp.Header.Get("Allow") != "DELETE, GET, HEAD, PUT" ||
			strings.Contains(body, strings.Repeat("M", 100)) {
			t.Errorf("%.20s: %d Allow %q", method, resp.StatusCode, resp.Header.Get("Allow"))
		}
	}
	for _, header := range []string{"X-HTTP-Method-Override: DELETE", "X-Original-URL: /v1/orders/o_2", "X-Rewrite-URL: /v1/orders/o_2"} {
		name, value, _ := strings.Cut(header, ": ")
		if r := s.once(
			t,
			"GET",
			"/v1/orders/o_1",
			"",
			append(bearer(allScopes), name, value)...); r.status != 200 || s.last(t).Route != "orders.get" ||
			!strings.Contains(r.body, `"o_1"`) {
			t.Errorf("%s: %s", header, r.body)
		}
	}
	if n := s.reached(); n != 3 {
		t.Errorf("%d requests reached the owner, want the 3 plain ones", n)
	}
}

// TestManifestsOfRoutes: what a manifest may not claim is refused as a whole; what stood before stands.
func TestManifestsOfRoutes(t *testing.T) {
	s := newShop(t)
	spec := func(change func(*tool.RouteSpec)) []tool.RouteSpec {
		r := lieSpec(200)
		r.Name, r.Path = "rogue.x", "/v1/rogue"
		change(&r)
		return []tool.RouteSpec{r}
	}
	at := func(path string) []tool.RouteSpec { return spec(func(r *tool.RouteSpec) { r.Path = path }) }
	values := func(names ...string) json.RawMessage {
		members := []schema.Property{}
		for _, n := range names {
			members = append(members, schema.Required(n, schema.String("")))
		}
		b, err := json.Marshal(schema.Object(members...))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	pair := func(a, b string, names ...string) []tool.RouteSpec {
		two := append(at(a), at(b)...)
		two[1].Name = "rogue.y"
		two[0].Input, two[1].Input = values(names...), values(names...)
		return two
	}
	for name, routes := range map[string][]tool.RouteSpec{
		"another's route":          at("/v1/orders"),
		"below another's":          at("/v1/orders/events/more"),
		"hides another's":          spec(func(r *tool.RouteSpec) { r.Path, r.Input = "/v1/{any}", values("any") }),
		"all of another's":         spec(func(r *tool.RouteSpec) { r.Path, r.Input = "/v1/orders/{any}", values("any") }),
		"another's with a method":  spec(func(r *tool.RouteSpec) { r.Path, r.Method = "/v1/orders", "PATCH" }),
		"another's name":           spec(func(r *tool.RouteSpec) { r.Name = "orders.get" }),
		"the log-in":               at("/login"),
		"the tools":                at("/api/tools/search_echo"),
		"/tools":                   at("/tools/x"),
		"health":                   at("/healthz"),
		"internal":                 at("/internal/x"),
		"all":                      at("/v1/"),
		"root":                     at("/"),
		"no path":                  at(""),
		"dots":                     at("/v1/../login"),
		"dots below":               at("/v1/rogue/.."),
		"not clean":                at("/v1//rogue"),
		"a slash at the end":       at("/v1/rogue/"),
		"an escape":                at("/v1/%72ogue"),
		"a query":                  at("/v1/rogue?x"),
		"upper case":               at("/v1/Rogue"),
		"another host":             at("//evil/v1/rogue"),
		"a value that is no input": at("/v1/rogue/{id}"),
		"half a value":             at("/v1/rogue/x{id}"),
		"an open value":            at("/v1/rogue/{id"),
		"a rest":                   at("/v1/rogue/{id...}"),
		"a value twice":            spec(func(r *tool.RouteSpec) { r.Path, r.Input = "/v1/rogue/{id}/{id}", values("id") }),
		"a method of its own":      spec(func(r *tool.RouteSpec) { r.Method = "CONNECT" }),
		"no method":                spec(func(r *tool.RouteSpec) { r.Method = "" }),
		"an error as success":      spec(func(r *tool.RouteSpec) { r.Success = []int{200, 500} }),
		"a redirect for good":      spec(func(r *tool.RouteSpec) { r.Success = []int{301} }),
		"no status":                spec(func(r *tool.RouteSpec) { r.Success = nil }),
		"no scope":                 spec(func(r *tool.RouteSpec) { r.Scope = "" }),
		"no credential":            spec(func(r *tool.RouteSpec) { r.Credential = "" }),
		"an own rule for keys":     spec(func(r *tool.RouteSpec) { r.Idempotency = "perhaps" }),
		"a GET with a key":         spec(func(r *tool.RouteSpec) { r.Method, r.Idempotency = "GET", tool.KeyRequired }),
		"a body without end":       spec(func(r *tool.RouteSpec) { r.MaxBody = 1 << 40 }),
		"no bound":                 spec(func(r *tool.RouteSpec) { r.MaxBody = 0 }),
		"a time without end":       spec(func(r *tool.RouteSpec) { r.TimeoutMS = 1 << 40 }),
		"a negative time":          spec(func(r *tool.RouteSpec) { r.TimeoutMS = -1 }),
		"an open input":            spec(func(r *tool.RouteSpec) { r.Input = json.RawMessage(`{"type":"object"}`) }),
		"a schema nobody enforces": spec(func(r *tool.RouteSpec) {
			r.Input = json.RawMessage(`{"type":"object","oneOf":[{}],"additionalProperties":false}`)
		}),
		"a name that is a path":    spec(func(r *tool.RouteSpec) { r.Name = "../tools/store_echo" }),
		"twice":                    pair("/v1/rogue", "/v1/rogue"),
		"twice, values named anew": pair("/v1/rogue/{a}", "/v1/rogue/{b}", "a", "b"),
		"neither says more":        pair("/v1/rogue/{a}/x", "/v1/rogue/y/{a}", "a"),
		"a good one and a bad one": append(at("/v1/rogue"), at("/login")...),
	} {
		if err := s.catalog.Update(tool.Manifest{Service: "rogue", Routes: routes}); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	if r := s.once(t, "GET", "/v1/orders/o_1", "", bearer(allScopes)...); r.status != 200 {
		t.Errorf("the others do not go on: %s", r.body)
	}
	if r := s.once(t, "POST", "/v1/rogue", `{}`, bearer(allScopes)...); r.status != 404 {
		t.Errorf("a refused manifest's route: %s", r.body)
	}
	fine := pair("/v1/rogue/{a}/x", "/v1/rogue/y/z", "a")
	if err := s.catalog.Update(tool.Manifest{Service: "rogue", Routes: fine}); err != nil {
		t.Errorf("a good one: %v", err)
	}
	if r := s.once(t, "POST", "/v1/rogue/y/x", `{}`, bearer(allScopes)...); r.status != 503 || r.code() != "E_DB" {
		t.Errorf("an owner that nobody knows: %s", r.body)
	}
	if r := s.do(t, "POST", "/api/tools/search_echo", `{"text":"x"}`, bearer(allScopes)...); r.status != 200 {
		t.Errorf("the tools do not go on: %s", r.body)
	}
	unknownKind := spec(func(r *tool.RouteSpec) { r.Credential = "card" })
	if err := s.catalog.Update(tool.Manifest{Service: "rogue", Routes: unknownKind}); err != nil {
		t.Errorf("a newer kind of credential: %v", err)
	}
	if r := s.once(t, "POST", "/v1/rogue", `{}`, bearer(allScopes)...); r.status != 404 {
		t.Errorf("a route that this gateway cannot check: %s", r.body)
	}
}

// tickets are an Authenticator of another kind: a token is good for one call, which is judged after the
// limit, and its scope after that.
type tickets struct {
	mu   sync.Mutex
	used map[string]bool
}

func (k *tickets) Authenticate(_ context.Context, c *edge.Call) (edge.Principal, error) {
	if len(c.Credential.Authorization) != 1 {
		return edge.Principal{}, fault.New(fault.AuthMissing, "A ticket is required.")
	}
	user, _, ok := strings.Cut(strings.TrimPrefix(c.Credential.Authorization[0], "Ticket "), ":")
	if !ok {
		return edge.Principal{}, fault.New(fault.AuthInvalid, "The ticket is not valid.")
	}
	p := edge.Principal{
		Caller: caller.Caller{
			Kind:           caller.App,
			Service:        "svc-" + user,
			ExternalUserID: user,
			CredentialID:   user,
			RequestID:      c.RequestID,
		},
		User:        edge.Rate{PerMinute: 6, Burst: 3},
		ServiceWide: edge.Rate{PerMinute: 6000, Burst: 100},
	}
	if user != "weak" {
		p.Caller.Scopes = []string{"query"}
	}
	return p, nil
}

func (k *tickets) Stages(g *edge.Gateway) []edge.Stage { return []edge.Stage{g.Limit, k.use, g.Scope} }

func (k *tickets) use(ctx context.Context, c *edge.Call) (context.Context, error) {
	_, ticket, _ := strings.Cut(c.Credential.Authorization[0], ":")
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.used[ticket] {
		return ctx, fault.New(fault.AuthInvalid, "The ticket was used before.")
	}
	k.used[ticket] = true
	return ctx, nil
}

// TestAnotherCredentialIsAnotherAuthenticator, and nothing else.
func TestAnotherCredentialIsAnotherAuthenticator(t *testing.T) {
	s := newShop(t, func(g *gateway.Gateway) { g.Authenticators[tool.AppCredential] = &tickets{used: map[string]bool{}} })
	route := lieSpec(200)
	route.Name, route.Path, route.Credential = "till.open", "/v1/till", tool.AppCredential
	s.lie = func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{}`) }
	if err := s.catalog.Update(tool.Manifest{Service: "shop", Routes: []tool.RouteSpec{route, lieSpec(200)}}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, credential string
		status           int
		code             string
	}{
		{"none", "", 401, "E_AUTH_MISSING"},
		{"an API key", "Bearer " + allScopes, 401, "E_AUTH_INVALID"},
		{"a weak one is used up", "Ticket weak:1", 403, "E_SCOPE"},
		{"used before lack of scope", "Ticket weak:1", 401, "E_AUTH_INVALID"},
		{"a third call of its burst", "Ticket weak:2", 403, "E_SCOPE"},
		{"the limit before use", "Ticket weak:1", 429, "E_RATE_LIMIT"},
		{"the limit uses nothing up", "Ticket weak:3", 429, "E_RATE_LIMIT"},
		{"one that the limit left is good for another", "Ticket strong:3", 404, "E_NOT_FOUND"},
	} {
		headers := []string{"Authorization", c.credential}
		if c.credential == "" {
			headers = nil
		}
		r := s.once(t, "POST", "/v1/till", `{}`, headers...)
		if c.status == 404 { // the owner has no such route: everything before was passed
			c.status, c.code = 503, "E_DB"
		}
		if r.status != c.status || r.code() != c.code {
			t.Errorf("%s: %d %s", c.name, r.status, r.body)
		}
	}
	if r := s.once(t, "POST", "/v1/lies", `{}`, "Authorization", "Ticket strong:9"); r.code() != "E_AUTH_INVALID" {
		t.Errorf("a ticket where a key is needed: %s", r.body)
	}
}
