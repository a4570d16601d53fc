package notice

import (
	"slices"
	"strings"

	"hub.internal/services/query/sqlguard/lexer"
)

// A Grouping tells of a statement that may select a column which its groups do not determine: a server that is not told to
// refuse that answers the value of any row.
// SQL calls it functional dependence, and ONLY_FULL_GROUP_BY is the mode that refuses what lacks it; Hub's sessions run
// without that mode for a caller's statement, and ask a second session about a doubtful one (mysql/statements/groups.go).
type Grouping struct {
	// Doubtful says so from the text alone: something is selected beside aggregates that GROUP BY does not name. Whether a key
	// determines it, a server or its catalog knows.
	Doubtful bool
	// Table is the only table of a statement of one SELECT; empty where there are more, or conditions that equal something.
	Table string
	// By are the columns that such a statement groups by, as it writes them; none where it groups by something else.
	By []string
}

// aggregates are the functions that make one value of a group.
var aggregates = lexer.WordSet(`COUNT SUM AVG MIN MAX GROUP_CONCAT JSON_ARRAYAGG JSON_OBJECTAGG STD STDDEV STDDEV_POP STDDEV_SAMP VAR_POP
	VAR_SAMP VARIANCE BIT_AND BIT_OR BIT_XOR ANY_VALUE MEDIAN GROUPING`)

// GroupingOf looks at an accepted SELECT.
// The zero Grouping, which is silent, is what it returns for a text that cannot be cut into tokens.
func GroupingOf(text string) (g Grouping) {
	t, err := lexer.Lex(text)
	if err != nil || t.Pair() != nil {
		return g
	}
	selects := 0
	for i := range t {
		if t.Key(i) == "SELECT" {
			selects++
			g.Doubtful = g.Doubtful || doubtful(t, i)
		}
	}
	// With x = 3 in WHERE the value of x is the same in all rows, so that it needs no place in GROUP BY. MySQL knows that,
	// MariaDB does not: no table means that MariaDB is not asked.
	if g.Doubtful && selects == 1 && t.Key(0) == "SELECT" && !t.Find("=") {
		g.Table, g.By = onlyTable(t)
	}
	return g
}

// doubtful reports whether the SELECT at i has aggregates or groups, and beside them a column that its GROUP BY does not name.
// It is true of SELECT brand_id, name, MAX(start_at) FROM campaign GROUP BY brand_id, and false of GROUP BY 1, 2, of an
// alias or an expression that the list has as well, and of MAX(name).
func doubtful(t lexer.Tokens, i int) bool {
	items := t.Selected(i)
	from, to := t.Clause(i, "GROUP")
	aggregated := false
	for _, item := range items {
		_, has := outside(t, item)
		aggregated = aggregated || has
	}
	if to == 0 && !aggregated {
		return false
	}
	var named, whole []string // what GROUP BY names: columns and aliases, and expressions as they are written
	if to > 0 {
		for _, part := range t.Split(from+1, to) {
			// GROUP BY 2 stands for the second item of the list.
			if n := t.Integer(part); n >= 1 && n <= uint64(len(items)) {
				part = items[n-1]
			}
			if last := part.To - 1; last == part.From || last == part.From+2 && t.Key(last-1) == "." {
				named = append(named, t.Name(last))
			}
			whole = append(whole, written(t, part))
		}
	}
	for _, item := range items {
		alias := t.Name(item.To - 1)
		if slices.Contains(whole, written(t, item)) || item.To-item.From > 1 && slices.Contains(named, alias) && t.Key(item.To-2) != "." {
			continue
		}
		columns, _ := outside(t, item)
		for _, c := range columns {
			if !slices.Contains(named, c) {
				return true
			}
		}
	}
	return false
}

// written is a part as it stands, in upper case, without AS and what is behind it.
// AS within parentheses, as of CAST(x AS CHAR), belongs to the expression, and what follows it is kept.
func written(t lexer.Tokens, part lexer.Argument) string {
	var b strings.Builder
	for i := part.From; i < part.To && t.Key(i) != "AS"; i++ {
		if t.Key(i) == "(" {
			for end := t[i].Mate; i < end; i++ {
				b.WriteString(strings.ToUpper(t[i].Text))
			}
		}
		b.WriteString(strings.ToUpper(t[i].Text))
	}
	return b.String()
}

// outside are the columns that are named in a part outside aggregates and subqueries, without their tables, and whether there are
// aggregates.
// A window function is no aggregate of the group: SUM(x) OVER () names x beside the groups.
func outside(t lexer.Tokens, part lexer.Argument) (columns []string, aggregated bool) {
	for i := part.From; i < part.To; i++ {
		name := t.Name(i)
		switch {
		case t.Key(i) == "(" && t.IsQuery(i):
			i = t[i].Mate
		case name != "" && t.Key(i+1) == "(" && aggregates[t.Key(i)] && t.Key(t[i+1].Mate+1) != "OVER":
			aggregated = true
			i = t[i+1].Mate
		case t.Key(i) == "AS":
			return columns, aggregated
		case t.Key(i) == "*" && (i == part.From || t.Key(i-1) == "."):
			columns = append(columns, "*")
		case name == "" || t.Key(i+1) == "(" || t.Key(i+1) == "." || lexer.Nameless[t.Key(i)] || words[t.Key(i)]:
		case i == part.To-1 && i > part.From && endsValue(t, i-1): // an alias without AS
		default:
			columns = append(columns, name)
		}
	}
	return columns, aggregated
}

// endsValue reports whether a value ends at i.
// A name behind it is an alias without AS, as n in COUNT(*) n.
func endsValue(t lexer.Tokens, i int) bool {
	return t[i].Digits || t[i].Quoted || lexer.IsOneOf(t.Key(i), ")|END") || t[i].Name != "" && !lexer.Nameless[t.Key(i)]
}

// words stand in an expression and name no column.
var words = lexer.WordSet(`NULL TRUE FALSE END OVER PARTITION ROWS RANGE UNBOUNDED PRECEDING FOLLOWING CURRENT ROW ASC DESC ROLLUP
	YEAR QUARTER MONTH WEEK DAY HOUR MINUTE SECOND YEAR_MONTH SIGNED UNSIGNED CHAR DATE DATETIME DECIMAL USING CURRENT_DATE CURRENT_TIMESTAMP`)

// onlyTable is the table of a statement of one SELECT, and the columns that it groups by.
// Both are empty where FROM has more than one table, or GROUP BY has an expression: a key of the table cannot be looked for
// then.
func onlyTable(t lexer.Tokens) (table string, by []string) {
	from, to := t.Clause(0, "FROM")
	if to == 0 || to-from > 3 || t.Name(from) == "" || t.Key(from+1) == "." || t.Key(from+1) == "," {
		return "", nil // there is more than a name and its alias
	}
	if group, end := t.Clause(0, "GROUP"); end > 0 {
		for _, part := range t.Split(group+1, end) {
			switch last := part.To - 1; {
			case part.To-part.From == 1 && t.Name(last) != "", part.To-part.From == 3 && t.Key(last-1) == ".":
				by = append(by, t.Name(last))
			default:
				return "", nil
			}
		}
	}
	return t.Name(from), by
}
