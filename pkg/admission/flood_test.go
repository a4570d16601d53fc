package admission_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"hub.internal/pkg/admission"
)

// service does so many calls at once, each in its time; the others wait inside it.
type service struct {
	hands chan struct{}
	takes time.Duration
}

func newService(hands int, takes time.Duration) *service {
	return &service{make(chan struct{}, hands), takes}
}

func (s *service) rate() float64 { return float64(cap(s.hands)) / s.takes.Seconds() }

func (s *service) serve(takes time.Duration) {
	s.hands <- struct{}{}
	time.Sleep(takes)
	<-s.hands
}

// tally is what became of the calls of one caller.
type tally struct {
	mu      sync.Mutex
	took    []time.Duration // of those that were answered, with the wait
	refused int
}

func (c *tally) count(took time.Duration, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.refused++
		return
	}
	c.took = append(c.took, took)
}

func percentile(took []time.Duration, p float64) time.Duration {
	slices.Sort(took)
	return took[int(p*float64(len(took)-1))]
}

// call is one call of a tool that takes this long where nothing waits.
func call(ctx context.Context, l *admission.Limiter, s *service, who, tool string, takes time.Duration) (time.Duration, error) {
	began := time.Now()
	place, err := l.Enter(ctx, who, tool)
	if err != nil {
		return 0, err
	}
	defer place.Leave()
	s.serve(takes)
	place.Answered()
	return time.Since(began), nil
}

// flood calls until the time ends, each pause once, and waits for no answer. Neither the beginning nor the end is counted.
func flood(l *admission.Limiter, s *service, who, tool string, takes, pause, long time.Duration, all *sync.WaitGroup) *tally {
	c := &tally{}
	all.Go(func() {
		for began := time.Now(); time.Since(began) < long; time.Sleep(pause) {
			counts := time.Since(began) >= long/4 && time.Since(began) < long*3/4
			all.Go(func() {
				took, err := call(context.Background(), l, s, who, tool, takes)
				if counts {
					c.count(took, err)
				}
			})
		}
	})
	return c
}

// TestAFlood: while many call more often as a service can answer, whoever calls one thing at a time is always answered, the
// service has as much to do as it can, what is let in is answered soon, and those who flood have the same.
func TestAFlood(t *testing.T) {
	for name, c := range map[string]struct {
		hands   int
		takes   time.Duration
		callers int
		times   float64 // as often as the service can answer
		slower  float64 // p99 of what is let in, in times of what it takes where nothing waits
	}{
		"twenty callers":                       {8, 5 * time.Millisecond, 20, 10, 3},
		"twice as much":                        {8, 5 * time.Millisecond, 20, 2, 4},
		"a little too much":                    {8, 5 * time.Millisecond, 20, 1.2, 5},
		"one, who may have a quarter":          {8, 5 * time.Millisecond, 1, 10, 9},
		"more than may run at once":            {8, 5 * time.Millisecond, 100, 10, 4},
		"a service with many hands":            {64, 20 * time.Millisecond, 20, 10, 3},
		"a service with fewer than the floor":  {2, 3 * time.Millisecond, 20, 10, 6},
		"calls that take longer than the wait": {16, 300 * time.Millisecond, 20, 10, 3},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, s := admission.New(256), newService(c.hands, c.takes)
				var all sync.WaitGroup
				long := time.Second + 400*c.takes
				quiet := &tally{}
				all.Go(func() {
					for began := time.Now(); time.Since(began) < long; time.Sleep(20 * c.takes) {
						quiet.count(call(t.Context(), l, s, "quiet", "tool", c.takes))
					}
				})
				var answered []time.Duration
				least, most := 1<<30, 0
				var flooding []*tally
				for i := range c.callers {
					time.Sleep(time.Duration(i) * 31 * time.Microsecond)
					pause := time.Duration(float64(c.callers) / (c.times * s.rate()) * float64(time.Second))
					flooding = append(flooding, flood(l, s, fmt.Sprint(i), "tool", c.takes, pause, long, &all))
				}
				all.Wait()
				for _, f := range flooding {
					least, most = min(least, len(f.took)), max(most, len(f.took))
					answered = append(answered, f.took...)
				}
				goodput := float64(len(answered)) / (long / 2).Seconds() / s.rate()
				p50, p99 := percentile(answered, .5), percentile(answered, .99)
				t.Logf("goodput %.2f, p50 %v, p99 %v, each %d to %d, quiet %d, %d refused, p99 %v", goodput, p50, p99, least, most,
					len(quiet.took), quiet.refused, percentile(quiet.took, .99))
				if quiet.refused > 0 {
					t.Errorf("%d of the quiet caller's calls were refused", quiet.refused)
				}
				if goodput < 0.9 {
					t.Errorf("%.2f of what the service can do", goodput)
				}
				if p99 > time.Duration(c.slower*float64(c.takes)) {
					t.Errorf("p99 is %v of %v", p99, c.takes)
				}
				if float64(most) > 1.25*float64(least)+5 {
					t.Errorf("one has %d answers, another %d", most, least)
				}
				if open, accounts := l.Open(); open != 0 || accounts != 0 {
					t.Errorf("%d places of %d callers were not given back", open, accounts)
				}
			})
		})
	}
}

// TestABatchIsNoFlood: calls that one caller makes at once, or of whom each waits for an answer before the next, are all answered while
// the service answers them within the wait.
func TestABatchIsNoFlood(t *testing.T) {
	for name, c := range map[string]struct {
		hands, atOnce, times int
		takes                time.Duration
	}{
		"a burst":                  {8, 190, 1, 5 * time.Millisecond},
		"a quick service":          {2, 64, 100, 500 * time.Microsecond},
		"one that is not so quick": {8, 64, 50, 5 * time.Millisecond},
		"a slow one":               {16, 48, 20, 50 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, s := admission.New(256), newService(c.hands, c.takes)
				all, result := sync.WaitGroup{}, &tally{}
				for range c.atOnce {
					all.Go(func() {
						for range c.times {
							result.count(call(t.Context(), l, s, "key", "tool", c.takes))
						}
					})
				}
				all.Wait()
				if result.refused > 0 {
					t.Errorf("%d of %d were refused, p99 %v", result.refused, c.atOnce*c.times, percentile(result.took, .99))
				}
			})
		})
	}
}
