package admission_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"hub.internal/pkg/admission"
)

func enter(t *testing.T, l *admission.Limiter, who string) *admission.Place {
	t.Helper()
	place, err := l.Enter(t.Context(), who, "tool")
	if err != nil {
		t.Fatalf("%q: %v", who, err)
	}
	return place
}

// TestNeverMoreThanTheLimit: whatever comes and goes in which order, no more is let in than the limit allows, what waits has a reason
// to, everything comes back, and nobody is remembered who has nothing.
func TestNeverMoreThanTheLimit(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var failure any // which rapid makes smaller
		synctest.Test(t, func(*testing.T) {
			defer func() { failure = recover() }()
			anyOrder(r)
		})
		if failure != nil {
			panic(failure)
		}
	})
}

func anyOrder(t *rapid.T) {
	most := rapid.IntRange(1, 40).Draw(t, "most")
	l := admission.New(most)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	entered := make(chan *admission.Place, 1000)
	var open []*admission.Place
	one := func() int { return rapid.IntRange(0, len(open)-1).Draw(t, "which") }
	settle := func() {
		synctest.Wait()
		for len(entered) > 0 {
			open = append(open, <-entered)
		}
	}
	t.Repeat(map[string]func(*rapid.T){
		"enter": func(t *rapid.T) {
			who := rapid.SampledFrom([]string{"", "a", "b", "c", "d", "e"}).Draw(t, "who")
			before, working, _, _ := l.Use()
			taken, _ := l.Open()
			go func() {
				place, err := l.Enter(ctx, who, "tool")
				if err == nil {
					entered <- place
				} else if !errors.Is(err, admission.ErrFull) && !errors.Is(err, context.Canceled) {
					panic(err)
				}
			}()
			settle()
			_, after, _, _ := l.Use()
			if after > working && after > before {
				t.Fatalf("%d at once, the limit is %d", after, before)
			}
			if now, _ := l.Open(); who == "" && taken < most && now != taken+1 {
				t.Fatal("the process itself gets no place")
			}
		},
		"answered": func(t *rapid.T) {
			if len(open) > 0 {
				open[one()].Answered()
			}
		},
		"failed": func(t *rapid.T) {
			if len(open) > 0 {
				open[one()].Failed()
			}
		},
		"leave": func(t *rapid.T) {
			if len(open) > 0 {
				i := one()
				open[i].Leave()
				open[i].Leave()
				open = append(open[:i], open[i+1:]...)
			}
		},
		"wait": func(t *rapid.T) { time.Sleep(time.Duration(rapid.IntRange(1, 150).Draw(t, "ms")) * time.Millisecond) },
		"": func(t *rapid.T) {
			settle()
			limit, working, waiting, _ := l.Use()
			taken, accounts := l.Open()
			if limit < int64(min(most, admission.Floor)) || limit > int64(most) {
				t.Fatalf("the limit is %d of %d", limit, most)
			}
			if taken != len(open) || taken > most || working > int64(taken) || waiting > int64(most) || accounts > 5 {
				t.Fatalf("%d of %d places, %d known, %d unanswered, %d wait, %d callers", taken, most, len(open), working, waiting, accounts)
			}
		},
	})
	time.Sleep(admission.Patience)
	settle()
	for _, place := range open {
		place.Leave()
	}
	settle()
	taken, accounts := l.Open()
	if _, working, waiting, _ := l.Use(); taken+accounts != 0 || working+waiting != 0 {
		t.Fatalf("left behind: %d places, %d callers, %d unanswered, %d waiting", taken, accounts, working, waiting)
	}
}

// TestWhatAnswersTakeSetsTheLimit: it falls when all take longer, and comes back when they do not.
func TestWhatAnswersTakeSetsTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := admission.New(256)
		begin, _, _, _ := l.Use()
		for _, step := range []struct {
			what        string
			takes       time.Duration
			atOnce      int
			calls       int
			failed      bool
			least, most int64
		}{
			{"little to do", 10 * time.Millisecond, 1, 300, false, begin, begin},
			{"much to do, as quick as ever", 11 * time.Millisecond, 60, 6000, false, 100, 256},
			{"little to do again", 10 * time.Millisecond, 1, 600, false, begin, begin},
			{"all take four times as long", 40 * time.Millisecond, 20, 800, false, admission.Floor, 24},
			{"they are quick again", 10 * time.Millisecond, 1, 400, false, begin, begin},
			{"they fail", time.Millisecond, 20, 8000, true, admission.Floor, admission.Floor},
			{"they are answered", 10 * time.Millisecond, 1, 400, false, begin, begin},
		} {
			for range step.calls / step.atOnce {
				var places []*admission.Place
				for i := range step.atOnce {
					if place, err := l.Enter(t.Context(), fmt.Sprint(i), "tool"); err == nil {
						places = append(places, place)
					}
				}
				time.Sleep(step.takes)
				for _, place := range places {
					if step.failed {
						place.Failed()
					} else {
						place.Answered()
					}
					place.Leave()
				}
			}
			if limit, _, _, _ := l.Use(); limit < step.least || limit > step.most {
				t.Errorf("%s: %d, want %d to %d", step.what, limit, step.least, step.most)
			}
		}
	})
}

// TestSlowToolsAreNoOverload: a tool is compared with itself, so more calls of slow ones change nothing; nor does a tool that has
// become slow by itself, or what a reader takes, or a refusal, or a caller that goes away.
func TestSlowToolsAreNoOverload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := admission.New(256)
		begin, _, _, _ := l.Use()
		one := func(tool string, takes, read time.Duration) {
			place, err := l.Enter(t.Context(), "key", tool)
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(takes)
			if tool != "refused" {
				place.Answered()
			}
			time.Sleep(read)
			place.Leave()
		}
		for i := range 2000 {
			one("quick", 2*time.Millisecond, 0)
			if i%20 == 0 || i > 1000 && i%3 == 0 {
				one("scan", time.Second, 0)
			}
			if i%10 == 0 {
				one("statement", time.Duration(1+i/1000*100000)*time.Millisecond, 0)
				one("refused", time.Second, 0)
				one("quick", 2*time.Millisecond, 10*time.Second)
			}
			if limit, _, _, _ := l.Use(); limit != begin {
				t.Fatalf("the limit is %d, was %d", limit, begin)
			}
		}
	})
}

// TestAnOutageOfWhatIsNotComparedLeavesNothing: what the answers of such calls could not raise again, their failures do not lower.
func TestAnOutageOfWhatIsNotComparedLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := admission.New(256)
		begin, _, _, _ := l.Use()
		for i := range 2000 {
			var places []*admission.Place
			for who := range 40 {
				place, err := l.Enter(t.Context(), fmt.Sprint(who), "")
				if err != nil {
					t.Fatalf("round %d: a call is refused: %v", i, err)
				}
				places = append(places, place)
			}
			time.Sleep(50 * time.Millisecond)
			for _, place := range places {
				if i > 500 && i < 1000 {
					place.Failed()
				} else {
					place.Answered()
				}
				place.Leave()
			}
			if limit, _, _, _ := l.Use(); limit != begin {
				t.Fatalf("round %d: the limit is %d, was %d", i, limit, begin)
			}
		}
	})
}

// TestAServiceThatIsSlowerForGood gets as much to do as it can after a while, even under a flood.
func TestAServiceThatIsSlowerForGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := admission.New(256)
		for i := range 60000 {
			takes := 5 * time.Millisecond
			if i > 1000 {
				takes = 50 * time.Millisecond
			}
			go func() { _, _ = call(context.Background(), l, newService(1, 0), fmt.Sprint(i%8), "tool", takes) }()
			time.Sleep(500 * time.Microsecond)
		}
		if limit, _, _, _ := l.Use(); limit < 100 {
			t.Errorf("the limit is %d, and nothing was slower for more calls at once", limit)
		}
		time.Sleep(time.Second)
	})
}

func TestAWaitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := admission.Begin(16, 4)
		var held []*admission.Place
		for range 4 {
			held = append(held, enter(t, l, "many"))
		}
		began := time.Now()
		if _, err := l.Enter(t.Context(), "many", "tool"); !errors.Is(err, admission.ErrFull) || time.Since(began) != admission.Patience {
			t.Errorf("who has much waits %v: %v", time.Since(began), err)
		}
		began = time.Now()
		quiet := enter(t, l, "quiet")
		if time.Since(began) != admission.Patience {
			t.Errorf("who has nothing waits %v", time.Since(began))
		}
		quiet.Leave()
		began = time.Now()
		hurried, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		defer cancel()
		if _, err := l.Enter(hurried, "hurried", "tool"); !errors.Is(err, admission.ErrFull) || time.Since(began) != 30*time.Millisecond {
			t.Errorf("until its deadline: %v after %v", err, time.Since(began))
		}
		gone, leave := context.WithCancel(t.Context())
		time.AfterFunc(10*time.Millisecond, leave)
		if _, err := l.Enter(gone, "gone", "tool"); !errors.Is(err, context.Canceled) {
			t.Errorf("it went away: %v", err)
		}
		time.AfterFunc(20*time.Millisecond, held[0].Answered)
		began = time.Now()
		if place := enter(t, l, "next"); time.Since(began) != 20*time.Millisecond {
			t.Errorf("the next has waited %v", time.Since(began))
		} else {
			place.Leave()
		}
		for _, place := range held {
			place.Leave()
		}
	})
}

// TestWhoseTurnItIs: who has the least is first, then who had none for longest. The calls of one come in order while few wait and none
// for long; one too many takes the place of the oldest.
func TestWhoseTurnItIs(t *testing.T) {
	for name, c := range map[string]struct {
		wait  time.Duration
		calls []string
		want  string
	}{
		"few":             {0, []string{"a1", "a2", "b1", "b2", "c1"}, "[c1 b1 a1 b2]"},
		"few, for long":   {150 * time.Millisecond, []string{"a1", "a2", "b1", "b2", "c1"}, "[c1 b2 a2 b1]"},
		"many of one":     {0, []string{"a1", "a2", "b1", "b2", "b3", "c1"}, "[c1 b3 a1 b1]"},
		"too many of one": {0, []string{"a1", "a2", "a3", "a4", "a5", "a6", "b1"}, "[a1 b1 a6 a5 a4]"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := admission.Begin(16, 4)
				var held []*admission.Place
				for _, who := range []string{"a", "b", "a", "a"} {
					held = append(held, enter(t, l, who))
				}
				decided := make(chan string, len(c.calls))
				for _, name := range c.calls {
					go func() {
						place, err := l.Enter(t.Context(), name[:1], "tool")
						decided <- name
						if err == nil {
							time.Sleep(time.Second)
							place.Leave()
						}
					}()
					synctest.Wait()
				}
				time.Sleep(c.wait)
				for _, place := range held {
					place.Leave()
					synctest.Wait()
				}
				var order []string
				for len(decided) > 0 {
					order = append(order, <-decided)
				}
				if got := fmt.Sprint(order); got != c.want {
					t.Errorf("%s", got)
				}
				time.Sleep(3 * time.Second)
			})
		})
	}
}

// TestSomethingIsLeft of all places for others, however much one calls, and for the process itself, however many call.
func TestSomethingIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 64
		l := admission.New(most)
		fill := func(who string) (n int) {
			for {
				place, err := l.Enter(t.Context(), who, "tool")
				if err != nil {
					return n
				}
				place.Answered() // and never read
				n++
			}
		}
		left := most - most/admission.Reserve
		for i := range 3 {
			if n := fill(fmt.Sprint(i)); n != left-left/2 {
				t.Errorf("caller %d gets %d of %d", i, n, left)
			} else {
				left -= n
			}
		}
		for i := range most {
			_, _ = l.Enter(t.Context(), fmt.Sprint("other ", i), "tool")
		}
		if n := fill(""); n != most/admission.Reserve {
			t.Errorf("the process itself gets %d", n)
		}
	})
}

// BenchmarkCall is what a call costs where there is a place for it.
func BenchmarkCall(b *testing.B) {
	l := admission.New(256)
	b.ReportAllocs()
	for b.Loop() {
		place, err := l.Enter(b.Context(), "key", "tool")
		if err != nil {
			b.Fatal(err)
		}
		place.Answered()
		place.Leave()
	}
}
