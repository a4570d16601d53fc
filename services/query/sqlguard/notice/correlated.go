package notice

import (
	"fmt"
	"slices"
	"strings"
)

// comparedWithItself finds a = a in a subquery, where both names stand for one column of its table, and a query around it has a column
// of that name, which one of them was meant for.
// It is told of (SELECT COUNT(*) FROM campaign c WHERE c.brand_id = brand_id) in a list of brands, and not of WHERE brand_id =
// brand.brand_id, nor where no query around it has the column.
func (r *reading) comparedWithItself(i int) string {
	c, known := r.column(i)
	if !known || r.Key(c.end) != "=" || !r.beginsValue(i) {
		return ""
	}
	other, known := r.column(c.end + 1)
	if !known || other.scope != c.scope || other.source != c.source || other.name != c.name || !r.EndsValue(other.end) {
		return ""
	}
	for n := r.scopes[c.scope].parent; n >= 0; n = r.scopes[n].parent {
		for _, s := range r.scopes[n].from {
			if _, has := r.catalog.Tables[s.table][c.name]; !has {
				continue
			}
			outer := strings.ToLower(s.alias + "." + c.name)
			if s.alias == r.scopes[c.scope].from[c.source].alias {
				outer = "x." + strings.ToLower(c.name) + ", with x as the alias of the outer " + strings.ToLower(s.table) + ","
			}
			return fmt.Sprintf("%s and %s are one column, of %s in the subquery, and equal in each row: write %s for that of the query around it",
				r.written(i, c), r.written(c.end+1, other), strings.ToLower(c.table), outer)
		}
	}
	return ""
}

// existsForAll finds EXISTS in a WHERE of a query that names nothing of the one around it: it is true of all rows, or of none.
// It is told of FROM brand b WHERE NOT EXISTS (SELECT 1 FROM campaign c WHERE c.status_code = '1209'), and not where any of the queries
// reads what has no catalog, such as a derived table, whose columns may be those around it.
func (r *reading) existsForAll(i int) string {
	if r.Key(i) != "EXISTS" || r.Key(i+1) != "(" || r.Key(i+2) != "SELECT" {
		return ""
	}
	n := r.enclosing(i)
	if n < 0 || i < r.scopes[n].where.From || i >= r.scopes[n].where.To {
		return ""
	}
	end := r.Tokens[i+1].Mate
	var inner, outer []source
	for m := n; m >= 0; m = r.scopes[m].parent {
		outer = append(outer, r.scopes[m].from...)
	}
	for _, s := range r.scopes {
		if i < s.at && s.at < end {
			inner = append(inner, s.from...)
		}
	}
	unread := func(s source) bool { return r.catalog.Tables[s.table] == nil }
	if len(inner) == 0 || len(outer) == 0 || slices.ContainsFunc(inner, unread) || slices.ContainsFunc(outer, unread) {
		return ""
	}
	for j := i + 3; j < end; j++ {
		name := r.Name(j)
		has := func(s source) bool { _, has := r.catalog.Tables[s.table][name]; return has }
		isAlias := func(s source) bool { return s.alias == name }
		switch {
		case name == "" || r.Key(j-1) == "." || r.Key(j+1) == "(":
		case r.Key(j+1) == "." && slices.ContainsFunc(outer, isAlias):
			return ""
		case r.Key(j+1) != "." && slices.ContainsFunc(outer, has) && !slices.ContainsFunc(inner, has):
			return ""
		}
	}
	return "EXISTS names no column of the query around it, and is true of all its rows or of none: add a condition with a column of each, " +
		"such as WHERE c.brand_id = b.brand_id"
}
