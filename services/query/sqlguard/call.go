package sqlguard

import "hub.internal/services/query/sqlguard/lexer"

// sized are the types that take a length behind them, in digits.
var sized = lexer.WordSet(`
	BIT INT INTEGER TINYINT SMALLINT MEDIUMINT BIGINT DEC DECIMAL NUMERIC FIXED FLOAT DOUBLE REAL PRECISION
	BINARY VARBINARY CHAR CHARACTER NCHAR NATIONAL VARCHAR NVARCHAR VARYING VARCHARACTER BLOB TEXT
	DATETIME TIME TIMESTAMP YEAR SIGNED UNSIGNED`)

// spatial are the types of geometry.
var spatial = lexer.WordSet(`
	GEOMETRY POINT LINESTRING POLYGON MULTIPOINT MULTILINESTRING MULTIPOLYGON GEOMETRYCOLLECTION GEOMCOLLECTION`)

// checkCall refuses the call at i of a function that is neither on the list nor named
// by the operator. A parenthesis behind a name is a call, but for the words and places
// where the grammar has another use for it.
func (g *Guard) checkCall(t lexer.Tokens, i int) error {
	name, key := t[i].Name, t[i].Key
	if name == "" || t.Key(i+1) != "(" || t[i].Heads {
		return nil
	}
	if t.Key(i-1) == "." {
		return g.checkStored(t, i)
	}
	switch {
	case lexer.GrammarWords[key], sized[key] && isLength(t, i+1), g.stored[name]:
		return nil
	case isGrammarHere(t, i):
		return nil
	case key == "LAST_INSERT_ID" && t.Key(i+2) == ")":
		return nil // 0: no statement that is accepted sets it
	}
	if _, known := g.functions[name]; known && key != "" {
		return nil
	} else if known {
		return lexer.Refuse("sql.function", "`%.40s`() in quotes may be a stored function: write the built-in %[1]s() "+
			"without them%s", name, storedHint)
	}
	if why := g.reason(name); why != "" {
		return lexer.Refuse("sql.function", "%.40s() %s (HUB_SQL_FUNCTIONS admits stored functions only)", name, why)
	}
	if why := g.foreign[name]; why != "" {
		return lexer.Refuse("sql.function", "%.40s() %s", name, why)
	}
	return lexer.Refuse("sql.function", "%.40s() is not on the list of functions: use built-in functions of text, number, "+
		"date, JSON, regexp, aggregate and window%s", name, storedHint)
}

// isGrammarHere reports whether the word at i, which elsewhere can be a function's name, is
// grammar where it stands.
func isGrammarHere(t lexer.Tokens, i int) bool {
	switch t[i].Key {
	case "OF": // FOR SYSTEM_TIME AS OF, MEMBER OF
		return t.Key(i-1) == "AS" || t.Key(i-1) == "MEMBER"
	case "AGAINST":
		return t.Key(i-1) == ")"
	case "COLUMNS": // of JSON_TABLE, behind a path
		return i > 0 && t[i-1].Quoted
	case "LATERAL":
		return t.Key(i+2) == "SELECT" || t.Key(i+2) == "WITH"
	}
	return false
}

const storedHint = "; an operator admits stored functions in HUB_SQL_FUNCTIONS"

// checkStored refuses a function with a schema in front that the operator has not named.
func (g *Guard) checkStored(t lexer.Tokens, i int) error {
	if i < 2 || t[i-2].Name == "" || t.Key(i-3) == "." || !g.stored[t[i-2].Name+"."+t[i].Name] {
		return lexer.Refuse("sql.function", "%.40s() with a schema in front is a stored function: use built-in "+
			"functions%s", t[i].Name, storedHint)
	}
	return nil
}

// isLength reports whether the parenthesis at i holds one or two integers.
func isLength(t lexer.Tokens, i int) bool {
	for j := i + 1; j < t[i].Mate; j++ {
		if (j-i)%2 == 1 && !t[j].Digits || (j-i)%2 == 0 && t.Key(j) != "," {
			return false
		}
	}
	n := t[i].Mate - i
	return n == 2 || n == 4
}

// checkTypes refuses the types of geometry in CAST, CONVERT and the columns of JSON_TABLE.
func checkTypes(t lexer.Tokens) error {
	var open []int
	for i := range t {
		switch t[i].Key {
		case "(":
			open = append(open, i)
		case ")":
			open = open[:len(open)-1]
		}
		if !spatial[t[i].Key] || len(open) == 0 {
			continue
		}
		call := t.Key(open[len(open)-1] - 1)
		if call == "CAST" && t.Key(i-1) == "AS" || call == "CONVERT" && t.Key(i-1) == "," || call == "COLUMNS" && t[i-1].Name != "" {
			return lexer.Refuse("sql.geometry", "the type %s is of geometry, which crashes servers: select HEX(column)", t[i].Key)
		}
	}
	return nil
}
