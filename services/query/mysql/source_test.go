package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/localserver"
	"hub.internal/services/query"
	"hub.internal/services/query/mysql/server"
)

// soon is how late what is due may be on a busy machine.
const soon = hubtest.Patience

func openSource(t testing.TB, dsn string, o server.Options) *Source {
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

// fixture is a source of the test's own, with the marketplace's tables.
type fixture struct {
	admin  *sql.DB
	source *Source
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	adminDSN, readerDSN := hubtest.SourceDB(t)
	hubtest.Sequences(t, adminDSN, 200, 20_000)
	return &fixture{admin: admin(t, adminDSN), source: openSource(t, readerDSN, server.Options{})}
}

// plan is a statement's EXPLAIN: the values of its rows in quotes, separated by commas.
func (f *fixture) plan(t testing.TB, statement string) string {
	t.Helper()
	rows, err := f.source.DB().QueryContext(t.Context(), "EXPLAIN FORMAT=TRADITIONAL "+statement)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	values, into := make([]sql.NullString, len(columns)), make([]any, len(columns))
	for i := range values {
		into[i] = &values[i]
	}
	var lines []string
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		line := make([]string, len(values))
		for i, v := range values {
			line[i] = strconv.Quote(v.String)
		}
		lines = append(lines, strings.Join(line, ","))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return strings.Join(lines, "\n")
}

func (f *fixture) exec(t testing.TB, statements ...string) {
	t.Helper()
	for _, q := range statements {
		if _, err := f.admin.ExecContext(t.Context(), q); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
	}
}

// TestGrantsAreChecked uses an account that may do anything.
func TestGrantsAreChecked(t *testing.T) {
	adminDSN, _ := hubtest.SourceDB(t)
	s := openSource(t, adminDSN, server.Options{})
	var grants *server.GrantsError
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
	run := func(o server.Options, deadline time.Duration) (time.Duration, error) {
		s := openSource(t, dsn, o)
		hubtest.Eventually(t, "the source is proven in time", func() bool { return s.Prove(t.Context()) == nil })
		ctx, cancel := context.WithTimeout(t.Context(), deadline)
		defer cancel()
		start := time.Now()
		_, err := s.CategoryTree(ctx)
		return time.Since(start), err
	}
	if took, err := run(server.Options{StatementTimeout: 200 * time.Millisecond}, time.Minute); !fault.Is(err, fault.DBTimeout) ||
		took > soon {
		t.Errorf("the server's limit: %v after %v", err, took)
	}
	hubtest.Within(t, 2*time.Second, "a call with the caller's deadline", func() {
		if took, err := run(server.Options{StatementTimeout: 3 * time.Second}, 200*time.Millisecond); !fault.Is(err, fault.DBTimeout) {
			t.Errorf("the caller's deadline: %v after %v", err, took)
		}
	})
	// What the caller gave up is ended by the server's own limit.
	hubtest.Eventually(t, "the abandoned statement ends", func() bool {
		var n int
		running := db.QueryRow(`SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE 'SELECT c.category_id%'`)
		if err := running.Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n == 0
	})
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	if _, err := openSource(t, dsn, server.Options{}).CategoryTree(ctx); !fault.Is(err, fault.DB) {
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
		if err := openSource(t, fmt.Sprintf("u:p@tcp(127.0.0.1:%d)/d", nobody), server.Options{}).Prove(t.Context()); !fault.Is(err, fault.DB) {
			t.Errorf("nobody listens: %v", err)
		}
	})
	root, err := m.Admin()
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for _, s := range []string{"CREATE DATABASE shop", "CREATE TABLE shop.category (category_id BIGINT, parent_id BIGINT)",
		"CREATE TABLE shop.brand (category_id BIGINT)", "CREATE USER r IDENTIFIED BY 'r'", "GRANT SELECT ON shop.* TO r"} {
		if _, err := root.Exec(s); err != nil {
			t.Fatal(err)
		}
	}
	s := openSource(t, m.DSN("r", "r", "shop"), server.Options{PoolSize: 2})
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

func TestPlainDefault(t *testing.T) {
	for in, want := range map[string]string{"'x'": "x", "''": "", "'NULL'": "NULL", `'it''s'`: "it's", `'a\\b'`: `a\b`, "0": "0",
		"current_timestamp()": "current_timestamp()", "uuid()": "uuid()"} {
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
		"2026-01-31T09:00:00+09:00": "2026-01-31 00:00:00", "2026-01-31T00:00:00.5Z": "2026-01-31 00:00:00.5",
		"2026-01-31T00:00:00.000000001Z": "2026-01-31 00:00:00.000001",
		"2026-01-31T23:59:59.999999999Z": "2026-02-01 00:00:00", "0000-01-01T00:00:00Z": "0001-01-01 00:00:00",
		"9999-12-31T23:00:00-05:00": "9999-12-31 23:59:59.999999",
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

// TestFixedStatementsAreBounded: a tool does not read a table of gigabytes, either.
func TestFixedStatementsAreBounded(t *testing.T) {
	f := newFixture(t)
	f.exec(t, "ALTER TABLE partner_admin MODIFY name LONGTEXT NOT NULL",
		"INSERT INTO partner (partner_id, name, created_at) VALUES (1, 'p', NOW())",
		"INSERT INTO partner_admin (partner_id, name, email, email_verified, account_status, created_at) VALUES (1, REPEAT('x', 6 << 20), "+
			"'a@b.example', 1, 'READY', NOW()), (1, REPEAT('x', 6 << 20), 'a@b.example', 1, 'READY', NOW())")
	if c, err := f.source.PartnerContacts(t.Context(), 1, false); err != nil || len(c.Contacts) != 2 {
		t.Errorf("12 MiB: %v", err)
	}
	f.exec(t, "INSERT INTO partner_admin (partner_id, name, email, email_verified, account_status, created_at) VALUES (1, REPEAT('x', "+
		"6 << 20), 'a@b.example', 1, 'READY', NOW())")
	if _, err := f.source.PartnerContacts(t.Context(), 1, false); !fault.Is(err, fault.Validation) {
		t.Errorf("18 MiB: %v", err)
	}
	f.exec(t, "DELETE FROM partner_admin LIMIT 2")
	if c, err := f.source.PartnerContacts(t.Context(), 1, false); err != nil || len(c.Contacts) != 1 {
		t.Errorf("6 MiB: %v", err)
	}
}

// TestLastCampaignReadsOneEntryOfAnIndex: the join for last_campaign costs a step in ix_campaign_brand and a row for each brand
// of the page, however many campaigns there are.
func TestLastCampaignReadsOneEntryOfAnIndex(t *testing.T) {
	f := newFixture(t)
	f.exec(t, `INSERT INTO brand SELECT seq, 1, CONCAT('b', seq), '', 1, 'KR', NULL, '2026-01-01' FROM seq_1_to_200`,
		`INSERT INTO campaign SELECT seq, 1, 1 + seq % 200, 'c', '1209', '2026-01-01' + INTERVAL seq HOUR, NULL, 0, 0, 0, '2026-01-01' `+
			`FROM seq_1_to_20000`,
		`ANALYZE TABLE brand, campaign`)
	if _, err := f.source.SearchBrands(t.Context(), query.BrandFilter{Page: query.Page{Limit: 50}}); err != nil {
		t.Fatal(err)
	}
	plan := f.plan(t, `SELECT b.brand_id, c.name FROM (SELECT b.brand_id, `+lastCampaign+` AS last_campaign_at FROM brand b
		ORDER BY b.brand_id LIMIT 50) page
		JOIN brand b ON b.brand_id = page.brand_id LEFT JOIN campaign c ON c.campaign_id = `+lastCampaignID)
	if !strings.Contains(plan, `"eq_ref","PRIMARY","PRIMARY"`) || !strings.Contains(plan, `"ix_campaign_brand"`) ||
		strings.Contains(plan, "filesort") {
		t.Errorf("the plan is %s", plan)
	}
	handler := func() (n int64) {
		var name string
		rows, err := f.admin.Query(`SHOW GLOBAL STATUS WHERE Variable_name IN ('Handler_read_rnd_next', 'Handler_read_next', ` +
			`'Handler_read_prev', 'Handler_read_key', 'Handler_read_last')`)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		for rows.Next() {
			var value int64
			if err := rows.Scan(&name, &value); err != nil {
				t.Fatal(err)
			}
			n += value
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := handler()
	if _, err := f.source.SearchBrands(t.Context(), query.BrandFilter{Page: query.Page{Limit: 10}}); err != nil {
		t.Fatal(err)
	}
	if read := handler() - before; read > 4000 {
		t.Errorf("a page of 10 brands reads %d rows", read)
	}
}
