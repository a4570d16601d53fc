// Package sqlguard decides whether a text is exactly one statement that only
// reads, and caps the rows of its result.
//
// It is a lexer and an allow-list, not a parser: it cuts the text exactly as
// MariaDB and MySQL do and accepts SELECT, WITH ... SELECT, SHOW, EXPLAIN and
// DESCRIBE without the clauses and functions that write, lock, wait, leave
// state in the session or touch the server's files. It presumes a connection
// with character set utf8mb4, without multi-statements, and an sql_mode without
// ANSI_QUOTES, NO_BACKSLASH_ESCAPES and ORACLE. It cannot know what a stored
// function does: the database user's grants stop those.
//
// Sources: MariaDB Knowledge Base "Comment Syntax", "Identifier Names",
// "String Literals", "Reserved Words", "SELECT", "WITH"; MySQL 8.4 Reference
// Manual 11.1 (literals), 11.2 (names, qualifiers), 11.3 (keywords), 11.7
// (comments), 10.9.3 (optimizer hints), 15.2.13 (SELECT), 15.2.20 (WITH).
package sqlguard

import (
	"fmt"
	"strings"
	"unicode"
)

// A Statement is a statement that Parse accepted. It does not change.
type Statement struct {
	text string
	kind Kind
	slot slot
}

// Text returns the statement as it was given.
func (s Statement) Text() string { return s.text }

// Kind returns the kind of statement.
func (s Statement) Kind() Kind { return s.kind }

// A Kind says what a statement answers.
type Kind uint8

const (
	Select  Kind = iota // SELECT, WITH ... SELECT, in parentheses or not
	Show                // SHOW
	Explain             // EXPLAIN, DESCRIBE, DESC
)

// String returns "select", "show" or "explain".
func (k Kind) String() string { return [...]string{"select", "show", "explain"}[k] }

// A Refusal is the error of Parse.
type Refusal struct {
	Rule    string // names the broken rule, such as "sql.semicolon"
	Message string // says what was found and what to write instead
}

// Error returns the rule and the message.
func (r *Refusal) Error() string { return r.Rule + ": " + r.Message }

func refuse(rule, format string, args ...any) error {
	return &Refusal{Rule: rule, Message: fmt.Sprintf(format, args...)}
}

// Parse accepts text as one reading statement of 1 to 8000 characters. Its
// error is a *Refusal.
func Parse(text string) (Statement, error) {
	toks, err := lex(text)
	if err != nil {
		return Statement{}, err
	}
	if err := toks.pair(); err != nil {
		return Statement{}, err
	}
	kind, err := toks.head()
	if err != nil {
		return Statement{}, err
	}
	for i := range toks {
		if err := toks.checkKeyword(i, kind); err != nil {
			return Statement{}, err
		}
		if err := toks.checkCall(i); err != nil {
			return Statement{}, err
		}
	}
	if err := toks.checkQualified(); err != nil {
		return Statement{}, err
	}
	s := Statement{text: text, kind: kind}
	if kind == Select {
		s.slot = toks.limitSlot(text)
	}
	return s, nil
}

// tokens are the tokens of one statement.
type tokens []token

// key returns the key of token i, "" outside the statement.
func (t tokens) key(i int) string {
	if i < 0 || i >= len(t) {
		return ""
	}
	return t[i].key
}

// pair finds the mate of every opening parenthesis and refuses a missing one:
// the text must not reach out of brackets that are put around it.
func (t tokens) pair() error {
	var open []int
	for i := range t {
		switch t[i].key {
		case "(":
			open = append(open, i)
		case ")":
			if len(open) == 0 {
				return refuse("sql.parentheses", "closing parenthesis at byte %d was never opened: balance them", t[i].start)
			}
			t[open[len(open)-1]].mate = i
			open = open[:len(open)-1]
		}
	}
	if len(open) > 0 {
		return refuse("sql.parentheses", "parenthesis at byte %d is never closed: balance them", t[open[len(open)-1]].start)
	}
	return nil
}

// head returns the statement's kind, or refuses one that is not on the list.
func (t tokens) head() (Kind, error) {
	switch t.key(0) {
	case "SHOW":
		return Show, t.checkShow()
	case "EXPLAIN", "DESCRIBE", "DESC":
		return Explain, t.checkExplain()
	}
	return Select, t.checkQuery(0)
}

// checkQuery requires SELECT at i, behind any parentheses and WITH lists.
func (t tokens) checkQuery(i int) error {
	for {
		switch t.key(i) {
		case "SELECT":
			return nil
		case "(":
			i++
		case "WITH":
			if i = t.withEnd(i); i < 0 {
				return refuse("sql.with", "the WITH list is not understood: write WITH name AS (SELECT ...) SELECT ...")
			}
		default:
			if i >= len(t) {
				return refuse("sql.empty", "there is no statement: write a SELECT, SHOW, EXPLAIN or DESCRIBE")
			}
			found := t[i].key
			if found == "" {
				found = "a name or literal"
			}
			return refuse("sql.head", "found %.40s where a reading statement must start: write SELECT, WITH ... SELECT, SHOW, EXPLAIN SELECT or DESCRIBE", found)
		}
	}
}

// withEnd returns the index behind the WITH list at i, -1 if it is none:
//
//	WITH [RECURSIVE] name [(columns)] AS (query) [CYCLE columns RESTRICT], ...
func (t tokens) withEnd(i int) int {
	i++
	if t.key(i) == "RECURSIVE" {
		i++
	}
	for {
		if i >= len(t) || t[i].name == "" {
			return -1
		}
		if i++; t.key(i) == "(" {
			i = t[i].mate + 1
		}
		if t.key(i) != "AS" || t.key(i+1) != "(" {
			return -1
		}
		i = t[i+1].mate + 1
		if t.key(i) == "CYCLE" {
			for i++; t.key(i) != "RESTRICT"; i++ {
				if i >= len(t) || t[i].name == "" && t[i].key != "," {
					return -1
				}
			}
			i++
		}
		if t.key(i) != "," {
			return i
		}
		i++
	}
}

// checkShow lets every SHOW pass but those that reveal the writes or the
// running statements of others.
func (t tokens) checkShow() error {
	switch what := t.key(1); what {
	case "BINLOG", "RELAYLOG", "EXPLAIN", "ANALYZE":
		return refuse("sql.show", "SHOW %s reveals what other sessions do: query the tables instead", what)
	case "":
		return refuse("sql.show", "SHOW lacks its object: write SHOW TABLES, SHOW COLUMNS FROM name, ...")
	}
	return nil
}

// checkExplain requires EXPLAIN [EXTENDED|PARTITIONS|ANALYZE] [FORMAT = word]
// query, or DESCRIBE [schema.]table [column | 'pattern'].
func (t tokens) checkExplain() error {
	i := 1
	switch t.key(i) {
	case "EXTENDED", "PARTITIONS", "ANALYZE":
		i++
	}
	if t.key(i) == "FORMAT" && t.key(i+1) == "=" {
		i += 3
	}
	switch t.key(i) {
	case "SELECT", "WITH", "(":
		return t.checkQuery(i)
	}
	last := 1
	if t.key(2) == "." {
		last = 3
	}
	isTable := len(t) > last && t[1].name != "" && t[last].name != "" && len(t) <= last+2
	switch t.key(1) {
	case "TABLE", "VALUES":
		isTable = false
	}
	if !isTable {
		return refuse("sql.explain", "%s takes a SELECT, a WITH ... SELECT, or one table name with at most one column", t.key(0))
	}
	return nil
}

// checkKeyword refuses the keyword at i if its clause does more than read. Most
// of these are reserved: as names they must be quoted on the server, too.
func (t tokens) checkKeyword(i int, kind Kind) error {
	key, prev, next := t[i].key, t.key(i-1), t.key(i+1)
	switch key {
	case "INTO", "OUTFILE", "DUMPFILE":
		return refuse("sql.into", "%s stores the result on the server: leave the clause out, the rows are the answer (a name is written `%[1]s`)", key)
	case "FOR":
		switch {
		case next == "UPDATE", next == "SHARE":
			return refuse("sql.lock", "FOR %s locks rows: leave the clause out", next)
		case next == "CONNECTION":
			return refuse("sql.explain", "FOR CONNECTION looks into another session: explain the SELECT itself")
		case prev == "VALUE" && (t.key(i-2) == "NEXT" || t.key(i-2) == "PREVIOUS"):
			return refuse("sql.sequence", "%s VALUE FOR uses a sequence's state: select from the tables, or number rows with ROW_NUMBER()", t.key(i-2))
		}
	case "LOCK", "UNLOCK":
		return refuse("sql.lock", "%s is a locking clause: leave it out (a name is written `%[1]s`)", key)
	case "PROCEDURE":
		if kind != Show || i != 1 && (i != 2 || t.key(1) != "CREATE") {
			return refuse("sql.procedure", "the PROCEDURE clause is not allowed: leave it out (a name is written `PROCEDURE`)")
		}
	case "SET":
		if prev == "CHARACTER" || prev == "CHAR" {
			return nil
		}
		return refuseWrite(key)
	case "INSERT", "REPLACE": // also functions
		if next != "(" {
			return refuseWrite(key)
		}
	case "CREATE":
		if kind != Show || i != 1 {
			return refuseWrite(key)
		}
	case "DELETE", "UPDATE", "DROP", "ALTER", "RENAME", "GRANT", "REVOKE", "CALL", "LOAD", "KILL":
		return refuseWrite(key)
	}
	return nil
}

func refuseWrite(key string) error {
	return refuse("sql.write", "%s is not allowed, statements only read: write a SELECT (a name is written `%[1]s`)", key)
}

// checkCall refuses the call at i of a function that reads files, locks, waits,
// moves a sequence, sets session state or runs commands. The name may be quoted.
func (t tokens) checkCall(i int) error {
	name := t[i].name
	if name == "" || t.key(i+1) != "(" {
		return nil
	}
	switch name {
	case "LOAD_FILE":
		return refuse("sql.function", "LOAD_FILE() reads the server's files: select from tables only")
	case "GET_LOCK", "RELEASE_LOCK", "RELEASE_ALL_LOCKS",
		"SERVICE_GET_READ_LOCKS", "SERVICE_GET_WRITE_LOCKS", "SERVICE_RELEASE_LOCKS":
		return refuse("sql.function", "%s() takes or releases server-wide locks: leave it out; IS_USED_LOCK() reads", name)
	case "NEXTVAL", "SETVAL":
		return refuse("sql.sequence", "%s() moves a sequence: number rows with ROW_NUMBER() OVER (...)", name)
	case "WAIT_FOR_EXECUTED_GTID_SET", "WAIT_UNTIL_SQL_THREAD_AFTER_GTIDS", "WSREP_SYNC_WAIT_UPTO_GTID":
		return refuse("sql.function", "%s() waits for replication: leave it out", name)
	case "SYS_EXEC", "SYS_EVAL", "SYS_GET", "SYS_SET", "SYS_BINEVAL", "DO_SYSTEM", "MROONGA_COMMAND":
		return refuse("sql.function", "%s() runs commands on the server: use built-in functions only", name)
	case "LAST_INSERT_ID":
		if t.key(i+2) != ")" {
			return refuse("sql.function", "LAST_INSERT_ID(value) sets session state: write the value itself, or LAST_INSERT_ID()")
		}
	}
	switch {
	case t.key(i-1) == ".":
		return refuse("sql.function", "a function with a schema in front is a stored one: use built-in functions only")
	case strings.HasSuffix(name, "_POS_WAIT"), strings.HasSuffix(name, "_GTID_WAIT"):
		return refuse("sql.function", "%.40s() waits for replication: leave it out", name)
	case strings.HasPrefix(name, "SPIDER_"):
		return refuse("sql.function", "%.40s() runs SQL on another server: use built-in functions only", name)
	case strings.ContainsFunc(name, isAccented):
		// MySQL finds loadable functions with a collation: sys_éxec is sys_exec.
		return refuse("sql.function", "%.40s() has an accented letter: built-in functions have plain names", name)
	}
	return nil
}

// checkQualified refuses a column with its schema in front beside USING or NATURAL:
// MariaDB 10.11.19 looks such a column up through a null pointer when the schema is
// unknown, and the whole server goes down. SELECT rights are enough for that.
func (t tokens) checkQualified() error {
	var joins, qualified bool
	for i := range t {
		switch t[i].key {
		case "USING":
			joins = joins || t.key(i+1) == "("
		case "NATURAL":
			joins = true
		case ".":
			qualified = qualified || t.key(i+2) == "."
		}
	}
	if joins && qualified {
		return refuse("sql.qualified", "a column with its schema in front beside USING or NATURAL crashes some servers: give the table an alias and write alias.column")
	}
	return nil
}

func isAccented(r rune) bool { return r > unicode.MaxASCII && unicode.Is(unicode.Latin, r) }
