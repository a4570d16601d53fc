package postgres_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/postgres"
)

// TestStatementsTravelTogether counts round trips: what is queued goes with what is asked for, BEGIN and COMMIT with either.
func TestStatementsTravelTogether(t *testing.T) {
	t.Parallel()
	store, distance := hubtest.WriteStore(t).Far(t)
	pool := hubtest.Pool(t, store.URL("authoring"))
	for _, c := range []struct {
		name string
		most int
		do   func(*postgres.Tx) error
	}{
		{"nothing but statements", 1, func(tx *postgres.Tx) error {
			tx.Queue(`SELECT 1`)
			return postgres.Later(t.Context(), tx, `SELECT $1::int`, 2)
		}},
		{"a statement whose rows decide", 2, func(tx *postgres.Tx) error {
			tx.Queue(`SELECT 1`)
			_, err := postgres.One(t.Context(), tx, pgx.RowTo[int], `SELECT 1`)
			tx.Queue(`SELECT 2`)
			return err
		}},
		{"a row that decides", 2, func(tx *postgres.Tx) error {
			var n int
			return tx.QueryRow(t.Context(), `SELECT 1`).Scan(&n)
		}},
		{"a statement whose outcome may forbid COMMIT", 2, func(tx *postgres.Tx) error {
			tx.Check(`SELECT 1`)
			return nil
		}},
	} {
		distance.AtMost(t, c.most, c.name, func() {
			if err := postgres.Atomically(t.Context(), pool, pgx.TxOptions{}, c.do); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		})
	}
}

// TestATransactionIsAllOrNothing: wherever it ends, nothing of it stays and the connection is as before.
func TestATransactionIsAllOrNothing(t *testing.T) {
	t.Parallel()
	store := hubtest.WriteStore(t)
	pool := hubtest.Pool(t, store.OwnerURL)
	exec := func(sql string) {
		t.Helper()
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	exec(`CREATE TABLE things (n int PRIMARY KEY, again int UNIQUE DEFERRABLE INITIALLY DEFERRED)`)
	exec(`INSERT INTO things VALUES (0, 0)`)
	refused := errors.New("refused")
	insert := func(tx *postgres.Tx) { tx.Queue(`INSERT INTO things VALUES (1, 1)`) }
	for name, c := range map[string]struct {
		do   func(context.Context, *postgres.Tx) error
		want func(error) bool
	}{
		"refused before anything is sent": {func(_ context.Context, tx *postgres.Tx) error {
			insert(tx)
			return refused
		}, func(err error) bool { return errors.Is(err, refused) }},
		"refused later": {func(ctx context.Context, tx *postgres.Tx) error {
			insert(tx)
			return errors.Join(tx.Send(ctx), refused)
		}, func(err error) bool { return errors.Is(err, refused) }},
		"a queued statement fails": {func(_ context.Context, tx *postgres.Tx) error {
			insert(tx)
			insert(tx)
			return nil
		}, func(err error) bool { return postgres.IsUnique(err, "things_pkey") }},
		"a swallowed failure": {func(ctx context.Context, tx *postgres.Tx) error {
			insert(tx)
			_, _ = tx.Exec(ctx, `SELECT 1 / (SELECT n FROM things WHERE n = 0)`)
			return nil
		}, func(err error) bool { return err != nil }},
		"a swallowed failure to begin": {func(ctx context.Context, tx *postgres.Tx) error {
			_, _ = tx.Exec(ctx, `SELECT nonsense`)
			insert(tx)
			return nil
		}, func(err error) bool { return err != nil }},
		"COMMIT fails": {func(_ context.Context, tx *postgres.Tx) error {
			tx.Queue(`INSERT INTO things VALUES (1, 0)`)
			return nil
		}, func(err error) bool { return postgres.IsUnique(err, "things_again_key") }},
		"an outcome that forbids it": {func(_ context.Context, tx *postgres.Tx) error {
			insert(tx)
			tx.Check(`SELECT 1`).QueryRow(func(pgx.Row) error {
				tx.Fail(refused)
				return nil
			})
			return nil
		}, func(err error) bool { return errors.Is(err, refused) }},
		"the caller is gone": {func(_ context.Context, tx *postgres.Tx) error {
			gone, cancel := context.WithCancel(t.Context())
			insert(tx)
			cancel()
			return tx.Send(gone)
		}, func(err error) bool { return errors.Is(err, context.Canceled) }},
	} {
		err := postgres.Atomically(t.Context(), pool, pgx.TxOptions{}, func(tx *postgres.Tx) error { return c.do(t.Context(), tx) })
		if !c.want(err) {
			t.Errorf("%s: %v", name, err)
		}
		var n int
		if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM things`).Scan(&n); err != nil || n != 1 {
			t.Errorf("%s: %d things, %v", name, n, err)
		}
	}
	if n := pool.Stat().AcquiredConns(); n != 0 {
		t.Errorf("%d connections are still taken", n)
	}
}

// TestWhatTheServerHasEndedIsNotUsed: a connection is known to be dead without asking the server, which is asked after a while only.
func TestWhatTheServerHasEndedIsNotUsed(t *testing.T) {
	t.Parallel()
	store := hubtest.WriteStore(t)
	pool := hubtest.Pool(t, store.URL("authoring"))
	super := hubtest.Pool(t, store.SuperuserURL)
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	asks := func(idle time.Duration) bool {
		return pool.Config().ShouldPing(t.Context(), pgxpool.ShouldPingParams{Conn: conn.Conn(), IdleDuration: idle})
	}
	if asks(10 * time.Second) {
		t.Error("the server is asked about a connection that is there")
	}
	if !asks(time.Minute) {
		t.Error("the server is not asked about a connection that was idle for a minute")
	}
	if _, err := super.Exec(t.Context(), `SELECT pg_terminate_backend($1)`, conn.Conn().PgConn().PID()); err != nil {
		t.Fatal(err)
	}
	hubtest.Eventually(t, "the connection is known to be gone", func() bool { return asks(0) })
	conn.Release()
	if _, err := pool.Exec(t.Context(), `SELECT 1`); err != nil {
		t.Error(err)
	}
}
