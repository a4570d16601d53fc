package audit_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"hub.internal/pkg/postgres"
)

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

// evil is what a function of the attacker does once it runs as somebody else.
const evil = `BEGIN
  IF current_user <> session_user THEN
    ALTER TABLE audit.calls DISABLE TRIGGER ALL;
    UPDATE audit.calls SET outcome = 'forged';
    GRANT ALL ON audit.calls TO PUBLIC;
  END IF;
  RETURN %s;
END`

// TestNobodyEntersTheOwnersFunctions takes each service's role and puts objects of its own in the way of the
// names that the owner's functions use: first with what the role may do, and then with a temporary schema that
// somebody granted by mistake.
func TestNobodyEntersTheOwnersFunctions(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	if err := newLog(t, s.service, quiet).Write(t.Context(), entry("req_1")); err != nil {
		t.Fatal(err)
	}
	returning := func(kind, value string) string {
		return fmt.Sprintf(`CREATE FUNCTION pg_temp.evil(%s) RETURNS boolean LANGUAGE plpgsql AS $$`+evil+`$$`, kind, value)
	}
	shadows := map[string][]string{
		"a domain": {returning("pg_catalog.date", "true"), `CREATE DOMAIN pg_temp.date AS pg_catalog.date CHECK (pg_temp.evil(VALUE))`},
		"a domain of text": {
			returning("pg_catalog.text", "true"),
			`CREATE DOMAIN pg_temp.text AS pg_catalog.text CHECK (pg_temp.evil(VALUE))`,
			`CREATE DOMAIN pg_temp.int4 AS pg_catalog.int4`,
			`CREATE DOMAIN pg_temp.interval AS pg_catalog.interval`,
		},
		"functions": {
			`CREATE FUNCTION pg_temp.now() RETURNS timestamptz LANGUAGE plpgsql AS $$` + fmt.Sprintf(evil, "clock_timestamp()") + `$$`,
			`CREATE FUNCTION pg_temp.hashtext(text) RETURNS int LANGUAGE plpgsql AS $$` + fmt.Sprintf(evil, "1") + `$$`,
			`CREATE FUNCTION pg_temp.to_regclass(text) RETURNS regclass LANGUAGE plpgsql AS $$` + fmt.Sprintf(evil, "NULL") + `$$`,
		},
		"tables": {`CREATE TEMP TABLE calls (LIKE pg_catalog.pg_class)`, `CREATE TEMP TABLE pg_class (LIKE pg_catalog.pg_class)`},
		"an operator": {`CREATE FUNCTION pg_temp.evil(text, text) RETURNS text LANGUAGE plpgsql AS $$` + fmt.Sprintf(evil, "$1") + `$$`,
			`CREATE OPERATOR pg_temp.|| (LEFTARG = text, RIGHTARG = text, FUNCTION = pg_temp.evil)`},
		"a cast": {
			`CREATE TYPE pg_temp.date AS (a int)`,
			`CREATE FUNCTION pg_temp.evil(pg_temp.date) RETURNS text LANGUAGE plpgsql AS $$` + fmt.Sprintf(evil, "''") + `$$`,
			`CREATE CAST (pg_temp.date AS text) WITH FUNCTION pg_temp.evil(pg_temp.date) AS ASSIGNMENT`,
		},
	}
	calls := []string{
		`SELECT audit.ensure_partitions(24)`,
		`INSERT INTO audit.calls (at, request_id, tool, outcome) VALUES (clock_timestamp(), 'attack', 'x', 'ok')`,
	}
	whole := func(who string) {
		t.Helper()
		var outcomes, triggers, grants string
		err := s.super.QueryRow(
			t.Context(),
			`SELECT (SELECT string_agg(DISTINCT outcome, ' ') FROM audit.calls), (SELECT string_agg(DISTINCT tgenabled::text, ' ')
				FROM pg_trigger WHERE tgrelid = 'audit.calls'::regclass),
			(SELECT count(*) FROM aclexplode((SELECT relacl FROM pg_class WHERE oid = 'audit.calls'::regclass)) WHERE grantee = 0)::text`,
		).Scan(
			&outcomes,
			&triggers,
			&grants,
		)
		if err != nil || outcomes != "ok" || triggers != "O" || grants != "0" {
			t.Fatalf("%s: the log's outcomes are %s, its triggers %s, PUBLIC has %s grants: %v", who, outcomes, triggers, grants, err)
		}
	}
	attack := func(temporary bool) {
		for _, service := range services {
			for name, shadow := range shadows {
				// A session of its own: functions remember how they were understood first.
				conn := connect(t, s.URL(service))
				for _, sql := range shadow {
					_, err := conn.Exec(t.Context(), sql)
					if (err == nil) != temporary {
						t.Errorf("%s, %s: %s: %v", service, name, sql, err)
					}
				}
				for _, path := range []string{"pg_temp, pg_catalog", "pg_temp, audit, public", `"$user", public`} {
					if _, err := conn.Exec(t.Context(), "SET search_path = "+path); err != nil {
						t.Fatal(err)
					}
					for _, call := range calls {
						_, _ = conn.Exec(t.Context(), call)
					}
				}
				whole(service + " with " + name)
				_ = conn.Close(t.Context())
			}
		}
	}
	attack(false)
	if _, err := s.super.Exec(
		t.Context(),
		`DO $$ BEGIN EXECUTE format('GRANT TEMPORARY ON DATABASE %I TO hub_service', current_database()); END $$`,
	); err != nil {
		t.Fatal(err)
	}
	attack(true)
}

// TestRolesOfServices tries, as each service's role, all that would change the log, read it, or put into it what
// did not happen now and by this service.
func TestRolesOfServices(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	if err := newLog(t, s.service, quiet).Write(t.Context(), entry("req_1")); err != nil {
		t.Fatal(err)
	}
	var partition string
	if err := s.super.QueryRow(t.Context(), "SELECT tableoid::regclass::text FROM audit.calls").Scan(&partition); err != nil {
		t.Fatal(err)
	}
	const row = `INSERT INTO audit.calls (at, request_id, tool, outcome) VALUES `
	denied := []string{
		`SELECT * FROM audit.calls`,
		`SELECT count(*) FROM audit.calls`,
		`SELECT * FROM %s`,
		`COPY audit.calls TO STDOUT`,
		`COPY %s TO STDOUT`,
		`TABLE %s`,
		`UPDATE audit.calls SET outcome = 'x'`,
		`DELETE FROM audit.calls`,
		`UPDATE %s SET outcome = 'x'`,
		`DELETE FROM %s`,
		`TRUNCATE audit.calls`,
		`TRUNCATE %s`,
		`DROP TABLE audit.calls`,
		`DROP TABLE %s`,
		`DROP SCHEMA audit CASCADE`,
		`DROP OWNED BY hub`,
		`REASSIGN OWNED BY hub TO CURRENT_USER`,
		`ALTER TABLE audit.calls DETACH PARTITION %s`,
		`ALTER TABLE audit.calls DISABLE TRIGGER ALL`,
		`ALTER TABLE %s DISABLE TRIGGER ALL`,
		`ALTER TABLE audit.calls DISABLE TRIGGER USER`,
		`ALTER TABLE audit.calls ADD COLUMN x int`,
		`ALTER TABLE audit.calls OWNER TO CURRENT_USER`,
		`ALTER TABLE audit.calls ALTER COLUMN writer SET DEFAULT 'x'`,
		`ALTER TABLE audit.calls RENAME TO x`,
		`ALTER TABLE audit.calls ENABLE ROW LEVEL SECURITY`,
		`DROP TRIGGER calls_append_only ON audit.calls`,
		`CREATE TRIGGER x BEFORE INSERT ON audit.calls FOR EACH ROW EXECUTE FUNCTION audit.refuse_change()`,
		`CREATE RULE x AS ON INSERT TO audit.calls DO INSTEAD NOTHING`,
		`CREATE POLICY x ON audit.calls USING (true)`,
		`CREATE INDEX ON %s (id)`,
		`SET session_replication_role = replica`,
		`SET SESSION AUTHORIZATION hub`,
		`SET ROLE hub`,
		`ALTER ROLE hub_auth SUPERUSER`,
		`ALTER ROLE hub PASSWORD 'x'`,
		`GRANT hub TO CURRENT_USER`,
		`ALTER FUNCTION audit.refuse_change() OWNER TO CURRENT_USER`,
		`DROP FUNCTION audit.refuse_change() CASCADE`,
		`CREATE OR REPLACE FUNCTION audit.refuse_change() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN OLD; END'`,
		`CREATE TABLE audit.x (a int)`,
		`CREATE TABLE public.x (a int)`,
		`CREATE SCHEMA x`,
		`CREATE VIEW public.x AS SELECT 1`,
		`CREATE TEMP VIEW x AS SELECT * FROM audit.calls`,
		`CREATE TEMP TABLE x (a int)`,
		`SELECT 1 AS a INTO TEMP x`,
		`CREATE TEMP TABLE x PARTITION OF audit.calls DEFAULT`,
		`CREATE PUBLICATION x FOR TABLE audit.calls`,
		`CREATE EXTENSION file_fdw`,
		`CREATE EVENT TRIGGER x ON sql_drop EXECUTE FUNCTION audit.refuse_change()`,
		`LOCK audit.calls IN ACCESS EXCLUSIVE MODE`,
		`SELECT audit.refuse_change()`,
		`SELECT * FROM audit.migrations`,
		`UPDATE audit.migrations SET is_applied = false`,
		`INSERT INTO %s (at, request_id, tool, outcome) VALUES (now(), 'x', 'x', 'ok')`,
		`COPY %s (at, request_id, tool, outcome) FROM STDIN`,
		`INSERT INTO audit.calls (at, request_id, tool, outcome, writer) VALUES (now(), 'x', 'x', 'ok', 'hub_gateway')`,
		`INSERT INTO audit.calls (id, at, request_id, tool, outcome, writer) VALUES (gen_random_uuid(), now(), 'x', 'x', 'ok', 'hub_gateway')`,
		row + `(now(), 'x', 'x', 'ok') RETURNING id`,
		row + `(now(), 'x', 'x', 'ok') ON CONFLICT (id, at) DO UPDATE SET outcome = 'x'`,
		`MERGE INTO audit.calls c USING (SELECT 1) x ON c.request_id = 'req_1' WHEN MATCHED THEN DELETE`,
		row + `(now() - interval '1 hour', 'x', 'x', 'ok')`,
		row + `(now() + interval '1 hour', 'x', 'x', 'ok')`,
		row + `(now() - interval '40 days', 'x', 'x', 'ok')`,
		row + `(now() + interval '40 days', 'x', 'x', 'ok')`,
		row + `(clock_timestamp() - interval '301 seconds', 'x', 'x', 'ok')`,
		row + `(clock_timestamp() + interval '30 seconds', 'x', 'x', 'ok')`,
		row + `(NULL, 'x', 'x', 'ok')`,
		row + `('infinity', 'x', 'x', 'ok')`,
		row + `('-infinity', 'x', 'x', 'ok')`,
	}
	for _, service := range services {
		conn := connect(t, s.URL(service))
		for _, sql := range denied {
			if strings.Contains(sql, "%s") {
				sql = fmt.Sprintf(sql, partition)
			}
			if _, err := conn.Exec(t.Context(), sql); code(err) == "" {
				t.Errorf("%s may: %s (%v)", service, sql, err)
			}
		}
		if _, err := conn.CopyFrom(t.Context(), pgx.Identifier{"audit", "calls"}, []string{"at", "request_id", "tool", "outcome"},
			pgx.CopyFromRows([][]any{{time.Now().Add(-time.Hour), "x", "x", "ok"}})); code(err) == "" {
			t.Errorf("%s may COPY an old row: %v", service, err)
		}
		// What it may: a row of a moment ago, or by a clock that is a little ahead. It is dated no later than it is
		// stored, and says who wrote it, whatever name is in it and whoever the role says that it is.
		if _, err := conn.Exec(
			t.Context(),
			`SET ROLE hub_service; `+row+`(clock_timestamp() - interval '4 minutes', 'mine', 'x', 'ok'), (clock_timestamp() `+
				`+ interval '4 seconds', 'mine', 'x', 'ok')`,
		); err != nil {
			t.Errorf("%s: %v", service, err)
		}
	}
	var rows, future, wrong int
	if err := s.super.QueryRow(
		t.Context(),
		`SELECT count(*), count(*) FILTER (WHERE at > clock_timestamp()), count(*) FILTER (WHERE request_id NOT IN ('mine', 'req_1')) `+
			`FROM audit.calls`,
	).Scan(
		&rows,
		&future,
		&wrong,
	); err != nil {
		t.Fatal(err)
	}
	if rows != 1+2*len(services) || future != 0 || wrong != 0 {
		t.Errorf("%d rows, %d in the future, %d that nobody may write", rows, future, wrong)
	}
	for _, service := range services {
		var n int
		if err := s.super.QueryRow(
			t.Context(),
			`SELECT count(*) FROM audit.calls WHERE writer = $1 AND request_id = 'mine'`,
			postgres.ServiceRole(service),
		).Scan(
			&n,
		); err != nil ||
			n != 2 {
			t.Errorf("%d rows say that %s wrote them, %v", n, service, err)
		}
	}
}

// TestNoServiceWritesRowsThatNobodyCanRead: a page of the log holds its rows in memory, and they are there for good.
func TestNoServiceWritesRowsThatNobodyCanRead(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	conn := connect(t, s.URL("query"))
	const row = `INSERT INTO audit.calls (at, request_id, tool, outcome, detail, input_hash, trace_id) VALUES (clock_timestamp(), %s, %s, ` +
		`%s, %s, %s, %s)`
	fine := []any{"'x'", "'x'", "'x'", `'{"sql":1}'`, "'x'", "'x'"}
	for at, huge := range []string{"repeat('x', 301)", "repeat('x', 301)", "repeat('x', 101)",
		`jsonb_build_object('sql', repeat('x', 1048576))`, `repeat('x', 65)::bytea`, "repeat('x', 301)"} {
		values := append([]any{}, fine...)
		values[at] = huge
		if _, err := conn.Exec(t.Context(), fmt.Sprintf(row, values...)); code(err) != "23514" {
			t.Errorf("column %d may be %s: %v", at, huge, err)
		}
	}
	if _, err := conn.Exec(t.Context(), fmt.Sprintf(row, fine...)); err != nil {
		t.Error(err)
	}
	// What the package writes is within it, whoever has made the names, in the months to come too.
	e := entry(strings.Repeat("가", 500))
	e.Tool, e.Caller.CredentialID, e.Detail = strings.Repeat(
		"\x00",
		500,
	), strings.Repeat(
		"\xff",
		500,
	), map[string]string{
		"sql": strings.Repeat("x", 1_000_000),
	}
	if err := newLog(t, s.service, quiet).Write(t.Context(), e); err != nil {
		t.Error(err)
	}
	var without int
	if err := s.super.QueryRow(t.Context(), `SELECT count(*) FROM pg_inherits i WHERE inhparent = 'audit.calls'::regclass
		AND NOT EXISTS (SELECT FROM pg_constraint c WHERE c.conrelid = i.inhrelid
			AND c.conname = 'calls_bounded')`).Scan(&without); err != nil || without != 0 {
		t.Errorf("%d partitions have no bounds: %v", without, err)
	}
}
