package lexer

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Tokens are the tokens of one statement.
type Tokens []Token

// Name returns the name of token i, "" outside the statement.
func (t Tokens) Name(i int) string {
	if i < 0 || i >= len(t) {
		return ""
	}
	return t[i].Name
}

// Key returns the key of token i, "" outside the statement.
func (t Tokens) Key(i int) string {
	if i < 0 || i >= len(t) {
		return ""
	}
	return t[i].Key
}

// Pair finds the mate of every parenthesis and refuses a missing one:
// the text must not reach out of brackets that are put around it.
func (t Tokens) Pair() error {
	var open []int
	for i := range t {
		switch t[i].Key {
		case "(":
			open = append(open, i)
		case ")":
			if len(open) == 0 {
				return Refuse("sql.parentheses", "closing parenthesis at byte %d was never opened: balance them", t[i].Start)
			}
			t[open[len(open)-1]].Mate, t[i].Mate = i, open[len(open)-1]
			open = open[:len(open)-1]
		}
	}
	if len(open) > 0 {
		return Refuse("sql.parentheses", "parenthesis at byte %d is never closed: balance them", t[open[len(open)-1]].Start)
	}
	return nil
}

// Find reports whether a token with the key is among them.
func (t Tokens) Find(key string) bool {
	for i := range t {
		if t[i].Key == key {
			return true
		}
	}
	return false
}

// An Argument is the tokens from one index to before another.
type Argument struct{ From, To int }

// Arguments are those in the parenthesis at i.
func (t Tokens) Arguments(i int) []Argument { return t.Split(i+1, t[i].Mate) }

// Integer is the value of an argument of plain digits, 0 of any other.
func (t Tokens) Integer(a Argument) uint64 {
	if a.To-a.From != 1 || !t[a.From].Digits {
		return 0
	}
	// Beyond 64 bits it is the greatest.
	n, _ := strconv.ParseUint(t[a.From].Text, 10, 64)
	return n
}

// GrammarWords are the words behind which a parenthesis is the grammar's and no call's. On
// each server they are keywords, which no stored function can be called by unquoted.
var GrammarWords = WordSet(`
	SELECT ALL DISTINCT DISTINCTROW HIGH_PRIORITY STRAIGHT_JOIN SQL_BIG_RESULT SQL_BUFFER_RESULT
	SQL_CALC_FOUND_ROWS SQL_NO_CACHE SQL_SMALL_RESULT
	FROM JOIN ON USING WHERE HAVING BY GROUP WHEN THEN ELSE CASE AS UNION EXCEPT INTERSECT VALUES
	AND OR XOR NOT IN EXISTS ANY SOME BETWEEN LIKE RLIKE REGEXP DIV BINARY ROW MATCH
	OVER PARTITION INDEX KEY FOR TO LEADING TRAILING BOTH`)

// WordSet is the set of the words in a text, which white space separates.
func WordSet(text string) map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(text) {
		set[word] = true
	}
	return set
}

// isNames reports whether the parenthesis at i holds names.
func (t Tokens) isNames(i int) bool {
	for j := i + 1; j < t[i].Mate; j++ {
		if (j-i)%2 == 1 && t[j].Name == "" || (j-i)%2 == 0 && t.Key(j) != "," {
			return false
		}
	}
	return (t[i].Mate-i)%2 == 0
}

// IsQuery reports whether the parenthesis at i holds a query.
func (t Tokens) IsQuery(i int) bool {
	switch t.Key(i + 1) {
	case "SELECT", "WITH", "VALUES", "TABLE", "(":
		return true
	}
	return false
}

// MarkLists marks the names that head a list of columns: those of WITH lists, and of
// derived tables: (SELECT ...) AS name (column, ...).
func (t Tokens) MarkLists() {
	for i := range t {
		switch t[i].Key {
		case "WITH":
			t.WithEnd(i)
		case "(":
			if name := i - 1; name > 0 && t[name].Name != "" && t.isNames(i) {
				behind := name - 1
				if t.Key(behind) == "AS" {
					behind--
				}
				if t.Key(behind) == ")" && t.IsQuery(t[behind].Mate) {
					t[name].Heads = true
				}
			}
		}
	}
}

// WithEnd returns the index behind the WITH list at i, -1 if it is none, and marks its
// names and queries:
//
//	WITH [RECURSIVE] name [(columns)] AS (query) [CYCLE columns RESTRICT], ...
func (t Tokens) WithEnd(i int) int {
	i++
	if t.Key(i) == "RECURSIVE" {
		i++
	}
	for {
		if i >= len(t) || t[i].Name == "" {
			return -1
		}
		name := i
		if i++; t.Key(i) == "(" {
			i = t[i].Mate + 1
		}
		if t.Key(i) != "AS" || t.Key(i+1) != "(" {
			return -1
		}
		t[name].Heads, t[i+1].Defines = true, t[name].Name
		i = t[i+1].Mate + 1
		if t.Key(i) == "CYCLE" {
			for i++; t.Key(i) != "RESTRICT"; i++ {
				if i >= len(t) || t[i].Name == "" && t[i].Key != "," {
					return -1
				}
			}
			i++
		}
		if t.Key(i) != "," {
			return i
		}
		i++
	}
}

// IsTable reports whether the name at i stands where a table may.
func (t Tokens) IsTable(i int) bool {
	switch t.Key(i - 1) {
	case "FROM", "JOIN", "STRAIGHT_JOIN", ",", "(":
		return t[i].Name != "" && t.Key(i+1) != "."
	}
	return false
}

// Alike reports whether a server may take two names for the same one: it may ignore case,
// and a Latin letter beyond ASCII may stand for any.
func Alike(a, b string) bool {
	for a != "" && b != "" {
		x, n := utf8.DecodeRuneInString(a)
		y, m := utf8.DecodeRuneInString(b)
		if unicode.ToUpper(x) != unicode.ToUpper(y) && !isDressed(x) && !isDressed(y) {
			return false
		}
		a, b = a[n:], b[m:]
	}
	return a == b
}

func isDressed(r rune) bool { return r >= utf8.RuneSelf && unicode.Is(unicode.Latin, r) }

// Selects reports whether the FROM at i is that of a SELECT, and not of a call.
func (t Tokens) Selects(i int) bool {
	for i--; i >= 0 && t.Key(i) != "("; i-- {
		switch t.Key(i) {
		case ")":
			i = t[i].Mate
		case "SELECT":
			return true
		}
	}
	return false
}

// IsOneOf reports whether a key is one of the alternatives, which | separates.
func IsOneOf(key, alternatives string) bool {
	for a := range strings.SplitSeq(alternatives, "|") {
		if key == a {
			return true
		}
	}
	return false
}
