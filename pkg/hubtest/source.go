package hubtest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"hub.internal/pkg/localserver"
)

// databases numbers the databases of this test binary.
var databases atomic.Int64

// SourceDB makes a fresh source database with the marketplace's schema and no rows. The
// first data source name may do anything in it, the second is what the query service
// gets: SELECT and SHOW VIEW on this database only.
// Both end with the test.
func SourceDB(t testing.TB) (adminDSN, readonlyDSN string) {
	t.Helper()
	return SourceDBOn(t, &MariaDB(t).SourceServer)
}

// SourceServers runs a test on each kind of server that a source database is known to lie on: the system's MariaDB, and what
// lies beside it of a newer MariaDB and of MySQL. The subtests have the names and versions; one whose server is not on this
// machine is skipped, with the line that says what is missing.
func SourceServers(t *testing.T, test func(t *testing.T, s *localserver.SourceServer)) {
	t.Helper()
	onEach(t, []kind{
		{nil, func(t testing.TB) *localserver.SourceServer { return &MariaDB(t).SourceServer }},
		{&localserver.SideBySideMySQL, mySQLBeside.get},
		{&localserver.SideBySideMariaDB, func(t testing.TB) *localserver.SourceServer { return &mariaDBBeside.get(t).SourceServer }},
	}, test)
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
				t.Run(kind.beside.Name, func(t *testing.T) { t.Skip(err) })
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
		t.Run(name+" "+number, func(t *testing.T) { test(t, s) })
	}
}

// SourceDBOn is SourceDB on a server of the test's choice.
func SourceDBOn(t testing.TB, m *localserver.SourceServer) (adminDSN, readonlyDSN string) {
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
	t.Cleanup(func() {
		ctx, cancel := cleanupContext()
		defer cancel()
		if err := m.DropSource(ctx, s); err != nil {
			t.Error(err)
		}
	})
	return m.DSN(s.Owner, s.OwnerPassword, s.Database), m.DSN(s.Reader, s.ReaderPassword, s.Database)
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
