package output

import (
	"encoding/csv"
	"io"
	"slices"

	"hub.internal/pkg/csvguard"
)

// CSV writes the list of the answer (RFC 4180, with \n between the lines), or a record as one line: a column for each
// member of an object within, null as an empty cell, a list as JSON. A text that a spreadsheet would run as a formula
// gets an apostrophe in front unless exact is true; it returns how many there were.
func (a *Answer) CSV(w io.Writer, c Choice, exact bool) (formulas int, err error) {
	return new(Pages).CSV(a, w, c, exact)
}

// Pages are answers that follow one another and are written as one list: the first one with rows says which columns there are.
type Pages struct {
	columns []string
	// Left are the columns that later pages have beside those.
	Left []string
}

// CSV writes the next page, as Answer.CSV does the only one.
func (p *Pages) CSV(a *Answer, w io.Writer, c Choice, exact bool) (formulas int, err error) {
	l, err := a.selected(c)
	if err != nil || len(l.columns) == 0 {
		return 0, err
	}
	isFirst := p.columns == nil
	if isFirst {
		p.columns = l.columns
	}
	if !slices.Equal(l.columns, p.columns) {
		l = p.fit(l)
	}
	return l.csv(w, isFirst, exact)
}

// fit is a list with the columns of the first page, and remembers those that have no place.
func (p *Pages) fit(l list) list {
	for i, name := range l.columns {
		// A record within that no row has is a column without a value, and nothing is left out with it.
		has := slices.ContainsFunc(l.rows, func(row []value) bool { return row[i].kind() != 'n' })
		if has && !slices.Contains(p.columns, name) && !slices.Contains(p.Left, name) {
			p.Left = append(p.Left, name)
		}
	}
	return l.with(p.columns)
}

// csv writes the rows, with the names of the columns where they are wanted.
func (l list) csv(w io.Writer, names, exact bool) (formulas int, err error) {
	out := csv.NewWriter(w)
	// A name of a column comes from the answer too.
	cell := func(text string) string {
		if exact || !csvguard.IsFormula(text) {
			return text
		}
		formulas++
		return "'" + text
	}
	line := make([]string, len(l.columns))
	for i, name := range l.columns {
		line[i] = cell(name)
	}
	if names {
		if err := out.Write(line); err != nil {
			return formulas, err
		}
	}
	for _, row := range l.rows {
		for i, v := range row {
			switch v.kind() {
			// null and an empty text are the same to a spreadsheet.
			case 'n':
				line[i] = ""
			case '"':
				line[i] = cell(v.text())
			default:
				line[i] = v.json()
			}
		}
		if err := out.Write(line); err != nil {
			return formulas, err
		}
	}
	out.Flush()
	return formulas, out.Error()
}
