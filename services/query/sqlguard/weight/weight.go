package weight

import (
	"math"

	"hub.internal/services/query/sqlguard/lexer"
)

// The memory that a statement makes a server take is bounded from its text. A value's size is estimated from above: a column
// has a size that is presumed, a function makes of its arguments what the lists below say, and a column of a derived table,
// a WITH list or an alias has the greatest size that such a query makes, whatever it is called. So growth multiplies along the
// nesting of calls and from query to query, and not among calls that stand side by side.
const (
	// packet is the greatest value of the functions that servers hold against max_allowed_packet: 64 MiB by default on MySQL.
	packet = 64 << 20
	// greatValue is the greatest value that may be made of a column of longColumn, or of a packet, by functions that servers
	// hold against nothing. What makes it takes twice as much.
	greatValue = 256 << 20
	longColumn = 16 << 20
	// greatSum is what the values of a statement may take together, its rows among them, where columns have usualColumn. longSum is the
	// same without the documents, which are estimated well above what they are: two packets and a row of columns. usualSum is the same
	// where the numbers that nobody knows are usualNumber. MySQL makes each long text as one piece, and its allocator keeps the room of
	// most that it has freed, in pieces that are too short for the next.
	greatSum    = 240 << 20
	longSum     = 129 << 20
	usualSum    = 64 << 20
	usualNumber = 1 << 20
	usualColumn = 1 << 10
	// heavy is from where such a sum makes a statement one of those of which a single one runs at a time, and for a short time.
	heavy = 16 << 20
	// aggregated is what GROUP_CONCAT makes, of usual columns: group_concat_max_len bounds it.
	aggregated = 1 << 20
	// document is what JSON_ARRAYAGG and JSON_OBJECTAGG make, of usual columns: on MySQL nothing bounds it but the time, and each
	// reference to it makes another one.
	document = 14 << 20
	// gathered is what JSON_ARRAYAGG, JSON_OBJECTAGG and a sorted GROUP_CONCAT may take from each row, where columns have smallColumn: they
	// hold all rows in memory at once, and MySQL looks neither at max_allowed_packet nor, for a thousand rows at a time, at KILL.
	gathered    = 16 << 10
	smallColumn = 512
	// sortedColumn is the greatest value, where columns have smallColumn, that GROUP_CONCAT with DISTINCT or ORDER BY may hold of each row
	// in a statement that is not heavy. MariaDB keeps such values until the group ends, at some 90 MB a second, whatever
	// group_concat_max_len says, and looks at KILL once for each join buffer.
	sortedColumn = 4 * smallColumn
	// mostPattern is how long a computed pattern of REGEXP may be, where columns have smallColumn: MySQL takes half a minute to
	// compile 200 KB of them, and looks neither at the time limit nor at KILL.
	mostPattern = 8 << 10
	// number is the size of what is a number, a date or a hash.
	number = 64
)

// scale are the sizes that are presumed, how often a text is repeated by a number that nobody knows, and what all values may take.
type scale struct{ column, aggregate, document, times, sum float64 }

// scales are the estimates that each statement has to pass, one after another: one size of a column cannot serve all
// bounds. With usual columns the sum of all values is bounded (thrice: with documents, without them, and with unknown
// numbers taken for a million), with long columns the growth of a single value, with small ones what an aggregate holds of
// each row.
var scales = [...]scale{
	{usualColumn, aggregated, document, packet, greatSum},
	{usualColumn, aggregated, aggregated, packet, longSum},
	{usualColumn, aggregated, aggregated, usualNumber, usualSum},
	{longColumn, longColumn, longColumn, packet, math.Inf(1)},
	{smallColumn, smallColumn, smallColumn, packet, math.Inf(1)},
}

// Check refuses a statement whose values may grow beyond what a server should hold, and reports whether it is heavy.
// The refusal is a *lexer.Refusal of the rule sql.size, which a caller gets as E_VALIDATION with what to write instead. A
// heavy statement is accepted: the reader runs one at a time, for a second (mysql/statements). Tokens have to be paired,
// and their WITH lists marked; from is behind EXPLAIN, if there is one.
func Check(t lexer.Tokens, from int) (isHeavy bool, err error) {
	for _, s := range scales {
		// Each scale has its own weigher: what a subquery makes depends on the size of a column.
		w := &weigher{Tokens: t, scale: s, largest: -1, gathers: -1, pattern: -1, growing: -1, made: map[int]yield{},
			documents: map[string]bool{}, products: products{at: -1, many: map[string]bool{}, single: map[string]bool{}}}
		w.query(from, len(t), yield{value: s.column, row: 100 * s.column})
		switch {
		case w.growing >= 0:
			return false, lexer.Refuse("sql.size", "the texts of the recursion %s may grow to more than %d MiB: let what grows stand once in "+
				"each step, as in CONCAT(%[1]s.path, '/', c.name), or say in the first SELECT how long it is at most: "+
				"CAST(name AS CHAR(200)) AS path", t[w.growing].Defines, mostGrown>>20)
		case w.sum > s.sum:
			return false, lexer.Refuse("sql.size",
				"the values of a row may take more than %d MiB: give REPEAT(), SPACE(), LPAD() and RPAD() a plain "+
					"number or LEAST(n, 100), and refer to what they make less often", int(s.sum)>>20)
		case s.column == longColumn && w.largest >= 0:
			return false, lexer.Refuse("sql.size",
				"%s() makes a text grow beyond bounds here: HEX(), JSON_QUOTE() and the like multiply it when one "+
					"works on what another has made, in a derived table, too; use it once, in the outermost SELECT", t[w.largest].Key)
		case s.column == smallColumn && w.gathers >= 0:
			return false, lexer.Refuse("sql.size",
				"%s holds all rows in memory, %d KiB of each at most: gather columns, CAST, CONCAT or JSON_OBJECT of "+
					"them, no text of REPEAT() or the like, nor what a joined table or a subquery without WHERE gathers",
				gatherer(t[w.gathers].Key), gathered>>10)
		case s.column == smallColumn && w.at >= 0:
			return false, lexer.Refuse("sql.size", "%s would gather each row of one table with each of another one: say in ON which rows belong "+
				"together, or gather within a derived table", gatherer(t[w.at].Key))
		case s.column == smallColumn && w.pattern >= 0:
			return false, lexer.Refuse("sql.size", "the pattern of %s is computed and may be longer than %d KiB: write it as a literal, or as "+
				"CONCAT() of literals and a column", t[w.pattern].Key, mostPattern>>10)
		}
		isHeavy = isHeavy || s.column == usualColumn && w.sum > heavy || w.gathering
	}
	return isHeavy, nil
}

// CheckExplained refuses to have documents explained that a derived table makes: MySQL makes them to explain the statement, and its
// time limit is not for EXPLAIN.
// It is refused by the rule sql.explain. EXPLAIN SELECT JSON_ARRAYAGG(name) FROM brand passes, since nothing is made of an
// aggregate in the outermost query; EXPLAIN SELECT * FROM (SELECT JSON_ARRAYAGG(name) FROM brand) t does not.
func CheckExplained(t lexer.Tokens, from int) error {
	for i := from; i < len(t); i++ {
		if t.Key(i) != "(" || t.Key(i+1) != "SELECT" && t.Key(i+1) != "WITH" {
			continue
		}
		for j := i; j < t[i].Mate; j++ {
			if isAggregateOfJSON(t, j) {
				return lexer.Refuse("sql.explain", "EXPLAIN makes what %s() gathers in a derived table: explain it with COUNT() there, for the plan "+
					"is the same", t[j].Name)
			}
		}
		i = t[i].Mate
	}
	return nil
}

// gatherer is what a message calls an aggregate that holds all rows.
func gatherer(name string) string {
	switch name {
	case "GROUP_CONCAT":
		return name + "() with DISTINCT or ORDER BY"
	case "COUNT", "SUM", "AVG":
		return name + "() with DISTINCT"
	}
	return name + "()"
}

// yield is what a query yields, or what a list of tables has: the size of the greatest column and that of a row.
// Sizes are bytes, as floats: growth multiplies, and a float goes to infinity where an integer would wrap around.
type yield struct {
	value, row float64
	columns    []float64 // of each column of a SELECT without a star
	documents  bool      // among its columns may be what an aggregate of JSON, or a GROUP_CONCAT without groups, has made of many rows
	joined     bool      // several tables, which give such a column to many rows
	spread     bool      // its columns may be such texts, which are given to many rows
	product    bool      // its rows are those of tables that are joined without a condition
}

// weigher estimates the sizes of one statement's values.
// It is an abstract interpretation of the text: no value is computed, each is a size from above. The indexes of tokens that
// it keeps are for the message of a refusal; only the first one of each kind counts.
type weigher struct {
	lexer.Tokens
	scale
	sum       float64 // of all that is made
	largest   int     // where a value goes beyond greatValue, -1 for nowhere
	gathers   int     // where an aggregate holds too much, -1 for nowhere
	gathering bool    // there is an aggregate of JSON, or a sorted one of long texts
	pattern   int     // where a pattern of REGEXP may be too long, -1 for nowhere
	// made are the yields of subqueries by the token of their parenthesis: a query that is referred to often is estimated
	// once.
	made      map[int]yield
	documents map[string]bool // the queries of WITH lists that may yield documents
	long      []string        // what tables are called that may
	products
	growing int        // where a recursion begins whose texts grow beyond mostGrown, -1 for nowhere
	step    *recursion // of which a step is estimated: recursions within it are not followed
}

// query estimates the query in [from, to), where a name stands for a value of in.
// It takes WITH, a UNION and parentheses around all of it apart, and leaves each SELECT to branch.
func (w *weigher) query(from, to int, in yield) yield {
	for w.Key(from) == "(" && w.Tokens[from].Mate == to-1 {
		from, to = from+1, to-1
	}
	if w.Key(from) == "WITH" {
		end := w.WithEnd(from)
		for i := from; i < end && i < to; i++ {
			if w.Key(i) == "(" {
				if w.Tokens[i].Defines != "" {
					defined := w.definition(i, in, w.Key(from+1) == "RECURSIVE")
					w.documents[w.Tokens[i].Defines] = defined.documents
					w.many[w.Tokens[i].Defines] = defined.product
					w.single[w.Tokens[i].Defines] = w.isSingle(i)
					// A name is not resolved: whatever stands behind may be a column of the list, and so has its greatest
					// size.
					in = in.or(defined.values()) // those behind it may refer to it
				}
				i = w.Tokens[i].Mate
			}
		}
		if end < 0 || end >= to {
			return in
		}
		return w.query(end, to, in)
	}
	var out yield
	start := from
	for i := from; i <= to; i++ {
		if i == to || w.Key(i) == "UNION" || w.Key(i) == "EXCEPT" || w.Key(i) == "INTERSECT" {
			made := w.branch(start, i, in, out)
			out = out.or(made)
			// Only of a query without UNION are the sizes of single columns known.
			if start == from && i == to {
				out.columns = made.columns
			}
			start = i + 1
			for start < to && (w.Key(start) == "ALL" || w.Key(start) == "DISTINCT") {
				start++
			}
			continue
		}
		if w.Key(i) == "(" {
			i = w.Tokens[i].Mate
		}
	}
	return out
}

// or is the greater of two yields in each respect, as for the branches of a UNION, of which a row is of either one.
func (y yield) or(other yield) yield {
	return yield{value: max(y.value, other.value), row: max(y.row, other.row), documents: y.documents || other.documents,
		joined: y.joined || other.joined, spread: y.spread || other.spread, product: y.product || other.product}
}

// values are the sizes alone.
func (y yield) values() yield { return yield{value: y.value, row: y.row, spread: y.spread} }

// greatest is the size of the greatest of all columns.
func (y yield) greatest() float64 {
	if y.spread {
		return max(y.value, document)
	}
	return y.value
}

// subquery estimates the query in the parenthesis at i, once.
func (w *weigher) subquery(i int, in yield) yield {
	out, known := w.made[i]
	if !known {
		made := w.query(i+1, w.Tokens[i].Mate, in)
		out = made.values()
		out.product = made.product
		for j := i; j < w.Tokens[i].Mate && !out.documents; j++ {
			out.documents = isAggregateOfJSON(w.Tokens, j) || w.IsTable(j) && w.documents[w.Tokens[j].Name] || w.listsAll(i, j)
		}
		w.made[i] = out
	}
	return out
}

// listsAll reports whether a GROUP_CONCAT of all rows begins at j in the query in the parenthesis at i: groups make shorter lists.
func (w *weigher) listsAll(i, j int) bool {
	return w.Tokens[j].Name == "GROUP_CONCAT" && w.Key(j+1) == "(" && w.own(i+1, w.Tokens[i].Mate, w.groups) < 0
}

// groups reports whether GROUP BY begins at i.
func (w *weigher) groups(i int) bool { return w.Key(i) == "GROUP" }

// clauses end the list behind SELECT, or stand behind FROM.
var clauses = lexer.WordSet(`FROM WHERE GROUP HAVING ORDER WINDOW LIMIT FETCH PROCEDURE`)

// branch estimates SELECT ... without UNION; before is what those before it yield.
// It reads FROM first, which is written behind the list that needs it, and then the list, whose aliases ORDER BY, GROUP BY
// and HAVING know. In WHERE they are not known; to count them there as well errs on the safe side.
func (w *weigher) branch(from, to int, in, before yield) yield {
	if w.Key(from) == "(" {
		end := w.Tokens[from].Mate + 1
		out := w.query(from, end, in)
		in = in.or(out).or(before)
		w.expression(end, to, in, in) // ORDER BY of all
		return out
	}
	if k := w.Key(from); k == "SELECT" || k == "VALUES" {
		from++
	}
	cuts := []int{from}
	for i := from; i < to; i++ {
		if w.Key(i) == "(" {
			i = w.Tokens[i].Mate
		} else if clauses[w.Key(i)] {
			cuts = append(cuts, i)
		}
	}
	cuts = append(cuts, to)
	// What is in FROM is known to all of the others.
	var of yield
	for c := 1; c < len(cuts)-1; c++ {
		if w.Key(cuts[c]) == "FROM" {
			of = w.tables(cuts[c]+1, cuts[c+1], in.values())
			in = of.values()
			in.spread = of.documents && of.joined && w.column == smallColumn
		}
	}
	out := w.items(cuts[0], cuts[1], in)
	in.value = max(in.value, out.value, before.value) // by their aliases
	for c := 1; c < len(cuts)-1; c++ {
		w.expression(cuts[c]+1, cuts[c+1], in, in)
	}
	out.product = w.multiply(from, cuts, of)
	return out
}

// tables estimates the derived tables between two tokens: of a list of them a row has all columns. Behind LATERAL one may
// refer to those before.
// A row of a join holds the columns of all tables, so that rows are added up and values are not.
func (w *weigher) tables(from, to int, in yield) yield {
	out := in
	on := false // behind ON, what stands in parentheses is no table
	for i := from; i < to; i++ {
		switch w.Key(i) {
		case "ON":
			on = true
		case "JOIN", "STRAIGHT_JOIN", ",":
			on, out.joined = false, true
		}
		if w.IsTable(i) {
			out.row += in.row
			if w.documents[w.Tokens[i].Name] {
				out.documents = true
				w.long = append(w.long, w.Tokens[i].Name, w.alias(i))
			}
			out.product = out.product || w.many[w.Tokens[i].Name]
		}
		if w.Key(i) != "(" {
			continue
		}
		if on {
			i = w.Tokens[i].Mate
			continue
		}
		seen := in
		if w.Key(i-1) == "LATERAL" {
			seen = in.or(out)
		}
		if w.IsQuery(i) && (w.Key(i+1) != "(" || w.queryInside(i)) {
			derived := w.subquery(i, seen)
			if derived.documents {
				w.long = append(w.long, w.alias(w.Tokens[i].Mate))
			}
			row := out.row + derived.row
			out = yield{value: max(out.value, derived.value), row: row, documents: out.documents || derived.documents,
				joined: out.joined, product: out.product || derived.product}
		} else {
			out = w.tables(i+1, w.Tokens[i].Mate, out)
		}
		i = w.Tokens[i].Mate
	}
	return out
}

// alias is the name that a table or a derived one is given, which ends at i; "" for none.
func (w *weigher) alias(i int) string {
	if w.Key(i+1) == "AS" {
		i++
	}
	return w.Name(i + 1)
}

// queryInside reports whether the parentheses at i open a query, and no join.
// ((SELECT 1) UNION (SELECT 2)) is a query, and ((SELECT 1) a JOIN b) is a join: what follows the inner parenthesis tells.
func (w *weigher) queryInside(i int) bool {
	first := i
	for w.Key(i) == "(" {
		i++
	}
	if k := w.Key(i); k != "SELECT" && k != "WITH" && k != "VALUES" {
		return false
	}
	behind := w.Tokens[first+1].Mate + 1 // of the inner parenthesis
	switch w.Key(behind) {
	case ")", "UNION", "EXCEPT", "INTERSECT", "ORDER", "LIMIT":
		return true
	}
	return false
}

// items estimates the list behind SELECT. A subquery in it may refer to the aliases before it.
// A * stands for a whole row. What an operator makes a number of is small, however long the texts are that it compares.
func (w *weigher) items(from, to int, in yield) (out yield) {
	known, star := in, false
	for start, i := from, from; i <= to; i++ {
		if i < to && w.Key(i) == "(" {
			i = w.Tokens[i].Mate
			continue
		}
		if i < to && w.Key(i) != "," {
			continue
		}
		var size float64
		if w.Key(i-1) == "*" { // and no factor: nothing follows
			size, star = in.row, true
			out.value = max(out.value, in.greatest())
		} else {
			size = w.expression(start, i, in, known)
			if w.isNumber(start, i) {
				size = min(size, number)
			}
			out.value = max(out.value, size)
		}
		out.row += size
		out.columns = append(out.columns, size)
		known.value = max(known.value, out.value)
		start = i + 1
	}
	w.add(out.row)
	if star {
		out.columns = nil
	}
	return out
}

// add counts a size to what the statement takes together: in the worst case a server holds all values at once.
func (w *weigher) add(size float64) { w.sum += size }
