package postgres_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/caller"
	"hub.internal/pkg/hubtest"
)

func TestMain(m *testing.M) { hubtest.Main(m) }

func TestOnNewerStores(t *testing.T) {
	t.Parallel()
	hubtest.NewerStores(t, "")
}

var quiet = slog.New(slog.DiscardHandler)

// store is a database with the audit schema.
type store struct {
	hubtest.WriteStoreDB
	service, owner, super *pgxpool.Pool
}

// migrated is a store in a database of its own.
func migrated(t testing.TB) store {
	t.Helper()
	db := hubtest.MigratedStore(t, "audit", audit.Migrate)
	return store{db, hubtest.Pool(t, db.URL("auth")), hubtest.Pool(t, db.OwnerURL), hubtest.Pool(t, db.SuperuserURL)}
}

func newLog(t testing.TB, p *pgxpool.Pool, logger *slog.Logger) *audit.Log {
	t.Helper()
	l := audit.NewLog(p, logger)
	t.Cleanup(func() { _ = l.Close(context.Background()) })
	return l
}

// rows counts what the log holds; only a superuser may look.
func (s store) rows(t testing.TB) (n int) {
	t.Helper()
	if err := s.super.QueryRow(context.Background(), "SELECT count(*) FROM audit.calls").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func entry(request string) audit.Entry {
	return audit.Entry{
		At:        time.Now(),
		Caller:    caller.Caller{Service: "svc", ExternalUserID: "ext", CredentialID: "ak_1", RequestID: request},
		Tool:      "execute_read_sql",
		Outcome:   audit.OK,
		Count:     3,
		Took:      1500 * time.Microsecond,
		InputHash: audit.HashInput([]byte("{}")),
		Detail:    map[string]any{"sql": "SELECT 1"},
	}
}

// services are those with a role of their own.
var services = []string{"gateway", "auth", "query", "authoring", "review-control", "admin", "payments"}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	return conn
}

// code is the SQLSTATE of an error of the server, or "".
func code(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code
	}
	return ""
}
