package query_test

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/hubtest"
	"hub.internal/services/query"
)

// TestKeyOfAStatementThatOutlivesItsKill: it gets no other until the server is rid of that
// one, whose slot is taken as long; other keys share the rest.
func TestKeyOfAStatementThatOutlivesItsKill(t *testing.T) {
	unstoppable := hubtest.Unstoppable(t, 4*time.Second)
	f := newSQLFixture(t, sqlOptions{timeout: 300 * time.Millisecond,
		limits: query.SQLLimits{Concurrent: 2, PerKey: 2, Wait: 3 * time.Second}, audit: quiet{}})
	ask := func(key, text string) (time.Duration, error) {
		start := time.Now()
		_, err := f.ExecuteReadSQL(as(t.Context(), key), query.ReadSQLIn{SQL: text, Limit: 1})
		return time.Since(start), err
	}
	if _, err := ask("stuck", "SELECT 1"); err != nil {
		t.Fatal(err)
	}
	if took, err := ask("stuck", unstoppable); !fault.Is(err, fault.DBTimeout) || took > hubtest.Patience {
		t.Fatalf("%v after %s", err, took)
	}
	var refusal *fault.Error
	var others []error
	hubtest.Eventually(t, "the key is refused and the others are not, all while the statement runs", func() bool {
		if runningOf(t, "%LOCATE%") == 0 { // it ended on a machine that has become quicker: another one takes its place
			_, _ = ask("stuck", unstoppable)
		}
		took, err := ask("stuck", "SELECT 1")
		refusal, others = fault.From(err), nil
		for i := range 4 { // one after the other, they all get the slot that is left
			_, err := ask(fmt.Sprint("other", i), "SELECT 1")
			others = append(others, err)
		}
		return fault.Is(err, fault.RateLimit) && took < hubtest.Here(time.Second) && runningOf(t, "%LOCATE%") == 1
	})
	if want := map[string]any{"scope": "source", "retryAfter": 5}; !reflect.DeepEqual(refusal.Details, want) ||
		refusal.RetryAfter != 5*time.Second {
		t.Errorf("%v, details %v", refusal, refusal.Details)
	}
	if err := errors.Join(others...); err != nil {
		t.Errorf("another key: %v", err)
	}
	// With the other slot held too, nobody gets one.
	if took, err := ask("stuck too", unstoppable); !fault.Is(err, fault.DBTimeout) {
		t.Errorf("the second: %v after %s", err, took)
	}
	if runningOf(t, "%LOCATE%") == 2 {
		if took, err := ask("third", "SELECT 1"); err == nil && runningOf(t, "%LOCATE%") == 2 {
			t.Errorf("a third statement ran, after %s", took)
		}
	}
	hubtest.Eventually(t, "the first key is free again", func() bool {
		_, err := ask("stuck", "SELECT 1")
		return err == nil
	})
	if running := runningOf(t, "%LOCATE%"); running > 1 {
		t.Errorf("%d statements still run, and the first one's key is free", running)
	}
	hubtest.Eventually(t, "nothing runs, and the keys are free", func() bool {
		_, err := ask("stuck", "SELECT 1")
		_, err2 := ask("stuck too", "SELECT 1")
		return err == nil && err2 == nil && runningOf(t, "%LOCATE%") == 0
	})
}

// runningOf counts the statements on the test's server that match.
func runningOf(t *testing.T, pattern string) (n int) {
	t.Helper()
	m, err := hubtest.SourceServer(t).Admin()
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if err := m.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM information_schema.processlist WHERE id <> CONNECTION_ID() `+
		`AND info LIKE ?`, pattern).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
