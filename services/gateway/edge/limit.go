package edge

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"strconv"
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
	// Name is whose it is: bucketName.
	Name string
	Rate Rate
}

// Key is where the bucket is kept. It holds the limit: how far ahead of now a bucket may run means nothing to another
// limit, so that calls with two limits on one name would count against each other's tolerance.
func (b Bucket) Key() string {
	return b.Name + ":" + strconv.Itoa(b.Rate.PerMinute) + "/" + strconv.Itoa(b.Rate.Burst)
}

// bucketName names a bucket. All of a group have one hash tag, and so one place in a cluster.
func bucketName(group, member string) string {
	return "rl:{" + namePart(group) + "}:" + namePart(member)
}

// longestName is how much of what somebody calls themselves a bucket's name holds, in bytes.
const longestName = 80

// namePart is a text as a part of a bucket's name: as it is where it is short and plain, else its digest, so that nobody
// chooses how much a name takes, or ends the part before theirs. No text is the digest of another: that begins with a #.
func namePart(text string) string {
	plain := text != "" && len(text) <= longestName
	for i := 0; plain && i < len(text); i++ {
		plain = text[i] > ' ' && text[i] <= '~' && !strings.ContainsRune("{}#", rune(text[i]))
	}
	if plain {
		return text
	}
	sum := sha256.Sum256([]byte(text))
	return "#" + hex.EncodeToString(sum[:16])
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
	seconds := WholeSeconds(d.RetryAfter)
	return fault.New(fault.RateLimit, "Too many calls: the %s limit is reached. Try again in %d s.", d.Refused, seconds).
		With(map[string]any{"retryAfter": seconds, "scope": d.Refused}).After(time.Duration(seconds) * time.Second)
}

// WholeSeconds rounds a time to wait up to seconds, at least 1.
func WholeSeconds(d time.Duration) int { return max(int(math.Ceil(d.Seconds())), 1) }

// headers writes RateLimit-Policy and RateLimit (draft-ietf-httpapi-ratelimit-headers-11).
func (d Decision) headers(h http.Header) {
	if len(d.States) == 0 {
		return
	}
	var policies, limits []byte
	for i, s := range d.States {
		if i > 0 {
			policies, limits = append(policies, ", "...), append(limits, ", "...)
		}
		policies = fmt.Appendf(policies, `"%s";q=%d;w=60`, s.Bucket.Scope, s.Bucket.Rate.PerMinute)
		limits = fmt.Appendf(limits, `"%s";r=%d;t=%d`, s.Bucket.Scope, s.Remaining, int(math.Ceil(s.Reset.Seconds())))
	}
	h.Set("RateLimit-Policy", string(policies))
	h.Set("RateLimit", string(limits))
}

// decide is GCRA over all buckets of a call, on theoretical arrival times in
// microseconds (tats). They are changed in place when the call is allowed, and where they
// cannot be: one that lies further ahead than its bucket's tolerance, because a clock went back or
// somebody wrote it, is as far ahead as may be. The Redis script is the same arithmetic; a test
// holds them to one another.
func decide(now int64, buckets []Bucket, tats []int64) Decision {
	var d Decision
	var wait int64
	for i, b := range buckets {
		cost, tolerance := b.Interval().Microseconds(), b.Tolerance().Microseconds()
		tats[i] = min(max(tats[i], now), now+tolerance)
		if early := tats[i] + cost - now - tolerance; early > wait {
			wait, d.Refused = early, b.Scope
		}
	}
	d.RetryAfter = time.Duration(wait) * time.Microsecond
	for i, b := range buckets {
		if d.Refused == "" {
			tats[i] += b.Interval().Microseconds()
		}
		d.States = append(d.States, StateOf(b, time.Duration(tats[i]-now)*time.Microsecond))
	}
	return d
}

// StateOf describes a bucket whose theoretical arrival time lies ahead by this much.
func StateOf(b Bucket, ahead time.Duration) State {
	return State{Bucket: b, Remaining: int(max(b.Tolerance()-ahead, 0) / b.Interval()), Reset: ahead}
}

// Memory limits in this process alone. It keeps a bucket from the first call that is charged to it until it is full
// again, and some time longer: at most as many as twice those that are not full, and minSweep. A call makes a bucket only
// when all of its buckets allow it, and takes one interval to be forgotten, so that at any moment a service has no more
// buckets of users than its own limit lets calls through in a user's interval: burst + rate × interval, which is 310
// with the limits that keys are given when nothing is said.
type Memory struct {
	now   func() time.Time
	mu    sync.Mutex
	tats  map[string]int64
	sweep int // how many buckets there are when it looks for those that are full again
}

// minSweep is how many buckets are too few to look for those that are full again.
const minSweep = 10_000

// NewMemory returns a limiter on the given clock.
func NewMemory(now func() time.Time) *Memory {
	return &Memory{now: now, tats: map[string]int64{}, sweep: minSweep}
}

// Take implements Limiter.
func (m *Memory) Take(_ context.Context, buckets []Bucket) Decision {
	keys, tats, known := make([]string, len(buckets)), make([]int64, len(buckets)), make([]bool, len(buckets))
	for i, b := range buckets {
		keys[i] = b.Key()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now().UnixMicro()
	for i, key := range keys {
		tats[i], known[i] = m.tats[key]
	}
	d := decide(now, buckets, tats)
	for i, key := range keys {
		if known[i] || d.Refused == "" {
			m.tats[key] = tats[i]
		}
	}
	if len(m.tats) > m.sweep {
		maps.DeleteFunc(m.tats, func(_ string, tat int64) bool { return tat <= now })
		m.sweep = max(minSweep, 2*len(m.tats)) // so that looking costs a call nothing on average
	}
	return d
}

// ErrUndecided is why a Shared limiter that works has not decided about a call: something is wrong with its buckets alone.
var ErrUndecided = errors.New("the call's buckets cannot be read")

// Shared is a limiter that other replicas share, and that may fail.
type Shared interface {
	// Take is Limiter's, with ErrUndecided or an error that tells that it decides nothing at all.
	Take(ctx context.Context, buckets []Bucket) (Decision, error)
	// Ping tells whether it decides about calls.
	Ping(ctx context.Context) error
}

// Fallback uses Shared while it answers, and the same limits in memory until it is
// back: no call fails, and none is free, because Redis is down. A call whose buckets alone
// are at fault is judged in memory, and no other.
type Fallback struct {
	shared      Shared
	memory      *Memory
	unreachable atomic.Bool
	report      func(down bool, err error)
}

// How the shared limiter is tried again while it is unreachable: the pause doubles from one to the other.
const (
	// probeShared is how often a limiter that is down is asked whether it is back.
	probeShared = 200 * time.Millisecond
	// longestRest is the longest that a limiter which fails again and again is left alone before it is used again.
	longestRest = 10 * time.Second
)

// NewFallback combines both; report hears of each change.
func NewFallback(shared Shared, memory *Memory, report func(down bool, err error)) *Fallback {
	return &Fallback{shared: shared, memory: memory, report: report}
}

// Take implements Limiter.
func (f *Fallback) Take(ctx context.Context, buckets []Bucket) Decision {
	if !f.unreachable.Load() {
		d, err := f.shared.Take(ctx, buckets)
		if err == nil {
			return d
		}
		if ctx.Err() == nil && !errors.Is(err, ErrUndecided) && f.unreachable.CompareAndSwap(false, true) {
			f.report(true, err)
		}
	}
	return f.memory.Take(ctx, buckets)
}

// Unreachable tells whether Shared does not answer right now, and the limits hold in memory.
func (f *Fallback) Unreachable() bool { return f.unreachable.Load() }

// Run brings the shared limiter back when it answers again, until ctx ends. One that failed soon after it had come back, as
// on a machine that is too busy for it, rests twice as long the next time: nobody wants to hear of it five times a second.
func (f *Fallback) Run(ctx context.Context) error {
	tick := time.NewTicker(probeShared)
	defer tick.Stop()
	var pause backoff
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-tick.C:
			if pause.elapsed(now, f.unreachable.Load()) && f.shared.Ping(ctx) == nil {
				f.unreachable.Store(false)
				f.report(false, nil)
				pause.back, pause.until = now, time.Time{}
			}
		}
	}
}

// backoff is how long a limiter is left alone that is unreachable.
type backoff struct {
	length time.Duration
	until  time.Time // zero while the limiter answers
	back   time.Time // when it last came back
}

// elapsed tells whether a limiter is down and has rested. It is asked all the time.
func (b *backoff) elapsed(now time.Time, unreachable bool) bool {
	if !unreachable {
		b.until = time.Time{}
		return false
	}
	if b.until.IsZero() {
		b.length = min(2*b.length, longestRest)
		if b.back.IsZero() || now.Sub(b.back) > longestRest {
			b.length = probeShared
		}
		b.until = now.Add(b.length - probeShared)
	}
	return !now.Before(b.until)
}
