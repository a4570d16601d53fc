package write_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/postgres"
)

func TestMain(m *testing.M) { hubtest.Main(m) }

func TestOnNewerStores(t *testing.T) {
	t.Parallel()
	hubtest.NewerStores(t, "")
}

func open(t testing.TB, c postgres.Config) *pgxpool.Pool {
	t.Helper()
	pool, err := postgres.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// together runs f n times at the same moment and returns what failed.
func together(n int, f func(i int) error) error {
	errs := make([]error, n)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { <-start; errs[i] = f(i) })
	}
	close(start)
	wg.Wait()
	return errors.Join(errs...)
}
