// Package bulkhead shares the turns of statements among keys: so many run at once in all, and so many of one key.
package bulkhead

import (
	"context"
	"sync"
	"time"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/telemetry"
)

// Bulkhead lets a number of statements run at once, and fewer of each key. The others
// wait in the order of their arrival, but a key of which nothing runs comes first, and one
// at its limit holds up none of the keys behind it. A key with a statement that cannot be stopped gets no turn.
type Bulkhead struct {
	limit, perKey int
	patience      time.Duration // how long a statement waits for its turn

	mu      sync.Mutex
	total   int
	running map[string]int
	overdue map[string]int // those of running that outlive their kill
	queue   []*waiter
	refused int64 // statements that got no turn
}

type waiter struct {
	key     string
	decided chan struct{} // closed when the statement may run, or never will
	refused error
}

// Turn is the place of one statement of a key.
type Turn struct {
	of      *Bulkhead
	key     string
	overdue bool // under the bulkhead's lock
}

const (
	// maxWaiting bounds the queue; it is far beyond what can get a turn in time.
	maxWaiting = 1000
	// overdueRetry is when a key with a statement that cannot be stopped may look again.
	overdueRetry = 5 * time.Second
)

// New returns a bulkhead of limit statements at once, and perKey of one key; a statement waits for its turn as long as patience.
func New(limit, perKey int, patience time.Duration) *Bulkhead {
	return &Bulkhead{limit: limit, perKey: perKey, patience: patience, running: map[string]int{}, overdue: map[string]int{}}
}

// Enter waits for the turn of a statement of the key. It answers E_RATE_LIMIT when the
// turn does not come in time, at once when a statement of the key is overdue, and the
// context's error when the caller goes away first.
func (b *Bulkhead) Enter(ctx context.Context, key string) (_ *Turn, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	defer func() {
		if fault.Is(err, fault.RateLimit) {
			b.mu.Lock()
			b.refused++
			b.mu.Unlock()
		}
	}()
	t := &Turn{of: b, key: key}
	w, err := b.join(key)
	if w == nil {
		return t, err
	}
	timer := time.NewTimer(b.patience)
	defer timer.Stop()
	select {
	case <-w.decided:
		return t, w.refused
	case <-timer.C:
		err = busy()
	case <-ctx.Done():
		err = ctx.Err()
	}
	if b.abandon(w) {
		return nil, err
	}
	// It was decided at the same moment.
	if w.refused == nil && ctx.Err() != nil {
		t.End()
		return nil, err
	}
	return t, w.refused
}

// join takes a slot at once, or a place in the queue, or neither.
func (b *Bulkhead) join(key string) (*waiter, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.overdue[key] > 0 {
		return nil, overdue()
	}
	// Whoever waits and could run has been let in already, so a free slot is for the
	// first comer whose key has room.
	if b.total < b.limit && b.running[key] < b.perKey {
		b.start(key)
		return nil, nil
	}
	if len(b.queue) >= maxWaiting {
		return nil, busy()
	}
	w := &waiter{key: key, decided: make(chan struct{})}
	b.queue = append(b.queue, w)
	return w, nil
}

// abandon takes a waiter out of the queue; false when its turn has come.
func (b *Bulkhead) abandon(w *waiter) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, q := range b.queue {
		if q == w {
			b.remove(i)
			return true
		}
	}
	return false
}

// End gives the statement's slot to the next waiter. It is called once.
func (t *Turn) End() {
	b := t.of
	b.mu.Lock()
	defer b.mu.Unlock()
	b.total--
	less(b.running, t.key)
	if t.overdue {
		less(b.overdue, t.key)
	}
	if i := b.next(); i >= 0 {
		w := b.queue[i]
		b.remove(i)
		b.start(w.key)
		close(w.decided)
	}
}

// next is the waiter whose turn it is; -1 when nobody's.
func (b *Bulkhead) next() int {
	first := -1
	for i, w := range b.queue {
		switch n := b.running[w.key]; {
		case n == 0:
			return i
		case n < b.perKey && first < 0:
			first = i
		}
	}
	return first
}

// Overdue refuses all further statements of the key, those that wait as well, until the
// turn ends. It is called at most once, before End.
func (t *Turn) Overdue() {
	b := t.of
	b.mu.Lock()
	defer b.mu.Unlock()
	t.overdue = true
	b.overdue[t.key]++
	for i := len(b.queue) - 1; i >= 0; i-- {
		if w := b.queue[i]; w.key == t.key {
			b.remove(i)
			w.refused = overdue()
			close(w.decided)
		}
	}
}

func (b *Bulkhead) start(key string) {
	b.total++
	b.running[key]++
}

// less counts the key down and forgets it at zero.
func less(counts map[string]int, key string) {
	if counts[key]--; counts[key] == 0 {
		delete(counts, key)
	}
}

func (b *Bulkhead) remove(i int) {
	copy(b.queue[i:], b.queue[i+1:])
	b.queue[len(b.queue)-1] = nil
	b.queue = b.queue[:len(b.queue)-1]
}

func busy() error {
	return fault.New(fault.RateLimit, "The source database is busy with other statements. Try again in a second.").
		With(map[string]any{"scope": "source", "retryAfter": 1}).After(time.Second)
}

func overdue() error {
	return fault.New(fault.RateLimit, "A statement of this key was stopped, but the source database has not been able to end it yet; "+
		"until it has, no other runs. Write it cheaper before you send it again: shorter texts, fewer rows, filters on indexed columns.").
		With(map[string]any{"scope": "source", "retryAfter": int(overdueRetry.Seconds())}).After(overdueRetry)
}

// Load is how much there is to do.
type Load struct {
	// Running statements have a turn; Waiting ones have none yet. Overdue ones run and could not be stopped.
	Running, Waiting, Overdue int
}

// Limits are how many statements may run at once, in all and of one key.
func (b *Bulkhead) Limits() (all, perKey int) { return b.limit, b.perKey }

// Load tells how much there is to do at this moment.
func (b *Bulkhead) Load() Load {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := Load{Running: b.total, Waiting: len(b.queue)}
	for _, n := range b.overdue {
		l.Overdue += n
	}
	return l
}

// Gauge is what metrics show.
func (b *Bulkhead) Gauge() telemetry.Bulkhead {
	b.mu.Lock()
	defer b.mu.Unlock()
	return telemetry.Bulkhead{Limit: int64(b.limit), Used: int64(b.total), Waiting: int64(len(b.queue)), Refused: b.refused}
}
