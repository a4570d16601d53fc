package admission

import (
	"math"
	"time"
)

const (
	// floor is the least that runs at once, as far as there are so many places: so few keep a small service busy. Few callers may
	// have more between them: what the limit begins with, a quarter of all places, is divided by how many others one of them has.
	floor = 4
	// few is how many calls at once leave a service idle hands: what answers take then is what they are compared with.
	few = 4
	// tolerance is how much longer than that answers may take.
	tolerance = 1.5
	// slack is added to each time before it is compared: nobody feels whether an answer takes one millisecond or three.
	slack = 5 * time.Millisecond
	// roundTime and roundSamples are the least that a round has: it ends with a new limit.
	roundTime    = 100 * time.Millisecond
	roundSamples = 16
	// shrink and grow are the most that a round changes the limit by. fade is by what it shrinks when it is far from used.
	shrink, grow, fade = 0.5, 1.25, 0.95
	// usualSamples is over how many answers, about, an operation's usual time is averaged.
	usualSamples = 200
	// worst is the logarithm of how many times slower than usual an answer counts at most, and one that failed: 4. So few say little.
	worst = 2 * math.Ln2
)

// pace is a limit of calls at once that follows how much longer than usual their answers take. It is a gradient, as in Netflix'
// concurrency-limits and Envoy's adaptive concurrency: with more calls at once than a service has hands for, each takes
// longer in proportion, so limit × (what they may take / what they take) is the limit at which they take just that.
//
// Times are compared by operation, in logarithms: what is averaged over all calls is how many times longer than its own operation's
// usual time each has taken. A mix of other operations changes nothing by itself, and one slow operation with few answers
// changes little. The usual time is learned while at most few calls run, and so not from a service with too much to do; should
// a service become slower for another reason, the limit falls to floor, and that is learned there as well.
type pace struct {
	least, floor, start, most, limit float64
	operations                       map[string]*usual
	// Of the round: its beginning, its answers, by how much they were slower, and the most calls and callers at once.
	since         time.Time
	samples       int
	slower        float64
	peak, callers int
}

// usual is the logarithm of what an operation takes while there is little to do.
type usual struct {
	time float64
	of   int // how many answers it is the average of
}

func newPace(most int) pace {
	least := float64(min(floor, most))
	start := max(float64(most)/4, least)
	return pace{least: least, floor: start, start: start, most: float64(most), limit: start, operations: map[string]*usual{}}
}

// sample takes the end of a call into account, and ends the round if it is long enough. working is how many are at work then, and
// callers how many have them or wait.
func (p *pace) sample(call *Place, now time.Time, answered bool, working, callers int) {
	slower := worst
	if answered {
		x := math.Log((now.Sub(call.began) + slack).Seconds())
		u := p.operations[call.operation]
		if u == nil {
			u = &usual{time: x}
			p.operations[call.operation] = u
		}
		slower = min(max(x-u.time, -worst), worst)
		if call.light {
			u.of = min(u.of+1, usualSamples)
			u.time += (x - u.time) / float64(u.of)
		}
	}
	if call.began.Before(p.since) { // it ran under an earlier limit
		return
	}
	p.samples++
	p.slower += slower
	p.callers = max(p.callers, callers)
	if p.samples >= roundSamples && now.Sub(p.since) >= roundTime {
		p.adjust()
		p.since, p.samples, p.slower, p.peak, p.callers = now, 0, 0, working, 0
	}
}

// pinned tells whether the limit is as low as it gets, and callers are too many for it to be where it began.
func (p *pace) pinned() bool { return p.limit <= p.floor && p.floor < p.start }

// adjust sets the limit for the next round. A limit that is not used is not known to be good, and goes back to where it began.
func (p *pace) adjust() {
	p.floor = max(p.start/float64(max(p.callers-1, 1)), p.least)
	gradient := tolerance / math.Exp(p.slower/float64(p.samples))
	switch {
	case gradient < 1:
		p.limit *= max(gradient, shrink)
	case 2*float64(p.peak) >= p.limit:
		p.limit *= min(gradient, grow)
	default:
		p.limit = max(p.limit*fade, p.start)
	}
	p.limit = min(max(p.limit, p.floor), p.most)
}
