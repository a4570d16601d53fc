package web

import "time"

// Plot is a table with a drawing of it: {{template "plot" .}}, on a page whose head has {{template "plots"}}. The numbers
// are in the page once, and all there is without scripts. Its series are the columns behind the time.
type Plot struct {
	ID, Title, Caption string
	// Kind is bars or lines; Unit is "", "ms" or "won".
	Kind, Unit string
	// Step is how long a row is, in seconds.
	Step int
	// Zone is how far east the days of the rows begin, in seconds; 0 draws them in the reader's own time.
	Zone   int
	Series []Series
	Rows   []PlotRow
}

// Series is a column.
type Series struct {
	// Label is its head, Color a custom property of the kit.
	Label, Color string
	// Rest is what the legend says of it while no row is pointed at: of all rows.
	Rest string
	// Share tells that it is a part of a hundred: a line, with an axis of its own.
	Share bool
}

// PlotRow is a row of a Plot. Name stands for the moment where it has one of its own, such as a day of another zone.
type PlotRow struct {
	At     time.Time
	Values []PlotValue
	Name   string
	// Href leads to what the row counts; may be empty.
	Href string
}

// PlotValue is a cell: a number as scripts read it, empty for none, and as people do.
type PlotValue struct{ Raw, Text string }
