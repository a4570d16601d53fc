// Package lease saves trips to the shared rate limits: while a bucket is far from its limit, one trip takes a share of what
// is left for this replica, and the calls of the next moment are charged to that. Near the limit each call asks, and calls
// that wait at the same moment ask together. There are never more calls over all replicas than the exact GCRA lets
// through: a share counts as if it were used at the end of its time, and what was not used of it, or earlier, is given back.
package lease

import (
	"context"
	"strings"
	"sync"
	"time"

	"hub.internal/services/gateway/edge"
)

const (
	// Longest is how long a share may be used.
	Longest = 200 * time.Millisecond
	// forgetAfter is how long a set of buckets is remembered after its last call.
	forgetAfter = time.Second
	// sweepEvery is how often what has lapsed is looked for: soon enough that it is given back while it can be.
	sweepEvery = 50 * time.Millisecond
)

// Ask is what a store is asked, of all buckets of a call together.
type Ask struct {
	// Calls are those that wait; 0 only gives back.
	Calls int
	// Share is how many more are wanted for the next Longest. A store gives at most a tenth of what is left in any of the
	// buckets after Calls, and none where a tenth is less than one.
	Share int
	// Back is what is left of the share before, or nil.
	Back *Back
}

// Back is a share's end.
type Back struct {
	Unused int
	// Tats are the buckets' theoretical arrival times that the share has left, and Early is how much less each would be
	// had the share counted from when it was used. It is given back where nobody has used the bucket since.
	Tats  []int64
	Early []time.Duration
	// Until is the end of the share's time by the store's clock, in microseconds: until then Unused is given back in any
	// case, since what others did in between came before the share.
	Until int64
}

// Answer is what a store has given.
type Answer struct {
	// Calls and Share are how many were given of those asked for.
	Calls, Share int
	// Refused is the place of the bucket that refuses the next call, or -1, and Wait is how long it does.
	Refused int
	Wait    time.Duration
	// Hold is how long the share may be used: Longest, or a tenth of what is left as time, if that is less.
	Hold time.Duration
	// Now is the store's clock, Tats are the buckets' theoretical arrival times after this, in microseconds, and Before is
	// how far each was ahead of Now before this.
	Now    int64
	Tats   []int64
	Before []time.Duration
}

// Store is the shared limits.
type Store interface {
	// Charge gives back, and charges all buckets or none. Its errors are edge.Shared's.
	Charge(ctx context.Context, buckets []edge.Bucket, ask Ask) (Answer, error)
	// Ping tells whether it decides about calls.
	Ping(ctx context.Context) error
}

// Leases implements edge.Shared.
type Leases struct {
	Store
	now func() time.Time

	mu   sync.Mutex
	sets map[string]*set
}

var _ edge.Shared = (*Leases)(nil)

// New returns the limits of a store by the given clock.
func New(store Store, now func() time.Time) *Leases {
	return &Leases{Store: store, now: now, sets: map[string]*set{}}
}

// set is what calls with the same buckets share.
type set struct {
	buckets []edge.Bucket
	// counted calls came since began, and before calls in the time before that: a share is no larger, so that one call a
	// second takes none, and little is given back.
	began           time.Time
	counted, before int
	lastCall        time.Time

	share share
	// flying is the trip on its way, waiting are the calls that go with the next one; nil when there are none.
	flying, waiting *trip
}

// share is what a replica may still let through.
type share struct {
	calls    int
	asked    time.Time // when its trip began: no later than the store's Now
	lastUsed time.Time
	answer   Answer
}

// trip is one question for several calls.
type trip struct {
	calls  int
	done   chan struct{}
	answer Answer
	held   int // how much of the answer's share this replica holds
	err    error
}

// Take implements edge.Shared.
func (l *Leases) Take(ctx context.Context, buckets []edge.Bucket) (edge.Decision, error) {
	l.mu.Lock()
	s, now := l.of(buckets), l.now()
	s.count(now)
	if s.share.calls > 0 && now.Before(s.share.end()) {
		s.share.calls--
		s.share.lastUsed = now
		d := s.allowed(now)
		l.mu.Unlock()
		return d, nil
	}
	t, leads := s.waiting, s.waiting == nil
	if leads {
		t = &trip{done: make(chan struct{})}
		s.waiting = t
	}
	place := t.calls
	t.calls++
	before := s.flying
	l.mu.Unlock()
	if leads {
		// Others wait for this trip: it goes on when the one who leads it leaves. The store's patience bounds it.
		l.travel(context.WithoutCancel(ctx), s, t, before)
	}
	<-t.done
	return s.decision(t, place)
}

// travel asks for all who have come until the trip before is over.
func (l *Leases) travel(ctx context.Context, s *set, t, before *trip) {
	defer close(t.done)
	if before != nil {
		<-before.done
	}
	l.mu.Lock()
	s.waiting, s.flying = nil, t
	began := l.now()
	if s.share.calls >= t.calls && began.Before(s.share.end()) { // the trip before has brought it
		s.share.calls -= t.calls
		s.share.lastUsed = began
		t.answer, t.held = s.share.answer, s.share.calls
		t.answer.Calls = t.calls
		s.flying = nil
		l.mu.Unlock()
		return
	}
	ask := Ask{Calls: t.calls, Share: max(s.before, s.counted-t.calls), Back: s.share.back()}
	s.share = share{}
	l.mu.Unlock()
	t.answer, t.err = l.Charge(ctx, s.buckets, ask)
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.flying == t {
		s.flying = nil
	}
	if t.err == nil && t.answer.Share > 0 {
		t.held = t.answer.Share
		s.share = share{calls: t.answer.Share, asked: began, lastUsed: began, answer: t.answer}
	}
}

// of is the set of some buckets.
func (l *Leases) of(buckets []edge.Bucket) *set {
	var b strings.Builder
	for _, bucket := range buckets {
		b.WriteString(bucket.Key())
		b.WriteByte(' ')
	}
	s := l.sets[b.String()]
	if s == nil {
		s = &set{buckets: buckets}
		l.sets[b.String()] = s
	}
	return s
}

// count remembers a call.
func (s *set) count(now time.Time) {
	switch since := now.Sub(s.began); {
	case since >= 2*Longest:
		s.before, s.counted, s.began = 0, 0, now
	case since >= Longest:
		s.before, s.counted, s.began = s.counted, 0, now
	}
	s.counted++
	s.lastCall = now
}

func (s *share) end() time.Time { return s.asked.Add(s.answer.Hold) }

// back is what a share gives back; nil for nothing.
func (s *share) back() *Back {
	if s.answer.Tats == nil {
		return nil
	}
	b := &Back{Unused: s.calls, Tats: s.answer.Tats, Until: s.answer.Now + s.answer.Hold.Microseconds()}
	for i := range s.answer.Before {
		b.Early = append(b.Early, s.answer.early(i, s.lastUsed.Sub(s.asked)))
	}
	return b
}

// early is how much later a bucket's time is than it would be, had its share counted from when it was used last, which is that
// long after Now.
func (a Answer) early(bucket int, used time.Duration) time.Duration {
	if a.Share == 0 {
		return 0
	}
	ahead := a.Before[bucket]
	return max(ahead, a.Hold) - max(ahead, used)
}

// allowed is the decision about a call of the share.
func (s *set) allowed(now time.Time) edge.Decision {
	return edge.Decision{States: s.states(s.share.answer, now.Sub(s.share.asked), s.share.calls)}
}

// states describes the buckets some time after an answer, of whose share this replica holds some calls.
func (s *set) states(a Answer, since time.Duration, held int) (states []edge.State) {
	for i, b := range s.buckets {
		ahead := time.Duration(a.Tats[i]-a.Now)*time.Microsecond - a.early(i, since) - time.Duration(held)*b.Interval()
		states = append(states, edge.StateOf(b, max(ahead-since, 0)))
	}
	return states
}

// decision is what a trip means for the call at a place of it.
func (s *set) decision(t *trip, place int) (edge.Decision, error) {
	if t.err != nil {
		return edge.Decision{}, t.err
	}
	d := edge.Decision{States: s.states(t.answer, 0, t.held)}
	if place >= t.answer.Calls {
		d.Refused, d.RetryAfter = s.buckets[t.answer.Refused].Scope, t.answer.Wait
	}
	return d, nil
}

// Run gives back what was not used in time, and forgets sets that nobody calls with, until ctx ends; then it gives back all.
func (l *Leases) Run(ctx context.Context) error {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			l.sweep(context.WithoutCancel(ctx), true)
			return nil
		case <-tick.C:
			l.sweep(ctx, false)
		}
	}
}

// sweep gives back what has lapsed, or all. A store that does not answer keeps it: it lapses there by itself.
func (l *Leases) sweep(ctx context.Context, all bool) {
	type over struct {
		buckets []edge.Bucket
		back    *Back
	}
	var lapsed []over
	l.mu.Lock()
	now := l.now()
	for key, s := range l.sets {
		// The last quarter of a share's time is left for the way back.
		if s.share.calls > 0 && (all || now.Sub(s.share.asked) >= s.share.answer.Hold*3/4) {
			lapsed = append(lapsed, over{s.buckets, s.share.back()})
			s.share = share{}
		}
		if now.Sub(s.lastCall) > forgetAfter && s.flying == nil && s.waiting == nil {
			delete(l.sets, key)
		}
	}
	l.mu.Unlock()
	for _, o := range lapsed {
		if _, err := l.Charge(ctx, o.buckets, Ask{Back: o.back}); err != nil {
			return
		}
	}
}
