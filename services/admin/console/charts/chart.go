package charts

import (
	"context"
	"encoding/json"
	"fmt"
	"html/template"
	"math"
	"strings"

	"github.com/rivo/uniseg"

	"hub.internal/pkg/text"
	"hub.internal/pkg/web"
	"hub.internal/pkg/web/i18n"
	"hub.internal/services/admin"
)

// Chart is a bar or line chart as it is shown: a drawing, and its numbers for a table.
type Chart struct {
	// Summary says in a line what is drawn, for those who do not see it.
	Summary string
	// Names are those of the series, in their order.
	Names []string
	// Rows have a text for each series.
	Rows []Row
	// Unit stands beside the axis of lines, "" for bars, whose numbers have it.
	Unit string
	// Drawing is HTML with SVG in it, "" when there is no number.
	Drawing template.HTML
	// Tall drawings scroll.
	Tall bool
}

// Row is a label with its numbers.
type Row struct {
	Label  string
	Values []string
}

// tallFrom is how many bars make a drawing scroll.
const tallFrom = 40

// Of lays out a section of the type bar or line.
func Of(ctx context.Context, s admin.Section) Chart {
	unit := ""
	if s.Unit != nil {
		unit = *s.Unit
	}
	c := Chart{Tall: s.Type == admin.Bar && len(s.Labels)*len(s.Series) > tallFrom}
	for _, label := range s.Labels {
		c.Rows = append(c.Rows, Row{label, make([]string, len(s.Series))})
	}
	values := make([][]float64, len(s.Series))
	for i, series := range s.Series {
		c.Names = append(c.Names, series.Name)
		// By the labels: what a later release stores may have more or fewer.
		values[i] = make([]float64, len(s.Labels))
		for n := range s.Labels {
			values[i][n], c.Rows[n].Values[i] = math.NaN(), "–"
			if n < len(series.Values) {
				if f := valueOf(series.Values[n]); !math.IsNaN(f) {
					values[i][n], c.Rows[n].Values[i] = f, WithUnit(Number(literal(series.Values[n])), unit)
				}
			}
		}
	}
	low, high, some := Range(values...)
	if !some {
		return c
	}
	c.Summary = c.summary(ctx, s.Type, values)
	if s.Type == admin.Bar {
		c.Drawing = c.bars(values, min(low, 0), max(high, 0))
	} else {
		c.Unit, c.Drawing = unit, c.lines(values, axisOf(low, high))
	}
	return c
}

// literal is a number as it is written, without the quotes that it may have.
func literal(raw json.RawMessage) string { return strings.Trim(string(raw), "\" \t\r\n") }

// summary is the line for those who do not see: of each series its least and its most.
func (c Chart) summary(ctx context.Context, kind string, values [][]float64) string {
	const maxName = 40
	parts := make([]string, 0, len(values))
	for i, list := range values {
		least, largest, n := -1, -1, 0
		for at, v := range list {
			if math.IsNaN(v) {
				continue
			}
			n++
			if least < 0 || v < list[least] {
				least = at
			}
			if largest < 0 || v > list[largest] {
				largest = at
			}
		}
		name := text.Shorten(c.Names[i], maxName)
		if n == 0 {
			parts = append(parts, i18n.T(ctx, "%s has no number", name))
			continue
		}
		low, high := c.Rows[least], c.Rows[largest]
		parts = append(parts, i18n.T(ctx, "%s from %s (%s) to %s (%s)", name, low.Values[i], text.Shorten(low.Label, maxName),
			high.Values[i], text.Shorten(high.Label, maxName)))
	}
	points, all := web.PluralIn(ctx, len(c.Rows), "point", "points"), strings.Join(parts, "; ")
	if kind == admin.Bar {
		return i18n.T(ctx, "Bar chart, %s: %s", points, all)
	}
	return i18n.T(ctx, "Line chart, %s: %s", points, all)
}

// bars draws a line of text and bar for each number, grouped by the labels where there are several series.
func (c Chart) bars(values [][]float64, low, high float64) template.HTML {
	const length = 1000.0
	var b strings.Builder
	zero := Share(0, low, high) * length
	if low == high { // all are zero
		zero = 0
	}
	fmt.Fprintf(&b, `<div class="bars">`)
	for n, row := range c.Rows {
		if len(values) > 1 {
			fmt.Fprintf(&b, `<span class="group" title="%[1]s" dir="auto">%[1]s</span>`, template.HTMLEscapeString(row.Label))
		}
		for i, list := range values {
			name, class := row.Label, "label"
			if len(values) > 1 {
				name, class = c.Names[i], "label name"
			}
			fmt.Fprintf(&b, `<span class="%s" title="%[2]s" dir="auto">%[2]s</span>`, class, template.HTMLEscapeString(name))
			b.WriteString(`<svg class="drawn" viewBox="0 0 1000 10" preserveAspectRatio="none">`)
			if v := list[n]; !math.IsNaN(v) && low < high {
				to := Share(v, low, high) * length
				fmt.Fprintf(&b, `<rect class="s%d" x="%.1f" width="%.1f" height="10"/>`, i, min(zero, to), math.Abs(to-zero))
			}
			if low < 0 {
				fmt.Fprintf(&b, `<path class="zero" d="M%.1f,0V10"/>`, zero)
			}
			fmt.Fprintf(&b, `</svg><span class="value">%s</span>`, template.HTMLEscapeString(row.Values[i]))
		}
	}
	b.WriteString("</div>")
	return template.HTML(b.String())
}

const (
	// fewDots is up to how many points of all series each has a dot.
	fewDots = 80
	// fewLabels is how many labels stand below a line; of more, every second, third, …
	fewLabels = 8
	// labelWidth is how wide a label is, in columns of a terminal: a Korean letter has two.
	labelWidth = 14
)

// lines draws a line for each series over one axis. The drawing is as wide as the page: shares are of 100 %.
func (c Chart) lines(values [][]float64, a axis) template.HTML {
	const size = 1000.0
	var b strings.Builder
	b.WriteString(`<div class="ticks">`)
	for _, tick := range a.ticks() {
		fmt.Fprintf(&b, "<span>%s</span>", tick)
	}
	b.WriteString(`</div><svg class="lines">`)
	for n := range a.steps + 1 {
		v, class := a.low+float64(n)*a.step, "grid"
		if math.Abs(v) < a.step/2 {
			class = "zero"
		}
		fmt.Fprintf(&b, `<line class="%s" x1="0" x2="100%%" y1="%[2]s" y2="%[2]s"/>`, class, down(v, a))
	}
	b.WriteString(`<svg viewBox="0 0 1000 1000" preserveAspectRatio="none">`)
	for i, list := range values {
		points := make([]Point, len(list))
		for n, v := range list {
			points[n] = Point{across(n, len(list)) * size, (1 - Share(v, a.low, a.high)) * size} // a gap stays NaN
		}
		fmt.Fprintf(&b, `<path class="s%d" d="%s"/>`, i, Path(points))
	}
	b.WriteString("</svg>")
	c.dots(&b, values, a)
	c.labels(&b)
	b.WriteString("</svg>")
	return template.HTML(b.String())
}

// across is where a point stands, from 0 to 1: in the middle of its share of the width.
func across(n, of int) float64 { return (float64(n) + .5) / float64(of) }

// down is where a value stands below the top.
func down(v float64, a axis) string { return fmt.Sprintf("%.1f%%", 100*(1-Share(v, a.low, a.high))) }

// dots marks points with what they say: all where they are few, else those that no line leads to.
func (c Chart) dots(b *strings.Builder, values [][]float64, a axis) {
	few := len(c.Rows)*len(values) <= fewDots
	gap := func(list []float64, n int) bool { return n < 0 || n >= len(list) || math.IsNaN(list[n]) }
	for i, list := range values {
		for n, v := range list {
			if math.IsNaN(v) || !few && !(gap(list, n-1) && gap(list, n+1)) {
				continue
			}
			fmt.Fprintf(b, `<circle class="s%d" cx="%.1f%%" cy="%s" r="3"><title>%s, %s: %s</title></circle>`, i, 100*across(n, len(list)),
				down(v, a), template.HTMLEscapeString(c.Rows[n].Label), template.HTMLEscapeString(c.Names[i]),
				template.HTMLEscapeString(c.Rows[n].Values[i]))
		}
	}
}

// labels writes some of them below the points; a narrow window hides those that it has no room for.
func (c Chart) labels(b *strings.Builder) {
	// In CSS pixels: what a drawing has of the narrowest windows of both kinds, and what a column of a label takes.
	const narrowRoom, middlingRoom, column, gap = 260, 390, 7, 8
	every := (len(c.Rows) + fewLabels - 1) / fewLabels
	widest := 0
	for n := 0; n < len(c.Rows); n += every {
		widest = max(widest, min(uniseg.StringWidth(c.Rows[n].Label), labelWidth))
	}
	need := (len(c.Rows) + every - 1) / every * (widest*column + gap)
	for n := 0; n < len(c.Rows); n += every {
		class := ""
		switch at := n / every; {
		case at%oneOf(need, middlingRoom) != 0:
			class = " middling"
		case at%oneOf(need, narrowRoom) != 0:
			class = " narrow"
		}
		// To the left there is the axis, to the right nothing but the edge of the page.
		if across(n, len(c.Rows)) > .93 {
			class += " end"
		}
		fmt.Fprintf(b, `<text class="label%s" x="%.1f%%" y="100%%" dy="1.5em">%s<title>%s</title></text>`, class, 100*across(n, len(c.Rows)),
			template.HTMLEscapeString(cut(c.Rows[n].Label, labelWidth)), template.HTMLEscapeString(c.Rows[n].Label))
	}
}

// oneOf is of how many labels one stays when all need so much: 1, 2 or 4.
func oneOf(need, room int) int {
	switch {
	case need <= room:
		return 1
	case need <= 2*room:
		return 2
	}
	return 4
}

// cut is the beginning of a text that has more than so many columns.
func cut(s string, width int) string {
	if uniseg.StringWidth(s) <= width {
		return s
	}
	var b strings.Builder
	for g := uniseg.NewGraphemes(s); g.Next(); {
		if width -= g.Width(); width < 1 { // one is the ellipsis's
			break
		}
		b.WriteString(g.Str())
	}
	return b.String() + "…"
}
