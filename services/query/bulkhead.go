package query

import (
	"context"
	"sync"
	"time"

	"hub.internal/pkg/fault"
)

// bulkhead lets a number of statements run at once, and fewer of each key. The others
// wait in the order of their arrival; one whose key is at its limit holds up none of
// other keys behind it.
type bulkhead struct {
	limit, perKey int
	patience      time.Duration // how long a statement waits for its turn

	mu      sync.Mutex
	total   int
	running map[string]int
	queue   []*waiter
}

type waiter struct {
	key  string
	turn chan struct{} // closed when the statement may run
}

// maxWaiting bounds the queue; it is far beyond what can get a turn in time.
const maxWaiting = 1000

func newBulkhead(limit, perKey int, patience time.Duration) *bulkhead {
	return &bulkhead{limit: limit, perKey: perKey, patience: patience, running: map[string]int{}}
}

// enter waits for the turn of a statement of the key; leave ends it. It answers
// E_RATE_LIMIT when the turn does not come in time, and the context's error when the
// caller goes away first.
func (b *bulkhead) enter(ctx context.Context, key string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	w, err := b.join(key)
	if w == nil {
		return err
	}
	timer := time.NewTimer(b.patience)
	defer timer.Stop()
	select {
	case <-w.turn:
		return nil
	case <-timer.C:
		err = busy()
	case <-ctx.Done():
		err = ctx.Err()
	}
	if b.abandon(w) {
		return err
	}
	// The turn came at the same moment.
	if ctx.Err() != nil {
		b.leave(key)
		return err
	}
	return nil
}

// join takes a slot at once, or a place in the queue, or neither.
func (b *bulkhead) join(key string) (*waiter, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	// Whoever waits and could run has been let in already, so a free slot is for the
	// first comer whose key has room.
	if b.total < b.limit && b.running[key] < b.perKey {
		b.start(key)
		return nil, nil
	}
	if len(b.queue) >= maxWaiting {
		return nil, busy()
	}
	w := &waiter{key: key, turn: make(chan struct{})}
	b.queue = append(b.queue, w)
	return w, nil
}

// abandon takes a waiter out of the queue; false when its turn has come.
func (b *bulkhead) abandon(w *waiter) bool {
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

// leave ends a statement of the key and gives its slot to the first waiter whose key
// has room.
func (b *bulkhead) leave(key string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.total--
	if b.running[key]--; b.running[key] == 0 {
		delete(b.running, key)
	}
	for i, w := range b.queue {
		if b.running[w.key] < b.perKey {
			b.remove(i)
			b.start(w.key)
			close(w.turn)
			return
		}
	}
}

func (b *bulkhead) start(key string) {
	b.total++
	b.running[key]++
}

func (b *bulkhead) remove(i int) {
	copy(b.queue[i:], b.queue[i+1:])
	b.queue[len(b.queue)-1] = nil
	b.queue = b.queue[:len(b.queue)-1]
}

func busy() error {
	return fault.New(fault.RateLimit, "The source database is busy with other statements. Try again in a second.").
		With(map[string]any{"scope": "source", "retryAfter": 1}).After(time.Second)
}
