package server

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/hubtest"
)

// planned is a source with one session, and what the server says of its prepared statements.
type planned struct {
	*Server
	admin *sql.DB
	root  *sql.DB
}

func newPlanned(t *testing.T) *planned {
	t.Helper()
	adminDSN, dsn := hubtest.SourceDB(t)
	p := &planned{Server: openSource(t, dsn, Options{PoolSize: 1})}
	var err error
	if p.admin, err = sql.Open("mysql", adminDSN); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.admin.Close() })
	if p.root, err = hubtest.SourceServer(t).Admin(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.root.Close() })
	return p
}

func (p *planned) exec(t *testing.T, on *sql.DB, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := on.ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// kept is how many statements the server keeps prepared.
func (p *planned) kept(t *testing.T) (n int) {
	t.Helper()
	var name string
	if err := p.root.QueryRowContext(t.Context(), `SHOW GLOBAL STATUS LIKE 'Prepared_stmt_count'`).Scan(&name, &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// rowsOf runs a statement in one of the two ways, and returns its rows as texts.
func (p *planned) rowsOf(run func(context.Context, string, []any, func(*sql.Rows) error) error) func(context.Context, string, ...any) (
	[]string, error) {
	return func(ctx context.Context, statement string, args ...any) (rows []string, err error) {
		err = run(ctx, statement, args, func(r *sql.Rows) error {
			columns, err := r.Columns()
			if err != nil {
				return err
			}
			values, to := make([]sql.NullString, len(columns)), make([]any, len(columns))
			for i := range values {
				to[i] = &values[i]
			}
			if err := r.Scan(to...); err != nil {
				return err
			}
			rows = append(rows, fmt.Sprint(values))
			return nil
		})
		return rows, err
	}
}

// ask runs a statement prepared.
func (p *planned) ask(ctx context.Context, statement string, args ...any) ([]string, error) {
	return p.rowsOf(p.QueryPrepared)(ctx, statement, args...)
}

func (p *planned) wants(t *testing.T, want, statement string, args ...any) {
	t.Helper()
	if rows, err := p.ask(t.Context(), statement, args...); err != nil || strings.Join(rows, " ") != want {
		t.Errorf("%s with %v: %v, %v, want %s", statement, args, rows, err, want)
	}
}

// TestPlansAreOfAConnection: a constant statement is prepared once on it, no other is, and all are forgotten with it.
func TestPlansAreOfAConnection(t *testing.T) {
	p := newPlanned(t)
	before := p.kept(t)
	for i := range 3 {
		p.wants(t, fmt.Sprintf("[{%d true}]", 1+i), "SELECT 1 + ?", i)
		p.wants(t, fmt.Sprintf("[{%d true}]", 2+i), "SELECT 2 + ?", i)
		if rows, err := p.rowsOf(p.Query)(t.Context(), "SELECT 3 + ?", i); err != nil || len(rows) != 1 {
			t.Fatal(rows, err)
		}
	}
	if n := p.kept(t) - before; n != 2 {
		t.Errorf("%d statements are prepared, want 2", n)
	}
	p.Close()
	hubtest.Eventually(t, "the server forgets them with the connection", func() bool { return p.kept(t) == before })
}

// TestPreparedAnswersAreThoseOfTexts for the types of arguments and of columns that the fixed statements have.
func TestPreparedAnswersAreThoseOfTexts(t *testing.T) {
	p := newPlanned(t)
	p.exec(t, p.admin, `CREATE TABLE kinds (id BIGINT PRIMARY KEY, u BIGINT UNSIGNED, d DECIMAL(20,4), f DOUBLE, g FLOAT, t VARCHAR(40),
		b VARBINARY(9), dt DATETIME, d6 DATETIME(6), day DATE, c CHAR(4), y YEAR, j JSON, bt BIT(9))`,
		`INSERT INTO kinds VALUES (1, 18446744073709551615, -12.5000, 0.1, 0.1, '김 O''Brien \\ 100%', x'00FF27', '2026-01-31 09:00:00',
			'2026-01-31 09:00:00.000120', '2026-01-31', '1206', 2026, '{"a":1}', b'101')`,
		`INSERT INTO kinds (id) VALUES (2)`)
	for _, c := range []struct {
		where string
		arg   any
	}{
		{"id = ?", int64(1)}, {"id >= ?", 1}, {"t = ?", `김 O'Brien \ 100%`}, {"t LIKE ?", "%100!%"}, {"t LIKE ?", `%o'brien%`},
		{"dt = ?", time.Date(2026, 1, 31, 9, 0, 0, 0, time.UTC)}, {"dt < ?", "2026-02-01"}, {"d6 > ?", "2026-01-31 09:00:00"},
		{"d6 > ?", time.Date(2026, 1, 31, 9, 0, 0, 0, time.FixedZone("KST", 9*3600))},
		{"day = ?", "2026-01-31"}, {"FIND_IN_SET(c, ?)", "1206,1209"}, {"d = ?", "-12.5"}, {"u = ?", uint64(18446744073709551615)},
		{"f = ?", 0.1}, {"? IS NULL", nil}, {"b = ?", []byte{0, 0xff, '\''}}, {"id = ? OR 1", true}, {"t = ?", "' OR '1'='1"},
	} {
		statement := "SELECT * FROM kinds WHERE " + c.where + " ORDER BY id LIMIT 5"
		want, err := p.rowsOf(p.Query)(t.Context(), statement, c.arg)
		if err != nil {
			t.Fatalf("%s with %v: %v", c.where, c.arg, err)
		}
		for range 3 {
			p.wants(t, strings.Join(want, " "), statement, c.arg)
		}
	}
	p.wants(t, "[{1 true} {2026-01-31 09:00:00 true}]", "SELECT id, dt FROM kinds ORDER BY id LIMIT ?", 1)
}

// TestAPlanThatIsNotToBeHad costs nobody an answer.
func TestAPlanThatIsNotToBeHad(t *testing.T) {
	p := newPlanned(t)
	const statement = "SELECT COUNT(*), MAX(note) FROM remarks WHERE id > ?"
	p.exec(t, p.admin, "CREATE TABLE remarks (id INT PRIMARY KEY, note VARCHAR(10))", "INSERT INTO remarks VALUES (1, 'a')")
	for range 3 {
		p.wants(t, "[{1 true} {a true}]", statement, 0)
	}
	// A table that is altered, or made anew, under the plan.
	p.exec(t, p.admin, "ALTER TABLE remarks ADD COLUMN more INT", "ALTER TABLE remarks MODIFY note TEXT")
	p.wants(t, "[{1 true} {a true}]", statement, 0)
	p.exec(t, p.admin, "DROP TABLE remarks")
	if _, err := p.ask(t.Context(), statement, 0); !fault.Is(err, fault.NotFound) {
		t.Errorf("without its table: %v", err)
	}
	p.exec(t, p.admin, "CREATE TABLE remarks (note VARCHAR(10), id BIGINT PRIMARY KEY)", "INSERT INTO remarks VALUES ('b', 7)")
	for range 3 {
		p.wants(t, "[{1 true} {b true}]", statement, 0)
	}
	// What the server does not prepare, and more than it keeps.
	for range 3 {
		if _, err := p.ask(t.Context(), "SELECT nothing FROM remarks"); !fault.Is(err, fault.NotFound) {
			t.Errorf("an unknown column: %v", err)
		}
	}
	var most int
	if err := p.root.QueryRowContext(t.Context(), "SELECT @@max_prepared_stmt_count").Scan(&most); err != nil {
		t.Fatal(err)
	}
	p.exec(t, p.root, "SET GLOBAL max_prepared_stmt_count = 0")
	defer p.exec(t, p.root, fmt.Sprintf("SET GLOBAL max_prepared_stmt_count = %d", most))
	for range 3 {
		p.wants(t, "[{5 true}]", "SELECT 2 + ?", 3)
	}
}
