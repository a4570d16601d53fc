package sqlguard

import "strings"

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
func (g *Guard) checkShow(t tokens) error {
	for _, form := range shows {
		m := showMatch{guard: g, tokens: t, next: 1}
		if m.form(form) {
			return m.refusal
		}
	}
	what := ""
	for i := 1; i < min(len(t), 3); i++ {
		if t[i].key != "" && t[i].name != "" {
			what += " " + t[i].name
		}
	}
	switch {
	case t.key(2) == "STATUS" && (t.key(1) == "SESSION" || t.key(1) == "LOCAL"):
		return refuse("sql.show", "SHOW %s STATUS counts what others did in the same session: write SHOW GLOBAL STATUS", t.key(1))
	case t.find("SELECT") || t.find("WITH"):
		return refuse("sql.show", "SHOW with a query inside crashes servers: select from information_schema instead")
	}
	return refuse("sql.show", "SHOW%.40s in this form is not on the list: write SHOW [FULL] TABLES, COLUMNS, INDEX, "+
		"CREATE TABLE, CREATE VIEW, TABLE STATUS, DATABASES, VARIABLES, GLOBAL STATUS or COLLATION, with a LIKE or a plain WHERE", what)
}

func (t tokens) find(key string) bool {
	for i := range t {
		if t[i].key == key {
			return true
		}
	}
	return false
}

// showMatch holds a SHOW against a form.
type showMatch struct {
	guard   *Guard
	tokens  tokens
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
		if m.tokens.key(m.next) == word {
			m.next++
			return true
		}
	}
	return false
}

// name takes a table with or without its schema, or a schema.
func (m *showMatch) name(isTable bool) bool {
	t, i := m.tokens, m.next
	if i >= len(t) || t[i].name == "" {
		return false
	}
	m.next++
	if isTable {
		m.table = t[i].name
		if t.key(i+1) == "." && i+2 < len(t) && t[i+2].name != "" {
			m.table = ""
			m.next += 2 // the schema is judged as it is everywhere
		}
		return true
	}
	m.refuse(checkClosed(t[i].name))
	if m.table != "" && alike(t[i].name, informationSchema) {
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
		if m.next < len(t) && t[m.next].quoted {
			m.next++
			return true
		}
		return false
	case m.word("WHERE"):
		from := m.next
		for ; m.next < len(t); m.next++ {
			if !t.isPlain(m.next) {
				return false
			}
		}
		return m.next > from
	}
	return true
}

// isPlain reports whether token i may stand in the WHERE of a SHOW: no query, no call, no
// variable.
func (t tokens) isPlain(i int) bool {
	switch t[i].key {
	case "SELECT", "WITH", "VALUES", "TABLE", "CASE", "MATCH", "INTERVAL", "ROW", "@", "@@", "{":
		return false
	case "AND", "OR", "XOR", "NOT", "IN", "LIKE", "BETWEEN", "REGEXP", "RLIKE", "WHERE", "(", ",":
		return true
	}
	return !t[i].variable && (t[i].name == "" || t.key(i+1) != "(")
}

// withoutState is the text of a SHOW as it is to run, without what the session remembers
// of the callers before: SHOW STATUS is of the server, and SHOW VARIABLES leaves out the
// variables that statements change by themselves.
func (t tokens) withoutState(text string) string {
	switch {
	case t.key(1) == "STATUS":
		return text[:t[1].start] + "GLOBAL " + text[t[1].start:]
	case t.key(1) == "VARIABLES", t.key(2) == "VARIABLES" && t.key(1) != "GLOBAL":
		// A new line, because the text may end in a line comment.
		const others = "Variable_name NOT IN (" + stateVariables + ")"
		i := 2
		for i < len(t) && t.key(i) != "LIKE" && t.key(i) != "WHERE" {
			i++
		}
		switch t.key(i) {
		case "LIKE":
			return text[:t[i].start] + "WHERE Variable_name " + text[t[i].start:] + "\nAND " + others
		case "WHERE":
			return text[:t[i].end] + " (" + text[t[i].end:] + "\n) AND " + others
		}
		return text + "\nWHERE " + others
	}
	return text
}

// stateVariables are the session variables that change without a SET.
const stateVariables = "'error_count', 'identity', 'insert_id', 'last_gtid', 'last_insert_id', " +
	"'last_plan_from_binding', 'last_plan_from_cache', " +
	"'last_sql_use_alloc', 'pseudo_thread_id', 'rand_seed1', 'rand_seed2', 'statement_id', 'tidb_current_ts', 'tidb_last_ddl_info', " +
	"'tidb_last_plan_replayer_token', 'tidb_last_query_info', 'tidb_last_txn_info', 'timestamp', 'warning_count'"
