package hubtest

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"

	"hub.internal/pkg/hubtest/servers"
)

// databases numbers the databases of this test binary.
var databases atomic.Int64

// SourceDB makes a fresh source database with the marketplace's schema and no rows. The
// first data source name may do anything in it, the second is what the query service
// gets: SELECT and SHOW VIEW on this database only.
func SourceDB(t testing.TB) (adminDSN, readonlyDSN string) {
	t.Helper()
	schema, err := os.ReadFile(filepath.Join(Root(t), "deploy", "source", "schema.sql"))
	if err != nil {
		t.Fatal(err)
	}
	m := MariaDB(t)
	n := databases.Add(1)
	s := servers.Source{
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
