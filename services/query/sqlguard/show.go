package sqlguard

import (
	"strings"

	"hub.internal/services/query/sqlguard/lexer"
)

// shows are the forms of SHOW. In capitals stand words, [optional] or one|of|several;
// of is FROM or IN and a table, from the same with a schema if given, filter a LIKE or a
// WHERE, if given; table and schema are names.
var shows = [...]string{
	"[EXTENDED] [FULL] TABLES from filter",
	"[EXTENDED] [FULL] COLUMNS|FIELDS of from filter",
	"[EXTENDED] INDEX|INDEXES|KEYS of from filter",
	"CREATE TABLE|VIEW table",
	"CREATE DATABASE|SCHEMA schema",
	"TABLE STATUS from filter",
	"DATABASES|SCHEMAS filter",
	"[GLOBAL|SESSION|LOCAL] VARIABLES filter",
	"[GLOBAL] STATUS filter",
	"[STORAGE] ENGINES",
	"CHARACTER|CHAR SET filter",
	"CHARSET filter",
	"COLLATION filter",
	"[FULL] TRIGGERS from filter",
	"PROCEDURE|FUNCTION STATUS filter",
}

// checkShow requires one of the forms of SHOW. The others reveal what other sessions do
// or did, accounts and rights; a query inside one crashes servers.
func (g *Guard) checkShow(t lexer.Tokens) error {
	for _, form := range shows {
		m := showMatch{guard: g, tokens: t, next: 1}
		if m.form(form) {
			return m.refusal
		}
	}
	what := ""
	for i := 1; i < min(len(t), 3); i++ {
		if t[i].Key != "" && t[i].Name != "" {
			what += " " + t[i].Name
		}
	}
	switch {
	case t.Key(2) == "STATUS" && (t.Key(1) == "SESSION" || t.Key(1) == "LOCAL"):
		return lexer.Refuse("sql.show", "SHOW %s STATUS counts what others did in the same session: write SHOW GLOBAL STATUS", t.Key(1))
	case t.Find("SELECT") || t.Find("WITH"):
		return lexer.Refuse("sql.show", "SHOW with a query inside crashes servers: select from information_schema instead")
	}
	return lexer.Refuse("sql.show", "SHOW%.40s in this form is not on the list: write SHOW [FULL] TABLES, COLUMNS, INDEX, "+
		"CREATE TABLE, CREATE VIEW, TABLE STATUS, DATABASES, VARIABLES, GLOBAL STATUS or COLLATION, with a LIKE or a plain WHERE", what)
}

// showMatch holds a SHOW against a form.
type showMatch struct {
	guard   *Guard
	tokens  lexer.Tokens
	next    int
	table   string // the table named, a schema in front left out
	refusal error  // of the names in a SHOW that matches
}

func (m *showMatch) form(form string) bool {
	for step := range strings.FieldsSeq(form) {
		if !m.step(step) {
			return false
		}
	}
	return m.next == len(m.tokens)
}

func (m *showMatch) step(step string) bool {
	switch step {
	case "of":
		return m.word("FROM|IN") && m.name(true)
	case "from":
		return !m.word("FROM|IN") || m.name(false)
	case "table":
		return m.name(true)
	case "schema":
		return m.name(false)
	case "filter":
		return m.filter()
	}
	if optional, ok := strings.CutPrefix(step, "["); ok {
		m.word(strings.TrimSuffix(optional, "]"))
		return true
	}
	return m.word(step)
}

// word takes one of the words, if it is there.
func (m *showMatch) word(words string) bool {
	for word := range strings.SplitSeq(words, "|") {
		if m.tokens.Key(m.next) == word {
			m.next++
			return true
		}
	}
	return false
}

// name takes a table with or without its schema, or a schema.
func (m *showMatch) name(isTable bool) bool {
	t, i := m.tokens, m.next
	if i >= len(t) || t[i].Name == "" {
		return false
	}
	m.next++
	if isTable {
		m.table = t[i].Name
		if t.Key(i+1) == "." && i+2 < len(t) && t[i+2].Name != "" {
			m.table = ""
			m.next += 2 // the schema is judged as it is everywhere
		}
		return true
	}
	m.refuse(checkClosed(t[i].Name))
	if m.table != "" && lexer.Alike(t[i].Name, informationSchema) {
		m.refuse(m.guard.checkTable(m.table))
	}
	return true
}

func (m *showMatch) refuse(err error) {
	if m.refusal == nil {
		m.refusal = err
	}
}

// filter takes LIKE and a string, or WHERE and comparisons of columns with literals.
func (m *showMatch) filter() bool {
	t := m.tokens
	switch {
	case m.word("LIKE"):
		if m.next < len(t) && t[m.next].Quoted {
			m.next++
			return true
		}
		return false
	case m.word("WHERE"):
		from := m.next
		for ; m.next < len(t); m.next++ {
			if !isPlain(t, m.next) {
				return false
			}
		}
		return m.next > from
	}
	return true
}

// isPlain reports whether token i may stand in the WHERE of a SHOW: no query, no call, no
// variable.
func isPlain(t lexer.Tokens, i int) bool {
	switch t[i].Key {
	case "SELECT", "WITH", "VALUES", "TABLE", "CASE", "MATCH", "INTERVAL", "ROW", "@", "@@", "{":
		return false
	case "AND", "OR", "XOR", "NOT", "IN", "LIKE", "BETWEEN", "REGEXP", "RLIKE", "WHERE", "(", ",":
		return true
	}
	return !t[i].Variable && (t[i].Name == "" || t.Key(i+1) != "(")
}

// withoutState is the text of a SHOW as it is to run, without what the session remembers
// of the callers before: SHOW STATUS is of the server, and SHOW VARIABLES leaves out the
// variables that statements change by themselves. SHOW PROCEDURE and FUNCTION STATUS leave
// out the server's own.
func withoutState(t lexer.Tokens, text string) string {
	switch {
	case t.Key(1) == "STATUS":
		return text[:t[1].Start] + "GLOBAL " + text[t[1].Start:]
	case t.Key(1) == "VARIABLES", t.Key(2) == "VARIABLES" && t.Key(1) != "GLOBAL":
		return restrict(t, text, "Variable_name", "Variable_name NOT IN ("+stateVariables+")")
	case t.Key(2) == "STATUS" && (t.Key(1) == "PROCEDURE" || t.Key(1) == "FUNCTION"):
		return restrict(t, text, "Name", "Db <> 'sys'") // of which MySQL shows anybody the routines
	}
	return text
}

// restrict adds a condition to the filter of a SHOW, whose LIKE is of the column.
func restrict(t lexer.Tokens, text, column, condition string) string {
	// New lines, because the text may end in a line comment.
	for i := 2; i < len(t); i++ {
		switch t.Key(i) {
		case "LIKE":
			return text[:t[i].Start] + "WHERE " + column + " " + text[t[i].Start:] + "\nAND " + condition
		case "WHERE":
			return text[:t[i].End] + " (" + text[t[i].End:] + "\n) AND " + condition
		}
	}
	return text + "\nWHERE " + condition
}

// stateVariables are the session variables that change without a SET.
const stateVariables = "'error_count', 'identity', 'insert_id', 'last_gtid', 'last_insert_id', " +
	"'last_plan_from_binding', 'last_plan_from_cache', " +
	"'last_sql_use_alloc', 'pseudo_thread_id', 'rand_seed1', 'rand_seed2', 'statement_id', 'tidb_current_ts', 'tidb_last_ddl_info', " +
	"'tidb_last_plan_replayer_token', 'tidb_last_query_info', 'tidb_last_txn_info', 'timestamp', 'warning_count'"
