// Package bulkhead bounds costly work: so many are at it at a time, so many wait in a priority queue, and who finds no place
// there is refused at once (load shedding). It refuses to know what the work is, and who somebody is: it is told the networks
// that a stranger comes from, or whom among those that are known.
package bulkhead

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// Options are what a Bulkhead is made of.
type Options struct {
	// AtOnce is how many permits there are. Waiting is how many strangers may wait for one, and as many who are known.
	AtOnce, Waiting int
	// Patience bounds the wait.
	Patience time.Duration
	// Now is the clock by which attempts are forgotten.
	Now func() time.Time
}

// share is the part of the waiting places that one network, or one who is known, may have: a quarter. So nobody fills the
// queue alone.
const share = 4

// Claim is who asks for a permit.
type Claim struct {
	who      string
	networks []string
}

// Known returns the claim of somebody of whom it is known who they are. They come before strangers, and share their places
// with those alone who are known.
func Known(who string) Claim { return Claim{who: who} }

// Stranger returns the claim of somebody from these networks, narrowest first. Who comes from where few attempts were made
// comes first.
func Stranger(networks []string) Claim {
	return Claim{who: networks[len(networks)-1], networks: networks}
}

// Bulkhead hands out permits. It is safe for use by many at once.
type Bulkhead struct {
	o Options

	mu   sync.Mutex
	free int
	// known and strangers are the two queues. They are short, so the first and the last are searched for.
	known, strangers []*waiter
	attempts         attempts
}

// waiter is somebody in a queue.
type waiter struct {
	who string
	// attempts is how many were made from where they come from: the fewer, the sooner.
	attempts int
	// called is told true when the waiter has a permit, and false when somebody else has their place. It never blocks.
	called chan bool
}

// New returns a Bulkhead with all permits free.
func New(o Options) *Bulkhead { return &Bulkhead{o: o, free: o.AtOnce, attempts: attempts{now: o.Now}} }

// Permit is the right to do the work, which whoever has it gives back with Release.
type Permit struct {
	bulkhead *Bulkhead
	networks []string
	release  sync.Once
}

// Release gives the permit to who is next; a second time does nothing.
func (p *Permit) Release() {
	p.release.Do(func() {
		p.bulkhead.mu.Lock()
		defer p.bulkhead.mu.Unlock()
		p.bulkhead.callNext()
	})
}

// Forgive makes the permit count for nothing against the networks that it was taken from: it was no attacker's.
func (p *Permit) Forgive() {
	p.bulkhead.mu.Lock()
	defer p.bulkhead.mu.Unlock()
	p.bulkhead.attempts.add(p.networks, -1)
}

// ErrFull says that there is no permit to be had: the queue is full, somebody with more right to the place has come, or the
// patience has ended.
var ErrFull = errors.New("no permit to be had at this moment")

// Acquire waits for a permit, which is to be released. It returns ErrFull, or the error of ctx when that ends.
func (b *Bulkhead) Acquire(ctx context.Context, c Claim) (*Permit, error) {
	permit := &Permit{bulkhead: b, networks: c.networks}
	w := b.enqueue(c)
	if w == nil {
		return nil, ErrFull
	}
	patience := time.NewTimer(b.o.Patience)
	defer patience.Stop()
	select {
	case mine := <-w.called:
		if !mine {
			return nil, ErrFull
		}
		return permit, nil
	case <-patience.C:
		// Who was called at this very moment has the permit.
		if b.dequeue(w) || !<-w.called {
			return nil, ErrFull
		}
		return permit, nil
	case <-ctx.Done():
		// A permit that nobody waits for any more goes to who is next.
		if !b.dequeue(w) && <-w.called {
			permit.Release()
		}
		return nil, ctx.Err()
	}
}

// queue is where the waiter of a claim waits.
func (b *Bulkhead) queue(networks []string) *[]*waiter {
	if networks == nil {
		return &b.known
	}
	return &b.strangers
}

// enqueue puts somebody in the queue, or calls them at once. It returns nil when there is no place for them. In a full queue
// a newcomer takes the place of the waiter from where the most attempts were made, if that is more than their own.
func (b *Bulkhead) enqueue(c Claim) *waiter {
	b.mu.Lock()
	defer b.mu.Unlock()
	w := &waiter{who: c.who, attempts: b.attempts.of(c.networks), called: make(chan bool, 1)}
	b.attempts.add(c.networks, 1)
	if b.free > 0 {
		b.free--
		w.called <- true
		return w
	}
	queue, same := b.queue(c.networks), 0
	for _, other := range *queue {
		if other.who == w.who {
			same++
		}
	}
	if same >= max(b.o.Waiting/share, 1) {
		return nil
	}
	if len(*queue) >= b.o.Waiting {
		last := 0
		for i, other := range *queue {
			if other.attempts >= (*queue)[last].attempts {
				last = i
			}
		}
		if (*queue)[last].attempts <= w.attempts {
			return nil
		}
		(*queue)[last].called <- false
		*queue = slices.Delete(*queue, last, last+1)
	}
	*queue = append(*queue, w)
	return w
}

// dequeue takes a waiter out of the queue; false when they were called before.
func (b *Bulkhead) dequeue(w *waiter) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, queue := range []*[]*waiter{&b.known, &b.strangers} {
		if i := slices.Index(*queue, w); i >= 0 {
			*queue = slices.Delete(*queue, i, i+1)
			return true
		}
	}
	return false
}

// callNext gives a permit that was released to who is first: of those who are known, then of the strangers from where the
// fewest attempts were made. b.mu is held.
func (b *Bulkhead) callNext() {
	for _, queue := range []*[]*waiter{&b.known, &b.strangers} {
		if len(*queue) == 0 {
			continue
		}
		first := 0
		for i, w := range *queue {
			if w.attempts < (*queue)[first].attempts {
				first = i
			}
		}
		(*queue)[first].called <- true
		*queue = slices.Delete(*queue, first, first+1)
		return
	}
	b.free++
}
