// Package quota is a bulkhead: it shares a bounded resource out among callers: so much in all, and no more
// than half of it to one, so that nobody keeps all others out. It refuses to know what the
// resource is, and what a caller is told who gets nothing.
package quota

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/semaphore"
)

// Quota is a resource of a fixed size. It is safe for use by many at once.
type Quota struct {
	size, share            int64
	all                    *semaphore.Weighted
	used, waiting, refused atomic.Int64

	mu     sync.Mutex
	shares map[string]*share
}

// share is what one caller may have, there as long as a loan of theirs is.
type share struct {
	*semaphore.Weighted
	loans int
}

// New returns a quota of this size, of which a caller may have half, and at least 1.
func New(size int64) *Quota {
	return &Quota{size: size, share: max(size/2, 1), all: semaphore.NewWeighted(size), shares: map[string]*share{}}
}

// Size is how much there is in all.
func (q *Quota) Size() int64 { return q.size }

// Use is how much of it is taken, how many wait for more, and how often nobody could get it.
func (q *Quota) Use() (taken, waiting, refused int64) {
	return q.used.Load(), q.waiting.Load(), q.refused.Load()
}

// Loan is what one call has taken. It is of one goroutine at a time.
type Loan struct {
	quota *Quota
	who   string
	own   *share // nil for the process itself
	most  int64
	taken int64
}

// Open returns an empty loan of a caller; Close has to be called when the call is over. An
// empty who is the process itself, which may have all.
func (q *Quota) Open(who string) *Loan {
	l := &Loan{quota: q, who: who, most: q.size}
	if who == "" {
		return l
	}
	l.most = q.share
	q.mu.Lock()
	defer q.mu.Unlock()
	if l.own = q.shares[who]; l.own == nil {
		l.own = &share{Weighted: semaphore.NewWeighted(q.share)}
		q.shares[who] = l.own
	}
	l.own.loans++
	return l
}

// Take adds n to the loan, and waits for it until ctx ends, whose error it then returns. A
// loan never takes more than its caller's share: what is larger by itself waits for all of
// that and goes on.
func (l *Loan) Take(ctx context.Context, n int64) error {
	l.quota.waiting.Add(1)
	defer l.quota.waiting.Add(-1)
	return l.take(n, func(of *semaphore.Weighted, n int64) error { return of.Acquire(ctx, n) })
}

// TryTake is Take without the wait: false when there is not enough now.
func (l *Loan) TryTake(n int64) (taken bool) {
	return nil == l.take(n, func(of *semaphore.Weighted, n int64) error {
		if !of.TryAcquire(n) {
			return errExhausted
		}
		return nil
	})
}

var errExhausted = errors.New("there is not enough now")

// take acquires n of the caller's share, and then of all.
func (l *Loan) take(n int64, acquire func(*semaphore.Weighted, int64) error) (err error) {
	n = l.clamp(n)
	defer func() {
		if err != nil {
			l.quota.refused.Add(1)
		}
	}()
	if l.own != nil {
		if err := acquire(l.own.Weighted, n); err != nil {
			return err
		}
	}
	if err := acquire(l.quota.all, n); err != nil {
		if l.own != nil {
			l.own.Release(n)
		}
		return err
	}
	l.taken += n
	l.quota.used.Add(n)
	return nil
}

// Keep gives back what is more than n.
func (l *Loan) Keep(n int64) {
	back := l.taken - n
	if back <= 0 {
		return
	}
	l.taken = n
	l.quota.used.Add(-back)
	l.quota.all.Release(back)
	if l.own != nil {
		l.own.Release(back)
	}
}

func (l *Loan) clamp(n int64) int64 { return min(n, l.most-l.taken) }

// Close gives everything back. It may be called more than once.
func (l *Loan) Close() {
	l.Keep(0)
	if l.own == nil {
		return
	}
	q := l.quota
	q.mu.Lock()
	defer q.mu.Unlock()
	if l.own.loans--; l.own.loans == 0 {
		delete(q.shares, l.who)
	}
	l.own = nil
}
