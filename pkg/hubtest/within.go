package hubtest

import (
	"testing"
	"time"
)

// Within runs do until it takes no longer than limit, and fails the test when it takes longer
// twenty times in a row: a busy machine makes some run slow, a slow program every one. The limit
// is that of an idle machine of today: where a fixed piece of work takes a slower or busier one
// some times as long, so may do.
func Within(t testing.TB, limit time.Duration, what string, do func()) {
	t.Helper()
	var least, allowed time.Duration
	for range 20 {
		began := time.Now()
		do()
		took := time.Since(began)
		if took <= limit {
			return
		}
		if allowed = Here(limit); took <= allowed {
			return
		}
		if least == 0 || took < least {
			least = took
		}
	}
	t.Errorf("%s takes %v, and may take %v", what, least, allowed)
}

// idleMachine is what measureMachine takes where a limit holds as it is.
const idleMachine = 40 * time.Millisecond

// Here is what a limit of an idle machine of today is on this one at the moment; never less.
func Here(limit time.Duration) time.Duration {
	return time.Duration(float64(limit) * max(1, float64(measureMachine())/float64(idleMachine)))
}

// measureMachine is how long a fixed piece of work takes: computing, and waiting for another
// goroutine, as who calls a program does. The race detector makes it hardly slower.
// It takes some tens of milliseconds.
func measureMachine() time.Duration {
	began := time.Now()
	there, back := make(chan uint64), make(chan uint64)
	go func() {
		defer close(back)
		for n := range there {
			back <- xorshift(n)
		}
	}()
	n := uint64(1)
	for range 100 {
		there <- xorshift(n)
		n = <-back
	}
	close(there)
	<-back
	return time.Since(began)
}

// xorshift is n after many steps of a xorshift generator, by G. Marsaglia.
func xorshift(n uint64) uint64 {
	for range 100_000 {
		n ^= n << 13
		n ^= n >> 7
		n ^= n << 17
	}
	return n
}
