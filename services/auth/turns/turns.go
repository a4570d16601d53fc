// Package turns lets a bounded number of people have something costly done at a time, and a bounded number wait for it: who
// finds no place is refused at once. It refuses to know what is done, and who somebody is: it is told the networks that a
// stranger comes from, or whom among those that are known.
package turns

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// Options are what Turns are made of.
type Options struct {
	// AtOnce is how many have their turn at a time, Waiting how many strangers may wait for one, and as many who are known.
	AtOnce, Waiting int
	// Patience bounds the wait.
	Patience time.Duration
	Now      func() time.Time
}

// share is the part of the waiting places that one network, or one who is known, may have: a quarter.
const share = 4

// Claim is who asks for a turn.
type Claim struct {
	who      string
	networks []string
}

// Known is a claim of somebody of whom it is known who they are. They come before strangers, and share their places with
// those alone who are known.
func Known(who string) Claim { return Claim{who: who} }

// Stranger is a claim of somebody from these networks, narrowest first. Who comes from where little was tried comes first.
func Stranger(networks []string) Claim {
	return Claim{who: networks[len(networks)-1], networks: networks}
}

// Turns are a line of people. They are safe for use by many at once.
type Turns struct {
	o Options

	mu             sync.Mutex
	free           int
	known, strange []*waiter
	tried          tried
}

// waiter is somebody in a line.
type waiter struct {
	who string
	// tried is how much was tried where they come from: the less, the sooner.
	tried int
	// called is told true when it is their turn, and false when somebody else has their place.
	called chan bool
}

// New returns Turns.
func New(o Options) *Turns { return &Turns{o: o, free: o.AtOnce, tried: tried{now: o.Now}} }

// Turn is a turn that somebody has.
type Turn struct {
	turns    *Turns
	networks []string
	end      sync.Once
}

// End ends the turn; a second time does nothing.
func (t *Turn) End() {
	t.end.Do(func() {
		t.turns.mu.Lock()
		defer t.turns.mu.Unlock()
		t.turns.next()
	})
}

// Forgive makes the turn count for nothing against the networks that it was taken from: it was no attacker's.
func (t *Turn) Forgive() {
	t.turns.mu.Lock()
	defer t.turns.mu.Unlock()
	t.turns.tried.add(t.networks, -1)
}

// ErrFull says that there is no turn to be had: the line is full, somebody with more right to the place has come, or the
// patience has ended.
var ErrFull = errors.New("no turn to be had at this moment")

// Take waits for a turn, which is to be ended. It returns ErrFull, or the error of ctx when that ends.
func (t *Turns) Take(ctx context.Context, c Claim) (*Turn, error) {
	turn := &Turn{turns: t, networks: c.networks}
	w := t.join(c)
	if w == nil {
		return nil, ErrFull
	}
	patience := time.NewTimer(t.o.Patience)
	defer patience.Stop()
	select {
	case mine := <-w.called:
		if !mine {
			return nil, ErrFull
		}
		return turn, nil
	case <-patience.C:
		if t.leave(w) || !<-w.called {
			return nil, ErrFull
		}
		return turn, nil
	case <-ctx.Done():
		if !t.leave(w) && <-w.called {
			turn.End()
		}
		return nil, ctx.Err()
	}
}

// line is where the waiter of a claim waits.
func (t *Turns) line(networks []string) *[]*waiter {
	if networks == nil {
		return &t.known
	}
	return &t.strange
}

// join puts somebody in the line, or calls them at once. It returns nil when there is no place for them.
func (t *Turns) join(c Claim) *waiter {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := &waiter{who: c.who, tried: t.tried.of(c.networks), called: make(chan bool, 1)}
	t.tried.add(c.networks, 1)
	if t.free > 0 {
		t.free--
		w.called <- true
		return w
	}
	line, same := t.line(c.networks), 0
	for _, other := range *line {
		if other.who == w.who {
			same++
		}
	}
	if same >= max(t.o.Waiting/share, 1) {
		return nil
	}
	if len(*line) >= t.o.Waiting {
		last := 0
		for i, other := range *line {
			if other.tried >= (*line)[last].tried {
				last = i
			}
		}
		if (*line)[last].tried <= w.tried {
			return nil
		}
		(*line)[last].called <- false
		*line = slices.Delete(*line, last, last+1)
	}
	*line = append(*line, w)
	return w
}

// leave takes a waiter out of the line; false when they were called before.
func (t *Turns) leave(w *waiter) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, line := range []*[]*waiter{&t.known, &t.strange} {
		if i := slices.Index(*line, w); i >= 0 {
			*line = slices.Delete(*line, i, i+1)
			return true
		}
	}
	return false
}

// next gives a turn that has ended to who is first: of those who are known, then of the strangers from where least was tried.
func (t *Turns) next() {
	for _, line := range []*[]*waiter{&t.known, &t.strange} {
		if len(*line) == 0 {
			continue
		}
		first := 0
		for i, w := range *line {
			if w.tried < (*line)[first].tried {
				first = i
			}
		}
		(*line)[first].called <- true
		*line = slices.Delete(*line, first, first+1)
		return
	}
	t.free++
}
