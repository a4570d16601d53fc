package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"testing"
	"time"

	"pgregory.net/rapid"

	"hub.internal/services/gateway"
)

func user(rate gateway.Rate) []gateway.Bucket {
	return []gateway.Bucket{{Scope: "user", Key: "u", Rate: rate}, {Scope: "service", Key: "s", Rate: gateway.Rate{PerMinute: 1200, Burst: 300}}}
}

func TestBurstThenRate(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	m := gateway.NewMemory(func() time.Time { return now })
	buckets := user(gateway.Rate{PerMinute: 120, Burst: 60})
	for i := range 60 {
		if d := m.Take(t.Context(), buckets); d.Refused != "" || d.States[0].Remaining != 59-i {
			t.Fatalf("call %d: %+v", i, d)
		}
	}
	d := m.Take(t.Context(), buckets)
	if d.Refused != "user" || d.RetryAfter != 500*time.Millisecond {
		t.Fatalf("call 61: %+v", d)
	}
	now = now.Add(d.RetryAfter - time.Microsecond)
	if d := m.Take(t.Context(), buckets); d.Refused == "" || d.RetryAfter != time.Microsecond {
		t.Errorf("a microsecond early: %+v", d)
	}
	now = now.Add(time.Microsecond)
	if d := m.Take(t.Context(), buckets); d.Refused != "" {
		t.Errorf("exactly after RetryAfter: %+v", d)
	}
}

// TestRefusedCallsAreFree holds that a call refused by one bucket charges none.
func TestRefusedCallsAreFree(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	m := gateway.NewMemory(func() time.Time { return now })
	one := gateway.Rate{PerMinute: 60, Burst: 1}
	for range 400 {
		m.Take(t.Context(), user(one))
	}
	if d := m.Take(t.Context(), []gateway.Bucket{{Scope: "service", Key: "s", Rate: gateway.Rate{PerMinute: 1200, Burst: 300}}}); d.States[0].Remaining != 298 {
		t.Errorf("the service bucket was charged for refused calls: %+v", d)
	}
}

// TestNeverMoreThanBurstPlusRate is the limit's promise, for any arrival times.
func TestNeverMoreThanBurstPlusRate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := gateway.Rate{PerMinute: rapid.IntRange(1, 6000).Draw(t, "rate"), Burst: rapid.IntRange(1, 100).Draw(t, "burst")}
		start := time.Unix(1_000_000, 0)
		now := start
		m := gateway.NewMemory(func() time.Time { return now })
		buckets := []gateway.Bucket{{Scope: "user", Key: "u", Rate: rate}}
		allowed := 0
		for _, gap := range rapid.SliceOfN(rapid.Int64Range(0, int64(time.Second)), 1, 300).Draw(t, "gaps") {
			now = now.Add(time.Duration(gap))
			if d := m.Take(context.Background(), buckets); d.Refused == "" {
				allowed++
			} else if d.RetryAfter <= 0 {
				t.Fatalf("refused without a time to wait: %+v", d)
			}
		}
		if most := rate.Burst + int(now.Sub(start)/buckets[0].Interval()) + 1; allowed > most {
			t.Fatalf("%d calls allowed, at most %d may be", allowed, most)
		}
	})
}

type flaky struct{ err error }

func (f *flaky) Take(context.Context, []gateway.Bucket) (gateway.Decision, error) {
	return gateway.Decision{States: []gateway.State{}}, f.err
}
func (f *flaky) Ping(context.Context) error { return f.err }

func TestFallbackLimitsInMemoryUntilTheSharedOneIsBack(t *testing.T) {
	shared := &flaky{err: errors.New("down")}
	reports := make(chan bool, 2)
	f := gateway.NewFallback(shared, gateway.NewMemory(time.Now), func(down bool, _ error) { reports <- down })
	buckets := user(gateway.Rate{PerMinute: 1, Burst: 2})
	var refused int
	for range 5 {
		if f.Take(t.Context(), buckets).Refused != "" {
			refused++
		}
	}
	if refused != 3 || !f.Down() || !<-reports {
		t.Fatalf("%d refused while the shared limiter is down", refused)
	}
	shared.err = nil
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- f.Run(ctx) }()
	if <-reports {
		t.Error("reported down twice")
	}
	if f.Down() || f.Take(t.Context(), buckets).Refused != "" {
		t.Error("the shared limiter is not used again")
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestLimitAnswer(t *testing.T) {
	e := newEdge(t)
	first := e.do(t, "POST", "/api/tools/search_echo", `{"text":"x"}`, bearer(tight)...)
	if got := first.header.Get("RateLimit-Policy"); got != `"user";q=6;w=60, "service";q=600000;w=60` {
		t.Errorf("RateLimit-Policy %s", got)
	}
	if got := first.header.Get("RateLimit"); got != `"user";r=1;t=10, "service";r=9999;t=1` {
		t.Errorf("RateLimit %s", got)
	}
	e.do(t, "GET", "/api/tools", "", bearer(tight)...)
	r := e.do(t, "POST", "/api/tools/search_echo", `{"text":"x"}`, bearer(tight)...)
	var details struct {
		RetryAfter int
		Scope      string
	}
	if err := json.Unmarshal(r.env.Error.Details, &details); err != nil || r.status != http.StatusTooManyRequests || details.Scope != "user" || details.RetryAfter < 9 || r.header.Get("Retry-After") == "" {
		t.Errorf("the catalog counts too, and a refusal says when to come back: %d %s", r.status, r.body)
	}
	if r := e.do(t, "POST", "/api/tools/search_echo", `{"text":"x"}`, append(bearer(tight), "X-External-User-Id", "other")...); r.status != 200 {
		t.Errorf("another user of the same service has a bucket of its own: %s", r.body)
	}
}
