package hubtest

import (
	"testing"
	"time"
)

// Within runs do until it takes no longer than limit, and fails the test when it takes longer
// twenty times in a row: a busy machine makes some run slow, a slow program every one.
func Within(t testing.TB, limit time.Duration, what string, do func()) {
	t.Helper()
	least := time.Duration(0)
	for range 20 {
		began := time.Now()
		do()
		took := time.Since(began)
		if took <= limit {
			return
		}
		if least == 0 || took < least {
			least = took
		}
	}
	t.Errorf("%s takes %v, and may take %v", what, least, limit)
}
