package lexer

import "strings"

// ClauseWords end a list of what is selected, or of what is grouped by.
var ClauseWords = WordSet(`FROM WHERE GROUP HAVING ORDER WINDOW LIMIT FETCH PROCEDURE UNION EXCEPT INTERSECT FOR INTO WITH`)

// Nameless are words behind which no alias stands.
var Nameless = WordSet(`SELECT DISTINCT ALL WHERE AND OR XOR NOT ON HAVING BY LIKE IN BETWEEN WHEN THEN ELSE CASE REGEXP RLIKE DIV MOD
	IS ANY SOME LIMIT FROM JOIN INTERVAL BINARY SEPARATOR ESCAPE COLLATE`)

// EndsFrom are the clauses behind FROM, and what ends a query.
var EndsFrom = WordSet(`WHERE GROUP HAVING ORDER WINDOW LIMIT FETCH PROCEDURE UNION EXCEPT INTERSECT FOR ) INTO`)

// behindValue are words and marks behind a value.
var behindValue = WordSet(`AND OR XOR THEN ELSE END WHEN AS ON JOIN LEFT RIGHT INNER CROSS NATURAL STRAIGHT_JOIN ASC DESC ,`)

// EndsValue reports whether nothing stands at i that could be part of a value before.
func (t Tokens) EndsValue(i int) bool {
	return i >= len(t) || behindValue[t.Key(i)] || EndsFrom[t.Key(i)]
}

// Clause is where a clause of the query begins whose SELECT is at i, and where it ends; to is 0 where there is none.
// Words within parentheses are another query's or a call's, and are skipped. Of GROUP and ORDER the first token is BY.
func (t Tokens) Clause(i int, word string) (from, to int) {
	for j := i + 1; j < len(t) && t.Key(j) != ")"; j++ {
		switch {
		case t.Key(j) == "(":
			j = t[j].Mate
		case from > 0 && ClauseWords[t.Key(j)]:
			return from, j
		case t.Key(j) == word && from == 0:
			from = j + 1
		case IsOneOf(t.Key(j), "UNION|EXCEPT|INTERSECT"):
			return 0, 0
		}
		to = j + 1
	}
	if from == 0 {
		return 0, 0
	}
	return from, to
}

// Split are the parts of [from, to) between its commas.
func (t Tokens) Split(from, to int) (out []Argument) {
	start := from
	for j := from; j <= to; j++ {
		switch {
		case j == to || t.Key(j) == ",":
			out = append(out, Argument{From: start, To: j})
			start = j + 1
		case t.Key(j) == "(":
			j = t[j].Mate
		}
	}
	return out
}

// Selected is what the SELECT at i selects.
func (t Tokens) Selected(i int) []Argument {
	end := i + 1
	for ; end < len(t) && t.Key(end) != ")" && !ClauseWords[t.Key(end)]; end++ {
		if t.Key(end) == "(" {
			end = t[end].Mate
		}
	}
	return t.Split(i+1, end)
}

// Comparison is behind the operator at i, if that compares.
// An operator of two marks is two tokens here, which belong together only when they touch. The > of JSON's -> and ->> is none, nor are
// those of the shifts >> and <<.
func (t Tokens) Comparison(i int) (end int, is bool) {
	if i > 0 && IsOneOf(t.Key(i-1), "=|<|>|!|-") && t[i].Start == t[i-1].End {
		return i + 1, false // within an operator
	}
	for end = i; IsOneOf(t.Key(end), "=|<|>|!") && (end == i || t[end].Start == t[end-1].End); end++ {
	}
	var written strings.Builder
	for j := i; j < end; j++ {
		written.WriteString(t.Key(j))
	}
	switch written.String() {
	case "=", "<", ">", "<=", ">=", "<>", "!=":
		return end, true
	}
	return end, false
}
