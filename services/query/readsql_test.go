package query_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/postgres"
	"hub.internal/pkg/tool"
	"hub.internal/services/query"
	"hub.internal/services/query/mysql"
	"hub.internal/services/query/mysql/server"
	"hub.internal/services/query/mysql/statements"
)

// sqlFixture is execute_read_sql over a real source and a real write store.
type sqlFixture struct {
	*query.Service
	admin *sql.DB // the source's owner
	store hubtest.WriteStoreDB
	pool  interface{ Close() }
	look  postgres.Querier // the write store's superuser
}

type sqlOptions struct {
	maxRows int
	pool    int
	timeout time.Duration
	limits  query.SQLLimits
	audit   query.SQLAudit
}

func newSQLFixture(t testing.TB, o sqlOptions) *sqlFixture {
	t.Helper()
	f := &sqlFixture{}
	adminDSN, readerDSN := hubtest.SourceDB(t)
	f.admin = openAdmin(t, adminDSN)
	hubtest.Sequences(t, adminDSN, 3, 10, 12, 30, 50, 77, 500, 1000, 5000, 9999, 10_000)
	source, err := mysql.Open(readerDSN, server.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { source.Close() })
	reader := statements.NewReader(source.Server, statements.ReaderOptions{Timeout: o.timeout, HeavyTimeout: time.Minute,
		MaxRows: o.maxRows, Sessions: o.pool})
	t.Cleanup(func() { reader.Close() })
	if o.audit == nil {
		f.store = hubtest.WriteStore(t)
		if err := audit.Migrate(t.Context(), f.store.OwnerURL); err != nil {
			t.Fatal(err)
		}
		pool, err := postgres.Open(postgres.Config{URL: f.store.URL("query")})
		if err != nil {
			t.Fatal(err)
		}
		f.pool = pool
		t.Cleanup(pool.Close)
		log := audit.NewLog(pool, slog.New(slog.DiscardHandler))
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), hubtest.Patience)
			defer cancel()
			if err := log.Close(ctx); err != nil {
				t.Error(err)
			}
		})
		super, err := postgres.Open(postgres.Config{URL: f.store.SuperuserURL})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(super.Close)
		f.look = super
		o.audit = query.AuditTo(log)
	}
	f.Service = query.New(query.Config{Source: source, Reader: reader, Audit: o.audit, SQL: o.limits, MaxRowLimit: o.maxRows,
		QueryTimeout: o.timeout})
	return f
}

// onSource is a text of MariaDB's with the names that the source's server has for its variables.
func onSource(text string) string {
	if !hubtest.SourceIsMySQL() {
		return text
	}
	return strings.NewReplacer("@@tx_", "@@transaction_", "@@max_statement_time", "@@max_execution_time", "@@in_transaction, ", "",
		"@@max_recursive_iterations", "@@cte_max_recursion_depth", "EXPLAIN EXTENDED", "EXPLAIN",
		"FETCH FIRST 6 ROWS ONLY", "LIMIT 6", "LIMIT ROWS EXAMINED 100000", "").Replace(text)
}

func openAdmin(t testing.TB, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func (f *sqlFixture) exec(t testing.TB, statements ...string) {
	t.Helper()
	for _, q := range statements {
		if _, err := f.admin.ExecContext(t.Context(), q); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
	}
}

// as is a context of a caller with the key; its request id is the test's.
func as(ctx context.Context, key string) context.Context {
	return caller.With(ctx, caller.Caller{Kind: caller.Key, Service: "crm", ExternalUserID: "u1", CredentialID: key,
		Scopes: []string{"sql"}, RequestID: "req_" + key})
}

type sqlAnswer struct {
	Columns     []query.ResultColumn `json:"columns"`
	Rows        [][]any              `json:"rows"`
	RowCount    *int                 `json:"row_count"`
	Truncated   *bool                `json:"truncated"`
	RowLimit    *int                 `json:"row_limit"`
	TruncatedBy string               `json:"truncated_by"`
	Warnings    []tool.Warning       `json:"warnings"`
}

func (f *sqlFixture) call(t testing.TB, text string, limit int64) sqlAnswer {
	t.Helper()
	out, err := f.ExecuteReadSQL(as(t.Context(), "k1"), query.ReadSQLIn{SQL: text, Limit: limit})
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	defer out.Release()
	var a sqlAnswer
	d := json.NewDecoder(strings.NewReader(string(out.JSON())))
	d.UseNumber()
	d.DisallowUnknownFields()
	if err := d.Decode(&a); err != nil {
		t.Fatalf("%s: %v in %s", text, err, out.JSON())
	}
	if a.Columns == nil || a.Rows == nil || a.RowCount == nil || a.Truncated == nil || a.RowLimit == nil || *a.RowCount != len(a.Rows) ||
		out.Count() != len(a.Rows) {
		t.Fatalf("%s: incomplete: %s", text, out.JSON())
	}
	return a
}

func (a sqlAnswer) column(i int) []string {
	list := []string{}
	for _, r := range a.Rows {
		list = append(list, fmt.Sprint(r[i]))
	}
	return list
}

func TestRowsAreCutExactly(t *testing.T) {
	f := newSQLFixture(t, sqlOptions{maxRows: 50})
	f.exec(t, "CREATE TABLE n (i INT PRIMARY KEY, name VARCHAR(10))", "INSERT INTO n SELECT seq, CONCAT('n', 100 - seq) FROM seq_1_to_12")
	for _, c := range []struct {
		text  string
		total int      // rows of the statement
		first []string // first column, in order, of all rows
	}{
		{"SELECT i FROM n ORDER BY i", 12, []string{"1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12"}},
		{"SELECT i FROM n ORDER BY i DESC -- the end", 12, []string{"12", "11", "10", "9"}},
		{"SELECT name, i FROM n ORDER BY name LIMIT 5", 5, []string{"n88", "n89", "n90", "n91", "n92"}},
		{"SELECT i FROM n ORDER BY i LIMIT 5 OFFSET 10", 2, []string{"11", "12"}},
		{"SELECT i FROM n ORDER BY i LIMIT 2, 4", 4, []string{"3", "4", "5", "6"}},
		{"SELECT i FROM n LIMIT 0", 0, nil},
		{"SELECT COUNT(*), SUM(i) FROM n", 1, []string{"12"}},
		{"SELECT i FROM n WHERE i < 4 UNION ALL SELECT i + 100 FROM n WHERE i < 3 ORDER BY 1 DESC", 5, []string{"102", "101", "3", "2", "1"}},
		{"WITH x AS (SELECT i FROM n ORDER BY i LIMIT 7) SELECT i FROM x ORDER BY i DESC", 7, []string{"7", "6", "5"}},
		{"(SELECT i FROM n ORDER BY i LIMIT 4)", 4, []string{"1", "2", "3", "4"}},
		{"SELECT i FROM n ORDER BY i FETCH FIRST 6 ROWS ONLY", 6, []string{"1", "2", "3"}},
		{"SELECT a.i, a.i, b.i FROM n a JOIN n b ON b.i = a.i ORDER BY a.i LIMIT 8", 8, []string{"1", "2", "3"}},
		{"SELECT DISTINCT i % 3 AS r FROM n ORDER BY r", 3, []string{"0", "1", "2"}},
		{"SELECT i % 4, COUNT(*) FROM n GROUP BY 1 WITH ROLLUP", 5, []string{"0", "1", "2", "3", "<nil>"}},
		{"SELECT i FROM n ORDER BY i LIMIT ROWS EXAMINED 100000", 12, []string{"1", "2", "3"}},
		{"SHOW COLUMNS FROM n", 2, []string{"i", "name"}},
		{"DESCRIBE n", 2, []string{"i", "name"}},
		{"DESC n name", 1, []string{"name"}},
		{"SHOW TABLES LIKE 'n'", 1, []string{"n"}},
		{"EXPLAIN FORMAT=TRADITIONAL SELECT * FROM n a, n b, n c", 3, []string{"1", "1", "1"}},
		{"SHOW INDEX FROM n", 1, []string{"n"}},
	} {
		for _, limit := range []int64{1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 13, 50, 51, 1_000_000} {
			a := f.call(t, onSource(c.text), limit)
			effective := min(int(limit), 50)
			want := min(c.total, effective)
			if len(a.Rows) != want || *a.Truncated != (c.total > effective) || *a.RowLimit != effective || a.TruncatedBy != "" {
				t.Errorf("%s with limit %d: %d rows, truncated %t, row_limit %d, truncated_by %q; want %d rows of %d", c.text, limit, len(a.Rows),
					*a.Truncated, *a.RowLimit, a.TruncatedBy, want, c.total)
			}
			if n := min(want, len(c.first)); n > 0 && !reflect.DeepEqual(a.column(0)[:n], c.first[:n]) {
				t.Errorf("%s with limit %d: %v, want %v", c.text, limit, a.column(0), c.first)
			}
		}
	}
	// A statement's own LIMIT just above the probe row ends on its own.
	if a := f.call(t, "SELECT i FROM n LIMIT 4", 3); len(a.Rows) != 3 || !*a.Truncated {
		t.Errorf("%d rows, truncated %t", len(a.Rows), *a.Truncated)
	}
	// Right results, not only many: MariaDB would end this at 1,000 steps.
	if a := f.call(t, "WITH RECURSIVE r AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM r WHERE i < 5000) SELECT MAX(i) FROM r",
		10); a.column(0)[0] != "5000" {
		t.Errorf("recursion ended at %v", a.column(0))
	}
}

func TestColumnsOfAnswer(t *testing.T) {
	f := newSQLFixture(t, sqlOptions{})
	a := f.call(t, "SELECT 1 AS id, 'x' AS id, MAX(p.name) AS name, MAX(p.created_at) AS created_at, COUNT(*) AS `a<b>\"` FROM partner p", 10)
	number := "int" // what the number 1 is
	if hubtest.SourceIsMySQL() {
		number = "bigint"
	}
	want := []query.ResultColumn{{Name: "id", Type: number}, {Name: "id", Type: "varchar"}, {Name: "name", Type: "varchar"},
		{Name: "created_at", Type: "datetime"}, {Name: `a<b>"`, Type: "bigint"}}
	if !reflect.DeepEqual(a.Columns, want) {
		t.Errorf("columns %v, want %v", a.Columns, want)
	}
	if a := f.call(t, "SELECT partner_id FROM partner", 10); len(a.Columns) != 1 || len(a.Rows) != 0 || *a.Truncated {
		t.Errorf("no rows: %+v", a)
	}
	out, err := f.ExecuteReadSQL(as(t.Context(), "k1"), query.ReadSQLIn{SQL: "SELECT 1 AS a, NULL AS b, '<é>' AS c", Limit: 5})
	if want := `{"columns":[{"name":"a","type":"` + number + `"},{"name":"b","type":"null"},{"name":"c","type":"varchar"}],` +
		`"rows":[[1,null,"<é>"]],"row_count":1,"truncated":false,"row_limit":5}`; err != nil || string(out.JSON()) != want {
		t.Errorf("%s, %v\nwant %s", out.JSON(), err, want)
	}
}

func TestBytesAreCut(t *testing.T) {
	f := newSQLFixture(t, sqlOptions{limits: query.SQLLimits{ResultBytes: 2000}})
	out, err := f.ExecuteReadSQL(as(t.Context(), "k1"),
		query.ReadSQLIn{SQL: "SELECT seq, REPEAT('x', 100) FROM seq_1_to_1000 ORDER BY seq", Limit: 500})
	rows, end, _ := strings.Cut(string(out.JSON()), `,"warnings":`)
	if err != nil || len(rows) > 2000 || len(rows) < 1500 ||
		!strings.HasSuffix(rows, `"truncated":true,"row_limit":500,"truncated_by":"bytes"`) {
		t.Errorf("%d bytes, %v: %s", len(rows), err, out.JSON())
	}
	if n := fmt.Sprint(out.Count()); !strings.HasPrefix(end,
		`[{"rule":"sql.truncated","message":"the answer ends after `+n+` rows, at 2000 bytes`) ||
		!strings.Contains(end, "LIMIT n OFFSET "+n) {
		t.Errorf("says %s", end)
	}
	for text, offset := range map[string]int{" LIMIT 400 OFFSET 7": 7, " LIMIT 7, 400": 7, " LIMIT 400": 0, " LIMIT 99 OFFSET 0": 0,
		" LIMIT ROWS EXAMINED 5000": -1, " OFFSET 7 ROWS FETCH FIRST 400 ROWS ONLY": -1, " LIMIT 400 OFFSET 07": 7} {
		if hubtest.SourceIsMySQL() && offset < 0 {
			continue // it has neither
		}
		out, err := f.ExecuteReadSQL(as(t.Context(), "k1"),
			query.ReadSQLIn{SQL: "SELECT seq, REPEAT('x', 100) FROM seq_1_to_1000 ORDER BY seq" + text, Limit: 500})
		said, next := string(out.JSON()), fmt.Sprintf("or with LIMIT n OFFSET %d", offset+out.Count())
		if err != nil || !strings.Contains(said, "WHERE key >") || strings.Contains(said, next) != (offset >= 0) ||
			strings.Contains(said, "OFFSET") != (offset >= 0) {
			t.Errorf("behind%s it says %s, %v; want %s", text, said[len(said)-200:], err, next)
		}
	}
	if a := f.call(t, "SELECT REPEAT('x', 5 * 1000)", 5); len(a.Rows) != 0 || !*a.Truncated || a.TruncatedBy != "bytes" {
		t.Errorf("a row larger than all: %+v", a)
	}
	if a := f.call(t, "SELECT 1", 5); len(a.Rows) != 1 || *a.Truncated {
		t.Errorf("the next call: %+v", a)
	}
}

// TestLargeRowsAreCut before they are in memory: the rows before them are answered.
func TestLargeRowsAreCut(t *testing.T) {
	f := newSQLFixture(t, sqlOptions{limits: query.SQLLimits{ResultBytes: 1 << 20}, audit: quiet{}})
	f.exec(t, "CREATE TABLE l (id INT PRIMARY KEY, c LONGTEXT, b LONGBLOB)",
		"INSERT INTO l SELECT seq, REPEAT('x', 1000), REPEAT('x', 1000) FROM seq_1_to_10",
		"INSERT INTO l VALUES (11, REPEAT('x', 9 << 20), NULL), (12, REPEAT('\x01', 300000), NULL), (13, NULL, REPEAT('x', 800000)), (14, "+
			"REPEAT('\"', 500000), NULL), (15, REPEAT('한', 300000), NULL)")
	for _, c := range []struct {
		text string
		rows int
		cut  bool
	}{
		{"SELECT id, c FROM l ORDER BY id", 10, true},
		{"SELECT id, c FROM l WHERE id > 9 ORDER BY id", 1, true},
		{"SELECT c, c, c, c, c, c, c, c FROM l WHERE id = 11", 0, true},
		{"SELECT id, c FROM l WHERE id IN (1, 12) ORDER BY id", 1, true}, // 300,000 bytes are 1.8 MB of escapes
		{"SELECT id, b FROM l WHERE id IN (1, 13) ORDER BY id", 1, true}, // and 800,000 are 1.07 of base64
		{"SELECT c FROM l WHERE id = 14", 1, false},
		{"SELECT c, c FROM l WHERE id = 14", 0, true},
		{"SELECT c FROM l WHERE id = 15", 1, false},
		{"SELECT LENGTH(c) FROM l ORDER BY id", 15, false},
		{"SELECT LEFT(c, 1000) FROM l ORDER BY id", 15, false},
	} {
		a := f.call(t, c.text, 100)
		if len(a.Rows) != c.rows || *a.Truncated != c.cut || (a.TruncatedBy == "bytes") != c.cut {
			t.Errorf("%s: %d rows, truncated %t by %q; want %d rows", c.text, len(a.Rows), *a.Truncated, a.TruncatedBy, c.rows)
		}
	}
}

// TestRowBehindTheLastIsOnlyLookedAt: what it takes says nothing of the answer.
func TestRowBehindTheLastIsOnlyLookedAt(t *testing.T) {
	f := newSQLFixture(t, sqlOptions{limits: query.SQLLimits{ResultBytes: 1 << 20}, audit: quiet{}})
	f.exec(t, "CREATE TABLE l (id INT PRIMARY KEY, c LONGTEXT)",
		"INSERT INTO l VALUES (1, 'x'), (2, REPEAT('x', 9 << 20)), (3, REPEAT('x', 900000))")
	for _, ids := range []string{"1, 2", "1, 3"} {
		if a := f.call(t, "SELECT c FROM l WHERE id IN ("+ids+") ORDER BY id", 1); len(a.Rows) != 1 || !*a.Truncated || a.TruncatedBy != "" {
			t.Errorf("of %s: %d rows, truncated %t by %q", ids, len(a.Rows), *a.Truncated, a.TruncatedBy)
		}
	}
}

// TestTooManyColumns: what an answer's columns cost is bounded as well.
func TestTooManyColumns(t *testing.T) {
	f := newSQLFixture(t, sqlOptions{audit: quiet{}})
	columns := make([]string, 1000)
	for i := range columns {
		columns[i] = fmt.Sprintf("c%d TINYINT", i)
	}
	f.exec(t, "CREATE TABLE wide ("+strings.Join(columns, ", ")+")", "INSERT INTO wide (c0) VALUES (1)")
	stars := func(n int) string { return "SELECT w.*" + strings.Repeat(",w.*", n-1) + " FROM wide w" }
	if a := f.call(t, stars(8), 10); len(a.Rows) != 1 || len(a.Columns) != 8000 || *a.Truncated {
		t.Errorf("%d rows of %d columns", len(a.Rows), len(a.Columns))
	}
	_, err := f.ExecuteReadSQL(as(t.Context(), "k1"), query.ReadSQLIn{SQL: stars(100), Limit: 10})
	if rule := ruleOf(err); rule != "sql.columns" {
		t.Errorf("a hundred thousand columns: %v", err)
	}
	if a := f.call(t, "SELECT 1", 10); len(a.Rows) != 1 {
		t.Errorf("the next call: %+v", a)
	}
}

// TestLargeAnswersAreBoundedTogether: they count until they have been written.
func TestLargeAnswersAreBoundedTogether(t *testing.T) {
	const mib = 1 << 20
	f := newSQLFixture(t, sqlOptions{limits: query.SQLLimits{ResultBytes: mib}, audit: quiet{}})
	f.exec(t, "CREATE TABLE l (c LONGTEXT)", "INSERT INTO l VALUES (REPEAT('x', 900000))")
	large := func(key string) (written func(), err error) {
		t.Helper()
		out, err := f.ExecuteReadSQL(as(t.Context(), key), query.ReadSQLIn{SQL: "SELECT c FROM l", Limit: 1})
		if err == nil && len(out.JSON()) < 900_000 {
			t.Errorf("%d bytes", len(out.JSON()))
		}
		return out.Release, err
	}
	var held []func()
	for len(held) < 20 {
		written, err := large("slow")
		if err != nil {
			if f := fault.From(err); !fault.Is(err, fault.RateLimit) || f.RetryAfter != time.Second {
				t.Errorf("got %v", err)
			}
			break
		}
		held = append(held, written)
	}
	if len(held) < 3 || len(held) > 6 {
		t.Errorf("%d large answers of one key are held, want about half of 12", len(held))
	}
	if _, err := large("other"); err != nil {
		t.Errorf("another key: %v", err)
	}
	if out, err := f.ExecuteReadSQL(as(t.Context(), "slow"), query.ReadSQLIn{SQL: "SELECT LENGTH(c) FROM l", Limit: 1}); err != nil {
		t.Errorf("a small answer: %v %s", err, out.JSON())
	}
	for _, written := range held {
		written()
	}
	for range 20 {
		written, err := large("slow")
		if err != nil {
			t.Errorf("the memory is not free again: %v", err)
		}
		written()
	}
}

// TestCorpus runs the guard's corpus through the tool: a refused statement never gets
// to the server, an accepted one is judged by the server alone.
func TestCorpus(t *testing.T) {
	f := newSQLFixture(t, sqlOptions{timeout: 5 * time.Second, audit: quiet{}})
	b, err := os.ReadFile(filepath.Join("sqlguard", "testdata", "cases-sql.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(strings.TrimSpace(string(b)), "\n")[1:] {
		c := strings.SplitN(line, "\t", 4)
		text := c[3]
		if encoded, ok := strings.CutPrefix(text, "json:"); ok {
			if err := json.Unmarshal([]byte(encoded), &text); err != nil {
				t.Fatalf("%s: %v", c[0], err)
			}
		}
		_, err := f.ExecuteReadSQL(as(t.Context(), "k1"), query.ReadSQLIn{SQL: text, Limit: 3})
		rule := ruleOf(err)
		switch c[1] {
		case "accept":
			if err != nil && rule != "sql.server" && !fault.Is(err, fault.DBTimeout) {
				t.Errorf("%s: %s: %v", c[0], text, err)
			}
		case "reject":
			if !strings.HasPrefix(rule, "sql.") || rule == "sql.server" {
				t.Errorf("%s: %s: %v", c[0], text, err)
			}
		}
	}
}

// ruleOf is the rule of a refusal's only violation.
func ruleOf(err error) string {
	f := fault.From(err)
	if f == nil || f.Code != fault.Validation {
		return ""
	}
	b, _ := json.Marshal(f.Details)
	var d struct {
		Violations []struct{ Path, Rule, Message string }
	}
	if json.Unmarshal(b, &d) != nil || len(d.Violations) != 1 || d.Violations[0].Path != "/sql" || d.Violations[0].Message == "" {
		return ""
	}
	return d.Violations[0].Rule
}

// quiet keeps no records.
type quiet struct{}

func (quiet) Away(context.Context, query.ReadSQLIn) error { return nil }
func (quiet) Record(context.Context, query.SQLRecord) audit.Committed {
	return func(context.Context) error { return nil }
}

type auditRow struct {
	Outcome   string
	Count     int
	Tool, Key string
	Request   string
	Detail    struct {
		SQL       string   `json:"sql"`
		Columns   []string `json:"columns"`
		RowCount  int      `json:"row_count"`
		Truncated bool     `json:"truncated"`
		// Refused is what its caller was told.
		Refused *audit.Told `json:"refused"`
	}
}

func (f *sqlFixture) audited(t testing.TB, key string) []auditRow {
	t.Helper()
	rows, err := f.look.Query(t.Context(), "SELECT outcome, count, tool, credential_id, request_id, detail::text FROM audit.calls "+
		"WHERE credential_id = $1 ORDER BY at", key)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var list []auditRow
	for rows.Next() {
		var r auditRow
		var detail string
		if err := rows.Scan(&r.Outcome, &r.Count, &r.Tool, &r.Key, &r.Request, &detail); err != nil {
			t.Fatal(err)
		}
		d := json.NewDecoder(strings.NewReader(detail))
		d.DisallowUnknownFields()
		if err := d.Decode(&r.Detail); err != nil {
			t.Fatal(err)
		}
		list = append(list, r)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}

// hold has a call of the key run until it is released, unless its time is over before.
func (f *sqlFixture) hold(t testing.TB, key string) (release func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(as(t.Context(), key))
	var running sync.WaitGroup
	running.Go(func() { _, _ = f.ExecuteReadSQL(ctx, query.ReadSQLIn{SQL: "SELECT SLEEP(1000)", Limit: 1}) })
	m, err := hubtest.SourceServer(t).Admin()
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	hubtest.Eventually(t, "the call runs", func() bool {
		var n int
		err := m.QueryRow(`SELECT COUNT(*) FROM information_schema.processlist p JOIN information_schema.processlist own ` +
			`ON own.id = CONNECTION_ID() WHERE p.id <> own.id AND p.info LIKE '%SLEEP(1000)%'`).Scan(&n)
		return err == nil && n > 0
	})
	return func() { cancel(); running.Wait() }
}

func TestEveryStatementIsAudited(t *testing.T) {
	f := newSQLFixture(t, sqlOptions{timeout: 4 * time.Second,
		limits: query.SQLLimits{Concurrent: 1, PerKey: 1, Wait: 100 * time.Millisecond}})
	for i, c := range []struct {
		name, text, outcome string
		columns             []string
		rows                int
		truncated           bool
		cancel              time.Duration
		busy                bool
	}{
		{name: "ok", text: "SELECT seq, seq AS seq FROM seq_1_to_3", outcome: "ok", columns: []string{"seq", "seq"}, rows: 3},
		{name: "cut", text: "SELECT seq FROM seq_1_to_30", outcome: "ok", columns: []string{"seq"}, rows: 5, truncated: true},
		{name: "refused", text: "DROP TABLE partner", outcome: "E_VALIDATION"},
		{name: "semicolon", text: "SELECT 1;", outcome: "E_VALIDATION"},
		{name: "NUL", text: "SELECT '\x00'", outcome: "E_VALIDATION"},
		{name: "failed", text: "SELECT nothing FROM partner", outcome: "E_VALIDATION"},
		{name: "timed out", text: "SELECT SLEEP(20)", outcome: "E_DB_TIMEOUT"},
		{name: "timed out without an error", text: "SELECT BENCHMARK(1000000000000, SHA2('x', 256))", outcome: "E_DB_TIMEOUT"},
		{name: "client gone", text: "SELECT SLEEP(10)", outcome: "E_DB", cancel: 50 * time.Millisecond},
		{name: "client gone at once", text: "SELECT 10", outcome: "E_DB", cancel: -1},
		{name: "busy", text: "SELECT 11", outcome: "E_RATE_LIMIT", busy: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			key := fmt.Sprintf("key_%d", i)
			ctx, cancel := context.WithCancel(as(t.Context(), key))
			defer cancel()
			switch {
			case c.cancel < 0:
				cancel()
			case c.cancel > 0:
				time.AfterFunc(c.cancel, cancel)
			}
			release := func() {}
			if c.busy {
				release = f.hold(t, "other")
			}
			out, err := f.ExecuteReadSQL(ctx, query.ReadSQLIn{SQL: c.text, Limit: 5})
			release()
			if got := audit.Outcome(err); got != c.outcome || (err != nil) != (out.JSON() == nil) {
				t.Errorf("outcome %s (%v), want %s", got, err, c.outcome)
			}
			rows := f.audited(t, key)
			if len(rows) != 1 {
				t.Fatalf("%d audit rows", len(rows))
			}
			want := auditRow{Outcome: c.outcome, Count: c.rows, Tool: "execute_read_sql", Key: key, Request: "req_" + key}
			want.Detail.SQL, want.Detail.Columns, want.Detail.RowCount, want.Detail.Truncated = strings.ReplaceAll(c.text, "\x00", "\ufffd"),
				c.columns, c.rows, c.truncated
			if want.Detail.Columns == nil {
				want.Detail.Columns = []string{}
			}
			want.Detail.Refused = audit.ToldOf(err)
			if !reflect.DeepEqual(rows[0], want) {
				t.Errorf("audited %+v, want %+v", rows[0], want)
			}
		})
	}
}

// TestAnswerWaitsForItsAuditRow holds the audit table back and lets it go.
func TestAnswerWaitsForItsAuditRow(t *testing.T) {
	f := newSQLFixture(t, sqlOptions{})
	f.call(t, "SELECT 1", 1)
	pool, err := postgres.Open(postgres.Config{URL: f.store.SuperuserURL})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background())
	if _, err := tx.Exec(t.Context(), "LOCK TABLE audit.calls IN ACCESS EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"SELECT 2", "DROP TABLE partner"} {
		answered := make(chan error, 1)
		go func() {
			_, err := f.ExecuteReadSQL(as(t.Context(), "held"), query.ReadSQLIn{SQL: text, Limit: 1})
			answered <- err
		}()
		defer func() {
			err := <-answered
			if want := strings.HasPrefix(text, "DROP"); fault.Is(err, fault.Validation) != want || err != nil && !want {
				t.Errorf("%s: %v", text, err)
			}
		}()
		select {
		case err := <-answered:
			t.Fatalf("%s: answered before its audit row: %v", text, err)
		case <-time.After(200 * time.Millisecond):
		}
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestNoAnswerWithoutAuditStore(t *testing.T) {
	f := newSQLFixture(t, sqlOptions{})
	f.call(t, "SELECT 1", 1)
	f.pool.Close()
	for _, text := range []string{"SELECT 'secret'", "DROP TABLE partner", "SELECT nothing FROM partner"} {
		out, err := f.ExecuteReadSQL(as(t.Context(), "k1"), query.ReadSQLIn{SQL: text, Limit: 1})
		if got := fault.From(err); got == nil || got.Code != fault.DB && got.Code != fault.Internal || out.JSON() != nil || out.Count() != 0 {
			t.Errorf("%s: %v, %s", text, err, out.JSON())
		}
	}
	failing := newSQLFixture(t, sqlOptions{audit: broken{}})
	out, err := failing.ExecuteReadSQL(as(t.Context(), "k1"), query.ReadSQLIn{SQL: "SELECT 'secret'", Limit: 1})
	if !fault.Is(err, fault.DB) || out.JSON() != nil {
		t.Errorf("%v, %s", err, out.JSON())
	}
	// A failed statement does not hide that it could not be recorded.
	if _, err := failing.ExecuteReadSQL(as(t.Context(), "k1"), query.ReadSQLIn{SQL: "DROP TABLE partner", Limit: 1}); !fault.Is(err,
		fault.DB) {
		t.Errorf("got %v", err)
	}
}

// TestNoStatementRunsThatCouldNotBeRecorded: the refusal of one that did not run is recorded when the store is back, without its text.
func TestNoStatementRunsThatCouldNotBeRecorded(t *testing.T) {
	log := &away{}
	f := newSQLFixture(t, sqlOptions{audit: query.AuditTo(log)})
	out, err := f.ExecuteReadSQL(as(t.Context(), "k1"), query.ReadSQLIn{SQL: "SELECT nothing FROM nowhere", Limit: 1})
	if !fault.Is(err, fault.DB) || out.JSON() != nil {
		t.Errorf("%v, %s", err, out.JSON())
	}
	if len(log.queued) != 1 || log.queued[0].Outcome != "E_DB" || log.queued[0].Tool != "execute_read_sql" ||
		log.queued[0].InputHash == nil || !reflect.DeepEqual(log.queued[0].Detail, audit.Refusal{Refused: audit.ToldOf(err)}) {
		t.Errorf("recorded: %+v", log.queued)
	}
}

// away is an audit log whose store is known to be away.
type away struct{ queued []audit.Entry }

func (*away) Away() error           { return fault.New(fault.DB, "away") }
func (a *away) Queue(e audit.Entry) { a.queued = append(a.queued, e) }
func (*away) Begin(context.Context, audit.Entry) audit.Committed {
	return func(context.Context) error { return errors.New("it was tried") }
}

type broken struct{}

func (broken) Away(context.Context, query.ReadSQLIn) error { return nil }
func (broken) Record(context.Context, query.SQLRecord) audit.Committed {
	return func(context.Context) error { return fault.New(fault.DB, "not recorded").Because(errors.New("down")) }
}

// TestSessionsStayPristine runs 200 calls of all kinds over two connections and looks,
// after each, at the session that the next caller gets.
func TestSessionsStayPristine(t *testing.T) {
	f := newSQLFixture(t, sqlOptions{pool: 2, timeout: 4 * time.Second, limits: query.SQLLimits{Concurrent: 2, PerKey: 2}, audit: quiet{}})
	look := onSource("SELECT @@max_statement_time, @@sql_mode, @@tx_read_only, @@in_transaction, @@autocommit, @@time_zone, " +
		"@@sql_select_limit, @@max_recursive_iterations, " +
		"@x, LAST_INSERT_ID(), @@tx_isolation, @@character_set_results, @@foreign_key_checks, DATABASE() LIKE 'source%'")
	want := fmt.Sprint(f.call(t, look, 1).Rows)
	expect := "[[4 STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION 1 1 1 +00:00 1001 4294967295 <nil> 0 " +
		"REPEATABLE-READ utf8mb4 1 1]]"
	if hubtest.SourceIsMySQL() { // in milliseconds; it does not say whether a transaction is open
		expect = "[[4000 STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION 1 1 +00:00 1001 1000000 <nil> 0 " +
			"REPEATABLE-READ utf8mb4 1 1]]"
	}
	if want != expect {
		t.Fatalf("a fresh session has %s, want %s", want, expect)
	}
	mixed := []string{
		"SELECT 1", "SELECT 1 FROM nowhere", "SELECT 1 FROM", "SELECT seq FROM seq_1_to_5000", "SHOW TABLES", "DESCRIBE brand",
		"EXPLAIN SELECT * FROM brand", "SHOW COLLATION",
		"SELECT SLEEP(0.01)", "SELECT SLEEP(50)", "SELECT BENCHMARK(100000000000, SHA2(1, 256))", "SELECT * FROM mysql.user", "SHOW WARNINGS",
		"SELECT FOUND_ROWS()", "SELECT SQL_CALC_FOUND_ROWS * FROM category",
		"SELECT @x := 5", "SELECT 5 INTO @x", "SELECT GET_LOCK('hub', 0)", "SET SESSION max_statement_time = 0", "SET @x = 1",
		"SELECT LAST_INSERT_ID(77)", "COMMIT", "SET STATEMENT max_statement_time = 0 FOR SELECT SLEEP(2)",
		"START TRANSACTION READ WRITE", "SELECT * FROM brand FOR UPDATE", "SELECT * FROM brand LOCK IN SHARE MODE", "USE mysql",
		"SET NAMES latin1", "CREATE TEMPORARY TABLE tt (i INT)",
	}
	var wg sync.WaitGroup
	for worker := range 2 {
		wg.Go(func() {
			for i := range 100 {
				ctx, cancel := context.WithCancel(as(t.Context(), fmt.Sprint(worker)))
				if i%6 == 0 {
					time.AfterFunc(time.Duration(i%4)*time.Millisecond, cancel)
				}
				text := mixed[(i*2+worker)%len(mixed)]
				if i >= len(mixed) && (text == "SELECT SLEEP(50)" || strings.Contains(text, "BENCHMARK")) {
					text = "SELECT 1" // each worker has waited for the end of these
				}
				_, _ = f.ExecuteReadSQL(ctx, query.ReadSQLIn{SQL: text, Limit: int64(1 + i*13%1000)})
				cancel()
				if got := fmt.Sprint(f.call(t, look, 1).Rows); got != want {
					t.Errorf("after %q the next caller gets %s, want %s", text, got, want)
				}
			}
		})
	}
	wg.Wait()
}

func TestOneKeyDoesNotTakeAllTurns(t *testing.T) {
	f := newSQLFixture(t, sqlOptions{limits: query.SQLLimits{Concurrent: 2, Wait: 4 * time.Second}, audit: quiet{}})
	f.call(t, "SELECT 1", 1)
	release := f.hold(t, "greedy")
	defer release()
	more := make(chan error, 2)
	for range 2 {
		go func() {
			_, err := f.ExecuteReadSQL(as(t.Context(), "greedy"), query.ReadSQLIn{SQL: "SELECT 2", Limit: 1})
			more <- err
		}()
	}
	time.Sleep(50 * time.Millisecond) // for the two to come first
	if _, err := f.ExecuteReadSQL(as(t.Context(), "modest"), query.ReadSQLIn{SQL: "SELECT 1", Limit: 1}); err != nil {
		t.Errorf("the other key: %v", err)
	}
	for range 2 {
		if err := <-more; !fault.Is(err, fault.RateLimit) {
			t.Errorf("one more of the same key: %v", err)
		}
	}
}

func BenchmarkExecuteReadSQL(b *testing.B) {
	for _, kind := range []string{"unaudited", "audited"} {
		o := sqlOptions{maxRows: 10_000}
		if kind == "unaudited" {
			o.audit = quiet{}
		}
		f := newSQLFixture(b, o)
		f.exec(b, "INSERT INTO campaign (campaign_id, partner_id, brand_id, name, status_code, start_at, end_at, offer_count, apply_count, "+
			"view_count, created_at) "+
			"SELECT seq, 1000 + seq % 997, 2000 + seq % 2999, CONCAT('캠페인 ', seq, ' spring \"launch\"'), '1206', "+
			"'2026-01-31 09:00:00' + INTERVAL seq MINUTE, "+
			"IF(seq % 3, '2026-03-31 09:00:00', NULL), seq % 50, seq % 977, seq % 99991, '2026-01-01' FROM seq_1_to_10000")
		for _, n := range []int{1, 1000, 10_000} {
			in := query.ReadSQLIn{SQL: "SELECT campaign_id, partner_id, brand_id, name, status_code, start_at, end_at, offer_count, " +
				"apply_count, view_count FROM campaign ORDER BY campaign_id", Limit: int64(n)}
			b.Run(fmt.Sprintf("%s/%d", kind, n), func(b *testing.B) {
				ctx := as(b.Context(), "k1")
				b.ReportAllocs()
				for b.Loop() {
					out, err := f.ExecuteReadSQL(ctx, in)
					if err != nil || out.Count() != n {
						b.Fatal(out.Count(), err)
					}
					out.Release()
				}
			})
		}
	}
}

// TestToolOfExecuteReadSQL calls the tool as the internal listener does.
func TestToolOfExecuteReadSQL(t *testing.T) {
	f := newSQLFixture(t, sqlOptions{maxRows: 10, audit: quiet{}})
	var found tool.Tool
	for _, c := range query.Tools(f.Service) {
		if c.Spec.Name == "execute_read_sql" {
			found = c
		}
	}
	long := func(n int) string { return `{"sql":"SELECT '` + strings.Repeat("한", n-len("SELECT ''")) + `'"}` }
	for _, c := range []struct{ name, input, rule, path string }{ // no rule: accepted
		{"default limit", `{"sql":"SELECT 1"}`, "", ""},
		{"greatest limit", `{"sql":"SELECT 1","limit":1000000}`, "", ""},
		{"limit over the bound", `{"sql":"SELECT 1","limit":1000001}`, "maximum", "/limit"},
		{"limit 0", `{"sql":"SELECT 1","limit":0}`, "minimum", "/limit"},
		{"8000 characters", long(8000), "", ""},
		{"8001 characters", long(8001), "maxLength", "/sql"},
		{"empty", `{"sql":""}`, "minLength", "/sql"},
		{"missing", `{}`, "required", "/sql"},
		{"not a string", `{"sql":{}}`, "type", "/sql"},
		{"unknown property", `{"sql":"SELECT 1","x":1}`, "additionalProperties", "/x"},
		{"two statements", `{"sql":"SELECT 1; SELECT 2"}`, "sql.", "/sql"},
	} {
		got, err := found.Endpoint(as(t.Context(), "k1"), &tool.Call{Tool: "execute_read_sql", Input: []byte(c.input)})
		if c.rule == "" {
			if r, ok := got.(*tool.Result); err != nil || !ok || r.Count != 1 || !json.Valid(r.Data) ||
				!strings.Contains(string(r.Data), `"row_limit":10}`) {
				t.Errorf("%s: %+v, %v", c.name, got, err)
			}
			continue
		}
		b, _ := json.Marshal(fault.From(err))
		if !fault.Is(err, fault.Validation) || !strings.Contains(string(b), `"path":"`+c.path+`","rule":"`+c.rule) {
			t.Errorf("%s: %s", c.name, b)
		}
	}
}
