package bulkhead

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"hub.internal/pkg/fault"
)

// check panics when the bulkhead breaks its own rules.
func (b *Bulkhead) check() {
	b.mu.Lock()
	defer b.mu.Unlock()
	sum := 0
	for key, n := range b.running {
		sum += n
		if n <= 0 || n > b.perKey {
			panic(fmt.Sprintf("%d running of key %s, limit %d", n, key, b.perKey))
		}
	}
	for key, n := range b.overdue {
		if n <= 0 || n > b.running[key] {
			panic(fmt.Sprintf("%d of %d running of key %s are overdue", n, b.running[key], key))
		}
	}
	if sum != b.total || b.total > b.limit {
		panic(fmt.Sprintf("%d running, %d counted, limit %d", sum, b.total, b.limit))
	}
	if b.total < b.limit {
		for _, w := range b.queue {
			if b.running[w.key] < b.perKey {
				panic("a statement waits that could run")
			}
			if b.overdue[w.key] > 0 {
				panic("a statement waits whose key has one that is overdue")
			}
		}
	}
}

func TestTurnsComeInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(2, 1, time.Hour)
		var mu sync.Mutex
		var order []string
		hold := time.Second
		enter := func(key, name string) {
			hold += time.Millisecond // no two end at once
			go func(hold time.Duration) {
				turn, err := b.Enter(t.Context(), key)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				order = append(order, name)
				mu.Unlock()
				time.Sleep(hold)
				turn.End()
			}(hold)
			synctest.Wait()
			b.check()
		}
		for _, s := range []struct{ key, name string }{{"a", "a1"}, {"a", "a2"}, {"a", "a3"}, {"b", "b1"}, {"c", "c1"}, {"b", "b2"}} {
			enter(s.key, s.name)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		// b1 passes a2, whose key is at its limit; c1 and b2 come behind a2.
		if want := []string{"a1", "b1", "a2", "c1", "a3", "b2"}; !reflect.DeepEqual(order, want) {
			t.Errorf("order %v, want %v", order, want)
		}
		if b.total != 0 || len(b.queue) != 0 || len(b.running) != 0 {
			t.Errorf("left behind: %d running, %d waiting", b.total, len(b.queue))
		}
	})
}

// TestCrowdDoesNotKeepAnotherKeyWaiting: who has nothing running need not wait for all that
// came before.
func TestCrowdDoesNotKeepAnotherKeyWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(2, 2, time.Hour)
		var mu sync.Mutex
		var order []string
		enter := func(key string) {
			go func() {
				turn, err := b.Enter(t.Context(), key)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				order = append(order, key)
				mu.Unlock()
				time.Sleep(time.Second)
				turn.End()
			}()
			synctest.Wait()
			time.Sleep(time.Millisecond) // no two end at once
		}
		for _, key := range []string{"a", "a", "a", "a", "a", "b", "b"} {
			enter(key)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if want := []string{"a", "a", "b", "a", "b", "a", "a"}; !reflect.DeepEqual(order, want) {
			t.Errorf("order %v, want %v", order, want)
		}
	})
}

func TestTurnThatDoesNotCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(1, 1, 2*time.Second)
		turn, err := b.Enter(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		_, err = b.Enter(t.Context(), "b")
		f := fault.From(err)
		if took := time.Since(start); !fault.Is(err, fault.RateLimit) || took != 2*time.Second {
			t.Errorf("%v after %s", err, took)
		}
		if want := map[string]any{"scope": "source", "retryAfter": 1}; !reflect.DeepEqual(f.Details, want) || f.RetryAfter != time.Second {
			t.Errorf("details %v, retry after %s", f.Details, f.RetryAfter)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := b.Enter(ctx, "b"); !errors.Is(err, context.DeadlineExceeded) || len(b.queue) != 0 {
			t.Errorf("a caller who went away: %v, %d still in the queue", err, len(b.queue))
		}
		if _, err := b.Enter(ctx, "b"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a caller who is gone: %v", err)
		}
		turn.End()
		if _, err := b.Enter(t.Context(), "b"); err != nil {
			t.Error(err)
		}
	})
}

// TestKeyWithAnOverdueStatementGetsNoTurn, and the others get theirs.
func TestKeyWithAnOverdueStatementGetsNoTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(4, 2, 2*time.Second)
		enter := func(key string) *Turn {
			t.Helper()
			turn, err := b.Enter(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			return turn
		}
		stuck, other := enter("a"), enter("a")
		waited := make(chan error, 1)
		go func() {
			_, err := b.Enter(t.Context(), "a")
			waited <- err
		}()
		synctest.Wait()
		refused := func(err error) {
			t.Helper()
			f := fault.From(err)
			if want := map[string]any{
				"scope":      "source",
				"retryAfter": 5,
			}; !fault.Is(err, fault.RateLimit) || !reflect.DeepEqual(f.Details, want) ||
				f.RetryAfter != 5*time.Second {
				t.Errorf("%v, details %v, retry after %s", err, f.Details, f.RetryAfter)
			}
		}
		start := time.Now()
		stuck.Overdue()
		refused(<-waited) // who waited does not wait on
		_, err := b.Enter(t.Context(), "a")
		refused(err)
		other.End() // its slot is for other keys
		_, err = b.Enter(t.Context(), "a")
		refused(err)
		for range 2 {
			defer enter("b").End()
		}
		if time.Since(start) != 0 {
			t.Errorf("it took %s", time.Since(start))
		}
		b.check()
		stuck.End()
		enter("a").End()
		b.check()
	})
}

func TestQueueIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(1, 1, time.Second)
		if _, err := b.Enter(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		for range maxWaiting {
			go b.Enter(t.Context(), "b")
		}
		synctest.Wait()
		start := time.Now()
		if _, err := b.Enter(t.Context(), "c"); !fault.Is(err, fault.RateLimit) || time.Since(start) != 0 {
			t.Errorf("%v after %s", err, time.Since(start))
		}
		time.Sleep(2 * time.Second)
	})
}

// TestBulkheadHolds lets many callers come, go away and finish at random moments.
func TestBulkheadHolds(t *testing.T) {
	for seed := range uint64(30) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 1))
			b := New(1+rng.IntN(6), 1+rng.IntN(3), time.Duration(1+rng.IntN(20))*time.Millisecond)
			var ran, refused, left int
			var mu sync.Mutex
			count := func(n *int) { mu.Lock(); *n++; mu.Unlock() }
			var wg sync.WaitGroup
			const callers = 300
			for range callers {
				key := fmt.Sprint(rng.IntN(5))
				stuck := rng.IntN(10) == 0
				hold, patience := time.Duration(rng.IntN(5000))*time.Microsecond, time.Duration(rng.IntN(30000))*time.Microsecond
				wg.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), patience)
					defer cancel()
					switch turn, err := b.Enter(ctx, key); {
					case err == nil:
						b.check()
						time.Sleep(hold)
						if stuck {
							turn.Overdue()
							b.check()
							time.Sleep(hold)
						}
						turn.End()
						b.check()
						count(&ran)
					case fault.Is(err, fault.RateLimit):
						count(&refused)
					default:
						count(&left)
					}
				})
				if rng.IntN(4) == 0 {
					time.Sleep(time.Duration(rng.IntN(1000)) * time.Microsecond)
				}
			}
			wg.Wait()
			b.check()
			if b.total != 0 || len(b.queue) != 0 || len(b.running) != 0 || len(b.overdue) != 0 || ran+refused+left != callers || ran == 0 {
				t.Errorf("seed %d: %d running, %d waiting; %d ran, %d refused, %d left", seed, b.total, len(b.queue), ran, refused, left)
			}
		})
	}
}

// TestBulkheadRace is the same without a fake clock, for the race detector.
func TestBulkheadRace(t *testing.T) {
	b := New(3, 2, time.Millisecond)
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			for j := range 200 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(j%7)*300*time.Microsecond)
				key := fmt.Sprint(i % 4)
				if turn, err := b.Enter(ctx, key); err == nil {
					b.check()
					turn.End()
				}
				cancel()
			}
		})
	}
	wg.Wait()
	if b.total != 0 || len(b.queue) != 0 {
		t.Errorf("%d running, %d waiting", b.total, len(b.queue))
	}
}

// TestLoad is what admin is told of the statements.
func TestLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(2, 1, time.Minute)
		wants := func(want Load) {
			t.Helper()
			if got := b.Load(); got != want {
				t.Errorf("%+v, want %+v", got, want)
			}
		}
		wants(Load{})
		a, err := b.Enter(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			if second, err := b.Enter(t.Context(), "a"); err == nil {
				second.End()
			}
		}()
		synctest.Wait()
		wants(Load{Running: 1, Waiting: 1})
		a.Overdue()
		wants(Load{Running: 1, Overdue: 1})
		a.End()
		wants(Load{})
	})
}
