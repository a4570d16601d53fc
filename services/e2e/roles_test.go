package e2e_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"hub.internal/pkg/postgres"
)

// migrated is a write store with what every service's migrations make, and nothing that runs.
func migrated(t *testing.T) *pgx.Conn {
	t.Helper()
	s := &suite{t: t, commands: asReleased.build(t)}
	conn, err := pgx.Connect(t.Context(), s.migratedStore().SuperuserURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

var bounded = regexp.MustCompile(`^lock_timeout=([1-9]|10)s$`)

// TestFunctionsOfTheOwner looks at each function of the whole write store: one that runs as its owner
// has a search_path that nobody enters, a trigger's too, and PUBLIC may call none.
func TestFunctionsOfTheOwner(t *testing.T) {
	t.Parallel()
	conn := migrated(t)
	rows, err := conn.Query(
		t.Context(),
		`SELECT p.oid::regprocedure::text, p.prosecdef, p.prorettype = 'trigger'::regtype, coalesce(p.proconfig, '{}'),
		EXISTS (SELECT FROM aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) WHERE grantee = 0)
		FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname NOT IN ('pg_catalog', 'information_schema') ORDER BY 1`,
	)
	if err != nil {
		t.Fatal(err)
	}
	type function struct {
		Name            string
		Definer, Fires  bool
		Settings        []string
		ExecuteToPublic bool
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[function])
	if err != nil {
		t.Fatal(err)
	}
	definers := 0
	for _, f := range all {
		if f.Definer {
			definers++
		}
		// One that others may call does not wait for a lock for as long as they like.
		if (f.Definer || f.Fires) && !slices.Contains(f.Settings, "search_path=pg_catalog, pg_temp") ||
			f.Definer && !slices.ContainsFunc(f.Settings, func(s string) bool { return bounded.MatchString(s) }) {
			t.Errorf("%s runs with the settings %v", f.Name, f.Settings)
		}
		if f.ExecuteToPublic {
			t.Errorf("PUBLIC may call %s", f.Name)
		}
	}
	if definers == 0 {
		t.Errorf("no function runs as its owner; there are %v", all)
	}
}

// TestRolesHoldTheirOwn asks the server what each service's role may do in the whole write store: use its own
// schema, append to the audit log, and nothing else.
func TestRolesHoldTheirOwn(t *testing.T) {
	t.Parallel()
	conn := migrated(t)
	list := func(sql string, args ...any) []string {
		t.Helper()
		rows, err := conn.Query(t.Context(), sql, args...)
		if err != nil {
			t.Fatal(err)
		}
		found, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	roles := list(
		`SELECT rolname::text FROM pg_roles WHERE pg_has_role(rolname, 'hub_service', 'MEMBER') AND NOT rolsuper AND rolname <> 'hub_service'`,
	)
	for _, service := range append(slices.Clone(services), "gateway") {
		if !slices.Contains(roles, postgres.ServiceRole(service)) {
			t.Errorf("%s is none of the services' roles %v", postgres.ServiceRole(service), roles)
		}
	}
	for _, role := range roles {
		schema := strings.TrimPrefix(role, "hub_")
		for what, sql := range map[string]string{
			"is more than a log-in": `SELECT rolname::text FROM pg_roles WHERE rolname = $1 ` +
				`AND (rolsuper OR rolcreatedb OR rolcreaterole OR rolreplication OR rolbypassrls)`,
			"is a member of": `SELECT rolname::text FROM pg_roles WHERE pg_has_role($1, oid, 'MEMBER') AND rolname NOT IN ($1, ` +
				`'hub_service')`,
			"owns":               `SELECT c.oid::regclass::text FROM pg_class c JOIN pg_roles r ON r.oid = c.relowner WHERE r.rolname = $1`,
			"may make things in": `SELECT nspname::text FROM pg_namespace WHERE has_schema_privilege($1, oid, 'CREATE')`,
			"may make things of": `SELECT datname::text FROM pg_database WHERE datname = current_database() AND (has_database_privilege($1, ` +
				`oid, 'TEMPORARY') OR has_database_privilege($1, oid, 'CREATE'))`,
			"may truncate, refer to or fire at": `SELECT c.oid::regclass::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
				WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f')
				AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname NOT LIKE 'pg\_%' AND has_table_privilege($1, c.oid,
					'TRUNCATE, REFERENCES, TRIGGER')`,
		} {
			if found := list(sql, role); len(found) > 0 {
				t.Errorf("%s %s %v", role, what, found)
			}
		}
		abroad := list(
			`SELECT c.oid::regclass || '.' || a.attname || ' ' || p FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
				JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped,
			unnest(ARRAY['SELECT', 'INSERT', 'UPDATE']) p WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname NOT IN ('pg_catalog',
				'information_schema', $2) AND n.nspname NOT LIKE 'pg\_%'
			AND has_column_privilege($1, c.oid, a.attnum, p) ORDER BY 1`,
			role,
			schema,
		)
		abroad = append(
			abroad,
			list(
				`SELECT c.oid::regclass || ' DELETE' FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'p', 'v')
			AND n.nspname NOT IN ('pg_catalog', 'information_schema', $2) AND n.nspname NOT LIKE 'pg\_%' AND has_table_privilege($1, c.oid,
				'DELETE')`,
				role,
				schema,
			)...)
		var appends []string
		for _, column := range []string{"at", "count", "credential_id", "detail", "external_user_id", "id", "input_hash", "outcome",
			"request_id", "service", "took_ms", "tool", "trace_id"} {
			appends = append(appends, fmt.Sprintf("audit.calls.%s INSERT", column))
		}
		slices.Sort(abroad)
		if !slices.Equal(abroad, appends) {
			t.Errorf("outside of %s, %s may: %v", schema, role, abroad)
		}
	}
}

// TestTheAuditLogsReader asks the server what the reader's role may do in the whole write store: read the audit schema, ask for
// what is due there, and nothing else.
func TestTheAuditLogsReader(t *testing.T) {
	t.Parallel()
	conn := migrated(t)
	for what, sql := range map[string]string{
		"is more than a log-in, or a member": `SELECT rolname::text FROM pg_roles WHERE rolname = $1
			AND (rolsuper OR rolcreatedb OR rolcreaterole OR rolreplication OR rolbypassrls)
			UNION ALL SELECT rolname::text FROM pg_roles WHERE pg_has_role($1, oid, 'MEMBER') AND rolname <> $1`,
		"may make things": `SELECT nspname::text FROM pg_namespace WHERE has_schema_privilege($1, oid, 'CREATE') UNION ALL
			SELECT datname::text FROM pg_database
			WHERE datname = current_database() AND (has_database_privilege($1, oid, 'TEMPORARY') OR has_database_privilege($1, oid, 'CREATE'))`,
		"may change, or read elsewhere": `SELECT c.oid::regclass || '.' || a.attname || ' ' || p FROM pg_class c JOIN pg_namespace n
			ON n.oid = c.relnamespace
			JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped, unnest(ARRAY['SELECT', 'INSERT', 'UPDATE',
				'REFERENCES']) p
			WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S') AND n.nspname NOT IN ('pg_catalog', 'information_schema')
				AND n.nspname NOT LIKE 'pg\_%'
			AND has_column_privilege($1, c.oid, a.attnum, p) AND NOT (n.nspname = 'audit' AND p = 'SELECT')`,
		"may delete": `SELECT c.oid::regclass::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r',
			'p', 'v', 'm', 'f')
			AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname NOT LIKE 'pg\_%' AND has_table_privilege($1, c.oid,
				'DELETE, TRUNCATE, TRIGGER')`,
		"may call": `SELECT p.oid::regprocedure::text FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
			WHERE n.nspname NOT IN ('pg_catalog', 'information_schema')
			AND has_function_privilege($1, p.oid, 'EXECUTE') AND p.oid NOT IN ('audit.roll_up()'::regprocedure, 'audit.expire()'::regprocedure,
				'audit.extend()'::regprocedure)`,
	} {
		rows, err := conn.Query(t.Context(), sql, postgres.AuditReader)
		if err != nil {
			t.Fatal(err)
		}
		found, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil || len(found) > 0 {
			t.Errorf("the reader %s: %v, %v", what, found, err)
		}
	}
}
