package output

import (
	"fmt"
	"slices"
	"strings"
)

// list is a part of an answer that has rows.
type list struct {
	name    string
	columns []string
	rows    [][]value
}

// within is how deep objects within objects have columns of their own; what is deeper is a cell of JSON.
const within = 6

// null is a cell without a value.
var null = value{kind: 'n', text: "null"}

// listOf makes rows of a list of objects: what is in an object within has a column of its own, named with a dot.
func listOf(name string, items []value) list {
	tree := &node{}
	for _, item := range items {
		tree.see(item, within)
	}
	l := list{name: name}
	tree.number("", &l.columns)
	for _, item := range items {
		row := blank(len(l.columns))
		tree.fill(item, row)
		l.rows = append(l.rows, row)
	}
	return l
}

func blank(n int) []value {
	row := make([]value, n)
	for i := range row {
		row[i] = null
	}
	return row
}

// node is what a list's objects have in one place.
type node struct {
	name string
	// plain tells that the place has held something else than an object or null.
	plain    bool
	children []*node
	at       map[string]*node
	column   int
}

func (n *node) see(v value, depth int) {
	if v.kind != '{' || depth == 0 {
		n.plain = n.plain || v.kind != 'n'
		return
	}
	for _, m := range v.members {
		c := n.at[m.name]
		if c == nil {
			c = &node{name: m.name}
			if n.at == nil {
				n.at = map[string]*node{}
			}
			n.at[m.name], n.children = c, append(n.children, c)
		}
		c.see(m.value, depth-1)
	}
}

// number gives each place that has a column of its own its number and its name.
func (n *node) number(above string, columns *[]string) {
	for _, c := range n.children {
		name := above + c.name
		c.column = -1
		if c.plain || len(c.children) == 0 {
			c.column = len(*columns)
			*columns = append(*columns, name)
		}
		c.number(name+".", columns)
	}
}

func (n *node) fill(v value, row []value) {
	for _, m := range v.members {
		switch c := n.at[m.name]; {
		case c == nil:
		case m.value.kind == '{' && len(c.children) > 0:
			c.fill(m.value, row)
		case c.column >= 0:
			row[c.column] = m.value
		}
	}
}

// choose keeps the columns that are named, in their order.
func (l list) choose(names []string) (list, error) {
	if len(names) == 0 {
		return l, nil
	}
	at := make([]int, len(names))
	for i, name := range names {
		if at[i] = slices.Index(l.columns, name); at[i] < 0 && len(l.rows) > 0 && !l.within(name) {
			return l, &Misuse{fmt.Sprintf("--columns: there is no %q; there are %s", Clean(name), Clean(strings.Join(l.columns, ", ")))}
		}
	}
	chosen := list{name: l.name, columns: names}
	for _, row := range l.rows {
		of := make([]value, len(at))
		for i, n := range at {
			if of[i] = null; n >= 0 {
				of[i] = row[n]
			}
		}
		chosen.rows = append(chosen.rows, of)
	}
	return chosen, nil
}

// within tells whether a name may be that of a column within another, which happens to be null in every row.
func (l list) within(name string) bool {
	return slices.ContainsFunc(l.columns, func(c string) bool { return strings.HasPrefix(name, c+".") })
}

func (l list) table() Table {
	var t Table
	for i, name := range l.columns {
		numbers, some := true, false
		for _, row := range l.rows {
			some = some || row[i].kind == 0
			numbers = numbers && (row[i].kind == 0 || row[i].kind == 'n')
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

// Misuse is a choice that the answer does not offer.
type Misuse struct{ text string }

// Error implements error.
func (m *Misuse) Error() string { return m.text }
