package weight

import (
	"slices"

	"hub.internal/services/query/sqlguard/lexer"
)

// What a recursive query of a WITH list makes of its own rows. A server holds a row's text several times while it makes the next
// one of it, and a longer text finds no place where a shorter one has been: MySQL took 0.5 GB for texts of a packet.
const (
	// multiplied is how much longer a value may become in one step where the first step says by CAST how wide its column is.
	multiplied = 8
	// widest is the greatest such width: a wider column is a long text, which its width does not bound.
	widest = 16383
	// followed is how many steps are estimated; what grows in the last of them goes on so for recursed steps.
	followed = 6
	recursed = 1000
	// mostGrown is the greatest text that a recursion may come to, where columns have usualColumn.
	mostGrown = 16 << 20
)

// recursion is a query that refers to itself, and the sizes of its columns after some of its steps.
type recursion struct {
	columns []string // nil where they are not known: each name may be the greatest column's then
	wide    []bool   // the first step says how wide the column is
	sizes   []float64
	own     []string // what stands before the point in front of its columns
	others  []string // what stands so in front of another table's
}

// definition estimates the query of a WITH list in the parenthesis at i, which a recursion computes of what it has made: what grows
// goes on to grow, unless the width of the first step bounds it.
// A recursion within a recursion is not followed: the steps of the outer one estimate its query anew each time.
func (w *weigher) definition(i int, in yield, recursive bool) yield {
	out := w.subquery(i, in)
	if !recursive || w.step != nil {
		return out
	}
	if grown, goesOn := w.grown(i, max(out.value, in.value), in); grown > 0 {
		if goesOn && w.column == usualColumn && grown > mostGrown && w.growing < 0 {
			w.growing = i
		}
		w.add(grown)
		out = out.or(yield{value: grown, row: out.row + grown})
	}
	// JSON_ARRAYAGG in the first SELECT makes a document, and the second one copies it into each row.
	if out.documents && w.column == smallColumn && w.refers(i, w.Tokens[i].Defines) {
		out.value = max(out.value, document) // each step may yield them again
	}
	return out
}

// grown is the greatest text that the recursion in the parenthesis at i comes to from columns of a size, 0 where none becomes longer,
// and whether more than its first step makes it longer. One that grows by more in each step is taken to fill a packet.
// It makes a copy of the weigher and follows the first steps with it. Growth of a constant amount in each step, as of
// CONCAT(path, '/', name), goes on for recursed steps; growth that itself grows, as of CONCAT(path, path), is exponential.
func (w *weigher) grown(i int, size float64, in yield) (most float64, goesOn bool) {
	r := w.recursion(i, size)
	var growth [followed]float64
	for n := range growth {
		again := *w
		again.made, again.step = map[int]yield{}, r
		sizes := again.follow(i, in)
		growth[n] = slices.Max(sizes) - slices.Max(r.sizes)
		r.sizes = sizes
	}
	const last = followed - 1
	most = slices.Max(r.sizes)
	switch {
	case most == size:
		return 0, false
	case growth[last] > 1.5*growth[last-3]+1:
		return packet, true
	}
	return min(packet, most+recursed*growth[last]), growth[1] > 0
}

// recursion is the one in the parenthesis at i, whose columns have a size.
// Its columns are named by the list behind the name, else by the first SELECT of the UNION, as servers name them.
func (w *weigher) recursion(i int, size float64) *recursion {
	r := &recursion{own: []string{w.Tokens[i].Defines}}
	from, to := i+1, w.Tokens[i].Mate
	end, first := w.branchEnd(from, to)
	r.columns, r.wide = w.columns(from, end)
	if w.Key(i-2) == ")" && len(r.columns) == len(w.Arguments(w.Tokens[i-2].Mate)) { // name (columns) AS (
		for k, a := range w.Arguments(w.Tokens[i-2].Mate) {
			r.columns[k] = w.Tokens[a.From].Name
		}
	}
	if slices.Contains(r.columns, "") {
		r.columns, r.wide = nil, nil
	}
	if end, _ := w.branchEnd(first, to); end < to {
		r.wide = nil // another one than the first may say otherwise
	}
	r.sizes = make([]float64, max(len(r.columns), 1))
	for k := range r.sizes {
		r.sizes[k] = size
	}
	for j := first; j < to; j++ {
		if !w.IsTable(j) {
			continue
		}
		alias := j + 1
		if w.Key(alias) == "AS" {
			alias++
		}
		if lexer.Alike(w.Tokens[j].Name, r.own[0]) {
			r.own = append(r.own, w.Name(alias))
		} else {
			r.others = append(r.others, w.Tokens[j].Name, w.Name(alias))
		}
	}
	return r
}

// columns are the names of what the query in [from, to) selects, "" for what has none that is written so, and whether it says by CAST
// how wide each is; nil where a star is among them.
func (w *weigher) columns(from, to int) (names []string, wide []bool) {
	for w.Key(from) == "(" || w.Key(from) == "SELECT" || w.Key(from) == "ALL" || w.Key(from) == "DISTINCT" {
		from++
	}
	for start, j := from, from; j <= to; j++ {
		ends := j == to || clauses[w.Key(j)] || w.Key(j) == ")"
		if !ends && w.Key(j) != "," {
			if w.Key(j) == "(" {
				j = w.Tokens[j].Mate
			}
			continue
		}
		if w.Key(j-1) == "*" {
			return nil, nil
		}
		names, wide = append(names, w.columnName(start, j)), append(wide, w.isWide(start, j))
		if ends {
			break
		}
		start = j + 1
	}
	return names, wide
}

// columnName is the name of what is selected in [from, to): its alias, or that of a column; "" for none.
func (w *weigher) columnName(from, to int) string {
	last, before := to-1, to-2
	switch {
	case last == from, w.Key(before) == "AS", w.Key(before) == "." && last == from+2:
	case last > from && (w.Key(before) == ")" || w.Tokens[before].Digits || w.Tokens[before].Quoted) && w.Key(last) != "END":
	default:
		return ""
	}
	return w.Name(last)
}

// isWide reports whether what is selected in [from, to) is CAST(... AS CHAR(n)): servers cut what is longer, or refuse it.
// The width is in characters, and one above widest is no bound.
func (w *weigher) isWide(from, to int) bool {
	if w.Key(from) != "CAST" || w.Key(from+1) != "(" {
		return false
	}
	end := w.Tokens[from+1].Mate
	if w.Key(end+1) != "AS" && end+2 < to || w.Key(end-1) != ")" || w.Key(end-3) != "(" || !w.Tokens[end-2].Digits {
		return false
	}
	return w.Integer(lexer.Argument{From: end - 2, To: end - 1}) <= widest
}

// branchEnd is the end of the first query of a UNION in [from, to), and where the next one begins: to where there is none.
// Both are to where there is one query alone; UNION within parentheses belongs to another query.
func (w *weigher) branchEnd(from, to int) (end, next int) {
	for end = from; end < to; end++ {
		if w.Key(end) == "(" {
			end = w.Tokens[end].Mate
		} else if w.Key(end) == "UNION" {
			for next = end + 1; w.Key(next) == "ALL" || w.Key(next) == "DISTINCT"; next++ {
			}
			return end, next
		}
	}
	return to, to
}

// follow estimates the columns of the recursion in the parenthesis at i after one more step.
// Columns whose width the first step bounds stay as they are, unless a step would make them longer by more than multiplied:
// the server makes that before it cuts it.
func (w *weigher) follow(i int, in yield) []float64 {
	from, to := i+1, w.Tokens[i].Mate
	sizes := slices.Clone(w.step.sizes)
	_, start := w.branchEnd(from, to)
	if start == to || w.Key(from) == "WITH" { // the step is anywhere in it
		w.step = &recursion{sizes: []float64{slices.Max(sizes)}}
		start = from
	}
	for start < to {
		end, next := w.branchEnd(start, to)
		made := w.query(start, end, in)
		for k := range sizes {
			size := made.value
			if len(made.columns) == len(sizes) && len(w.step.columns) > 0 {
				size = made.columns[k]
			}
			if k >= len(w.step.wide) || !w.step.wide[k] || size > multiplied*sizes[k] {
				sizes[k] = max(sizes[k], size)
			}
		}
		start = next
	}
	return sizes
}

// named is the size of the column that is named at i, where others have that of in.
// In a step of a recursion a name may be one of its own columns, with the size that these have come to by then; a name
// behind another table's is not.
func (w *weigher) named(i int, in yield) float64 {
	size := in.greatest()
	if w.Key(i-1) == "." && !alike(w.long, w.Name(i-2)) { // of another table than those with long texts
		size = in.value
	}
	if w.step == nil {
		return size
	}
	if table := w.Name(i - 2); w.Key(i-1) == "." && alike(w.step.others, table) && !alike(w.step.own, table) {
		return size
	}
	for k, column := range w.step.columns {
		if lexer.Alike(column, w.Tokens[i].Name) {
			size = max(size, w.step.sizes[k])
		}
	}
	if w.step.columns == nil {
		size = max(size, slices.Max(w.step.sizes))
	}
	return size
}

// alike reports whether a name may be one of the names, as servers compare them.
func alike(names []string, name string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return lexer.Alike(n, name) })
}

// refers reports whether the query in the parenthesis at i names a table.
func (w *weigher) refers(i int, table string) bool {
	for j := i + 1; j < w.Tokens[i].Mate; j++ {
		if w.IsTable(j) && lexer.Alike(w.Tokens[j].Name, table) {
			return true
		}
	}
	return false
}
