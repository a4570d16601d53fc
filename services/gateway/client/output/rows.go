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

// listOf makes rows of a list of objects: what is in an object within has a column of its own, named with a dot.
func listOf(name string, items []value) list {
	var tree node
	for _, item := range items {
		tree.see(item)
	}
	l := list{name: name, columns: tree.paths("")}
	for _, item := range items {
		row := make([]value, len(l.columns))
		for i, path := range l.columns {
			if v, ok := item.at(path); ok {
				row[i] = v
			} else {
				row[i] = value{kind: 'n', text: "null"}
			}
		}
		l.rows = append(l.rows, row)
	}
	return l
}

// node is what a list's objects have in one place.
type node struct {
	name string
	// plain tells that the place has held something else than an object or null.
	plain    bool
	children []*node
}

func (n *node) see(v value) {
	if v.kind != '{' {
		n.plain = n.plain || v.kind != 'n'
		return
	}
	for _, m := range v.members {
		at := slices.IndexFunc(n.children, func(c *node) bool { return c.name == m.name })
		if at < 0 {
			at = len(n.children)
			n.children = append(n.children, &node{name: m.name})
		}
		n.children[at].see(m.value)
	}
}

func (n *node) paths(above string) (paths []string) {
	for _, c := range n.children {
		path := above + c.name
		if c.plain || len(c.children) == 0 {
			paths = append(paths, path)
		}
		paths = append(paths, c.paths(path+".")...)
	}
	return paths
}

// choose keeps the columns that are named, in their order.
func (l list) choose(names []string) (list, error) {
	if len(names) == 0 {
		return l, nil
	}
	at := make([]int, len(names))
	for i, name := range names {
		if at[i] = slices.Index(l.columns, name); at[i] < 0 {
			if len(l.rows) == 0 {
				return list{l.name, names, nil}, nil
			}
			return l, &Misuse{fmt.Sprintf("--columns: there is no %q; there are %s", Clean(name), Clean(strings.Join(l.columns, ", ")))}
		}
	}
	chosen := list{name: l.name, columns: names}
	for _, row := range l.rows {
		of := make([]value, len(at))
		for i, n := range at {
			of[i] = row[n]
		}
		chosen.rows = append(chosen.rows, of)
	}
	return chosen, nil
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
