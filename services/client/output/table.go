package output

// The widths are chosen in two steps (layout): columns leave until the least widths of the others have room, then what
// room is left goes, one by one, to the column that is cut most. text/tabwriter pads cells to the widest and cuts
// none; here lines have to fit the screen.

import (
	"bytes"
	"io"
	"slices"
	"strings"
)

// columnGap is between two columns.
const columnGap = 2

// Column is one of a table.
type Column struct {
	Name string
	// Right aligns numbers.
	Right bool
	// Optional columns are left out where the terminal is too narrow, the one with the greatest number first. 0 stays.
	Optional int
}

// Table has a line of text for each row.
type Table struct {
	// A row has a cell for each column.
	Columns []Column
	Rows    [][]string
}

// Write writes the table, with lines that fit the screen; without one the columns are apart by tabs, each cell whole. It
// returns the names of the columns that found no room.
func (t Table) Write(w io.Writer, s Screen) (left []string, err error) {
	var b bytes.Buffer
	t = t.cleaned()
	if s.Width <= 0 {
		t.tabs(&b)
		_, err := w.Write(b.Bytes())
		return nil, err
	}
	shown, widths := t.layout(s.Width)
	header := t.header()
	for i, name := range header {
		if _, found := slices.BinarySearch(shown, i); !found {
			left = append(left, name)
		}
	}
	b.WriteString(s.Bold(t.line(header, shown, widths)) + "\n")
	for _, row := range t.Rows {
		b.WriteString(t.line(row, shown, widths) + "\n")
	}
	_, err = w.Write(b.Bytes())
	return left, err
}

// header is the row of the columns' names.
func (t Table) header() []string {
	names := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		names[i] = c.Name
	}
	return names
}

// cleaned is the table with each name and cell as one line without characters that steer a terminal.
func (t Table) cleaned() Table {
	rows := make([][]string, len(t.Rows))
	for i, row := range t.Rows {
		rows[i] = make([]string, len(row))
		for j, cell := range row {
			rows[i][j] = Sanitize(cell)
		}
	}
	columns := slices.Clone(t.Columns)
	for i := range columns {
		columns[i].Name = Sanitize(columns[i].Name)
	}
	return Table{columns, rows}
}

// tabs writes the table for a program: cells whole, with tabs between them, as cut(1) and awk(1) take them.
// A tab within a cell was made a space by cleaned.
func (t Table) tabs(b *bytes.Buffer) {
	b.WriteString(strings.Join(t.header(), "\t") + "\n")
	for _, row := range t.Rows {
		b.WriteString(strings.Join(row, "\t") + "\n")
	}
}

// line is a row with the columns that are shown, each cut or filled up to its width.
func (t Table) line(cells []string, shown, widths []int) string {
	var b strings.Builder
	for n, i := range shown {
		cell := Truncate(cells[i], widths[i])
		fill := strings.Repeat(" ", max(0, widths[i]-Width(cell)))
		if n > 0 {
			b.WriteString(strings.Repeat(" ", columnGap))
		}
		if t.Columns[i].Right {
			b.WriteString(fill + cell)
		} else {
			b.WriteString(cell + fill)
		}
	}
	return strings.TrimRight(b.String(), " ")
}

// measure is how wide a column is when it is whole, and how narrow it may become: ids, times and addresses, which say
// nothing when they are cut, stay whole up to a width; a text may be cut.
func (t Table) measure(i int) (whole, least int) {
	header := Width(t.Columns[i].Name)
	whole = header
	prose := false
	for _, row := range t.Rows {
		whole = max(whole, Width(row[i]))
		prose = prose || strings.Contains(row[i], " ")
	}
	// 26 columns hold a ULID or a time; 12 hold the beginning of a sentence.
	const code, text = 26, 12
	switch {
	case t.Columns[i].Right:
		return whole, whole
	case prose:
		return whole, min(whole, max(header, text))
	}
	return whole, min(whole, max(header, code))
}

// layout chooses the columns that have room, and their widths.
func (t Table) layout(width int) (shown, widths []int) {
	whole, widths := make([]int, len(t.Columns)), make([]int, len(t.Columns))
	room := width + columnGap
	for i := range t.Columns {
		whole[i], widths[i] = t.measure(i)
		shown = append(shown, i)
		room -= widths[i] + columnGap
	}
	// Among columns of one rank, the last leaves first.
	slices.SortStableFunc(shown, func(a, b int) int { return t.Columns[a].Optional - t.Columns[b].Optional })
	for len(shown) > 1 && room < 0 {
		last := shown[len(shown)-1]
		shown, room = shown[:len(shown)-1], room+widths[last]+columnGap
	}
	// The last column stays, however narrow the screen is.
	if len(shown) == 1 {
		widths[shown[0]], room = min(whole[shown[0]], width), 0
	}
	slices.Sort(shown)
	for ; room > 0 && len(shown) > 0; room-- { // the column that is cut most gets one more
		most := slices.MaxFunc(shown, func(a, b int) int { return whole[a] - widths[a] - whole[b] + widths[b] })
		if whole[most] == widths[most] {
			break
		}
		widths[most]++
	}
	return shown, widths
}

// fits tells whether every column has room.
// Where it does not, a few rows are written out instead.
func (t Table) fits(width int) bool {
	shown, _ := t.cleaned().layout(width)
	return len(shown) == len(t.Columns)
}
