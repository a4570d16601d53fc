package body

import (
	"strconv"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"hub.internal/pkg/markup/prose"
)

// maxTables is how deep tables in tables are laid out cell by cell.
const maxTables = 12

// cell is one of a table, with the column that it begins in and how many it spans.
type cell struct {
	node     *html.Node
	at, span int
	// content is the width that it would have in one line.
	content float64
}

// column is one of a table: what its cells ask for, and what it gets.
type column struct{ pixels, percent, content, width float64 }

// table puts a table into the column, row by row. Its columns share the width as browsers do it:
// by what their cells ask for, and by how long their lines are.
func (f *flow) table(n *html.Node, s setting) {
	f.end()
	b := boxOf(n, s.size)
	f.margin = max(f.margin, b.above)
	f.flush()
	if s.tables++; s.tables > maxTables {
		f.wider = true
		return
	}
	spacing, padding := 2.0, 1.0
	if v, err := strconv.Atoi(prose.Attribute(n, "cellspacing")); err == nil {
		spacing = float64(v)
	}
	if px, ok := lengthOf(prose.Property(n, "border-spacing"), 0); ok {
		spacing = max(spacing, px)
	}
	if v, err := strconv.Atoi(prose.Attribute(n, "cellpadding")); err == nil {
		padding = float64(v)
	}
	if v, err := strconv.Atoi(prose.Attribute(n, "border")); err == nil && v > 0 {
		b.left, b.right, b.top, b.bottom, padding = b.left+float64(v), b.right+float64(v), b.top+float64(v), b.bottom+float64(v), padding+1
	}
	around := f.width - b.left - b.right
	for _, name := range []string{"width", "max-width"} {
		if px, ok := sizeOf(n, name, f.width); ok {
			around = min(around, px-b.left-b.right)
		}
	}
	rows, columns := rowsOf(n, s)
	f.wider = f.wider || contested(rows, columns)
	share(columns, around-spacing*float64(len(columns)+1))
	f.y += b.top + spacing
	for _, r := range rows {
		if f.y > tallest {
			f.wider = true
			return
		}
		tall := 0.0
		for _, c := range r.cells {
			inner := &flow{}
			for i := c.at; i < c.at+c.span; i++ {
				inner.width += columns[i].width
			}
			own := s.inside(r.node).inside(c.node)
			cb := boxOf(c.node, own.size)
			if prose.Property(c.node, "padding") == "" {
				cb.left, cb.right = max(cb.left, padding), max(cb.right, padding)
				cb.top, cb.bottom = max(cb.top, padding), max(cb.bottom, padding)
			}
			inner.width -= cb.left + cb.right
			inner.strut = own.size * own.line
			inner.inner(c.node, own)
			inner.flush()
			h := inner.y + cb.top + cb.bottom
			if least, ok := sizeOf(c.node, "height", 0); ok {
				h = max(h, least+cb.top+cb.bottom)
			}
			tall = max(tall, h)
			f.wider = f.wider || inner.wider
		}
		if least, ok := sizeOf(r.node, "height", 0); ok {
			tall = max(tall, least)
		}
		f.y += tall + spacing
	}
	if least, ok := sizeOf(n, "height", 0); ok {
		f.y += least
	}
	f.y += b.bottom
	f.margin = b.below
}

// tableRow is a row of a table with its cells.
type tableRow struct {
	node  *html.Node
	cells []cell
}

// maxColumns bounds a table: no window has room for more.
const maxColumns = 60

func rowsOf(n *html.Node, s setting) (rows []tableRow, columns []column) {
	var read func(*html.Node)
	read = func(n *html.Node) {
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			switch prose.Element(c) {
			case atom.Tbody:
				read(c)
			case atom.Tr:
				r := tableRow{node: c}
				at := 0
				for d := c.FirstChild; d != nil; d = d.NextSibling {
					if k := prose.Element(d); k != atom.Td && k != atom.Th {
						continue
					}
					span, err := strconv.Atoi(prose.Attribute(d, "colspan"))
					if err != nil {
						span = 1
					}
					one := cell{node: d, at: min(at, maxColumns), span: span, content: contentOf(d, s.inside(c))}
					at = one.at + span
					for len(columns) < at {
						columns = append(columns, column{})
					}
					r.cells = append(r.cells, one)
					for i := one.at; i < at; i++ {
						to, share := &columns[i], float64(span)
						to.content = max(to.content, one.content/share)
						if px, ok := sizeOf(d, "width", 0); ok {
							to.pixels = max(to.pixels, px/share)
						} else if part, ok := sizeOf(d, "width", 100); ok {
							to.percent = max(to.percent, part/share)
						}
					}
				}
				rows = append(rows, r)
			}
		}
	}
	read(n)
	return rows, columns
}

// contested tells of widths that ask for more than there is, or in ways that browsers settle each by
// rules of its own.
func contested(rows []tableRow, columns []column) bool {
	percent, inPixels, spans := 0.0, false, false
	for _, c := range columns {
		percent += c.percent
		inPixels = inPixels || c.pixels > 0
	}
	for _, r := range rows {
		for _, c := range r.cells {
			spans = spans || c.span > 1 && len(r.cells) > 1
		}
	}
	return percent > 100 || percent > 0 && inPixels || spans && (percent > 0 || inPixels)
}

// contentOf is the width of all that is in a cell, in one line.
func contentOf(n *html.Node, s setting) (w float64) {
	s = s.inside(n)
	for c := n.FirstChild; c != nil && w < longest; c = c.NextSibling {
		switch {
		case c.Type == html.TextNode:
			for _, r := range c.Data[:min(len(c.Data), longest)] {
				w += advance(r, s)
			}
		case prose.Element(c) == atom.Img:
			px, ok := sizeOf(c, "width", 0)
			if !ok {
				px = unknown
			}
			w += px
		case c.Type == html.ElementNode:
			b := boxOf(c, s.size)
			w += contentOf(c, s) + b.left + b.right
		}
	}
	b := boxOf(n, s.size)
	return w + b.left + b.right
}

// share gives each column its width.
func share(columns []column, all float64) {
	left, flexible := all, 0.0
	for i := range columns {
		c := &columns[i]
		switch {
		case c.percent > 0:
			c.width = min(c.percent*all/100, left)
			left -= c.width
		case c.pixels > 0:
			c.content = max(c.content, c.pixels)
			flexible += c.content
		default:
			c.content = max(c.content, 1)
			flexible += c.content
		}
	}
	for i := range columns {
		if c := &columns[i]; c.percent == 0 {
			c.width = max(left, 0) * c.content / flexible
		}
	}
}
