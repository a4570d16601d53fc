package sqlguard

import (
	"slices"
	"strconv"
	"strings"

	"hub.internal/services/query/sqlguard/lexer"
)

// Forms that bring servers down although each of their parts is in order. The crash
// fuzzer finds them; what it found stands in testdata/cases-more.tsv.

// checkQualified refuses a column with its schema in front beside USING or NATURAL:
// MariaDB 10.11.19 looks such a column up through a null pointer when the schema is
// unknown, and the whole server goes down. SELECT rights are enough for that.
func checkQualified(t lexer.Tokens) error {
	var joins, qualified bool
	for i := range t {
		switch t[i].Key {
		case "USING":
			joins = joins || t.Key(i+1) == "("
		case "NATURAL":
			joins = true
		case ".":
			qualified = qualified || t.Key(i+2) == "."
		}
	}
	if joins && qualified {
		return lexer.Refuse("sql.qualified", "a column with its schema in front beside USING or NATURAL crashes some "+
			"servers: give the table an alias and write alias.column")
	}
	return nil
}

// checkNullSafe refuses <=> in a statement with JSON_EXTRACT: MariaDB 10.11.19 compares a
// text of unknown length with a JSON_EXTRACT that is NULL through a null pointer.
func checkNullSafe(t lexer.Tokens) error {
	if !t.Find("JSON_EXTRACT") {
		return nil
	}
	for i := range t {
		if t[i].Key == "<" && t.Key(i+1) == "=" && t.Key(i+2) == ">" {
			return lexer.Refuse("sql.crash", "<=> beside JSON_EXTRACT() crashes some servers: write = and IS NULL, or JSON_VALUE()")
		}
	}
	return nil
}

// maxFrame is the greatest distance of rows in a window's frame.
const maxFrame = 1_000_000

// checkFrame refuses the bound of a ROWS frame at i, PRECEDING or FOLLOWING, that is not a
// plain number up to maxFrame: MariaDB counts the rows one by one beyond the end of them
// all, and neither a time limit nor KILL ends that.
func checkFrame(t lexer.Tokens, i int) error {
	if t[i].Key != "PRECEDING" && t[i].Key != "FOLLOWING" || t.Key(i-1) == "UNBOUNDED" {
		return nil
	}
	if i > 0 && t[i-1].Digits {
		if n, err := strconv.Atoi(t[i-1].Text); err == nil && n <= maxFrame {
			return nil
		}
	}
	for j := i - 1; j >= 0 && t[j].Key != "OVER" && t[j].Key != "WINDOW"; j-- {
		if t[j].Key == "ROWS" {
			return lexer.Refuse("sql.frame", "a ROWS frame reaches %d rows at most, in plain digits: write UNBOUNDED %s for "+
				"all", maxFrame, t[i].Key)
		}
	}
	return nil
}

// checkForm refuses the call at i of a function that is on the list if its arguments are of
// a kind that brings servers down.
func (g *Guard) checkForm(t lexer.Tokens, i int) error {
	if t[i].Key == ")" && t.Key(t[i].Mate-1) == "JSON_TABLE" { // at its end: what stands in it is refused for itself first
		return checkDocument(t, t.Arguments(t[i].Mate)[0])
	}
	if t.Key(i+1) != "(" {
		return checkFrame(t, i)
	}
	switch t[i].Key {
	case "JSON_OBJECTAGG":
		return g.checkKey(t, t.Arguments(i + 1)[0])
	case "PERCENTILE_CONT", "PERCENTILE_DISC":
		return checkFraction(t, t.Arguments(i + 1)[0])
	case "AGAINST":
		return checkWords(t, i+1)
	case "REPLACE":
		if args := t.Arguments(i + 1); len(args) == 3 {
			return checkReplacement(t, args[2])
		}
	}
	return nil
}

// writers are functions of JSON that hand out a text which stays theirs.
var writers = lexer.WordSet(`JSON_MERGE JSON_MERGE_PATCH JSON_MERGE_PRESERVE JSON_SET JSON_INSERT JSON_REPLACE JSON_REMOVE JSON_ARRAY_APPEND
	JSON_ARRAY_INSERT`)

// checkReplacement refuses a replacement of REPLACE that a column is in, beside a function of JSON that writes: MariaDB 10.11.19
// replaces in the text that such a function holds, and goes down when the replacement is that same text, by way of a derived table.
func checkReplacement(t lexer.Tokens, with lexer.Argument) error {
	columns := false
	for j := with.From; j < with.To; j++ {
		columns = columns || t[j].Name != "" && t.Key(j+1) != "("
	}
	if !columns {
		return nil
	}
	for i := range t {
		if writers[t[i].Key] && t.Key(i+1) == "(" {
			return lexer.Refuse("sql.crash", "a column in the replacement of REPLACE() beside %s() crashes some servers: write a literal, or "+
				"CONCAT() "+
				"and SUBSTRING_INDEX() in place of REPLACE()", t[i].Key)
		}
	}
	return nil
}

// checkKey refuses a key of JSON_OBJECTAGG that is neither a column, a literal nor made by
// one function of text, date or cast: MariaDB 10.11.19 writes a key that is NULL through a
// null pointer when a comparison of rows has made it, and SELECT or NULLIF hand that on.
func (g *Guard) checkKey(t lexer.Tokens, key lexer.Argument) error {
	if isColumn(t, key) {
		return nil
	}
	if key.To-key.From > 1 && t.Key(key.From+1) == "(" && t[key.From+1].Mate == key.To-1 {
		switch g.functions[t[key.From].Key].family {
		case "text", "date", "cast":
			return nil
		}
	}
	return lexer.Refuse("sql.crash", "a computed key of JSON_OBJECTAGG() crashes some servers: write a column, or CAST(key AS CHAR)")
}

// isColumn reports whether an argument is a column, with or without its table, or a literal.
func isColumn(t lexer.Tokens, a lexer.Argument) bool {
	for j := a.From; j < a.To; j++ {
		isName := t[j].Name != "" || t[j].Quoted || t[j].Digits
		if (j-a.From)%2 == 0 && !isName || (j-a.From)%2 == 1 && t.Key(j) != "." {
			return false
		}
	}
	return (a.To-a.From)%2 == 1
}

// checkFraction refuses a percentile that is no plain number from 0 to 1: MariaDB 10.11.19
// looks beyond the rows of text when it is greater.
func checkFraction(t lexer.Tokens, a lexer.Argument) error {
	if a.To-a.From == 1 {
		whole, decimals, _ := strings.Cut(t[a.From].Text, ".")
		switch {
		case strings.Trim(decimals, "0123456789") != "":
		case whole == "0", whole == "" && decimals != "", whole == "1" && strings.Trim(decimals, "0") == "":
			return nil
		}
	}
	return lexer.Refuse("sql.crash", "a percentile that is not a plain number from 0 to 1 crashes some servers: write 0.5")
}

// checkDocument refuses a document of JSON_TABLE that is computed: MariaDB 10.11.19 computes it when it begins to sort
// the table, and goes down when the statement is stopped meanwhile. A column of a derived table or of WITH may be computed too.
func checkDocument(t lexer.Tokens, a lexer.Argument) error {
	if !isColumn(t, a) {
		return lexer.Refuse("sql.crash", "a computed document of JSON_TABLE() crashes some servers: write a literal or a column of a table, "+
			"and name the part of it by the path, as in JSON_TABLE(b.meta, '$.tags[*]' ...)")
	}
	isText := a.To-a.From == 1 && (t[a.From].Quoted || t[a.From].Digits)
	if !isText && hasDerived(t) {
		return lexer.Refuse("sql.crash", "a column as the document of JSON_TABLE() beside WITH or a subquery in FROM crashes some servers: "+
			"use JSON_TABLE() in a statement without them, on a column of a table")
	}
	return nil
}

// hasDerived reports whether there may be a table that a query makes: WITH, or a query in parentheses that does not stand
// where only a value can.
func hasDerived(t lexer.Tokens) bool {
	values := []string{"SELECT", "WHERE", "ON", "HAVING", "AND", "OR", "NOT", "IN", "EXISTS", "ALL", "ANY", "SOME",
		"=", "<", ">", "<=", ">=", "<>", "!=", "+", "-", "*", "/"}
	for i := range t {
		if t[i].Key == "WITH" && t.Key(i+1) != "ROLLUP" {
			return true
		}
		if t[i].Key != "(" || i == 0 || t.Key(i-1) == "(" || slices.Contains(values, t.Key(i-1)) {
			continue
		}
		inner := i + 1
		for t.Key(inner) == "(" {
			inner++
		}
		if k := t.Key(inner); k == "SELECT" || k == "VALUES" {
			return true
		}
	}
	return false
}

// checkWords refuses words of a full-text search, in the parenthesis at i, that a call
// makes: MariaDB searches for a megabyte of them beyond any limit, and KILL does not end it.
func checkWords(t lexer.Tokens, i int) error {
	if t[i+1 : t[i].Mate].Find("(") {
		return lexer.Refuse("sql.size", "the words behind AGAINST have to be a literal: write AGAINST ('word word' IN BOOLEAN MODE)")
	}
	return nil
}
