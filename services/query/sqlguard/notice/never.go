package notice

import (
	"strings"

	"hub.internal/services/query/sqlguard/lexer"
	"hub.internal/services/query/sqlguard/notice/conditions"
)

// behindTheOnlyRow finds an offset behind aggregates without GROUP BY, which answer one row.
// It is told of SELECT COUNT(*) FROM brand LIMIT 50 OFFSET 50, as a client writes who pages through everything, and not of
// OFFSET 0, of a query with GROUP BY, or of one branch of a UNION.
func behindTheOnlyRow(t lexer.Tokens, i int) string {
	if t.Key(i) != "SELECT" || lexer.IsOneOf(t.Key(i-1), "UNION|ALL|DISTINCT|EXCEPT|INTERSECT") {
		return ""
	}
	aggregated := false
	for _, item := range t.Selected(i) {
		_, has := outside(t, item)
		aggregated = aggregated || has
	}
	if _, grouped := t.Clause(i, "GROUP"); !aggregated || grouped > 0 {
		return ""
	}
	from, to := t.Clause(i, "LIMIT")
	offset := from // LIMIT 10, 20
	if to > 0 && t.Key(from+1) == "OFFSET" {
		offset = from + 2
	} else if to == 0 || t.Key(from+1) != "," {
		return ""
	}
	if offset >= len(t) || !t[offset].Digits || strings.Trim(t[offset].Text, "0") == "" {
		return ""
	}
	return "aggregates without GROUP BY answer one row, and OFFSET leaves it out: leave OFFSET out"
}

// emptyGroups finds COUNT(*) that HAVING wants to be 0: a group has at least one row.
// It is told of HAVING COUNT(*) = 0 and of HAVING n = 0 where COUNT(*) is selected as n, as one writes who looks for brands without a
// campaign behind a LEFT JOIN, and not of COUNT(c.campaign_id) = 0.
func emptyGroups(t lexer.Tokens, i int) string {
	if t.Key(i) != "SELECT" || !isEmptyGroup(t, i, func(j int) int { return countOfRows(t, j) }) {
		return ""
	}
	return "COUNT(*) of a group is never 0, for a LEFT JOIN keeps a row where nothing matches: write COUNT(key) = 0 with the key of " +
		"the joined table, or NOT EXISTS"
}

// isEmptyGroup reports whether HAVING of the SELECT at i wants a count to be 0, which stands there or in the list by a name; count is
// behind such a count at a place, 0 for none.
func isEmptyGroup(t lexer.Tokens, i int, count func(i int) (end int)) bool {
	from, to := t.Clause(i, "HAVING")
	if _, grouped := t.Clause(i, "GROUP"); grouped == 0 || to == 0 {
		return false
	}
	named := map[string]bool{}
	for _, item := range t.Selected(i) {
		end := count(item.From)
		if t.Key(end) == "AS" {
			end++
		}
		if end > 0 && end == item.To-1 && t.Name(end) != "" {
			named[t.Name(end)] = true
		}
	}
	for j := from; j < to; j++ {
		end := count(j)
		if end == 0 && t.Name(j) != "" && named[t.Name(j)] && t.Key(j-1) != "." {
			end = j + 1
		}
		if end == 0 {
			continue
		}
		value, is := t.Comparison(end)
		if !is || value >= len(t) || !conditions.Ends(t, value+1) {
			continue
		}
		if op, number := t.Key(end), t[value].Text; value == end+1 && (op == "=" && number == "0" || op == "<" && number == "1") {
			return true
		}
	}
	return false
}

// countOfRows is behind the COUNT(*) or COUNT(1) at i; 0 for none.
func countOfRows(t lexer.Tokens, i int) (end int) {
	if t.Key(i) != "COUNT" || t.Key(i+1) != "(" || t[i+1].Mate != i+3 || !lexer.IsOneOf(t[i+2].Text, "*|1") {
		return 0
	}
	return i + 4
}

// anyRowOfAnOrder finds the idiom for the newest row of a group that takes the first of an ordered query: servers leave the order of
// a query in FROM out, and answer the values of any row.
// It is told of SELECT brand_id, name FROM (SELECT * FROM campaign ORDER BY start_at DESC) t GROUP BY brand_id. A LIMIT
// within makes servers keep the order, and silences it: it is a known way round.
func anyRowOfAnOrder(t lexer.Tokens, i int) string {
	if t.Key(i) != "SELECT" || !doubtful(t, i) {
		return ""
	}
	if _, grouped := t.Clause(i, "GROUP"); grouped == 0 {
		return ""
	}
	from, to := t.Clause(i, "FROM")
	if to == 0 || t.Key(from) != "(" || t.Key(from+1) != "SELECT" {
		return ""
	}
	_, ordered := t.Clause(from+1, "ORDER")
	_, limited := t.Clause(from+1, "LIMIT")
	_, fetched := t.Clause(from+1, "FETCH")
	if ordered == 0 || limited+fetched > 0 {
		return ""
	}
	return "the order of a query in FROM is left out, and GROUP BY takes a column that it does not name from any row: write ROW_NUMBER() " +
		"OVER (PARTITION BY the groups ORDER BY x DESC) AS n within, and WHERE n = 1"
}
