package table

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"slices"
	"strings"

	"hub.internal/pkg/web/i18n"
	"hub.internal/services/admin"
	"hub.internal/services/admin/console/charts"
)

// Table is a table as it is shown.
type Table struct {
	// Each row has a cell for each column.
	Columns []Column
	Rows    [][]Cell
	// Sorted is the column that the rows are in the order of, -1 for the order in which they came.
	Sorted     int
	Descending bool
}

// Column is a column with how its cells stand.
type Column struct {
	Label string
	// Align is a class: "", "number" or "middle".
	Align string
	// Number tells that it is sorted by numbers.
	Number bool
}

// Of lays out the rows of a section.
func Of(ctx context.Context, s admin.Section) Table {
	t := Table{Columns: make([]Column, len(s.Columns)), Rows: make([][]Cell, len(s.Rows)), Sorted: -1}
	for r, raw := range s.Rows {
		var row admin.Row
		_ = json.Unmarshal(raw, &row) // what is no record has no members
		t.Rows[r] = make([]Cell, len(s.Columns))
		for c, column := range s.Columns {
			raw, fits := row.Member(column.Key), false
			if column.Format != nil {
				t.Rows[r][c], fits = formatted(raw, *column.Format)
			}
			if !fits {
				t.Rows[r][c] = cellOf(ctx, raw, identity.MatchString(column.Key))
			}
		}
	}
	for c, column := range s.Columns {
		cells := make([]Cell, len(t.Rows))
		// A drawn series is no number to line up by.
		drawn := false
		for r := range t.Rows {
			cells[r] = t.Rows[r][c]
			drawn = drawn || cells[r].Series != nil
		}
		fillBars(ctx, cells)
		t.Columns[c] = Column{Label: column.Label, Number: numeric(cells)}
		align := ""
		if column.Align != nil {
			align = *column.Align
		} else if t.Columns[c].Number && !drawn || column.Format != nil && (*column.Format == admin.Percent || *column.Format == admin.Money) {
			align = "right"
		}
		t.Columns[c].Align = map[string]string{"right": "number", "center": "middle"}[align]
	}
	return t
}

// fillBars draws the bars of a column by its largest number.
func fillBars(ctx context.Context, cells []Cell) {
	largest := 0.0
	for _, c := range cells {
		largest = max(largest, math.Abs(c.value))
	}
	for _, c := range cells {
		if c.Bar != nil {
			share := charts.Percent(math.Abs(c.value) / max(largest, math.SmallestNonzeroFloat64))
			*c.Bar = charts.BarOf(i18n.T(ctx, "%s of the largest", share), c.value, largest)
		}
	}
}

// Sort puts the rows in the order of a column; what is empty comes last. A column that is not there changes nothing.
func (t *Table) Sort(column int, descending bool) {
	if column < 0 || column >= len(t.Columns) {
		return
	}
	t.Sorted, t.Descending = column, descending
	number := t.Columns[column].Number
	slices.SortStableFunc(t.Rows, func(x, y []Cell) int {
		a, b := x[column], y[column]
		// In both directions: nobody sorts to see what is not there.
		if a.Empty() || b.Empty() {
			return cmp.Compare(boolean(a.Empty()), boolean(b.Empty()))
		}
		order := strings.Compare(a.order(), b.order())
		if number {
			order = cmp.Compare(a.value, b.value)
		}
		if descending {
			return -order
		}
		return order
	})
}

// order is what texts are compared by.
func (c Cell) order() string {
	if key := c.Key(); key != "" && !c.number {
		return key
	}
	if len(c.Parts) > 0 {
		return strings.ToLower(c.Parts[0].Text)
	}
	return strings.ToLower(c.Text)
}

// boolean is 1 for true, to compare by.
func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}

// State is the aria-sort of a column.
func (t Table) State(column int) string {
	switch {
	case column != t.Sorted:
		return "none"
	case t.Descending:
		return "descending"
	}
	return "ascending"
}

// Next is the direction in which a column is sorted when it is asked for: "asc" unless it stands so.
func (t Table) Next(column int) string {
	if column == t.Sorted && !t.Descending {
		return "desc"
	}
	return "asc"
}
