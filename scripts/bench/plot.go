package main

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// panel is one drawing: lines over the same few places, such as concurrencies.
type panel struct {
	title string
	at    []string
	lines []line
}

// line has a value for each place, NaN for none.
type line struct {
	name   string
	values []float64
}

// The sizes of a panel in SVG's units, of all and of the field within, and how many lines of the grid it has.
const (
	panelWidth, panelHeight                       = 460, 310
	fieldLeft, fieldTop, fieldWidth, fieldHeight  = 60, 36, 380, 190
	gridLines, legendColumns, legendTop, legendUp = 4, 4, fieldTop + fieldHeight + 42, 16
)

// colors tell lines apart for everybody (the palette of Okabe and Ito).
var colors = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c8c8c", "#b0a000"}

// drawing puts panels side by side, as SVG that follows the reader's light or dark theme.
func drawing(panels ...panel) string {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format, args...) }
	p(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="11">`,
		len(panels)*panelWidth, panelHeight)
	p("\n<style>text{fill:#333}.grid{stroke:#ddd}@media(prefers-color-scheme:dark){text{fill:#ccc}.grid{stroke:#444}}</style>\n")
	for i, one := range panels {
		p(`<g transform="translate(%d 0)">`+"\n", i*panelWidth)
		one.draw(p)
		p("</g>\n")
	}
	p("</svg>\n")
	return b.String()
}

// draw draws a panel: its grid from 0 to a round number, its lines with a point for each value, and the legend.
func (d panel) draw(p func(string, ...any)) {
	top := d.top()
	x := func(i int) float64 { return fieldLeft + fieldWidth*(float64(i)+0.5)/float64(len(d.at)) }
	y := func(v float64) float64 { return fieldTop + fieldHeight*(1-v/top) }
	p(`<text x="%d" y="20" font-size="13">%s</text>`+"\n", fieldLeft, html.EscapeString(d.title))
	for i := range gridLines + 1 {
		v := top * float64(i) / gridLines
		p(`<path class="grid" d="M%d %.1fh%d"/><text x="%d" y="%.1f" text-anchor="end">%g</text>`+"\n", fieldLeft, y(v), fieldWidth, fieldLeft-6,
			y(v)+4, v)
	}
	for i, at := range d.at {
		p(`<text x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n", x(i), fieldTop+fieldHeight+18, html.EscapeString(at))
	}
	for n, l := range d.lines {
		color, path := colors[n%len(colors)], ""
		for i, v := range l.values {
			if math.IsNaN(v) {
				continue
			}
			step := "L"
			if path == "" {
				step = "M"
			}
			path += fmt.Sprintf("%s%.1f %.1f", step, x(i), y(v))
			p(`<circle cx="%.1f" cy="%.1f" r="3" fill="%s"><title>%s: %.4g</title></circle>`+"\n", x(i), y(v), color, html.EscapeString(l.name), v)
		}
		keyX, keyY := fieldLeft+n%legendColumns*fieldWidth/legendColumns, legendTop+n/legendColumns*legendUp
		p(`<path d="%s" fill="none" stroke="%s" stroke-width="2"/><path d="M%d %dh14" stroke="%s" stroke-width="2"/>`, path, color, keyX, keyY-4,
			color)
		p(`<text x="%d" y="%d">%s</text>`+"\n", keyX+18, keyY, html.EscapeString(l.name))
	}
}

// top is the end of the axis: 1, 2, 4 or 8 times a power of ten, at or above the greatest value.
func (d panel) top() float64 {
	greatest := 0.0
	for _, l := range d.lines {
		for _, v := range l.values {
			if v > greatest { // which NaN is not
				greatest = v
			}
		}
	}
	if greatest == 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(greatest)))
	for _, step := range []float64{1, 2, 4, 8} {
		if step*power >= greatest {
			return step * power
		}
	}
	return 10 * power
}
