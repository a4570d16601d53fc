package gateway

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"hub.internal/pkg/fault"
)

// Rate is a limit: PerMinute calls in the long run, Burst of them at once.
type Rate struct{ PerMinute, Burst int }

// Bucket is what a call counts against.
type Bucket struct {
	// Scope names the bucket to the caller: user, service or address.
	Scope string
	Key   string
	Rate  Rate
}

// Interval is the time that one call costs, in whole microseconds.
func (b Bucket) Interval() time.Duration {
	return max((time.Minute / time.Duration(max(b.Rate.PerMinute, 1))).Truncate(time.Microsecond), time.Microsecond)
}

// Tolerance is how far ahead of now a bucket may run: the burst.
func (b Bucket) Tolerance() time.Duration {
	return b.Interval() * time.Duration(max(b.Rate.Burst, 1))
}

// State is a bucket after a decision.
type State struct {
	Bucket Bucket
	// Remaining calls may follow at once; after Reset the whole burst may.
	Remaining int
	Reset     time.Duration
}

// Decision is the answer of a limiter for all buckets of a call together: refused
// by one, the call is charged to none.
type Decision struct {
	States []State
	// Refused is the scope of the bucket that refuses; empty when the call may go on.
	Refused    string
	RetryAfter time.Duration
}

// Limiter decides by GCRA (the generic cell rate algorithm, ITU-T I.371): a bucket is one number, the
// theoretical arrival time of its next call.
type Limiter interface {
	// Take charges one call to each bucket, or to none.
	Take(ctx context.Context, buckets []Bucket) Decision
}

// Refusal is nil, or E_RATE_LIMIT with details {retryAfter, scope}.
func (d Decision) Refusal() error {
	if d.Refused == "" {
		return nil
	}
	seconds := wholeSeconds(d.RetryAfter)
	return fault.New(fault.RateLimit, "Too many calls: the %s limit is reached. Try again in %d s.", d.Refused, seconds).
		With(map[string]any{"retryAfter": seconds, "scope": d.Refused}).After(time.Duration(seconds) * time.Second)
}

func wholeSeconds(d time.Duration) int { return max(int(math.Ceil(d.Seconds())), 1) }

// headers writes RateLimit-Policy and RateLimit (draft-ietf-httpapi-ratelimit-headers-11).
func (d Decision) headers(h http.Header) {
	if len(d.States) == 0 {
		return
	}
	policies, limits := make([]string, len(d.States)), make([]string, len(d.States))
	for i, s := range d.States {
		policies[i] = fmt.Sprintf(`"%s";q=%d;w=60`, s.Bucket.Scope, s.Bucket.Rate.PerMinute)
		limits[i] = fmt.Sprintf(`"%s";r=%d;t=%d`, s.Bucket.Scope, s.Remaining, int(math.Ceil(s.Reset.Seconds())))
	}
	h.Set("RateLimit-Policy", strings.Join(policies, ", "))
	h.Set("RateLimit", strings.Join(limits, ", "))
}

// decide is GCRA over all buckets of a call, on theoretical arrival times in
// microseconds (tats, changed in place when the call is allowed). The Redis script
// is the same arithmetic; a test holds them to one another.
func decide(now int64, buckets []Bucket, tats []int64) Decision {
	var d Decision
	var wait int64
	for i, b := range buckets {
		early := max(tats[i], now) + b.Interval().Microseconds() - now - b.Tolerance().Microseconds()
		if early > 0 && early > wait {
			wait, d.Refused = early, b.Scope
		}
	}
	d.RetryAfter = time.Duration(wait) * time.Microsecond
	for i, b := range buckets {
		tat := max(tats[i], now)
		if d.Refused == "" {
			tat += b.Interval().Microseconds()
			tats[i] = tat
		}
		d.States = append(d.States, StateOf(b, time.Duration(tat-now)*time.Microsecond))
	}
	return d
}

// StateOf describes a bucket whose theoretical arrival time lies ahead by this much.
func StateOf(b Bucket, ahead time.Duration) State {
	return State{Bucket: b, Remaining: int(max(b.Tolerance()-ahead, 0) / b.Interval()), Reset: ahead}
}

// Memory limits in this process alone.
type Memory struct {
	now  func() time.Time
	mu   sync.Mutex
	tats map[string]int64
}

// maxBuckets is when Memory looks for buckets that are full again.
const maxBuckets = 100_000

// NewMemory returns a limiter on the given clock.
func NewMemory(now func() time.Time) *Memory { return &Memory{now: now, tats: map[string]int64{}} }

// Take implements Limiter.
func (m *Memory) Take(_ context.Context, buckets []Bucket) Decision {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now().UnixMicro()
	if len(m.tats) > maxBuckets {
		for key, tat := range m.tats {
			if tat <= now {
				delete(m.tats, key)
			}
		}
	}
	tats := make([]int64, len(buckets))
	for i, b := range buckets {
		tats[i] = m.tats[b.Key]
	}
	d := decide(now, buckets, tats)
	for i, b := range buckets {
		m.tats[b.Key] = tats[i]
	}
	return d
}

// Shared is a limiter that other replicas share, and that may fail.
type Shared interface {
	Take(ctx context.Context, buckets []Bucket) (Decision, error)
	Ping(ctx context.Context) error
}

// Fallback uses Shared while it answers, and the same limits in memory until it is
// back: no call fails, and none is free, because Redis is down.
type Fallback struct {
	shared Shared
	memory *Memory
	down   atomic.Bool
	report func(down bool, err error)
}

// probeShared is how often a limiter that is down is asked whether it is back.
const probeShared = 200 * time.Millisecond

// NewFallback combines both; report hears of each change.
func NewFallback(shared Shared, memory *Memory, report func(down bool, err error)) *Fallback {
	return &Fallback{shared: shared, memory: memory, report: report}
}

// Take implements Limiter.
func (f *Fallback) Take(ctx context.Context, buckets []Bucket) Decision {
	if !f.down.Load() {
		d, err := f.shared.Take(ctx, buckets)
		if err == nil {
			return d
		}
		if ctx.Err() == nil && f.down.CompareAndSwap(false, true) {
			f.report(true, err)
		}
	}
	return f.memory.Take(ctx, buckets)
}

// Down tells whether the limits hold in memory right now.
func (f *Fallback) Down() bool { return f.down.Load() }

// Run brings the shared limiter back when it answers again, until ctx ends.
func (f *Fallback) Run(ctx context.Context) error {
	tick := time.NewTicker(probeShared)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if f.down.Load() && f.shared.Ping(ctx) == nil {
				f.down.Store(false)
				f.report(false, nil)
			}
		}
	}
}
