package bulkhead_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"hub.internal/services/auth/bulkhead"
)

func line(atOnce, waiting int) *bulkhead.Bulkhead {
	return bulkhead.New(bulkhead.Options{AtOnce: atOnce, Waiting: waiting, Patience: 3 * time.Second, Now: time.Now})
}

func network(n int) bulkhead.Claim {
	return bulkhead.Stranger([]string{fmt.Sprintf("10.%d.%d.1", n/250, n%250), fmt.Sprintf("10.%d.%d.0/24", n/250, n%250)})
}

// people wait in a line, and are told apart by what they are called.
type people struct {
	t     *testing.T
	turns *bulkhead.Bulkhead

	mu        sync.Mutex
	had, full []string
}

// come lets somebody wait, and waits until they do. Their turn takes so long.
func (p *people) come(name string, c bulkhead.Claim, takes time.Duration) {
	go func() {
		turn, err := p.turns.Acquire(p.t.Context(), c)
		list := &p.had
		if errors.Is(err, bulkhead.ErrFull) {
			list = &p.full
		} else if err != nil {
			p.t.Error(err)
		}
		p.mu.Lock()
		*list = append(*list, name)
		p.mu.Unlock()
		if err == nil {
			time.Sleep(takes)
			turn.Release()
		}
	}()
	synctest.Wait()
}

func (p *people) expect(had, full string) {
	p.t.Helper()
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	if fmt.Sprint(p.had) != had || fmt.Sprint(p.full) != full {
		p.t.Errorf("had their turn: %v, want %s; found none: %v, want %s", p.had, had, p.full, full)
	}
}

func TestOrder(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		do        func(*people)
		had, full string
	}{
		"two at once, two wait, the next finds no place": {func(p *people) {
			p.turns = line(2, 2)
			for i := range 5 {
				p.come(fmt.Sprint(i), network(i), time.Second+time.Duration(i)*time.Millisecond)
			}
			p.expect("[0 1]", "[4]")
		}, "[0 1 2 3]", "[4]"},
		"who is known comes first, and finds a place": {func(p *people) {
			for i := range 5 {
				p.come(fmt.Sprint(i), network(i), time.Second/2)
			}
			p.come("ada", bulkhead.Known("ada"), time.Second/2)
		}, "[0 ada 1 2]", "[3 4]"},
		"who has tried least comes first, and takes a place": {func(p *people) {
			for range 3 {
				p.come("busy", network(1), 0)
			}
			p.come("first", network(2), time.Second)
			for i := range 2 {
				p.come(fmt.Sprint("busy ", i), bulkhead.Stranger([]string{"10.0.1.1", fmt.Sprint("10.", i)}), time.Second)
			}
			p.come("new", network(3), time.Second)
		}, "[busy busy busy first new busy 0]", "[busy 1]"},
		"parts of a network have tried what it has": {func(p *people) {
			for i := range 8 {
				p.come("home", bulkhead.Stranger([]string{fmt.Sprint("2001:db8:0:", i, "::/64"), "2001:db8::/56"}), 0)
			}
			p.come("first", network(2), time.Second)
			p.come("home 9", bulkhead.Stranger([]string{"2001:db8:0:9::/64", "2001:db8::/56"}), time.Second)
			p.come("new", network(3), time.Second)
		}, "[home home home home home home home home first new home 9]", "[]"},
		"what is forgiven counts for nothing": {func(p *people) {
			for range 3 {
				turn, err := p.turns.Acquire(p.t.Context(), network(1))
				if err != nil {
					p.t.Fatal(err)
				}
				turn.Forgive()
				turn.Release()
			}
			p.come("first", network(2), time.Second)
			p.come("office", network(1), time.Second)
			p.come("new", network(3), time.Second)
		}, "[first office new]", "[]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := &people{t: t, turns: line(1, 2)}
				c.do(p)
				time.Sleep(time.Minute)
				synctest.Wait()
				p.expect(c.had, c.full)
			})
		})
	}
}

// TestShare: one network, and one who is known, has a quarter of the places.
func TestShare(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &people{t: t, turns: line(1, 8)}
		p.come("first", network(0), time.Second)
		for range 3 {
			p.come("flood", network(1), 0)
			p.come("ada", bulkhead.Known("ada"), 0)
		}
		p.expect("[first]", "[flood ada]")
		time.Sleep(time.Minute)
		p.expect("[first ada ada flood flood]", "[flood ada]")
	})
}

func TestWaitsEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &people{t: t, turns: line(1, 2)}
		p.come("first", network(0), 10*time.Second)
		began := time.Now()
		p.come("patient", network(1), 0)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := p.turns.Acquire(ctx, network(2)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("who left: %v", err)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if waited := time.Since(began); waited != 3*time.Second {
			t.Errorf("waited for %v", waited)
		}
		p.expect("[first]", "[patient]")
		time.Sleep(10 * time.Second)
		p.come("next", network(3), 0) // nobody who left has the turn
		p.expect("[first next]", "[patient]")
	})
}

// TestWhatIsRememberedIsBounded has more networks try than are remembered, and then all be quiet for an hour.
func TestWhatIsRememberedIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := line(1, 1)
		try := func(n int) {
			turn, err := p.Acquire(t.Context(), bulkhead.Stranger([]string{fmt.Sprint("n", n), fmt.Sprint("w", n/256)}))
			if err != nil {
				t.Fatal(err)
			}
			turn.Release()
		}
		for n := range 100_000 {
			try(n)
		}
		if n := p.Remembered(); n < 20_000 || n > 40_100 {
			t.Errorf("%d networks are remembered", n)
		}
		for n := range 2 {
			time.Sleep(30 * time.Minute)
			try(n)
		}
		if n := p.Remembered(); n > 4 {
			t.Errorf("%d networks are remembered after an hour", n)
		}
	})
}

// TestPeopleAmongAttackers has 300 networks try as often as they may, which is twice as much as can be had, and somebody
// come now and then who has not tried before.
func TestPeopleAmongAttackers(t *testing.T) {
	t.Parallel()
	const networks, burst, every, takes = 300, 30, 10 * time.Second, 60 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		people := line(1, 32)
		var attackers sync.WaitGroup
		var served atomic.Int64
		ctx, cancel := context.WithCancel(t.Context())
		attack := func(n int, pause time.Duration) {
			turn, err := people.Acquire(ctx, network(n))
			if err == nil {
				time.Sleep(takes)
				turn.Release()
				served.Add(1)
			}
			time.Sleep(pause)
		}
		for n := range networks {
			attackers.Go(func() {
				time.Sleep(time.Duration(n) * every / networks)
				for range burst {
					attack(n, 100*time.Millisecond)
				}
				for ctx.Err() == nil {
					attack(n, every)
				}
			})
		}
		time.Sleep(every)
		for person := range 50 {
			time.Sleep(7 * time.Second)
			began := time.Now()
			turn, err := people.Acquire(ctx, network(networks+person))
			if err != nil {
				t.Fatalf("person %d: %v", person, err)
			}
			if waited := time.Since(began); waited > 2*takes {
				t.Errorf("person %d waited for %v", person, waited)
			}
			time.Sleep(takes)
			turn.Release()
		}
		cancel()
		attackers.Wait()
		if busy := time.Duration(served.Load()) * takes; busy < 5*time.Minute {
			t.Errorf("the attackers were busy for %v: nobody had to wait", busy)
		}
	})
}
