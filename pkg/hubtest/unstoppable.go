package hubtest

import (
	"fmt"
	"math"
	"testing"
	"time"
)

// Unstoppable is a statement of the source that computes for about d on this machine, as busy as it is at this moment, in one
// call of a function that looks for no KILL. Finding its size costs some tenths of d.
func Unstoppable(t testing.TB, d time.Duration) string {
	t.Helper()
	db, err := SourceServer(t).Admin()
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	locate := func(size float64) string {
		return fmt.Sprintf("SELECT LOCATE(CONCAT(REPEAT('a',%.0f),'b'),REPEAT('a',%.0f))", size, 2*size)
	}
	quickest := func(size float64) time.Duration {
		least := time.Duration(math.MaxInt64)
		for range 3 { // whatever else runs makes some of them longer
			var at int
			began := time.Now()
			if err := db.QueryRowContext(t.Context(), locate(size)).Scan(&at); err != nil {
				t.Fatal(err)
			}
			least = min(least, time.Since(began))
		}
		return least
	}
	// The time grows with the square of the size.
	for size := 8_000.0; ; size *= 1.4 {
		if took := quickest(size); took >= d/20 {
			return locate(size * math.Sqrt(float64(d)/float64(took)))
		}
	}
}
