// Package sqlguard decides whether a text is exactly one statement that only
// reads, and caps the rows of its result.
//
// It is a lexer and an allow-list, not a parser: it cuts the text exactly as
// MariaDB and MySQL do and accepts SELECT, WITH ... SELECT, SHOW, EXPLAIN and
// DESCRIBE without the clauses that write, lock, wait, leave state in the session
// or touch the server's files. Functions, system variables, forms of SHOW and the
// tables of information_schema are allow-lists, too: what is on none may crash the
// server or show what others do. It presumes a connection with character set
// utf8mb4, without multi-statements, and an sql_mode without ANSI_QUOTES,
// NO_BACKSLASH_ESCAPES, IGNORE_SPACE and ORACLE. It cannot know what a stored
// function does: it refuses those that the operator has not named.
//
// Sources: MariaDB Knowledge Base "Comment Syntax", "Identifier Names",
// "String Literals", "Reserved Words", "SELECT", "WITH"; MySQL 8.4 Reference
// Manual 11.1 (literals), 11.2 (names, qualifiers), 11.3 (keywords), 11.7
// (comments), 10.9.3 (optimizer hints), 15.2.13 (SELECT), 15.2.20 (WITH).
package sqlguard

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"hub.internal/services/query/sqlguard/advice"
	"hub.internal/services/query/sqlguard/lexer"
	"hub.internal/services/query/sqlguard/notice"
	"hub.internal/services/query/sqlguard/weight"
)

// Options are what the operator decides.
type Options struct {
	// Functions are the stored functions that statements may call (HUB_SQL_FUNCTIONS), as
	// they are called: name or schema.name.
	Functions []string
	// MaxResultBytes refuses a constant size beyond it (HUB_MAX_RESULT_BYTES); 0 refuses none.
	MaxResultBytes int
}

// A Guard judges statements. It does not change.
type Guard struct {
	lists
	foreign  map[string]string
	stored   map[string]bool // in upper case
	maxBytes uint64
}

// Default returns a guard that admits no stored function, and no constant size beyond
// maxResultBytes unless that is 0.
func Default(maxResultBytes int) *Guard {
	g := &Guard{lists: readLists(), foreign: advice.Functions(), stored: map[string]bool{}, maxBytes: math.MaxUint64}
	if maxResultBytes > 0 {
		g.maxBytes = uint64(maxResultBytes)
	}
	return g
}

// New returns a guard, or an error that says what is wrong with the options.
func New(o Options) (*Guard, error) {
	g := Default(o.MaxResultBytes)
	for _, name := range o.Functions {
		if err := g.store(name); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// store lets statements call a stored function.
func (g *Guard) store(function string) error {
	name := strings.Map(lexer.UpperASCII, function)
	schema, plain, dotted := strings.Cut(name, ".")
	if !dotted {
		schema, plain = "", name
	}
	for _, part := range [...]string{schema, plain} {
		if strings.ContainsFunc(part, func(r rune) bool { return r < utf8.RuneSelf && !lexer.IsIdent(byte(r)) || r == utf8.RuneError }) {
			return fmt.Errorf("%q is no function's name: write name or schema.name", function)
		}
	}
	switch _, builtIn := g.functions[plain]; {
	case plain == "" || dotted && schema == "":
		return fmt.Errorf("%q is no function's name: write name or schema.name", function)
	case dotted && (checkClosed(schema) != nil || lexer.Alike(schema, informationSchema)):
		return fmt.Errorf("%s is of the server's own schema, not a stored function of yours", function)
	case !dotted && builtIn:
		return fmt.Errorf("%s is a built-in function that statements may call anyway", function)
	case !dotted && (g.reason(plain) != "" || lexer.GrammarWords[plain] || sized[plain]):
		return fmt.Errorf("%s is built in, and refused: it cannot name a stored function", function)
	}
	g.stored[name] = true
	return nil
}

// A Statement is a statement that Parse accepted. It does not change.
type Statement struct {
	text string // as it was given
	run  string // as it is to run, the cap of its rows apart
	kind Kind
	slot slot // in run
	// offset is how many rows its own LIMIT leaves out; -1 where that is not plain.
	offset int
	// heavy says that it may take much of a server's memory.
	heavy bool
}

// Heavy reports whether the statement may take much of a server's memory: it has JSON_ARRAYAGG or JSON_OBJECTAGG, which hold their
// rows until the last, or its values may take more than 16 MiB together.
func (s Statement) Heavy() bool { return s.heavy }

// Kind says what the statement answers.
func (s Statement) Kind() Kind { return s.kind }

// A Refusal is the error of Parse.
type Refusal = lexer.Refusal

// A Notice says that an accepted statement may mean something else than it looks like.
type Notice = notice.Notice

// Noticed returns what in the statement reads otherwise here than on other databases, and the texts in double quotes that
// may have been meant as names of columns.
func (s Statement) Noticed() (notices []Notice, quoted []string) {
	return notice.Notices(s.text, s.kind == Select)
}

// A Grouping tells of a statement that may select what its groups do not determine.
type Grouping = notice.Grouping

// Grouping looks at what a SELECT selects beside its aggregates and groups.
func (s Statement) Grouping() Grouping {
	if s.kind != Select {
		return Grouping{}
	}
	return notice.GroupingOf(s.text)
}

// A Kind says what a statement answers.
type Kind uint8

const (
	Select  Kind = iota // SELECT, WITH ... SELECT, in parentheses or not
	Show                // SHOW
	Explain             // EXPLAIN, DESCRIBE, DESC
)

// Parse accepts text as one reading statement of 1 to 8000 characters. Its
// error is a *Refusal.
func (g *Guard) Parse(text string) (Statement, error) {
	toks, err := lexer.Lex(text)
	if err != nil {
		return Statement{}, err
	}
	if err := toks.Pair(); err != nil {
		return Statement{}, err
	}
	if err := checkDepth(toks); err != nil {
		return Statement{}, err
	}
	toks.MarkLists()
	if err := checkUnfolded(toks); err != nil {
		return Statement{}, err
	}
	kind, from, err := g.head(toks)
	if err != nil {
		return Statement{}, err
	}
	for i := range toks {
		if err := g.check(toks, i, kind, from); err != nil {
			return Statement{}, err
		}
	}
	heavy, err := weight.Check(toks, from)
	if err != nil {
		return Statement{}, err
	}
	if kind == Explain {
		if err := weight.CheckExplained(toks, from); err != nil {
			return Statement{}, err
		}
	}
	for _, check := range [...]func(lexer.Tokens) error{checkMutual, checkQualified, checkNullSafe, checkTypes} {
		if err := check(toks); err != nil {
			return Statement{}, err
		}
	}
	s := Statement{text: text, run: text, kind: kind, offset: -1, heavy: heavy}
	switch kind {
	case Select:
		s.slot, s.offset = limitSlot(toks, text)
	case Show:
		s.run = withoutState(toks, text)
	}
	return s, nil
}

// check refuses what token i brings with it; the statement's query starts at from.
func (g *Guard) check(t lexer.Tokens, i int, kind Kind, from int) error {
	if err := checkKeyword(t, i, kind); err != nil {
		return err
	}
	if err := g.checkVariable(t, i); err != nil {
		return err
	}
	if err := g.checkSchema(t, i); err != nil {
		return err
	}
	if i < from {
		return nil
	}
	if err := g.checkCall(t, i); err != nil {
		return err
	}
	if err := g.checkForm(t, i); err != nil {
		return err
	}
	return g.checkSize(t, i)
}

// head returns the statement's kind and where its query starts, or refuses one that is
// not on the list.
func (g *Guard) head(t lexer.Tokens) (kind Kind, from int, err error) {
	switch t.Key(0) {
	case "SHOW":
		return Show, 0, g.checkShow(t)
	case "EXPLAIN", "DESCRIBE", "DESC":
		from, err := checkExplain(t)
		return Explain, from, err
	}
	return Select, 0, checkQuery(t, 0)
}

// checkQuery requires SELECT at i, behind any parentheses and WITH lists.
func checkQuery(t lexer.Tokens, i int) error {
	for {
		switch t.Key(i) {
		case "SELECT":
			return nil
		case "(":
			i++
		case "WITH":
			if i = t.WithEnd(i); i < 0 {
				return lexer.Refuse("sql.with", "the WITH list is not understood: write WITH name AS (SELECT ...) SELECT ...")
			}
		default:
			if i >= len(t) {
				return lexer.Refuse("sql.empty", "there is no statement: write a SELECT, SHOW, EXPLAIN or DESCRIBE")
			}
			found := t[i].Key
			if found == "" {
				found = "a name or literal"
			}
			return lexer.Refuse("sql.head", "found %.40s where a reading statement must start: write SELECT, WITH ... "+
				"SELECT, SHOW, EXPLAIN SELECT or DESCRIBE", found)
		}
	}
}

// checkExplain requires EXPLAIN [EXTENDED|PARTITIONS|ANALYZE] [FORMAT = word]
// query, or DESCRIBE [schema.]table [column | 'pattern'], and returns where the query
// starts.
func checkExplain(t lexer.Tokens) (from int, err error) {
	i := 1
	switch t.Key(i) {
	case "EXTENDED", "PARTITIONS", "ANALYZE":
		i++
	}
	if t.Key(i) == "FORMAT" && t.Key(i+1) == "=" {
		i += 3
	}
	switch t.Key(i) {
	case "SELECT", "WITH", "(":
		return i, checkQuery(t, i)
	}
	last := 1
	if t.Key(2) == "." {
		last = 3
	}
	isTable := len(t) > last && t[1].Name != "" && t[last].Name != "" && len(t) <= last+2
	switch t.Key(1) {
	case "TABLE", "VALUES":
		isTable = false
	}
	if !isTable {
		return 0, lexer.Refuse("sql.explain", "%s takes a SELECT, a WITH ... SELECT, or one table name with at most one column", t.Key(0))
	}
	return 0, nil
}

// checkKeyword refuses the keyword at i if its clause does more than read. Most
// of these are reserved: as names they must be quoted on the server, too.
func checkKeyword(t lexer.Tokens, i int, kind Kind) error {
	key, prev, next := t[i].Key, t.Key(i-1), t.Key(i+1)
	switch key {
	case "INTO", "OUTFILE", "DUMPFILE":
		return lexer.Refuse("sql.into", "%s stores the result on the server: leave the clause out, the rows are the answer "+
			"(a name is written `%[1]s`)", key)
	case "FOR":
		switch {
		case next == "UPDATE", next == "SHARE":
			return lexer.Refuse("sql.lock", "FOR %s locks rows: leave the clause out", next)
		case next == "CONNECTION":
			return lexer.Refuse("sql.explain", "FOR CONNECTION looks into another session: explain the SELECT itself")
		case prev == "VALUE" && (t.Key(i-2) == "NEXT" || t.Key(i-2) == "PREVIOUS"):
			return lexer.Refuse("sql.sequence", "%s VALUE FOR uses a sequence's state: select from the tables, or number "+
				"rows with ROW_NUMBER()", t.Key(i-2))
		}
	case "LOCK", "UNLOCK":
		return lexer.Refuse("sql.lock", "%s is a locking clause: leave it out (a name is written `%[1]s`)", key)
	case "PROCEDURE":
		if kind != Show || i != 1 && (i != 2 || t.Key(1) != "CREATE") {
			return lexer.Refuse("sql.procedure", "the PROCEDURE clause is not allowed: leave it out (a name is written `PROCEDURE`)")
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
	return lexer.Refuse("sql.write", "%s is not allowed, statements only read: write a SELECT (a name is written `%[1]s`)", key)
}
