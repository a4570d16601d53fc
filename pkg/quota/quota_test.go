package quota_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hub.internal/pkg/quota"
)

func TestNobodyHasMoreThanHalf(t *testing.T) {
	q := quota.New(10)
	mine, alsoMine, theirs, own := q.Open("me"), q.Open("me"), q.Open("them"), q.Open("")
	for _, step := range []struct {
		what string
		loan *quota.Loan
		n    int64
		want bool
	}{
		{"less than half", mine, 4, true}, {"more than the rest of it", alsoMine, 2, false}, {"the rest of it", alsoMine, 1, true},
		{"another's half", theirs, 5, true}, {"all is taken", own, 1, false},
	} {
		if got := step.loan.TryTake(step.n); got != step.want {
			t.Errorf("%s: %t", step.what, got)
		}
	}
	theirs.Close()
	if !own.TryTake(5) || own.TryTake(1) {
		t.Error("what was given back is not there, or more than that")
	}
	for _, l := range []*quota.Loan{mine, alsoMine, own, theirs} {
		l.Close() // one of them twice
	}
	if l := q.Open(""); !l.TryTake(10) {
		t.Error("something was not given back")
	}
}

func TestWhatIsNotKeptIsThere(t *testing.T) {
	q := quota.New(10)
	for _, who := range []string{"me", ""} {
		l, other, third := q.Open(who), q.Open("them"), q.Open("third")
		if !l.TryTake(5) {
			t.Fatalf("%q gets nothing", who)
		}
		l.Keep(7)
		l.Keep(2)
		if !l.TryTake(3) || !other.TryTake(5) || third.TryTake(1) {
			t.Errorf("%q gave back too little, or too much", who)
		}
		l.Keep(0)
		for _, loan := range []*quota.Loan{l, other, third} {
			loan.Close()
		}
	}
	if l := q.Open(""); !l.TryTake(10) {
		t.Error("something was not given back")
	}
}

func TestALoanLargerThanItsShareGoesOn(t *testing.T) {
	q := quota.New(10)
	l := q.Open("me")
	for range 3 {
		if err := l.Take(t.Context(), 8); err != nil {
			t.Fatal(err)
		}
	}
	if other := q.Open("them"); !other.TryTake(5) {
		t.Error("it has more than its share")
	}
}

func TestAWaitEnds(t *testing.T) {
	q := quota.New(4)
	first := q.Open("me")
	if !first.TryTake(2) {
		t.Fatal("not the first")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	second := q.Open("me")
	if err := second.Take(ended, 1); err == nil {
		t.Fatal("more than the share")
	}
	got := make(chan error)
	go func() { got <- second.Take(t.Context(), 2) }()
	select {
	case err := <-got:
		t.Fatalf("it did not wait: %v", err)
	case <-time.After(10 * time.Millisecond):
	}
	first.Close()
	if err := <-got; err != nil {
		t.Error(err)
	}
}

// TestManyAtOnce: whatever many do, nobody has more than they may, and all comes back.
func TestManyAtOnce(t *testing.T) {
	const size = 100
	q := quota.New(size)
	var all atomic.Int64
	var each [3]atomic.Int64
	var wg sync.WaitGroup
	for i := range 30 {
		wg.Go(func() {
			for range 200 {
				who, sum := i%len(each), int64(0)
				l := q.Open(fmt.Sprint(who))
				for range 3 {
					n := rand.Int64N(15)
					taken := rand.N(2) == 0 && l.TryTake(n)
					if !taken {
						ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
						taken = l.Take(ctx, n) == nil
						cancel()
					}
					if !taken {
						continue
					}
					sum += n
					if a, e := all.Add(n), each[who].Add(n); a > size || e > size/2 {
						t.Errorf("%d taken, %d of them by one", a, e)
					}
				}
				all.Add(-sum)
				each[who].Add(-sum)
				l.Close()
			}
		})
	}
	wg.Wait()
	if l := q.Open(""); !l.TryTake(size) {
		t.Error("something was not given back")
	}
}
