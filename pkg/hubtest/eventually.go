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
func Eventually(t testing.TB, what string, ready func() bool) {
	t.Helper()
	for deadline := time.Now().Add(Patience); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		if ready() {
			return
		}
	}
	t.Fatalf("it never came to pass: %s", what)
}
