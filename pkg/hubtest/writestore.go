package hubtest

import (
	"context"
	"fmt"
	"net/url"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"hub.internal/pkg/localserver"
	pgstore "hub.internal/pkg/postgres"
)

// WriteStoreDB is a PostgreSQL database as the stack makes it: owned by role hub, with a
// log-in role for each service, and empty.
type WriteStoreDB struct {
	// OwnerURL is for migrations.
	OwnerURL string
	// SuperuserURL is for what no role of Hub's may do.
	SuperuserURL string

	server   *localserver.Postgres
	database string
	pooler   *localserver.Bouncer // nil without one
	via      string               // host:port of a line to the server, where there is one
}

// services are the log-in roles' owners.
var services = []string{"gateway", "auth", "query", "authoring", "review-control", "admin", "payments"}

// URL is the connection URL of a service's own role, by the service's discovery name.
func (w WriteStoreDB) URL(service string) string {
	return w.RoleURL(pgstore.ServiceRole(service))
}

// RoleURL is the connection URL of a log-in role.
func (w WriteStoreDB) RoleURL(role string) string {
	address := patientURL(w.server, role, w.database)
	if w.pooler != nil {
		address = w.pooler.URL(role, testPassword(role), w.database) + "&connect_timeout=60&pooler=" + pgstore.Transaction
	}
	if w.via == "" {
		return address
	}
	u, err := url.Parse(address)
	if err != nil {
		panic(err) // made above
	}
	u.Host = w.via
	return u.String()
}

// Pooled is the same database with a PgBouncer in transaction mode in front of it, which all but the owner and
// the superuser go through. The test fails where there is none.
func (w WriteStoreDB) Pooled(t testing.TB) WriteStoreDB {
	t.Helper()
	needServers(t, localserver.PgBouncer)
	passwords := map[string]string{}
	for _, role := range append([]string{pgstore.AuditReader}, serviceRoles()...) {
		passwords[role] = testPassword(role)
	}
	w.pooler = startOwn(t, "pgbouncer", func(ctx context.Context, o localserver.Options) (*localserver.Bouncer, error) {
		return localserver.StartBouncer(ctx, localserver.BouncerOptions{
			Options: o, Postgres: w.server, Passwords: passwords, Database: w.database,
		})
	})
	return w
}

// serviceRoles are the log-in roles of all services.
func serviceRoles() (roles []string) {
	for _, s := range services {
		roles = append(roles, pgstore.ServiceRole(s))
	}
	return roles
}

// AuditURL is the connection URL of the audit log's reader.
// The service admin reads the log by it.
func (w WriteStoreDB) AuditURL() string { return w.RoleURL(pgstore.AuditReader) }

// patientURL is a connection URL for a busy machine, where a log-in may take its time.
func patientURL(server *localserver.Postgres, role, database string) string {
	return server.URL(role, testPassword(role), database) + "&connect_timeout=60"
}

// testPassword need not be secret: the server accepts connections from this machine alone
// and holds test data.
func testPassword(role string) string { return role + "-test" }

// bootstrap serializes the making of databases: two sessions that change the same role at
// once fail in PostgreSQL ("tuple concurrently updated").
var bootstrap struct {
	sync.Mutex
	roles    map[*localserver.Postgres]bool // servers that have the roles already
	migrated map[string]WriteStoreDB        // databases of the shared server that a migration has run in, by its service
}

// WriteStore makes a fresh database on the shared PostgreSQL server.
func WriteStore(t testing.TB) WriteStoreDB { t.Helper(); return WriteStoreOn(t, Postgres(t)) }

// WriteStoreOn makes a fresh database on a server of the test's own.
func WriteStoreOn(t testing.TB, server *localserver.Postgres) WriteStoreDB {
	t.Helper()
	bootstrap.Lock()
	defer bootstrap.Unlock()
	db := newStore(t, server)
	t.Cleanup(func() { drop(t, server, db.database) })
	return db
}

// MigratedStore is WriteStore after a service's migration, which runs once per test binary: the databases are copies of
// its outcome. A test of the migration itself takes WriteStore.
func MigratedStore(t testing.TB, service string, migrate func(ctx context.Context, ownerURL string) error) WriteStoreDB {
	t.Helper()
	server := Postgres(t)
	bootstrap.Lock()
	defer bootstrap.Unlock()
	original, made := bootstrap.migrated[service]
	if !made {
		original = newStore(t, server)
		if err := migrate(t.Context(), original.OwnerURL); err != nil {
			t.Fatal(err)
		}
		if bootstrap.migrated == nil {
			bootstrap.migrated = map[string]WriteStoreDB{}
		}
		bootstrap.migrated[service] = original
	}
	db := databaseOf(server, fmt.Sprintf("hub_%d", databases.Add(1)))
	conn, err := pgx.Connect(t.Context(), server.SuperuserURL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	name := pgx.Identifier{db.database}.Sanitize()
	for _, q := range []string{
		"CREATE DATABASE " + name + " OWNER " + pgstore.Owner + " TEMPLATE " + pgx.Identifier{original.database}.Sanitize(),
		"REVOKE TEMPORARY ON DATABASE " + name + " FROM PUBLIC", // rights to the database itself are not copied
	} {
		if _, err := conn.Exec(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { drop(t, server, db.database) })
	return db
}

// newStore makes a database, with bootstrap locked.
func newStore(t testing.TB, server *localserver.Postgres) WriteStoreDB {
	t.Helper()
	logins := map[string]pgstore.Login{}
	if !bootstrap.roles[server] { // hashing ten passwords takes longer than the database
		for _, role := range append([]string{pgstore.Owner, pgstore.AuditReader}, serviceRoles()...) {
			logins[role] = pgstore.Login{Password: testPassword(role)}
		}
	}
	db := databaseOf(server, fmt.Sprintf("hub_%d", databases.Add(1)))
	if err := pgstore.Bootstrap(t.Context(), server.SuperuserURL("postgres"), db.database, logins); err != nil {
		t.Fatal(err)
	}
	if bootstrap.roles == nil {
		bootstrap.roles = map[*localserver.Postgres]bool{}
	}
	bootstrap.roles[server] = true
	return db
}

// databaseOf is the database of this name.
func databaseOf(server *localserver.Postgres, database string) WriteStoreDB {
	return WriteStoreDB{
		OwnerURL:     patientURL(server, pgstore.Owner, database),
		SuperuserURL: server.SuperuserURL(database),
		server:       server, database: database,
	}
}

// drop removes the database, unless the test has stopped its server.
func drop(t testing.TB, server *localserver.Postgres, database string) {
	select {
	case <-server.Done():
		return
	default:
	}
	ctx, cancel := cleanupContext()
	defer cancel()
	conn, err := pgx.Connect(ctx, server.SuperuserURL("postgres"))
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, "DROP DATABASE IF EXISTS "+pgx.Identifier{database}.Sanitize()+" WITH (FORCE)"); err != nil {
		t.Error(err)
	}
}
