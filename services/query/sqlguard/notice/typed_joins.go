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

// isLookedUp reports whether an optional table has at most one row for each row before it, by a key that its ON or USING equates. A
// condition on it is one on what it describes, as LEFT JOIN brand b ON b.brand_id = c.brand_id WHERE b.country_code = 'KR', and is not
// meant to keep a row without.
func (r *reading) isLookedUp(n int, table source) bool {
	tables := r.scopes[n].tables
	for i := table.at; i < tables.To; i++ {
		if r.Key(i) == "USING" && r.Key(i+1) == "(" {
			name := r.Name(i + 2)
			if r.Tokens[i+1].Mate == i+3 && r.catalog.isUnique(table.table, name) && r.isLastBefore(n, table, i) {
				return true
			}
		}
		c, known := r.column(i)
		if !known || c.scope != n || r.scopes[n].from[c.source].at != table.at || !r.catalog.isUnique(c.table, c.name) {
			continue
		}
		if r.Key(c.end) == "=" || r.Key(i-1) == "=" {
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
