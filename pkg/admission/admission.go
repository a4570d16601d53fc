// Package admission decides which calls to a service begin when more come than it can do: as many at once as it answers without
// becoming slow, shared out fairly among those who call. It refuses to know what is called, and what a caller is told who is refused.
//
// What is free goes to the caller who has the least, which is max-min fairness (Bertsekas and Gallager, Data Networks, 6.5.2); among
// equals, to whom it is longest since they had any. One caller's calls come in their order while few wait, and else the newest first,
// so that those are answered soon that are, and not all late (adaptive LIFO: Maurer, Fail at Scale, ACM Queue 13:8, 2015). How many
// run at once follows what the answers take: see pace.
package admission

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

const (
	// patience is how long a call may wait for its place.
	patience = 200 * time.Millisecond
	// orderly is how long the oldest call of a caller may have waited for their calls to come in order.
	orderly = patience / 2
	// reserve is the part of all places, one in 8, that callers leave to the process itself.
	reserve = 8
)

// ErrFull says that there is no place for a call. It was not begun.
var ErrFull = errors.New("admission: no place")

// Limiter hands out places at one service. It is safe for use by many at once.
type Limiter struct {
	most int

	mu   sync.Mutex
	pace pace
	// open are the places that are taken, and working those of them at which a caller's answer has not begun.
	open, working int
	accounts      map[string]*account // of callers who have a place, or wait for one
	process       account
	waiting       []*Place // oldest first
	turns         uint64
	refused       int64
}

// account is what one caller has.
type account struct {
	who           string
	open, waiting int
	turn          uint64    // of the last place that it got: a higher one is later
	served        time.Time // when it got it
}

// New returns a limiter of at most so many places, at least 1.
func New(most int) *Limiter {
	return &Limiter{most: most, pace: newPace(most), accounts: map[string]*account{}}
}

// Use is what hub.bulkhead shows: how many calls may be unanswered now, how many are, how many wait, and how many were refused.
func (l *Limiter) Use() (limit, working, waiting, refused int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return int64(l.pace.limit), int64(l.working), int64(len(l.waiting)), l.refused
}

// Place is what one call has. It is of one goroutine at a time.
type Place struct {
	limiter   *Limiter
	account   *account
	operation string
	began     time.Time // of the wait, and then of the call
	// light tells that there was little to do when the call began.
	light bool
	// open and working are whether it counts among those of the limiter.
	open, working bool
	called        chan bool // nil for a call that has not waited; false is a refusal
}

// Enter returns a place for a call of who, which Leave gives back. operation is what is called, one of a bounded set: its answers are
// compared with each other alone, and those of "" with nothing, nor do its failures count. Where all places are taken Enter waits, for
// 200 ms and no longer than ctx. It returns ErrFull, or the error of a ctx that was cancelled.
//
// A caller never gets more than is left to others: half of all places, if nobody else calls (dynamic thresholds: Choudhury and Hahne,
// IEEE/ACM ToN 6:2, 1998), and is refused without having a place only where nothing is left at all. An empty who is the process itself:
// it waits for nobody, and an eighth of all places is its own.
func (l *Limiter) Enter(ctx context.Context, who, operation string) (*Place, error) {
	p := &Place{limiter: l, operation: operation}
	if l.enter(p, who) {
		return p, nil
	}
	if p.called == nil {
		return nil, ErrFull
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case admitted := <-p.called:
		if !admitted {
			return nil, ErrFull
		}
		p.began = time.Now() // a busy process is late to notice, and the service has nothing to do with it
		return p, nil
	case <-timer.C:
	case <-ctx.Done():
	}
	return l.leaveQueue(ctx, p)
}

// enter takes a place at once, or a place in the queue, or neither.
func (l *Limiter) enter(p *Place, who string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.account(who)
	p.account = a
	switch {
	case a == &l.process:
		if l.open < l.most {
			l.admit(p)
			return true
		}
		l.refused++
		return false
	case l.working < int(l.pace.limit) && l.hasRoom(a):
		l.admit(p)
		return true
	}
	p.called = make(chan bool, 1)
	p.began = time.Now()
	l.waiting = append(l.waiting, p)
	a.waiting++
	switch {
	case a.waiting > l.share():
		l.call(slices.IndexFunc(l.waiting, func(other *Place) bool { return other.account == a }), false)
	case len(l.waiting) > l.most:
		l.call(0, false)
	}
	return false
}

// leaveQueue ends a wait. A caller who got nothing all the while, and has nothing, is let in even so: what fills the places takes longer
// than anybody may wait.
func (l *Limiter) leaveQueue(ctx context.Context, p *Place) (*Place, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	gone := ctx.Err()
	if i := slices.Index(l.waiting, p); i >= 0 {
		starved := p.account.open == 0 && p.account.served.Before(p.began)
		l.call(i, gone == nil && starved && l.hasRoom(p.account))
	}
	switch admitted := <-p.called; {
	case admitted && gone == nil:
		return p, nil
	case admitted: // at the same moment
		l.leave(p)
	}
	if errors.Is(gone, context.Canceled) {
		return nil, gone
	}
	return nil, ErrFull
}

// Answered tells that the answer has begun, and ends the call's part in the limit: what follows is as slow as its reader.
func (p *Place) Answered() { p.end(true) }

// Failed tells that the service could not answer, as one that has too much to do. Of a call of "" that says nothing either.
func (p *Place) Failed() { p.end(false) }

func (p *Place) end(answered bool) {
	l := p.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.operation != "" { // else its answers would not raise again what its failures have lowered
		l.pace.sample(p, time.Now(), answered, l.working, len(l.accounts))
		p.operation = ""
	}
	l.rest(p)
	l.callNext()
}

// Leave gives the place back; a second time does nothing. Without Answered or Failed the call tells nothing of the service.
func (p *Place) Leave() {
	l := p.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leave(p)
}

func (l *Limiter) leave(p *Place) {
	if !p.open {
		return
	}
	l.rest(p)
	p.open = false
	p.account.open--
	l.open--
	l.forget(p.account)
	l.callNext()
}

// rest takes the call out of those that the service works at.
func (l *Limiter) rest(p *Place) {
	if p.working {
		p.working = false
		l.working--
	}
}

func (l *Limiter) account(who string) *account {
	if who == "" {
		return &l.process
	}
	a := l.accounts[who]
	if a == nil {
		a = &account{who: who}
		l.accounts[who] = a
	}
	return a
}

// forget drops an account that has nothing.
func (l *Limiter) forget(a *account) {
	if a.open == 0 && a.waiting == 0 {
		delete(l.accounts, a.who)
	}
}

// hasRoom tells whether the account has less than is left for callers.
func (l *Limiter) hasRoom(a *account) bool { return a.open < l.most-l.most/reserve-l.open }

func (l *Limiter) admit(p *Place) {
	l.turns++
	p.account.turn = l.turns
	p.account.open++
	l.open++
	p.open = true
	if p.account != &l.process {
		p.working = true
		l.working++
	}
	p.light = l.working <= few || l.pace.pinned()
	p.began = time.Now()
	p.account.served = p.began
	l.pace.peak = max(l.pace.peak, l.working)
}

// call tells a waiter whether it has a place.
func (l *Limiter) call(i int, admitted bool) {
	p := l.waiting[i]
	l.waiting = slices.Delete(l.waiting, i, i+1)
	p.account.waiting--
	if admitted {
		l.admit(p)
	} else {
		l.refused++
		l.forget(p.account)
	}
	p.called <- admitted
}

// callNext gives what is free to those who wait.
func (l *Limiter) callNext() {
	for l.working < int(l.pace.limit) {
		next := -1
		for i, p := range l.waiting {
			if l.hasRoom(p.account) && (next < 0 || p.account.before(l.waiting[next].account)) {
				next = i
			}
		}
		if next < 0 {
			return
		}
		if a := l.waiting[next].account; 2*a.waiting > l.share() || time.Since(l.waiting[next].began) > orderly {
			for i := range l.waiting {
				if l.waiting[i].account == a {
					next = i
				}
			}
		}
		l.call(next, true)
	}
}

// before tells whose turn it is.
func (a *account) before(b *account) bool {
	return a.open < b.open || a.open == b.open && a.turn < b.turn
}

// share is how many calls of one caller may wait, so that as many of one more find a place to wait.
func (l *Limiter) share() int { return max(l.most/(len(l.accounts)+1), 1) }
