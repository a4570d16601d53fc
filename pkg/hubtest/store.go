package hubtest

import (
	"context"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	pgstore "hub.internal/pkg/postgres"
)

// Store is a service's part of the write store, as far as all of them are alike.
type Store interface {
	Ready(context.Context) error
}

// ExerciseStore holds a service's store to what every one promises: its migration repeats and
// runs at several places at once, and an error of the set-up names what to mend and no
// secret. service is the discovery name.
func ExerciseStore[S Store](t *testing.T, service string, migrate func(ctx context.Context, ownerURL string) error,
	open func(*pgstore.Pool) S) {
	t.Helper()
	t.Parallel()
	ready := func(url string) error {
		t.Helper()
		return open(Pool(t, url)).Ready(t.Context())
	}
	names := func(what string, err error, name, secret string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v, which has to name %s", what, err, name)
		}
	}
	db := WriteStore(t)
	names("no tables", ready(db.URL(service)), service+" migrate", testPassword(pgstore.ServiceRole(service)))
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			if err := migrate(t.Context(), db.OwnerURL); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if err := ready(db.URL(service)); err != nil {
		t.Error(err)
	}
	role := pgstore.ServiceRole(service)
	names("another service's role", ready(db.URL("query")), role, testPassword(role))
	const password = "not-the-password"
	names("a wrong password", ready(strings.Replace(db.URL(service), testPassword(role), password, 1)), "HUB_WRITE_STORE_URL", password)
}

// Pool opens a pool that closes with the test.
func Pool(t testing.TB, url string) *pgstore.Pool {
	t.Helper()
	pool, err := pgstore.Open(pgstore.Config{URL: url, StatementTimeout: Patience})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// Plan runs a statement on PostgreSQL and returns how it was done: which indexes served, and
// how many rows each step read.
// The statement is executed: EXPLAIN ANALYZE.
func Plan(t testing.TB, conn pgstore.Querier, sql string, args ...any) string {
	t.Helper()
	rows, err := conn.Query(t.Context(), `EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, BUFFERS OFF) `+sql, args...)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return wholeRows.ReplaceAllString(strings.Join(lines, "\n"), "$1") // as before PostgreSQL 18
}

// wholeRows is how PostgreSQL writes numbers of rows from 18 on.
var wholeRows = regexp.MustCompile(`(\brows=\d+)\.00\b`)
