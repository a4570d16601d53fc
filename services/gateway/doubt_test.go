package gateway_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/fault"
	"hub.internal/services/gateway"
)

// keyring knows the keys that begin with crm_good, and counts who is asked for.
type keyring struct {
	mu    sync.Mutex
	asked int
	gone  string
}

func (k *keyring) Verify(_ context.Context, key string) (gateway.APIKey, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.asked++
	if !strings.HasPrefix(key, "crm_good") || key == k.gone {
		return gateway.APIKey{}, fault.New(fault.AuthInvalid, "The API key is not valid.")
	}
	return gateway.APIKey{ID: key, Service: "svc", User: gateway.Rate{PerMinute: 6000, Burst: 6000}, ServiceWide: gateway.Rate{PerMinute: 600_000, Burst: 600_000}}, nil
}

type nowhere struct{}

func (nowhere) Queue(audit.Entry) {}

// gate is the way of calls with API keys in a time of its own.
func gate(failures gateway.Rate) (keys *keyring, call func(address, key string) fault.Code) {
	keys = &keyring{}
	g := &gateway.Gateway{Limiter: gateway.NewMemory(time.Now), Audit: nowhere{}, Logger: slog.New(slog.DiscardHandler), Failures: failures}
	way := g.Listing(gateway.APIKeys{Keys: keys}, func(context.Context, any) (any, error) { return nil, nil })
	return keys, func(address, key string) fault.Code {
		c := &gateway.Call{Started: time.Now(), Address: address, Credential: gateway.Credential{APIKey: []string{key}}}
		if _, err := way(context.Background(), c); err != nil {
			return fault.From(err).Code
		}
		return ""
	}
}

func keyNamed(name string, n int) string { return fmt.Sprintf("crm_%s%0*d", name, 42-len(name), n) }

// TestAFloodOfBadKeysReachesAuthSeldom: of a network that shows bad keys without end, auth is asked about the limit and ten
// times as much, and then about ten times the rate; who has shown a good key before does not notice, others nowhere do, and
// soon after it nobody does.
func TestAFloodOfBadKeysReachesAuthSeldom(t *testing.T) {
	for name, c := range map[string]struct {
		address func(i int) string
		share   int // of the limit of a network
	}{
		"one address": {func(int) string { return "192.0.2.1" }, 1},
		"a /56":       {func(i int) string { return fmt.Sprintf("2001:db8:0:%x::1", i%256) }, 4},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				limit := gateway.Rate{PerMinute: 60, Burst: 10}
				keys, call := gate(limit)
				honest := func(address string, n int) {
					t.Helper()
					keys.mu.Lock()
					before := keys.asked
					keys.mu.Unlock()
					if code := call(address, keyNamed("good", n)); code != "" {
						t.Fatalf("good key %d of %s: %s", n, address, code)
					}
					keys.mu.Lock()
					keys.asked = before
					keys.mu.Unlock()
				}
				honest(c.address(0), 1)
				const seconds, each = 20, 500
				codes := map[fault.Code]int{}
				for i := range seconds * each {
					codes[call(c.address(i), keyNamed("bad", i))]++
					if i%each == 0 {
						honest(c.address(0), 1)
						honest("198.51.100.7", 100+i)
						honest("2001:db8:1::1", 100_000+i)
					}
					time.Sleep(time.Second / each)
				}
				perSecond := limit.PerMinute / 60
				if most := c.share * (11*limit.Burst + seconds*11*perSecond); keys.asked > most || keys.asked < c.share*10*limit.Burst {
					t.Errorf("auth was asked %d times of %d, want at most %d", keys.asked, seconds*each, most)
				}
				if told := codes[fault.AuthInvalid]; told > c.share*(limit.Burst+seconds*perSecond) || told == 0 || codes[""] != 0 {
					t.Errorf("answers %v", codes)
				}
				time.Sleep(15 * time.Second)
				honest(c.address(0), 2)
				honest(c.address(0), 3)
				if code := call(c.address(0), keyNamed("bad", 0)); code != fault.AuthInvalid {
					t.Errorf("a bad key after it: %s", code)
				}
			})
		})
	}
}

// TestWhatHeldIsNoPassForEver: a key that has held has a way of its own, which is bounded like any other.
func TestWhatHeldIsNoPassForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keys, call := gate(gateway.Rate{PerMinute: 60, Burst: 10})
		once := keyNamed("good", 1)
		if code := call("192.0.2.1", once); code != "" {
			t.Fatal(code)
		}
		keys.gone = once
		for range 5000 {
			call("192.0.2.1", once)
		}
		if keys.asked > 1+2*110+10 {
			t.Errorf("auth was asked %d times about a key that was revoked", keys.asked)
		}
	})
}

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
func reach(limit gateway.Rate, since time.Time) int {
	return 11*limit.Burst + 4 + 1 + int(time.Since(since).Minutes()*float64(10*limit.PerMinute))
}

// TestBadTokensOfAKnownApp floods auth with tokens in the name of an app that somebody else of the network speaks for.
func TestBadTokensOfAKnownApp(t *testing.T) {
	t.Parallel()
	limit := gateway.Rate{PerMinute: 6, Burst: 5}
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
		if r := s.do(t, "GET", "/v1/till", "", from("192.0.2.1", bearer(token("shop", "x", "y", "bad")))...); r.header.Get("Retry-After") == "" || r.code() != "E_RATE_LIMIT" {
			t.Errorf("%s: %d %s", name, r.status, r.body)
		}
	}
}

// TestGuessedLinksAreFew floods the pages that look up what an address has.
func TestGuessedLinksAreFew(t *testing.T) {
	t.Parallel()
	limit := gateway.Rate{PerMinute: 6, Burst: 5}
	for _, path := range []string{"/unsubscribe/unknown%d", "/connect?t=unknown&n=%d", "/login/invitation?t=unknown&n=%d", "/login/oidc/callback?t=unknown&n=%d"} {
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
			see("192.0.2.1", "POST", "/unsubscribe/known", 200) // whose page was opened before
			see("192.0.2.2", "POST", "/unsubscribe/other", 200) // beside it
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
	limit := gateway.Rate{PerMinute: 6, Burst: 5}
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
