package conditions

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"hub.internal/services/query/sqlguard/lexer"
	"hub.internal/services/query/sqlguard/notice/dates"
)

// mostBeside is how many conditions behind one are held against it: a statement may have a thousand.
const mostBeside = 20

// contradicts finds conditions side by side that nothing meets: other values of one column, and an upper end below the lower.
// It is told of rating BETWEEN 5 AND 1, status = 'A' AND status = 'B', and x >= '2026-07-01' AND x < '2026-06-01'. Only
// what AND alone joins to the condition is looked at: an OR ends the row of conditions, and so does what is no plain
// comparison.
func contradicts(t lexer.Tokens, i int) string {
	if t.Key(i) == "BETWEEN" && t.Key(i-1) != "NOT" && t.Key(i+2) == "AND" && i+3 < len(t) && Ends(t, i+4) {
		if order, known := compareLiterals(t[i+1], t[i+3]); known && order > 0 {
			return "BETWEEN from more to less is never true: write the smaller end first"
		}
	}
	if !lexer.IsOneOf(t.Key(i-1), "WHERE|AND|OR|ON|HAVING|(|WHEN") {
		return ""
	}
	one, ok := conditionAt(t, i)
	for next, beside := one, 0; ok && t.Key(next.end) == "AND" && beside < mostBeside; beside++ {
		if next, ok = conditionAt(t, next.end+1); !ok || next.column != one.column {
			continue
		}
		switch order, known := compareLiterals(t[one.value], t[next.value]); {
		case one.op == "=" && next.op == "=" && (known && order != 0 || !known && differ(t[one.value], t[next.value])):
			return "a column does not equal two values at once: write IN (…), or OR"
		case known && (apart(order, one.op, next.op) || apart(-order, next.op, one.op)):
			return fmt.Sprintf("nothing is %s %.40s and %s %.40s at once: look at the order of the two ends", one.op, t[one.value].Text,
				next.op, t[next.value].Text)
		}
	}
	return ""
}

// eitherDiffers finds a column that is to differ from one value or from another: each value does.
// It is told of status <> 'A' OR status <> 'B', and not where AND joins either to a third condition.
func eitherDiffers(t lexer.Tokens, i int) string {
	if !lexer.IsOneOf(t.Key(i-1), "WHERE|OR|ON|HAVING|(|WHEN") {
		return ""
	}
	differs := func(c condition) bool { return c.op == "<>" || c.op == "!=" }
	one, ok := conditionAt(t, i)
	ok = ok && differs(one)
	for next, beside := one, 0; ok && t.Key(next.end) == "OR" && beside < mostBeside; beside++ {
		if next, ok = conditionAt(t, next.end+1); !ok || t.Key(next.end) == "AND" || next.column != one.column || !differs(next) {
			continue
		}
		if order, known := compareLiterals(t[one.value], t[next.value]); known && order != 0 || !known && differ(t[one.value], t[next.value]) {
			return fmt.Sprintf("each value is <> %.40s or <> %.40s, so that the condition is true of all rows but NULL: write AND, or NOT IN (…)",
				t[one.value].Text, t[next.value].Text)
		}
	}
	return ""
}

// condition compares a column with a literal.
// The column is named as it is written, with its table: a.x and x count as two columns, so that a pair of one column may
// pass in silence.
type condition struct {
	column, op string
	value, end int // the literal, and what is behind it
}

// conditionAt is the condition that begins at i.
func conditionAt(t lexer.Tokens, i int) (c condition, ok bool) {
	if t.Name(i) == "" || lexer.Nameless[t.Key(i)] {
		return c, false
	}
	c.column = t.Name(i)
	at := i + 1
	if t.Key(at) == "." {
		c.column += "." + t.Name(at+1)
		at += 2
	}
	c.value, ok = t.Comparison(at)
	for ; at < c.value; at++ {
		c.op += t.Key(at)
	}
	if lexer.IsOneOf(t.Key(c.value), "DATE|TIMESTAMP") {
		c.value++
	}
	c.end = c.value + 1
	return c, ok && c.value < len(t) && (t[c.value].Digits || t[c.value].Quoted) && Ends(t, c.end)
}

// apart reports whether nothing is at once behind one value and before another, where order is that of the first to the second.
// Asked in both orders it covers x > 5 AND x < 3 and x < 3 AND x > 5. Two ends that touch, x >= 3 AND x <= 3, have one
// value.
func apart(order int, lower, upper string) bool {
	if !lexer.IsOneOf(lower, ">|>=|=") || !lexer.IsOneOf(upper, "<|<=|=") || lower == "=" && upper == "=" {
		return false
	}
	return order > 0 || order == 0 && (lower == ">" || upper == "<")
}

// Ends reports whether a condition ends before i.
func Ends(t lexer.Tokens, i int) bool {
	return i >= len(t) || lexer.EndsFrom[t.Key(i)] || lexer.IsOneOf(t.Key(i), "AND|OR|THEN|,")
}

// differ reports whether two texts of ASCII are not equal, whatever the letters' case.
// Most collations ignore case and blanks at the end ('a' = 'A '), and may take letters beyond ASCII for one
// another.
func differ(a, b lexer.Token) bool {
	if !a.Quoted || !b.Quoted {
		return false
	}
	x, y := strings.TrimRight(a.Text[1:len(a.Text)-1], " "), strings.TrimRight(b.Text[1:len(b.Text)-1], " ")
	return isASCII(x+y) && !strings.EqualFold(x, y)
}

// compareLiterals is the order of two numbers, two dates or two words of letters. It is unknown of other texts, which a column
// may hold as numbers, and whose order a collation decides.
func compareLiterals(a, b lexer.Token) (order int, known bool) {
	if a.Digits && b.Digits {
		x, errX := strconv.ParseFloat(a.Text, 64)
		y, errY := strconv.ParseFloat(b.Text, 64)
		return cmp.Compare(x, y), errX == nil && errY == nil
	}
	if !a.Quoted || !b.Quoted {
		return 0, false
	}
	x, y := a.Text[1:len(a.Text)-1], b.Text[1:len(b.Text)-1]
	if from, isDate := dates.Parse(x); isDate {
		to, isDate := dates.Parse(y)
		return from.Compare(to), isDate
	}
	isWord := func(s string) bool {
		return s != "" && strings.Trim(strings.ToUpper(s), "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
	}
	return strings.Compare(strings.ToUpper(x), strings.ToUpper(y)), isWord(x) && isWord(y)
}

// isASCII reports whether a text has ASCII alone.
func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}
