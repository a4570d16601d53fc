package weight

import "hub.internal/services/query/sqlguard/lexer"

// products finds where an aggregate that holds its rows in memory gathers a cartesian product: of two tables of a thousand rows a
// million. JSON_ARRAYAGG and JSON_OBJECTAGG take 0.4 GB a second of MySQL's memory so, a sorted GROUP_CONCAT 0.15 GB a second of
// MariaDB's; both keep it. A join counts as one where its ON names a column, or WHERE relates two tables.
type products struct {
	at     int             // the first such aggregate, -1 for none
	many   map[string]bool // the queries of WITH lists whose rows are those of a product
	single map[string]bool // those that have one row, or as many as are written down
}

// endsProduct are the clauses behind which the rows of a product are no longer as many.
var endsProduct = lexer.WordSet(`GROUP LIMIT FETCH`)

// multiply looks at the query without UNION in [from, to), whose clauses begin at cuts. It reports whether its rows are those of a
// product.
// It notes the first aggregate of the query that holds the rows of a product. SELECT JSON_ARRAYAGG(a.id) FROM brand a,
// brand b is refused for it, and the same with b in WHERE a.id = b.id is not. A product that GROUP BY, LIMIT or an
// aggregate has made small again is none for the query around it.
func (w *weigher) multiply(from int, cuts []int, of yield) bool {
	to, product, ends := cuts[len(cuts)-1], of.product, false
	filtered := false
	for c := 1; c < len(cuts)-1; c++ {
		ends = ends || endsProduct[w.Key(cuts[c])]
		filtered = filtered || w.Key(cuts[c]) == "WHERE" && w.relates(cuts[c], cuts[c+1])
	}
	for c := 1; c < len(cuts)-1; c++ {
		if w.Key(cuts[c]) == "FROM" && !filtered {
			product = product || w.crosses(cuts[c]+1, cuts[c+1])
		}
	}
	if product && w.at < 0 {
		w.at = w.own(from, to, w.holdsRows)
	}
	return product && !ends && w.own(from, cuts[1], w.aggregates) < 0
}

// holdsRows reports whether an aggregate begins at i that holds all of its rows in memory.
func (w *weigher) holdsRows(i int) bool {
	return isAggregateOfJSON(w.Tokens, i) || w.Tokens[i].Name == "GROUP_CONCAT" && w.Key(i+1) == "(" && w.isSorted(i+1)
}

// own is the first token of a query, and of no other one within, that is as is says; -1 for none.
// The indexes that is gets are those of the query itself, calls and parentheses included.
func (w *weigher) own(from, to int, is func(int) bool) int {
	for i := from; i < to; i++ {
		if w.Key(i) == "(" && w.isSelect(i+1) {
			i = w.Tokens[i].Mate
		} else if is(i) {
			return i
		}
	}
	return -1
}

// oneRow are the aggregates that people write.
var oneRow = lexer.WordSet(`COUNT SUM AVG MIN MAX GROUP_CONCAT JSON_ARRAYAGG JSON_OBJECTAGG STD STDDEV VARIANCE ANY_VALUE`)

// aggregates reports whether a call of an aggregate begins at i that is no window function.
func (w *weigher) aggregates(i int) bool {
	return oneRow[w.Key(i)] && w.Key(i+1) == "(" && w.Key(w.Tokens[i+1].Mate+1) != "OVER"
}

// relates reports whether a condition between two tokens names columns of two tables, compares two columns, or asks a subquery.
// It errs on the side of a relation: a wrong refusal is worse here than a heavy statement, which has a second. Conditions
// of one table each, a.x = 1 AND b.y = 2, relate nothing.
func (w *weigher) relates(from, to int) bool {
	table := ""
	for i := from; i < to; i++ {
		switch w.Key(i) {
		case "AND", "OR", "XOR":
			table = ""
		case "SELECT":
			return true
		case "=":
			if w.isColumn(i-1) && w.isColumn(i+1) {
				return true
			}
		}
		if name := w.Tokens[i].Name; name != "" && w.Key(i+1) == "." {
			if table != "" && table != name {
				return true
			}
			table = name
		}
	}
	return false
}

// isColumn reports whether a name stands at i, and no call.
// NULL, TRUE and the like are words and no columns; a keyword that may be a name counts as one.
func (w *weigher) isColumn(i int) bool {
	return i < len(w.Tokens) && w.Tokens[i].Name != "" && !plainWords[w.Key(i)] && w.Key(i+1) != "("
}

// crosses reports whether a table in the list in [from, to) is joined without a condition.
// It counts: as many conditions as joins are needed, and each ON that names a column is one, as are USING, NATURAL, LATERAL
// and a table of a single row. ON 1 and ON TRUE name none, and leave the product.
func (w *weigher) crosses(from, to int) bool {
	joins, conditions := 0, 0
	condition, names := false, false // behind ON; and it has named a column
	for i := from; i < to; i++ {
		switch k := w.Key(i); {
		case k == "," || (k == "JOIN" || k == "STRAIGHT_JOIN") && w.Key(i-1) != "FOR":
			joins++
			condition, names = false, false
		case k == "ON":
			condition = true
		case condition && !names && (w.isColumn(i) || k == "(" && w.own(i+1, w.Tokens[i].Mate, w.isColumn) >= 0):
			names = true
			conditions++
		case k == "USING" || k == "NATURAL":
			conditions++
		case k == "(" && w.IsQuery(i) && (w.Key(i+1) != "(" || w.queryInside(i)) && !condition:
			if w.Key(i-1) == "LATERAL" || w.isSingle(i) {
				conditions++
			}
		case w.IsTable(i) && w.single[w.Tokens[i].Name]:
			conditions++
		}
		if w.Key(i) == "(" && !(w.holdsTables(i) && !condition) {
			i = w.Tokens[i].Mate
		}
	}
	return conditions < joins
}

// holdsTables reports whether the parenthesis at i, where tables are listed, holds a list of them.
func (w *weigher) holdsTables(i int) bool {
	switch w.Key(i - 1) {
	case "FROM", "JOIN", "STRAIGHT_JOIN", ",", "(":
		return w.Key(i-2) != "FOR" && (!w.IsQuery(i) || w.Key(i+1) == "(" && !w.queryInside(i))
	}
	return false
}

// setWords stand before a query of a UNION.
var setWords = lexer.WordSet(`UNION EXCEPT INTERSECT ALL DISTINCT`)

// isSingle reports whether the query in the parenthesis at i has one row, or as many as are written down: it has no FROM, an
// aggregate without GROUP BY, or LIMIT 1.
// A UNION of queries without FROM, the idiom for a short list of values, has as many rows as it has branches.
func (w *weigher) isSingle(i int) bool {
	end := w.Tokens[i].Mate
	for w.Key(i+1) == "(" && w.Tokens[i+1].Mate == end-1 {
		i, end = i+1, end-1
	}
	from, group, aggregate := false, false, false
	for j := i + 1; j < end; j++ {
		switch w.Key(j) {
		case "(":
			if w.isSelect(j+1) && (j == i+1 || setWords[w.Key(j-1)]) {
				from = true // one of a UNION: nobody knows here
			}
			j = w.Tokens[j].Mate
		case "FROM":
			from = true
		case "GROUP":
			group = true
		case "LIMIT":
			if j+2 == end && w.Tokens[j+1].Text == "1" {
				return true
			}
		case "UNION", "EXCEPT", "INTERSECT":
			if from {
				return false
			}
		default:
			aggregate = aggregate || w.aggregates(j)
		}
	}
	return !from || aggregate && !group
}
