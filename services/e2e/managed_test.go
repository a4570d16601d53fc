package e2e_test

import (
	"testing"

	"hub.internal/pkg/hubtest"
)

// TestManagedPostgres: on a server that a managed service has made, nobody of Hub is a superuser, makes roles or databases, or is a
// member of a role of PostgreSQL's own such as pg_read_all_stats. Every service migrates, starts and writes there.
func TestManagedPostgres(t *testing.T) {
	t.Parallel()
	s := start(t, options{managed: true})
	s.goOn(t, "nobody's rights")
	conn := hubtest.Pool(t, s.store.SuperuserURL)
	for what, sql := range map[string]string{
		"may more than log in": `rolsuper OR rolcreatedb OR rolcreaterole OR rolreplication OR rolbypassrls`,
		"is a member of a role of PostgreSQL's own": `EXISTS (SELECT FROM pg_roles theirs
			WHERE theirs.rolname ~ '^pg_' AND theirs.rolname <> 'pg_database_owner' AND pg_has_role(hub.oid, theirs.oid, 'MEMBER'))`,
	} {
		var roles []string
		if err := conn.QueryRow(t.Context(), `SELECT coalesce(array_agg(rolname::text), '{}') FROM pg_roles hub
			WHERE rolname ~ '^hub(_|$)' AND rolname <> 'hub_super' AND (`+sql+`)`).Scan(&roles); err != nil || len(roles) > 0 {
			t.Errorf("%v %s (%v)", roles, what, err)
		}
	}
}
