package body

import (
	"strconv"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"hub.internal/pkg/markup/prose"
)

// box is what lies around an element's content, in CSS pixels: above and below are margins, the
// others paddings and borders, with the margins at the sides.
type box struct{ above, below, top, bottom, left, right float64 }

func boxOf(n *html.Node, size float64) (b box) {
	kind := prose.Element(n)
	b.above = margins[kind] * size
	b.below = b.above
	switch kind {
	case atom.Blockquote:
		b.left, b.right = 40, 40
	case atom.Dd, atom.Ul, atom.Ol:
		b.left = 40
	}
	all := func(name string) (top, right, bottom, left float64, ok bool) {
		of := [][4]int{1: {0, 0, 0, 0}, 2: {0, 1, 0, 1}, 3: {0, 1, 2, 1}, 4: {0, 1, 2, 3}}
		parts := strings.Fields(prose.Property(n, name))
		if len(parts) < 1 || len(parts) > 4 {
			return 0, 0, 0, 0, false
		}
		var px [4]float64
		for i, at := range of[len(parts)] {
			px[i], _ = lengthOf(parts[at], 0) // auto is none
		}
		return px[0], px[1], px[2], px[3], true
	}
	one := func(name string, to *float64) {
		if px, ok := lengthOf(prose.Property(n, name), 0); ok {
			*to = px
		}
	}
	margin, padding := box{top: b.above, bottom: b.below}, box{}
	switch kind {
	case atom.Ul, atom.Ol:
		padding.left = b.left
	default:
		margin.left, margin.right = b.left, b.right
	}
	for name, side := range map[string]*box{"margin": &margin, "padding": &padding} {
		if top, right, bottom, left, ok := all(name); ok {
			*side = box{top: top, right: right, bottom: bottom, left: left}
		}
		one(name+"-top", &side.top)
		one(name+"-right", &side.right)
		one(name+"-bottom", &side.bottom)
		one(name+"-left", &side.left)
	}
	border := 0.0
	for _, name := range []string{"border", "border-width", "border-top", "border-right", "border-bottom", "border-left"} {
		for part := range strings.FieldsSeq(prose.Property(n, name)) {
			if px, ok := lengthOf(part, 0); ok {
				border = max(border, px)
			} else if part == "thin" || part == "medium" || part == "solid" || part == "double" || part == "dashed" || part == "dotted" {
				border = max(border, 3)
			}
		}
	}
	return box{above: margin.top, below: margin.bottom, top: padding.top + border, bottom: padding.bottom + border,
		left: margin.left + padding.left + border, right: margin.right + padding.right + border}
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

// sizeOf is a width or height, as a property or an attribute.
func sizeOf(n *html.Node, name string, around float64) (float64, bool) {
	if px, ok := lengthOf(prose.Property(n, name), around); ok {
		return px, ok
	}
	v := prose.Attribute(n, name)
	if v != "" && !strings.HasSuffix(v, "%") {
		v += "px"
	}
	return lengthOf(v, around)
}
