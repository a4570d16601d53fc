package notice

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"hub.internal/services/query/sqlguard/lexer"
)

// mostJoined bounds how many tables of a FROM are looked at.
// Each pair of tables is compared, with all pairs of their columns.
const mostJoined = 10

// fan is a join by which each row of one table stands beside many of another, where nothing else of the scope can leave one of
// those: the conditions and groups name no more of it than the column of the join.
// Data modelling calls the plain case a fan trap (SUM of a parent's column beside its children), and the case of two
// children of one parent a chasm trap: there each row of one child stands beside every row of the other.
type fan struct {
	one, many int // the places of the tables in FROM
	column    string
	onlyMany  bool // the column is unique in one, so that the rows of the join are those of many
	counted   bool // an aggregate names many
	named     bool // the scope names one elsewhere than in joins
	keyed     bool // and by its key
}

// repeated finds an aggregate of rows that a join has repeated.
// It is told of SUM(c.offer_count) FROM campaign c JOIN campaign_application a ON a.campaign_id = c.campaign_id, and not of
// the same with a brand in place of the applications (a campaign has one), with COUNT(DISTINCT …), as a window function, or
// where a condition names a column of the applications: that may leave one row of each campaign. SUM(DISTINCT c.offer_count) is no
// way out, since two campaigns may have as many places. COUNT(*) behind a LEFT JOIN is told of as well: it counts the row of a
// brand without a campaign.
func (r *reading) repeated(i int) string {
	if !lexer.IsOneOf(r.Key(i), "SUM|AVG|COUNT") || r.Key(i+1) != "(" || r.Key(r.Tokens[i+1].Mate+1) == "OVER" {
		return ""
	}
	argument := r.Arguments(i + 1)[0]
	distinct := r.Key(i+2) == "DISTINCT"
	if distinct {
		argument.From++
		if r.Key(i) == "COUNT" {
			return ""
		}
	}
	// The aggregate's scope has to be that of the column: a correlated subquery sums rows of its own.
	n, all := r.enclosing(i), countOfRows(r.Tokens, i) > 0
	c, known := r.of(argument)
	if n < 0 || !all && (!known || c.scope != n) || r.Key(i) != "COUNT" && !isNumber(c.Type) {
		return ""
	}
	// The joins of a scope are found once: a statement may have hundreds of aggregates (TestCatalogIsQuick).
	list, asked := r.fans[n]
	if !asked {
		list = r.fansOf(n)
		r.fans[n] = list
	}
	from := r.scopes[n].from
	for _, f := range list {
		// A language in the primary key means names in several languages: a row of each is meant to be chosen.
		translated := r.catalog.Tables[from[f.many].table]["LANGUAGE"].Key == "PRI"
		// The two numbers can only be meant for two things where the rows of both tables are counted.
		both := !all && r.Key(i) == "COUNT" && f.one == c.source && f.onlyMany && f.counted && !f.keyed && r.catalog.isUnique(c.table, c.name)
		switch {
		case (all || r.Key(i) == "COUNT" && f.one == c.source && r.catalog.isUnique(c.table, c.name)) && f.onlyMany && !f.counted &&
			!translated && from[f.many].optional && !r.isRestricted(n):
			many, what := from[f.many], "COUNT(*)"
			if !all {
				what = "COUNT(" + r.written(argument.From, c) + ")"
			}
			return fmt.Sprintf("%s counts 1 for a row of %s without a row of %s, which LEFT JOIN keeps: write COUNT(%s.%s)", what,
				strings.ToLower(from[f.one].table), strings.ToLower(many.table), strings.ToLower(many.alias), strings.ToLower(f.column))
		case both:
		case all && (f.onlyMany || f.counted || f.keyed || f.named && !translated): // these may be the rows that are to be counted
			continue
		case !all && (f.one != c.source || r.Key(i) != "SUM" && (f.onlyMany || f.keyed)): // it may be meant to weigh, or is of one row
			continue
		}
		what, mend := r.Key(i)+"(*)", "aggregate in a derived table before the join, or use EXISTS"
		if !all {
			what = r.Key(i) + "(" + r.written(argument.From, c) + ")"
		}
		if both {
			mend = "write COUNT(DISTINCT " + r.written(argument.From, c) + ")"
		}
		if distinct {
			return fmt.Sprintf("%s(DISTINCT %s) takes equal values of different rows of %s once: %s", r.Key(i), r.written(argument.From, c),
				strings.ToLower(from[f.one].table), mend)
		}
		if translated {
			mend = "add AND " + strings.ToLower(from[f.many].alias) + ".language = 'ko'"
		}
		return fmt.Sprintf("%s counts a row of %s once for each row of %s with its %s: %s", what, strings.ToLower(from[f.one].table),
			strings.ToLower(from[f.many].table), strings.ToLower(f.column), mend)
	}
	return ""
}

// isRestricted reports whether a scope has HAVING, by which it may leave the groups of one row out.
func (r *reading) isRestricted(n int) bool {
	_, to := r.Clause(r.scopes[n].at, "HAVING")
	return to > 0
}

// isNumber reports whether a type is of numbers.
// SUM of a text is wrong with and without a join. A kind is as information_schema has it, in lower case.
func isNumber(kind string) bool {
	return strings.HasSuffix(kind, "int") || lexer.IsOneOf(kind, "decimal|double|float")
}

// use is where a scope names a table's columns.
// It is what decides whether a join can be blamed: a table that a condition, a group or the list names may have been
// reduced to one row, and its repetition be meant.
type use struct {
	joined        map[string]int // by what it is joined, with the number of what these are equal to
	named, keyed  bool           // elsewhere, and by its key
	inAnAggregate bool
}

// uses are those of each table of a FROM.
type uses []use

// join says that two columns are equal, and all that are equal to them.
// So a.x = b.x AND b.x = c.x makes a and c joined as well: the classes are those of an equivalence relation, with 0 for no
// class.
func (u uses) join(a, b reference) {
	class, other := u[a.source].joined[a.name], u[b.source].joined[b.name]
	if class == 0 {
		class = other
	}
	if class == 0 { // no number that is in use
		class = 1
		for _, one := range u {
			for _, taken := range one.joined {
				class = max(class, taken+1)
			}
		}
	}
	for _, one := range u {
		for name, of := range one.joined {
			if of == other && other != 0 {
				one.joined[name] = class
			}
		}
	}
	u[a.source].joined[a.name], u[b.source].joined[b.name] = class, class
}

// fansOf are the joins of a scope that repeat rows; none where something may leave rows out that is not understood.
// A table joined by two columns is left out, since the two may be a composite key, which one row has.
func (r *reading) fansOf(n int) (list []fan) {
	tables, from := r.usesIn(n), r.scopes[n].from
	for one, a := range tables {
		for many, b := range tables {
			if one == many || b.named || len(b.joined) != 1 {
				continue
			}
			column := slices.Collect(maps.Keys(b.joined))[0]
			for _, other := range slices.Sorted(maps.Keys(a.joined)) {
				if a.joined[other] == b.joined[column] && !r.catalog.isUnique(from[many].table, column) {
					list = append(list, fan{one: one, many: many, column: column, onlyMany: r.catalog.isUnique(from[one].table, other),
						counted: b.inAnAggregate, named: a.named || a.inAnAggregate, keyed: a.keyed})
				}
			}
		}
	}
	return list
}

// usesIn are the uses of each table of a scope's FROM; nil where one is no table, or a condition is no equality of columns joined
// by AND.
// A subquery, OR, CASE or NOT ( behind FROM may leave rows out in a way that is not read here, and * names every column:
// each of them silences the whole scope. In the list of what is selected they change no rows, and pass.
func (r *reading) usesIn(n int) uses {
	s := r.scopes[n]
	if len(s.from) < 2 || len(s.from) > mostJoined ||
		slices.ContainsFunc(s.from, func(one source) bool { return !r.catalog.hasKey(one.table) }) {
		return nil
	}
	for _, item := range r.Selected(s.at) {
		if r.Key(item.To-1) == "*" {
			return nil
		}
	}
	all := make(uses, len(s.from))
	for m := range all {
		all[m].joined = map[string]int{}
	}
	aggregate := 0 // behind the one that i is in
	for i := s.at; i < s.end; i++ {
		key, next := r.Key(i), r.Key(i+1)
		switch {
		case i < s.tables.From:
		case key == "(" && r.IsQuery(i), lexer.IsOneOf(key, "OR|XOR|CASE|NATURAL"), key == "NOT" && next == "(":
			return nil
		case key == "USING" && next == "(" && i < s.tables.To:
			r.using(all, n, i)
			i = r.Tokens[i+1].Mate
			continue
		case slices.ContainsFunc(s.from, func(one source) bool { return one.at == i }): // a table's name and alias are no columns
			for r.Key(i+1) == "AS" || r.Name(i+1) != "" && !behindTable[r.Key(i+1)] && !lexer.EndsFrom[r.Key(i+1)] {
				i++
			}
			continue
		}
		if aggregates[key] && next == "(" {
			aggregate = max(aggregate, r.Tokens[i+1].Mate)
		}
		if c, known := r.column(i); known && c.scope == n {
			i = r.usedAt(all, c, i, i < aggregate) - 1
		}
	}
	return all
}

// usedAt notes how a scope uses the column at i, and returns what is behind that.
// Equality of two tables' columns in ON or WHERE is a join; the same in the list, in HAVING or ORDER BY is a use of both.
func (r *reading) usedAt(all uses, c reference, i int, inAnAggregate bool) (end int) {
	s := r.scopes[c.scope]
	inConditions := s.tables.From <= i && (i < s.tables.To || i < s.where.To)
	other, known := r.column(c.end + 1)
	if inConditions && r.Key(c.end) == "=" && known && other.scope == c.scope && other.source != c.source && r.beginsValue(i) &&
		r.EndsValue(other.end) {
		all.join(c, other)
		return other.end
	}
	u := &all[c.source]
	if u.inAnAggregate = u.inAnAggregate || inAnAggregate; !inAnAggregate {
		u.named = true
		u.keyed = u.keyed || r.catalog.isUnique(c.table, c.name)
	}
	return c.end
}

// using joins the table before the USING at i with those before it that have its columns.
// USING (brand_id) joins every table to the left that has a column of that name.
func (r *reading) using(all uses, n, i int) {
	from := r.scopes[n].from
	last := len(from) - 1
	// The table before USING is the last one that begins before it.
	for last > 0 && from[last].at > i {
		last--
	}
	for _, part := range r.Split(i+2, r.Tokens[i+1].Mate) {
		name := r.Name(part.From)
		for m := range last {
			if _, has := r.catalog.Tables[from[m].table][name]; has {
				all.join(reference{source: m, name: name}, reference{source: last, name: name})
			}
		}
	}
}

// hasKey reports whether a name is that of a table with a primary key; a view has none, and may have one row for each value.
func (c *Catalog) hasKey(table string) bool {
	for _, column := range c.Tables[table] {
		if column.Key == "PRI" {
			return true
		}
	}
	return false
}

// isUnique reports whether no two rows of a table have the same value in a column.
// A part of a composite primary key is not unique, and neither is a column that is known only as MUL.
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

// things are the CRM's tables, whose ids are of one thing each.
var things = lexer.WordSet(`CATEGORY PARTNER PARTNER_ADMIN BRAND CAMPAIGN DEPOSIT_TRANSACTION MEMBER CAMPAIGN_APPLICATION REVIEW`)

// keysOfOthers finds a comparison of the ids of two things, as ON b.brand_id = p.partner_id.
// It is not told of b.partner_id = p.partner_id, nor of columns of other tables than those of the CRM: elsewhere an id may
// well be called otherwise than what it refers to.
func (r *reading) keysOfOthers(i int) string {
	c, known := r.column(i)
	if !known || r.Key(c.end) != "=" || !r.beginsValue(i) {
		return ""
	}
	other, known := r.column(c.end + 1)
	if !known || !r.EndsValue(other.end) || other.scope == c.scope && other.source == c.source {
		return ""
	}
	one, two := strings.TrimSuffix(c.name, "_ID"), strings.TrimSuffix(other.name, "_ID")
	if one == two || !things[c.table] || !things[other.table] || !things[one] || !things[two] || one == c.name || two == other.name {
		return ""
	}
	return fmt.Sprintf("%s and %s are the ids of different things, a %s and a %s: join by a column that both tables have",
		r.written(i, c), r.written(c.end+1, other), strings.ToLower(one), strings.ToLower(two))
}
