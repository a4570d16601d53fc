package postgres_test

import (
	"errors"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/inventory"
	"hub.internal/pkg/localserver"
	"hub.internal/pkg/postgres"
)

// made is what a bootstrap has made of a server, but for the passwords.
func made(t *testing.T, server *localserver.Postgres) (lines []string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), server.SuperuserURL("hub"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	rows, err := conn.Query(t.Context(), `
		SELECT format('%s: login %s, connections %s, settings %s, member of %s', rolname, rolcanlogin, rolconnlimit, (SELECT array_agg(c
			ORDER BY c) FROM unnest(setconfig) c),
			(SELECT array_agg(roleid::regrole::text ORDER BY 1) FROM pg_auth_members WHERE member = r.oid)) AS line
		FROM pg_roles r LEFT JOIN pg_db_role_setting ON setrole = r.oid WHERE rolname ~ '^hub'
		UNION ALL SELECT format('database %s: %s', datname, datacl) FROM pg_database WHERE datname <> 'template0'
		UNION ALL SELECT format('function %s: %s', oid::regprocedure, proacl) FROM pg_proc WHERE proacl IS NOT NULL
		UNION ALL SELECT format('schema %s: %s', nspname, nspacl) FROM pg_namespace WHERE nspname !~ '^pg_(toast_)?temp'
		ORDER BY line`)
	if err != nil {
		t.Fatal(err)
	}
	if lines, err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil {
		t.Fatal(err)
	}
	return lines
}

// TestScriptIsBootstrap: the script of Compose and Kubernetes makes what Bootstrap makes.
func TestScriptIsBootstrap(t *testing.T) {
	t.Parallel()
	psql, err := exec.LookPath("psql")
	if err != nil {
		t.Skip("there is no psql")
	}
	list, err := inventory.Load(hubtest.Root(t))
	if err != nil {
		t.Fatal(err)
	}
	logins := map[string]postgres.Login{}
	for role, connections := range list.Connections() {
		logins[role] = postgres.Login{Password: "secret", Connections: 8 * connections}
	}
	byProgram, byScript := hubtest.NewPostgres(t), hubtest.NewPostgres(t)
	if err := postgres.Bootstrap(t.Context(), byProgram.SuperuserURL("postgres"), "hub", logins); err != nil {
		t.Fatal(err)
	}
	address, err := url.Parse(byScript.SuperuserURL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sh", filepath.Join(hubtest.Root(t), "deploy", "compose", "postgres.sh"))
	cmd.Env = append(
		os.Environ(),
		"PATH="+filepath.Dir(psql)+":"+os.Getenv("PATH"),
		"PGHOST="+address.Query().Get("host"),
		"PGPORT="+address.Query().Get("port"),
		"POSTGRES_USER="+address.User.Username(),
		"POSTGRES_DB=postgres",
		"HUB_DB_PASSWORD=secret",
		"HUB_BOOTSTRAP="+filepath.Join(hubtest.Root(t), "pkg", "postgres", "bootstrap.sql"),
	)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if program, script := made(t, byProgram), made(t, byScript); strings.Join(program, "\n") != strings.Join(script, "\n") {
		t.Errorf("Bootstrap makes\n%s\nand the script\n%s", strings.Join(program, "\n"), strings.Join(script, "\n"))
	}
	if conn, err := pgx.Connect(t.Context(), byScript.URL("hub_query", "secret", "hub")); err != nil {
		t.Error(err)
	} else {
		_ = conn.Close(t.Context())
	}
}

// TestServicesCannotFillOrCrowdTheServer: what PostgreSQL gives to everybody, and a service's role can do without.
func TestServicesCannotFillOrCrowdTheServer(t *testing.T) {
	t.Parallel()
	server := hubtest.NewPostgres(t)
	if err := postgres.Bootstrap(
		t.Context(),
		server.SuperuserURL("postgres"),
		"hub",
		map[string]postgres.Login{
			postgres.Owner:       {Password: "o"},
			"hub_query":          {Password: "q", Connections: 3},
			postgres.AuditReader: {Password: "r", Connections: 2},
		},
	); err != nil {
		t.Fatal(err)
	}
	for _, database := range []string{"postgres", "template1"} {
		if conn, err := pgx.Connect(t.Context(), server.URL("hub_query", "q", database)); state(err) != "42501" {
			t.Errorf("a service's role enters %s: %v", database, err)
			if err == nil {
				_ = conn.Close(t.Context())
			}
		}
	}
	for role, login := range map[string]postgres.Login{"hub_query": {Password: "q", Connections: 3},
		postgres.AuditReader: {Password: "r", Connections: 2}} {
		var first *pgx.Conn
		for n := range login.Connections + 1 {
			conn, err := pgx.Connect(t.Context(), server.URL(role, login.Password, "hub"))
			if n == login.Connections {
				if state(err) != "53300" {
					t.Errorf("%s has %d connections: %v", role, n+1, err)
				}
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close(t.Context())
			first = conn
			if _, err := conn.Exec(t.Context(), "SET default_transaction_read_only = off"); err != nil {
				t.Fatal(err)
			}
		}
		for _, sql := range []string{`SELECT lo_create(0)`, `SELECT lo_creat(-1)`, `SELECT lo_from_bytea(0, 'x')`,
			`SELECT lo_import('/etc/passwd')`, `SELECT lo_export(1, '/tmp/x')`, `SELECT lo_put(1, 0, 'x')`,
			`SELECT lo_open(1, 131072)`, `SELECT lowrite(1, 'x')`, `SELECT loread(1, 1)`, `SELECT lo_unlink(1)`, `SELECT lo_truncate(1, 1)`,
			`SELECT lo_truncate64(1, 1)`, `SELECT pg_logical_emit_message(false, 'x', 'x')`,
			`CREATE TEMP TABLE x (n int)`, `CREATE TABLE public.x (n int)`, `CREATE SCHEMA x`, `SET temp_file_limit = -1`,
			`ALTER ROLE CURRENT_USER SET temp_file_limit = -1`, `ALTER ROLE CURRENT_USER CONNECTION LIMIT -1`,
			`COPY (SELECT 1) TO PROGRAM 'true'`, `COPY (SELECT 1) TO '/tmp/x'`, `SELECT pg_create_physical_replication_slot('x', true)`,
			`SELECT pg_create_logical_replication_slot('x', 'test_decoding')`,
			`CREATE DATABASE x`, `CREATE TABLESPACE x LOCATION '/tmp/x'`, `CREATE ROLE x`, `ALTER SYSTEM SET work_mem = '1GB'`, `CHECKPOINT`,
			`LOCK pg_catalog.pg_class`,
			`SELECT pg_switch_wal()`, `SELECT pg_reload_conf()`} {
			_, err := first.Exec(t.Context(), "BEGIN READ WRITE")
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(sql, "CREATE DATABASE") || strings.HasPrefix(sql, "CREATE TABLESPACE") ||
				strings.HasPrefix(sql, "ALTER SYSTEM") {
				_, _ = first.Exec(t.Context(), "ROLLBACK")
			}
			if _, err := first.Exec(t.Context(), sql); state(err) != "42501" {
				t.Errorf("%s may: %s (%v)", role, sql, err)
			}
			_, _ = first.Exec(t.Context(), "ROLLBACK")
		}
	}
}

func state(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code
	}
	return ""
}
