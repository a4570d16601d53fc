// Package calls finds calls of functions, operators, and forms of CASE, ORDER BY and UNION, that run and answer something else than was
// likely asked, as their text alone shows it. None may speak without cause.
package calls

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"hub.internal/services/query/sqlguard/lexer"
)

// Misleading are what package notice asks at each token of a SELECT: At says what is wrong there, "" for nothing.
var Misleading = []struct {
	Rule string
	At   func(t lexer.Tokens, i int) string
}{
	{"sql.frame", endsAtTheRow},
	{"sql.count", countsAll},
	{"sql.operator", powerOrXOR},
	{"sql.operator", startsAtOne},
	{"sql.operator", withoutWildcard},
	{"sql.operator", losesBackslash},
	{"sql.operator", formatOfDates},
	{"sql.operator", weekOfYear},
	{"sql.operator", weekOfTwoYears},
	{"sql.operator", setWithBlanks},
	{"sql.date", milliseconds},
	{"sql.else", elseIsAValue},
	{"sql.case", caseOfConditions},
	{"sql.quotes", ordersByText},
	{"sql.order", sortsTexts},
	{"sql.union", unionOfTotals},
}

// endsAtTheRow finds LAST_VALUE over an order without a frame.
// It is told of LAST_VALUE(x) OVER (ORDER BY y): with an ORDER BY the frame ends at the current row by default, so that the
// function answers each row's own value. Without ORDER BY the frame is the whole partition, and with ROWS or RANGE the
// author has said what it is: of both nothing is said, nor of a window that is named elsewhere, as in OVER w.
func endsAtTheRow(t lexer.Tokens, i int) string {
	if t.Key(i) != "LAST_VALUE" || t.Key(i+1) != "(" {
		return ""
	}
	// Only parentheses directly behind OVER are read; those within them, as of a function in ORDER BY, are skipped.
	over := t[i+1].Mate + 1
	if t.Key(over) != "OVER" || t.Key(over+1) != "(" {
		return ""
	}
	ordered := false
	for j := over + 2; j < t[over+1].Mate; j++ {
		switch t.Key(j) {
		case "(":
			j = t[j].Mate
		case "ORDER":
			ordered = true
		case "ROWS", "RANGE":
			return ""
		}
	}
	if !ordered {
		return ""
	}
	return "LAST_VALUE sees the rows up to the current one: add ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
}

// powerOrXOR finds the operator that is a power elsewhere.
// It is told of SELECT 1.1 ^ 12, and not of SELECT flags & 3 ^ 1. A || anywhere silences it as well, since its marks are
// two |.
func powerOrXOR(t lexer.Tokens, i int) string {
	if t.Key(i) != "^" || t.Find("&") || t.Find("|") || t.Find("~") { // where other bits are computed, so are these
		return ""
	}
	return "^ is XOR of bits here, and no power: write POW(x, y)"
}

// startsAtOne finds a place in a text before its first character.
// It is told of SUBSTRING(name, 0, 3) and LEFT(name, -1), and not of SUBSTRING(name, -3), which counts from the end of the
// text.
func startsAtOne(t lexer.Tokens, i int) string {
	name := t.Key(i)
	if t.Key(i+1) != "(" {
		return ""
	}
	list := t.Arguments(i + 1)
	if len(list) < 2 {
		return ""
	}
	second := list[1]
	switch {
	case lexer.IsOneOf(name, "SUBSTRING|SUBSTR|MID") && second.To-second.From == 1 && t[second.From].Text == "0":
		return name + " counts from 1, and answers '' from 0"
	case lexer.IsOneOf(name, "LEFT|RIGHT") && len(list) == 2 && second.To-second.From == 2 && t.Key(second.From) == "-":
		return name + " of a negative number is '': write CHAR_LENGTH(x) - n"
	}
	return ""
}

// withoutWildcard finds LIKE of a text that has none of its wildcards.
// It is told of name LIKE 'beauty', and not of name LIKE 'beauty%'. A backslash silences it: who writes one may want a % or
// _ itself.
func withoutWildcard(t lexer.Tokens, i int) string {
	if t.Key(i) != "LIKE" || i+1 >= len(t) || !t[i+1].Quoted || strings.ContainsAny(t[i+1].Text, `%_\`) {
		return ""
	}
	// Servers join two texts that stand side by side: the wildcard may be in the second one.
	if t.Key(i+2) == "(" || i+2 < len(t) && t[i+2].Quoted {
		return ""
	}
	return "LIKE without % or _ is =: write LIKE '%text%' to find it within, where * is a character like others"
}

// losesBackslash finds a class such as \d in the pattern of a regular expression that is written with one backslash.
// It is told of name REGEXP '\d+', which servers read as 'd+', and not of name REGEXP '\\d+'. The pattern of REGEXP_LIKE,
// REGEXP_REPLACE and the like is their second argument.
func losesBackslash(t lexer.Tokens, i int) string {
	at := i + 1
	switch key := t.Key(i); {
	case key == "REGEXP" || key == "RLIKE":
	case strings.HasPrefix(key, "REGEXP_") && t.Key(i+1) == "(":
		list := t.Arguments(i + 1)
		if len(list) < 2 || list[1].To-list[1].From != 1 {
			return ""
		}
		at = list[1].From
	default:
		return ""
	}
	if at >= len(t) || !t[at].Quoted {
		return ""
	}
	for text, j := t[at].Text, 0; j < len(text)-1; j++ {
		if text[j] != '\\' {
			continue
		}
		// A backslash and what is behind it are one escape: stepping over both leaves '\\d' alone.
		if j++; strings.IndexByte(`dDwWsSbB.+*?()[]{}|^$`, text[j]) >= 0 {
			return fmt.Sprintf("a text loses a backslash, so that the pattern has '%c' for '\\%[1]c': write '\\\\%[1]c'", text[j])
		}
	}
	return ""
}

// months are where minutes belong.
var months = regexp.MustCompile(`%[Hhk]:%m|%m:%s`)

// halfDays are hours of a clock that has twelve of them.
var halfDays = regexp.MustCompile(`%[hIl]`)

// formatOfDates finds a format without %, one with months where minutes belong, and one that makes one text of times a year or half
// a day apart.
// It is told of DATE_FORMAT(start_at, 'YYYY-MM'), as Oracle and PostgreSQL would have it, of '%H:%m:%s', '%Y-%v' and '%h:%i'; not of
// '%Y-%m-%d %H:%i', '%x-%v' or '%h:%i %p'.
func formatOfDates(t lexer.Tokens, i int) string {
	if !lexer.IsOneOf(t.Key(i), "DATE_FORMAT|TIME_FORMAT|STR_TO_DATE") || t.Key(i+1) != "(" {
		return ""
	}
	list := t.Arguments(i + 1)
	if len(list) < 2 || list[1].To-list[1].From != 1 || !t[list[1].From].Quoted {
		return ""
	}
	switch format := t[list[1].From].Text; {
	case !strings.Contains(format, "%"):
		return "a format without % is the same text for each date: write '%Y-%m-%d'"
	case months.MatchString(format):
		return "%m is the month: minutes are %i, as in '%H:%i:%s'"
	case strings.Contains(format, "%v") && strings.Contains(format, "%Y"):
		return "%v is the week by ISO 8601, whose year may be another than %Y in the days around New Year: write '%x-%v'"
	case halfDays.MatchString(format) && !strings.Contains(format, "%p"):
		return "%h and %l go to 12, and 10 is in the morning as in the evening: write %H, or add %p"
	}
	return ""
}

// weekOfYear finds a week without its mode.
// It is told of WEEK(start_at) and YEARWEEK(start_at), and not of WEEK(start_at, 3): mode 3 is the ISO 8601 week.
func weekOfYear(t lexer.Tokens, i int) string {
	if !lexer.IsOneOf(t.Key(i), "WEEK|YEARWEEK") || t.Key(i+1) != "(" || len(t.Arguments(i+1)) != 1 {
		return ""
	}
	return t.Key(i) + " begins weeks on Sunday, and counts the days before the first of them as week 0 or the last year's: " +
		"write YEARWEEK(date, 3) for weeks by ISO 8601, whose year it has as well"
}

// weekOfTwoYears finds the ISO 8601 week beside a year of the calendar: 2025-01-01 and 2025-12-30 are both in a week 1.
// It is told of GROUP BY YEAR(start_at), WEEK(start_at, 3), and not of YEAR(start_at), WEEK(start_at, 1), which calls the first days
// of a year week 0, nor of the year of another date.
func weekOfTwoYears(t lexer.Tokens, i int) string {
	if !lexer.IsOneOf(t.Key(i), "WEEK|WEEKOFYEAR") || t.Key(i+1) != "(" {
		return ""
	}
	list := t.Arguments(i + 1)
	if t.Key(i) == "WEEK" && (len(list) != 2 || t.Integer(list[1]) != 3) {
		return ""
	}
	for j := range t {
		if t.Key(j) == "YEAR" && t.Key(j+1) == "(" && slices.EqualFunc(t[list[0].From:list[0].To], t[j+2:t[j+1].Mate],
			func(a, b lexer.Token) bool { return a.Text == b.Text }) {
			return "the first and the last days of a YEAR(date) may both be in a week 1: write YEARWEEK(date, 3) in place of YEAR and " + t.Key(i)
		}
	}
	return ""
}

// milliseconds finds FROM_UNIXTIME of a number that can only be milliseconds.
// It is told of FROM_UNIXTIME(1767225600000). The bound is the year 5138 in seconds, and 1973 in milliseconds, so that no
// time that a marketplace has is taken for the other one. A column is not told of: the text does not show what it holds.
func milliseconds(t lexer.Tokens, i int) string {
	if t.Key(i) != "FROM_UNIXTIME" || t.Key(i+1) != "(" {
		return ""
	}
	if list := t.Arguments(i + 1); t.Integer(list[0]) < 100_000_000_000 {
		return ""
	}
	return "FROM_UNIXTIME takes seconds, and answers NULL for milliseconds: divide them by 1000"
}

// countsAll finds COUNT of what is never NULL, or is so only where a column is.
// It is told of COUNT(status = 'DONE'), COUNT(IF(x > 3, 1, 0)) and COUNT(CASE WHEN x > 3 THEN 1 ELSE 0 END), and not of
// COUNT(x > 3 OR NULL), COUNT(IF(x > 3, 1, NULL)) or COUNT(DISTINCT x > 3).
func countsAll(t lexer.Tokens, i int) string {
	if t.Key(i) != "COUNT" || t.Key(i+1) != "(" {
		return ""
	}
	const words = "COUNT counts each value that is not NULL, 0 too: write SUM(condition), or COUNT(CASE WHEN condition THEN 1 END)"
	from, to := i+2, t[i+1].Mate
	switch {
	case t.Key(from) == "DISTINCT":
	case t.Key(from) == "IF" && t.Key(from+1) == "(" && t[from+1].Mate == to-1:
		if list := t.Arguments(from + 1); len(list) == 3 && isPlain(t, list[1]) && isPlain(t, list[2]) {
			return words
		}
	case t.Key(from) == "CASE" && t.Key(to-1) == "END" && t.Key(to-3) == "ELSE" && t[to-2].Digits:
		return words
	case compared(t, from, to):
		return words
	}
	return ""
}

// isPlain reports whether an argument is a number or a text.
func isPlain(t lexer.Tokens, a lexer.Argument) bool {
	return a.To-a.From == 1 && (t[a.From].Digits || t[a.From].Quoted)
}

// compared reports whether what stands in [from, to) is a comparison alone, without OR NULL.
func compared(t lexer.Tokens, from, to int) bool {
	found := false
	for i := from; i < to; i++ {
		switch t.Key(i) {
		case "(":
			i = t[i].Mate
		case "OR", "AND", "XOR", "CASE", "|", "&":
			return false
		case "IS":
			found = true // answers 0 or 1, never NULL
		}
		_, is := t.Comparison(i)
		found = found || is
	}
	return found
}
