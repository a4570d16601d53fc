package calls

import (
	"regexp"
	"slices"
	"strings"

	"hub.internal/services/query/sqlguard/lexer"
)

// setWithBlanks finds a list of FIND_IN_SET with a blank behind a comma, which is part of the member that it is before.
// It is told of FIND_IN_SET(status, 'DONE, SELECTED'), and not of 'DONE,SELECTED'.
func setWithBlanks(t lexer.Tokens, i int) string {
	if t.Key(i) != "FIND_IN_SET" || t.Key(i+1) != "(" {
		return ""
	}
	list := t.Arguments(i + 1)
	if len(list) != 2 || list[1].To-list[1].From != 1 || !t[list[1].From].Quoted || !strings.Contains(t[list[1].From].Text, ", ") {
		return ""
	}
	return "FIND_IN_SET parts its list at commas alone, and a blank behind one belongs to the next member: leave the blanks out"
}

// elseIsAValue finds a value for the rows that a condition leaves out, in an aggregate which takes it for one of the others.
// It is told of COUNT(DISTINCT IF(status = 'DONE', brand_id, 0)) and MIN(CASE WHEN kind = 'SPEND' THEN amount ELSE 0 END), and not of
// NULL in that place, of a condition with 1 and 0, which is a question of its own, nor of SUM and MAX.
func elseIsAValue(t lexer.Tokens, i int) string {
	if !lexer.IsOneOf(t.Key(i), "COUNT|MIN") || t.Key(i+1) != "(" {
		return ""
	}
	from, to, what := i+2, t[i+1].Mate, t.Key(i)
	switch distinct := t.Key(from) == "DISTINCT"; {
	case distinct && what == "COUNT":
		from, what = from+1, "COUNT(DISTINCT)"
	case distinct || what == "COUNT": // COUNT of all values is told of elsewhere
		return ""
	}
	switch {
	case t.Key(from) == "IF" && t.Key(from+1) == "(" && t[from+1].Mate == to-1:
		list := t.Arguments(from + 1)
		if len(list) == 3 && isOther(t, what, list[0], list[1]) && isEmpty(t, list[2].From, list[2].To) {
			return what + " takes the " + t[list[2].From].Text + " of all other rows for a value: write IF(condition, x, NULL)"
		}
	case t.Key(from) == "CASE" && t.Key(to-1) == "END" && t.Key(to-3) == "ELSE" && isEmpty(t, to-2, to-1):
		condition := from
		for j := from; j < to; j++ {
			switch t.Key(j) {
			case "WHEN":
				condition = j + 1
			case "THEN":
				if !isOther(t, what, lexer.Argument{From: condition, To: j}, lexer.Argument{From: j + 1, To: j + 2}) {
					return ""
				}
			}
		}
		return what + " takes the " + t[to-2].Text + " of ELSE for a value: leave ELSE out"
	}
	return ""
}

// isOther reports whether a value is a column's that its condition does not name: MIN(IF(x > 0, x, 0)) may well mean its 0.
func isOther(t lexer.Tokens, what string, condition, value lexer.Argument) bool {
	name := t.Name(value.From)
	if name == "" || lexer.IsOneOf(t.Key(value.From), "NULL|TRUE|FALSE") {
		return false
	}
	for j := condition.From; j < condition.To && what == "MIN"; j++ {
		if t.Name(j) == name {
			return false
		}
	}
	return true
}

// isEmpty reports whether what stands in [from, to) is 0 or an empty text.
func isEmpty(t lexer.Tokens, from, to int) bool {
	return to-from == 1 && (t[from].Digits && t[from].Text == "0" || t[from].Quoted && len(t[from].Text) == 2)
}

// caseOfConditions finds CASE x WHEN with a condition, whose 0 or 1 is compared with x.
// It is told of CASE status WHEN status = 'DONE' THEN 1 END, and not of CASE status WHEN 'DONE', nor of CASE TRUE WHEN x > 3, which asks
// for the first condition that is met.
func caseOfConditions(t lexer.Tokens, i int) string {
	if t.Key(i) != "CASE" || t.Name(i+1) == "" || lexer.IsOneOf(t.Key(i+1), "WHEN|TRUE|FALSE|NOT|CASE") {
		return ""
	}
	when := false
	for j := i + 1; j < len(t); j++ {
		switch key := t.Key(j); {
		case key == "(":
			j = t[j].Mate
		case key == "WHEN":
			when = true
		case lexer.IsOneOf(key, "THEN|CASE|END|)"):
			return ""
		case lexer.IsOneOf(key, "=|LIKE|IN|BETWEEN|IS|REGEXP|RLIKE") || lexer.IsOneOf(key, "<|>") && t.Key(j+1) != key && t.Key(j-1) != key &&
			t.Key(j-1) != "-":
			if !when { // the operand is a condition itself
				return ""
			}
			return "CASE x WHEN condition compares x with the 0 or 1 of the condition: write CASE WHEN condition THEN"
		}
	}
	return ""
}

// sortsTexts finds numbers and dates that are sorted, or of which the least or greatest is taken, as the texts that they have become.
// It is told of ORDER BY FORMAT(x, 0), of ORDER BY total where the list has FORMAT(SUM(x), 0) AS total, of MAX(FORMAT(x, 0)), and of
// DATE_FORMAT(x, '%d.%m.%Y') in such a place; not of '%Y-%m-%d', of the number itself, nor of a table's column.
func sortsTexts(t lexer.Tokens, i int) string {
	if lexer.IsOneOf(t.Key(i), "MIN|MAX") && t.Key(i+1) == "(" {
		if made, end := unsorted(t, i+2); end == t[i+1].Mate && end > 0 {
			return t.Key(i) + " of " + made + " is that of texts, in which '9' is behind '10': take that of the number or date itself"
		}
		return ""
	}
	if t.Key(i) != "BY" || t.Key(i-1) != "ORDER" {
		return ""
	}
	to := i + 1
	for ; to < len(t) && t.Key(to) != ")" && !lexer.ClauseWords[t.Key(to)] && !lexer.IsOneOf(t.Key(to), "SEPARATOR|ROWS|RANGE"); to++ {
		if t.Key(to) == "(" {
			to = t[to].Mate
		}
	}
	var items []lexer.Argument
	var named map[string]lexer.Argument // made when the first name asks for it
	for _, by := range t.Split(i+1, to) {
		if lexer.IsOneOf(t.Key(by.To-1), "ASC|DESC") {
			by.To--
		}
		if by.To-by.From == 1 {
			if named == nil {
				items = listOf(t, i-1)
				named = aliasesOf(t, items)
			}
			if n := t.Integer(by); n >= 1 && n <= uint64(len(items)) {
				by, _ = withoutAlias(t, items[n-1])
			} else if item, has := named[t.Name(by.From)]; has {
				by = item
			}
		}
		if made, end := unsorted(t, by.From); end == by.To && end > 0 {
			return "ORDER BY of " + made + " sorts texts, in which '9' is behind '10', and the day before the year: sort by the number or date " +
				"itself"
		}
	}
	return ""
}

// listOf is what the SELECT selects whose ORDER is at i; none of a window, and of a UNION, whose names are those of its first SELECT.
func listOf(t lexer.Tokens, i int) []lexer.Argument {
	for i--; i >= 0 && t.Key(i) != "("; i-- {
		switch t.Key(i) {
		case ")":
			i = t[i].Mate
		case "SELECT":
			if lexer.IsOneOf(t.Key(i-1), "UNION|ALL|DISTINCT|EXCEPT|INTERSECT") {
				return nil
			}
			return t.Selected(i)
		}
	}
	return nil
}

// aliasesOf are the expressions of a list by their aliases.
func aliasesOf(t lexer.Tokens, items []lexer.Argument) map[string]lexer.Argument {
	named := map[string]lexer.Argument{}
	for _, item := range items {
		if expression, alias := withoutAlias(t, item); alias != "" {
			named[alias] = expression
		}
	}
	return named
}

// withoutAlias parts what is selected into its expression and its alias, "" for none.
func withoutAlias(t lexer.Tokens, item lexer.Argument) (expression lexer.Argument, alias string) {
	last := item.To - 1
	if last <= item.From || t.Name(last) == "" || t.Key(last-1) == "." || t.Key(last) == "END" {
		return item, ""
	}
	if item.To = last; t.Key(last-1) == "AS" {
		item.To--
	}
	return item, t.Name(last)
}

// partOfDate is a part of a format of DATE_FORMAT.
var partOfDate = regexp.MustCompile(`%[a-zA-Z%]`)

// unsorted is behind the call at i that makes a text whose order is not that of the number or date in it, and its name; 0 for none.
func unsorted(t lexer.Tokens, i int) (name string, end int) {
	if t.Key(i+1) != "(" {
		return "", 0
	}
	end = t[i+1].Mate + 1
	list := t.Arguments(i + 1)
	switch name = t.Key(i); {
	case name == "FORMAT":
		return name, end
	case name == "CONCAT" && len(list) == 2 && t[list[1].From].Quoted && list[1].To-list[1].From == 1:
		first := list[0].From
		if lexer.IsOneOf(t.Key(first), "ROUND|FORMAT|TRUNCATE|SUM|COUNT|AVG") && t.Key(first+1) == "(" && t[first+1].Mate+1 == list[0].To {
			return name, end
		}
	case name == "DATE_FORMAT" && len(list) == 2 && t[list[1].From].Quoted && list[1].To-list[1].From == 1:
		// The letters of its parts, in their order: words between them sort nothing.
		var parts strings.Builder
		for _, found := range partOfDate.FindAllString(t[list[1].From].Text, -1) {
			parts.WriteByte(found[1])
		}
		order := strings.ReplaceAll(parts.String(), "%", "")
		year := strings.IndexAny(order, "YyxX")
		part := strings.IndexAny(order, "mcdebMvu")
		if year >= 0 && (part >= 0 && part < year || len(order) > year+1 && strings.IndexByte("Mb", order[year+1]) >= 0) {
			return name, end
		}
	}
	return "", 0
}

// unionOfTotals finds a UNION of totals, of which it leaves one where two are equal.
// It is told of SELECT COUNT(*) FROM brand UNION SELECT COUNT(*) FROM partner, and of the sum of such a query; not of UNION ALL, nor
// where a text in the list says which total it is.
func unionOfTotals(t lexer.Tokens, i int) string {
	next := i + 1
	if t.Key(next) == "DISTINCT" || t.Key(i) != "UNION" || t.Key(next) != "SELECT" || !isTotal(t, next) {
		return ""
	}
	for j := i - 1; j >= 0 && t.Key(j) != "("; j-- {
		switch t.Key(j) {
		case ")":
			j = t[j].Mate
		case "SELECT":
			if !isTotal(t, j) || isExtreme(t, j) && isExtreme(t, next) && j >= 3 && isExtremeOf(t, j-1) {
				return ""
			}
			return "UNION leaves one of two rows that are equal, and totals may be: write UNION ALL, and a text beside each that says what it is"
		}
	}
	return ""
}

// isExtreme reports whether the SELECT at i has MIN and MAX alone, which equal rows do not change.
func isExtreme(t lexer.Tokens, i int) bool {
	return !slices.ContainsFunc(t.Selected(i), func(item lexer.Argument) bool { return !lexer.IsOneOf(t.Key(item.From), "MIN|MAX") })
}

// isExtremeOf reports whether the query in the parenthesis at i is the table of a SELECT of MIN and MAX.
func isExtremeOf(t lexer.Tokens, i int) bool {
	if t.Key(i) != "(" || t.Key(i-1) != "FROM" {
		return false
	}
	for j := i - 2; j >= 0 && t.Key(j) != "("; j-- {
		switch t.Key(j) {
		case ")":
			j = t[j].Mate
		case "SELECT":
			return isExtreme(t, j)
		}
	}
	return false
}

// isTotal reports whether the SELECT at i has aggregates alone, and no groups.
func isTotal(t lexer.Tokens, i int) bool {
	if _, grouped := t.Clause(i, "GROUP"); grouped > 0 {
		return false
	}
	for _, item := range t.Selected(i) {
		if !lexer.IsOneOf(t.Key(item.From), "COUNT|SUM|AVG|MIN|MAX") || t.Key(item.From+1) != "(" {
			return false
		}
		if behind := t[item.From+1].Mate + 1; behind < item.To && t.Key(behind) != "AS" && (behind != item.To-1 || t.Name(behind) == "") {
			return false
		}
	}
	return true
}

// ordersByText finds a text behind ORDER BY or GROUP BY.
// It is told of ORDER BY 'start_at'. A text in double quotes is told of by Notices among the quoted ones, and ORDER BY 'a'
// = x is an expression.
func ordersByText(t lexer.Tokens, i int) string {
	if t.Key(i) != "BY" || i+1 >= len(t) || !t[i+1].Quoted || t[i+1].Text[0] != '\'' || !lexer.IsOneOf(t.Key(i-1), "ORDER|GROUP|PARTITION") {
		return ""
	}
	if next := t.Key(i + 2); next != "" && !lexer.ClauseWords[next] && !lexer.IsOneOf(next, ")|,|ASC|DESC|SEPARATOR|ROWS|RANGE") {
		return "" // it begins an expression
	}
	return t.Key(i-1) + " BY of a text is the same for all rows: write a column without quotes, or in `backquotes`"
}
