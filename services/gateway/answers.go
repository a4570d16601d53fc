package gateway

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"hub.internal/pkg/fault"
)

const (
	// answerTTL bounds how long what auth has taken back may live on when its notice is lost.
	answerTTL = 2 * time.Second
	// answerWait bounds one question to auth.
	answerWait = 3 * time.Second
	// stalePatience is how long a call waits for auth that could do with an older answer; none waits while auth is known to be out.
	stalePatience = 250 * time.Millisecond
	// outFor is how long auth is taken to be out after a question without an answer: until the next one has had its time.
	outFor = answerWait + time.Second
	// askEvery is how often auth is asked about one secret while it is out.
	askEvery = time.Second
	// maxAnswers bounds a cache; beyond it the cache starts anew.
	maxAnswers = 50_000
)

// answers asks auth about a secret and remembers a good answer for at most two seconds,
// counted from the question. Refusals are not remembered, nor is the secret itself.
//
// An older answer is of use only while auth cannot tell, and for no longer than stale allows.
type answers[V any] struct {
	ask    func(ctx context.Context, secret string) (V, error)
	now    func() time.Time
	flight singleflight.Group
	// stale is how old an answer may be at this moment that is given because auth cannot tell; nil allows none.
	stale func(now time.Time) time.Duration

	mu      sync.Mutex
	entries map[[sha256.Size]byte]*answer[V]
	// notices counts what was forgotten: an answer asked for before a notice is neither
	// kept after it nor given to who asks after it.
	notices uint64
	// out is when auth last could not tell; zero when it has told something since.
	out time.Time
}

type answer[V any] struct {
	value V
	asked time.Time
	// tried is when auth was last asked again.
	tried time.Time
}

func newAnswers[V any](ask func(context.Context, string) (V, error), now func() time.Time) *answers[V] {
	return &answers[V]{ask: ask, now: now, entries: map[[sha256.Size]byte]*answer[V]{}}
}

// get returns the answer about a secret. A remembered one has to satisfy usable, which is
// given the time; without usable any will do.
func (a *answers[V]) get(ctx context.Context, secret string, usable func(V, time.Time) bool) (V, error) {
	hash := sha256.Sum256([]byte(secret))
	known, how, notices := a.look(hash, usable)
	if how == atHand {
		return known, nil
	}
	// Callers share one question; the first to leave must not take the answer with it.
	shared := a.flight.DoChan(fmt.Sprintf("%x %d", hash, notices), func() (any, error) {
		asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerWait)
		defer cancel()
		return a.fetch(asking, hash, secret, notices)
	})
	if how == atHandAndAsk {
		return known, nil
	}
	var late <-chan time.Time
	if how == askFirst {
		timer := time.NewTimer(stalePatience)
		defer timer.Stop()
		late = timer.C
	}
	var none V
	for {
		select {
		case r := <-shared:
			if r.Err == nil {
				return r.Val.(V), nil
			}
			if cannotTell(r.Err) {
				if old, ok := a.instead(hash); ok {
					return old, nil
				}
			}
			return none, r.Err
		case <-late:
			late = nil
			if old, ok := a.instead(hash); ok {
				a.missed()
				return old, nil
			}
		case <-ctx.Done():
			return none, ctx.Err()
		}
	}
}

// means are how an answer is come by.
type means int

const (
	// askOnly waits for auth, and askFirst for a moment.
	askOnly means = iota
	askFirst
	// atHand needs no question, and atHandAndAsk does not wait for it.
	atHand
	atHandAndAsk
)

// look finds what is known of a secret, and what to do about it.
func (a *answers[V]) look(hash [sha256.Size]byte, usable func(V, time.Time) bool) (value V, how means, notices uint64) {
	now := a.now()
	a.mu.Lock()
	defer a.mu.Unlock()
	known := a.entries[hash]
	switch {
	case known == nil || usable != nil && !usable(known.value, now):
		return value, askOnly, a.notices
	case now.Sub(known.asked) < answerTTL:
		return known.value, atHand, a.notices
	case !a.allowed(known, now):
		return value, askOnly, a.notices
	case a.out.IsZero() || now.Sub(a.out) > outFor:
		known.tried = now
		return value, askFirst, a.notices
	case now.Sub(known.tried) < askEvery:
		return known.value, atHand, a.notices
	}
	known.tried = now
	return known.value, atHandAndAsk, a.notices
}

// allowed tells whether an answer may stand in for one that auth cannot give. a.mu is held.
func (a *answers[V]) allowed(known *answer[V], now time.Time) bool {
	return a.stale != nil && now.Sub(known.asked) < a.stale(now)
}

// instead is the answer that stands in for one that auth did not give; none when it was taken back meanwhile.
func (a *answers[V]) instead(hash [sha256.Size]byte) (value V, ok bool) {
	now := a.now()
	a.mu.Lock()
	defer a.mu.Unlock()
	known := a.entries[hash]
	if known == nil || !a.allowed(known, now) {
		return value, false
	}
	return known.value, true
}

// missed notes that auth could not tell.
func (a *answers[V]) missed() {
	now := a.now()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.out = now
}

// standsIn tells whether auth is out at this moment, and older answers stand in for its own.
func (a *answers[V]) standsIn() bool {
	now := a.now()
	a.mu.Lock()
	defer a.mu.Unlock()
	return !a.out.IsZero() && now.Sub(a.out) <= outFor && a.stale != nil && a.stale(now) > 0
}

func (a *answers[V]) fetch(ctx context.Context, hash [sha256.Size]byte, secret string, notices uint64) (V, error) {
	asked := a.now()
	value, err := a.ask(ctx, secret)
	if cannotTell(err) {
		a.missed()
		return value, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.out = time.Time{}
	if err != nil {
		delete(a.entries, hash)
		return value, err
	}
	if a.notices == notices {
		if len(a.entries) >= maxAnswers {
			clear(a.entries)
		}
		a.entries[hash] = &answer[V]{value: value, asked: asked}
	}
	return value, nil
}

// cannotTell tells whether err is that auth cannot be asked, or its store cannot: anything else is an answer.
func cannotTell(err error) bool {
	return fault.Is(err, fault.DB) || fault.Is(err, fault.DBTimeout) || errors.Is(err, context.DeadlineExceeded)
}

// forget drops the answers that match.
func (a *answers[V]) forget(match func([sha256.Size]byte, V) bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.notices++
	for hash, known := range a.entries {
		if match(hash, known.value) {
			delete(a.entries, hash)
		}
	}
}
