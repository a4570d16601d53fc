// Package cache is what the gateway remembers of what auth said about a secret: a read-through cache whose callers share
// one question (singleflight), and which gives an older answer while auth cannot tell (stale-if-error, RFC 5861). It does
// not know what is asked, and refuses to keep a secret or a refusal.
package cache

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
	// ttl bounds how long what auth has taken back may live on when its notice is lost.
	ttl = 2 * time.Second
	// loadTimeout bounds one question to auth.
	loadTimeout = 3 * time.Second
	// patience is how long a call waits for auth when there is an older answer; none waits while auth is known to be out.
	patience = 250 * time.Millisecond
	// outage is how long auth is taken to be out after a question without an answer: until the next one has had its time.
	outage = loadTimeout + time.Second
	// retryEvery is how often auth is asked about one secret while it is out.
	retryEvery = time.Second
	// maxEntries bounds a cache; beyond it the cache starts anew.
	maxEntries = 50_000
)

// Cache asks about a secret and remembers a good answer for at most two seconds, counted from the question. Refusals are
// not remembered, nor is the secret itself: the key is its SHA-256.
//
// An older answer is of use only while auth cannot tell, and for no longer than StaleIfError allows.
type Cache[V any] struct {
	load   func(ctx context.Context, secret string) (V, error)
	now    func() time.Time
	flight singleflight.Group
	// StaleIfError is how old an answer may be at this moment that is given because auth cannot tell; nil allows none.
	// It is set before the first Get.
	StaleIfError func(now time.Time) time.Duration

	mu      sync.Mutex
	entries map[[sha256.Size]byte]*entry[V]
	// invalidations counts the calls of Forget: an answer asked for before one is neither kept after it nor given to who
	// asks after it.
	invalidations uint64
	// failed is when auth last could not tell; zero when it has told something since.
	failed time.Time
}

// entry is an answer.
type entry[V any] struct {
	value V
	// asked is when the question was put that it answers, tried when auth was last asked again.
	asked, tried time.Time
}

// New returns an empty cache of the answers of load.
func New[V any](load func(context.Context, string) (V, error), now func() time.Time) *Cache[V] {
	return &Cache[V]{load: load, now: now, entries: map[[sha256.Size]byte]*entry[V]{}}
}

// Get returns the answer about a secret. A remembered one has to satisfy usable, which is given the time; without usable
// any will do. The error is load's, or that of ctx.
func (c *Cache[V]) Get(ctx context.Context, secret string, usable func(V, time.Time) bool) (V, error) {
	hash := sha256.Sum256([]byte(secret))
	known, how, invalidations := c.lookUp(hash, usable)
	if how == serve {
		return known, nil
	}
	// Callers share one question; the first to leave must not take the answer with it.
	shared := c.flight.DoChan(fmt.Sprintf("%x %d", hash, invalidations), func() (any, error) {
		loading, cancel := context.WithTimeout(context.WithoutCancel(ctx), loadTimeout)
		defer cancel()
		return c.fetch(loading, hash, secret, invalidations)
	})
	if how == serveAndRefresh {
		return known, nil
	}
	var late <-chan time.Time
	if how == awaitBriefly {
		timer := time.NewTimer(patience)
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
			if undecided(r.Err) {
				if old, ok := c.stale(hash); ok {
					return old, nil
				}
			}
			return none, r.Err
		case <-late:
			late = nil
			if old, ok := c.stale(hash); ok {
				c.noteFailure()
				return old, nil
			}
		case <-ctx.Done():
			return none, ctx.Err()
		}
	}
}

// strategy is how an answer is come by.
type strategy int

const (
	// await waits for auth, and awaitBriefly only for patience.
	await strategy = iota
	awaitBriefly
	// serve needs no question, and serveAndRefresh does not wait for its answer.
	serve
	serveAndRefresh
)

// lookUp finds what is known of a secret, and what to do about it.
func (c *Cache[V]) lookUp(hash [sha256.Size]byte, usable func(V, time.Time) bool) (value V, how strategy, invalidations uint64) {
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.entries[hash]
	switch {
	case known == nil || usable != nil && !usable(known.value, now):
		return value, await, c.invalidations
	case now.Sub(known.asked) < ttl:
		return known.value, serve, c.invalidations
	case !c.mayServeStale(known, now):
		return value, await, c.invalidations
	case c.failed.IsZero() || now.Sub(c.failed) > outage:
		known.tried = now
		return value, awaitBriefly, c.invalidations
	case now.Sub(known.tried) < retryEvery:
		return known.value, serve, c.invalidations
	}
	known.tried = now
	return known.value, serveAndRefresh, c.invalidations
}

// mayServeStale tells whether an answer may be given in place of one that auth cannot give. c.mu is held.
func (c *Cache[V]) mayServeStale(known *entry[V], now time.Time) bool {
	return c.StaleIfError != nil && now.Sub(known.asked) < c.StaleIfError(now)
}

// stale returns the answer in place of one that auth did not give; none when it was taken back meanwhile.
func (c *Cache[V]) stale(hash [sha256.Size]byte) (value V, ok bool) {
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.entries[hash]
	if known == nil || !c.mayServeStale(known, now) {
		return value, false
	}
	return known.value, true
}

// noteFailure remembers that auth could not tell just now, so that nobody waits for it until the outage is over.
func (c *Cache[V]) noteFailure() {
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed = now
}

// ServesStale tells whether auth is out at this moment, and older answers are given in place of its own.
func (c *Cache[V]) ServesStale() bool {
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.failed.IsZero() && now.Sub(c.failed) <= outage && c.StaleIfError != nil && c.StaleIfError(now) > 0
}

// fetch puts one question to auth, and keeps a good answer. A refusal drops what was known of the secret, and an answer to a
// question from before a Forget is given to who asked and kept for nobody.
func (c *Cache[V]) fetch(ctx context.Context, hash [sha256.Size]byte, secret string, invalidations uint64) (V, error) {
	asked := c.now()
	value, err := c.load(ctx, secret)
	if undecided(err) {
		c.noteFailure()
		return value, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed = time.Time{}
	if err != nil {
		delete(c.entries, hash)
		return value, err
	}
	if c.invalidations == invalidations {
		if len(c.entries) >= maxEntries {
			clear(c.entries)
		}
		c.entries[hash] = &entry[V]{value: value, asked: asked}
	}
	return value, nil
}

// undecided tells whether err says that auth, or its store, cannot be asked: any other error is an answer.
func undecided(err error) bool {
	return fault.Is(err, fault.DB) || fault.Shed(err) || fault.Is(err, fault.DBTimeout) || errors.Is(err, context.DeadlineExceeded)
}

// Forget drops the answers that match. hash is the SHA-256 of the secret.
func (c *Cache[V]) Forget(match func(hash [sha256.Size]byte, value V) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.invalidations++
	for hash, known := range c.entries {
		if match(hash, known.value) {
			delete(c.entries, hash)
		}
	}
}
