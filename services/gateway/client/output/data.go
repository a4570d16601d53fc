package output

import (
	"bytes"
	"fmt"
	"io"
	"strings"
)

// Choice is what of an answer is written.
type Choice struct {
	// Columns are the names of columns; none means all.
	Columns []string
	// List names the list of an answer that has several.
	List string
}

// Answer is the data of a call, in parts: the lists in it, the objects in it, and what else there is.
type Answer struct {
	lists   []list
	objects []member
	simple  []member
	// Warnings are what the answer says about itself: "message (rule)".
	Warnings []string
}

// few is up to how many rows each is written out when not all columns have room.
const few = 3

// Read reads the data of an answer.
func Read(data []byte) (*Answer, error) {
	v, err := parse(data)
	if err != nil {
		return nil, err
	}
	a := &Answer{}
	if v.kind != '{' {
		v = value{kind: '{', members: []member{{"data", v}}}
	}
	columns, named := v.member("columns")
	rows, lined := v.member("rows")
	statement := named && lined && columns.kind == '[' && rows.kind == '['
	if statement {
		a.lists = append(a.lists, statementRows(columns, rows))
	}
	for _, m := range v.members {
		switch {
		case m.name == "warnings":
			a.warn(m.value)
		case statement && (m.name == "columns" || m.name == "rows"):
		case m.value.isTable():
			a.lists = append(a.lists, listOf(m.name, m.value.items))
		case m.value.kind == '[' && len(m.value.items) == 0:
			a.lists = append(a.lists, list{name: m.name})
		case m.value.kind == '{':
			a.objects = append(a.objects, m)
		default:
			a.simple = append(a.simple, m)
		}
	}
	return a, nil
}

// statementRows are those of a statement: its rows are lists, and its columns are named once.
func statementRows(columns, rows value) list {
	l := list{name: "rows"}
	for _, c := range columns.items {
		name, _ := c.member("name")
		l.columns = append(l.columns, name.text)
	}
	for _, r := range rows.items {
		l.rows = append(l.rows, padded(r.items, len(l.columns)))
	}
	return l
}

// padded is a row as long as there are columns.
func padded(items []value, n int) []value {
	row := make([]value, n)
	for i := range row {
		row[i] = value{kind: 'n', text: "null"}
	}
	copy(row, items)
	return row
}

func (a *Answer) warn(v value) {
	for _, w := range v.items {
		message, _ := w.member("message")
		rule, _ := w.member("rule")
		a.Warnings = append(a.Warnings, Clean(fmt.Sprintf("%s (%s)", message.text, rule.text)))
	}
}

// Partial says why the lists are not all there is, or "".
func (a *Answer) Partial() string {
	for _, m := range a.simple {
		if (m.name == "has_more" || m.name == "truncated") && m.value.kind == 't' {
			return m.name + " is true: there is more than this"
		}
	}
	return ""
}

// chosen are the lists that are written.
func (a *Answer) chosen(c Choice) ([]list, error) {
	lists := a.lists
	if c.List != "" {
		lists = nil
		for _, l := range a.lists {
			if l.name == c.List {
				lists = append(lists, l)
			}
		}
		if lists == nil {
			return nil, &Misuse{fmt.Sprintf("--list: there is no list %q%s", Clean(c.List), a.names("; there is "))}
		}
	}
	if len(c.Columns) == 0 {
		return lists, nil
	}
	if len(lists) == 0 {
		lists = []list{a.record()}
	}
	if len(lists) > 1 {
		return nil, &Misuse{"--columns needs --list where an answer has several" + a.names(": ")}
	}
	l, err := lists[0].choose(c.Columns)
	return []list{l}, err
}

func (a *Answer) names(before string) string {
	if len(a.lists) == 0 {
		return ""
	}
	var names []string
	for _, l := range a.lists {
		names = append(names, Clean(l.name))
	}
	return before + strings.Join(names, ", ")
}

// record is what an answer without a list has, as one row.
func (a *Answer) record() list {
	return listOf("data", []value{{kind: '{', members: append(append([]member{}, a.simple...), a.objects...)}})
}

// Table writes the answer for a person. It returns the columns that found no room. To what is no terminal it writes one
// list alone, its columns apart by tabs.
func (a *Answer) Table(w io.Writer, s Screen, c Choice) (left []string, err error) {
	if s.Width <= 0 {
		l, err := a.one(c)
		if err != nil {
			return nil, err
		}
		return l.table().Write(w, s)
	}
	lists, err := a.chosen(c)
	if err != nil {
		return nil, err
	}
	only := c.List != "" || len(c.Columns) > 0
	var b bytes.Buffer
	if whole := a.record(); !only && (len(lists) != 1 || len(a.objects) > 0) && len(whole.columns) > 0 {
		fields(&b, s, whole.columns, whole.rows[0])
	}
	for _, l := range lists {
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		if len(lists) > 1 || b.Len() > 0 {
			b.WriteString(s.Bold(Clean(l.name)) + "\n")
		}
		without, err := l.write(&b, s)
		if err != nil {
			return nil, err
		}
		left = append(left, without...)
	}
	if !only && len(lists) == 1 && len(a.objects) == 0 {
		a.footer(&b, s, lists[0])
	}
	_, err = w.Write(b.Bytes())
	return left, err
}

func (l list) write(b *bytes.Buffer, s Screen) ([]string, error) {
	if len(l.rows) == 0 {
		b.WriteString(s.Dim("no "+Clean(l.name)) + "\n")
		return nil, nil
	}
	t := l.table()
	if len(l.rows) > few || t.fits(s.Width) {
		return t.Write(b, s)
	}
	for i, row := range l.rows {
		if i > 0 {
			b.WriteByte('\n')
		}
		fields(b, s, l.columns, row)
	}
	return nil, nil
}

// footer says what is beside the rows.
func (a *Answer) footer(b *bytes.Buffer, s Screen, l list) {
	parts := []string{}
	if len(l.rows) > 0 {
		parts = append(parts, fmt.Sprintf("%d %s", len(l.rows), Clean(l.name)))
	}
	for _, m := range a.simple {
		parts = append(parts, Clean(m.name)+" "+Clean(m.value.String()))
	}
	if len(parts) == 0 {
		return
	}
	b.WriteByte('\n')
	for _, line := range Wrap(strings.Join(parts, " · "), s.Width) {
		b.WriteString(s.Dim(line) + "\n")
	}
}

// fields writes a line for each name and its value, or more where the value is long.
func fields(b *bytes.Buffer, s Screen, names []string, row []value) {
	widest := 0
	for _, name := range names {
		widest = max(widest, Width(Clean(name)))
	}
	widest = min(widest, max(s.Width/2-gap, 1))
	for i, name := range names {
		head := Pad(Cut(Clean(name), widest), widest)
		for _, line := range Lines(row[i].String()) {
			for _, part := range Wrap(line, max(s.Width-widest-gap, 8)) {
				b.WriteString(strings.TrimRight(s.Bold(head)+strings.Repeat(" ", gap)+part, " ") + "\n")
				head = strings.Repeat(" ", widest)
			}
		}
	}
}
