package gateway_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/hubtest"
	"hub.internal/services/gateway"
	"hub.internal/services/gateway/edge"
)

// told ends a tally, which tells what it has counted, and returns all entries by tool and outcome.
func (e *fixture) told(t *testing.T, tally *audit.Tally) (rows, counted int) {
	t.Helper()
	ended, end := context.WithCancel(t.Context())
	end()
	if err := tally.Run(ended); err != nil {
		t.Fatal(err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, entry := range e.entries {
		if entry.Tool == "calls.refused" {
			counted += entry.Count
		}
	}
	return len(e.entries), counted
}

// TestRefusalsWithoutALimitAreCounted makes thousands of calls that no limit is charged for, with no key, bad ones
// and a good one: each is a row or counted, and the rows are few.
func TestRefusalsWithoutALimitAreCounted(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]func(i int) (method, path, body string, headers []string){
		"no key": func(i int) (string, string, string, []string) {
			return "POST", fmt.Sprintf("/api/tools/tool_%d", i), `{}`, nil
		},
		"unknown keys": func(i int) (string, string, string, []string) {
			return "GET", "/api/tools", "", bearer(fmt.Sprintf("crm_%042d", i))
		},
		"no keys at all": func(i int) (string, string, string, []string) {
			return "GET", "/api/tools/search_echo/detail", "", []string{"X-API-Key", fmt.Sprint(i)}
		},
		"a revoked key": func(int) (string, string, string, []string) {
			return "POST", "/api/tools/search_echo", `{"text":"x"}`, bearer(revoked)
		},
		"a good key, no such tool": func(i int) (string, string, string, []string) {
			return "POST", fmt.Sprintf("/api/tools/tool_%d", i), `{}`, bearer(readOnly)
		},
		"a good key without the scope": func(int) (string, string, string, []string) {
			return "POST", "/api/tools/store_echo", `{"text":"x"}`, bearer(readOnly)
		},
		"a good key beyond its limit": func(int) (string, string, string, []string) {
			return "POST", "/api/tools/search_echo", `{"text":"x"}`, bearer(tight)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var tally *audit.Tally
			e := newFixture(t, func(g *gateway.Gateway) {
				tally = audit.NewTally(g.Audit, "calls.refused")
				g.Refused = tally
				g.Failures = edge.Rate{PerMinute: 60, Burst: 10}
			})
			const calls, each = 600, 20
			var all sync.WaitGroup
			for worker := range 4 {
				all.Go(func() {
					for i := range calls / 4 {
						method, path, body, headers := call(worker*calls + i)
						e.do(t, method, path, body, headers...)
					}
				})
			}
			all.Wait()
			rows, counted := e.told(t, tally)
			answered := 0
			if name == "a good key beyond its limit" {
				answered = 2 // its burst
			}
			if rows != each+1 || counted != calls-answered-each {
				t.Errorf("%d rows, %d counted of %d calls", rows, counted, calls)
			}
		})
	}
}

// TestBodiesThatNobodyReads declares bodies that are too long, and sends none of them.
func TestBodiesThatNobodyReads(t *testing.T) {
	t.Parallel()
	var tally *audit.Tally
	e := newFixture(t, func(g *gateway.Gateway) {
		tally = audit.NewTally(g.Audit, "calls.refused")
		g.Refused = tally
	})
	const calls, each = 100, 20
	for range calls {
		conn, err := net.Dial("tcp", strings.TrimPrefix(e.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(
			conn,
			"POST /api/tools/search_echo HTTP/1.1\r\nHost: hub\r\nContent-Length: 99999999\r\n\r\n",
		); err != nil {
			t.Fatal(err)
		}
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || res.StatusCode != http.StatusBadRequest {
			t.Fatalf("%+v, %v", res, err)
		}
		conn.Close()
	}
	if rows, counted := e.told(t, tally); rows != each+1 || counted != calls-each {
		t.Errorf("%d rows, %d counted", rows, counted)
	}
}

// address is the client's address as the last recorded refusal has it.
func (e *fixture) address(t *testing.T) string {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	detail, ok := e.entries[len(e.entries)-1].Detail.(audit.Refusal)
	if !ok || detail.Refused == nil || detail.Refused.Message == "" {
		t.Fatalf("%+v", e.entries[len(e.entries)-1])
	}
	return detail.Address
}

// TestClientAddress: nobody chooses their own address, or somebody else's.
func TestClientAddress(t *testing.T) {
	t.Parallel()
	const peer = "127.0.0.1"
	for hops, cases := range map[int][]struct{ forwarded, want string }{
		0: {{"", peer}, {"192.0.2.1", peer}, {"192.0.2.1, 192.0.2.2", peer}},
		1: {{"", peer}, {"192.0.2.1", "192.0.2.1"}, {"198.51.100.9, 192.0.2.1", "192.0.2.1"}, {"198.51.100.9|192.0.2.1", "192.0.2.1"},
			{"198.51.100.9,,  192.0.2.1 ", "192.0.2.1"},
			{"192.0.2.1:5555", "192.0.2.1"}, {"2001:db8::7", "2001:db8::7"}, {"[2001:db8::7]:5555", "2001:db8::7"},
			{"::ffff:192.0.2.1", "192.0.2.1"},
			{"unknown", peer}, {"198.51.100.9, ", peer}, {"198.51.100.9, x", peer}, {strings.Repeat("9", 5000), peer}},
		2: {{"192.0.2.1", peer}, {"192.0.2.1, 10.0.0.1", "192.0.2.1"}, {"198.51.100.9, 192.0.2.1, 10.0.0.1", "192.0.2.1"}},
	} {
		e := newFixture(t, func(g *gateway.Gateway) { g.TrustedHops = hops })
		for _, c := range cases {
			var headers []string
			for line := range strings.SplitSeq(c.forwarded, "|") {
				headers = append(headers, "X-Forwarded-For", line)
			}
			for _, other := range []string{"X-Real-Ip", "Forwarded", "True-Client-Ip", "Cf-Connecting-Ip", "X-Client-Ip"} {
				headers = append(headers, other, "198.51.100.1")
			}
			e.do(t, "GET", "/api/tools", "", headers...)
			if got := e.address(t); got != c.want {
				t.Errorf("%d hops, %q: %q, want %q", hops, c.forwarded, got, c.want)
			}
		}
	}
}

// TestFailedCredentialsOfANetwork: whoever has a /64 has one allowance, however many addresses they use.
func TestFailedCredentialsOfANetwork(t *testing.T) {
	t.Parallel()
	e := newFixture(t, func(g *gateway.Gateway) {
		g.TrustedHops = 1
		g.Failures = edge.Rate{PerMinute: 60, Burst: 5}
	})
	codes := map[string]int{}
	for i := range 8 {
		codes[e.do(t, "GET", "/api/tools", "", with(bearer(unknown),
			[]string{"X-Forwarded-For", fmt.Sprintf("2001:db8::%x:%x", i, i)})...).code()]++
	}
	if codes["E_AUTH_INVALID"] != 5 || codes["E_RATE_LIMIT"] != 3 {
		t.Errorf("answers %v", codes)
	}
	for _, other := range []string{"2001:db8:0:1::1", "192.0.2.1"} {
		if r := e.do(
			t,
			"GET",
			"/api/tools",
			"",
			with(bearer(unknown), []string{"X-Forwarded-For", other})...); r.code() != "E_AUTH_INVALID" {
			t.Errorf("%s pays for others: %s", other, r.body)
		}
	}
}

// TestVisitorsHoldNoOthers lets people who are not signed in hold as many places as they can, of each kind.
func TestVisitorsHoldNoOthers(t *testing.T) {
	t.Parallel()
	kinds := map[string]struct {
		method, path string
		anybody      int
	}{
		"pages": {"GET", "/login", 20}, "forms": {"POST", "/login", 44}, "provider": {"GET", "/login/oidc", 10},
		"consent": {"POST", "/connect/consent", 10}, "unsubscribe": {"POST", "/unsubscribe", 32},
	}
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			waits := make(chan struct{})
			h := newHouse(t, func(g *gateway.Gateway) { g.TrustedHops = 1 })
			h.mu.Lock()
			h.waits = waits
			h.mu.Unlock()
			from := func(n, part int) []string { return []string{"X-Forwarded-For", fmt.Sprintf("10.%d.1.%d", n, part)} }
			browser := func(secret string) []string { return []string{"Cookie", "__Host-hub-browser=" + secret} }
			var holding sync.WaitGroup
			var failed atomic.Int64
			hold := func(headers ...string) {
				holding.Go(func() {
					if r := h.visit(t, kind.method, kind.path+"/waits", "", headers...); r.status != http.StatusOK {
						failed.Add(1)
					}
				})
			}
			for i := range kind.anybody / 2 {
				hold(from(0, i)...)
			}
			hubtest.Eventually(t, "one network has its share", func() bool { return h.count() == kind.anybody/2 })
			if r := h.visit(
				t,
				kind.method,
				kind.path,
				"",
				from(0, 200)...); r.status != http.StatusTooManyRequests || r.code() != "E_RATE_LIMIT" ||
				r.header.Get("Retry-After") == "" {
				t.Errorf("beyond a network's share: %d %s", r.status, r.body)
			}
			for i := range kind.anybody / 2 {
				hold(from(1, i)...)
			}
			hubtest.Eventually(t, "visitors have all places that are anybody's", func() bool { return h.count() == kind.anybody })
			for _, headers := range [][]string{from(200, 1), with(from(200, 1), browser("x")),
				with(from(200, 1), browser(strings.Repeat("x", 43)))} {
				if r := h.visit(t, kind.method, kind.path, "", headers...); r.status != http.StatusTooManyRequests {
					t.Errorf("beyond the places: %d, %v", r.status, headers)
				}
			}
			for _, n := range []int{0, 200} {
				if r := h.visit(t, kind.method, kind.path, "", with(from(n, 1), browser(aBrowser))...); r.status != http.StatusOK {
					t.Errorf("a browser that somebody has signed in with: %d", r.status)
				}
			}
			for other, k := range kinds {
				if r := h.visit(t, k.method, k.path, "", from(201, 1)...); other != name && r.status != http.StatusOK {
					t.Errorf("%s: %d", other, r.status)
				}
			}
			if r := h.visit(t, "GET", "/drafts", "", session(reviewerSession)...); r.status != http.StatusOK {
				t.Errorf("somebody who is signed in: %d", r.status)
			}
			if r := h.do(t, "POST", "/api/tools/search_echo", `{"text":"x"}`, bearer(allScopes)...); r.status != http.StatusOK {
				t.Errorf("an agent: %s", r.body)
			}
			// Whoever makes up cookies has auth asked now and then.
			before := h.askedBrowsers()
			for i := range 50 {
				h.visit(t, kind.method, kind.path, "", with(from(200, 1), browser(fmt.Sprintf("%043d", i)))...)
			}
			if asked := h.askedBrowsers() - before; asked > 10 {
				t.Errorf("auth was asked about %d of 50 browsers", asked)
			}
			close(waits)
			holding.Wait()
			if n := failed.Load(); n != 0 {
				t.Errorf("%d of those who had places were refused", n)
			}
			if r := h.visit(t, kind.method, kind.path, "", from(202, 0)...); r.status != http.StatusOK {
				t.Errorf("when they have left: %d", r.status)
			}
		})
	}
}

// TestVisitorsWait: who finds no place waits for one.
func TestVisitorsWait(t *testing.T) {
	t.Parallel()
	waits := make(chan struct{})
	h := newHouse(t, func(g *gateway.Gateway) {
		g.TrustedHops = 1
		g.Console.Visitors.Patience = time.Minute
	})
	h.mu.Lock()
	h.waits = waits
	h.mu.Unlock()
	var all sync.WaitGroup
	for i := range 100 {
		all.Go(func() {
			r := h.visit(t, "POST", "/unsubscribe/waits", "", "X-Forwarded-For", fmt.Sprintf("10.%d.0.1", i))
			if r.status != http.StatusOK {
				t.Errorf("%d", r.status)
			}
		})
	}
	hubtest.Eventually(t, "all places are taken", func() bool { return h.count() == 32 })
	close(waits)
	all.Wait()
}

// TestFormsOfANetwork: more forms than a network may send do not get as far as auth, and a browser that somebody has signed in
// with goes on.
func TestFormsOfANetwork(t *testing.T) {
	t.Parallel()
	h := newHouse(t, func(g *gateway.Gateway) { g.TrustedHops = 1 })
	send := func(address string, headers ...string) seen {
		return h.visit(t, "POST", "/login", "", with(headers, []string{"X-Forwarded-For", address})...)
	}
	for i := range 70 {
		if r := send(
			"192.0.2.1",
		); r.status == http.StatusOK != (i < 60) ||
			i >= 60 && (r.code() != "E_RATE_LIMIT" || r.header.Get("Retry-After") == "") {
			t.Errorf("form %d: %d %s", i, r.status, r.body)
		}
	}
	if r := send("192.0.2.1", "Cookie", "__Host-hub-browser="+aBrowser); r.status != http.StatusOK {
		t.Errorf("a known browser: %d", r.status)
	}
	if r := h.visit(t, "POST", "/language", "to=ko", "X-Forwarded-For", "192.0.2.1"); r.status != http.StatusOK {
		t.Errorf("a language, for which no password is hashed: %d", r.status)
	}
	for i := range 200 {
		if r := send(fmt.Sprintf("192.0.2.%d", 2+i%9)); r.status == http.StatusOK != (i < 180) {
			t.Errorf("form %d of the /24: %d", i, r.status)
		}
	}
	if r := send("192.0.3.1"); r.status != http.StatusOK {
		t.Errorf("another network: %d", r.status)
	}
	if r := h.visit(t, "GET", "/login", "", "X-Forwarded-For", "192.0.2.1"); r.status != http.StatusOK {
		t.Errorf("a page: %d", r.status)
	}
}

// TestSlowVisitorsHoldNoPlace sends forms that never end.
func TestSlowVisitorsHoldNoPlace(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	for range 40 {
		conn, err := net.Dial("tcp", strings.TrimPrefix(h.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := io.WriteString(
			conn,
			"POST /login HTTP/1.1\r\nHost: hub\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 1000\r\n\r\nemail=",
		); err != nil {
			t.Fatal(err)
		}
	}
	if r := h.visit(t, "POST", "/login", "email=ada"); r.status != http.StatusOK || h.last(t).Body != "email=ada" || h.count() != 1 {
		t.Errorf("%d, %d requests reached the service", r.status, h.count())
	}
	if r := h.visit(t, "POST", "/login", strings.Repeat("x", 64<<10+1)); r.status != http.StatusBadRequest || r.code() != "E_VALIDATION" {
		t.Errorf("a long form of a visitor: %d %s", r.status, r.body)
	}
	if r := h.visit(t, "POST", "/drafts", strings.Repeat("x", 64<<10+1), session(reviewerSession)...); r.status != http.StatusOK {
		t.Errorf("a long form of a user: %d", r.status)
	}
}
