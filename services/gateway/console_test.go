package gateway_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
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
	"hub.internal/pkg/tool"
	"hub.internal/pkg/web"
	"hub.internal/services/gateway"
	"hub.internal/services/gateway/catalog"
	"hub.internal/services/gateway/console"
)

// The secrets of the tests' sessions.
var (
	reviewerSession = strings.Repeat("r", 43)
	adminSession    = strings.Repeat("a", 43)
	endedSession    = strings.Repeat("e", 43)
)

// saw is what a page of the tests' service tells of its request.
type saw struct {
	Method, Path, Query, Host, Body string
	Header                          http.Header
	Caller                          caller.Caller
	Tabs                            []web.Tab
}

// house is a gateway with a console, before a service with pages.
type house struct {
	*fixture
	clock   *hubtest.Clock
	catalog *catalog.Catalog

	mu    sync.Mutex
	asked int
	// askedBrowser counts the questions about browsers.
	askedBrowser int
	ended        map[string]bool
	authOut      bool
	reached      []saw
	// waits, when set, is what the page /login/waits waits for.
	waits chan struct{}
}

func (h *house) ask(_ context.Context, secret string) (console.Session, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked++
	if h.authOut {
		return console.Session{}, fault.New(fault.DB, "The auth service is not available right now.").After(time.Second)
	}
	s := console.Session{ExpiresAt: h.clock.Now().Add(30 * time.Minute)}
	switch {
	case h.ended[secret]:
		return console.Session{}, fault.New(fault.AuthRevoked, "The session was ended.")
	case secret == reviewerSession:
		s.ID, s.User, s.Email, s.Name, s.Roles = "ses_r", "usr_r", "rev@example.com", "민수 Rev", []string{"reviewer"}
	case secret == adminSession:
		s.ID, s.User, s.Email, s.Roles = "ses_a", "usr_a", "adm@example.com", []string{"admin"}
	case secret == endedSession:
		return console.Session{}, fault.New(fault.AuthExpired, "The session has ended.")
	default:
		return console.Session{}, fault.New(fault.AuthInvalid, "The session is not valid.")
	}
	return s, nil
}

// aBrowser is one that somebody has signed in with.
var aBrowser = strings.Repeat("b", 43)

func (h *house) askBrowser(_ context.Context, secret string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.askedBrowser++
	if secret != aBrowser {
		return fault.New(fault.AuthInvalid, "Nobody is known to have signed in with this browser.")
	}
	return nil
}

func (h *house) askedBrowsers() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.askedBrowser
}

func (h *house) last(t *testing.T) saw {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.reached) == 0 {
		t.Fatal("no request reached the service")
	}
	return h.reached[len(h.reached)-1]
}

func (h *house) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.reached)
}

// neighbours are clients that last as long as the test.
type neighbours map[string]*remote.Client

func (n neighbours) Client(service string) *remote.Client { return n[service] }

func newHouse(t *testing.T, options ...func(*gateway.Gateway)) *house {
	t.Helper()
	h := &house{clock: hubtest.NewClock(time.Time{}), ended: map[string]bool{}}
	logger := slog.New(slog.DiscardHandler)
	keys := callertest.Keys(t, caller.Gateway)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("POST /internal/secret", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "SECRET") })
	site, err := web.New(web.Options{Service: "desk", Keys: callertest.Keys(t, "desk", caller.Gateway), Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	site.Mount(mux)
	page := func(w http.ResponseWriter, r *http.Request) error {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			return err
		}
		s := saw{
			Method: r.Method,
			Path:   r.URL.Path,
			Query:  r.URL.RawQuery,
			Host:   r.Host,
			Body:   string(b),
			Header: r.Header.Clone(),
			Caller: caller.From(r.Context()),
		}
		h.mu.Lock()
		h.reached = append(h.reached, s)
		h.mu.Unlock()
		w.Header().Set("Hub-Inside", "1")
		switch r.URL.Path {
		case "/drafts/menus":
			w.Header().Set(web.NavigationHeader, "changed")
		case "/drafts/own-policy":
			w.Header().Set("Content-Security-Policy", "sandbox")
		case "/drafts/fails":
			return errors.New("a secret of ours")
		case "/drafts/refuses":
			return fault.New(fault.Conflict, "Somebody has decided already.")
		case "/drafts/panics":
			panic("oh")
		case "/drafts/cut":
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, "half")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		case "/drafts/long":
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			w.Header().Set("HX-Push-Url", "/drafts/1")
			web.Write(w, r, http.StatusUnprocessableEntity, longPage)
			return nil
		case "/logout":
			http.SetCookie(w, web.Cookie(r, web.SessionCookie, "", -1))
		case "/login/waits", "/login/oidc/waits", "/unsubscribe/waits", "/connect/consent/waits":
			<-h.waits
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		if strings.HasPrefix(r.URL.Path, "/unsubscribe/unknown") || r.URL.Query().Get("t") == "unknown" {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = io.WriteString(w, "<p>a page of "+r.URL.Path)
		return nil
	}
	site.Handle(mux, "GET /connect", web.Anybody, page)
	for _, prefix := range []string{"/drafts", "/admin/keys", "/login", "/logout", "/language", "/unsubscribe", "/connect/consent",
		"/account/x"} {
		site.Handle(mux, prefix, web.Anybody, page)
		site.Handle(mux, prefix+"/", web.Anybody, page)
	}
	desk := httptest.NewServer(mux)
	t.Cleanup(desk.Close)
	pages, err := web.New(web.Options{Service: "gateway", Keys: keys, Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	own, err := web.New(web.Options{Service: "gateway", Folder: "console", Files: console.Files, Keys: keys, Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	h.fixture = newFixture(t, append([]func(*gateway.Gateway){func(g *gateway.Gateway) {
		g.Console = &console.Console{
			Edge:     g.Gateway,
			Sessions: console.NewSessionCache(h.ask, h.clock.Now),
			Pages:    pages,
			Own:      own,
			Visitors: console.NewVisitors(h.askBrowser, h.clock.Now),
		}
		g.Console.Visitors.Patience = 0
		clients := neighbours{"echo": g.Services.Client("echo")}
		for name, addr := range map[string]string{"desk": strings.TrimPrefix(desk.URL, "http://"), "gone": "127.0.0.1:1"} {
			clients[name] = remote.New(
				remote.Options{Service: name, Instancer: sd.FixedInstancer{addr}, Keys: keys, Logger: logger, Patience: hubtest.Patience},
			)
			t.Cleanup(clients[name].Close)
		}
		g.Services = clients
		h.catalog = g.Catalog
		for _, m := range []tool.Manifest{
			{Service: "desk", Console: web.Routes("desk",
				tool.Route{Prefix: "/drafts", Role: "reviewer", Tab: "System", Title: "Drafts", Position: 1},
				tool.Route{Prefix: "/admin/keys", Role: "admin", Tab: "Admin", Title: "API keys", Position: 2},
				tool.Route{Prefix: "/account/x", Tab: "System", Title: "You", Position: 9},
				tool.Route{Prefix: "/login", Public: true}, tool.Route{Prefix: "/logout", Public: true},
				tool.Route{Prefix: "/language", Public: true},
				tool.Route{Prefix: "/unsubscribe", Public: true}, tool.Route{Prefix: "/connect", Public: true})},
			{Service: "gone", Console: []tool.Route{{Prefix: "/admin", Role: "admin", Tab: "Admin", Title: "Overview", Position: 1}}},
		} {
			if err := g.Catalog.Update(m); err != nil {
				t.Fatal(err)
			}
		}
	}}, options...)...)
	return h
}

type seen struct {
	status int
	header http.Header
	body   string
}

func (s seen) code() string {
	var e struct{ Error struct{ Code string } }
	_ = json.Unmarshal([]byte(s.body), &e)
	return e.Error.Code
}

func session(secret string) []string { return []string{"Cookie", "__Host-hub=" + secret} }

var asPerson = []string{"Accept", "text/html,application/xhtml+xml,*/*;q=0.8"}

func (h *house) visit(t *testing.T, method, path, body string, headers ...string) seen {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, h.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return seen{res.StatusCode, res.Header, string(b)}
}

func with(parts ...[]string) []string { return slices.Concat(parts...) }

func TestConsoleAccess(t *testing.T) {
	h := newHouse(t)
	for name, c := range map[string]struct {
		method, path string
		headers      []string
		status       int
		location     string
		code         string
	}{
		"no session, person":     {"GET", "/drafts/1?a=b&c=%2F", asPerson, 303, "/login?next=%2Fdrafts%2F1%3Fa%3Db%26c%3D%252F", ""},
		"no session, program":    {"GET", "/drafts", nil, 401, "", "E_AUTH_MISSING"},
		"no session, form":       {"POST", "/drafts/1", asPerson, 401, "", ""},
		"no session, post":       {"POST", "/drafts/1", nil, 401, "", "E_AUTH_MISSING"},
		"ended":                  {"GET", "/drafts", session(endedSession), 401, "", "E_AUTH_EXPIRED"},
		"ended, person":          {"GET", "/drafts", with(session(endedSession), asPerson), 303, "/login?next=%2Fdrafts", ""},
		"unknown":                {"GET", "/drafts", session(strings.Repeat("u", 43)), 401, "", "E_AUTH_INVALID"},
		"malformed":              {"GET", "/drafts", session("x"), 401, "", "E_AUTH_INVALID"},
		"another cookie's name":  {"GET", "/drafts", []string{"Cookie", "hub_session=" + reviewerSession}, 401, "", "E_AUTH_MISSING"},
		"reviewer":               {"GET", "/drafts/1", session(reviewerSession), 200, "", ""},
		"reviewer at admin":      {"GET", "/admin/keys", session(reviewerSession), 403, "", "E_SCOPE"},
		"admin at drafts":        {"GET", "/drafts", session(adminSession), 403, "", "E_SCOPE"},
		"admin":                  {"GET", "/admin/keys", session(adminSession), 200, "", ""},
		"anybody signed in":      {"GET", "/account/x", session(adminSession), 200, "", ""},
		"nobody at account":      {"GET", "/account/x", nil, 401, "", "E_AUTH_MISSING"},
		"public":                 {"GET", "/login", nil, 200, "", ""},
		"public with an old one": {"GET", "/login", session(endedSession), 200, "", ""},
		"public post":            {"POST", "/unsubscribe/x", nil, 200, "", ""},
		"not below the prefix":   {"GET", "/draftsmen", session(reviewerSession), 404, "", "E_NOT_FOUND"},
		"an unknown page":        {"GET", "/p/a/b", session(reviewerSession), 404, "", "E_NOT_FOUND"},
		"owner without the page": {"GET", "/assets/desk/x/nothing.css", nil, 404, "", ""},
		"internal":               {"POST", "/internal/secret", session(adminSession), 404, "", "E_NOT_FOUND"},
		"internal, by dots":      {"POST", "/drafts/%2e%2e/internal/secret", session(reviewerSession), 404, "", "E_NOT_FOUND"},
		"internal, by slashes":   {"POST", "/drafts/..%2finternal/secret", session(reviewerSession), 404, "", "E_NOT_FOUND"},
		"dots at their end":      {"POST", "/drafts/%2e%2e", session(reviewerSession), 404, "", "E_NOT_FOUND"},
		"start, nobody":          {"GET", "/", asPerson, 200, "", ""},
		"start, a stale session": {"GET", "/", with(session("stale"), asPerson), 303, "/login", ""},
		"start, reviewer":        {"GET", "/", with(session(reviewerSession), asPerson), 303, "/drafts", ""},
		"start, admin":           {"GET", "/", with(session(adminSession), asPerson), 303, "/admin", ""},
		"start, program":         {"GET", "/", nil, 404, "", "E_NOT_FOUND"},
		"start, signed-in one":   {"GET", "/", session(reviewerSession), 303, "/drafts", ""},
		"owner away":             {"GET", "/admin", session(adminSession), 503, "", "E_DB"},
		"owner's refusal":        {"GET", "/drafts/refuses", session(reviewerSession), 409, "", ""},
		"owner's failure":        {"GET", "/drafts/fails", session(reviewerSession), 500, "", ""},
		"owner's panic":          {"GET", "/drafts/panics", session(reviewerSession), 500, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := h.visit(t, c.method, c.path, "", c.headers...)
			if r.status != c.status || r.header.Get("Location") != c.location || r.code() != c.code {
				t.Errorf("%d %q %s, want %d %q %s\n%s", r.status, r.header.Get("Location"), r.code(), c.status, c.location, c.code, r.body)
			}
			if strings.Contains(r.body, "SECRET") || strings.Contains(r.body, "a secret of ours") {
				t.Errorf("it tells too much: %s", r.body)
			}
			for name := range r.header {
				if strings.HasPrefix(name, "Hub-") {
					t.Errorf("an internal header is shown: %s", name)
				}
			}
		})
	}
	if r := h.visit(
		t,
		"GET",
		"/drafts",
		"",
		with(session(endedSession), asPerson, []string{"HX-Request", "true"})...); r.status != 401 ||
		r.header.Get("HX-Redirect") != "/login" {
		t.Errorf("htmx: %d %v", r.status, r.header)
	}
	for page, want := range map[string]string{
		"https://hub.example/drafts/7/targets/3?q=a": "/login?next=%2Fdrafts%2F7%2Ftargets%2F3%3Fq%3Da", "https://hub.example/": "/login",
		"": "/login", "%": "/login", "mailto:x": "/login",
		"https://evil.example//evil.example/x": "/login?next=%2F%2Fevil.example%2Fx", // which auth does not go on to
	} {
		r := h.visit(
			t,
			"POST",
			"/drafts/7/decide",
			"",
			with(
				session(endedSession),
				asPerson,
				[]string{"HX-Request", "true", "HX-Current-URL", page, "Sec-Fetch-Site", "same-origin"},
			)...)
		if got := r.header.Get("HX-Redirect"); got != want {
			t.Errorf("a part of %q: %q", page, got)
		}
	}
	for _, headers := range [][]string{nil, asPerson} {
		r := h.visit(t, "PUT", "/connect", "", headers...)
		if r.status != 405 || r.header.Get("Allow") != "GET, HEAD" ||
			!strings.Contains(r.body, "The method PUT is not allowed here; use GET, HEAD.") ||
			(headers == nil) != (r.code() == "E_VALIDATION") {
			t.Errorf("wrong method: %d %q %s", r.status, r.header.Get("Allow"), r.body)
		}
	}
	r := h.visit(t, "GET", "/admin/keys", "", with(session(reviewerSession), asPerson)...)
	if r.status != 403 || !strings.Contains(r.body, "You may not see this page") ||
		!strings.Contains(r.body, r.header.Get("X-Request-Id")) ||
		!strings.Contains(r.body, `href="/drafts"`) ||
		strings.Contains(r.body, `href="/admin/keys"`) {
		t.Errorf("the page of a refusal: %d %s", r.status, r.body)
	}
	for language, heading := range map[string]string{"en": "You may not see this page", "ko": "이 페이지를 볼 수 없습니다"} {
		headers := with(session(reviewerSession), asPerson, []string{"Accept-Language", language})
		r := h.visit(t, "GET", "/admin/keys", "", headers...)
		if !strings.Contains(r.body, `<html lang="`+language+`">`) || !strings.Contains(r.body, heading) {
			t.Errorf("in %s: %s", language, r.body)
		}
	}
}

// TestWhatTheOwnerSees passes everything that must not reach a service.
func TestWhatTheOwnerSees(t *testing.T) {
	h := newHouse(t)
	r := h.visit(t, "POST", "/drafts/1?q=%EA%B9%80", "a=1&b=%3C", with(asPerson, []string{
		"Cookie",
		"x=1; __Host-hub=" + reviewerSession + "; __Host-hub-flash=f",
		"Cookie",
		"__Host-hub=" + adminSession,
		"Content-Type",
		"application/x-www-form-urlencoded",
		"Authorization",
		"Bearer " + allScopes,
		"X-API-Key",
		allScopes,
		"Hub-Token",
		"forged",
		"Hub-Navigation",
		"forged",
		"Hub-Plain-Cookies",
		"1",
		"Hub-Deadline-Ms",
		"1",
		"X-Forwarded-For",
		"6.6.6.6",
		"X-Forwarded-Proto",
		"https",
		"Forwarded",
		"for=6.6.6.6",
		"Connection",
		"X-Hop, close",
		"X-Hop",
		"1",
		"Upgrade",
		"websocket",
		"X-Request-Id",
		"req_mine",
	})...)
	if r.status != 200 {
		t.Fatalf("%d %s", r.status, r.body)
	}
	s := h.last(t)
	if s.Method != "POST" || s.Path != "/drafts/1" || s.Query != "q=%EA%B9%80" || s.Body != "a=1&b=%3C" || "http://"+s.Host != h.url {
		t.Errorf("the request changed: %+v", s)
	}
	if got, want := s.Caller, (caller.Caller{Kind: "user", Service: "console", ExternalUserID: "rev@example.com", CredentialID: "ses_r",
		HubUser: "usr_r",
		Roles:   []string{"reviewer"}, Email: "rev@example.com", Name: "민수 Rev", RequestID: "req_mine"}); fmt.Sprint(
		got,
	) != fmt.Sprint(
		want,
	) {
		t.Errorf("caller %+v", got)
	}
	for name, want := range map[string]string{"Cookie": "x=1; __Host-hub-flash=f", "Authorization": "", "X-Api-Key": "",
		"X-Forwarded-For": "127.0.0.1", "X-Forwarded-Proto": "",
		"Forwarded": "", "X-Hop": "", "Upgrade": "", "Hub-Plain-Cookies": "", "X-Request-Id": "req_mine"} {
		if got := strings.Join(s.Header.Values(name), "|"); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if nav := s.Header.Get(web.NavigationHeader); nav == "" || nav == "forged" {
		t.Errorf("navigation %q", nav)
	}
	h.visit(t, "GET", "/login", "", "Authorization", "Bearer "+allScopes)
	if s = h.last(t); s.Caller.Kind != caller.Visitor || s.Caller.Scopes != nil || s.Header.Get("Authorization") != "" {
		t.Errorf("a visitor with a key is %+v", s.Caller)
	}
}

// TestCredentialsDoNotCross tries keys on the console and sessions on the API.
func TestCredentialsDoNotCross(t *testing.T) {
	h := newHouse(t)
	before := h.count()
	for _, method := range []string{"GET", "POST", "PUT", "DELETE", "PATCH", "HEAD"} {
		for _, path := range []string{"/drafts", "/drafts/1", "/admin", "/admin/keys", "/account/x"} {
			for _, headers := range [][]string{bearer(allScopes), {"X-API-Key", allScopes}, {"Cookie", "__Host-hub=" + allScopes},
				{"Cookie", "__Host-hub=" + reviewerSession[:42]}, with(bearer(allScopes), session(endedSession))} {
				if r := h.visit(t, method, path, "", headers...); r.status != 401 {
					t.Errorf("%s %s with %v: %d", method, path, headers, r.status)
				}
			}
		}
	}
	if h.count() != before {
		t.Error("a key reached a page")
	}
	for _, path := range []string{"/api/tools/search_echo", "/api/tools/store_echo"} {
		if r := h.visit(t, "POST", path, `{"text":"x"}`, session(adminSession)...); r.status != 401 || r.code() != "E_AUTH_MISSING" {
			t.Errorf("a session at %s: %d %s", path, r.status, r.body)
		}
	}
	if r := h.visit(t, "GET", "/api/tools", "", session(adminSession)...); r.status != 401 {
		t.Errorf("a session at the catalog: %d", r.status)
	}
}

// TestCrossOrigin is the table of what a browser may send from where.
func TestCrossOrigin(t *testing.T) {
	h := newHouse(t)
	for _, path := range []string{"/drafts/1", "/login", "/logout", "/language", "/unsubscribe/x", "/account/x"} {
		for name, c := range map[string]struct {
			headers []string
			refused bool
		}{
			"same origin":           {[]string{"Sec-Fetch-Site", "same-origin"}, false},
			"typed":                 {[]string{"Sec-Fetch-Site", "none"}, false},
			"cross site":            {[]string{"Sec-Fetch-Site", "cross-site"}, true},
			"same site":             {[]string{"Sec-Fetch-Site", "same-site"}, true},
			"foreign origin":        {[]string{"Origin", "https://evil.example"}, true},
			"null origin":           {[]string{"Origin", "null"}, true},
			"our origin":            {[]string{"Origin", h.url}, false},
			"neither":               {nil, false},
			"same origin, null one": {[]string{"Sec-Fetch-Site", "same-origin", "Origin", "null"}, false},
		} {
			before := h.count()
			r := h.visit(t, "POST", path, "a=1", with(session(reviewerSession), c.headers)...)
			if (r.status == 403) != c.refused || (h.count() == before) != c.refused {
				t.Errorf("POST %s, %s: %d", path, name, r.status)
			}
			if r := h.visit(t, "GET", path, "", with(session(reviewerSession), c.headers)...); r.status != 200 {
				t.Errorf("GET %s, %s: %d", path, name, r.status)
			}
		}
	}
}

var longPage = []byte("<p>" + strings.Repeat("a page that is long ", 5000))

// TestCompressedPagesPass hands on what a service has compressed as it is, and compresses pages of its own.
func TestCompressedPagesPass(t *testing.T) {
	h := newHouse(t)
	for _, accept := range []string{"gzip", "gzip;q=0"} {
		r := h.visit(t, "GET", "/drafts/long", "", with(session(reviewerSession), asPerson, []string{"Accept-Encoding", accept})...)
		packed := accept == "gzip"
		if r.status != 422 || (r.header.Get("Content-Encoding") == "gzip") != packed || (len(r.body) < 1000) != packed ||
			r.header.Get("HX-Push-Url") != "/drafts/1" ||
			!slices.Contains(r.header.Values("Vary"), "Accept-Encoding") {
			t.Errorf("%s: %d, %d bytes, %v", accept, r.status, len(r.body), r.header)
		}
		if packed {
			r.body = unpacked(t, r.body)
		}
		if r.body != string(longPage) {
			t.Errorf("%s: %.100s", accept, r.body)
		}
		own := h.visit(t, "GET", "/nowhere", "", with(asPerson, []string{"Accept-Encoding", accept})...)
		if own.status != 404 || (own.header.Get("Content-Encoding") == "gzip") != packed {
			t.Errorf("%s: %d %v", accept, own.status, own.header)
		}
	}
	if r := h.visit(
		t,
		"HEAD",
		"/drafts/long",
		"",
		with(session(reviewerSession), []string{"Accept-Encoding", "gzip"})...); r.status != 422 ||
		r.body != "" {
		t.Errorf("HEAD: %d %q", r.status, r.body)
	}
}

func unpacked(t *testing.T, packed string) string {
	t.Helper()
	r, err := gzip.NewReader(strings.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestHeadersGolden holds the headers of each kind of answer.
func TestHeadersGolden(t *testing.T) {
	h := newHouse(t, func(g *gateway.Gateway) { g.TrustedHops = 1 })
	var out bytes.Buffer
	for _, c := range []struct {
		name, method, path string
		headers            []string
	}{
		{"page", "GET", "/drafts", session(reviewerSession)},
		{"page over TLS", "GET", "/drafts", with(session(reviewerSession), []string{"X-Forwarded-Proto", "https"})},
		{"page with a policy of its own", "GET", "/drafts/own-policy", session(reviewerSession)},
		{"log-in", "GET", "/login", asPerson},
		{"to the log-in", "GET", "/drafts", asPerson},
		{"refused", "GET", "/admin/keys", with(session(reviewerSession), asPerson)},
		{"refused, program", "GET", "/admin/keys", session(reviewerSession)},
		{"not there", "GET", "/nowhere", asPerson},
		{"owner away", "GET", "/admin", with(session(adminSession), asPerson)},
		{"cross site", "POST", "/drafts", with(session(reviewerSession), asPerson, []string{"Sec-Fetch-Site", "cross-site"})},
		{"asset", "GET", h.asset(t, "/assets/desk/"), nil},
		{"asset of another release", "GET", "/assets/desk/0123456789ab/hub.css", nil},
		{"asset of the gateway", "GET", h.asset(t, "/assets/gateway/"), nil},
		{"icon that browsers ask for", "GET", "/favicon.ico", nil},
	} {
		r := h.visit(t, c.method, c.path, "", c.headers...)
		fmt.Fprintf(&out, "%s: %d\n", c.name, r.status)
		for _, name := range []string{"Content-Type", "Content-Security-Policy", "X-Content-Type-Options", "Referrer-Policy",
			"Cross-Origin-Opener-Policy",
			"Cross-Origin-Resource-Policy", "Cache-Control", "Strict-Transport-Security", "Vary", "Location", "Retry-After"} {
			for _, v := range r.header.Values(name) {
				fmt.Fprintf(&out, "  %s: %s\n", name, v)
			}
		}
	}
	path := filepath.Join("testdata", "headers.golden")
	if os.Getenv("HUB_UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(want, out.Bytes()) {
		t.Errorf("%v; HUB_UPDATE_GOLDEN=1 writes %s anew\n%s", err, path, &out)
	}
}

// asset finds the address of the style sheet that a page names.
func (h *house) asset(t *testing.T, prefix string) string {
	t.Helper()
	r := h.visit(t, "GET", "/nowhere", "", asPerson...)
	if prefix == "/assets/desk/" {
		r = h.visit(t, "GET", "/drafts/refuses", "", session(reviewerSession)...)
	}
	_, rest, ok := strings.Cut(r.body, `href="`+prefix)
	for ok {
		name, more, _ := strings.Cut(rest, `"`)
		if strings.HasSuffix(name, "hub.css") {
			return prefix + name
		}
		_, rest, ok = strings.Cut(more, `href="`+prefix)
	}
	t.Fatalf("no style sheet below %s in %s", prefix, r.body)
	return ""
}

func TestSessionCache(t *testing.T) {
	h := newHouse(t)
	get := func() int { return h.visit(t, "GET", "/drafts", "", session(reviewerSession)...).status }
	end := func(v bool) { h.mu.Lock(); h.ended[reviewerSession] = v; h.mu.Unlock() }
	for range 3 {
		if get() != 200 {
			t.Fatal("no session")
		}
	}
	if h.mu.Lock(); h.asked != 1 {
		t.Errorf("auth was asked %d times", h.asked)
	}
	h.mu.Unlock()
	end(true)
	h.clock.Advance(2*time.Second - time.Millisecond)
	if get() != 200 {
		t.Error("the answer was not kept")
	}
	h.clock.Advance(time.Millisecond)
	if get() != 401 {
		t.Error("the answer was kept for longer than two seconds")
	}
	end(false)
	if get() != 200 {
		t.Error("a refusal was kept")
	}
	// Signing out is heard here at once.
	end(true)
	if r := h.visit(t, "POST", "/logout", "", session(reviewerSession)...); r.status != 200 {
		t.Fatal(r.status)
	}
	if get() != 401 {
		t.Error("the session outlived its log-out")
	}
	end(false)
	if get() != 200 {
		t.Fatal("no session")
	}
	h.mu.Lock()
	h.authOut = true
	h.mu.Unlock()
	h.clock.Advance(2 * time.Second)
	if r := h.visit(
		t,
		"GET",
		"/drafts",
		"",
		with(session(reviewerSession), asPerson)...); r.status != 503 ||
		r.header.Get("Retry-After") == "" {
		t.Errorf("without auth: %d", r.status)
	}
	if r := h.visit(t, "GET", "/unsubscribe/x", "", session(reviewerSession)...); r.status != 200 {
		t.Errorf("a public page without auth: %d", r.status)
	}
}

func TestPlainCookies(t *testing.T) {
	h := newHouse(t, func(g *gateway.Gateway) { g.Console.PlainCookies = true })
	if r := h.visit(t, "GET", "/drafts", "", "Cookie", "hub_session="+reviewerSession+"; a=b"); r.status != 200 {
		t.Errorf("%d", r.status)
	}
	if s := h.last(t); s.Header.Get(web.PlainHeader) != "1" || s.Header.Get("Cookie") != "a=b" {
		t.Errorf("%v", s.Header)
	}
	if r := h.visit(t, "GET", "/drafts", "", session(reviewerSession)...); r.status != 401 {
		t.Errorf("the other name: %d", r.status)
	}
}

func TestConsoleManifests(t *testing.T) {
	h := newHouse(t)
	for name, routes := range map[string][]tool.Route{
		"another's":           {{Prefix: "/drafts"}},
		"the API":             {{Prefix: "/api"}},
		"v1":                  {{Prefix: "/v1/pay", Public: true}},
		"internal":            {{Prefix: "/internal"}},
		"everything":          {{Prefix: "/"}},
		"nothing":             {{Prefix: ""}},
		"not clean":           {{Prefix: "/drafts/../x"}},
		"a trailing slash":    {{Prefix: "/p/"}},
		"opened":              {{Prefix: "/admin/open", Public: true}},
		"closed":              {{Prefix: "/connect"}},
		"public with a role":  {{Prefix: "/connect", Public: true, Role: "admin"}},
		"another's assets":    {{Prefix: "/assets/desk2", Public: true}},
		"below one's assets":  {{Prefix: "/assets/rogue/x", Public: true}},
		"twice":               {{Prefix: "/p"}, {Prefix: "/p"}},
		"good and bad at one": {{Prefix: "/p"}, {Prefix: "/mcp"}},
	} {
		if err := h.catalog.Update(tool.Manifest{Service: "rogue", Console: routes}); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	if err := h.catalog.Update(
		tool.Manifest{
			Service: "fine",
			Console: web.Routes("fine", tool.Route{Prefix: "/p"}, tool.Route{Prefix: "/drafts/deeper", Role: "admin"}),
		},
	); err != nil {
		t.Error(err)
	}
	if r := h.visit(t, "GET", "/drafts/deeper/x", "", session(reviewerSession)...); r.status != 403 {
		t.Errorf("the longer route does not win: %d", r.status)
	}
}

func TestUploads(t *testing.T) {
	h := newHouse(t)
	if r := h.visit(
		t,
		"POST",
		"/drafts/1",
		strings.Repeat("x", 1<<20),
		session(reviewerSession)...); r.status != 200 ||
		len(h.last(t).Body) != 1<<20 {
		t.Errorf("a mebibyte: %d", r.status)
	}
	if r := h.visit(t, "POST", "/drafts/1", strings.Repeat("x", 1<<20+1), session(reviewerSession)...); r.status != 400 {
		t.Errorf("over the page's cap: %d", r.status)
	}
	address := strings.TrimPrefix(h.url, "http://")
	for range 8 { // a client that breaks off must not trip the breaker
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(
			conn,
			"POST /drafts/1 HTTP/1.1\r\nHost: %s\r\nCookie: __Host-hub=%s\r\nContent-Length: 1000\r\n\r\nhalf",
			address,
			reviewerSession,
		)
		time.Sleep(5 * time.Millisecond)
		_ = conn.Close()
	}
	time.Sleep(50 * time.Millisecond)
	if r := h.visit(t, "GET", "/drafts/1", "", session(reviewerSession)...); r.status != 200 {
		t.Errorf("after broken uploads: %d", r.status)
	}
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "GET /drafts/cut HTTP/1.1\r\nHost: %s\r\nCookie: __Host-hub=%s\r\n\r\n", address, reviewerSession)
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err == nil {
		_, err = io.ReadAll(res.Body)
	}
	if err == nil {
		t.Error("half an answer looks whole")
	}
}

func TestNextIsEncoded(t *testing.T) {
	h := newHouse(t)
	r := h.visit(t, "GET", "/drafts/a%20b/%ED%95%9C?x=1&next=https://evil", "", asPerson...)
	u, err := url.Parse(r.header.Get("Location"))
	if err != nil || u.Path != "/login" || u.Query().Get("next") != "/drafts/a%20b/%ED%95%9C?x=1&next=https://evil" {
		t.Errorf("%s, %v", r.header.Get("Location"), err)
	}
}
