package e2e_test

import (
	"encoding/base64"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/caller/callertest"
	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/rpc"
)

// operation is what a service serves to other processes, with whom it takes.
type operation struct {
	service, method, path string
	takes                 caller.Rule
}

func (o operation) String() string { return o.method + " " + o.path + " of " + o.service }

// neighbours are the operations that services have for one another. One that is new is put
// here, with its owner and whom it is for.
var neighbours = map[string]struct {
	owner string
	takes caller.Rule
}{
	"/internal/apikeys/verify":    {"auth", caller.Neighbour(caller.Gateway)},
	"/internal/apikeys/names":     {"auth", caller.Rule{"review-control": {caller.Service}, "admin": {caller.Service}}},
	"/internal/sessions/resolve":  {"auth", caller.Neighbour(caller.Gateway)},
	"/internal/browsers/known":    {"auth", caller.Neighbour(caller.Gateway)},
	"/internal/apps/verify":       {"auth", caller.Neighbour(caller.Gateway)},
	"/internal/apps/admit":        {"auth", caller.Neighbour(caller.Gateway)},
	"/internal/apps/settings":     {"auth", caller.Neighbour("payments")},
	"/internal/menus/navigation":  {"admin", caller.Neighbour(caller.Gateway)},
	"/internal/ids/check":         {"query", caller.Neighbour("authoring")},
	"/internal/recipients/check":  {"query", caller.Neighbour("authoring")},
	"/internal/rows":              {"query", caller.Neighbour("authoring")},
	"/internal/source/health":     {"query", caller.Neighbour("admin")},
	"/internal/source/newest":     {"query", caller.Neighbour(caller.Gateway)},
	"/internal/reviews/backlog":   {"review-control", caller.Neighbour("admin")},
	"/internal/drafts/get":        {"authoring", caller.Neighbour("review-control")},
	"/internal/drafts/list":       {"authoring", caller.Neighbour("review-control")},
	"/internal/drafts/targets":    {"authoring", caller.Neighbour("review-control")},
	"/internal/drafts/recipients": {"authoring", caller.Neighbour("review-control")},
	"/internal/drafts/progress":   {"authoring", caller.Neighbour("review-control")},
	"/internal/drafts/transition": {"authoring", caller.Rule{"review-control": {caller.Service, caller.Key, caller.App, caller.User}}},
}

// operations lists all that the services serve: tools by the committed catalog, pages and
// operations for neighbours by what the sources say.
func operations(t *testing.T) (all []operation) {
	t.Helper()
	seen := map[string]bool{}
	add := func(o operation) {
		if !seen[o.String()] {
			seen[o.String()] = true
			all = append(all, o)
		}
	}
	for _, m := range manifests(t) {
		for _, spec := range m.Tools {
			add(operation{m.Service, http.MethodPost, rpc.ToolPath(spec.Name), caller.Agents()})
		}
		for _, route := range m.Routes {
			add(operation{m.Service, http.MethodPost, rpc.RoutePath(route.Name), rpc.RouteRule(route.Credential)})
		}
		if len(m.Console) > 0 {
			add(operation{m.Service, http.MethodGet, "/assets/" + m.Service + "/x", caller.Browsers()})
		}
	}
	pages := 0
	for _, service := range services {
		add(operation{service, http.MethodGet, rpc.ManifestPath, caller.Neighbour(caller.Gateway)})
		add(operation{service, http.MethodGet, rpc.TrustPath, anyProcess})
		for _, match := range written(t, internal, service) {
			n, known := neighbours[match[1]]
			if !known {
				t.Errorf("%s is nowhere told whom it takes", match[1])
			}
			add(operation{n.owner, http.MethodPost, match[1], n.takes})
		}
		for _, match := range written(t, pattern, service) {
			add(operation{service, match[1], variable.ReplaceAllString(match[2], "987654321"), caller.Browsers()})
			pages++
		}
	}
	if pages < 25 || len(all) < 50 {
		t.Fatalf("only %d pages among %v were found", pages, all)
	}
	return all
}

// attempt sends the operation something with the headers, and tells the status, and whether it
// was the token that was refused.
func (s *suite) attempt(t *testing.T, o operation, h http.Header) (status int, refused bool) {
	t.Helper()
	body := `{"draft_id":"987654321","limit":1}`
	req, err := http.NewRequestWithContext(t.Context(), o.method, "http://"+s.addr[o.service]+o.path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = h.Clone()
	resp, err := inside.RoundTrip(req)
	if err != nil {
		t.Fatalf("%s: %v", o, err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Fatalf("%s: %v", o, err)
	}
	refused = resp.Header.Get(rpc.RefusedHeader) != ""
	if refused && resp.StatusCode != http.StatusUnauthorized && resp.StatusCode != http.StatusForbidden {
		t.Errorf("%s refuses with %d %s", o, resp.StatusCode, resp.Header.Get(rpc.FaultHeader))
	}
	return resp.StatusCode, refused
}

// inside keeps the connections to the services.
var inside = &http.Transport{MaxIdleConnsPerHost: 4}

var (
	aPerson = caller.Caller{
		Kind:           caller.User,
		Service:        "console",
		ExternalUserID: "ada@example.com",
		CredentialID:   "ses_1",
		HubUser:        "usr_1",
		Roles:          []string{"admin", "reviewer"},
		Email:          "ada@example.com",
		Name:           "Ada",
	}
	anAgent = caller.Caller{
		Kind:           caller.Key,
		Service:        "crm",
		ExternalUserID: "u1",
		CredentialID:   "ak_1",
		Scopes:         strings.Split(allScopes, ","),
	}
)

// anyProcess is the rule of what every process may ask for itself.
var anyProcess = func() caller.Rule {
	rule := caller.Rule{}
	for _, name := range everyProcess {
		rule[name] = []string{caller.Service}
	}
	return rule
}()

// forger makes forgeries, each for several operations, and anew before they end by themselves.
type forger struct {
	made map[string][]callertest.Forgery
	at   map[string]time.Time
}

func newForger() *forger { return &forger{map[string][]callertest.Forgery{}, map[string]time.Time{}} }

func (f *forger) forge(issuer, audience string, who caller.Caller) []callertest.Forgery {
	id := issuer + " " + audience + " " + who.Kind
	if time.Since(f.at[id]) > 30*time.Second {
		f.at[id], f.made[id] = time.Now(), callertest.Forgeries(issuer, audience, who, everyProcess...)
	}
	return slices.Clone(f.made[id])
}

// dealt is every fifth of the forgeries, beginning elsewhere at each operation, so that each operation meets many of them and each of
// them many operations; make test-all tries all of them at each.
func dealt(list []callertest.Forgery, operation int) (fifth []callertest.Forgery) {
	if os.Getenv("HUB_TEST_ALL") != "" {
		return list
	}
	for i := operation % 5; i < len(list); i += 5 {
		fifth = append(fifth, list[i])
	}
	return fifth
}

// TestEachOperationTakesWhomItNames tries at every operation of every service what others may
// send to pass for somebody, and then each process in its own name and with a token that it was
// shown: what gets in is what the operation names, and nothing else.
func TestEachOperationTakesWhomItNames(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	all := operations(t)
	before := s.state(t, "auth")
	requests := 0
	forger := newForger()
	for i, o := range all {
		forgeries := forger.forge(caller.Gateway, o.service, aPerson)
		for presenter, kinds := range o.takes {
			if slices.Contains(kinds, caller.Key) && presenter == caller.Gateway {
				forgeries = append(forgeries, forger.forge(presenter, o.service, anAgent)...)
			}
			// Where every process is taken, what is forged for one of them is forged for all.
			if slices.Contains(kinds, caller.Service) && (o.path != rpc.TrustPath || presenter == caller.Gateway) {
				forgeries = append(forgeries, forger.forge(presenter, o.service, caller.Itself(presenter))...)
			}
		}
		for _, f := range dealt(forgeries, i) {
			requests++
			if status, refused := s.attempt(t, o, f.Header); !refused {
				t.Errorf("%s: %s answers %d", o, f.Name, status)
			}
		}
	}
	if after := s.state(t, "auth"); !maps.Equal(before, after) {
		t.Errorf("something was changed:\n%v\n%v", before, after)
	}
	people := map[string]caller.Caller{
		caller.User:    aPerson,
		caller.Key:     anAgent,
		caller.App:     {Kind: caller.App, Service: "shop", CredentialID: "app_1", Scopes: anAgent.Scopes, Roles: aPerson.Roles},
		caller.Visitor: {Kind: caller.Visitor, Service: "console", Roles: aPerson.Roles},
	}
	taken := 0
	for _, o := range all {
		try := func(presenter, kind string, h http.Header) {
			t.Helper()
			requests++
			status, refused := s.attempt(t, o, h)
			if named := slices.Contains(o.takes[presenter], kind); named == refused {
				t.Errorf("%s: %s presents the kind %s: %d", o, presenter, kind, status)
			} else if named {
				taken++
			}
		}
		for kind, who := range people {
			try(caller.Gateway, kind, callertest.Header(t, o.service, who))
		}
		for _, presenter := range everyProcess {
			own := callertest.HeaderOf(t, presenter, o.service)
			try(presenter, caller.Service, own)
			for kind, who := range people {
				if presenter == caller.Gateway {
					continue // it is called by nobody
				}
				h := own.Clone()
				h.Set(caller.ShownHeader, callertest.NewToken(caller.Gateway, presenter, who).Signed())
				try(presenter, kind, h)
			}
		}
	}
	t.Logf("%d requests to %d operations, %d of them taken", requests, len(all), taken)
	for _, name := range services {
		if resp, err := http.Get("http://" + s.addr[name] + "/healthz"); err != nil || resp.StatusCode != http.StatusOK {
			t.Errorf("%s: %v", name, err)
		} else {
			resp.Body.Close()
		}
	}
}

// tap is a proxy before a service that keeps the tokens that pass.
type tap struct {
	mu     sync.Mutex
	tokens map[string]bool
	shown  map[string]bool
}

// TestWhatABrokenServiceCatches lets people and agents work while somebody listens at authoring,
// and then uses all that was caught: at auth, query and review-control it is good for nothing.
func TestWhatABrokenServiceCatches(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	caught := &tap{tokens: map[string]bool{}, shown: map[string]bool{}}
	target := &url.URL{Scheme: "http", Host: s.addr["authoring"]}
	server := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) {
		caught.mu.Lock()
		defer caught.mu.Unlock()
		if token := p.In.Header.Get(caller.Header); token != "" {
			caught.tokens[token] = true
		}
		if token := p.In.Header.Get(caller.ShownHeader); token != "" {
			caught.shown[token] = true
		}
		p.SetURL(target)
	}})
	defer server.Close()
	static := "HUB_STATIC=authoring=" + strings.TrimPrefix(server.URL, "http://")
	for _, name := range services {
		if name != "authoring" {
			static += "," + name + "=" + s.addr[name]
		}
	}
	for _, name := range []string{"gateway", "review-control"} {
		s.process[name].Kill()
		s.env[name] = append(s.env[name], static)
		s.start(name)
	}
	for _, name := range []string{"gateway", "review-control"} {
		s.ready(name)
	}
	reviewer := s.person("Ada Lovelace", "reviewer", "admin")
	session := s.session(t, reviewer)
	hubtest.Eventually(t, "the gateway finds authoring", func() bool { return s.call("list_drafts", `{}`).OK })
	queued := s.queued(t, s.draft(t, draftOptions{targets: 2}))
	dropped := s.draft(t, draftOptions{targets: 1})
	drop := attempt{method: "POST", path: "/drafts/" + dropped + "/cancel", body: "note=x", kind: "application/x-www-form-urlencoded"}
	var tokens, shown, firsts, beside []string
	var began time.Time
	catch := func(attempts ...attempt) {
		t.Helper()
		for _, a := range append(attempts, attempt{method: "GET", path: "/drafts"}, attempt{method: "GET", path: "/drafts/" + queued}) {
			if r := a.make(t, s.url, session); r.StatusCode >= 400 {
				b, _ := io.ReadAll(r.Body)
				t.Fatalf("%s: %d %s", a, r.StatusCode, b)
			}
		}
		if r := s.call("list_drafts", `{}`); !r.OK {
			t.Fatal(r.raw)
		}
		caught.mu.Lock()
		tokens, shown = slices.Collect(maps.Keys(caught.tokens)), slices.Collect(maps.Keys(caught.shown))
		caught.mu.Unlock()
		began, firsts, beside = time.Now(), slices.Concat(tokens, shown), append(slices.Clone(shown), "")
		for _, token := range tokens {
			signed, proof, _ := strings.Cut(token, "~")
			firsts = append(firsts, signed)
			for _, other := range shown {
				firsts = append(firsts, other+"~"+proof)
			}
		}
	}
	catch(drop)
	kinds := map[string]bool{}
	for _, token := range shown {
		kinds[kindOf(t, token)] = true
	}
	if !kinds[caller.User] || !kinds[caller.Key] || len(tokens) < 3 {
		t.Fatalf("%d tokens were caught, and shown were those of %v", len(tokens), kinds)
	}
	hubtest.Eventually(t, "the draft is inspected", func() bool {
		return query[int](t, s, `SELECT inspected FROM review_control.reviews WHERE draft_id = $1::bigint`, queued)[0] == 2
	})
	requests, before := 0, s.state(t, "auth")
	unchanged := func() {
		t.Helper()
		if after := s.state(t, "auth"); !maps.Equal(before, after) {
			t.Errorf("something was changed:\n%v\n%v", before, after)
		}
	}
	for _, o := range operations(t) {
		if o.service == "authoring" {
			continue
		}
		if time.Since(began) > 20*time.Second { // a token lives for a minute, and a slow machine takes longer: others are caught
			unchanged()
			caught.mu.Lock()
			clear(caught.tokens)
			clear(caught.shown)
			caught.mu.Unlock()
			catch()
			before = s.state(t, "auth")
		}
		for _, first := range firsts {
			// What is shown beside it takes turns, so that each of a pair meets the other at some operation while the tokens hold.
			h, second := http.Header{caller.Header: {first}}, beside[requests%len(beside)]
			if second != "" {
				h.Set(caller.ShownHeader, second)
			}
			requests++
			if status, refused := s.attempt(t, o, h); !refused {
				t.Errorf("%s takes what was caught (%s, showing %s): %d", o, kindOf(t, first), second, status)
			}
		}
		// With its own key authoring may call query, and say nothing of anybody.
		for _, second := range append(shown, tokens...) {
			h := callertest.HeaderOf(t, "authoring", o.service)
			h.Set(caller.ShownHeader, strings.Split(second, "~")[0])
			requests++
			if status, refused := s.attempt(t, o, h); !refused {
				t.Errorf("%s takes authoring with what it has caught: %d", o, status)
			}
		}
	}
	unchanged()
	// It was not too late: where it was sent to, it still holds.
	holds := 0
	for _, token := range tokens {
		for _, path := range []string{rpc.ToolPath("list_drafts"), "/internal/drafts/list", rpc.ManifestPath} {
			method := http.MethodPost
			if path == rpc.ManifestPath {
				method = http.MethodGet
			}
			if _, refused := s.attempt(t, operation{"authoring", method, path, nil}, http.Header{caller.Header: {token}}); !refused {
				holds++
			}
		}
	}
	if holds < len(tokens)/2+1 {
		t.Errorf("%d of %d tokens still hold after %s", holds, len(tokens), time.Since(began))
	}
	t.Logf("%d requests with %d tokens and %d shown ones in %s", requests, len(tokens), len(shown), time.Since(began))
}

// kindOf reads the kind in a token.
func kindOf(t *testing.T, token string) string {
	t.Helper()
	b, err := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[1])
	if err != nil {
		t.Fatal(err)
	}
	_, kind, _ := strings.Cut(string(b), `"kind":"`)
	kind, _, _ = strings.Cut(kind, `"`)
	return kind
}
