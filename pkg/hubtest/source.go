package hubtest

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"hub.internal/pkg/localserver"
)

// databases numbers the databases of this test binary.
var databases atomic.Int64

// SourceDB makes a fresh source database with the marketplace's schema and no rows. The
// first data source name may do anything in it, the second is what the query service
// gets: SELECT and SHOW VIEW on this database only.
// Both end with the test. HUB_TEST_SOURCE names the server that it lies on: mysql and mariadb-next are those of Debian's next
// release, and without it it is the system's MariaDB.
func SourceDB(t testing.TB) (adminDSN, readonlyDSN string) {
	t.Helper()
	return SourceDBOn(t, SourceServer(t))
}

// SourceServer is the server that SourceDB makes its databases on.
func SourceServer(t testing.TB) *localserver.SourceServer {
	t.Helper()
	on := sourceKinds[0]
	switch os.Getenv(sourceVariable) {
	case "mysql":
		on = sourceKinds[1]
	case "mariadb-next":
		on = sourceKinds[2]
	}
	if on.beside != nil {
		summarize(t, on.beside.Name+" of Debian's next release")
		if _, err := on.beside.Root(); err != nil {
			t.Skip(err)
		}
	}
	return on.get(t)
}

// SourceIsMySQL tells that SourceServer is MySQL, not MariaDB.
func SourceIsMySQL() bool { return os.Getenv(sourceVariable) == "mysql" }

// Sequences makes tables seq_1_to_n in a source database, with the numbers from 1 to n in the column seq: MariaDB has
// them by itself, MySQL gets views.
func Sequences(t testing.TB, adminDSN string, upTo ...int) {
	t.Helper()
	if !SourceIsMySQL() {
		return
	}
	db, err := sql.Open("mysql", adminDSN)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	const digit = "(SELECT 0 AS d UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 UNION ALL SELECT 5 " +
		"UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9)"
	for _, n := range upTo {
		// No more digits than the number has: two views in one statement are multiplied.
		number, from := "d0.d", digit+" d0"
		for i, power := 1, 10; power < n; i, power = i+1, power*10 {
			number += fmt.Sprintf(" + %d * d%d.d", power, i)
			from += fmt.Sprintf(", %s d%d", digit, i)
		}
		if _, err := db.ExecContext(t.Context(), fmt.Sprintf("CREATE VIEW seq_1_to_%d AS SELECT 1 + %[2]s AS seq FROM %[3]s WHERE %[2]s < %[1]d",
			n, number, from)); err != nil {
			t.Fatal(err)
		}
	}
}

// sourceVariable names the server that tests of one source take.
const sourceVariable = "HUB_TEST_SOURCE"

// sourceKinds are those that tests share.
var sourceKinds = []kind{
	{nil, func(t testing.TB) *localserver.SourceServer { return &MariaDB(t).SourceServer }},
	{&localserver.SideBySideMySQL, func(t testing.TB) *localserver.SourceServer { return mySQLBeside.get(t) }},
	{&localserver.SideBySideMariaDB, func(t testing.TB) *localserver.SourceServer { return &mariaDBBeside.get(t).SourceServer }},
}

// summarize has what comes of a test on a server told at its end: a line of the file that HUB_TEST_SUMMARY names, the server,
// the test binary and passed, failed or skipped with tabs between.
func summarize(t testing.TB, server string) {
	path := os.Getenv("HUB_TEST_SUMMARY")
	if path == "" {
		return
	}
	t.Cleanup(func() {
		outcome := "passed"
		if t.Failed() {
			outcome = "failed"
		} else if t.Skipped() {
			outcome = "skipped"
		}
		file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Error(err)
			return
		}
		defer file.Close()
		if _, err := fmt.Fprintf(file, "%s\t%s\t%s\n", server, strings.TrimSuffix(filepath.Base(os.Args[0]), ".test"), outcome); err != nil {
			t.Error(err)
		}
	})
}

// SourceServers runs a test on each kind of server that a source database is known to lie on: the system's MariaDB, and what
// lies beside it of a newer MariaDB and of MySQL. The subtests have the names and versions; one whose server is not on this
// machine is skipped, with the line that says what is missing.
func SourceServers(t *testing.T, test func(t *testing.T, s *localserver.SourceServer)) {
	t.Helper()
	onEach(t, sourceKinds, test)
}

// NewSourceServers is SourceServers on servers of the test's own, with these lines in their configuration: on the system's
// MariaDB, and on MySQL.
func NewSourceServers(t *testing.T, config string, test func(t *testing.T, s *localserver.SourceServer)) {
	t.Helper()
	onEach(t, []kind{
		{nil, func(t testing.TB) *localserver.SourceServer {
			return &startOwn(t, "mariadb", func(ctx context.Context, o localserver.Options) (*localserver.MariaDB, error) {
				o.Config = config
				return localserver.StartMariaDB(ctx, o)
			}).SourceServer
		}},
		{&localserver.SideBySideMySQL, func(t testing.TB) *localserver.SourceServer {
			return startOwn(t, "mysql", func(ctx context.Context, o localserver.Options) (*localserver.SourceServer, error) {
				o.Config = config
				return localserver.StartMySQL(ctx, o)
			})
		}},
	}, test)
}

// CopiedServers runs a test on two servers that copy one another, whose numbers are 1 and 2, and which the test may stop, kill and
// pause: two of the system's MariaDB, and two of MySQL. The names of the subtests are those of SourceServers.
func CopiedServers(t *testing.T, test func(t *testing.T, a, b *localserver.SourceServer)) {
	t.Helper()
	var b *localserver.SourceServer
	onEach(t, []kind{
		{nil, func(t testing.TB) *localserver.SourceServer {
			one, two := CopiedMariaDB(t)
			b = &two.SourceServer
			return &one.SourceServer
		}},
		{&localserver.SideBySideMySQL, func(t testing.TB) *localserver.SourceServer {
			var a *localserver.SourceServer
			a, b = copiedMySQL(t)
			return a
		}},
	}, func(t *testing.T, a *localserver.SourceServer) { test(t, a, b) })
}

// copiedMySQL is CopiedMariaDB with MySQL.
func copiedMySQL(t testing.TB) (a, b *localserver.SourceServer) {
	t.Helper()
	numbered := func(id int) *localserver.SourceServer {
		return startOwn(t, "mysql", func(ctx context.Context, o localserver.Options) (*localserver.SourceServer, error) {
			o.Config = fmt.Sprintf("server_id = %d\nlog_bin = binlog\ngtid_mode = on\nenforce_gtid_consistency = on\nreplica_net_timeout = 4\n", id)
			return localserver.StartMySQL(ctx, o)
		})
	}
	run := func(on *localserver.SourceServer, statements ...string) {
		db, err := on.Admin()
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		for _, q := range statements {
			if _, err := db.ExecContext(t.Context(), q); err != nil {
				t.Fatalf("%s: %v", q, err)
			}
		}
	}
	a, b = numbered(1), numbered(2)
	const user, password = "copier", "copied-on-this-machine"
	run(a, "CREATE USER "+user+" IDENTIFIED BY '"+password+"'", "GRANT REPLICATION SLAVE ON *.* TO "+user)
	follow := func(from *localserver.SourceServer) string {
		return fmt.Sprintf("CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = %d, SOURCE_USER = '%s', "+
			"SOURCE_PASSWORD = '%s', SOURCE_CONNECT_RETRY = 1, SOURCE_RETRY_COUNT = 86400, "+
			"SOURCE_AUTO_POSITION = 1, GET_SOURCE_PUBLIC_KEY = 1", from.Port(), user, password)
	}
	run(b, follow(a), "START REPLICA")
	run(a, follow(b), "START REPLICA")
	return a, b
}

// kind is a kind of server that a source database is known to lie on, beside the system or the system's own.
type kind struct {
	beside *localserver.SideBySide
	get    func(testing.TB) *localserver.SourceServer
}

// onEach runs a test on one server of each kind.
func onEach(t *testing.T, kinds []kind, test func(t *testing.T, s *localserver.SourceServer)) {
	t.Helper()
	for _, kind := range kinds {
		if kind.beside != nil {
			if _, err := kind.beside.Root(); err != nil {
				t.Run(kind.beside.Name, func(t *testing.T) {
					summarize(t, kind.beside.Name+" of Debian's next release")
					t.Skip(err)
				})
				continue
			}
		}
		s := kind.get(t)
		version, err := s.Version(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		name := "MySQL"
		if strings.Contains(version, "MariaDB") {
			name = "MariaDB"
		}
		number, _, _ := strings.Cut(version, "-")
		t.Run(name+" "+number, func(t *testing.T) {
			summarize(t, name+" "+number)
			test(t, s)
		})
	}
}

// filled is the read-only data source name of the database that FilledSource has made.
var filled struct {
	sync.Mutex
	readonlyDSN string
}

// FilledSource is what the query service gets of a source database that fill puts rows into, once per test binary: tests share it,
// and none may change it.
func FilledSource(t testing.TB, fill func(adminDSN string)) (readonlyDSN string) {
	t.Helper()
	filled.Lock()
	defer filled.Unlock()
	if filled.readonlyDSN == "" {
		m := SourceServer(t)
		s := newSource(t, m)
		fill(m.DSN(s.Owner, s.OwnerPassword, s.Database))
		filled.readonlyDSN = m.DSN(s.Reader, s.ReaderPassword, s.Database)
	}
	return filled.readonlyDSN
}

// SourceDBOn is SourceDB on a server of the test's choice.
func SourceDBOn(t testing.TB, m *localserver.SourceServer) (adminDSN, readonlyDSN string) {
	t.Helper()
	s := newSource(t, m)
	t.Cleanup(func() {
		ctx, cancel := cleanupContext()
		defer cancel()
		if err := m.DropSource(ctx, s); err != nil {
			t.Error(err)
		}
	})
	return m.DSN(s.Owner, s.OwnerPassword, s.Database), m.DSN(s.Reader, s.ReaderPassword, s.Database)
}

// newSource makes a source database without rows. One that nobody drops goes with its server.
func newSource(t testing.TB, m *localserver.SourceServer) localserver.Source {
	t.Helper()
	schema, err := os.ReadFile(filepath.Join(Root(t), "deploy", "source", "schema.sql"))
	if err != nil {
		t.Fatal(err)
	}
	n := databases.Add(1)
	s := localserver.Source{
		Database: fmt.Sprintf("source_%d", n), Schema: string(schema),
		Owner: fmt.Sprintf("owner_%d", n), OwnerPassword: "owner-password",
		Reader: fmt.Sprintf("hub_ro_%d", n), ReaderPassword: "reader-password",
	}
	if err := m.CreateSource(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	return s
}

// Root is the repository's root directory.
// It is found from where this file was compiled, whatever the working directory is.
func Root(t testing.TB) string {
	t.Helper()
	_, file, _, ok := runtime.Caller(0)
	if !ok {
		t.Fatal("the test binary has no file names (built with -trimpath?)")
	}
	for dir := filepath.Dir(file); dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.work")); err == nil {
			return dir
		}
	}
	t.Fatalf("no go.work above %s", file)
	return ""
}
