package notice

import (
	"fmt"
	"slices"
	"strings"

	"hub.internal/services/query/sqlguard/lexer"
)

// dropsOuter finds a condition in a scope's WHERE that no row meets which an outer join has kept: it asks for a value of the table
// that has none there. Nothing is said where a row without may be meant, by OR, IS NULL or a function.
// It is told of FROM brand b LEFT JOIN campaign c ON … WHERE c.start_at >= '2026-01-01', which is an inner join in effect,
// and not of WHERE c.campaign_id IS NULL, the idiom for brands without campaigns (an anti-join).
func (r *reading) dropsOuter(n int) string {
	s := r.scopes[n]
	if s.where.To == 0 || !slices.ContainsFunc(s.from, func(one source) bool { return one.optional }) {
		return ""
	}
	begins := true
	said := ""
	for i := s.where.From; i < s.where.To; i++ {
		switch key := r.Key(i); {
		case lexer.IsOneOf(key, "OR|XOR|CASE") || key == "|" && r.Key(i+1) == "|":
			return ""
		case key == "IS" && r.Key(i+1) == "NOT": // whoever writes IS NOT NULL means it
			return ""
		case key == "BETWEEN":
			i = r.and(i)
			continue
		}
		if begins && said == "" {
			said = r.rejects(n, i)
		}
		if begins = r.Key(i) == "AND"; r.Key(i) == "(" {
			i = r.Tokens[i].Mate
		}
	}
	return said
}

// rejects reports that the condition at i is not true where an optional table of the scope has no row.
// A comparison with NULL is not true, so =, <, LIKE, IN and BETWEEN reject such a row, with NOT as well. The result is the
// message, "" where it may be true.
func (r *reading) rejects(n, i int) string {
	var table source
	end := 0
	if r.Key(i+1) == "." {
		at := slices.IndexFunc(r.scopes[n].from, func(s source) bool { return s.alias == r.Name(i) })
		if at < 0 || r.Name(i+2) == "" {
			return ""
		}
		table, end = r.scopes[n].from[at], i+3
	} else if c, known := r.column(i); known && c.scope == n {
		table, end = r.scopes[n].from[c.source], c.end
	}
	if !table.optional || r.isLookedUp(n, table) {
		return ""
	}
	op, _ := r.operator(end)
	next := r.Key(end)
	if next == "NOT" {
		next = r.Key(end + 1)
	}
	if op == "" && !lexer.IsOneOf(next, "LIKE|IN|BETWEEN|REGEXP|RLIKE") {
		return ""
	}
	name := r.Tokens[end-1].Text
	if end == i+3 {
		name = r.Tokens[i].Text + "." + name
	}
	return fmt.Sprintf("the condition on %s in WHERE drops the rows that the outer join keeps, where it is NULL: move it to ON, or write "+
		"JOIN", name)
}

// joinsBehindOuter finds a plain JOIN whose ON compares a column of a table that an outer join before it made optional: it drops the rows
// that the outer join keeps.
// It is told of FROM partner p LEFT JOIN brand b ON … JOIN campaign c ON c.brand_id = b.brand_id, and not of one behind a look-up.
func (r *reading) joinsBehindOuter(n int) string {
	s := r.scopes[n]
	for i := s.tables.From; i < s.tables.To; i++ {
		c, known := r.column(i)
		if !known || c.scope != n || r.Key(c.end) != "=" || !lexer.IsOneOf(r.Key(i-1), "ON|AND") {
			continue
		}
		other, known := r.column(c.end + 1)
		if !known || other.scope != n || !r.EndsValue(other.end) {
			continue
		}
		outer, plain, name := s.from[c.source], s.from[other.source], r.written(i, c)
		if outer.at > plain.at {
			outer, plain, name, c = plain, outer, r.written(c.end+1, other), other
		}
		if !outer.optional || plain.optional || r.isLookedUp(n, outer) || !r.isLastBefore(n, plain, i) || outer.at == plain.at ||
			r.Key(plain.at-1) != "JOIN" || lexer.IsOneOf(r.Key(plain.at-2), "LEFT|RIGHT|OUTER") || r.isConditioned(c) {
			continue
		}
		return fmt.Sprintf("JOIN %s compares %s, and drops the rows that the outer join before it keeps, where that is NULL: write LEFT JOIN "+
			"%[1]s, or JOIN %[3]s", strings.ToLower(plain.table), name, strings.ToLower(outer.table))
	}
	return ""
}

// emptyGroups finds COUNT of a column that HAVING wants to be 0, where each row of the group has one: the column is never NULL, and no
// outer join makes its table optional. COUNT(*) is told of by the text alone.
func (r *reading) emptyGroups(n int) string {
	said := ""
	hasOptional := slices.ContainsFunc(r.scopes[n].from, func(s source) bool { return s.optional })
	if hasOptional && isEmptyGroup(r.Tokens, r.scopes[n].at, func(i int) int {
		if r.Key(i) != "COUNT" || r.Key(i+1) != "(" {
			return 0
		}
		c, known := r.of(r.Arguments(i + 1)[0])
		if !known || c.Nullable || c.scope != n || r.scopes[n].from[c.source].optional {
			return 0
		}
		said = "COUNT(" + r.written(i+2, c) + ") of a group is never 0, for the outer join keeps its row where nothing matches: write " +
			"COUNT(key) = 0 with the key of the joined table, or NOT EXISTS"
		return r.Tokens[i+1].Mate + 1
	}) {
		return said
	}
	return ""
}

// isConditioned reports whether WHERE names a column of the table that a column is of.
func (r *reading) isConditioned(c reference) bool {
	for i := r.scopes[c.scope].where.From; i < r.scopes[c.scope].where.To; i++ {
		if other, known := r.column(i); known && other.scope == c.scope && other.source == c.source {
			return true
		}
	}
	return false
}

// isLookedUp reports whether an optional table has at most one row for each row before it, by a key that its ON or USING equates. A
// condition on it is one on what it describes, as LEFT JOIN brand b ON b.brand_id = c.brand_id WHERE b.country_code = 'KR', and is not
// meant to keep a row without.
func (r *reading) isLookedUp(n int, table source) bool {
	begun := false // its ON is the first one behind it
	for i := table.at; i < r.scopes[n].tables.To && !(begun && lexer.IsOneOf(r.Key(i), "JOIN|STRAIGHT_JOIN|,")); i++ {
		switch r.Key(i) {
		case "ON":
			begun = true
		case "USING":
			return r.Key(i+1) == "(" && r.catalog.isUnique(table.table, r.Name(i+2))
		}
		c, known := r.column(i)
		if known && c.scope == n && r.scopes[n].from[c.source].at == table.at && r.catalog.isUnique(c.table, c.name) &&
			(r.Key(c.end) == "=" || r.Key(i-1) == "=") {
			return true
		}
	}
	return false
}

// isLastBefore reports whether a table is the last one of a FROM that begins before i.
func (r *reading) isLastBefore(n int, table source, i int) bool {
	return !slices.ContainsFunc(r.scopes[n].from, func(s source) bool { return table.at < s.at && s.at < i })
}

// sumOfBalances finds a sum of balances over all rows of a table that has one after each.
// A statement that mentions the table twice, or its key, is silent: it may have picked the newest row of each brand
// already.
func (r *reading) sumOfBalances(i int) string {
	if r.Key(i) != "SUM" || r.Key(i+1) != "(" || len(r.scopes) != 1 {
		return ""
	}
	c, known := r.of(r.Arguments(i + 1)[0])
	if !known || !balances[c.table+"."+c.name] || r.mentions(c.table) != 1 || r.mentions(c.table+"_ID") > 0 {
		return ""
	}
	return fmt.Sprintf("%s is the balance after each transaction, and no amount: sum the newest one of each brand (ROW_NUMBER() OVER "+
		"(PARTITION BY brand_id ORDER BY created_at DESC, deposit_transaction_id DESC) = 1), or amount_liter", strings.ToLower(c.name))
}

// mentions counts a name.
// The comparison is one of upper-case names, as the tokens have them, and counts aliases and columns alike.
func (r *reading) mentions(name string) (n int) {
	for i := range r.Tokens {
		if r.Name(i) == name {
			n++
		}
	}
	return n
}
