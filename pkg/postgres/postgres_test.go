package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/postgres"
)

func TestMain(m *testing.M) { hubtest.Main(m) }

func TestOnNewerStores(t *testing.T) {
	t.Parallel()
	hubtest.NewerStores(t, "TestBootstrapMayRunTwiceAndTogether|TestMigrateMayRunTwiceAndTogether|"+
		"TestServicesCannotFillOrCrowdTheServer|TestPooler")
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

func TestBootstrapMayRunTwiceAndTogether(t *testing.T) {
	t.Parallel()
	server := hubtest.NewPostgres(t)
	logins := map[string]postgres.Login{
		postgres.Owner:                         {Password: "o"},
		postgres.ServiceRole("auth"):           {Password: "a", Connections: 3},
		postgres.ServiceRole("review-control"): {Password: "it's \"quoted\" \\ ünï"},
	}
	run := func(int) error {
		return postgres.Bootstrap(t.Context(), server.SuperuserURL("postgres"), "hub", logins)
	}
	if err := together(4, run); err != nil {
		t.Fatal(err)
	}
	if err := run(0); err != nil {
		t.Fatal(err)
	}
	exec := func(role, password, sql string) error {
		conn, err := pgx.Connect(t.Context(), server.URL(role, password, "hub"))
		if err != nil {
			return err
		}
		defer conn.Close(t.Context())
		_, err = conn.Exec(t.Context(), sql)
		return err
	}
	for role, login := range logins {
		if err := exec(role, login.Password, "SELECT 1"); err != nil {
			t.Errorf("%s: %v", role, err)
		}
	}
	if err := exec("hub_auth", "a", "CREATE TABLE t (a int)"); err == nil {
		t.Error("a service's role may create tables")
	}
	if err := exec("hub_auth", "a", "CREATE TEMP TABLE t (a int)"); err == nil {
		t.Error("a service's role may create temporary tables")
	}
	if err := exec("hub_auth", "a", "CREATE SCHEMA s"); err == nil {
		t.Error("a service's role may create schemas")
	}
	if err := exec(postgres.Owner, "o", "CREATE SCHEMA s"); err != nil {
		t.Error(err)
	}
	logins["hub_auth"] = postgres.Login{Password: "rotated"}
	if err := run(0); err != nil {
		t.Fatal(err)
	}
	if err := exec("hub_auth", "a", "SELECT 1"); err == nil {
		t.Error("the old password still opens")
	}
	if err := exec("hub_auth", "rotated", "SELECT 1"); err != nil {
		t.Error(err)
	}
	if err := errors.Join(exec(postgres.Owner, "o", "DROP SCHEMA public"), run(0)); err != nil { // nobody misses it
		t.Error(err)
	}
}

func TestMigrateMayRunTwiceAndTogether(t *testing.T) {
	t.Parallel()
	store := hubtest.WriteStore(t)
	files := fstest.MapFS{
		"00001_one.sql": {Data: []byte("-- +goose Up\nCREATE TABLE things.one (a int);\nSELECT pg_sleep(0.1);")},
		"00002_two.sql": {Data: []byte("-- +goose Up\nINSERT INTO things.one VALUES (1);")},
	}
	migrate := func(int) error { return postgres.Migrate(t.Context(), store.OwnerURL, "things", files) }
	start := time.Now()
	// Each waits for a second at a time; with five, which is usual, this would take 35.
	if err := together(8, migrate); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took > 30*time.Second {
		t.Errorf("eight runs that wait for one another took %v", took)
	}
	files["00003_three.sql"] = &fstest.MapFile{Data: []byte("-- +goose Up\nINSERT INTO things.one VALUES (2);")}
	if err := migrate(0); err != nil {
		t.Fatal(err)
	}
	pool := open(t, postgres.Config{URL: store.OwnerURL})
	var rows int
	if err := pool.QueryRow(t.Context(), "SELECT count(*) FROM things.one").Scan(&rows); err != nil || rows != 2 {
		t.Errorf("%d rows, %v", rows, err)
	}
	files["00004_broken.sql"] = &fstest.MapFile{Data: []byte("-- +goose Up\nINSERT INTO things.one VALUES (3);\nSELECT nonsense;")}
	if err := migrate(0); err == nil {
		t.Error("a broken migration passed")
	}
	if err := pool.QueryRow(t.Context(), "SELECT count(*) FROM things.one").Scan(&rows); err != nil || rows != 2 {
		t.Errorf("half of a broken migration stayed: %d rows, %v", rows, err)
	}
}

// TestAMigrationGivesWay: a call that waits for a table that a migration has, and has one that the migration waits for, is not ended.
func TestAMigrationGivesWay(t *testing.T) {
	t.Parallel()
	store := hubtest.WriteStore(t)
	files := fstest.MapFS{"00001_one.sql": {Data: []byte("-- +goose Up\nCREATE TABLE things.one (a int);\nCREATE TABLE things.two (a int);")}}
	migrate := func() error { return postgres.Migrate(t.Context(), store.OwnerURL, "things", files) }
	if err := migrate(); err != nil {
		t.Fatal(err)
	}
	pool := open(t, postgres.Config{URL: store.OwnerURL})
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.WithoutCancel(t.Context()))
	if _, err := tx.Exec(t.Context(), "INSERT INTO things.one VALUES (1)"); err != nil {
		t.Fatal(err)
	}
	files["00002_two.sql"] = &fstest.MapFile{Data: []byte(
		"-- +goose Up\nALTER TABLE things.two ADD COLUMN b int;\nALTER TABLE things.one ADD COLUMN b int;")}
	migrated := make(chan error, 1)
	go func() { migrated <- migrate() }()
	hubtest.Eventually(t, "the migration waits for the call", func() bool {
		var waits bool
		err := pool.QueryRow(t.Context(), "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND relation = 'things.one'::regclass)").
			Scan(&waits)
		return err == nil && waits
	})
	if _, err := tx.Exec(t.Context(), "INSERT INTO things.two VALUES (1)"); err != nil {
		t.Errorf("the call was ended: %v", err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-migrated; err != nil {
		t.Error(err)
	}
}

func TestURLsAreNotQuoted(t *testing.T) {
	t.Parallel()
	const url = "postgres://hub:pa%ss word@:::5432/hub"
	_, err := postgres.Open(postgres.Config{URL: url})
	for _, err := range []error{err, postgres.Migrate(t.Context(), url, "s", fstest.MapFS{})} {
		if err == nil || strings.Contains(err.Error(), "word") || !strings.Contains(err.Error(), "HUB_") {
			t.Errorf("got %v", err)
		}
	}
}

func TestOpenDoesNotWaitForTheStore(t *testing.T) {
	t.Parallel()
	pool := open(t, postgres.Config{URL: "postgres://hub@127.0.0.1:1/hub?sslmode=disable"})
	err := postgres.Fault(pool.Ping(t.Context()))
	if f := fault.From(err); f.Code != fault.DB || f.RetryAfter <= 0 || strings.Contains(f.Message, "127.0.0.1") {
		t.Errorf("got %+v", f)
	}
}

func TestPoolIsBounded(t *testing.T) {
	t.Parallel()
	store := hubtest.WriteStore(t)
	pool := open(t, postgres.Config{URL: store.URL("auth"), StatementTimeout: 50 * time.Millisecond})
	if n := pool.Config().MaxConns; n != 10 {
		t.Errorf("%d connections", n)
	}
	_, err := pool.Exec(t.Context(), "SELECT pg_sleep(20)")
	if !fault.Is(postgres.Fault(err), fault.DB) {
		t.Errorf("a statement beyond its time: %v", err)
	}
	var zone string
	if err := open(
		t,
		postgres.Config{URL: store.URL("auth")},
	).QueryRow(
		t.Context(),
		"SHOW timezone",
	).Scan(
		&zone,
	); err != nil ||
		zone != "UTC" {
		t.Errorf("time zone %s, %v", zone, err)
	}
}

func TestFault(t *testing.T) {
	t.Parallel()
	server := func(code string) error { return fmt.Errorf("store: %w", &pgconn.PgError{Code: code}) }
	for name, c := range map[string]struct {
		err  error
		want fault.Code // "" is the error itself
	}{
		"no error":              {nil, ""},
		"a fault":               {fault.New(fault.NotFound, "x"), fault.NotFound},
		"a wrapped fault":       {fmt.Errorf("x: %w", fault.New(fault.Conflict, "x")), fault.Conflict},
		"connection exception":  {server("08006"), fault.DB},
		"too many connections":  {server("53300"), fault.DB},
		"disk full":             {server("53100"), fault.DB},
		"admin shutdown":        {server("57P01"), fault.DB},
		"crash shutdown":        {server("57P02"), fault.DB},
		"starting up":           {server("57P03"), fault.DB},
		"statement timeout":     {server("57014"), fault.DB},
		"serialization failure": {server("40001"), fault.DB},
		"deadlock":              {server("40P01"), fault.DB},
		"lock timeout":          {server("55P03"), fault.DB},
		"idle in transaction":   {server("25P03"), fault.DB},
		"no log-in":             {server("28000"), fault.DB},
		"wrong password":        {server("28P01"), fault.DB},
		"no database":           {server("3D000"), fault.DB},
		"unique violation":      {server("23505"), ""},
		"syntax error":          {server("42601"), ""},
		"no privilege":          {server("42501"), ""},
		"no code":               {server(""), ""},
		"connection closed":     {net.ErrClosed, fault.DB},
		"network":               {fmt.Errorf("read: %w", &net.OpError{Op: "read", Err: errors.New("connection reset by peer")}), fault.DB},
		"cut off":               {fmt.Errorf("receive: %w", io.ErrUnexpectedEOF), fault.DB},
		"deadline":              {context.DeadlineExceeded, fault.DB},
		"caller went away":      {context.Canceled, ""},
		"no rows":               {pgx.ErrNoRows, ""},
		"anything else":         {errors.New("x"), ""},
	} {
		got := postgres.Fault(c.err)
		// What is no fault of the store's passes as it is.
		unchanged := fault.From(got) == nil || !errors.As(got, new(*fault.Error))
		if c.want == "" && !unchanged || c.want != "" && !fault.Is(got, c.want) || c.err != nil && !errors.Is(got, c.err) {
			t.Errorf("%s: %v, want %q", name, got, c.want)
		}
	}
	if !postgres.IsUnique(fmt.Errorf("x: %w", &pgconn.PgError{Code: "23505", ConstraintName: "c"}), "c") ||
		!postgres.IsUnique(&pgconn.PgError{Code: "23505"}, "") ||
		postgres.IsUnique(&pgconn.PgError{Code: "23505", ConstraintName: "d"}, "c") ||
		postgres.IsUnique(errors.New("x"), "") {
		t.Error("IsUnique")
	}
}

// TestARefusedLogInIsE_DB: it ends as soon as somebody has mended the role or the setting, so calls may be repeated; the log and the
// doctor name the setting.
func TestARefusedLogInIsE_DB(t *testing.T) {
	t.Parallel()
	server := hubtest.Postgres(t)
	for what, url := range map[string]string{
		"a wrong password": hubtest.WriteStoreOn(t, server).URL("auth"),
		"no database":      server.SuperuserURL("nowhere"),
	} {
		url = strings.Replace(url, "hub_auth-test", "another", 1)
		pool := open(t, postgres.Config{URL: url})
		_, err := pool.Exec(t.Context(), "SELECT 1")
		for _, err := range []error{postgres.Fault(err), postgres.NewReadiness(pool, "auth", "SELECT 1").Ready(t.Context())} {
			if f := fault.From(err); f.Code != fault.DB || !f.Retryable() {
				t.Errorf("%s: %v", what, err)
			}
		}
		said := fmt.Sprint(errors.Unwrap(postgres.Explain(err, "auth")))
		if !strings.HasPrefix(said, "HUB_WRITE_STORE_URL does not let auth in") {
			t.Errorf("%s: the cause is %s", what, said)
		}
	}
}

// TestKilledServerIsE_DB kills the server under a running statement, calls it while it is
// away, and uses the same pool when it is back.
func TestKilledServerIsE_DB(t *testing.T) {
	t.Parallel()
	server := hubtest.NewPostgres(t)
	store := hubtest.WriteStoreOn(t, server)
	pool := open(t, postgres.Config{URL: store.URL("auth")})
	watch := open(t, postgres.Config{URL: store.SuperuserURL})
	running := make(chan error, 3)
	for range 2 {
		go func() { _, err := pool.Exec(t.Context(), "SELECT pg_sleep(60)"); running <- err }()
	}
	go func() {
		running <- pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error { _, err := tx.Exec(t.Context(), "SELECT pg_sleep(61)"); return err })
	}()
	hubtest.Eventually(t, "the statements run", func() bool {
		var n int
		return watch.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep(6%'").Scan(&n) == nil &&
			n == 3
	})
	server.Kill()
	for range 3 {
		if err := postgres.Fault(<-running); !fault.Is(err, fault.DB) {
			t.Errorf("a statement in flight: %T %v", err, err)
		}
	}
	for range 20 {
		if err := postgres.Fault(pool.QueryRow(t.Context(), "SELECT 1").Scan(new(int))); !fault.Is(err, fault.DB) {
			t.Fatalf("while it is away: %v", err)
		}
	}
	if err := server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	hubtest.Eventually(t, "the pool recovers", func() bool { return pool.Ping(t.Context()) == nil })
}

// TestAServerThatTakesNoWritesIsNotUsed: after a failover the name may lead to the server of before, a standby. Calls are E_DB and the
// store is not ready meanwhile, and all is well as soon as a server takes writes; whose role may only read is served all the time.
func TestAServerThatTakesNoWritesIsNotUsed(t *testing.T) {
	server := hubtest.NewPostgres(t)
	operator := open(t, postgres.Config{URL: server.SuperuserURL("postgres")})
	takesWrites := func(setting string) {
		t.Helper()
		if _, err := operator.Exec(t.Context(), `ALTER DATABASE postgres `+setting); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := operator.Exec(t.Context(), `CREATE TABLE written (n int)`); err != nil {
		t.Fatal(err)
	}
	takesWrites(`SET default_transaction_read_only = on`)
	pool := open(t, postgres.Config{URL: server.SuperuserURL("postgres")})
	ready := postgres.NewReadiness(pool, "auth", `SELECT FROM written LIMIT 0`)
	_, err := pool.Exec(t.Context(), `INSERT INTO written VALUES (1)`)
	if !fault.Is(postgres.Fault(err), fault.DB) || !fault.Is(ready.Ready(t.Context()), fault.DB) {
		t.Errorf("without a server that takes writes: %v, %v", err, ready.Ready(t.Context()))
	}
	var n int
	reader := open(t, postgres.Config{URL: server.SuperuserURL("postgres"), ReadOnly: true})
	if err := reader.QueryRow(t.Context(), `SELECT count(*) FROM written`).Scan(&n); err != nil {
		t.Errorf("whose role may only read: %v", err)
	}
	_, err = reader.Exec(t.Context(), `INSERT INTO written VALUES (1)`) // as behind a pooler that changes servers under a connection
	if !fault.Is(postgres.Fault(err), fault.DB) {
		t.Error(err)
	}
	takesWrites(`RESET default_transaction_read_only`)
	if _, err := pool.Exec(t.Context(), `INSERT INTO written VALUES (1)`); err != nil {
		t.Errorf("with one: %v", err)
	}
}

// TestWhoLeavesDoesNotMakeTheStoreUnready: the answer of a probe that has gone is not everybody's.
func TestWhoLeavesDoesNotMakeTheStoreUnready(t *testing.T) {
	pool := open(t, postgres.Config{URL: hubtest.NewPostgres(t).SuperuserURL("postgres")})
	ready := postgres.NewReadiness(pool, "auth", `SELECT 1`)
	gone, leave := context.WithCancel(t.Context())
	leave()
	if err := errors.Join(ready.Ready(gone), ready.Ready(t.Context())); err != nil {
		t.Error(err)
	}
}

func TestRows(t *testing.T) {
	pool := hubtest.Pool(t, hubtest.WriteStore(t).SuperuserURL)
	type row struct {
		ID int
		At time.Time
	}
	const three = `SELECT n AS id, '2026-01-02 03:04:05+09'::timestamptz AS at FROM generate_series(1, 3) n WHERE n >= $1`
	want := time.Date(2026, 1, 1, 18, 4, 5, 0, time.UTC)
	all, err := postgres.All(t.Context(), pool, pgx.RowToStructByName[row], three, 1)
	if err != nil || len(all) != 3 {
		t.Fatalf("%v, %v", all, err)
	}
	one, err := postgres.One(t.Context(), pool, pgx.RowToStructByName[row], three, 3)
	if err != nil || one != (row{3, want}) || one.At.Location() != time.UTC {
		t.Errorf("%v, %v: moments are read as UTC", one, err)
	}
	if _, err := postgres.One(t.Context(), pool, pgx.RowToStructByName[row], three, 4); !errors.Is(err, pgx.ErrNoRows) {
		t.Error(err)
	}
	if _, err := postgres.One(t.Context(), pool, pgx.RowToStructByName[row], three, 2); !errors.Is(err, pgx.ErrTooManyRows) {
		t.Error(err)
	}
	if _, err := postgres.All(t.Context(), pool, pgx.RowTo[int], `SELECT FROM nowhere`); !strings.Contains(fmt.Sprint(err), "42P01") {
		t.Error(err)
	}
}
