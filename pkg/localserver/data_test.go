package localserver_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"

	"hub.internal/pkg/localserver"
)

func itoa(n int) string { return strconv.Itoa(n) }

func TestSourceUsersMayDoWhatTheyShould(t *testing.T) {
	m, err := localserver.StartMariaDB(t.Context(), localserver.Options{Dir: filepath.Join(dir(t), "m"), Fast: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Remove() })
	src := localserver.Source{
		Database: "market_place", Schema: "CREATE TABLE t (a VARCHAR(9)); INSERT INTO t VALUES ('🍣'),('🍺');",
		Owner: "owner", OwnerPassword: `o'w\n`, Reader: localserver.SourceReadOnly, ReaderPassword: "r",
	}
	for range 2 { // the second time changes nothing
		if err := m.CreateSource(t.Context(), src); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.CreateSource(t.Context(), localserver.Source{Database: "marketXplace", Owner: "o2", Reader: "r2"}); err != nil {
		t.Fatal(err)
	}
	reader := openMySQL(t, m.DSN(src.Reader, src.ReaderPassword, src.Database))
	var n int
	if err := reader.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM t WHERE a = '🍣'").Scan(&n); err != nil || n != 1 {
		t.Errorf("count = %d, %v; want 1: the collation must tell emoji apart", n, err)
	}
	wantMySQLError(t, reader, "INSERT INTO t VALUES ('x')", 1142)
	wantMySQLError(t, reader, "SELECT * FROM mysql.user", 1142)
	wantMySQLError(t, reader, "USE marketXplace", 1044) // the _ of the grant is literal
	owner := openMySQL(t, m.DSN(src.Owner, src.OwnerPassword, src.Database))
	if _, err := owner.ExecContext(t.Context(), "INSERT INTO t VALUES ('x')"); err != nil {
		t.Error(err)
	}
	wantMySQLError(t, openMySQL(t, m.DSN("root", "", "")), "SELECT 1", 1045)

	m.Kill() // and the data are there after a crash
	if err := m.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := openMySQL(
		t,
		m.DSN(src.Reader, src.ReaderPassword, src.Database),
	).QueryRow(
		"SELECT COUNT(*) FROM t",
	).Scan(
		&n,
	); err != nil ||
		n != 3 {
		t.Errorf("rows after the crash = %d, %v; want 3", n, err)
	}
	if err := m.DropSource(t.Context(), src); err != nil {
		t.Error(err)
	}
}

func TestPostgresWantsPasswordsOverTCP(t *testing.T) {
	p, err := localserver.StartPostgres(t.Context(), localserver.Options{Dir: filepath.Join(dir(t), "p"), Fast: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Remove() })
	conn, err := pgx.Connect(t.Context(), p.SuperuserURL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), "CREATE ROLE a LOGIN PASSWORD 'secret'"); err != nil {
		t.Fatal(err)
	}
	if _, err := pgx.Connect(t.Context(), p.URL("a", "wrong", "postgres")); err == nil {
		t.Error("a wrong password was accepted")
	}
	if _, err := pgx.Connect(t.Context(), p.URL(localserver.PostgresSuperuser, "", "postgres")); err == nil {
		t.Error("the superuser came in over TCP")
	}
	ok, err := pgx.Connect(t.Context(), p.URL("a", "secret", "postgres"))
	if err != nil {
		t.Fatal(err)
	}
	ok.Close(t.Context())

	if err := p.Pause(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := conn.Ping(ctx); err == nil {
		t.Error("a paused server answered on an open connection")
	}
	if err := p.Resume(); err != nil {
		t.Fatal(err)
	}
}

// TestAKilledPostgresLeavesNothing: its shared memory goes with its directory.
func TestAKilledPostgresLeavesNothing(t *testing.T) {
	home := dir(t)
	p, err := localserver.StartPostgres(t.Context(), localserver.Options{Dir: filepath.Join(home, "p"), Fast: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Remove() })
	if found, err := filepath.Glob(filepath.Join(home, "p", "data", "pg_dynshmem", "mmap.*")); len(found) == 0 {
		t.Errorf("none of its shared memory is in its directory (%v)", err)
	}
}

func TestRedisPassword(t *testing.T) {
	r, err := localserver.StartRedis(t.Context(), localserver.Options{Dir: filepath.Join(dir(t), "r"), Password: "pw"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Remove() })
	if err := r.Do(t.Context(), "SELECT 1000", "FLUSHDB"); err != nil {
		t.Error(err)
	}
	if want := "redis://:pw@" + r.Addr() + "/3"; r.URL(3) != want {
		t.Errorf("URL = %s, want %s", r.URL(3), want)
	}
}

func openMySQL(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func wantMySQLError(t *testing.T, db *sql.DB, query string, number uint16) {
	t.Helper()
	_, err := db.ExecContext(t.Context(), query)
	var e *mysql.MySQLError
	if !errors.As(err, &e) || e.Number != number {
		t.Errorf("%s: error %v, want number %d", query, err, number)
	}
}
