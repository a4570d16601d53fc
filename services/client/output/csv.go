package output

import (
	"encoding/csv"
	"io"

	"hub.internal/pkg/csvguard"
)

// CSV writes the list of the answer (RFC 4180, with \n between the lines), or a record as one line: a column for each
// member of an object within, null as an empty cell, a list as JSON. A text that a spreadsheet would run as a formula
// gets an apostrophe in front unless exact is true; it returns how many there were.
func (a *Answer) CSV(w io.Writer, c Choice, exact bool) (formulas int, err error) {
	l, err := a.selected(c)
	if err != nil || len(l.columns) == 0 {
		return 0, err
	}
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
	if err := out.Write(line); err != nil {
		return formulas, err
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
