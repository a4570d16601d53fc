package advice

import (
	"fmt"
	"slices"
	"strings"
)

// dropsOuter finds a condition in a scope's WHERE that no row meets which an outer join has kept: it asks for a value of the table
// that has none there. Nothing is said where a row without may be meant, by OR, IS NULL or a function.
func (r *reading) dropsOuter(n int) string {
	s := r.scopes[n]
	if s.where.To == 0 || !slices.ContainsFunc(s.from, func(one source) bool { return one.optional }) {
		return ""
	}
	begins := true
	said := ""
	for i := s.where.From; i < s.where.To; i++ {
		switch key := r.Key(i); {
		case isOneOf(key, "OR|XOR|CASE") || key == "|" && r.Key(i+1) == "|":
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
	if !table.optional {
		return ""
	}
	op, _ := r.operator(end)
	next := r.Key(end)
	if next == "NOT" {
		next = r.Key(end + 1)
	}
	if op == "" && !isOneOf(next, "LIKE|IN|BETWEEN|REGEXP|RLIKE") {
		return ""
	}
	name := r.Tokens[end-1].Text
	if end == i+3 {
		name = r.Tokens[i].Text + "." + name
	}
	return fmt.Sprintf("the condition on %s in WHERE drops the rows that the outer join keeps, where it is NULL: move it to ON, or write "+
		"JOIN", name)
}

// sumOfBalances finds a sum of balances over all rows of a table that has one after each.
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
func (r *reading) mentions(name string) (n int) {
	for i := range r.Tokens {
		if r.Name(i) == name {
			n++
		}
	}
	return n
}

// isUnique reports whether no two rows of a table have the same value in a column.
func (c *Catalog) isUnique(table, column string) bool {
	keys := 0
	for _, other := range c.Tables[table] {
		if other.Key == "PRI" {
			keys++
		}
	}
	key := c.Tables[table][column].Key
	return key == "UNI" || key == "PRI" && keys == 1
}

// mostJoined bounds how many tables of a FROM are looked at for a sum.
const mostJoined = 10

// sumOfRepeated finds a sum of a column whose rows a join repeats: the other table has many for one of them, and the statement
// names no more of it than the column of the join, so that nothing else can leave one.
func (r *reading) sumOfRepeated(i int) string {
	if r.Key(i) != "SUM" || r.Key(i+1) != "(" {
		return ""
	}
	c, known := r.of(r.Arguments(i + 1)[0])
	if !known || c.scope != r.enclosing(i) || !isNumber(c.Type) {
		return ""
	}
	s := r.scopes[c.scope]
	if r.Key(r.Tokens[i+1].Mate+1) == "OVER" {
		return ""
	}
	for m, other := range s.from[:min(len(s.from), mostJoined)] {
		if m == c.source {
			continue
		}
		join := [3]int{c.scope, c.source, m}
		on, asked := r.joins[join]
		if !asked {
			on = r.repeats(c.scope, c.source, m)
			r.joins[join] = on
		}
		if on != "" {
			return fmt.Sprintf("SUM(%s) counts a row of %s once for each row of %s with its %s: sum in a derived table before the join, or "+
				"use EXISTS",
				r.written(i+2, c), strings.ToLower(c.table), strings.ToLower(other.table), strings.ToLower(on))
		}
	}
	return ""
}

// isNumber reports whether a type is of numbers.
func isNumber(kind string) bool {
	return strings.HasSuffix(kind, "int") || isOneOf(kind, "decimal|double|float")
}

// repeats is the column by which the rows of one table of a scope have many of another, where that is all that the scope's
// conditions and groups say of the other.
func (r *reading) repeats(n, one, many int) (on string) {
	s := r.scopes[n]
	if slices.ContainsFunc(s.from, func(one source) bool { return r.catalog.Tables[one.table] == nil }) {
		return ""
	}
	for i := s.tables.From; i < s.end; i++ {
		if r.Key(i) == "(" && r.IsQuery(i) || r.Key(i) == "USING" {
			return "" // a query may pick a row
		}
		c, known := r.column(i)
		if !known || c.scope != n || c.source != many {
			continue
		}
		var other reference
		switch {
		case r.Key(c.end) == "=":
			other, known = r.column(c.end + 1)
		case r.Key(i-1) == "=" && r.Key(i-3) == ".":
			other, known = r.column(i - 4)
		default:
			return ""
		}
		if !known || other.scope != n || other.source != one || on != "" || i >= s.tables.To || !r.catalog.isUnique(other.table, other.name) ||
			r.catalog.isUnique(c.table, c.name) {
			return ""
		}
		on = c.name
		i = c.end - 1
	}
	return on
}
