package sqlguard_test

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/localserver"
	"hub.internal/services/query/sqlguard"
)

// These tests ask a real MariaDB whether the guard and the cap are right. They
// need its servers and are skipped with -short.

func TestMain(m *testing.M) { hubtest.Main(m) }

var update = flag.Bool("update", false, "rewrite the golden files")

const database = "hub_src"

// expected are the accepted cases that MariaDB itself answers with an error.
var expected = map[string]uint16{
	"A154":  1347, // SHOW CREATE VIEW of a table
	"MA600": 1630, // no stored function is called COUNT
}

// oracle is a MariaDB with the corpus's schema and three users: root, writer
// (everything on the schema, and FILE) and hub_ro (SELECT).
type oracle struct {
	server *localserver.MariaDB
	admin  string
	writer string
	reader string
	files  string // the directory that INTO OUTFILE may write to
}

func newOracle(t *testing.T) *oracle {
	t.Helper()
	if testing.Short() {
		t.Skip("needs MariaDB")
	}
	schema, err := os.ReadFile("testdata/corpus-schema.sql")
	if err != nil {
		t.Fatal(err)
	}
	m := hubtest.MariaDB(t)
	src := localserver.Source{
		Database: database, Schema: string(schema),
		Owner: "writer", OwnerPassword: "writer", Reader: localserver.SourceReadOnly, ReaderPassword: "reader",
	}
	if err := m.CreateSource(t.Context(), src); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.DropSource(context.Background(), src); err != nil {
			t.Error(err)
		}
	})
	admin := m.AdminDSN()
	o := &oracle{server: m, admin: admin, writer: m.DSN(src.Owner, src.OwnerPassword, database),
		reader: m.DSN(src.Reader, src.ReaderPassword, database), files: filepath.Join(m.Dir(), "files")}
	c := o.connect(t, admin, nil)
	for _, q := range []string{
		"GRANT FILE ON *.* TO writer@'%'",
		// Statistics of a fresh InnoDB table change in the background, and with them plans.
		"ANALYZE TABLE partner, brand, campaign, category",
	} {
		if _, err := c.run(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	return o
}

// conn is one connection.
type conn struct {
	db *sql.DB
	*sql.Conn
}

// connect opens a connection of its own, with session variables set.
func (o *oracle) connect(t *testing.T, dsn string, variables map[string]string) conn {
	t.Helper()
	config, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	config.DBName = database
	config.Params = map[string]string{"sql_mode": "'ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES'", "lock_wait_timeout": "1"}
	config.Logger = &mysql.NopLogger{}
	maps.Copy(config.Params, variables)
	connector, err := mysql.NewConnector(config)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	c, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return conn{db, c}
}

func (c conn) close() { c.Conn.Close(); c.db.Close() }

// run returns the rows of a statement, each as one string.
func (c conn) run(ctx context.Context, text string) ([]string, error) {
	rows, err := c.QueryContext(ctx, text)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	cells, targets := make([]sql.NullString, len(columns)), make([]any, len(columns))
	for i := range cells {
		targets[i] = &cells[i]
	}
	var all []string
	for rows.Next() {
		if err := rows.Scan(targets...); err != nil {
			return nil, err
		}
		all = append(all, fmt.Sprint(cells))
	}
	return all, rows.Err()
}

// errno is the server's error number, 0 for none.
func errno(t *testing.T, err error) uint16 {
	t.Helper()
	if err == nil {
		return 0
	}
	var e *mysql.MySQLError
	if !errors.As(err, &e) {
		t.Fatal(err)
	}
	return e.Number
}

func onMariaDB(s sample) bool { return s.tagged("both") || s.tagged("mariadb") }

func TestAcceptedRun(t *testing.T) {
	o := newOracle(t)
	c := o.connect(t, o.writer, nil)
	for _, s := range samples(t) {
		if !s.accept {
			continue
		}
		_, err := c.run(t.Context(), s.sql)
		switch got := errno(t, err); {
		case !onMariaDB(s) && got == 0:
			t.Errorf("%s is tagged %s, but MariaDB runs it", s.id, s.tags)
		case onMariaDB(s) && got != expected[s.id]:
			t.Errorf("%s: %v (expected error %d)\n%.300s", s.id, err, expected[s.id], s.sql)
		}
	}
}

// TestCapOracle compares the rows of a capped statement with the first ones of
// the original.
func TestCapOracle(t *testing.T) {
	volatile := []string{"A107"} // NOW(): only counted
	o := newOracle(t)
	c := o.connect(t, o.writer, nil)
	compared, truncations, left := 0, 0, 0
	for _, s := range samples(t) {
		if !s.accept || !onMariaDB(s) || expected[s.id] != 0 {
			continue
		}
		st := mustParse(t, s.sql)
		if st.Kind() != sqlguard.Select {
			continue
		}
		all, err := c.run(t.Context(), s.sql)
		if err != nil {
			t.Fatalf("%s: %v", s.id, err)
		}
		for _, n := range []int{1, 3, 1000} {
			capped, _ := st.Capped(n + 1)
			rows, err := c.run(t.Context(), capped)
			if err != nil {
				t.Errorf("%s: %v\n%.300q", s.id, err, capped)
				continue
			}
			compared++
			if capped == s.sql && len(rows) > n+1 {
				left++ // to the reader
			} else if len(rows) > n+1 {
				t.Errorf("%s: %d rows at a cap of %d: %.300q", s.id, len(rows), n+1, capped)
			}
			truncated := len(rows) > n
			if truncated != (len(all) > n) {
				t.Errorf("%s: cap %d: truncated = %v of %d rows: %.300q", s.id, n, truncated, len(all), capped)
			}
			if got, want := rows[:min(n, len(rows))], all[:min(n, len(all))]; !slices.Equal(got, want) && !slices.Contains(volatile, s.id) {
				t.Errorf("%s: cap %d changes the rows\n got %.300s\nwant %.300s\n%.300q", s.id, n, got, want, capped)
			}
			if truncated {
				truncations++
			}
		}
	}
	t.Logf("%d comparisons, %d truncated, %d left to the reader", compared, truncations, left)
	if compared < 400 || truncations < 150 {
		t.Errorf("only %d comparisons, %d truncated", compared, truncations)
	}
}

// TestSoundness splices tokens of the cases and runs what the guard accepts as
// root, without any READ ONLY, limited only in time: nothing may change.
// HUB_ORACLE_N sets the number of texts.
func TestSoundness(t *testing.T) {
	n := 300_000
	if text := os.Getenv("HUB_ORACLE_N"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	o := newOracle(t)
	watch := o.connect(t, o.admin, nil)
	limits := map[string]string{"max_statement_time": "0.03", "sql_select_limit": "20"}
	c := o.connect(t, o.admin, limits)
	spliced := newSplicer(t, o)
	server, session := o.serverState(t, watch), sessionState(t, c)

	var accepted, ran int
	var batch []string
	check := func() {
		t.Helper()
		if d := diff(server, o.serverState(t, watch)) + diff(session, sessionState(t, c)); d != "" {
			t.Fatalf("one of these accepted statements left a trace: %s\n%s", d, strings.Join(batch, "\n"))
		}
		batch = batch[:0]
	}
	for range n {
		text := spliced.next()
		s, err := guard.Parse(text)
		if err != nil {
			continue
		}
		accepted++
		batch = append(batch, fmt.Sprintf("%q", text))
		capped, _ := s.Capped(20)
		_, err = c.run(t.Context(), capped)
		if errors.Is(err, mysql.ErrInvalidConn) {
			t.Fatalf("the server crashed on %q", capped)
		}
		if errno(t, err) == 0 {
			ran++
		}
		if len(batch) == 500 {
			check()
		}
	}
	check()
	t.Logf("%d texts, %d accepted, %d ran without an error", n, accepted, ran)
	if accepted < n/20 || ran < n/200 {
		t.Error("too few texts were accepted or ran: the test proves little")
	}
}

// splicer makes statements of pieces of the cases.
type splicer struct {
	rand  *rand.Rand
	cases [][]string // token, token, ...
}

func newSplicer(t *testing.T, o *oracle) *splicer {
	s := &splicer{rand: rand.New(rand.NewPCG(20, 26))}
	for _, c := range samples(t) {
		// A path that the server may write to makes a leak visible, as a stored function does.
		pieces, err := sqlguard.Tokens(strings.ReplaceAll(c.sql, "/var/out/x", filepath.Join(o.files, "x")))
		if err != nil || len(pieces) > 300 {
			continue
		}
		var toks []string
		for i := 1; i < len(pieces); i += 2 {
			toks = append(toks, pieces[i])
		}
		s.cases = append(s.cases, toks)
	}
	return s
}

// next is one case with one or two changes: tokens dropped, doubled, or
// replaced by a stretch of another case.
func (s splicer) next() string {
	toks := slices.Clone(s.pick())
	for range 1 + s.rand.IntN(6)/3 {
		at := s.rand.IntN(len(toks) + 1)
		to := min(at+s.rand.IntN(3), len(toks))
		var insert []string
		if s.rand.IntN(4) > 0 {
			other := s.pick()
			from := s.rand.IntN(len(other))
			insert = other[from:min(from+1+s.rand.IntN(5), len(other))]
			if s.rand.IntN(4) == 0 {
				insert = other[from:]
			}
		}
		toks = slices.Replace(toks, at, to, insert...)
	}
	var b strings.Builder
	for i, tok := range toks {
		if i > 0 && toks[i-1] != "." && tok != "." && toks[i-1] != "@" && toks[i-1] != "@@" && s.rand.IntN(24) > 0 {
			b.WriteString([...]string{" ", " ", " ", "\n", "/**/"}[s.rand.IntN(5)])
		}
		b.WriteString(tok)
	}
	return b.String()
}

func (s splicer) pick() []string {
	for {
		if toks := s.cases[s.rand.IntN(len(s.cases))]; len(toks) > 0 {
			return toks
		}
	}
}

// serverState is what an accepted statement must not change.
func (o *oracle) serverState(t *testing.T, c conn) map[string]string {
	t.Helper()
	state := map[string]string{}
	for _, q := range []string{
		"CHECKSUM TABLE partner, brand, campaign, category, member, `회원`, price_hist, my_isam",
		"SELECT * FROM seq1",
		"SELECT table_schema, table_name, table_type, create_time FROM information_schema.tables ORDER BY 1, 2",
		"SELECT routine_schema, routine_name FROM information_schema.routines ORDER BY 1, 2",
		"SELECT user, host, authentication_string FROM mysql.user ORDER BY 1, 2",
		"SELECT * FROM mysql.global_priv ORDER BY 1, 2",
		"SELECT name FROM mysql.func", "SELECT name FROM mysql.plugin", "SELECT server_name FROM mysql.servers",
		"SHOW BINARY LOGS",
		"SHOW GLOBAL VARIABLES",
	} {
		rows, err := c.run(t.Context(), q)
		if err != nil && q != "SHOW BINARY LOGS" {
			t.Fatalf("%s: %v", q, err)
		}
		for _, row := range rows {
			if strings.Contains(row, "{information_schema true}") {
				continue // created at every look
			}
			state[q+" "+row] = ""
		}
	}
	for _, dir := range []string{filepath.Join(o.server.Dir(), "data"), o.files} {
		err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			if !strings.Contains(path, "#sql") { // a query's temporary files
				state["file "+path] = ""
			}
			return err
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
	return state
}

// sessionState is what an accepted statement must leave in its connection.
func sessionState(t *testing.T, c conn) map[string]string {
	t.Helper()
	// They report the last statement or the clock.
	volatile := []string{"error_count", "warning_count", "timestamp", "rand_seed1", "rand_seed2"}
	const unlimited = "SET STATEMENT max_statement_time=20, sql_select_limit=100000 FOR "
	state := map[string]string{}
	for _, q := range []string{
		unlimited + "SELECT CONNECTION_ID(), DATABASE(), CURRENT_USER(), CURRENT_ROLE(), LAST_INSERT_ID(), @@in_transaction, LASTVAL(seq1)",
		"SELECT @@max_statement_time, @@sql_select_limit",
		unlimited + "SELECT * FROM information_schema.user_variables",
		unlimited + "SELECT RELEASE_ALL_LOCKS()",
		unlimited + "SHOW SESSION VARIABLES",
	} {
		rows, err := c.run(t.Context(), q)
		if err != nil {
			t.Fatalf("%s: %v", q, err)
		}
		for _, row := range rows {
			if !slices.ContainsFunc(volatile, func(v string) bool { return strings.Contains(row, v) }) {
				state[q+" "+row] = ""
			}
		}
	}
	if len(state) < 300 {
		t.Fatalf("only %d facts about the session", len(state))
	}
	return state
}

func diff(before, after map[string]string) string {
	var d strings.Builder
	for k := range before {
		if _, ok := after[k]; !ok {
			fmt.Fprintf(&d, "\n- %s", k)
		}
	}
	for k := range after {
		if _, ok := before[k]; !ok {
			fmt.Fprintf(&d, "\n+ %s", k)
		}
	}
	return d.String()
}

// TestLayers runs the rejects without the guard, each on a connection of its
// own, and pins which ones each layer of the database lets pass, or lets run
// until its time is over: that is what the guard is for. A new server version shows here.
func TestLayers(t *testing.T) {
	o := newOracle(t)
	reset := o.connect(t, o.admin, nil)
	var report strings.Builder
	report.WriteString("# The rejects that MariaDB 10.11 answers, or runs for five seconds, when only these layers stand.\n")
	for _, layer := range []struct {
		name, dsn string
		readOnly  bool
	}{
		{"grants", o.reader, false},
		{"grants, READ ONLY session and transaction", o.reader, true},
		{"READ ONLY session and transaction of a writer with FILE", o.writer, true},
	} {
		var passed []string
		for _, s := range samples(t) {
			head, _, _ := strings.Cut(s.sql, " ")
			// What ends the server by right, or by crashing it, is no test of the layers.
			if s.accept || head == "KILL" || head == "SHUTDOWN" || s.harms {
				continue
			}
			// SET PASSWORD is one of the rejects.
			if _, err := reset.run(t.Context(), "SET PASSWORD FOR hub_ro@'%' = PASSWORD('reader')"); err != nil {
				t.Fatal(err)
			}
			os.Remove(filepath.Join(o.files, "x"))
			c := o.connect(t, layer.dsn, map[string]string{"max_statement_time": "5"})
			if layer.readOnly {
				for _, q := range []string{"SET SESSION TRANSACTION READ ONLY", "START TRANSACTION READ ONLY"} {
					if _, err := c.run(t.Context(), q); err != nil {
						t.Fatal(err)
					}
				}
			}
			_, err := c.run(t.Context(), strings.ReplaceAll(s.sql, "/var/out/x", filepath.Join(o.files, "x")))
			c.close()
			// No layer has stopped what its time ends.
			if number := errno(t, err); number == 0 || number == 1969 {
				passed = append(passed, s.id)
			}
		}
		fmt.Fprintf(&report, "\n%s: %d\n", layer.name, len(passed))
		for ids := range slices.Chunk(passed, 16) {
			fmt.Fprintf(&report, "  %s\n", strings.Join(ids, " "))
		}
	}
	const golden = "testdata/layers.golden"
	if *update {
		if err := os.WriteFile(golden, []byte(report.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if report.String() != string(want) {
		t.Errorf("the layers stop other rejects than before (-update accepts that):\n%s\nwant\n%s", &report, want)
	}
}
