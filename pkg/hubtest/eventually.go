package hubtest

import (
	"testing"
	"time"
)

// Patience only ends a hang: what is waited for takes milliseconds, but minutes may pass on a
// machine that is busy with other things.
const Patience = 2 * time.Minute

// Eventually polls until ready answers true, and fails the test after Patience. It is for
// what another process or goroutine does; a clock that a test can move needs no polling.
// It asks every 2 ms at first, and less often the longer it takes, every 25 ms at least.
func Eventually(t testing.TB, what string, ready func() bool) {
	t.Helper()
	began := time.Now()
	for took := time.Duration(0); took < Patience; took = time.Since(began) {
		if ready() {
			return
		}
		time.Sleep(min(max(took/10, 2*time.Millisecond), 25*time.Millisecond))
	}
	t.Fatalf("it never came to pass: %s", what)
}
