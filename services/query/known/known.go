// Package known keeps for some time what is read of a source beside answers, for the sake of messages.
package known

import (
	"context"
	"sync"
	"time"
)

const (
	// Retry is how soon a value is read again that could not be read.
	Retry = time.Minute
	// limit bounds the wait for a value: an answer is complete without.
	limit = 2 * time.Second
)

// Values are kept by name. One caller at a time reads a value; who comes meanwhile waits. What could not be read is the zero value,
// until Retry has passed.
type Values[V any] struct {
	now     func() time.Time
	mu      sync.Mutex
	entries map[string]*entry[V]
}

type entry[V any] struct {
	reading chan struct{} // holds one token while a caller reads
	value   V
	good    bool
	at      time.Time
}

// New returns none, by a clock.
func New[V any](now func() time.Time) *Values[V] {
	return &Values[V]{now: now, entries: map[string]*entry[V]{}}
}

// Get returns what is known under a name, at most age old, or reads it within two seconds. It returns the last value, and false,
// when that fails.
func (k *Values[V]) Get(ctx context.Context, name string, age time.Duration, read func(context.Context) (V, error)) (value V, good bool) {
	k.mu.Lock()
	e := k.entries[name]
	if e == nil {
		e = &entry[V]{reading: make(chan struct{}, 1)}
		k.entries[name] = e
	}
	k.mu.Unlock()
	// Who leaves does not keep it from the others.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	select {
	case e.reading <- struct{}{}:
	case <-ctx.Done():
		return value, false
	}
	defer func() { <-e.reading }()
	if e.at.IsZero() || e.good && k.now().Sub(e.at) >= age || !e.good && k.now().Sub(e.at) >= Retry {
		fresh, err := read(ctx)
		if e.at = k.now(); err == nil {
			e.value = fresh
		}
		e.good = err == nil
	}
	return e.value, e.good
}
