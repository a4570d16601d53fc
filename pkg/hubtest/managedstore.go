package hubtest

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	pgstore "hub.internal/pkg/postgres"
)

// ManagedStore makes a database as it is made at a managed service, on a server of the test's own: an administrator who may make
// roles and databases, and is no superuser, gives Hub the statements of deploy/README.md.
func ManagedStore(t testing.TB) WriteStoreDB {
	t.Helper()
	const administrator, database = "landlord", "hub"
	server := NewPostgres(t)
	run := func(url string, statements ...string) {
		t.Helper()
		conn, err := pgx.Connect(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(t.Context())
		for _, statement := range statements {
			if _, err := conn.Exec(t.Context(), statement); err != nil {
				t.Fatalf("%s: %v", statement, err)
			}
		}
	}
	login := func(role, more string) string {
		return fmt.Sprintf("CREATE ROLE %s LOGIN PASSWORD '%s' %s", role, testPassword(role), more)
	}
	run(server.SuperuserURL("postgres"), login(administrator, "NOSUPERUSER CREATEROLE CREATEDB"))
	statements := []string{"CREATE ROLE hub_service NOLOGIN", login(pgstore.Owner, ""), login(pgstore.AuditReader, "")}
	for _, role := range serviceRoles() {
		statements = append(statements, login(role, "IN ROLE hub_service"))
	}
	run(patientURL(server, administrator, "postgres"), append(statements, "GRANT hub TO "+administrator, "CREATE DATABASE hub OWNER hub",
		"REVOKE TEMPORARY ON DATABASE hub FROM PUBLIC", "REVOKE hub FROM "+administrator)...)
	return databaseOf(server, database)
}
