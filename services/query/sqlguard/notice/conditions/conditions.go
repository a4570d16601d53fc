// Package conditions finds conditions that are never true, always true, or compare something else than is written, as their text alone
// shows it. None may speak without cause.
package conditions

import (
	"fmt"

	"hub.internal/services/query/sqlguard/lexer"
)

// Misleading are what package notice asks at each token of a SELECT: At says what is wrong there, "" for nothing.
var Misleading = []struct {
	Rule string
	At   func(t lexer.Tokens, i int) string
}{
	{"sql.null", neverTrue},
	{"sql.chain", chained},
	{"sql.or", alwaysTrue},
	{"sql.or", eitherDiffers},
	{"sql.never", contradicts},
}

// neverTrue finds NULL in a comparison, in a list and in CASE, where nothing equals it.
// NULL is equal to nothing in three-valued logic: a comparison with it is NULL, which WHERE takes for false. x = NULL
// itself is told of in Notices; this is told of NULL = x, x LIKE NULL, CASE x WHEN NULL THEN, x IN (NULL) and x NOT IN (1,
// NULL).
func neverTrue(t lexer.Tokens, i int) string {
	switch key := t.Key(i); {
	case key == "NULL" && t.Key(i-1) == "WHEN" && t.Key(i+1) == "THEN":
		return "WHEN NULL is never met: write CASE WHEN x IS NULL THEN"
	case key == "LIKE" && t.Key(i+1) == "NULL":
		return "LIKE NULL is never true: write IS NULL"
	case key == "NULL" && t.Key(i-1) != "IS" && t.Key(i-1) != "NOT" && equals(t, i+1):
		return "a comparison of NULL with = or <> is never true: write IS NULL or IS NOT NULL"
	case key == "IN" && t.Key(i+1) == "(" && !t.IsQuery(i+1):
		list := t.Arguments(i + 1)
		nulls := 0
		for _, a := range list {
			if a.To-a.From == 1 && t.Key(a.From) == "NULL" {
				nulls++
			}
		}
		switch {
		// x NOT IN (1, NULL) is x <> 1 AND x <> NULL, which is false or NULL. Without NOT, NULL beside other values does no
		// harm.
		case nulls > 0 && t.Key(i-1) == "NOT":
			return "NOT IN is never true where NULL is in the list: leave NULL out, and add AND x IS NOT NULL"
		case nulls == len(list):
			return "IN (NULL) is never true: write IS NULL"
		}
	}
	return ""
}

// equals reports whether = or <> stands at i.
func equals(t lexer.Tokens, i int) bool {
	return t.Key(i) == "=" || t.Key(i) == "<" && t.Key(i+1) == ">" || t.Key(i) == "!" && t.Key(i+1) == "="
}

// chained finds a < b < c, which compares 0 or 1 with c.
// It is told of WHERE 1 <= rating <= 3. Python reads that as a range; SQL compares 1 or 0 with 3, which is always true.
func chained(t lexer.Tokens, i int) string {
	if lexer.IsOneOf(t.Key(i-1), "=|<|>|!|-") {
		return ""
	}
	next, is := t.Comparison(i)
	if !is {
		return ""
	}
	end := operand(t, next)
	if _, again := t.Comparison(end); end == 0 || !again {
		return ""
	}
	return "a < b < c compares the 0 or 1 of a < b with c: write a < b AND b < c, or b BETWEEN a AND c"
}

// alwaysTrue finds OR with a literal alone behind it.
// It is told of status_code = '1206' OR '1208', which is true for each row, and not of OR 5 < x, OR NULL or OR 0.
func alwaysTrue(t lexer.Tokens, i int) string {
	if t.Key(i) != "OR" || i+1 >= len(t) || !t[i+1].Digits && !t[i+1].Quoted || t[i+1].Text == "0" || !Ends(t, i+2) {
		return ""
	}
	return fmt.Sprintf("OR %.40s compares nothing, and is true or false for all rows alike: write x IN (a, b), or x = a OR x = b", t[i+1].Text)
}

// operand is behind the value that begins at i: names, numbers, texts and calls with + - * / % between them; 0 where none begins.
// It reads no further than the first word or mark that no value has, such as AND, so that it costs as much as the value is
// long.
func operand(t lexer.Tokens, i int) int {
	for {
		if t.Key(i) == "-" || t.Key(i) == "+" {
			i++
		}
		switch {
		case i >= len(t):
			return 0
		case t.Key(i) == "(":
			i = t[i].Mate + 1
		case t[i].Digits || t[i].Quoted:
			i++
		case t[i].Name != "" && !lexer.Nameless[t[i].Key]:
			for i++; t.Key(i) == "." && i+1 < len(t); i += 2 {
			}
			if t.Key(i) == "(" {
				i = t[i].Mate + 1
			}
		default:
			return 0
		}
		if !lexer.IsOneOf(t.Key(i), "+|-|*|/|%|DIV|MOD") {
			return i
		}
		i++
	}
}
