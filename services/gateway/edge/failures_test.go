package edge_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/fault"
	"hub.internal/services/gateway/edge"
)

// keyring knows the keys that begin with crm_good, and counts who is asked for.
type keyring struct {
	mu    sync.Mutex
	asked int
	gone  string
}

func (k *keyring) Verify(_ context.Context, key string) (edge.APIKey, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.asked++
	if !strings.HasPrefix(key, "crm_good") || key == k.gone {
		return edge.APIKey{}, fault.New(fault.AuthInvalid, "The API key is not valid.")
	}
	return edge.APIKey{
		ID:          key,
		Service:     "svc",
		User:        edge.Rate{PerMinute: 6000, Burst: 6000},
		ServiceWide: edge.Rate{PerMinute: 600_000, Burst: 600_000},
	}, nil
}

type nowhere struct{}

func (nowhere) Queue(audit.Entry) {}

// gate is the way of calls with API keys in a time of its own.
func gate(failures edge.Rate) (keys *keyring, call func(address, key string) fault.Code) {
	keys = &keyring{}
	g := &edge.Gateway{Limiter: edge.NewMemory(time.Now), Audit: nowhere{}, Logger: slog.New(slog.DiscardHandler), Failures: failures}
	way := g.Listing(edge.APIKeys{Keys: keys}, func(context.Context, any) (any, error) { return nil, nil })
	return keys, func(address, key string) fault.Code {
		c := &edge.Call{Started: time.Now(), Address: address, Credential: edge.Credential{APIKey: []string{key}}}
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
				limit := edge.Rate{PerMinute: 60, Burst: 10}
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
		keys, call := gate(edge.Rate{PerMinute: 60, Burst: 10})
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

// TestWhatHeldIsForgottenInItsNetworkAlone: what one network shows that holds, however much, takes no place of another's, nor of another
// kind; an hour later all of it is forgotten.
func TestWhatHeldIsForgottenInItsNetworkAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &edge.Gateway{Limiter: edge.NewMemory(time.Now), Failures: edge.Rate{PerMinute: 1, Burst: 1}}
		const most, address, crowd = 10_000, "192.0.2.7", "198.51.100.9"
		link := func(i int) []string { return []string{fmt.Sprint("/unsubscribe/", i)} }
		for i := range 20 {
			g.RecordSuccess("credentials", address, link(i))
			g.RecordSuccess("credentials", crowd, link(i))
		}
		for i := range 20_000 {
			g.RecordSuccess("pages", crowd, link(i))
		}
		known := func(kind, address string, n int) (known int) {
			for i := range n {
				if suspects, err := g.MayLookUp(kind, address, link(i)); err == nil && len(suspects) == 1 { // a bucket of its own
					known++
				}
			}
			return known
		}
		for _, from := range []string{address, crowd} {
			if n := known("credentials", from, 20); n != 20 {
				t.Errorf("of 20 keys of %s %d are known", from, n)
			}
		}
		if n := known("pages", crowd, 20_000); n != most {
			t.Errorf("of one network's links %d are known, want %d", n, most)
		}
		for i := range 90_000 {
			g.RecordSuccess("pages", fmt.Sprintf("2001:db8:%x:%x::1", i>>16, i&0xffff), link(i))
		}
		if n := edge.Proven(g); n != 100_000 {
			t.Errorf("of all networks %d are kept", n)
		}
		time.Sleep(time.Hour)
		g.RecordSuccess("pages", crowd, link(0))
		if n := edge.Proven(g); n != 1 {
			t.Errorf("an hour later %d are kept", n)
		}
	})
}
