package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	mysqldriver "github.com/go-sql-driver/mysql"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/localserver"
)

func openSource(t testing.TB, dsn string, o Options) *Source {
	t.Helper()
	s, err := Open(dsn, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func admin(t testing.TB, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func TestOpenRefuses(t *testing.T) {
	for dsn, want := range map[string]string{
		"":                               "HUB_SOURCE_DSN names no database",
		"user:secret@tcp(host:3306)/":    "HUB_SOURCE_DSN names no database",
		"user:secret@host":               "HUB_SOURCE_DSN is not a data source name",
		"u:secret@tcp(h:1)/d?sql_mode=x": "HUB_SOURCE_DSN sets the session variable sql_mode",
	} {
		if _, err := Open(dsn, Options{}); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("Open(%q): %v, want %q", dsn, err, want)
		}
	}
	s, err := Open("u:p@tcp(h:1)/d?multiStatements=true&allowAllFiles=true&parseTime=true&interpolateParams=false&clientFoundRows=true&columnsWithAlias=true", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if c := s.server.config; c.MultiStatements || c.AllowAllFiles || c.ParseTime || !c.InterpolateParams || c.ClientFoundRows || c.ColumnsWithAlias {
		t.Errorf("the DSN decides what it must not: %+v", c)
	}
}

func TestSessions(t *testing.T) {
	_, dsn := hubtest.SourceDB(t)
	s := openSource(t, dsn, Options{PoolSize: 3, StatementTimeout: 1500 * time.Millisecond})
	if d, err := s.Dialect(t.Context()); d != MariaDB || err != nil {
		t.Fatalf("dialect %q, %v", d, err)
	}
	var got [6]string
	err := s.DB().QueryRow(`SELECT @@tx_read_only, @@max_statement_time, @@time_zone, @@sql_mode, @@lock_wait_timeout, @@character_set_client`).
		Scan(&got[0], &got[1], &got[2], &got[3], &got[4], &got[5])
	if want := [6]string{"1", "1.5", "+00:00", sqlMode, "5", "utf8mb4"}; err != nil || got != want {
		t.Errorf("session %q, %v, want %q", got, err, want)
	}
	if _, err := s.DB().Exec(`INSERT INTO category VALUES (1, 0, 0)`); err == nil {
		t.Error("the session writes")
	}
	if _, err := s.DB().Exec(`SELECT 1; SELECT 2`); err == nil {
		t.Error("the session takes two statements at once")
	}
}

func TestSessionsOfOtherServers(t *testing.T) {
	for version, want := range map[string]Dialect{
		"10.11.19-MariaDB-0+deb12u1": MariaDB, "5.5.5-11.4.2-MariaDB": MariaDB, "8.0.43": MySQL, "8.4.0-commercial": MySQL, "8.0.11-TiDB-v7.5.1": TiDB,
	} {
		if got := dialectOf(version); got != want {
			t.Errorf("%s is %s, want %s", version, got, want)
		}
	}
	mysql8 := sessionOf(MySQL, 1500*time.Millisecond)
	if mysql8["max_execution_time"] != "1500" || mysql8["transaction_read_only"] != "1" || mysql8["max_statement_time"] != "" || mysql8["tx_read_only"] != "" {
		t.Errorf("MySQL: %v", mysql8)
	}
	if tidb := sessionOf(TiDB, time.Microsecond); tidb["max_execution_time"] != "1" || tidb["transaction_read_only"] != "" {
		t.Errorf("TiDB: %v", tidb)
	}
}

// TestGrantsAreChecked uses an account that may do anything.
func TestGrantsAreChecked(t *testing.T) {
	adminDSN, _ := hubtest.SourceDB(t)
	s := openSource(t, adminDSN, Options{})
	var grants *GrantsError
	if err := s.Prove(t.Context()); !errors.As(err, &grants) {
		t.Errorf("Prove: %v", err)
	}
	if _, err := s.Categories(t.Context(), 0, "ko"); !fault.Is(err, fault.DB) || !errors.As(err, &grants) {
		t.Errorf("a call with too many rights: %v", err)
	}
}

func TestTimeLimits(t *testing.T) {
	adminDSN, dsn := hubtest.SourceDB(t)
	db := admin(t, adminDSN)
	lock, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if _, err := lock.ExecContext(t.Context(), `LOCK TABLES category WRITE, category AS c WRITE`); err != nil {
		t.Fatal(err)
	}
	run := func(o Options, deadline time.Duration) (time.Duration, error) {
		s := openSource(t, dsn, o)
		hubtest.Eventually(t, "the source is proven in time", func() bool { return s.Prove(t.Context()) == nil })
		ctx, cancel := context.WithTimeout(t.Context(), deadline)
		defer cancel()
		start := time.Now()
		_, err := s.CategoryTree(ctx)
		return time.Since(start), err
	}
	if took, err := run(Options{StatementTimeout: 200 * time.Millisecond}, time.Minute); !fault.Is(err, fault.DBTimeout) || took > soon {
		t.Errorf("the server's limit: %v after %v", err, took)
	}
	hubtest.Within(t, 2*time.Second, "a call with the caller's deadline", func() {
		if took, err := run(Options{StatementTimeout: 3 * time.Second}, 200*time.Millisecond); !fault.Is(err, fault.DBTimeout) {
			t.Errorf("the caller's deadline: %v after %v", err, took)
		}
	})
	// What the caller gave up is ended by the server's own limit.
	hubtest.Eventually(t, "the abandoned statement ends", func() bool {
		var n int
		if err := db.QueryRow(`SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE 'SELECT c.category_id%'`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n == 0
	})
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	if _, err := openSource(t, dsn, Options{}).CategoryTree(ctx); !fault.Is(err, fault.DB) {
		t.Errorf("a caller who leaves: %v", err)
	}
}

// TestServerComesAndGoes starts without a server, stops it, and brings it back.
func TestServerComesAndGoes(t *testing.T) {
	m := hubtest.NewMariaDB(t)
	nobody, err := localserver.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	hubtest.Within(t, time.Second, "a call when nobody listens", func() {
		if err := openSource(t, fmt.Sprintf("u:p@tcp(127.0.0.1:%d)/d", nobody), Options{}).Prove(t.Context()); !fault.Is(err, fault.DB) {
			t.Errorf("nobody listens: %v", err)
		}
	})
	root, err := m.Admin()
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for _, s := range []string{"CREATE DATABASE shop", "CREATE TABLE shop.category (category_id BIGINT, parent_id BIGINT)", "CREATE TABLE shop.brand (category_id BIGINT)", "CREATE USER r IDENTIFIED BY 'r'", "GRANT SELECT ON shop.* TO r"} {
		if _, err := root.Exec(s); err != nil {
			t.Fatal(err)
		}
	}
	s := openSource(t, m.DSN("r", "r", "shop"), Options{PoolSize: 2})
	read := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		_, err := s.CategoryTree(ctx)
		return err
	}
	if err := read(); err != nil {
		t.Fatal(err)
	}
	if err := m.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := read(); !fault.Is(err, fault.DB) {
		t.Errorf("stopped: %v", err)
	}
	if err := m.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	// Connections that died with the server are noticed before they are used.
	if err := read(); err != nil {
		t.Errorf("back again: %v", err)
	}
	if err := m.Pause(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	start := time.Now()
	if _, err := s.CategoryTree(ctx); !fault.Is(err, fault.DBTimeout) || time.Since(start) > soon {
		t.Errorf("hung: %v after %v", err, time.Since(start))
	}
	if err := m.Resume(); err != nil {
		t.Fatal(err)
	}
	if err := read(); err != nil {
		t.Errorf("awake again: %v", err)
	}
}

func TestFault(t *testing.T) {
	server := func(number uint16) error {
		return &mysqldriver.MySQLError{Number: number, Message: "Table 'shop.campaign' doesn't exist"}
	}
	late, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	for _, c := range []struct {
		ctx  context.Context
		err  error
		want fault.Code
	}{
		{t.Context(), nil, ""},
		{t.Context(), server(1969), fault.DBTimeout},
		{t.Context(), server(3024), fault.DBTimeout},
		{t.Context(), context.DeadlineExceeded, fault.DBTimeout},
		{late, mysqldriver.ErrInvalidConn, fault.DBTimeout},
		{t.Context(), server(1205), fault.DB},
		{t.Context(), server(1213), fault.DB},
		{t.Context(), server(1040), fault.DB},
		{t.Context(), connecting(server(1044)), fault.DB},
		{t.Context(), connecting(server(1045)), fault.DB},
		{t.Context(), connecting(server(1049)), fault.DB},
		{t.Context(), server(1045), fault.NotFound}, // of a view whose definer is gone
		{t.Context(), mysqldriver.ErrInvalidConn, fault.DB},
		{t.Context(), fmt.Errorf("wrapped: %w", &net.OpError{Op: "dial", Err: errors.New("refused")}), fault.DB},
		{t.Context(), sql.ErrConnDone, fault.DB},
		{t.Context(), server(1146), fault.NotFound},
		{t.Context(), server(1142), fault.NotFound},
		{t.Context(), server(1054), fault.NotFound},
		{t.Context(), server(1064), fault.Internal},
		{t.Context(), errors.New("sql: Scan error"), fault.Internal},
		{t.Context(), fault.New(fault.RateLimit, "x"), fault.RateLimit},
	} {
		got := Fault(c.ctx, c.err)
		if c.err == nil && got != nil || c.err != nil && fault.From(got).Code != c.want {
			t.Errorf("%v is %v, want %s", c.err, got, c.want)
		}
	}
	for message, want := range map[string]string{
		"Table 'shop.campaign' doesn't exist":                                       "campaign",
		"Table 'campaign' doesn't exist":                                            "campaign",
		"SELECT command denied to user 'r'@'localhost' for table `shop`.`campaign`": "campaign",
		"SELECT command denied to user 'r'@'localhost' for table 'campaign'":        "campaign",
		"something else": "?",
	} {
		if got := tableIn(message); got != want {
			t.Errorf("table in %q is %q, want %q", message, got, want)
		}
	}
}

func TestPlainDefault(t *testing.T) {
	for in, want := range map[string]string{"'x'": "x", "''": "", "'NULL'": "NULL", `'it''s'`: "it's", `'a\\b'`: `a\b`, "0": "0", "current_timestamp()": "current_timestamp()", "uuid()": "uuid()"} {
		if got := plainDefault(&in); got == nil || *got != want {
			t.Errorf("%s is %v, want %q", in, got, want)
		}
	}
	null := "NULL"
	if plainDefault(nil) != nil || plainDefault(&null) != nil {
		t.Error("no default is not null")
	}
}

func TestWallClock(t *testing.T) {
	for in, want := range map[string]string{
		"2026-01-31T09:00:00+09:00": "2026-01-31 00:00:00", "2026-01-31T00:00:00.5Z": "2026-01-31 00:00:00.5", "2026-01-31T00:00:00.000000001Z": "2026-01-31 00:00:00.000001",
		"2026-01-31T23:59:59.999999999Z": "2026-02-01 00:00:00", "0000-01-01T00:00:00Z": "0001-01-01 00:00:00", "9999-12-31T23:00:00-05:00": "9999-12-31 23:59:59.999999",
	} {
		at, err := time.Parse(time.RFC3339Nano, in)
		if err != nil {
			t.Fatal(err)
		}
		if got := wallClock(at); got != want {
			t.Errorf("%s is %s, want %s", in, got, want)
		}
	}
}
