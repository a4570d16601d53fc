package hubtest

import (
	"testing"
	"time"
)

// Eventually polls until ready answers true, and fails the test after ten seconds. It is for
// what another process or goroutine does; a clock that a test can move needs no polling.
func Eventually(t testing.TB, what string, ready func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		if ready() {
			return
		}
	}
	t.Fatalf("it never came to pass: %s", what)
}
