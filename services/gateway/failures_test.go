package gateway_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"hub.internal/pkg/hubtest"
	"hub.internal/services/gateway"
	"hub.internal/services/gateway/edge"
)

// flood makes calls from four workers, and counts the answers.
func flood(calls int, call func(i int) string) map[string]int {
	var mu sync.Mutex
	var all sync.WaitGroup
	codes := map[string]int{}
	for worker := range 4 {
		all.Go(func() {
			for i := worker; i < calls; i += 4 {
				code := call(i)
				mu.Lock()
				codes[code]++
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return codes
}

// reach is how many look-ups a flood of four workers may make within one limit and ten of them, and what comes back meanwhile.
func reach(limit edge.Rate, since time.Time) int {
	return 11*limit.Burst + 4 + 1 + int(time.Since(since).Minutes()*float64(10*limit.PerMinute))
}

// TestBadTokensOfAKnownApp floods auth with tokens in the name of an app that somebody else of the network speaks for.
func TestBadTokensOfAKnownApp(t *testing.T) {
	t.Parallel()
	limit := edge.Rate{PerMinute: 6, Burst: 5}
	from := func(network string, credential []string) []string {
		return with(credential, []string{"X-Forwarded-For", network})
	}
	honest := func(s *till, network, app, sub string) {
		t.Helper()
		if r := s.do(t, "GET", "/v1/till", "", from(network, s.fresh(app, sub))...); r.status != http.StatusOK {
			t.Errorf("%s of %s in %s: %s", sub, app, network, r.body)
		}
	}
	for name, signature := range map[string]string{"bad": "E_AUTH_INVALID", "over": "E_AUTH_EXPIRED"} {
		// One of its own for each: what the first flood has used up comes back at the clock's pace.
		s := newTill(t, func(g *gateway.Gateway) { g.TrustedHops, g.Failures = 1, limit })
		for _, app := range []string{"shop", "other"} {
			honest(s, "192.0.2.1", app, "u-all")
		}
		s.set(func() { s.verified = 0 })
		start := time.Now()
		codes := flood(1000, func(i int) string {
			sub := fmt.Sprint("u-", i)
			return s.do(t, "GET", "/v1/till", "", from("192.0.2.1", bearer(token("shop", sub, fmt.Sprint("j-", i), name)))...).code()
		})
		s.set(func() {
			if most := 2 * reach(limit, start); s.verified > most { // the app's own way, and its network's
				t.Errorf("%s: auth was asked %d times of 1000, want at most %d", name, s.verified, most)
			}
		})
		if codes[signature] == 0 || codes["E_RATE_LIMIT"] < 700 || codes["E_RATE_LIMIT"]+codes[signature] != 1000 {
			t.Errorf("%s: answers %v", name, codes)
		}
		honest(s, "192.0.2.1", "shop", "u-all")   // a user who was there before
		honest(s, "192.0.2.1", "other", "u-some") // a user of an app that was
		honest(s, "192.0.2.2", "shop", "u-all")
		hubtest.Eventually(t, "what came back meanwhile is used up", func() bool {
			r := s.do(t, "GET", "/v1/till", "", from("192.0.2.1", bearer(token("shop", "x", "y", "bad")))...)
			return r.code() == "E_RATE_LIMIT" && r.header.Get("Retry-After") != ""
		})
	}
}

// TestGuessedLinksAreFew floods the pages that look up what an address has.
func TestGuessedLinksAreFew(t *testing.T) {
	t.Parallel()
	limit := edge.Rate{PerMinute: 6, Burst: 5}
	for _, path := range []string{"/unsubscribe/unknown%d", "/connect?t=unknown&n=%d", "/login/invitation?t=unknown&n=%d",
		"/login/oidc/callback?t=unknown&n=%d"} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, func(g *gateway.Gateway) { g.TrustedHops, g.Failures = 1, limit })
			from := func(network string) []string { return []string{"X-Forwarded-For", network} }
			see := func(network, method, path string, want int) {
				t.Helper()
				if r := h.visit(t, method, path, "", from(network)...); r.status != want {
					t.Errorf("%s %s of %s: %d, want %d", method, path, network, r.status, want)
				}
			}
			see("192.0.2.1", "GET", "/unsubscribe/known", 200)
			before, start := h.count(), time.Now()
			codes := flood(600, func(i int) string {
				return fmt.Sprint(h.visit(t, "GET", fmt.Sprintf(path, i), "", from("192.0.2.1")...).status)
			})
			if reached, most := h.count()-before, reach(limit, start); reached > most {
				t.Errorf("%d of 600 were looked up, want at most %d", reached, most)
			}
			if codes["404"] == 0 || codes["429"] < 400 || codes["404"]+codes["429"] != 600 {
				t.Errorf("answers %v", codes)
			}
			see("192.0.2.1", "POST", "/unsubscribe/known", 200)    // whose page was opened before
			see("192.0.2.1", "GET", "/unsubscribe/known?n=1", 200) // the same link
			see("192.0.2.2", "POST", "/unsubscribe/other", 200)    // beside it
			see("192.0.2.1", "GET", "/login", 200)
			if r := h.visit(t, "GET", "/drafts", "", with(from("192.0.2.1"), session(reviewerSession))...); r.status != http.StatusOK {
				t.Errorf("somebody who is signed in: %d", r.status)
			}
		})
	}
}

// TestGuessedSessionsAreFew floods auth with sessions.
func TestGuessedSessionsAreFew(t *testing.T) {
	t.Parallel()
	limit := edge.Rate{PerMinute: 6, Burst: 5}
	h := newHouse(t, func(g *gateway.Gateway) { g.TrustedHops, g.Failures = 1, limit })
	visit := func(network, secret string) seen {
		return h.visit(t, "GET", "/drafts", "", with([]string{"X-Forwarded-For", network}, session(secret))...)
	}
	if r := visit("192.0.2.1", reviewerSession); r.status != http.StatusOK {
		t.Fatal(r)
	}
	start := time.Now()
	codes := flood(600, func(i int) string { return visit("192.0.2.1", fmt.Sprintf("%043d", i)).code() })
	h.mu.Lock()
	if most := reach(limit, start); h.asked > most {
		t.Errorf("auth was asked %d times of 600, want at most %d", h.asked, most)
	}
	h.mu.Unlock()
	if codes["E_AUTH_INVALID"] == 0 || codes["E_RATE_LIMIT"] < 400 {
		t.Errorf("answers %v", codes)
	}
	h.clock.Advance(time.Minute) // nothing is remembered of the session but that it held
	for network, secret := range map[string]string{"192.0.2.1": reviewerSession, "192.0.2.2": adminSession} {
		if r := visit(network, secret); r.status != http.StatusOK && r.code() != "E_SCOPE" {
			t.Errorf("a session of %s: %d %s", network, r.status, r.body)
		}
	}
}
