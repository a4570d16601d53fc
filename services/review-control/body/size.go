package body

import (
	"math"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
	"golang.org/x/text/width"

	"hub.internal/pkg/markup/prose"
)

// PreviewWidth is the width in CSS pixels that a mail has on the page at least, in a window that shows it beside the list of mails.
const PreviewWidth = 440

// Size is what a body needs of a window, in CSS pixels. It is no layout: a browser that runs scripts measures the mail
// itself, and what is here says before that, and to browsers without scripts, what a person has to look at with care.
type Size struct {
	// Width is the least one at which words can be read: paddings, borders and columns add up.
	Width int
	// Height is about what the body takes at the width of PreviewWidth.
	Height int
}

// The heights in CSS pixels that a page keeps free for a preview before it is measured.
const (
	leastFrame   = 120
	highestFrame = 1500
)

// FrameHeight is the height in CSS pixels that a page keeps free for the preview of a mail of that size. The page's script gives the
// preview the height that it measures; a browser without scripts leaves it at this one, with a bar to scroll by.
func (s Size) FrameHeight() int {
	const slack = 24 // so that a line more needs no bar to scroll by
	return min(max(s.Height+slack, leastFrame), highestFrame)
}

// longestMail is the height in CSS pixels up to which a mail is read without an effort: three screens.
const longestMail = 2400

// IsLarge tells that a mail is longer than three screens, or wider than it is shown on a desk: part of it is out of view
// until somebody scrolls.
func (s Size) IsLarge() bool { return s.Width > PreviewWidth || s.Height > longestMail }

// setting is how a part of a body is set: its font's size and line height, the width that it has, and what its table
// puts around each cell. In a cell words stay whole.
type setting struct {
	size, line, width, padding, spacing float64
	pre, cell                           bool
	// scale is how small the mail may be made; without one, least becomes the smallest font.
	scale float64
	least *float64
}

const (
	// leastColumn is the width in sizes of the font in which words can still be read.
	leastColumn = 3
	// A page makes a mail that is wider than its preview smaller: to this part of its size, while its letters have so many CSS pixels
	// (seen.js has the same).
	smallest, readable = .5, 6
)

// sizeOf is that of a whole body in its document.
func sizeOf(root *html.Node, pre bool) Size {
	s := setting{size: pageFontSize, line: pageLineHeight, width: PreviewWidth - 2*pageMargin, pre: pre, least: new(float64(pageFontSize))}
	extent(root, s)
	s.scale = min(max(smallest, readable / *s.least), 1)
	w, h := extent(root, s)
	return Size{int(w + 2*pageMargin), int(h + 2*pageMargin)}
}

// extent is the least width of a node and about its height. The depth of the tree is bounded by the parser.
func extent(n *html.Node, s setting) (w, h float64) {
	kind := prose.Element(n)
	switch {
	case n.Type == html.TextNode:
		return textExtent(n, s)
	case kind == atom.Head:
		return 0, 0
	case kind == atom.Br:
		return 0, s.size * s.line
	case kind == atom.Img:
		return 0, pictureHeight(n)
	}
	s = s.inside(n)
	besides, above := around(n, s)
	s.width -= besides
	if px, ok := lengthOf(prose.Property(n, "max-width"), s.width); ok {
		s.width = min(s.width, px)
	}
	s.width = max(s.width, leastColumn*s.size)
	cells := 0
	for c := range n.ChildNodes() {
		if kind == atom.Tr && c.Type == html.ElementNode {
			cells++
		}
	}
	for c := range n.ChildNodes() {
		inner := s
		if kind == atom.Tr {
			inner.width /= float64(max(cells, 1))
			if px, ok := measureOf(c, "width", s.width); ok {
				inner.width = min(px, s.width)
			}
		}
		cw, ch := extent(c, inner)
		if kind == atom.Tr {
			w, h = w+cw+s.spacing, max(h, ch)
		} else {
			w, h = max(w, cw), h+ch
		}
	}
	if px, ok := measureOf(n, "width", 0); ok && kind == atom.Table && s.cell { // the cell grows with it
		w = max(w, s.scale*px)
	}
	if least, ok := measureOf(n, "height", 0); ok {
		h = max(h, least)
	}
	return w + besides, h + above
}

// fontSizes are those of <font size>, from 1 to 7, in CSS pixels.
var fontSizes = []float64{10, 13, 16, 18, 24, 32, 48}

// inside is the setting in an element.
func (s setting) inside(n *html.Node) setting {
	switch kind := prose.Element(n); kind {
	case atom.H1, atom.H2, atom.H3, atom.H5, atom.H6, atom.Small, atom.Sub, atom.Sup:
		s.size *= map[atom.Atom]float64{atom.H1: 2, atom.H2: 1.5, atom.H3: 1.17, atom.H5: .83, atom.H6: .67, atom.Small: .83,
			atom.Sub: .83, atom.Sup: .83}[kind]
	case atom.Pre:
		s.pre = true
	case atom.Td, atom.Th:
		s.cell = true
	case atom.Table:
		s.padding, s.spacing = 1, 2
		if v, err := strconv.ParseFloat(prose.Attribute(n, "cellpadding"), 64); err == nil {
			s.padding = v
		}
		if v, err := strconv.ParseFloat(prose.Attribute(n, "cellspacing"), 64); err == nil {
			s.spacing = v
		}
		if px, ok := lengthOf(prose.Property(n, "border-spacing"), 0); ok {
			s.spacing = max(s.spacing, px)
		}
	}
	if i, err := strconv.Atoi(prose.Attribute(n, "size")); err == nil && prose.Element(n) == atom.Font {
		s.size = fontSizes[min(max(i, 1), len(fontSizes))-1]
	}
	if px, ok := lengthOf(prose.Property(n, "font-size"), 0); ok {
		s.size = px
	}
	if v, err := strconv.ParseFloat(prose.Property(n, "line-height"), 64); err == nil {
		s.line = v
	}
	if v := prose.Property(n, "white-space"); v != "" {
		s.pre = strings.HasPrefix(v, "pre")
	}
	return s
}

// textExtent is the least width of a text and its height. In a table's cell the longest word tells its width, at the smallest size.
func textExtent(n *html.Node, s setting) (w, h float64) {
	if blank(n.Data) && !s.pre {
		return 0, 0
	}
	*s.least = min(*s.least, s.size)
	var em, word, longest float64
	for _, c := range n.Data {
		em += emOf(c)
		if word += emOf(c); emOf(c) == 1 || unicode.IsSpace(c) || c == '-' {
			word = 0
		}
		longest = max(longest, word)
	}
	if !s.cell {
		longest = 0
	}
	lines := em * s.size / s.width
	if n.PrevSibling == nil {
		lines = math.Ceil(lines) // the last line of a paragraph is half empty
	}
	if s.pre {
		lines += float64(strings.Count(n.Data, "\n"))
	}
	return max(leastColumn, s.scale*longest) * s.size, lines * s.size * s.line
}

// emOf is about how wide a character is by the size of its font. Lines break beside a Korean, Chinese or Japanese one, which takes it all.
func emOf(c rune) float64 {
	switch {
	case c > 0xff && width.LookupRune(c).Kind() == width.EastAsianWide:
		return 1
	case strings.ContainsRune("MWmw@%", c):
		return .9
	case unicode.IsUpper(c):
		return .7
	}
	return .5
}

// around is what margins, paddings, borders and marks of lists add to an element's width and height.
func around(n *html.Node, s setting) (x, y float64) {
	kind := prose.Element(n)
	switch kind {
	case atom.Blockquote:
		x = 80
	case atom.Dd, atom.Ul, atom.Ol:
		x = 40
	case atom.Td, atom.Th:
		if y = s.spacing; prose.Property(n, "padding") == "" {
			x, y = 2*s.padding, y+2*s.padding
		}
	case atom.Hr:
		y = s.size
	}
	if gap := prose.Gap(kind); gap > 0 && kind != atom.Html && kind != atom.Body {
		y += s.size * float64(gap-1)
	}
	for _, property := range []string{"margin", "padding"} {
		px, py := sides(n, property)
		x, y = x+px, y+py
	}
	border, _ := strconv.ParseFloat(prose.Attribute(n, "border"), 64)
	for _, property := range []string{"border", "border-width", "border-top", "border-right", "border-bottom", "border-left"} {
		for part := range strings.FieldsSeq(prose.Property(n, property)) {
			if px, ok := lengthOf(part, 0); ok {
				border = max(border, px)
			} else if strings.Contains("thin medium solid double dashed dotted", part) {
				border = max(border, 3)
			}
		}
	}
	return x + 2*border, y + 2*border
}

// sides are both sides of a margin or padding, at the width and at the height.
func sides(n *html.Node, property string) (x, y float64) {
	var px [4]float64 // above, right, below, left
	if parts := strings.Fields(prose.Property(n, property)); len(parts) > 0 && len(parts) <= 4 {
		for side, part := range [][4]int{{0, 0, 0, 0}, {0, 1, 0, 1}, {0, 1, 2, 1}, {0, 1, 2, 3}}[len(parts)-1] {
			px[side], _ = lengthOf(parts[part], 0) // auto is none
		}
	}
	for side, name := range []string{"-top", "-right", "-bottom", "-left"} {
		if v, ok := lengthOf(prose.Property(n, property+name), 0); ok {
			px[side] = v
		}
	}
	return px[1] + px[3], px[0] + px[2]
}

// usualPicture is the height in CSS pixels that is kept free for a picture which says none.
const usualPicture = 150

// pictureHeight is what a picture says of its height, or what is kept free for it. No picture is wider than what is around it.
func pictureHeight(n *html.Node) float64 {
	if px, ok := measureOf(n, "height", 0); ok {
		return px
	}
	return usualPicture
}

// lengthOf reads a length as markup writes it: 0, pixels, or a percentage of what is around.
func lengthOf(text string, around float64) (float64, bool) {
	if text == "0" {
		return 0, true
	}
	if digits, ok := strings.CutSuffix(text, "px"); ok {
		n, err := strconv.ParseFloat(digits, 64)
		return n, err == nil
	}
	if digits, ok := strings.CutSuffix(text, "%"); ok && around > 0 {
		n, err := strconv.ParseFloat(digits, 64)
		return n * around / 100, err == nil
	}
	return 0, false
}

// measureOf is a width or height, as a property or an attribute.
func measureOf(n *html.Node, name string, around float64) (float64, bool) {
	if px, ok := lengthOf(prose.Property(n, name), around); ok {
		return px, ok
	}
	return lengthOf(unit(prose.Attribute(n, name)), around)
}
