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
	"testing"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/hubtest"
	"hub.internal/services/gateway"
)

// told ends a tally, which tells what it has counted, and returns all entries by tool and outcome.
func (e *edge) told(t *testing.T, tally *audit.Tally) (rows, counted int) {
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
			e := newEdge(t, func(g *gateway.Gateway) {
				tally = audit.NewTally(g.Audit, "calls.refused")
				g.Refused = tally
				g.Failures = gateway.Rate{PerMinute: 60, Burst: 10}
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
	e := newEdge(t, func(g *gateway.Gateway) {
		tally = audit.NewTally(g.Audit, "calls.refused")
		g.Refused = tally
	})
	const calls, each = 100, 20
	for range calls {
		conn, err := net.Dial("tcp", strings.TrimPrefix(e.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, "POST /api/tools/search_echo HTTP/1.1\r\nHost: hub\r\nContent-Length: 99999999\r\n\r\n"); err != nil {
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
func (e *edge) address(t *testing.T) string {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	detail, ok := e.entries[len(e.entries)-1].Detail.(map[string]string)
	if !ok {
		t.Fatalf("%+v", e.entries[len(e.entries)-1])
	}
	return detail["address"]
}

// TestClientAddress: nobody chooses their own address, or somebody else's.
func TestClientAddress(t *testing.T) {
	t.Parallel()
	const peer = "127.0.0.1"
	for hops, cases := range map[int][]struct{ forwarded, want string }{
		0: {{"", peer}, {"192.0.2.1", peer}, {"192.0.2.1, 192.0.2.2", peer}},
		1: {{"", peer}, {"192.0.2.1", "192.0.2.1"}, {"198.51.100.9, 192.0.2.1", "192.0.2.1"}, {"198.51.100.9|192.0.2.1", "192.0.2.1"}, {"198.51.100.9,,  192.0.2.1 ", "192.0.2.1"},
			{"192.0.2.1:5555", "192.0.2.1"}, {"2001:db8::7", "2001:db8::7"}, {"[2001:db8::7]:5555", "2001:db8::7"}, {"::ffff:192.0.2.1", "192.0.2.1"},
			{"unknown", peer}, {"198.51.100.9, ", peer}, {"198.51.100.9, x", peer}, {strings.Repeat("9", 5000), peer}},
		2: {{"192.0.2.1", peer}, {"192.0.2.1, 10.0.0.1", "192.0.2.1"}, {"198.51.100.9, 192.0.2.1, 10.0.0.1", "192.0.2.1"}},
	} {
		e := newEdge(t, func(g *gateway.Gateway) { g.TrustedHops = hops })
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
	e := newEdge(t, func(g *gateway.Gateway) {
		g.TrustedHops = 1
		g.Failures = gateway.Rate{PerMinute: 60, Burst: 5}
	})
	codes := map[string]int{}
	for i := range 8 {
		codes[e.do(t, "GET", "/api/tools", "", with(bearer(unknown), []string{"X-Forwarded-For", fmt.Sprintf("2001:db8::%x:%x", i, i)})...).code()]++
	}
	if codes["E_AUTH_INVALID"] != 5 || codes["E_RATE_LIMIT"] != 3 {
		t.Errorf("answers %v", codes)
	}
	for _, other := range []string{"2001:db8:0:1::1", "192.0.2.1"} {
		if r := e.do(t, "GET", "/api/tools", "", with(bearer(unknown), []string{"X-Forwarded-For", other})...); r.code() != "E_AUTH_INVALID" {
			t.Errorf("%s pays for others: %s", other, r.body)
		}
	}
}

// TestVisitorsHoldNoOthers lets people who are not signed in hold as many pages as they can.
func TestVisitorsHoldNoOthers(t *testing.T) {
	t.Parallel()
	const each, all = 64, 128
	waits := make(chan struct{})
	h := newHouse(t, func(g *gateway.Gateway) { g.TrustedHops = 1 })
	h.mu.Lock()
	h.waits = waits
	h.mu.Unlock()
	from := func(n int) []string { return []string{"X-Forwarded-For", fmt.Sprintf("192.0.2.%d", n)} }
	var holding sync.WaitGroup
	var mu sync.Mutex
	statuses := map[int]int{}
	for i := range all {
		holding.Go(func() {
			r := h.visit(t, "GET", "/login/waits", "", from(i/each)...)
			mu.Lock()
			defer mu.Unlock()
			statuses[r.status]++
		})
		if i == each-1 {
			hubtest.Eventually(t, "one network has its share", func() bool { return h.count() == each })
			if r := h.visit(t, "GET", "/login", "", from(0)...); r.status != http.StatusTooManyRequests || r.code() != "E_RATE_LIMIT" || r.header.Get("Retry-After") == "" {
				t.Errorf("beyond a network's share: %d %s", r.status, r.body)
			}
			if r := h.visit(t, "GET", "/login", "", from(1)...); r.status != http.StatusOK {
				t.Errorf("another network: %d %s", r.status, r.body)
			}
		}
	}
	hubtest.Eventually(t, "visitors have all their places", func() bool { return h.count() == all+1 })
	if r := h.visit(t, "GET", "/login", "", from(200)...); r.status != http.StatusTooManyRequests {
		t.Errorf("beyond the share of all: %d", r.status)
	}
	if r := h.visit(t, "GET", "/drafts", "", session(reviewerSession)...); r.status != http.StatusOK {
		t.Errorf("somebody who is signed in: %d", r.status)
	}
	if r := h.do(t, "POST", "/api/tools/search_echo", `{"text":"x"}`, bearer(allScopes)...); r.status != http.StatusOK {
		t.Errorf("an agent: %s", r.body)
	}
	close(waits)
	holding.Wait()
	if statuses[http.StatusOK] != all {
		t.Errorf("%v", statuses)
	}
	if r := h.visit(t, "GET", "/login", "", from(0)...); r.status != http.StatusOK {
		t.Errorf("when they have left: %d", r.status)
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
		if _, err := io.WriteString(conn, "POST /login HTTP/1.1\r\nHost: hub\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 1000\r\n\r\nemail="); err != nil {
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
