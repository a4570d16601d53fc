package output

// Objects of a list need not have the same members, and have objects in them. The columns are the union of all, in the
// order in which they first come; an object within adds a column for each of its own members, named with a dot.

import (
	"slices"
	"strings"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/jsontree"
)

// list is a part of an answer that has rows.
type list struct {
	// name is that of the member which holds the list; each row has a value for each column, in the same order.
	name    string
	columns []string
	rows    [][]value
}

// maxDepth is how deep objects within objects have columns of their own; what is deeper is a cell of JSON.
const maxDepth = 6

// listOf makes a list of objects: what is in an object within has a column of its own, named with a dot.
func listOf(name string, objects [][]jsontree.Member) list {
	tree := &columnTree{}
	for _, members := range objects {
		tree.add(members, maxDepth)
	}
	l := list{name: name}
	tree.number("", &l.columns)
	for _, members := range objects {
		row := slices.Repeat([]value{null}, len(l.columns))
		tree.fill(members, row)
		l.rows = append(l.rows, row)
	}
	return l
}

// columnTree is what a list's objects have in one place.
// Every object of a list is laid over the same tree.
type columnTree struct {
	name string
	// plain tells that the place has held something else than an object or null.
	plain bool
	// The places below, in the order in which they came, and the same by name.
	children []*columnTree
	at       map[string]*columnTree
	column   int
}

// add adds the places of an object's members to those of the objects before; depth is how many levels of columns are left.
func (n *columnTree) add(members []jsontree.Member, depth int) {
	for _, m := range members {
		c := n.at[m.Name]
		if c == nil {
			c = &columnTree{name: m.Name}
			if n.at == nil {
				n.at = map[string]*columnTree{}
			}
			n.at[m.Name], n.children = c, append(n.children, c)
		}
		if v := value(m.Value); v.kind() == '{' && depth > 1 {
			c.add(v.members(), depth-1)
		} else {
			c.plain = c.plain || v.kind() != 'n'
		}
	}
}

// number gives each place that has a column of its own its number and its name.
func (n *columnTree) number(above string, columns *[]string) {
	for _, c := range n.children {
		name := above + c.name
		// -1 is a place without a column: all that it ever holds is in the columns below it.
		c.column = -1
		if c.plain || len(c.children) == 0 {
			c.column = len(*columns)
			*columns = append(*columns, name)
		}
		c.number(name+".", columns)
	}
}

// fill puts the values of an object into the columns of a row.
func (n *columnTree) fill(members []jsontree.Member, row []value) {
	for _, m := range members {
		switch c, v := n.at[m.Name], value(m.Value); {
		case c == nil:
		case v.kind() == '{' && len(c.children) > 0:
			c.fill(v.members(), row)
		case c.column >= 0:
			row[c.column] = v
		}
	}
}

// choose keeps the columns that are named, in their order. A name that is no column is E_VALIDATION.
// A list without rows has no columns to check a name against, so any is taken.
func (l list) choose(names []string) (list, error) {
	if len(names) == 0 {
		return l, nil
	}
	for _, name := range names {
		if !slices.Contains(l.columns, name) && len(l.rows) > 0 && !l.within(name) {
			return l, fault.New(fault.Validation, "--columns: there is no %q; there are %s", Sanitize(name), Sanitize(strings.Join(l.columns, ", ")))
		}
	}
	return l.with(names), nil
}

// with is the list with these columns, null where it has none of the name.
func (l list) with(columns []string) list {
	at := make([]int, len(columns))
	for i, name := range columns {
		at[i] = slices.Index(l.columns, name)
	}
	out := list{name: l.name, columns: columns}
	for _, row := range l.rows {
		cells := slices.Repeat([]value{null}, len(columns))
		for i, from := range at {
			if from >= 0 {
				cells[i] = row[from]
			}
		}
		out.rows = append(out.rows, cells)
	}
	return out
}

// within tells whether a name may be that of a column within another, which happens to be null in every row.
func (l list) within(name string) bool {
	return slices.ContainsFunc(l.columns, func(c string) bool { return strings.HasPrefix(name, c+".") })
}

// table is the list as texts. A column of nothing but numbers and nulls is aligned to the right.
// What is in a cell is not yet clean: Table.Write sees to that.
func (l list) table() Table {
	var t Table
	for i, name := range l.columns {
		numbers, some := true, false
		for _, row := range l.rows {
			some = some || row[i].kind() == '0'
			numbers = numbers && (row[i].kind() == '0' || row[i].kind() == 'n')
		}
		t.Columns = append(t.Columns, Column{Name: name, Right: numbers && some})
	}
	for _, row := range l.rows {
		cells := make([]string, len(row))
		for i, v := range row {
			cells[i] = v.String()
		}
		t.Rows = append(t.Rows, cells)
	}
	return t
}
