package sqlguard_test

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/localserver"
	"hub.internal/services/query/mysql"
	"hub.internal/services/query/mysql/server"
	"hub.internal/services/query/sqlguard"
)

var (
	crashFor   = flag.Duration("crash.for", 5*time.Second, "how long TestCrash runs; the number of statements counts if -crash.n is given")
	crashN     = flag.Uint64("crash.n", 0, "how many statements TestCrash runs at most")
	crashSeed  = flag.Uint64("crash.seed", 1, "what the statements of TestCrash are made from")
	crashFirst = flag.Uint64("crash.first", 0, "the number of the first statement")
	crashRetry = flag.Bool("crash.goon", false, "go on after a crash, up to 20 of them")
)

const (
	crashSessions = 4
	// statementTime is the server's limit for a statement; patience is how long a session
	// waits for its end, which is longer: some functions look at the limit between rows only.
	statementTime = 100 * time.Millisecond
	patience      = 2 * time.Second
	// killLimit is how long a statement may run on after KILL.
	killLimit = 20 * time.Second
	// greatSize is what no statement may make the server's memory grow to.
	greatSize = memoryLimit
)

// TestCrash runs statements that the guard accepts as the read-only account, in sessions
// as the service makes them, on a server of its own, and fails when one brings it down.
func TestCrash(t *testing.T) {
	if testing.Short() {
		t.Skip("needs MariaDB")
	}
	r := newCrashRun(t)
	deadline := time.Now().Add(*crashFor)
	for {
		r.round(deadline)
		flying := r.flying()
		if r.alive() {
			break
		}
		t.Errorf("the server went down: %v\n%s", r.server.Err(), r.culprit(flying))
		if r.crashes++; !*crashRetry || r.crashes == 20 {
			break
		}
		r.restart()
	}
	r.log("done")
	if r.accepted.Load() < 100 {
		t.Error("too few statements: the test proves little")
	}
}

// crashRun is one run of the fuzzer.
type crashRun struct {
	t      *testing.T
	server *localserver.SourceServer
	mysql  bool
	source *mysql.Source
	admin  *sql.DB
	gen    *crashGen
	start  time.Time

	next                                                           atomic.Uint64
	accepted, answered, refusedByServer, timedOut, outlived, stuck atomic.Int64
	greatest                                                       atomic.Int64 // resident set of the server, in bytes
	current                                                        [crashSessions]atomic.Pointer[flight]
	recent                                                         [crashSessions][]string // the last statements of each session
	crashes                                                        int
}

// flight is a statement that runs.
type flight struct {
	n    uint64
	id   int64 // of its connection
	text string
}

func newCrashRun(t *testing.T) *crashRun {
	t.Helper()
	var schema strings.Builder
	for _, file := range []string{"corpus-schema.sql", "crash-schema.sql"} {
		b, err := os.ReadFile(filepath.Join("testdata", file))
		if err != nil {
			t.Fatal(err)
		}
		schema.Write(b)
		schema.WriteString("\n")
	}
	schema.WriteString(memorySchema)
	r := &crashRun{t: t, server: hubtest.NewSource(t), mysql: os.Getenv("HUB_TEST_SOURCE") == "mysql", start: time.Now()}
	longest := "SET GLOBAL max_statement_time = 60"
	tables := schema.String()
	if r.mysql {
		longest, tables = "SET GLOBAL max_execution_time = 60000", onMySQL(tables)
	}
	src := localserver.Source{Database: database, Schema: tables, Owner: "writer", OwnerPassword: "writer",
		Reader: localserver.SourceReadOnly, ReaderPassword: "reader"}
	if err := r.server.CreateSource(t.Context(), src); err != nil {
		t.Fatal(err)
	}
	var err error
	if r.admin, err = r.server.Admin(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.admin.Close() })
	if _, err := r.admin.ExecContext(t.Context(), longest); err != nil {
		t.Fatal(err)
	}
	r.source, err = mysql.Open(r.server.DSN(src.Reader, src.ReaderPassword, database),
		server.Options{PoolSize: crashSessions, StatementTimeout: statementTime})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.source.Close() })
	r.next.Store(*crashFirst)
	r.gen = newCrashGen(*crashSeed, r.arities(), tokensOf(samples(t)))
	return r
}

// ofMariaDB is what only MariaDB has in a schema, and what stands for it on MySQL.
var ofMariaDB = []struct {
	form *regexp.Regexp
	here string
}{
	{regexp.MustCompile(`seq_1_to_(\d+)`),
		"(WITH RECURSIVE q AS (SELECT 1 AS seq UNION ALL SELECT seq + 1 FROM q WHERE seq < $1) SELECT seq FROM q) q"},
	{regexp.MustCompile(`(\)) WITH SYSTEM VERSIONING|CREATE SEQUENCE seq1;`), "$1"},
	{regexp.MustCompile(`ENGINE = Aria`), "ENGINE = MyISAM"},
	{regexp.MustCompile(`INET6, ui UUID`), "VARCHAR(50), ui VARCHAR(50)"},
}

// onMySQL is a schema of MariaDB's as MySQL takes it.
func onMySQL(schema string) string {
	for _, m := range ofMariaDB {
		schema = m.form.ReplaceAllString(schema, m.here)
	}
	return "SET SESSION cte_max_recursion_depth = 10000;\n" + schema
}

// arities asks the server how many arguments each function takes.
func (r *crashRun) arities() map[string][]int {
	dialect := "mariadb"
	if r.mysql {
		dialect = "mysql"
	}
	families := sqlguard.Functions(dialect)
	all := map[string][]int{}
	for name, family := range families {
		if family == "aggregate" || family == "window" || name == "SLEEP" || name == "BENCHMARK" {
			continue // they are written out
		}
		for n := range 7 {
			rows, err := r.admin.QueryContext(r.t.Context(), "SELECT "+name+"("+strings.TrimSuffix(strings.Repeat("NULL,", n), ",")+")")
			if err == nil {
				rows.Next()
				err = rows.Err()
				rows.Close() //nolint:sqlclosecheck // one of many in a loop
			}
			switch errnoOf(err) {
			case 1064, 1582, 1305, 1304, 1630:
			default:
				all[name] = append(all[name], n)
			}
		}
	}
	if len(all) < 150 {
		r.t.Fatalf("only %d functions take arguments", len(all))
	}
	return all
}

func errnoOf(err error) uint16 {
	var e *driver.MySQLError
	if errors.As(err, &e) {
		return e.Number
	}
	return 0
}

// round runs statements until the time is up or the server is down.
func (r *crashRun) round(deadline time.Time) {
	ctx, cancel := context.WithDeadline(r.t.Context(), deadline)
	defer cancel()
	down := r.server.Done()
	go func() {
		select {
		case <-down:
			cancel()
		case <-ctx.Done():
		}
	}()
	var running sync.WaitGroup
	running.Go(func() { r.watch(ctx) })
	for i := range crashSessions {
		running.Go(func() { r.session(ctx, i) })
	}
	running.Wait()
}

func (r *crashRun) log(what string) {
	took := time.Since(r.start)
	fmt.Printf("%s %s: %d statements accepted of %d in %s (%.0f/s), %d answered, %d refused by the server, %d timed out, "+
		"%d outlived their limit (%d of them KILL), greatest size %d MiB\n",
		time.Now().Format(time.TimeOnly), what, r.accepted.Load(), r.next.Load()-*crashFirst, took.Round(time.Second),
		float64(r.accepted.Load())/took.Seconds(), r.answered.Load(), r.refusedByServer.Load(),
		r.timedOut.Load(), r.outlived.Load(), r.stuck.Load(), r.greatest.Load()>>20)
}

// session runs statements one after the other.
func (r *crashRun) session(ctx context.Context, i int) {
	var conn *sql.Conn
	var id int64
	for ctx.Err() == nil {
		n := r.next.Add(1) - 1
		if *crashN > 0 && n >= *crashFirst+*crashN {
			return
		}
		st, err := guard.Parse(r.gen.statement(n))
		if err != nil || strings.Contains(st.Text(), "f_named") {
			continue
		}
		text, _ := st.Capped(21)
		if conn == nil {
			if conn, id, err = r.connect(ctx); err != nil {
				return
			}
			r.recent[i] = r.recent[i][:0]
		}
		if len(r.recent[i]) == 200 {
			r.recent[i] = append(r.recent[i][:0], r.recent[i][100:]...)
		}
		r.recent[i] = append(r.recent[i], text)
		r.current[i].Store(&flight{n, id, text})
		r.accepted.Add(1)
		if !r.run(ctx, conn, id, n, text) {
			_ = conn.Close()
			conn = nil
			// A server that goes down closes its connections first.
			select {
			case <-r.server.Done():
				return // what flies is what it may have gone down with
			case <-time.After(time.Second):
			}
		}
		r.current[i].Store(nil)
	}
	if conn != nil {
		conn.Close()
	}
}

// connect makes a session like those for callers' statements.
func (r *crashRun) connect(ctx context.Context) (*sql.Conn, int64, error) {
	conn, err := r.source.DB().Conn(ctx)
	if err != nil {
		return nil, 0, err
	}
	var id int64
	limits := "SET SESSION sql_select_limit = 21, max_recursive_iterations = 4294967295"
	if r.mysql {
		limits = "SET SESSION sql_select_limit = 21, cte_max_recursion_depth = 1000000"
	}
	for _, q := range []string{limits,
		"SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY", "START TRANSACTION READ ONLY"} {
		if _, err := conn.ExecContext(ctx, q); err != nil {
			return nil, 0, err
		}
	}
	return conn, id, conn.QueryRowContext(ctx, "SELECT CONNECTION_ID()").Scan(&id)
}

// run runs a statement; false when its connection is of no more use.
func (r *crashRun) run(ctx context.Context, conn *sql.Conn, id int64, n uint64, text string) bool {
	done := make(chan error, 1)
	go func() {
		rows, err := conn.QueryContext(context.WithoutCancel(ctx), text)
		if err == nil {
			for rows.Next() {
			}
			err = errors.Join(rows.Err(), rows.Close()) //nolint:sqlclosecheck // one of many in a loop
		}
		done <- err
	}()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for waited := false; ; waited = true {
		select {
		case err := <-done:
			switch number := errnoOf(err); {
			case err == nil:
				r.answered.Add(1)
			case number == 1969 || number == 3024 || number == 1317:
				r.timedOut.Add(1)
			case number != 0:
				r.refusedByServer.Add(1)
			default:
				return false
			}
			return !waited
		case <-timer.C:
			r.outlived.Add(1)
			fmt.Printf("took more than %s, gone %s after KILL: %s\n", patience, r.kill(id), describe(r.gen.seed, n, text))
			timer.Reset(time.Hour)
		}
	}
}
