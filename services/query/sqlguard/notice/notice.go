// Package notice finds what in an accepted statement runs and answers something else than was likely asked: from its text alone, and
// from the types of columns that a source's catalog has. It judges nothing: what it finds is a warning beside an answer. None may
// speak without cause.
package notice

import (
	"slices"

	"hub.internal/services/query/sqlguard/lexer"
	"hub.internal/services/query/sqlguard/notice/calls"
)

// A Notice says that an accepted statement may mean something else than it looks like.
// Rule is the name by which a program tells warnings apart, such as sql.null; Message is a sentence for people and models.
type Notice struct{ Rule, Message string }

// Notices returns what in an accepted statement reads otherwise here than on other databases, and the texts in double quotes
// that look like names and do not stand where an alias may: a text is what they are here, a name to others. Comparisons with
// NULL are noticed in a SELECT alone.
// It is asked of each accepted statement (Statement.Noticed of sqlguard) and touches no server. Each notice is told once,
// however often its cause is there; a text that cannot be cut into tokens has none.
func Notices(text string, isSelect bool) (notices []Notice, quoted []string) {
	t, err := lexer.Lex(text)
	if err != nil || t.Pair() != nil {
		return nil, nil
	}
	add := func(rule, message string) {
		if !slices.ContainsFunc(notices, func(n Notice) bool { return n.Rule == rule && n.Message == message }) {
			notices = append(notices, Notice{rule, message})
		}
	}
	if t.Key(0) == "SHOW" && (t.Key(1) == "TRIGGERS" || t.Key(2) == "TRIGGERS") {
		add("sql.hidden", noTriggers)
	}
	var labelled map[int]bool // found when the first text asks for them
	for i := range t {
		if isSelect {
			for _, m := range ofText {
				if message := m.At(t, i); message != "" {
					add(m.Rule, message)
				}
			}
		}
		switch key, next := t[i].Key, t.Key(i+1); {
		case nameOf(t, i) == "INFORMATION_SCHEMA" && next == "." && nameOf(t, i+2) == "TRIGGERS":
			add("sql.hidden", noTriggers)
		case nameOf(t, i) == "INFORMATION_SCHEMA" && next == "." && routineTables[nameOf(t, i+2)] && !namesSchema(t):
			add("sql.schema", "MySQL's own schema sys is among these, and cannot be read: add WHERE … <> 'sys' of the column that names the schema")
		// Two marks that touch are one operator: | | is a syntax error of its own.
		case key == "|" && next == "|" && t[i].End == t[i+1].Start && concatenates(t, i):
			add("sql.concat", "|| is OR here and answers 0 or 1: write CONCAT(a, b) to join texts")
		case key == "NULL" && (t.Key(i-1) == "=" || t.Key(i-1) == ">" && t.Key(i-2) == "<") && isSelect:
			add("sql.null", "a comparison with = NULL or <> NULL is never true: write IS NULL or IS NOT NULL")
		case key == "FULL" && next == "JOIN":
			add("sql.full_join", "FULL is taken for an alias before JOIN, so this is an inner join: write a LEFT JOIN, UNION, and a RIGHT JOIN")
		// Whether such a text is the name of a column, the reader asks the server's list of columns (mysql/statements).
		case t[i].Quoted && t[i].Text[0] == '"' && looksLikeName(t[i].Text[1:len(t[i].Text)-1]) && !aliased(t, i):
			if labelled == nil {
				labelled = calls.Labels(t)
			}
			if labelled[i] {
				continue
			}
			quoted = append(quoted, t[i].Text[1:len(t[i].Text)-1])
		}
	}
	return notices, quoted
}

// noTriggers is the message of sql.hidden: servers show triggers to an account with the right TRIGGER alone, which a reader
// lacks.
const noTriggers = "triggers are not shown to an account that may only read: no rows does not say that there are none"

// routineTables are those of information_schema in which MySQL shows its schema sys to any account.
var routineTables = lexer.WordSet(`ROUTINES PARAMETERS VIEW_TABLE_USAGE VIEW_ROUTINE_USAGE`)

// namesSchema reports whether a text has one of the columns that tell a schema.
func namesSchema(t lexer.Tokens) bool {
	return slices.ContainsFunc(t, func(one lexer.Token) bool {
		return slices.Contains([]string{"ROUTINE_SCHEMA", "SPECIFIC_SCHEMA", "VIEW_SCHEMA", "TABLE_SCHEMA"}, one.Name)
	})
}

// nameOf is the name at i, in upper case; empty past the end.
func nameOf(t lexer.Tokens, i int) string {
	if i >= len(t) {
		return ""
	}
	return t[i].Name
}

// concatenates reports whether the || at i looks as if it joined texts: one beside it, or two names that nothing compares.
// a || b joins texts in PostgreSQL, Oracle and SQLite. It is told of first_name || ' ' || last_name, and not of a = 1 || b
// = 2, where || is the OR that it is meant to be.
func concatenates(t lexer.Tokens, i int) bool {
	if i == 0 || i+2 >= len(t) {
		return false
	}
	left, right := t[i-1], t[i+2]
	if left.Quoted && (i < 2 || !compares(t, i-2)) || right.Quoted && !compares(t, i+3) {
		return true
	}
	behind := i + 3
	if t.Key(behind) == "." {
		behind += 2
	}
	before := i - 2
	if t.Key(before) == "." {
		before -= 2
	}
	return left.Name != "" && right.Name != "" && right.Key != "NOT" && right.Key != "EXISTS" && t.Key(behind) != "(" &&
		!compares(t, behind) && !compares(t, before)
}

// compares reports whether an operator of a condition stands at i, by which a value beside || is part of one.
func compares(t lexer.Tokens, i int) bool {
	return lexer.IsOneOf(t.Key(i), "=|<|>|!|IS|IN|LIKE|NOT|BETWEEN|REGEXP|RLIKE")
}

// aliased reports whether the text at i is an alias: it stands behind AS, a name, a parenthesis or a literal.
// SELECT name "Brand" FROM brand is no mistake: an alias may stand in double quotes.
func aliased(t lexer.Tokens, i int) bool {
	if i == 0 {
		return false
	}
	switch before := t[i-1]; {
	case before.Key == "AS", before.Key == ")", before.Quoted, before.Digits:
		return true
	case before.Name != "":
		return before.Key == "" || !lexer.Nameless[before.Key]
	}
	return false
}

// looksLikeName reports whether a text could be a column's name: up to 64 bytes of what an unquoted name has, and of dots. With $ paths
// of JSON begin.
func looksLikeName(text string) bool {
	if text == "" || len(text) > 64 || text[0] == '$' || lexer.IsDigit(text[0]) {
		return false
	}
	for i := range len(text) {
		if !lexer.IsIdent(text[i]) && text[i] != '.' {
			return false
		}
	}
	return true
}
