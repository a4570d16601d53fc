package statements

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/localserver"
	"hub.internal/pkg/tool"
	"hub.internal/services/query"
	"hub.internal/services/query/mysql/errno"
	"hub.internal/services/query/mysql/server"
)

// collected is a RowWriter that takes up to limit rows.
type collected struct {
	limit   int // endless when negative
	columns []query.ResultColumn
	rows    []string
	ended   int
}

func (c *collected) Ended() { c.ended++ }

func (c *collected) Columns(columns []query.ResultColumn) { c.columns = columns }

func (c *collected) Arrived(int) bool { return true }

func (c *collected) Row(encode query.RowEncoder) bool {
	if c.limit < 0 {
		return true
	}
	if len(c.rows) == c.limit {
		return false
	}
	row, whole := encode(nil, 1<<20)
	c.rows = append(c.rows, string(row))
	return whole
}

type fixture struct {
	on       *localserver.SourceServer
	adminDSN string
	admin    *sql.DB
	source   *server.Server
	reader   *Reader
	user     string
	// driver reads rows through the driver, as where there is TLS.
	driver *Reader
}

// newFixture is on the server that HUB_TEST_SOURCE names.
func newFixture(t testing.TB, o ReaderOptions) *fixture {
	t.Helper()
	f := newFixtureOn(t, hubtest.SourceServer(t), o)
	hubtest.Sequences(t, f.adminDSN, 20, 100, 2000, 20_000, 1_000_000)
	return f
}

// newMariaDBFixture is on the system's MariaDB: what is tested there is its own.
func newMariaDBFixture(t testing.TB, o ReaderOptions) *fixture {
	t.Helper()
	return newFixtureOn(t, &hubtest.MariaDB(t).SourceServer, o)
}

func newFixtureOn(t testing.TB, on *localserver.SourceServer, o ReaderOptions) *fixture {
	t.Helper()
	adminDSN, readerDSN := hubtest.SourceDBOn(t, on)
	f := &fixture{on: on, adminDSN: adminDSN, admin: openDSN(t, adminDSN)}
	f.user, _, _ = strings.Cut(readerDSN, ":")
	var err error
	if f.source, err = server.Open(readerDSN, server.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.source.Close() })
	f.reader = NewReader(f.source, o)
	t.Cleanup(func() { f.reader.Close() })
	f.driver = NewReader(openSource(t, readerDSN+"?readTimeout=1h", server.Options{}), o)
	t.Cleanup(func() { f.driver.Close() })
	return f
}

func openSource(t testing.TB, dsn string, o server.Options) *server.Server {
	t.Helper()
	s, err := server.Open(dsn, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func openDSN(t testing.TB, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func (f *fixture) exec(t testing.TB, statements ...string) {
	t.Helper()
	for _, q := range statements {
		if _, err := f.admin.ExecContext(t.Context(), q); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
	}
}

// read runs a statement and returns its rows as one JSON array.
func (f *fixture) read(t testing.TB, text string) ([]query.ResultColumn, string) {
	t.Helper()
	c := &collected{limit: 1_000_000}
	if err := f.reader.ReadStatement(t.Context(), query.Statement{Text: text}, c); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return c.columns, "[" + strings.Join(c.rows, ",") + "]"
}

// value is the only value that a statement answers, as JSON.
func (f *fixture) value(t testing.TB, text string) string {
	t.Helper()
	_, rows := f.read(t, text)
	return strings.TrimSuffix(strings.TrimPrefix(rows, "[["), "]]")
}

// busy lists what the reader's account runs, as the server sees it.
func (f *fixture) busy(t testing.TB) []string {
	t.Helper()
	m, err := f.on.Admin()
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	rows, err := m.Query("SELECT CONCAT(id, ' ', command, ' ', COALESCE(info, '')) FROM information_schema.processlist WHERE user = ? "+
		"AND command NOT IN ('Sleep')", f.user)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var list []string
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			t.Fatal(err)
		}
		list = append(list, s)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}

// quiet waits until the server has ended what the reader's account ran.
func (f *fixture) quiet(t testing.TB) {
	t.Helper()
	hubtest.Eventually(t, "nothing runs any more", func() bool { return len(f.busy(t)) == 0 })
}

func TestValues(t *testing.T) {
	f := newMariaDBFixture(t, ReaderOptions{})
	f.exec(t, `CREATE TABLE v (
		id INT PRIMARY KEY,
		ti TINYINT, tu TINYINT UNSIGNED, si SMALLINT, mi MEDIUMINT, i INT, iu INT UNSIGNED, b BIGINT, bu BIGINT UNSIGNED, z INT(6) ZEROFILL,
		d DECIMAL(30,10), d0 DECIMAL(5), f FLOAT, db DOUBLE, bit1 BIT(1), bit40 BIT(40), bit64 BIT(64),
		y YEAR, dt DATE, tm TIME, tm3 TIME(3), dtm DATETIME, dtm6 DATETIME(6), ts TIMESTAMP NULL,
		c CHAR(4), vc VARCHAR(50), tx TEXT, lt LONGTEXT, e ENUM('a','b"c'), s SET('x','y'), l1 VARCHAR(20) CHARACTER SET latin1,
		bn BINARY(3), vb VARBINARY(10), bl BLOB, g POINT, j JSON, u UUID)`,
		`SET SESSION sql_mode=''`)
	conn, err := f.admin.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, q := range []string{
		`SET SESSION sql_mode='', time_zone='+09:00', NAMES utf8mb4`,
		`INSERT INTO v VALUES (1, -128, 255, -32768, 8388607, -2147483648, 4294967295, -9223372036854775808, 18446744073709551615, 42,
			-12345678901234567890.0123456789, 7, 1.1, 0.1, b'1', b'1000000000000000000000000000000000000001',
				b'1111111111111111111111111111111111111111111111111111111111111111',
			2026, '2026-01-31', '-838:59:59', '01:02:03.456', '2026-01-31 09:00:00', '2026-01-31 09:00:00.250000', '2026-01-31 09:00:00',
			'ab', 'né "q" \\ \n\t <b>&', '😀 한글', 'x',
				'b"c', 'x,y', 'café', 'a', x'00ff', x'fffe', POINT(1,2), '{"a": [1, null, "x"]}', '123e4567-e89b-12d3-a456-426614174000')`,
		`INSERT INTO v (id) VALUES (2)`,
		`INSERT INTO v (id, b, bu, f, db, dt, dtm, dtm6, tm, bit1, y, vc, d) VALUES (3, 9007199254740992, 9007199254740992, -1.5e-7, 1e300, ` +
			`'0000-00-00', '0000-00-00 00:00:00', '2026-01-31 09:00:00', '00:00:00', b'0', 0, '', 0)`,
		`INSERT INTO v (id, b, bu, f, db) VALUES (4, 9007199254740993, 9007199254740993, 16777216, 12345678901234567)`,
		`INSERT INTO v (id, b) VALUES (5, -9007199254740993)`,
	} {
		if _, err := conn.ExecContext(t.Context(), q); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
	}
	for _, c := range []struct{ column, kind, want string }{ // of rows 1 and 2
		{"ti", "tinyint", `-128`}, {"tu", "tinyint unsigned", `255`}, {"si", "smallint", `-32768`}, {"mi", "mediumint", `8388607`},
		{"i", "int", `-2147483648`}, {"iu", "int unsigned", `4294967295`}, {"b", "bigint", `"-9223372036854775808"`},
		{"bu", "bigint unsigned", `"18446744073709551615"`},
		{"z", "int unsigned", `42`}, {"d", "decimal", `"-12345678901234567890.0123456789"`}, {"d0", "decimal", `"7"`}, {"f", "float", `1.1`},
		{"db", "double", `0.1`},
		{"bit1", "bit", `1`}, {"bit40", "bit", `549755813889`}, {"bit64", "bit", `"18446744073709551615"`}, {"y", "year", `2026`},
		{"dt", "date", `"2026-01-31"`}, {"tm", "time", `"-838:59:59"`}, {"tm3", "time", `"01:02:03.456"`},
		{"dtm", "datetime", `"2026-01-31T09:00:00"`},
		{"dtm6", "datetime", `"2026-01-31T09:00:00.250000"`}, {"ts", "timestamp", `"2026-01-31T00:00:00"`},
		{"c", "char", `"ab"`}, {"vc", "varchar", `"né \"q\" \\ \n\t <b>&"`}, {"tx", "text", `"😀 한글"`}, {"lt", "text", `"x"`},
		{"e", "enum", `"b\"c"`}, {"s", "set", `"x,y"`}, {"l1", "varchar", `"café"`},
		{"bn", "binary", `"base64:YQAA"`}, {"vb", "varbinary", `"base64:AP8="`}, {"bl", "blob", `"base64://4="`},
		{"g", "geometry", `"base64:AAAAAAEBAAAAAAAAAAAA8D8AAAAAAAAAQA=="`},
		// MariaDB's JSON is longtext with a check, and the protocol says no more.
		{"j", "text", `"{\"a\": [1, null, \"x\"]}"`}, {"u", "char", `"123e4567-e89b-12d3-a456-426614174000"`},
	} {
		columns, got := f.read(t, "SELECT "+c.column+" FROM v WHERE id < 3 ORDER BY id")
		if want := "[[" + c.want + "],[null]]"; got != want {
			t.Errorf("%s: %s, want %s", c.column, got, want)
		}
		if columns[0].Type != c.kind {
			t.Errorf("%s: type %q, want %q", c.column, columns[0].Type, c.kind)
		}
	}
	for _, c := range []struct{ sql, want string }{
		{"SELECT b, bu, f, db, dt, dtm, dtm6, tm, bit1, y, vc, d FROM v WHERE id = 3",
			`9007199254740992,9007199254740992,-1.5e-07,1e+300,"0000-00-00","0000-00-00T00:00:00","2026-01-31T09:00:00","00:00:00",0,0,"",` +
				`"0.0000000000"`},
		{"SELECT b, bu, f, db FROM v WHERE id = 4", `"9007199254740993","9007199254740993",16777200,12345678901234568`},
		{"SELECT b FROM v WHERE id = 5", `"-9007199254740993"`},
		{"SELECT NULL", `null`},
		{"SELECT 1.50, 1e0, 3, 'a', x'61', TRUE, DATE'2026-01-02', TIME'10:00:00', TIMESTAMP'2026-01-02 03:04:05.5'",
			`"1.50",1,3,"a","base64:YQ==",1,"2026-01-02","10:00:00","2026-01-02T03:04:05.5"`},
		{"SELECT SUM(ti), AVG(ti), COUNT(*) FROM v", `"-128","-128.0000",5`},
		{"SELECT CONVERT(x'f09f9880' USING utf8mb4)", `"😀"`},
		{`SELECT '\0\b', CHAR(127), CHAR(31 USING utf8mb4)`, "\"\\u0000\\u0008\",\"base64:fw==\",\"\\u001f\""},
		{"SELECT 1 AS a, 2 AS a, 3 AS `b\"<>`", `1,2,3`},
	} {
		if got := f.value(t, c.sql); got != c.want {
			t.Errorf("%s: %s, want %s", c.sql, got, c.want)
		}
		if _, rows := f.read(t, c.sql); !json.Valid([]byte(rows)) {
			t.Errorf("%s: not JSON: %s", c.sql, rows)
		}
	}
}

func TestQuoted(t *testing.T) {
	for _, s := range []string{"", "plain", "a\"b\\c/d", "\x00\x01\x1f\x7f", "é한😀\u2028", "\xff", "a\xffb", "\xed\xa0\x80",
		"\xf0\x9f", "x\xc3", "\xc3\x28", strings.Repeat("\xfe", 5)} {
		got := appendQuoted([]byte("x"), []byte(s))[1:]
		var back string
		if err := json.Unmarshal(got, &back); err != nil {
			t.Errorf("%q: %s: %v", s, got, err)
			continue
		}
		reference, _ := json.Marshal(s)
		var want string
		if err := json.Unmarshal(reference, &want); err != nil || back != want {
			t.Errorf("%q reads back as %q, want %q", s, back, want)
		}
	}
}

func FuzzQuoted(f *testing.F) {
	f.Add("a\xff\"\n")
	f.Fuzz(func(t *testing.T, s string) {
		got := appendQuoted(nil, []byte(s))
		var back string
		if err := json.Unmarshal(got, &back); err != nil {
			t.Fatalf("%q: %s: %v", s, got, err)
		}
		if want := string([]rune(s)); back != want { // a rune per byte that is not UTF-8
			t.Fatalf("%q reads back as %q, want %q", s, back, want)
		}
	})
}

func TestJSONColumnsOfMySQL(t *testing.T) {
	k := kindOf("JSON")
	if got := string(k.encode(nil, []byte(`{"a": 1}`))); k.name != "json" || got != `{"a": 1}` {
		t.Errorf("%s %s", k.name, got)
	}
	if got := string(k.encode(nil, []byte(`{"a`))); got != `"{\"a"` {
		t.Errorf("broken JSON: %s", got)
	}
}

// soon is far less than endless statements run, and more than what a busy machine makes of a
// moment.
const soon = hubtest.Patience

// endless are statements that run far longer than any test.
var endless = map[string]string{
	"sleep":         "SELECT SLEEP(1000)",
	"sleep in rows": "SELECT SLEEP(0.05) FROM information_schema.collations, information_schema.collations AS b",
	"benchmark":     "SELECT BENCHMARK(2000000000000, SHA2('x', 256))",
	"cross join":    "SELECT COUNT(*) FROM seq_1_to_1000000 a, seq_1_to_1000000 b WHERE a.seq * b.seq = 3",
	"many rows":     "SELECT a.seq, b.seq FROM seq_1_to_1000000 a, seq_1_to_1000000 b LIMIT 1000000000000",
	"recursive CTE": "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE SLEEP(0.001) = 0) SELECT COUNT(*) FROM n",
	"explain":       "EXPLAIN SELECT * FROM (SELECT SLEEP(1000)) x",
}

func TestTimeout(t *testing.T) {
	const timeout = 300 * time.Millisecond
	f := newFixture(t, ReaderOptions{Timeout: timeout})
	inTime := func(text, want string) { // once the machine finds the time for it
		t.Helper()
		hubtest.Eventually(t, "a statement in time is answered", func() bool {
			c := &collected{limit: 1}
			err := f.reader.ReadStatement(t.Context(), query.Statement{Text: text}, c)
			if got := fmt.Sprint(c.rows); err == nil && got != want {
				t.Fatalf("%s: %s, want %s", text, got, want)
			}
			return err == nil
		})
	}
	inTime("SELECT 1", "[[1]]")
	for name, text := range endless {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			err := f.reader.ReadStatement(t.Context(), query.Statement{Text: text}, &collected{limit: -1})
			took := time.Since(start)
			if f := fault.From(err); f.Code != fault.DBTimeout || f.Retryable() ||
				!strings.Contains(fmt.Sprint(f.Details), "filter on indexed columns") {
				t.Errorf("got %v, %v", err, f.Details)
			}
			if took < timeout || took > soon {
				t.Errorf("took %s", took)
			}
			f.quiet(t)
		})
	}
	inTime("SELECT SLEEP(0.1)", "[[0]]")
}

// TestDeadlineOfOurOwn is about a server that does not stop the statement itself.
func TestDeadlineOfOurOwn(t *testing.T) {
	f := newFixture(t, ReaderOptions{Timeout: time.Hour})
	f.value(t, "SELECT 1")
	f.reader.ordinary.timeout = 200 * time.Millisecond
	for name, text := range endless {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			err := f.reader.ReadStatement(t.Context(), query.Statement{Text: text}, &collected{limit: -1})
			took := time.Since(start)
			if !fault.Is(err, fault.DBTimeout) {
				t.Errorf("got %v", err)
			}
			if took > soon {
				t.Errorf("took %s", took)
			}
			f.quiet(t)
		})
	}
}

func TestCallerGoesAway(t *testing.T) {
	f := newFixture(t, ReaderOptions{})
	f.value(t, "SELECT 1")
	for name, text := range endless {
		for _, after := range []time.Duration{0, time.Millisecond, 100 * time.Millisecond} {
			t.Run(fmt.Sprint(name, " after ", after), func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(after, cancel)
				start := time.Now()
				err := f.reader.ReadStatement(ctx, query.Statement{Text: text}, &collected{limit: -1})
				if !fault.Is(err, fault.DB) {
					t.Errorf("got %v", err)
				}
				if took := time.Since(start); took > soon {
					t.Errorf("took %s", took)
				}
				f.quiet(t)
			})
		}
	}
}

func TestStopsWhenNoMoreIsWanted(t *testing.T) {
	f := newFixture(t, ReaderOptions{})
	for range 5 {
		c := &collected{limit: 10}
		start := time.Now()
		if err := f.reader.ReadStatement(t.Context(), query.Statement{Text: endless["many rows"]}, c); err != nil || len(c.rows) != 10 {
			t.Fatalf("%d rows, %v", len(c.rows), err)
		}
		if took := time.Since(start); took > soon {
			t.Errorf("took %s", took)
		}
		f.quiet(t)
	}
}

// TestIdleSessionsHoldNothing: a session waits inside a transaction, but one without a
// snapshot and without a lock.
func TestIdleSessionsHoldNothing(t *testing.T) {
	f := newMariaDBFixture(t, ReaderOptions{Sessions: 1})
	f.exec(t, "CREATE TABLE n (i INT)")
	for i := range 3 {
		if got, want := f.value(t, "SELECT COUNT(*) FROM n"), fmt.Sprint(i); got != want {
			t.Errorf("%s rows, want %s: an old snapshot", got, want)
		}
		f.exec(t, "SET STATEMENT lock_wait_timeout=1 FOR INSERT INTO n (i) VALUES (1)", fmt.Sprintf("ALTER TABLE n WAIT 1 ADD COLUMN c%d INT", i))
	}
}

// TestSecondBelt: sql_select_limit bounds what a statement answers, never what it reads.
func TestSecondBelt(t *testing.T) {
	f := newFixture(t, ReaderOptions{MaxRows: 3})
	f.exec(t, "CREATE TABLE n (i INT)", "INSERT INTO n SELECT seq FROM seq_1_to_20", "CREATE VIEW vn AS SELECT i FROM n")
	for _, c := range []struct{ text, want string }{
		{"SELECT COUNT(*) FROM (SELECT i FROM n) x", "20"},
		{"SELECT COUNT(*) FROM vn", "20"},
		{"SELECT (SELECT COUNT(*) FROM n), EXISTS (SELECT i FROM n WHERE i = 19), 18 IN (SELECT i FROM n)", "20,1,1"},
		{"WITH x AS (SELECT i FROM n) SELECT COUNT(*) FROM x", "20"},
		{"WITH RECURSIVE x AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM x WHERE i < 2000) SELECT COUNT(*) FROM x", "2000"},
		{"SELECT COUNT(*) FROM (SELECT i FROM n UNION ALL SELECT i FROM n) x", "40"},
		{"SELECT GROUP_CONCAT(i ORDER BY i SEPARATOR '') FROM n", `"1234567891011121314151617181920"`},
		{"SELECT SUM(i) OVER () FROM n LIMIT 1", `"210"`},
	} {
		if got := f.value(t, c.text); got != c.want {
			t.Errorf("%s: %s, want %s", c.text, got, c.want)
		}
	}
	for _, text := range []string{"SELECT i FROM n", "SELECT i FROM n UNION ALL SELECT i FROM n"} {
		if _, rows := f.read(t, text); strings.Count(rows, "],[") != 3 {
			t.Errorf("%s: %s", text, rows)
		}
	}
	if _, rows := f.read(t, "SELECT i FROM n LIMIT 7"); strings.Count(rows, "],[") != 6 {
		t.Errorf("an own LIMIT is not the belt's: %s", rows)
	}
}

// TestPristineSessionsAreReused: a cut answer whose statement ended by its own LIMIT
// does not cost a connection, an error does.
func TestPristineSessionsAreReused(t *testing.T) {
	f := newFixture(t, ReaderOptions{Sessions: 1})
	id := func() string { return f.value(t, "SELECT CONNECTION_ID()") }
	first := id()
	c := &collected{limit: 10}
	if err := f.reader.ReadStatement(t.Context(), query.Statement{Text: "SELECT seq FROM seq_1_to_100 LIMIT 11", Most: 11},
		c); err != nil || len(c.rows) != 10 {
		t.Fatal(len(c.rows), err)
	}
	if got := id(); got != first {
		t.Errorf("connection %s after a cut answer, want %s", got, first)
	}
	for _, text := range []string{"SELECT 1 FROM nowhere", "SELECT", "SHOW COLLATION"} {
		before := id()
		_ = f.reader.ReadStatement(t.Context(), query.Statement{Text: text}, &collected{limit: 3})
		if id() == before {
			t.Errorf("the connection outlived %q", text)
		}
	}
}

func TestReadOnlyLayers(t *testing.T) {
	f := newMariaDBFixture(t, ReaderOptions{})
	f.exec(t, "CREATE TABLE w (a INT)", "CREATE SEQUENCE sq")
	// An account that may write, to see the session and the transaction hold alone: it gets its rights after it was proven.
	f.reader.ordinary.db.Close()
	admin, err := f.on.Admin()
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	name := "writer_" + f.source.Database()
	writer, err := server.Open(fmt.Sprintf("%s:pw@tcp(%s)/%s", name, f.source.Addr(), f.source.Database()), server.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	for _, q := range []string{"CREATE USER " + name + " IDENTIFIED BY 'pw'", "GRANT SELECT ON " + f.source.Database() + ".* TO " + name} {
		if _, err := admin.Exec(q); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		m, _ := f.on.Admin()
		defer m.Close()
		m.Exec("DROP USER " + name)
	})
	if err := writer.Prove(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.Exec("GRANT ALL ON " + f.source.Database() + ".* TO " + name); err != nil {
		t.Fatal(err)
	}
	r := NewReader(writer, ReaderOptions{Sessions: 1})
	defer r.Close()
	for _, text := range []string{"INSERT INTO w VALUES (1)", "DELETE FROM w", "CREATE TABLE w2 (a INT)", "DROP TABLE w",
		"SELECT * FROM w FOR UPDATE", "SELECT NEXTVAL(sq)", "CREATE TEMPORARY TABLE tt (a INT)", "TRUNCATE w", "SELECT 1"} {
		// Each follows a good statement on the same session: the chained transaction is READ ONLY too.
		if err := r.ReadStatement(t.Context(), query.Statement{Text: "SELECT 1"}, &collected{limit: 9}); err != nil {
			t.Fatal(err)
		}
		err := r.ReadStatement(t.Context(), query.Statement{Text: text}, &collected{limit: 9})
		var details any
		if f := fault.From(err); f != nil {
			details = f.Details
		}
		if d, ok := details.(statementDetails); text != "SELECT 1" && (!ok || d.DBErrno != errno.ReadOnlyTransaction) {
			t.Errorf("%s: %v, want 1792", text, err)
		}
	}
}

func TestChainKeepsReadOnly(t *testing.T) {
	f := newFixture(t, ReaderOptions{})
	f.exec(t, "CREATE TABLE w (a INT)")
	conn, err := f.admin.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, q := range []string{"START TRANSACTION READ ONLY", "ROLLBACK AND CHAIN", "ROLLBACK AND CHAIN"} {
		if _, err := conn.ExecContext(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := conn.ExecContext(t.Context(), "INSERT INTO w VALUES (1)"); err == nil || !strings.Contains(err.Error(), "1792") {
		t.Errorf("a chained transaction alone let a write pass: %v", err)
	}
}

func TestErrors(t *testing.T) {
	f := newFixture(t, ReaderOptions{})
	f.exec(t, "CREATE FUNCTION ff() RETURNS INT DETERMINISTIC RETURN 1")
	for _, c := range []struct {
		text  string
		errno uint16
	}{
		{"SELECT nothing FROM brand", 1054}, {"SELECT FROM", 1064}, {"SELECT * FROM nowhere", 1146}, {"SELECT * FROM mysql.user", 1142},
		{"SELECT ff()", 1370},
		{"INSERT INTO brand (brand_id) VALUES (1)", 1142}, {"SELECT 1 UNION SELECT 1, 2", 1222}, {"SELECT (SELECT 1 UNION SELECT 2)", 1242},
	} {
		to := &collected{limit: 9}
		err := f.reader.ReadStatement(t.Context(), query.Statement{Text: c.text}, to)
		if to.ended > 0 {
			t.Errorf("%s: told that it has ended well", c.text)
		}
		got := fault.From(err)
		d, ok := statementDetails{}, false
		if got != nil {
			d, ok = got.Details.(statementDetails)
		}
		if !ok || got.Code != fault.Validation || d.DBErrno != c.errno || len(d.Violations) != 1 || d.Violations[0].Path != "/sql" ||
			d.Violations[0].Rule != "sql.server" || d.Violations[0].Message == "" {
			t.Errorf("%s: %v, want E_VALIDATION with %d", c.text, err, c.errno)
		}
	}
}

func TestServerRestart(t *testing.T) {
	if testing.Short() {
		t.Skip("restarts a server")
	}
	m := hubtest.NewMariaDB(t)
	admin, err := m.Admin()
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range []string{"CREATE DATABASE d", "CREATE USER ro IDENTIFIED BY 'pw'", "GRANT SELECT ON d.* TO ro"} {
		if _, err := admin.Exec(q); err != nil {
			t.Fatal(err)
		}
	}
	admin.Close()
	s, err := server.Open(m.DSN("ro", "pw", "d"), server.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r := NewReader(s, ReaderOptions{})
	defer r.Close()
	read := func(text string) error {
		return r.ReadStatement(t.Context(), query.Statement{Text: text}, &collected{limit: 9})
	}
	if err := read("SELECT 1"); err != nil {
		t.Fatal(err)
	}
	long := make(chan error, 1)
	go func() { long <- read("SELECT SLEEP(30)") }()
	time.Sleep(200 * time.Millisecond)
	m.Kill()
	if err := <-long; !fault.Is(err, fault.DB) {
		t.Errorf("a statement whose server died: %v", err)
	}
	for range 3 {
		start := time.Now()
		if err := read("SELECT 1"); !fault.Is(err, fault.DB) || time.Since(start) > soon {
			t.Errorf("with the server down: %v after %s", err, time.Since(start))
		}
	}
	if err := m.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := read("SELECT 1"); err != nil {
		t.Errorf("with the server back: %v", err)
	}
	// A server that hangs: the call ends all the same.
	r.ordinary.timeout = 200 * time.Millisecond
	if err := m.Pause(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(50 * time.Millisecond) // until its last thread has stopped
	start := time.Now()
	if err := read("SELECT 1"); !fault.Is(err, fault.DBTimeout) || time.Since(start) > soon {
		t.Errorf("with the server hung: %v after %s", err, time.Since(start))
	}
	if err := m.Resume(); err != nil {
		t.Fatal(err)
	}
	r.ordinary.timeout = time.Minute
	// A call that meets a connection which died with the server answers E_DB, and the next one works.
	hubtest.Eventually(t, "the server is awake again", func() bool { return read("SELECT 1") == nil })
}

func TestTooManyRights(t *testing.T) {
	adminDSN, _ := hubtest.SourceDB(t)
	s, err := server.Open(adminDSN, server.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r := NewReader(s, ReaderOptions{Logger: slog.New(slog.DiscardHandler)})
	defer r.Close()
	err = r.ReadStatement(t.Context(), query.Statement{Text: "SELECT 1"}, &collected{limit: 1})
	var over *server.GrantsError
	if !errors.As(err, &over) || !fault.Is(err, fault.DB) || over.Findings[0].Rights[0] != "ALL PRIVILEGES" {
		t.Errorf("got %v", err)
	}
}

func TestManyAtOnce(t *testing.T) {
	f := newFixture(t, ReaderOptions{Sessions: 6, Timeout: time.Minute})
	var wg sync.WaitGroup
	turns := make([][40]*fate, 16) // each ends once: a second End would panic
	for i := range 16 {
		wg.Go(func() {
			for j := range 40 {
				turn := newFate()
				turns[i][j] = turn
				ctx, cancel := context.WithCancel(t.Context())
				c := &collected{limit: 500}
				want := fmt.Sprintf("[%d,%d]", i, j)
				switch (i + j) % 4 {
				case 0: // cancelled at a random moment, about when it ends
					// Not with SLEEP: MariaDB 10.11 may hang for two seconds, all sleepers with it, when
					// a KILL meets a SLEEP that is just waking (each holds a mutex that the other wants).
					time.AfterFunc(time.Duration((i*j)%5)*time.Millisecond, cancel)
					err := f.reader.ReadStatement(ctx, query.Statement{Text: "SELECT BENCHMARK(20000, SHA2('x', 256))", Turn: turn}, c)
					if told := c.ended == 1; told != (err == nil) {
						t.Errorf("told %d times that it has ended, error %v", c.ended, err)
					}
				case 1: // stopped early
					if err := f.reader.ReadStatement(ctx, query.Statement{Text: "SELECT seq FROM seq_1_to_2000", Turn: turn}, c); err != nil ||
						len(c.rows) != 500 || c.ended != 1 {
						t.Errorf("%d rows, %v, told %d times that it has ended", len(c.rows), err, c.ended)
					}
				default: // must never be hit by somebody else's kill
					if err := f.reader.ReadStatement(ctx, query.Statement{Text: fmt.Sprintf("SELECT %d, %d", i, j), Turn: turn}, c); err != nil ||
						!reflect.DeepEqual(c.rows, []string{want}) || c.ended != 1 {
						t.Errorf("%v %v, want %s; told %d times that it has ended", c.rows, err, want, c.ended)
					}
				}
				cancel()
			}
		})
	}
	wg.Wait()
	f.quiet(t)
	for i := range turns {
		for j, turn := range turns[i] {
			wait(t, turn.ended, fmt.Sprintf("the turn of %d, %d ends", i, j))
		}
	}
}

func (c *collected) Warned([]tool.Warning) {}
