package edge_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"hub.internal/services/gateway/edge"
)

func user(rate edge.Rate) []edge.Bucket {
	return []edge.Bucket{
		{Scope: "user", Name: "u", Rate: rate},
		{Scope: "service", Name: "s", Rate: edge.Rate{PerMinute: 1200, Burst: 300}},
	}
}

func TestBurstThenRate(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	m := edge.NewMemory(func() time.Time { return now })
	buckets := user(edge.Rate{PerMinute: 120, Burst: 60})
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
	m := edge.NewMemory(func() time.Time { return now })
	one := edge.Rate{PerMinute: 60, Burst: 1}
	for range 400 {
		m.Take(t.Context(), user(one))
	}
	if d := m.Take(
		t.Context(),
		[]edge.Bucket{{Scope: "service", Name: "s", Rate: edge.Rate{PerMinute: 1200, Burst: 300}}},
	); d.States[0].Remaining != 298 {
		t.Errorf("the service bucket was charged for refused calls: %+v", d)
	}
}

// TestNeverMoreThanBurstPlusRate is the limit's promise, for any arrival times.
func TestNeverMoreThanBurstPlusRate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := edge.Rate{PerMinute: rapid.IntRange(1, 6000).Draw(t, "rate"), Burst: rapid.IntRange(1, 100).Draw(t, "burst")}
		start := time.Unix(1_000_000, 0)
		now := start
		m := edge.NewMemory(func() time.Time { return now })
		buckets := []edge.Bucket{{Scope: "user", Name: "u", Rate: rate}}
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

// meter is a limit by itself, as a leaky bucket: what is in it runs out with time, and a call that does not fit is refused.
type meter struct {
	rate  edge.Rate
	level time.Duration
	at    time.Time
}

func (m *meter) fits(now time.Time) bool {
	m.level, m.at = max(0, m.level-now.Sub(m.at)), now
	return m.level+m.cost() <= m.cost()*time.Duration(m.rate.Burst)
}

func (m *meter) cost() time.Duration {
	return (time.Minute / time.Duration(m.rate.PerMinute)).Truncate(time.Microsecond)
}

func (m *meter) add() { m.level += m.cost() }

// TestKeysOfOneServiceHaveLimitsOfTheirOwn: keys whose limits differ get what each would get alone, whatever the others of
// their service do, for one external user or several.
func TestKeysOfOneServiceHaveLimitsOfTheirOwn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Unix(1_000_000, 0)
		limiter := edge.NewMemory(func() time.Time { return now })
		rate := rapid.Custom(func(t *rapid.T) edge.Rate {
			return edge.Rate{PerMinute: rapid.IntRange(1, 6000).Draw(t, "rate"), Burst: rapid.IntRange(1, 20).Draw(t, "burst")}
		})
		rates := rapid.SliceOfNDistinct(rate, 4, 8, rapid.ID[edge.Rate]).Draw(t, "limits")
		meters := map[string]*meter{} // by key and whom it acts for
		of := func(name string, r edge.Rate) *meter {
			if meters[name] == nil {
				meters[name] = &meter{rate: r, at: now}
			}
			return meters[name]
		}
		for range rapid.IntRange(1, 200).Draw(t, "calls") {
			now = now.Add(time.Duration(rapid.Int64Range(0, 200_000).Draw(t, "gap")) * time.Microsecond)
			key := rapid.IntRange(0, len(rates)/2-1).Draw(t, "key")
			who := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "external user")
			users, service := rates[2*key], rates[2*key+1]
			user, whole := of(fmt.Sprint(key, who), users), of(fmt.Sprint(key), service)
			d := limiter.Take(
				context.Background(),
				[]edge.Bucket{
					{Scope: "user", Name: "rl:{svc}:u:" + who, Rate: users},
					{Scope: "service", Name: "rl:{svc}:s", Rate: service},
				},
			)
			fitsUser, fitsWhole := user.fits(now), whole.fits(now)
			if allowed := fitsUser && fitsWhole; allowed != (d.Refused == "") {
				t.Fatalf("key %d for %s: %+v; alone it is allowed: %t", key, who, d, allowed)
			} else if allowed {
				user.add()
				whole.add()
			}
			for i, m := range []*meter{user, whole} {
				if d.States[i].Reset != m.level {
					t.Fatalf("key %d for %s: %s is used, alone %s", key, who, d.States[i].Reset, m.level)
				}
			}
		}
	})
}

// TestEveryExternalUserIsNoBucketForEver has a key call as fast as it may, each time for another external user.
func TestEveryExternalUserIsNoBucketForEver(t *testing.T) {
	users := edge.Rate{PerMinute: 120, Burst: 60}
	for service, most := range map[edge.Rate]int{ // twice the live ones: burst + rate × 0.5 s; and never fewer than are looked at
		{PerMinute: 1200, Burst: 300}:       10_001,
		{PerMinute: 600_000, Burst: 20_000}: 2 * 25_002,
	} {
		now := time.Unix(1_000_000, 0)
		m := edge.NewMemory(func() time.Time { return now })
		peak, allowed := 0, 0
		for i := 0; allowed < 70_000; i++ {
			b := []edge.Bucket{
				{Scope: "user", Name: fmt.Sprint("rl:{svc}:u:", i), Rate: users},
				{Scope: "service", Name: "rl:{svc}:s", Rate: service},
			}
			d := m.Take(t.Context(), b)
			if d.Refused == "user" {
				t.Fatalf("user %d pays for others: %+v", i, d)
			}
			if d.Refused == "" {
				allowed++
			}
			now = now.Add(d.RetryAfter)
			peak = max(peak, m.Buckets())
		}
		if peak > most {
			t.Errorf("%+v: %d buckets at once, want at most %d", service, peak, most)
		}
	}
}

func TestRefusedCallsMakeNoBucket(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	m := edge.NewMemory(func() time.Time { return now })
	service := edge.Bucket{Scope: "service", Name: "s", Rate: edge.Rate{PerMinute: 1, Burst: 1}}
	for i := range 1000 {
		m.Take(t.Context(), []edge.Bucket{{Scope: "user", Name: fmt.Sprint("u", i), Rate: edge.Rate{PerMinute: 1, Burst: 1}}, service})
	}
	if got := m.Buckets(); got != 2 {
		t.Errorf("%d buckets of one call that was allowed", got)
	}
}

// TestAClockThatGoesBackStopsNobody: a bucket further ahead than its tolerance is as far ahead as may be.
func TestAClockThatGoesBackStopsNobody(t *testing.T) {
	now := time.Unix(1_000_000_000, 0)
	m := edge.NewMemory(func() time.Time { return now })
	b := []edge.Bucket{{Scope: "user", Name: "u", Rate: edge.Rate{PerMinute: 60, Burst: 5}}}
	m.Take(t.Context(), b)
	now = time.Unix(1_000_000, 0)
	if d := m.Take(t.Context(), b); d.Refused != "user" || d.RetryAfter != time.Second {
		t.Errorf("when the clock has gone back: %+v", d)
	}
	now = now.Add(time.Second)
	if d := m.Take(t.Context(), b); d.Refused != "" {
		t.Errorf("after the time to wait: %+v", d)
	}
}

// TestNamesOfBuckets: whatever somebody calls themselves, the name of their bucket is short, printable, in the place of
// their service, and nobody else's.
func TestNamesOfBuckets(t *testing.T) {
	long := strings.Repeat("x", 200)
	members := []string{"a", "A", "a ", "a:b", "a@example.com", "ünï", "\x00", "a\r\nFLUSHALL", "}", "{", "{}", "#a", "", long, long + "y",
		strings.TrimPrefix(edge.BucketName("svc", long), "rl:{svc}:")}
	seen := map[string]string{}
	for _, group := range []string{"svc", "svc}", "svc}:a", "app/svc", "", long} {
		var place string
		for _, member := range members {
			name := edge.Bucket{Name: edge.BucketName(group, member), Rate: edge.Rate{PerMinute: 10_000_000, Burst: 10_000_000}}.Key()
			inside, _, closed := strings.Cut(strings.TrimPrefix(name, "rl:{"), "}:")
			if place == "" {
				place = inside
			}
			if strings.Trim(inside, "{}") != place || place == "" || !closed || len(name) > 200 ||
				strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' }) {
				t.Errorf("%q of %q: %q", member, group, name)
			}
			if other, twice := seen[name]; twice {
				t.Errorf("%q of %q has the bucket of %s", member, group, other)
			}
			seen[name] = fmt.Sprintf("%q of %q", member, group)
		}
	}
}

type flaky struct{ err error }

func (f *flaky) Take(context.Context, []edge.Bucket) (edge.Decision, error) {
	return edge.Decision{States: []edge.State{}}, f.err
}
func (f *flaky) Ping(context.Context) error { return f.err }

func TestFallbackLimitsInMemoryUntilTheSharedOneIsBack(t *testing.T) {
	shared := &flaky{err: errors.New("down")}
	reports := make(chan bool, 2)
	f := edge.NewFallback(shared, edge.NewMemory(time.Now), func(down bool, _ error) { reports <- down })
	buckets := user(edge.Rate{PerMinute: 1, Burst: 2})
	var refused int
	for range 5 {
		if f.Take(t.Context(), buckets).Refused != "" {
			refused++
		}
	}
	if refused != 3 || !f.Unreachable() || !<-reports {
		t.Fatalf("%d refused while the shared limiter is down", refused)
	}
	shared.err = nil
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- f.Run(ctx) }()
	if <-reports {
		t.Error("reported down twice")
	}
	if f.Unreachable() || f.Take(t.Context(), buckets).Refused != "" {
		t.Error("the shared limiter is not used again")
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// late answers whoever asks whether it is there, and no call in its time.
type late struct{}

func (late) Take(context.Context, []edge.Bucket) (edge.Decision, error) {
	return edge.Decision{}, context.DeadlineExceeded
}
func (late) Ping(context.Context) error { return nil }

// TestALimiterThatKeepsFailingRests: one that comes back and fails at once is tried ever more seldom, and at once again after
// it has held for a while.
func TestALimiterThatKeepsFailingRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reports atomic.Int64
		f := edge.NewFallback(late{}, edge.NewMemory(time.Now), func(bool, error) { reports.Add(1) })
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- f.Run(ctx) }()
		during := func(d time.Duration) int64 {
			reports.Store(0)
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
				f.Take(ctx, user(edge.Rate{PerMinute: 1, Burst: 1}))
			}
			return reports.Load()
		}
		if n := during(time.Minute); n < 10 || n > 25 {
			t.Errorf("%d changes in the first minute", n)
		}
		if n := during(time.Minute); n > 14 {
			t.Errorf("%d changes in the next", n)
		}
		time.Sleep(time.Minute) // nobody calls: it is up all the time
		if n := during(time.Second); n < 3 {
			t.Errorf("%d changes in a second after a minute without any", n)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestOneBrokenBucketIsNobodyElses: a call that the shared limiter cannot decide about is judged in memory, and it alone.
func TestOneBrokenBucketIsNobodyElses(t *testing.T) {
	shared := &flaky{err: fmt.Errorf("%w: WRONGTYPE", edge.ErrUndecided)}
	f := edge.NewFallback(shared, edge.NewMemory(time.Now), func(bool, error) { t.Error("the shared limiter is given up") })
	buckets := user(edge.Rate{PerMinute: 1, Burst: 1})
	if f.Take(t.Context(), buckets).Refused != "" || f.Take(t.Context(), buckets).Refused != "user" {
		t.Error("the limit does not hold in memory")
	}
	if f.Unreachable() {
		t.Error("the shared limiter is down")
	}
}
