package notice

import (
	"slices"
	"strconv"
	"time"

	"hub.internal/services/query/sqlguard/lexer"
	"hub.internal/services/query/sqlguard/notice/dates"
)

// A Column is what a source's catalog says of a column.
type Column struct {
	Type     string // as information_schema has it in data_type, such as datetime
	Nullable bool
	Key      string // PRI of the primary key, UNI unique, MUL or empty
}

// A Catalog is what is known of a source beside the text of a statement.
// It is read from information_schema at most once a minute (DESIGN.md), and not changed after that: several calls may read
// it at once.
type Catalog struct {
	// Tables are the columns of each table and view; all names are in upper case (lexer.UpperASCII).
	Tables map[string]map[string]Column
	// Zones says whether the server knows time zones by name.
	Zones bool
}

// source is a table in a FROM.
type source struct {
	table    string // empty of what a query, a WITH list or a function makes, and of other schemas
	alias    string
	at       int  // its token
	optional bool // a LEFT or RIGHT JOIN may have NULL in its place
}

// scope is one SELECT of a statement, from at to end.
// A name is looked up in the FROM of its own scope first, and then in those around it, as SQL resolves correlated
// subqueries.
type scope struct {
	at, end, parent int // parent is that of another scope, or -1
	from            []source
	tables, where   lexer.Argument // its FROM and WHERE, empty where there is none
	aliases         []string       // what its list names by AS
}

// reading is a statement with what its names stand for.
// It is made for one call, and is not safe for several goroutines: columns and fans are filled in when they are asked for.
type reading struct {
	lexer.Tokens
	catalog *Catalog
	scopes  []scope
	columns []found       // by token
	fans    map[int][]fan // by scope
}

// found is what column has found.
type found struct {
	reference
	known, asked bool
}

// read finds the SELECTs of a statement; false of any other.
// A SELECT may stand in parentheses, and behind a WITH list. EXPLAIN and SHOW answer no rows of tables, and are not read.
func (c *Catalog) read(text string) (r *reading, isSelect bool) {
	t, err := lexer.Lex(text)
	if err != nil || t.Pair() != nil {
		return nil, false
	}
	first := 0
	for t.Key(first) == "(" {
		first++
	}
	if !lexer.IsOneOf(t.Key(first), "SELECT|WITH") {
		return nil, false
	}
	t.MarkLists()
	r = &reading{Tokens: t, catalog: c, columns: make([]found, len(t)), fans: map[int][]fan{}}
	// A name that a WITH list defines hides the table of that name.
	made := map[string]bool{}
	for i := range t {
		if t[i].Defines != "" {
			made[t[i].Defines] = true
		}
	}
	for i := range t {
		if t.Key(i) == "SELECT" {
			r.scopes = append(r.scopes, r.scope(i, made))
		}
	}
	for i := range r.scopes {
		r.scopes[i].parent = r.enclosing(r.scopes[i].at - 1)
	}
	return r, true
}

// scope is the SELECT at i; made are the names of WITH lists.
// It ends before the UNION or the parenthesis that ends it, so that scopes are nested or apart, and never overlap by
// halves.
func (r *reading) scope(i int, made map[string]bool) scope {
	s := scope{at: i, end: i + 1}
	for s.end < len(r.Tokens) && r.Key(s.end) != ")" && !lexer.IsOneOf(r.Key(s.end), "UNION|EXCEPT|INTERSECT") {
		if r.Key(s.end) == "(" {
			s.end = r.Tokens[s.end].Mate
		}
		s.end++
	}
	s.tables.From, s.tables.To = r.Clause(i, "FROM")
	s.where.From, s.where.To = r.Clause(i, "WHERE")
	s.from = sources(r.Tokens, s.tables, made)
	for _, item := range r.Selected(i) {
		if last := item.To - 1; last > item.From && r.Name(last) != "" && r.Key(last-1) != "." && endsValue(r.Tokens, last-1) ||
			r.Key(last-1) == "AS" {
			s.aliases = append(s.aliases, r.Name(last))
		}
	}
	return s
}

// behindTable are words behind a table that are no alias.
var behindTable = lexer.WordSet(`ON USING JOIN LEFT RIGHT INNER CROSS NATURAL STRAIGHT_JOIN FORCE USE IGNORE PARTITION`)

// sources are the tables of a FROM.
// Those of parentheses that hold a join are among them. A RIGHT JOIN makes all tables before it optional, a LEFT JOIN the
// one behind it alone.
func sources(t lexer.Tokens, in lexer.Argument, made map[string]bool) (list []source) {
	begins, optional := true, false
	for i := in.From; i < in.To; i++ {
		switch key := t.Key(i); {
		case lexer.IsOneOf(key, ",|JOIN|STRAIGHT_JOIN"):
			side := i - 1
			if t.Key(side) == "OUTER" {
				side--
			}
			begins, optional = true, key == "JOIN" && t.Key(side) == "LEFT"
			if key == "JOIN" && t.Key(side) == "RIGHT" {
				for j := range list {
					list[j].optional = true
				}
			}
		case !begins && key == "(":
			i = t[i].Mate
		case !begins || key == "LATERAL" || key == ")":
		case key == "(" && !t.IsQuery(i): // tables that are joined first
		case key == "(" || t[i].Name != "":
			s := source{at: i, optional: optional}
			s, i = named(t, i, s, made)
			list, begins = append(list, s), false
		default:
			begins = false
		}
	}
	return list
}

// named reads the table at i, and returns where it ends before its alias.
// A name in front of a dot is a schema's: what is in it is not in the catalog, and has an alias alone.
func named(t lexer.Tokens, i int, s source, made map[string]bool) (source, int) {
	switch {
	case t.Key(i) == "(":
		i = t[i].Mate
	case t.Key(i+1) == "(":
		i = t[i+1].Mate
	case t.Key(i+1) == ".":
		s.alias = t.Name(i + 2)
		i += 2
	default:
		s.alias = t.Name(i)
		if !made[s.alias] {
			s.table = s.alias
		}
	}
	behind := i + 1
	if t.Key(behind) == "AS" {
		behind++
	}
	if name := t.Name(behind); name != "" && !behindTable[t.Key(behind)] && !lexer.ClauseWords[t.Key(behind)] {
		s.alias = name
	}
	return s, i
}

// enclosing is the innermost scope that token i is in, or -1.
func (r *reading) enclosing(i int) int {
	best := -1
	for n, s := range r.scopes {
		if s.at <= i && i < s.end && (best < 0 || s.at >= r.scopes[best].at) {
			best = n
		}
	}
	return best
}

// reference is a column that a statement names.
type reference struct {
	Column
	table, name string
	scope       int // whose FROM it is of
	source      int // the place of its table there
	end         int // behind it
}

// written is the column as the statement has it.
func (r *reading) written(i int, c reference) string {
	text := ""
	for j := i; j < c.end; j++ {
		text += r.Tokens[j].Text
	}
	return text
}

// column is what the name at i stands for, where that is sure; known says whether its table is in the catalog.
// The answer is kept by token: several of the checks ask for the same one.
func (r *reading) column(i int) (c reference, known bool) {
	if r.Name(i) == "" {
		return c, false
	}
	f := &r.columns[i]
	if !f.asked {
		f.reference, f.known = r.lookUp(i)
		f.asked = true
	}
	return f.reference, f.known
}

// lookUp resolves the name at i. It gives up, and so keeps silent, where an alias of the list hides the column, where a
// table without a catalog (a derived table, a WITH list, another schema) may own it, and where two tables do.
func (r *reading) lookUp(i int) (c reference, known bool) {
	if lexer.IsOneOf(r.Key(i-1), ".|AS") || i > 0 && r.Tokens[i-1].Text == "@" {
		return c, false
	}
	alias, at := "", i
	if r.Key(i+1) == "." {
		alias, at = r.Name(i), i+2
	}
	c.name, c.end = r.Name(at), at+1
	if c.name == "" || lexer.IsOneOf(r.Key(c.end), ".|(") {
		return c, false
	}
	for n := r.enclosing(i); n >= 0; n = r.scopes[n].parent {
		s := &r.scopes[n]
		// WHERE and ON do not know the aliases of the list; GROUP BY, HAVING and ORDER BY do.
		if alias == "" && slices.Contains(s.aliases, c.name) && !(s.where.From <= i && i < s.where.To || s.tables.From <= i && i < s.tables.To) {
			return c, false
		}
		owners := 0
		for m, from := range s.from {
			columns := r.catalog.Tables[from.table]
			if alias == "" && columns == nil {
				return c, false
			}
			column, has := columns[c.name]
			if alias == "" && has || alias != "" && from.alias == alias {
				owners++
				c.Column, c.table, c.scope, c.source, known = column, from.table, n, m, has
			}
		}
		if owners > 0 {
			return c, known && owners == 1
		}
	}
	return c, false
}

// of reports whether the value from one place to another is a column alone.
func (r *reading) of(a lexer.Argument) (reference, bool) {
	c, known := r.column(a.From)
	return c, known && c.end == a.To
}

// beforeValue are words and marks before a value.
var beforeValue = lexer.WordSet(`WHERE AND OR XOR ON HAVING WHEN THEN ELSE CASE SELECT DISTINCT , ( NOT BY IF`)

// beginsValue reports whether nothing stands before i that could be part of a value there.
func (r *reading) beginsValue(i int) bool { return i == 0 || beforeValue[r.Key(i-1)] }

// operator is the comparison at i, "" for none, and where it ends.
// Of two marks it is both, as in >=; LIKE, IN and BETWEEN are words, and no operator here.
func (r *reading) operator(i int) (op string, end int) {
	end, is := r.Comparison(i)
	if !is {
		return "", i
	}
	for j := i; j < end; j++ {
		op += r.Key(j)
	}
	return op, end
}

// momentValue is a column of times, by itself or with hours added.
type momentValue struct {
	reference
	name       string        // as it is written
	ahead      time.Duration // how much later it is than the column
	shiftKnown bool          // false where CONVERT_TZ has a zone with a summer time
}

// momentValue is the column of times at i, and what is behind it; hours may be added to it or taken from it, or another zone's time be made
// of it. The end is 0 of anything else: of days that are added nothing is said, since the column may have midnights.
func (r *reading) momentValue(i int) (v momentValue, end int) {
	call, at := r.Key(i+1) == "(" && lexer.IsOneOf(r.Key(i), "DATE_ADD|DATE_SUB|ADDDATE|SUBDATE|CONVERT_TZ"), i
	if call {
		at = i + 2
	}
	c, known := r.column(at)
	if !known || !c.isMoment() {
		return v, 0
	}
	v.reference, v.shiftKnown = c, true
	end = c.end
	hours := func(j int) bool { return r.Key(j) == "INTERVAL" && r.Key(j+2) == "HOUR" && r.Tokens[j+1].Digits }
	added := 0 // where INTERVAL is
	switch {
	case call && r.Key(end) == "," && r.Key(i) == "CONVERT_TZ":
		v.ahead, v.shiftKnown = dates.Ahead(r.Tokens, r.Arguments(i+1))
		end = r.Tokens[i+1].Mate + 1
	case call && r.Key(end) == "," && hours(end+1) && r.Tokens[i+1].Mate == end+4:
		added, end = end+1, end+5
	case call:
		return v, 0
	case lexer.IsOneOf(r.Key(end), "+|-") && hours(end+1):
		added, end = end+1, end+4
	}
	if added > 0 {
		n, err := strconv.Atoi(r.Tokens[added+1].Text)
		v.ahead, v.shiftKnown = time.Duration(n)*time.Hour, err == nil && n <= 100_000
		if r.Key(added-1) == "-" || lexer.IsOneOf(r.Key(i), "DATE_SUB|SUBDATE") {
			v.ahead = -v.ahead
		}
	}
	v.name = r.asWritten(i, end)
	return v, end
}

// asWritten is a part of the statement, with a blank where something is between its words.
func (r *reading) asWritten(from, to int) (text string) {
	for j := from; j < to; j++ {
		if j > from && r.Tokens[j].Start > r.Tokens[j-1].End {
			text += " "
		}
		text += r.Tokens[j].Text
	}
	return text
}
