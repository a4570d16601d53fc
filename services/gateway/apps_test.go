package gateway_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-kit/kit/sd"

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
	"hub.internal/services/gateway/edge"
)

const hubURL = "https://hub.example"

// till is an edge before an owner of routes for apps and for nobody's credential, and an auth that knows tokens by
// what stands where their signature is.
type till struct {
	*fixture
	log *hubtest.Buffer

	mu       sync.Mutex
	asked    []asked
	used     map[string]bool
	verified int
	// verdict and admission are what auth says, as they are changed.
	verdict, admission func(map[string]any)
	// answer is what a raw route answers.
	answer func(tool.RawRequest) (any, error)
}

type rawIn struct {
	Provider string `json:"provider"`
	tool.RawRequest
}

type linkedIn struct {
	Note string `json:"note"`
}

type tokenClaims struct {
	Issuer  string `json:"iss"`
	Subject string `json:"sub"`
	ID      string `json:"jti"`
	Exp     int64  `json:"exp"`
}

// token is one of an app that auth takes when it is signed with "good".
func token(app, sub, jti, signature string) string {
	part := base64.RawURLEncoding.EncodeToString
	claims, _ := json.Marshal(tokenClaims{app, sub, jti, time.Now().Add(time.Minute).Unix()})
	return part([]byte(`{"alg":"HS256"}`)) + "." + part(claims) + "." + part([]byte(signature))
}

// routes are those of the owner.
func (s *till) routes() []tool.APIRoute {
	note := schema.Optional("note", schema.String("A note.", schema.Length(1, 20)))
	provider := schema.Required("provider", schema.String("The provider.", schema.Length(1, 40)))
	linked := func(name, method, path, scope, credential string, success int) tool.APIRoute {
		return tool.NewRoute(tool.RouteDeclaration{Declaration: tool.Declaration{Name: name, Description: "The till.", Scope: scope,
			Input: schema.Object(note), Output: schema.FreeObject(""), MaxBody: 1024, Timeout: 5 * time.Second},
			Method: method, Path: path, Success: []int{success}, Idempotency: tool.KeyIgnored, Credential: credential},
			func(ctx context.Context, in linkedIn) (map[string]string, error) {
				s.heard(name, in, caller.From(ctx))
				return map[string]string{"note": in.Note}, nil
			})
	}
	raw := func(name, method, path string, success ...int) tool.APIRoute {
		return tool.NewRoute(tool.RouteDeclaration{Declaration: tool.Declaration{Name: name, Description: "The till, for others.",
			Input: tool.RawInput(provider), Output: schema.FreeObject(""), MaxBody: tool.MaxRawBody, Timeout: 5 * time.Second},
			Method: method, Path: path, Success: success, Idempotency: tool.KeyIgnored, Credential: tool.NoCredential, Form: tool.RawForm},
			func(ctx context.Context, in rawIn) (json.RawMessage, error) {
				s.heard(name, in, caller.From(ctx))
				s.mu.Lock()
				answer := s.answer
				s.mu.Unlock()
				out, err := answer(in.RawRequest)
				if err != nil {
					return nil, err
				}
				return json.Marshal(out)
			})
	}
	return []tool.APIRoute{
		linked("till.show", "GET", "/v1/till", "pay:read", tool.AppCredential, 200),
		linked("till.pay", "POST", "/v1/till", "pay:write", tool.AppCredential, 201),
		linked("till.later", "POST", "/v1/till/later", "pay:write", tool.AppCredential, 202),
		linked("till.refund", "POST", "/v1/till/refund", "pay:refund", tool.AppCredential, 200),
		linked("till.confirm", "POST", "/v1/till/confirm", "", tool.AppUnlinkedCredential, 200),
		linked("till.peek", "POST", "/v1/till/peek", "pay:refund", tool.AppUnlinkedCredential, 200),
		linked("till.agents", "POST", "/v1/till/agents", "query", tool.KeyCredential, 200),
		raw("till.hook", "POST", "/v1/till/hooks/{provider}", 200),
		raw("till.back", "GET", "/v1/till/back/{provider}", 303, 200),
		raw("till.back_form", "POST", "/v1/till/back/{provider}", 303, 200),
	}
}

func (s *till) heard(route string, in any, who caller.Caller) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, asked{route, in, "", who})
}

func (s *till) last(t testing.TB) asked {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.asked) == 0 {
		t.Fatal("nothing reached the owner")
	}
	return s.asked[len(s.asked)-1]
}

// counts are how many calls reached the owner, and how many tokens are used up.
func (s *till) counts() (reached, used int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.asked), len(s.used)
}

func (s *till) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func (s *till) verify(_ context.Context, in struct {
	Token string `json:"token"`
}) (map[string]any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.verified++
	parts := strings.Split(in.Token, ".")
	var c tokenClaims
	b, _ := base64.RawURLEncoding.DecodeString(parts[1])
	signature, _ := base64.RawURLEncoding.DecodeString(parts[2])
	switch {
	case json.Unmarshal(b, &c) != nil || string(signature) == "bad":
		return nil, fault.New(fault.AuthInvalid, "The ServiceJWT is not valid.")
	case string(signature) == "over":
		return nil, fault.New(fault.AuthExpired, "The ServiceJWT has expired.")
	case string(signature) == "away":
		return nil, fault.New(fault.DB, "The store is away.")
	}
	limits := map[string]int{"user_per_minute": 600000, "user_burst": 10000, "service_per_minute": 600000, "service_burst": 10000}
	answer := map[string]any{
		"service_code": c.Issuer,
		"sub":          c.Subject,
		"jti":          c.ID,
		"exp":          c.Exp,
		"scopes":       []string{"pay:read", "pay:write"},
		"limits":       limits,
		"status":       "ACTIVE",
	}
	switch c.Issuer {
	case "suspended":
		answer["status"] = "SUSPENDED"
	case "tight":
		limits["user_per_minute"], limits["user_burst"] = 6, 2
	}
	if s.verdict != nil {
		s.verdict(answer)
	}
	return answer, nil
}

func (s *till) admit(_ context.Context, in struct {
	ServiceCode string `json:"service_code"`
	Subject     string `json:"sub"`
	ID          string `json:"jti"`
	Exp         int64  `json:"exp"`
	Linked      bool   `json:"linked"`
}) (map[string]any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if key := in.ServiceCode + " " + in.ID; s.used[key] {
		return nil, fault.New(fault.AuthInvalid, "The ServiceJWT is not valid: its jti was used before.")
	} else if in.ID == "away" {
		return nil, fault.New(fault.DB, "The store is away.")
	} else {
		s.used[key] = true
	}
	answer := map[string]any{
		"service_code": in.ServiceCode,
		"sub":          in.Subject,
		"hub_user":     "",
		"scopes":       []string{},
		"reason":       "",
		"link_url":     "",
		"expires_at":   nil,
	}
	need := func(reason string) {
		answer["reason"], answer["link_url"], answer["expires_at"] = reason, hubURL+"/connect?t=sealed", "2030-01-01T00:00:00Z"
	}
	switch {
	case !in.Linked:
	case in.Subject == "u-all":
		answer["hub_user"], answer["scopes"] = "usr_1", []string{"pay:read", "pay:write", "pay:refund"}
	case in.Subject == "u-some":
		answer["hub_user"], answer["scopes"] = "usr_1", []string{"pay:read"}
		need("SCOPE_INCREASED")
	case in.Subject == "u-waiting":
		need("PENDING")
	default:
		need("NOT_LINKED")
	}
	if s.admission != nil {
		s.admission(answer)
	}
	return answer, nil
}

func newTill(t testing.TB, options ...func(*gateway.Gateway)) *till {
	t.Helper()
	s := &till{used: map[string]bool{}, log: &hubtest.Buffer{}}
	logger := slog.New(slog.NewJSONHandler(s.log, nil))
	serve := func(service string, mount func(rpc.Server)) *remote.Client {
		mux := http.NewServeMux()
		mount(rpc.Server{Mux: mux, Keys: callertest.Keys(t, service, caller.Gateway), Logger: logger})
		mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})
		server := httptest.NewServer(mux)
		t.Cleanup(server.Close)
		client := remote.New(remote.Options{Service: service, Instancer: sd.FixedInstancer{strings.TrimPrefix(server.URL, "http://")},
			Keys: callertest.Keys(t, caller.Gateway), Logger: logger, Patience: hubtest.Patience})
		t.Cleanup(client.Close)
		return client
	}
	m := tool.Manifest{Service: "till", Tools: []tool.Spec{}}
	owner := serve("till", func(h rpc.Server) {
		for _, r := range s.routes() {
			h.Route(r)
			m = m.WithRoutes(r)
		}
	})
	takes := caller.Neighbour(caller.Gateway)
	auth := serve("auth", func(h rpc.Server) {
		h.Operation(contract.Lie(t, "auth", rpc.Declaration{Path: "/internal/apps/verify", Takes: takes}, s.verify))
		h.Operation(contract.Lie(t, "auth", rpc.Declaration{Path: "/internal/apps/admit", Takes: takes}, s.admit))
	})
	s.fixture = newFixture(t, append([]func(*gateway.Gateway){func(g *gateway.Gateway) {
		maps.Copy(g.Authenticators, edge.Authenticators(g.Authenticators[tool.KeyCredential].(edge.APIKeys).Keys,
			edge.Tokens{Auth: auth, PublicURL: hubURL}, edge.Rate{PerMinute: 6000, Burst: 2000}))
		g.Services = neighbours{"echo": g.Services.Client("echo"), "auth": g.Services.Client("auth"), "till": owner}
		g.Logger = logger
		if err := g.Catalog.Update(m); err != nil {
			t.Fatal(err)
		}
	}}, options...)...)
	return s
}

// fresh makes another token of an app that is good.
func (s *till) fresh(app, sub string) []string {
	return bearer(token(app, sub, fmt.Sprint("j-", serial.Add(1)), "good"))
}

var serial atomic.Int64

func TestAnAppCallsForItsUser(t *testing.T) {
	s := newTill(t)
	for _, c := range []struct {
		name, method, path, sub string
		status                  int
		route, user, scopes     string
	}{
		{"a read", "GET", "/v1/till?note=x", "u-all", 200, "till.show", "usr_1", "pay:read pay:write"},
		{"a write", "POST", "/v1/till", "u-all", 201, "till.pay", "usr_1", "pay:read pay:write"},
		{"accepted", "POST", "/v1/till/later", "u-all", 202, "till.later", "usr_1", "pay:read pay:write"},
		{"what was consented to", "GET", "/v1/till", "u-some", 200, "till.show", "usr_1", "pay:read"},
		{"before the account is linked", "POST", "/v1/till/confirm", "u-new", 200, "till.confirm", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := s.do(t, c.method, c.path, "", append(s.fresh("shop", c.sub), "X-External-User-Id", "u-other")...)
			if r.status != c.status || !r.env.OK || r.header.Get("RateLimit") == "" || strings.Contains(r.body, `"tool"`) {
				t.Fatalf("%d %s %v", r.status, r.body, r.header)
			}
			a := s.last(t)
			want := caller.Caller{
				Kind:           caller.App,
				Service:        "shop",
				ExternalUserID: c.sub,
				CredentialID:   "app:shop",
				HubUser:        c.user,
				RequestID:      r.env.RequestID,
			}
			got := a.Caller
			scopes := strings.Join(got.Scopes, " ")
			got.Scopes = nil
			if a.Route != c.route || fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) || scopes != c.scopes {
				t.Errorf("the owner saw %+v", a)
			}
		})
	}
}

// TestOrderOfChecksOfAnApp breaks a call in every way: the refusals come in the order of SPEC.md 2.3, and what is
// refused before its token is used leaves it good.
func TestOrderOfChecksOfAnApp(t *testing.T) {
	s := newTill(t)
	for range 2 {
		s.do(t, "GET", "/v1/till", "", s.fresh("tight", "u-all")...)
	}
	once := bearer(token("shop", "u-all", "once", "good"))
	for _, c := range []struct {
		name, method, path, body string
		headers                  []string
		status                   int
		code                     string
		used                     int
	}{
		{"none", "POST", "/v1/till", `{`, nil, 401, "E_AUTH_MISSING", 0},
		{"an empty one", "POST", "/v1/till", `{`, []string{"Authorization", " "}, 401, "E_AUTH_MISSING", 0},
		{"an API key", "POST", "/v1/till", `{`, bearer(allScopes), 401, "E_AUTH_INVALID", 0},
		{"in X-API-Key", "POST", "/v1/till", `{`, []string{"X-API-Key", allScopes}, 401, "E_AUTH_INVALID", 0},
		{"a key beside a token", "POST", "/v1/till", `{`, append(s.fresh("shop", "u-all"), "X-API-Key", allScopes), 401, "E_AUTH_INVALID", 0},
		{"two headers", "POST", "/v1/till", `{`, append(once, once...), 401, "E_AUTH_INVALID", 0},
		{"two tokens", "POST", "/v1/till", `{`, append(once, s.fresh("shop", "u-all")...), 401, "E_AUTH_INVALID", 0},
		{"basic", "POST", "/v1/till", `{`, []string{"Authorization", "Basic " + strings.TrimPrefix(once[1], "Bearer ")}, 401,
			"E_AUTH_INVALID", 0},
		{"two parts", "POST", "/v1/till", `{`, bearer("a.b"), 401, "E_AUTH_INVALID", 0},
		{"too long", "POST", "/v1/till", `{`, bearer("a.b." + strings.Repeat("x", 4096)), 401, "E_AUTH_INVALID", 0},
		{"badly signed", "POST", "/v1/till", `{`, bearer(token("shop", "u-all", "x", "bad")), 401, "E_AUTH_INVALID", 0},
		{"over", "POST", "/v1/till", `{`, bearer(token("shop", "u-all", "x", "over")), 403, "E_AUTH_EXPIRED", 0},
		{"the store is away", "POST", "/v1/till", `{`, bearer(token("shop", "u-all", "x", "away")), 503, "E_DB", 0},
		{"suspended", "POST", "/v1/till", `{`, s.fresh("suspended", "u-all"), 403, "E_AUTH_REVOKED", 0},
		{"the limit before use", "POST", "/v1/till/refund", `{`, s.fresh("tight", "u-all"), 429, "E_RATE_LIMIT", 0},
		{"nothing can be remembered", "POST", "/v1/till", `{}`, bearer(token("shop", "u-all", "away", "good")), 503, "E_DB", 0},
		{"scope before link", "POST", "/v1/till/refund", `{`, s.fresh("shop", "u-new"), 403, "E_SCOPE", 1},
		{"scope of an unlinked one", "POST", "/v1/till/peek", `{`, s.fresh("shop", "u-new"), 403, "E_SCOPE", 1},
		{"link before schema", "POST", "/v1/till", `{`, s.fresh("shop", "u-new"), 401, "ACCOUNT_LINK_REQUIRED", 1},
		{"not consented to", "POST", "/v1/till", `{`, s.fresh("shop", "u-some"), 401, "ACCOUNT_LINK_REQUIRED", 1},
		{"schema", "POST", "/v1/till", `{`, s.fresh("shop", "u-all"), 400, "E_VALIDATION", 1},
		{"nothing wrong", "POST", "/v1/till", `{}`, once, 201, "", 1},
		{"the same again", "POST", "/v1/till", `{}`, once, 401, "E_AUTH_INVALID", 0},
		{"the same, before its scope", "POST", "/v1/till/refund", `{`, once, 401, "E_AUTH_INVALID", 0},
		{"the same id of another app", "POST", "/v1/till", `{}`, bearer(token("other", "u-all", "once", "good")), 201, "", 1},
		{"a token on the tools", "POST", "/api/tools/search_echo", `{}`, s.fresh("shop", "u-all"), 401, "E_AUTH_INVALID", 0},
		{"a token where a key is needed", "POST", "/v1/till/agents", `{}`, s.fresh("shop", "u-all"), 401, "E_AUTH_INVALID", 0},
		{"a token for the catalog", "GET", "/api/tools", ``, s.fresh("shop", "u-all"), 401, "E_AUTH_INVALID", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			reached, used := s.counts()
			r := s.do(t, c.method, c.path, c.body, c.headers...)
			if r.status != c.status || r.code() != c.code {
				t.Errorf("%d %s, want %d %s: %s", r.status, r.code(), c.status, c.code, r.body)
			}
			reachedNow, usedNow := s.counts()
			if (reachedNow != reached) != (c.code == "") || usedNow-used != c.used {
				t.Errorf("%d calls reached the owner, %d tokens are used up", reachedNow-reached, usedNow-used)
			}
		})
	}
}

func TestWhereTheAccountIsLinked(t *testing.T) {
	s := newTill(t)
	for sub, reason := range map[string]string{"u-new": "NOT_LINKED", "u-waiting": "PENDING", "u-some": "SCOPE_INCREASED"} {
		r := s.do(t, "POST", "/v1/till", `{}`, s.fresh("shop", sub)...)
		var body struct {
			LinkURL string `json:"link_url"`
			Error   struct {
				Details map[string]string `json:"details"`
			} `json:"error"`
		}
		if err := json.Unmarshal([]byte(r.body), &body); err != nil {
			t.Fatal(err)
		}
		want := map[string]string{
			"code":       "ACCOUNT_LINK_REQUIRED",
			"link_url":   hubURL + "/connect?t=sealed",
			"expires_at": "2030-01-01T00:00:00.000Z",
			"reason":     reason,
		}
		if r.status != 401 || r.code() != "ACCOUNT_LINK_REQUIRED" || body.LinkURL != want["link_url"] ||
			!maps.Equal(body.Error.Details, want) {
			t.Errorf("%s: %d %s", sub, r.status, r.body)
		}
	}
	if r := s.do(t, "POST", "/v1/till", `{`, s.fresh("shop", "u-all")...); strings.Contains(r.body, "link_url") {
		t.Errorf("another failure: %s", r.body)
	}
}

// TestAnAuthThatIsWrong: what it says of another app, user or token than was asked about lets nobody in, and leads nobody away.
func TestAnAuthThatIsWrong(t *testing.T) {
	s := newTill(t)
	lie := func(name string, value any) func(map[string]any) { return func(a map[string]any) { a[name] = value } }
	for name, c := range map[string]struct {
		verdict, admission func(map[string]any)
		sub                string
		code               string
	}{
		"another app's token":        {lie("service_code", "other"), nil, "u-all", "E_INTERNAL"},
		"another user's":             {lie("sub", "u-admin"), nil, "u-all", "E_INTERNAL"},
		"another id":                 {lie("jti", "j"), nil, "u-all", "E_INTERNAL"},
		"another end":                {lie("exp", 1), nil, "u-all", "E_INTERNAL"},
		"no app":                     {lie("service_code", ""), nil, "u-all", "E_INTERNAL"},
		"a state that is not known":  {lie("status", "active"), nil, "u-all", "E_AUTH_REVOKED"},
		"no state":                   {lie("status", ""), nil, "u-all", "E_AUTH_REVOKED"},
		"the link of another user":   {nil, lie("sub", "u-admin"), "u-all", "E_INTERNAL"},
		"the link of another app":    {nil, lie("service_code", "other"), "u-all", "E_INTERNAL"},
		"nobody's link":              {nil, lie("hub_user", ""), "u-all", "E_INTERNAL"},
		"a consent to another thing": {nil, lie("scopes", []string{"admin:write", "pay:refund"}), "u-all", "E_INTERNAL"},
		"no reason":                  {nil, lie("reason", ""), "u-new", "E_INTERNAL"},
		"a reason that is not known": {nil, lie("reason", "<script>"), "u-new", "E_INTERNAL"},
		"a link elsewhere":           {nil, lie("link_url", "https://evil.example/connect?t=x"), "u-new", "E_INTERNAL"},
		"a link almost here":         {nil, lie("link_url", hubURL+".evil.example/connect?t=x"), "u-new", "E_INTERNAL"},
		"a link with a user":         {nil, lie("link_url", "https://hub.example@evil.example/connect?t=x"), "u-new", "E_INTERNAL"},
		"a link to another page":     {nil, lie("link_url", hubURL+"/logout?t=x"), "u-new", "E_INTERNAL"},
		"a link that is a script":    {nil, lie("link_url", "javascript:alert(1)"), "u-new", "E_INTERNAL"},
		"a link with a line break":   {nil, lie("link_url", hubURL+"/connect?t=x\r\ny"), "u-new", "E_INTERNAL"},
		"a link without an end":      {nil, lie("expires_at", nil), "u-new", "E_INTERNAL"},
		"limits of nothing": {lie("limits", map[string]int{"user_per_minute": 0, "user_burst": 0, "service_per_minute": 0,
			"service_burst": 0}), nil, "u-all", ""},
		"more scopes than the app's":  {nil, lie("scopes", []string{"pay:read", "pay:write", "admin:write"}), "u-all", ""},
		"a user where none was asked": {nil, lie("hub_user", "usr_1"), "u-unlinked", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s.set(func() { s.verdict, s.admission = c.verdict, c.admission })
			defer s.set(func() { s.verdict, s.admission = nil, nil })
			path := "/v1/till"
			if c.sub == "u-unlinked" {
				path = "/v1/till/confirm"
			}
			reached, _ := s.counts()
			r := s.do(t, "POST", path, `{}`, s.fresh(strings.ReplaceAll(name, " ", "-"), c.sub)...)
			now, _ := s.counts()
			if r.code() != c.code || (now > reached) != (c.code == "") || strings.Contains(r.body, "evil") ||
				strings.Contains(r.body, "link_url") {
				t.Errorf("%d %s", r.status, r.body)
			}
			if c.code == "" {
				if who := s.last(
					t,
				).Caller; slices.Contains(who.Scopes, "admin:write") ||
					c.sub == "u-unlinked" && (who.HubUser != "" || who.Scopes != nil) {
					t.Errorf("the owner saw %+v", who)
				}
			}
		})
	}
}

// TestOneTokenAtTwoGateways is sent 64 times at once.
func TestOneTokenAtTwoGateways(t *testing.T) {
	s := newTill(t)
	second := httptest.NewServer(func() http.Handler {
		mux := http.NewServeMux()
		s.gateway.Routes(mux)
		return mux
	}())
	defer second.Close()
	one := token("shop", "u-all", "at-once", "good")
	var all sync.WaitGroup
	var good, refused atomic.Int64
	for i := range 64 {
		url := []string{s.url, second.URL}[i%2]
		all.Go(func() {
			req, err := http.NewRequestWithContext(t.Context(), "POST", url+"/v1/till", strings.NewReader(`{}`))
			if err != nil {
				t.Error(err)
				return
			}
			req.Header.Set("Authorization", "Bearer "+one)
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			switch resp.StatusCode {
			case 201:
				good.Add(1)
			case 401:
				refused.Add(1)
			}
		})
	}
	all.Wait()
	if reached, _ := s.counts(); good.Load() != 1 || refused.Load() != 63 || reached != 1 {
		t.Errorf("%d good, %d refused, %d reached the owner", good.Load(), refused.Load(), reached)
	}
}

// TestAppsHaveTheirOwnLimits: of a user, of an app, and none with a key of the same name.
func TestAppsHaveTheirOwnLimits(t *testing.T) {
	s := newTill(t)
	codes := func(app, sub string, n int) (list []string) {
		for range n {
			list = append(list, s.do(t, "GET", "/v1/till", "", s.fresh(app, sub)...).code())
		}
		return list
	}
	if got := codes("tight", "u-all", 3); !slices.Equal(got, []string{"", "", "E_RATE_LIMIT"}) {
		t.Errorf("one user: %v", got)
	}
	if got := codes("tight", "u-some", 1); got[0] != "" {
		t.Errorf("another user: %v", got)
	}
	s.set(func() {
		s.verdict = func(a map[string]any) {
			a["limits"] = map[string]int{"user_per_minute": 6000, "user_burst": 100, "service_per_minute": 6, "service_burst": 2}
		}
	})
	if got := append(
		append(codes("svc", "u-all", 1), codes("svc", "u-some", 1)...),
		codes("svc", "u-all", 1)...); !slices.Equal(
		got,
		[]string{"", "", "E_RATE_LIMIT"},
	) {
		t.Errorf("one app: %v", got)
	}
	if r := s.do(t, "POST", "/api/tools/search_echo", `{"text":"x"}`, bearer(allScopes)...); r.status != 200 {
		t.Errorf("a key of the service svc: %s", r.body)
	}
}

// TestFailedTokensAreCounted as failed keys are: guessing is bounded, and auth is not asked for what cannot be a token.
func TestFailedTokensAreCounted(t *testing.T) {
	s := newTill(t, func(g *gateway.Gateway) { g.Failures = edge.Rate{PerMinute: 6, Burst: 3} })
	bad := bearer(token("shop", "u-all", "x", "bad"))
	for i, want := range []string{"E_AUTH_INVALID", "E_AUTH_INVALID", "E_AUTH_INVALID", "E_RATE_LIMIT"} {
		if r := s.do(t, "GET", "/v1/till", "", bad...); r.code() != want {
			t.Errorf("try %d: %s", i, r.body)
		}
	}
	if r := s.do(t, "GET", "/v1/till", "", s.fresh("shop", "u-all")...); r.status != 200 {
		t.Errorf("a good one: %s", r.body)
	}
	s.mu.Lock()
	before := s.verified
	s.mu.Unlock()
	s.do(t, "GET", "/v1/till", "", bearer("x")...)
	s.do(t, "GET", "/v1/till", "", bearer(allScopes)...)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.verified != before {
		t.Error("auth was asked about what is no token")
	}
}

// TestRefusedAppsAreRecorded by name, and nothing of their tokens.
func TestRefusedAppsAreRecorded(t *testing.T) {
	s := newTill(t)
	sent := [][]string{
		s.fresh("suspended", "u-all"),
		bearer(token("shop", "u-all", "x", "bad")),
		s.fresh("shop", "u-new"),
		s.fresh("shop", "u-all"),
	}
	var bodies string
	for _, h := range sent {
		bodies += s.do(t, "POST", "/v1/till/refund", `{}`, h...).body
	}
	s.set(func() { s.verdict = func(a map[string]any) { a["sub"] = "u-admin" } })
	bodies += s.do(t, "POST", "/v1/till", `{}`, s.fresh("shop", "u-all")...).body
	s.fixture.mu.Lock()
	defer s.fixture.mu.Unlock()
	var got []string
	for _, e := range s.entries {
		got = append(got, e.Tool+" "+e.Outcome+" "+e.Caller.CredentialID)
	}
	if want := "till.refund E_AUTH_REVOKED app:suspended|till.refund E_AUTH_INVALID |till.refund E_SCOPE app:shop|till.refund E_SCOPE " +
		"app:shop|till.pay E_INTERNAL "; strings.Join(
		got,
		"|",
	) != want {
		t.Errorf("recorded %s\nwant     %s", strings.Join(got, "|"), want)
	}
	everything, err := json.Marshal(s.entries)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range sent {
		token := strings.TrimPrefix(h[1], "Bearer ")
		for _, where := range []string{s.log.String(), string(everything), bodies} {
			if strings.Contains(where, token) || strings.Contains(where, strings.Split(token, ".")[1]) {
				t.Error("a token is kept")
			}
		}
	}
}
