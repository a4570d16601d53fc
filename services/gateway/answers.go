package gateway

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

const (
	// answerTTL bounds how long what auth has taken back may live on when its notice is lost.
	answerTTL = 2 * time.Second
	// answerWait bounds one question to auth.
	answerWait = 3 * time.Second
	// maxAnswers bounds a cache; beyond it the cache starts anew.
	maxAnswers = 50_000
)

// answers asks auth about a secret and remembers a good answer for at most two seconds,
// counted from the question. Refusals are not remembered, nor is the secret itself.
type answers[V any] struct {
	ask    func(ctx context.Context, secret string) (V, error)
	now    func() time.Time
	flight singleflight.Group

	mu      sync.Mutex
	entries map[[sha256.Size]byte]answer[V]
	// notices counts what was forgotten: an answer asked for before a notice is neither
	// kept after it nor given to who asks after it.
	notices uint64
}

type answer[V any] struct {
	value V
	asked time.Time
}

func newAnswers[V any](ask func(context.Context, string) (V, error), now func() time.Time) *answers[V] {
	return &answers[V]{ask: ask, now: now, entries: map[[sha256.Size]byte]answer[V]{}}
}

// get returns the answer about a secret. A remembered one has to satisfy usable, which is
// given the time; without usable any will do.
func (a *answers[V]) get(ctx context.Context, secret string, usable func(V, time.Time) bool) (V, error) {
	hash := sha256.Sum256([]byte(secret))
	a.mu.Lock()
	known, ok := a.entries[hash]
	notices := a.notices
	a.mu.Unlock()
	now := a.now()
	if ok && now.Sub(known.asked) < answerTTL && (usable == nil || usable(known.value, now)) {
		return known.value, nil
	}
	// Callers share one question; the first to leave must not take the answer with it.
	shared := a.flight.DoChan(fmt.Sprintf("%x %d", hash, notices), func() (any, error) {
		asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerWait)
		defer cancel()
		return a.fetch(asking, hash, secret, notices)
	})
	var none V
	select {
	case r := <-shared:
		if r.Err != nil {
			return none, r.Err
		}
		return r.Val.(V), nil
	case <-ctx.Done():
		return none, ctx.Err()
	}
}

func (a *answers[V]) fetch(ctx context.Context, hash [sha256.Size]byte, secret string, notices uint64) (V, error) {
	asked := a.now()
	value, err := a.ask(ctx, secret)
	a.mu.Lock()
	defer a.mu.Unlock()
	if err != nil {
		delete(a.entries, hash)
		return value, err
	}
	if a.notices == notices {
		if len(a.entries) >= maxAnswers {
			clear(a.entries)
		}
		a.entries[hash] = answer[V]{value, asked}
	}
	return value, nil
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
