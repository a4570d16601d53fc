package query_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/hubtest"
	"hub.internal/services/query"
	"hub.internal/services/query/mysql"
	"hub.internal/services/query/mysql/server"
	"hub.internal/services/query/mysql/statements"
	"hub.internal/services/query/sqlguard"
)

// What a session can remember. Key A leaves it behind, key B looks for it in the same
// session: leaves that are accepted, leaves and looks that the guard refuses.
var (
	leaves = []string{
		"SELECT CAST('abc' AS SIGNED), 1 / 0",                                  // warnings
		"EXPLAIN EXTENDED SELECT name FROM partner WHERE name = 'secret of A'", // a note with the statement
		"SELECT SQL_CALC_FOUND_ROWS seq FROM seq_1_to_77 LIMIT 2",              // found rows
		"SELECT COUNT(*) FROM seq_1_to_500 a JOIN seq_1_to_50 b",               // costs and counters
		"SELECT RAND(), RAND(), RAND(77)",                                      // the generator's seeds
		"SELECT NOW(6), UUID(), @a, @`a`",
		"SELECT LAST_INSERT_ID()",
		"SELECT GROUP_CONCAT(seq) FROM seq_1_to_9999", // cut, with a warning
		"SHOW TABLES FROM information_schema",
		"WITH RECURSIVE r AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM r WHERE i < 2000) SELECT COUNT(*) FROM r",
	}
	refusedLeaves = []string{
		"SELECT @a := 'secret of A'", "SELECT 'secret of A' INTO @a", "SET @a = 1", "SELECT LAST_INSERT_ID(77)", "SELECT GET_LOCK('a', 0)",
		"CREATE TEMPORARY TABLE left_by_a (a INT)", "PREPARE left_by_a FROM 'SELECT 1'", "SET profiling = 1",
		"SET optimizer_trace = 'enabled=on'",
		"SET sql_select_limit = 1", "SET max_statement_time = 0", "SET NAMES latin1", "SET time_zone = '+09:00'",
		"SET SESSION TRANSACTION READ WRITE", "SET rand_seed1 = 1",
		"SET STATEMENT sql_mode = '' FOR SELECT 1", "SET ROLE x", "USE information_schema", "HANDLER partner OPEN", "SELECT NEXTVAL(s)",
		"BEGIN", "SAVEPOINT a", "DECLARE a INT",
		"SELECT /*+ SET_VAR(sql_mode='') */ 1", "SELECT name FROM partner LOCK IN SHARE MODE",
	}
	looks = []string{
		"SELECT @a, @`a`, @A", "SELECT LAST_INSERT_ID()", "SELECT RAND(77)", "SELECT DATABASE(), CURRENT_USER(), CHARSET('a'), COLLATION('a')",
		"SELECT @@sql_mode, @@time_zone, @@tx_isolation, @@tx_read_only, @@sql_select_limit, @@max_statement_time, @@autocommit, " +
			"@@in_transaction, @@group_concat_max_len, @@optimizer_switch",
		"SELECT @@character_set_client, @@character_set_connection, @@character_set_results, @@collation_connection, @@lc_time_names, " +
			"@@max_recursive_iterations",
		"SHOW VARIABLES", "SHOW SESSION VARIABLES LIKE '%seed%'",
		"SHOW LOCAL VARIABLES WHERE Variable_name LIKE '%count' OR Variable_name IN ('identity', 'timestamp', 'insert_id')",
		"SHOW STATUS LIKE 'Last_query_cost'", "SHOW GLOBAL STATUS LIKE 'Last_query_cost'",
		"SHOW STATUS WHERE Variable_name = 'Last_query_cost' -- the end",
		"SHOW TABLES LIKE 'left%'", "SELECT table_name FROM information_schema.tables WHERE table_type = 'TEMPORARY'",
	}
	refusedLooks = []string{
		"SHOW WARNINGS", "SHOW ERRORS", "SHOW COUNT(*) WARNINGS", "SHOW COUNT(*) ERRORS", "SELECT @@warning_count", "SELECT @@error_count",
		"SELECT @@session.warning_count",
		"SELECT FOUND_ROWS()", "SELECT ROW_COUNT()", "SELECT @@identity", "SELECT @@last_insert_id", "SELECT @@insert_id",
		"SELECT @@rand_seed1, @@rand_seed2", "SELECT @@last_gtid",
		"SELECT @@timestamp", "SELECT @@pseudo_thread_id", "SELECT CONNECTION_ID()", "SHOW SESSION STATUS", "SHOW LOCAL STATUS LIKE 'Handler%'",
		"SELECT * FROM information_schema.SESSION_STATUS", "SELECT * FROM information_schema.SESSION_VARIABLES",
		"SELECT * FROM information_schema.USER_VARIABLES",
		"SHOW PROFILES", "SHOW PROFILE FOR QUERY 1", "SELECT * FROM information_schema.PROFILING",
		"SELECT * FROM information_schema.OPTIMIZER_TRACE", "SELECT * FROM information_schema.PROCESSLIST",
		"SHOW PROCESSLIST", "SHOW EXPLAIN FOR 1", "EXECUTE left_by_a", "SELECT IS_USED_LOCK('a')", "SELECT IS_FREE_LOCK('a')",
		"SELECT LASTVAL(s)", "GET DIAGNOSTICS @n = NUMBER", "HANDLER partner READ FIRST",
		"SHOW OPEN TABLES", "SHOW TRANSACTION",
	}
)

// TestNoStateIsLeft has key A leave behind what it can, in the only session there is, and
// key B look for it: B is answered what a session is that nobody has used, or nothing.
func TestNoStateIsLeft(t *testing.T) {
	f := newSQLFixture(t, sqlOptions{pool: 1, timeout: 5 * time.Second, limits: query.SQLLimits{Concurrent: 1}, audit: quiet{}})
	f.exec(t, "INSERT INTO partner (name, created_at) VALUES ('secret of A', NOW())")
	if !hubtest.SourceIsMySQL() { // which has no sequences
		f.exec(t, "CREATE SEQUENCE s")
	}
	ask := func(key, text string) (string, error) {
		out, err := f.ExecuteReadSQL(as(t.Context(), key), query.ReadSQLIn{SQL: onSource(text), Limit: 2000})
		return string(out.JSON()), err
	}
	mustRefuse := func(key string, texts []string) {
		t.Helper()
		for _, text := range texts {
			if answer, err := ask(key, text); !strings.HasPrefix(ruleOf(err), "sql.") || ruleOf(err) == "sql.server" {
				t.Errorf("%s: %s, %v; want a refusal of the guard's", text, answer, err)
			}
		}
	}
	fresh := map[string]string{}
	for _, text := range looks {
		answer, err := ask("b", text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		fresh[text] = answer
	}
	connections := f.connections(t)
	mustRefuse("a", refusedLeaves)
	mustRefuse("b", refusedLooks)
	for _, leave := range leaves {
		if _, err := ask("a", leave); err != nil {
			t.Fatalf("%s: %v", leave, err)
		}
		for _, text := range looks {
			if answer, err := ask("b", text); err != nil || answer != fresh[text] {
				t.Errorf("after A's %s\nB's %s is answered %.500s, %v\nwant %.500s", leave, text, answer, err, fresh[text])
			}
		}
		// A look of B's is a statement, too: the refused ones come first, right behind A's.
		if _, err := ask("a", leave); err != nil {
			t.Fatalf("%s: %v", leave, err)
		}
		mustRefuse("b", refusedLooks)
	}
	// The session, the connection that kills, and the one that reads the catalog for warnings.
	if now := f.connections(t); len(now) > 3 || slices.ContainsFunc(connections, func(id string) bool { return !slices.Contains(now, id) }) {
		t.Errorf("the connections are %v, were %v: the test has looked at another session", now, connections)
	}
	// What A has read is no snapshot for B.
	if _, err := ask("a", "SELECT COUNT(*) FROM partner"); err != nil {
		t.Fatal(err)
	}
	f.exec(t, "INSERT INTO partner (name, created_at) VALUES ('later', NOW())")
	if answer, err := ask("b", "SELECT COUNT(*) AS n FROM partner"); err != nil || !strings.Contains(answer, "[[2]]") {
		t.Errorf("B sees %s, %v, want both partners", answer, err)
	}
}

// connections are the ids of the connections to the fixture's database, the owner's left out.
func (f *sqlFixture) connections(t testing.TB) (ids []string) {
	t.Helper()
	m, err := hubtest.SourceServer(t).Admin()
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	var database, owner string
	if err := f.admin.QueryRowContext(t.Context(), "SELECT DATABASE(), SUBSTRING_INDEX(USER(), '@', 1)").Scan(&database, &owner); err != nil {
		t.Fatal(err)
	}
	const others = "SELECT id FROM information_schema.PROCESSLIST WHERE db = ? AND user <> ?"
	rows, err := m.QueryContext(t.Context(), others, database, owner) //nolint:rowserrcheck // a list that is short fails the test all the same
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	return ids
}

// TestStoredFunctions calls a stored function that the operator has named, and one that
// nobody has.
func TestStoredFunctions(t *testing.T) {
	named := []string{"f_vat"}
	adminDSN, readerDSN := hubtest.SourceDB(t)
	admin := openAdmin(t, adminDSN)
	root, err := hubtest.SourceServer(t).Admin()
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	var database string
	if err := admin.QueryRowContext(t.Context(), "SELECT DATABASE()").Scan(&database); err != nil {
		t.Fatal(err)
	}
	reader, _, _ := strings.Cut(readerDSN, ":")
	for _, q := range []string{"CREATE FUNCTION f_vat(x DECIMAL(10,2)) RETURNS DECIMAL(10,2) DETERMINISTIC RETURN x * 1.2",
		"CREATE FUNCTION f_other() RETURNS INT DETERMINISTIC RETURN 1"} {
		if _, err := admin.ExecContext(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := root.ExecContext(t.Context(), fmt.Sprintf("GRANT EXECUTE ON FUNCTION %s.f_vat TO %s@'%%'", database, reader)); err != nil {
		t.Fatal(err)
	}
	serve := func(functions []string) *query.Service {
		guard, err := sqlguard.New(sqlguard.Options{Functions: functions})
		if err != nil {
			t.Fatal(err)
		}
		source, err := mysql.Open(readerDSN, server.Options{Functions: functions})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { source.Close() })
		r := statements.NewReader(source.Server, statements.ReaderOptions{})
		t.Cleanup(func() { r.Close() })
		return query.New(query.Config{Source: source, Reader: r, Audit: quiet{}, Guard: guard})
	}
	ask := func(s *query.Service, text string) (string, error) {
		out, err := s.ExecuteReadSQL(as(context.Background(), "a"), query.ReadSQLIn{SQL: text, Limit: 1})
		return string(out.JSON()), err
	}
	s := serve(named)
	for _, text := range []string{"SELECT f_vat(10)", "SELECT F_VAT (10)", "SELECT `f_vat`(10)"} {
		if answer, err := ask(s, text); err != nil || !strings.Contains(answer, `"12.00"`) {
			t.Errorf("%s: %s, %v", text, answer, err)
		}
	}
	for _, text := range []string{"SELECT f_other()", "SELECT " + database + ".f_vat(10)", "SELECT " + database + ".f_other()"} {
		if _, err := ask(s, text); ruleOf(err) != "sql.function" {
			t.Errorf("%s: %v, want sql.function", text, err)
		}
	}
	// An account that may execute what nobody has named is not served.
	if _, err := ask(serve(nil), "SELECT 1"); fault.From(err) == nil || fault.From(err).Code != fault.DB {
		t.Errorf("an account with EXECUTE: %v, want E_DB", err)
	}
}
