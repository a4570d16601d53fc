package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"hub.internal/pkg/postgres"
)

// roleURL is how a role of the write store logs in: a service's, or that of the audit log's reader.
func (s *suite) roleURL(role string) string {
	if role == postgres.AuditReader {
		return s.store.AuditURL()
	}
	return s.store.URL(strings.ReplaceAll(strings.TrimPrefix(role, "hub_"), "_", "-"))
}

// storeRoles are the roles that processes log in as.
func storeRoles() (roles []string) {
	for role := range house.Connections() {
		if role != postgres.Owner {
			roles = append(roles, role)
		}
	}
	slices.Sort(roles)
	return roles
}

func (s *suite) sessionOf(t *testing.T, role string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.roleURL(role))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	if _, err := conn.Exec(
		t.Context(),
		`SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0; SET lock_timeout = 0; SET default_transaction_read_only = off`,
	); err != nil {
		t.Fatal(err)
	}
	return conn
}

func sqlState(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code
	}
	return ""
}

// takeAll tries each lock on the tables of a list, and keeps in test.taken which it was not refused for want of a right.
const takeAll = `DO $$
DECLARE
  one   text;
  mode  text;
  taken text := '';
BEGIN
  FOREACH one IN ARRAY ARRAY[%s] LOOP
    FOREACH mode IN ARRAY ARRAY['ACCESS SHARE', 'ROW SHARE', 'ROW EXCLUSIVE', 'SHARE UPDATE EXCLUSIVE', 'SHARE', 'SHARE ROW EXCLUSIVE',
    	'EXCLUSIVE', 'ACCESS EXCLUSIVE'] LOOP
      BEGIN
        EXECUTE format('LOCK TABLE %%s IN %%s MODE NOWAIT', one, mode);
        RAISE EXCEPTION USING ERRCODE = 'lock_not_available';
      EXCEPTION
        WHEN insufficient_privilege THEN NULL;
        WHEN lock_not_available THEN taken := taken || format('%%s in %%s;', one, mode);
      END;
    END LOOP;
  END LOOP;
  PERFORM set_config('test.taken', taken, false);
END
$$`

// takesNothing asks, as a role, for each lock on each table of the others, each of their sequences and each of their functions.
func (s *suite) takesNothing(t *testing.T, role string) {
	t.Helper()
	own, conn := strings.TrimPrefix(role, "hub_"), s.sessionOf(t, role)
	super, err := pgx.Connect(t.Context(), s.store.SuperuserURL)
	if err != nil {
		t.Fatal(err)
	}
	defer super.Close(t.Context())
	list := func(sql string) []string {
		t.Helper()
		rows, err := super.Query(t.Context(), sql, own)
		if err != nil {
			t.Fatal(err)
		}
		found, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil || len(found) == 0 {
			t.Fatalf("%v, %v", found, err)
		}
		return found
	}
	const others = ` n.nspname NOT IN ('pg_catalog', 'information_schema', $1) AND n.nspname !~ '^pg_' `
	tables := list(
		`SELECT c.oid::regclass::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'p', 'v') AND` +
			others,
	)
	if _, err := conn.Exec(t.Context(), fmt.Sprintf(takeAll, "'"+strings.Join(tables, "', '")+"'")); err != nil {
		t.Fatal(err)
	}
	var taken string
	if err := conn.QueryRow(t.Context(), `SELECT current_setting('test.taken')`).Scan(&taken); err != nil {
		t.Fatal(err)
	}
	for _, lock := range strings.FieldsFunc(taken, func(r rune) bool { return r == ';' }) {
		if role != postgres.AuditReader || !strings.HasPrefix(lock, "audit.") || !strings.HasSuffix(lock, " in ACCESS SHARE") {
			t.Errorf("%s locks %s", role, lock)
		}
	}
	for _, sequence := range list(`SELECT c.oid::regclass::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace ` +
		`WHERE c.relkind = 'S' AND` + others) {
		if _, err := conn.Exec(t.Context(), "SELECT nextval($1)", sequence); sqlState(err) != "42501" {
			t.Errorf("%s uses up %s: %v", role, sequence, err)
		}
	}
	// Those of the reader answer at once, or after their lock_timeout (TestFunctionsOfTheOwner).
	for _, f := range list(`SELECT p.oid::regprocedure::text FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE` + others) {
		var may bool
		if err := super.QueryRow(
			t.Context(),
			`SELECT has_function_privilege($1, $2::regprocedure, 'EXECUTE')`,
			role,
			f,
		).Scan(
			&may,
		); err != nil ||
			may && (role != postgres.AuditReader || !slices.Contains([]string{"audit.roll_up()", "audit.expire()", "audit.extend()"}, f)) {
			t.Errorf("%s calls %s: %v", role, f, err)
		}
	}
}

// crowds has a role do its worst with what it may, and keep all of it until the returned function is called.
func (s *suite) crowds(t *testing.T, role string) (stop func()) {
	t.Helper()
	var sessions []*pgx.Conn
	keep := func(statements ...string) {
		t.Helper()
		conn := s.sessionOf(t, role)
		sessions = append(sessions, conn)
		for _, sql := range statements {
			if _, err := conn.Exec(t.Context(), sql); err != nil {
				t.Errorf("%s: %s: %v", role, sql, err)
			}
		}
	}
	if role == postgres.AuditReader {
		keep(`BEGIN`, `SELECT count(*) FROM audit.calls`, `SELECT count(*) FROM audit.rollups`)
		keep(`BEGIN`, `SELECT audit.extend()`)
		keep(`BEGIN`, `SELECT audit.roll_up()`)
	} else {
		keep(`BEGIN`, `INSERT INTO audit.calls (at, request_id, tool, outcome) VALUES (clock_timestamp(), 'crowding', 'x', 'ok')`)
		keep(
			`BEGIN ISOLATION LEVEL REPEATABLE READ`,
			`SELECT 1`,
			`INSERT INTO audit.calls (at, request_id, tool, outcome) VALUES (clock_timestamp(), 'crowding', 'x', 'ok')`,
		)
	}
	// Whatever name somebody might lock by, one by one: another role of this test may have it.
	names := []string{"admin.menu_groups", "auth.users administrators", "audit.ensure_partitions", "hub bootstrap"}
	var locks []string
	for _, service := range house {
		names = append(names, service.Schema(), service.Schema()+" jobs")
	}
	for _, name := range names {
		locks = append(
			locks,
			fmt.Sprintf(`SELECT pg_try_advisory_lock(hashtext('%[1]s')), pg_try_advisory_lock(hashtextextended('%[1]s', 0))`, name),
		)
	}
	keep(
		append(
			locks,
			`SELECT pg_try_advisory_lock(4097083626)`,
			`SELECT count(pg_try_advisory_lock(n)) FROM generate_series(-1000, 1000) n`,
			`LISTEN anything`,
			`BEGIN`,
			`NOTIFY anything`,
		)...)
	// As many as there may be are a matter of the role's CONNECTION LIMIT.
	for range 5 {
		keep(`BEGIN`, `SELECT 1`)
	}
	return func() {
		for _, conn := range sessions {
			_ = conn.Close(context.Background())
		}
	}
}

// goOn does something of each service that writes, as agents, people, operators and a release do.
func (s *suite) goOn(t *testing.T, among string) {
	t.Helper()
	n := s.calls.Add(1)
	for tool, input := range map[string]any{
		"create_menu_group":   map[string]any{"slug": fmt.Sprint("crowd-", n), "name": "Crowd"},
		"list_categories":     map[string]any{},
		"list_pg_credentials": map[string]any{},
	} {
		if r := s.call(tool, input, "Idempotency-Key", fmt.Sprint("crowd ", tool, n)); !r.OK {
			t.Errorf("while %s crowd: %s: %s", among, tool, r.raw)
		}
	}
	s.queued(t, s.draft(t, draftOptions{name: fmt.Sprint("Crowd ", n), targets: 1}))
	s.issue("--scopes", "query")
	s.person(fmt.Sprint("Crowd ", n), "admin")
	for _, name := range append(slices.Clone(services), "gateway") {
		s.run(name, s.env[name], "migrate")
	}
}

var poolOfStore = regexp.MustCompile(`(?m)^hub_pool_connections_max\{[^}]*pool="write store"[^}]*\} (\d+)$`)

// pool is how many connections to the write store a process says it may have.
func (s *suite) pool(t *testing.T, name string) int {
	t.Helper()
	resp, err := http.Get("http://" + s.ops[name] + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	m := poolOfStore.FindSubmatch(b)
	if err != nil || m == nil {
		t.Fatalf("%s shows no pool: %v", name, err)
	}
	n, err := strconv.Atoi(string(m[1]))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestNoRoleHoldsOthersUp: a service that is not its own any more takes nothing of the others', and while it holds what every role may
// hold, they write, people are invited, and a release migrates. With HUB_TEST_ALL each role does so by itself, too.
func TestNoRoleHoldsOthersUp(t *testing.T) {
	t.Parallel()
	s := start(t, options{raced: true})
	for _, service := range house {
		if got := s.pool(t, service.Name); got != service.Pool {
			t.Errorf("%s may have %d connections, and its role has room for %d", service.Name, got, service.Pool)
		}
	}
	for _, role := range storeRoles() {
		s.takesNothing(t, role)
	}
	if os.Getenv("HUB_TEST_ALL") != "" {
		for _, role := range storeRoles() {
			stop := s.crowds(t, role)
			s.goOn(t, role)
			stop()
		}
	}
	for _, role := range storeRoles() {
		defer s.crowds(t, role)()
	}
	s.goOn(t, "all")
}
