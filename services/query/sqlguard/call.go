package sqlguard

import (
	"strings"
)

// grammar are the words behind which a parenthesis is the grammar's and no call's. On
// each server they are keywords, which no stored function can be called by unquoted.
var grammar = wordSet(`
	SELECT ALL DISTINCT DISTINCTROW HIGH_PRIORITY STRAIGHT_JOIN SQL_BIG_RESULT SQL_BUFFER_RESULT SQL_CACHE
	SQL_CALC_FOUND_ROWS SQL_NO_CACHE SQL_SMALL_RESULT
	FROM JOIN ON USING WHERE HAVING BY GROUP WHEN THEN ELSE CASE AS UNION EXCEPT INTERSECT VALUES
	AND OR XOR NOT IN EXISTS ANY SOME BETWEEN LIKE RLIKE REGEXP DIV BINARY ROW MATCH
	OVER PARTITION INDEX KEY FOR TO LEADING TRAILING BOTH`)

// sized are the types that take a length behind them, in digits.
var sized = wordSet(`
	BIT INT INTEGER TINYINT SMALLINT MEDIUMINT BIGINT DEC DECIMAL NUMERIC FIXED FLOAT DOUBLE REAL PRECISION
	BINARY VARBINARY CHAR CHARACTER NCHAR NATIONAL VARCHAR NVARCHAR VARYING VARCHARACTER BLOB TEXT
	DATETIME TIME TIMESTAMP YEAR SIGNED UNSIGNED`)

// spatial are the types of geometry.
var spatial = wordSet(`
	GEOMETRY POINT LINESTRING POLYGON MULTIPOINT MULTILINESTRING MULTIPOLYGON GEOMETRYCOLLECTION GEOMCOLLECTION`)

func wordSet(text string) map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(text) {
		set[word] = true
	}
	return set
}

// checkCall refuses the call at i of a function that is neither on the list nor named
// by the operator. A parenthesis behind a name is a call, but for the words and places
// where the grammar has another use for it.
func (g *Guard) checkCall(t tokens, i int) error {
	name, key := t[i].name, t[i].key
	if name == "" || t.key(i+1) != "(" || t[i].heads {
		return nil
	}
	if t.key(i-1) == "." {
		return g.checkStored(t, i)
	}
	switch {
	case grammar[key], sized[key] && t.isLength(i+1), g.stored[name]:
		return nil
	case t.isGrammarHere(i):
		return nil
	case key == "LAST_INSERT_ID" && t.key(i+2) == ")":
		return nil // 0: no statement that is accepted sets it
	}
	if _, known := g.functions[name]; known && key != "" {
		return nil
	} else if known {
		return refuse("sql.function", "`%.40s`() in quotes may be a stored function: write the built-in %[1]s() "+
			"without them%s", name, storedHint)
	}
	if why := g.reason(name); why != "" {
		return refuse("sql.function", "%.40s() %s (HUB_SQL_FUNCTIONS admits stored functions only)", name, why)
	}
	if why := g.foreign[name]; why != "" {
		return refuse("sql.function", "%.40s() %s", name, why)
	}
	return refuse("sql.function", "%.40s() is not on the list of functions: use built-in functions of text, number, "+
		"date, JSON, regexp, aggregate and window%s", name, storedHint)
}

// isGrammarHere reports whether the word at i, which elsewhere can be a function's name, is
// grammar where it stands.
func (t tokens) isGrammarHere(i int) bool {
	switch t[i].key {
	case "OF": // FOR SYSTEM_TIME AS OF, MEMBER OF
		return t.key(i-1) == "AS" || t.key(i-1) == "MEMBER"
	case "AGAINST":
		return t.key(i-1) == ")"
	case "COLUMNS": // of JSON_TABLE, behind a path
		return i > 0 && t[i-1].quoted
	case "LATERAL":
		return t.key(i+2) == "SELECT" || t.key(i+2) == "WITH"
	}
	return false
}

const storedHint = "; an operator admits stored functions in HUB_SQL_FUNCTIONS"

// checkStored refuses a function with a schema in front that the operator has not named.
func (g *Guard) checkStored(t tokens, i int) error {
	if i < 2 || t[i-2].name == "" || t.key(i-3) == "." || !g.stored[t[i-2].name+"."+t[i].name] {
		return refuse("sql.function", "%.40s() with a schema in front is a stored function: use built-in "+
			"functions%s", t[i].name, storedHint)
	}
	return nil
}

// isLength reports whether the parenthesis at i holds one or two integers.
func (t tokens) isLength(i int) bool {
	for j := i + 1; j < t[i].mate; j++ {
		if (j-i)%2 == 1 && !t[j].digits || (j-i)%2 == 0 && t.key(j) != "," {
			return false
		}
	}
	n := t[i].mate - i
	return n == 2 || n == 4
}

// markLists marks the names that head a list of columns: those of WITH lists, and of
// derived tables: (SELECT ...) AS name (column, ...).
func (t tokens) markLists() {
	for i := range t {
		switch t[i].key {
		case "WITH":
			t.withEnd(i)
		case "(":
			if name := i - 1; name > 0 && t[name].name != "" && t.isNames(i) {
				behind := name - 1
				if t.key(behind) == "AS" {
					behind--
				}
				if t.key(behind) == ")" && t.isQuery(t[behind].mate) {
					t[name].heads = true
				}
			}
		}
	}
}

// isNames reports whether the parenthesis at i holds names.
func (t tokens) isNames(i int) bool {
	for j := i + 1; j < t[i].mate; j++ {
		if (j-i)%2 == 1 && t[j].name == "" || (j-i)%2 == 0 && t.key(j) != "," {
			return false
		}
	}
	return (t[i].mate-i)%2 == 0
}

// isQuery reports whether the parenthesis at i holds a query.
func (t tokens) isQuery(i int) bool {
	switch t.key(i + 1) {
	case "SELECT", "WITH", "VALUES", "TABLE", "(":
		return true
	}
	return false
}

// checkTypes refuses the types of geometry in CAST, CONVERT and the columns of JSON_TABLE.
func (t tokens) checkTypes() error {
	var open []int
	for i := range t {
		switch t[i].key {
		case "(":
			open = append(open, i)
		case ")":
			open = open[:len(open)-1]
		}
		if !spatial[t[i].key] || len(open) == 0 {
			continue
		}
		call := t.key(open[len(open)-1] - 1)
		if call == "CAST" && t.key(i-1) == "AS" || call == "CONVERT" && t.key(i-1) == "," || call == "COLUMNS" && t[i-1].name != "" {
			return refuse("sql.geometry", "the type %s is of geometry, which crashes servers: select HEX(column)", t[i].key)
		}
	}
	return nil
}
