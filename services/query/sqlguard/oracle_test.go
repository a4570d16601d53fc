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
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/localserver"
	"hub.internal/services/query/sqlguard"
)

// These tests ask a real server whether the guard and the cap are right: MariaDB, or the one that HUB_TEST_SOURCE names.
// They are skipped with -short.

func TestMain(m *testing.M) { hubtest.Main(m) }

var update = flag.Bool("update", false, "rewrite the golden files")

const database = "hub_src"

// expected are the accepted cases that the servers themselves answer with an error, and expectedOfMySQL those that it alone does.
var (
	expected = map[string]uint16{
		"A154":  1347, // SHOW CREATE VIEW of a table
		"MA600": 1630, // no stored function is called COUNT
	}
	expectedOfMySQL = map[string]uint16{
		"A132": 1064, "MA150": 1064, // EXPLAIN EXTENDED and PARTITIONS, up to 5.7
		"P002": 1305, "OA039": 1305, "MA710": 1305, // MD5() and SHA1(), up to 9.5
		"OA116": 1064, // rank is a reserved word
		"OA177": 1193, // @@tx_isolation, up to 5.7
	}
)

// errorOf is the error that a case has on this server, 0 for none.
func errorOf(s sample) uint16 {
	if number, ok := expectedOfMySQL[s.id]; ok && hubtest.SourceIsMySQL() {
		return number
	}
	return expected[s.id]
}

// particulars are what differs between MariaDB and MySQL.
type particulars struct {
	dialect        string // as cases are tagged, and the least release of its kind that is tested
	release        int
	timeLimit      string // the variable that bounds a statement's time, and how many of it make a second
	perSecond      float64
	timedOut       uint16
	setPassword    string
	state, session []string // queries for what an accepted statement must not change in the server, and in its connection
}

// here are those of the server that is tested.
var here = func() particulars {
	if hubtest.SourceIsMySQL() {
		const unlimited = "SELECT /*+ MAX_EXECUTION_TIME(20000) SET_VAR(sql_select_limit=100000) */ "
		return particulars{dialect: "mysql", release: 9, timeLimit: "max_execution_time", perSecond: 1000, timedOut: 3024,
			setPassword: "SET PASSWORD FOR hub_ro@'%' = 'reader'",
			state: []string{"SELECT * FROM mysql.global_grants ORDER BY 1, 2, 3", "SELECT * FROM mysql.db ORDER BY 1, 2, 3",
				"SELECT * FROM mysql.component"},
			session: []string{unlimited + "CONNECTION_ID(), DATABASE(), CURRENT_USER(), CURRENT_ROLE(), LAST_INSERT_ID()",
				unlimited + "RELEASE_ALL_LOCKS()", unlimited + "* FROM performance_schema.session_variables"}}
	}
	release := 10
	if os.Getenv("HUB_TEST_SOURCE") == "mariadb-next" {
		release = 11
	}
	const unlimited = "SET STATEMENT max_statement_time=20, sql_select_limit=100000 FOR "
	return particulars{dialect: "mariadb", release: release, timeLimit: "max_statement_time", perSecond: 1, timedOut: 1969,
		setPassword: "SET PASSWORD FOR hub_ro@'%' = PASSWORD('reader')",
		state:       []string{"SELECT * FROM seq1", "SELECT * FROM mysql.global_priv ORDER BY 1, 2"},
		session: []string{unlimited + "SELECT CONNECTION_ID(), DATABASE(), CURRENT_USER(), CURRENT_ROLE(), LAST_INSERT_ID(), " +
			"@@in_transaction, LASTVAL(seq1)", unlimited + "SELECT * FROM information_schema.user_variables",
			unlimited + "SELECT RELEASE_ALL_LOCKS()", unlimited + "SHOW SESSION VARIABLES"}}
}()

// seconds are so many of them as timeLimit is set to.
func (p particulars) seconds(n float64) string {
	return strconv.FormatFloat(n*p.perSecond, 'f', -1, 64)
}

// isHere tells that a case is one of the tested server's: it has a tag such as both, mysql or mysql8.0.31, which is of that one on.
func isHere(s sample) bool {
	for tag := range strings.SplitSeq(s.tags, ",") {
		since, ours := strings.CutPrefix(tag, here.dialect)
		major, _, _ := strings.Cut(since, ".")
		if release, err := strconv.Atoi(major); tag == "both" || ours && (since == "" || err == nil && release <= here.release) {
			return true
		}
	}
	return false
}

// userVariable is one in a case.
var userVariable = regexp.MustCompile(`\B@\w+\b`)

// oracle is a server with the corpus's schema and three users: root, writer
// (everything on the schema, and FILE) and hub_ro (SELECT).
type oracle struct {
	server *localserver.SourceServer
	admin  string
	writer string
	reader string
	files  string // the directory that INTO OUTFILE may write to
}

func newOracle(t *testing.T) *oracle {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a server")
	}
	schema, err := os.ReadFile("testdata/corpus-schema.sql")
	if err != nil {
		t.Fatal(err)
	}
	m, tables := hubtest.SourceServer(t), string(schema)
	if hubtest.SourceIsMySQL() {
		tables = onMySQL(tables)
	}
	src := localserver.Source{
		Database: database, Schema: tables,
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

func TestAcceptedRun(t *testing.T) {
	o := newOracle(t)
	c := o.connect(t, o.writer, nil)
	for _, s := range samples(t) {
		if !s.accept {
			continue
		}
		_, err := c.run(t.Context(), s.sql)
		switch got := errno(t, err); {
		case !isHere(s) && got == 0:
			t.Errorf("%s is tagged %s, but the server runs it", s.id, s.tags)
		case isHere(s) && got != errorOf(s):
			t.Errorf("%s: %v (expected error %d)\n%.300s", s.id, err, errorOf(s), s.sql)
		}
	}
}

// TestCapOracle compares the rows of a capped statement with the first ones of
// the original.
func TestCapOracle(t *testing.T) {
	volatile := []string{"A107", "OA188"} // NOW(), UUID(): only counted
	o := newOracle(t)
	c := o.connect(t, o.writer, nil)
	compared, truncations, left := 0, 0, 0
	for _, s := range samples(t) {
		if !s.accept || !isHere(s) || errorOf(s) != 0 {
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
	limits := map[string]string{here.timeLimit: here.seconds(0.03), "sql_select_limit": "20"}
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
	for _, q := range append([]string{
		"CHECKSUM TABLE partner, brand, campaign, category, member, `회원`, price_hist, my_isam",
		"SELECT table_schema, table_name, table_type, create_time FROM information_schema.tables ORDER BY 1, 2",
		"SELECT routine_schema, routine_name FROM information_schema.routines ORDER BY 1, 2",
		"SELECT user, host, authentication_string FROM mysql.user ORDER BY 1, 2",
		"SELECT name FROM mysql.func", "SELECT name FROM mysql.plugin", "SELECT server_name FROM mysql.servers",
		"SHOW BINARY LOGS",
		"SHOW GLOBAL VARIABLES",
	}, here.state...) {
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
			if !strings.Contains(path, "#sql") && !strings.Contains(path, "#innodb") { // files of queries, and of the log
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
	volatile := []string{"error_count", "warning_count", "timestamp", "rand_seed1", "rand_seed2", "{statement_id true}"}
	state := map[string]string{}
	for _, q := range append([]string{"SELECT @@" + here.timeLimit + ", @@sql_select_limit", "SELECT " + userVariables(t)}, here.session...) {
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

// userVariables are those that the cases name.
func userVariables(t *testing.T) string {
	t.Helper()
	seen := map[string]bool{}
	for _, s := range samples(t) {
		for _, name := range userVariable.FindAllString(s.sql, -1) {
			seen[strings.ToLower(name)] = true
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(seen)), ", ")
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
	version, err := o.server.Version(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	name := "MySQL"
	if strings.Contains(version, "MariaDB") {
		name = "MariaDB"
	}
	name += " " + regexp.MustCompile(`^\d+\.\d+`).FindString(version)
	reset := o.connect(t, o.admin, nil)
	var report strings.Builder
	fmt.Fprintf(&report, "# The rejects that %s answers, or runs for five seconds, when only these layers stand.\n", name)
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
			if _, err := reset.run(t.Context(), here.setPassword); err != nil {
				t.Fatal(err)
			}
			os.Remove(filepath.Join(o.files, "x"))
			c := o.connect(t, layer.dsn, map[string]string{here.timeLimit: here.seconds(5)})
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
			if number := errno(t, err); number == 0 || number == here.timedOut {
				passed = append(passed, s.id)
			}
		}
		fmt.Fprintf(&report, "\n%s: %d\n", layer.name, len(passed))
		for ids := range slices.Chunk(passed, 16) {
			fmt.Fprintf(&report, "  %s\n", strings.Join(ids, " "))
		}
	}
	golden := "testdata/layers-" + strings.ReplaceAll(strings.ToLower(name), " ", "-") + ".golden"
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
