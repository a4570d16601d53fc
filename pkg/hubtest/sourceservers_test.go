package hubtest_test

import (
	"database/sql"
	"strings"
	"testing"

	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/localserver"
)

// TestSourceServers: each server has the marketplace's schema, an account that reads it, and an administrator whom the
// network does not know.
func TestSourceServers(t *testing.T) {
	hubtest.SourceServers(t, func(t *testing.T, s *localserver.SourceServer) {
		_, readonly := hubtest.SourceDBOn(t, s)
		var tables int
		if err := open(
			t,
			readonly,
		).QueryRow(
			"SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE()",
		).Scan(
			&tables,
		); err != nil ||
			tables < 5 {
			t.Errorf("%d tables, %v", tables, err)
		}
		for _, user := range []string{"root", "mysql"} {
			if err := open(
				t,
				s.DSN(user, "", ""),
			).Ping(); err == nil ||
				!strings.Contains(err.Error(), "Access denied") && !strings.Contains(err.Error(), "not allowed") {
				t.Errorf("%s without a password over the network: %v", user, err)
			}
		}
	})
}

func open(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}
