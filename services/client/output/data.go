package output

// An answer is read into lists and a record (Read), and written in one of three ways: as a table for a screen (Table),
// as lines with tabs where there is no screen (Table too), and as CSV. JSON is written as it came (json.go). What
// stands beside a list, such as has_more, is its footer on a screen, and a remark of the caller's elsewhere.

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/jsontree"
)

// Choice is what of an answer is written.
// The zero value writes everything.
type Choice struct {
	// Columns are the names of columns; none means all.
	Columns []string
	// List names the list of an answer that has several.
	List string
}

// Answer is the data of a call. One that begins with a list is that list, with remarks; any other is a record, in which lists may be.
type Answer struct {
	// members are those of the data in their order, without warnings; lists are the ones among them that have rows;
	// isList tells that the first member is one.
	members []jsontree.Member
	lists   []list
	isList  bool
	// Warnings are what the answer says about itself: "message (rule)".
	Warnings []string
}

// fewRows is up to how many rows each is written out when not all columns have room.
const fewRows = 3

// Read reads the data of an answer.
func Read(data []byte) (*Answer, error) {
	if !json.Valid(data) {
		return nil, errors.New("the answer is no JSON")
	}
	a := &Answer{}
	members := value(data).members()
	if value(data).kind() != '{' {
		members = []jsontree.Member{{Name: "data", Value: data}}
	}
	// The answer of execute_read_sql names its columns once, and has each row as an array.
	columns, rows := value(data).member("columns"), value(data).member("rows")
	statement := columns.kind() == '[' && rows.kind() == '['
	if statement {
		a.lists, a.isList = append(a.lists, statementRows(columns, rows)), true
	}
	for i, m := range members {
		switch {
		case m.Name == "warnings":
			for _, w := range value(m.Value).items() {
				a.Warnings = append(a.Warnings, Sanitize(w.member("message").text()+" ("+w.member("rule").text()+")"))
			}
			continue
		case statement && (m.Name == "columns" || m.Name == "rows"):
			continue
		case isList(m):
			var rows [][]jsontree.Member
			for _, item := range value(m.Value).items() {
				rows = append(rows, item.members())
			}
			a.lists = append(a.lists, listOf(m.Name, rows))
			a.isList = a.isList || i == 0
		}
		a.members = append(a.members, m)
	}
	return a, nil
}

// statementRows are the rows of a statement's answer: each is a list, and its columns are named once.
func statementRows(columns, rows value) list {
	l := list{name: "rows"}
	for _, c := range columns.items() {
		l.columns = append(l.columns, c.member("name").text())
	}
	for _, r := range rows.items() {
		row := slices.Repeat([]value{null}, len(l.columns))
		copy(row, r.items())
		l.rows = append(l.rows, row)
	}
	return l
}

// Partial says why the lists are not all there is, or "".
// A caller that shows no footer has to say it, or a part is taken for all.
func (a *Answer) Partial() string {
	for _, m := range a.members {
		if (m.Name == "has_more" || m.Name == "truncated") && string(m.Value) == "true" {
			return m.Name + " is true: there is more than this"
		}
	}
	return ""
}

// selected is the list that is written where there is room for one list: that of the choice, else the first of a list, else the record.
// A list that is not there, and a column that is not there, is E_VALIDATION that names those that are.
func (a *Answer) selected(c Choice) (list, error) {
	l := a.record(true)
	if a.isList {
		l = a.lists[0]
	}
	if c.List != "" {
		at := slices.IndexFunc(a.lists, func(l list) bool { return l.name == c.List })
		if at < 0 {
			names := ""
			for i, l := range a.lists {
				names += []string{"; there is ", ", "}[min(i, 1)] + Sanitize(l.name)
			}
			return list{}, fault.New(fault.Validation, "--list: there is no list %q%s", Sanitize(c.List), names)
		}
		l = a.lists[at]
	}
	return l.choose(c.Columns)
}

// record is the answer as one row, with its lists or without them.
func (a *Answer) record(lists bool) list {
	var row []jsontree.Member
	for _, m := range a.members {
		if lists || !isList(m) {
			row = append(row, m)
		}
	}
	return listOf("data", [][]jsontree.Member{row})
}

// isList tells whether a member has rows of its own: a list of objects, or an empty one.
func isList(m jsontree.Member) bool {
	v := value(m.Value)
	return v.isTable() || v.kind() == '[' && len(v.items()) == 0
}

// Table writes the answer for a person. It returns the columns that found no room. To what is no terminal it writes one
// list alone, its columns apart by tabs.
func (a *Answer) Table(w io.Writer, s Screen, c Choice) (left []string, err error) {
	// What was chosen is a list by itself: nothing stands beside it.
	if s.Width <= 0 || c.List != "" || len(c.Columns) > 0 {
		l, err := a.selected(c)
		if err != nil {
			return nil, err
		}
		if s.Width <= 0 {
			return l.table().Write(w, s)
		}
		a = &Answer{lists: []list{l}, isList: true}
	}
	var b bytes.Buffer
	// It is written whole or not at all: a choice that is refused leaves no half of a table behind.
	left, err = a.write(&b, s)
	if err != nil {
		return nil, err
	}
	_, err = w.Write(b.Bytes())
	return left, err
}

// write writes a record's fields, then each list, then for a list what stands beside it. It returns the columns without room.
func (a *Answer) write(b *bytes.Buffer, s Screen) (left []string, err error) {
	rest := a.record(false)
	if !a.isList && len(rest.columns) > 0 {
		writeFields(b, s, rest.columns, rest.rows[0])
	}
	for _, l := range a.lists {
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		if !a.isList && len(l.rows) > 0 {
			b.WriteString(s.Bold(Sanitize(l.name)) + "\n")
		}
		without, err := l.write(b, s)
		if err != nil {
			return nil, err
		}
		left = append(left, without...)
	}
	if a.isList {
		footer(b, s, a.lists[0], rest)
	}
	return left, nil
}

// write writes a list as a table. Up to fewRows rows whose columns have no room are written out instead, a line for each value.
func (l list) write(b *bytes.Buffer, s Screen) ([]string, error) {
	if len(l.rows) == 0 {
		b.WriteString(s.Dim("no "+Sanitize(l.name)) + "\n")
		return nil, nil
	}
	if len(l.columns) == 0 {
		b.WriteString(s.Dim(fmt.Sprintf("%d without columns", len(l.rows))) + "\n")
		return nil, nil
	}
	t := l.table()
	if len(l.rows) > fewRows || t.fits(s.Width) {
		return t.Write(b, s)
	}
	for i, row := range l.rows {
		if i > 0 {
			b.WriteByte('\n')
		}
		writeFields(b, s, l.columns, row)
	}
	return nil, nil
}

// footer says what is beside the rows.
func footer(b *bytes.Buffer, s Screen, l, rest list) {
	parts := []string{}
	if len(l.rows) > 0 && len(rest.columns) > 0 {
		parts = append(parts, fmt.Sprintf("%s %d", Sanitize(l.name), len(l.rows)))
	}
	for i, name := range rest.columns {
		parts = append(parts, Sanitize(name)+" "+Sanitize(rest.rows[0][i].String()))
	}
	if len(parts) == 0 {
		return
	}
	b.WriteByte('\n')
	for _, line := range Wrap(strings.Join(parts, " · "), s.Width) {
		b.WriteString(s.Dim(line) + "\n")
	}
}

// writeFields writes a line for each name and its value, or more where the value is long.
func writeFields(b *bytes.Buffer, s Screen, names []string, row []value) {
	widest := 0
	for _, name := range names {
		widest = max(widest, Width(Sanitize(name)))
	}
	// Names take half of the screen at most.
	widest = min(widest, max(s.Width/2-columnGap, 1))
	for i, name := range names {
		head := Pad(Truncate(Sanitize(name), widest), widest)
		for _, line := range Lines(row[i].String()) {
			for _, part := range Wrap(line, max(s.Width-widest-columnGap, 8)) {
				b.WriteString(strings.TrimRight(s.Bold(head)+strings.Repeat(" ", columnGap)+part, " ") + "\n")
				head = strings.Repeat(" ", widest)
			}
		}
	}
}
