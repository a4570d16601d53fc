package body

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// strange is a property of which the value is not known before the mail is laid out, or of
// which the effect is not followed here; empty when there is none.
func (s style) strange(l *look) string {
	for _, property := range []string{"display", "visibility", "opacity", "font-size", "height", "max-height", "text-indent", "line-height", "letter-spacing", "left", "right", "top", "bottom"} {
		if strings.Contains(s.get(property), "(") && !isLength(s.get(property)) {
			return property
		}
	}
	for _, property := range []string{"color", "-webkit-text-fill-color", "background-color"} {
		if _, ok := parseColor(s.get(property)); !ok && strings.Contains(s.get(property), "(") {
			return property
		}
	}
	for _, property := range []string{"clip-path", "mask", "mask-image", "mix-blend-mode", "animation", "animation-name", "offset", "offset-path", "text-security"} {
		if v := s.get(property); v != "" && !slices.Contains([]string{"none", "normal", "auto", "initial", "unset", "revert", "inherit"}, v) {
			return property
		}
	}
	if strings.HasPrefix(s.get("z-index"), "-") {
		return "z-index"
	}
	if v := s.get("contain"); strings.Contains(v, "strict") || strings.Contains(v, "size") || strings.Contains(v, "paint") || strings.Contains(v, "content") {
		return "contain"
	}
	if strings.Contains(s.get("content"), "(") {
		return "content"
	}
	if n, ok := length(s.get("letter-spacing"), l.size); ok && n <= -l.size/4 {
		return "letter-spacing"
	}
	if turned(s.get("rotate"), "xyz ") {
		return "rotate"
	}
	for _, property := range []string{"filter", "transform"} {
		for name := range functions(s.get(property)) {
			if !slices.Contains(followed, name) {
				return property
			}
		}
	}
	return ""
}

// followed are the functions of filter and transform that leave text as it is, or that are
// looked at elsewhere.
var followed = []string{"grayscale", "sepia", "hue-rotate", "saturate", "drop-shadow", "translate", "translatex", "translatey", "translate3d", "scale", "scalex", "scaley", "rotate", "rotatez"}

// turned tells that a rotation names an axis.
func turned(v, axes string) bool {
	return v != "none" && strings.ContainsAny(strings.TrimSuffix(v, "turn"), axes)
}

// functions are the names of the functions in a value.
func functions(v string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for part := range pieces(v, ' ') {
			if name, _, ok := strings.Cut(part, "("); ok && !yield(strings.TrimSpace(name)) {
				return
			}
		}
	}
}

// widthOfPage is what a percentage is taken of: about the width of a page, or else the font.
func widthOfPage(v string, size float64) float64 {
	if strings.HasSuffix(v, "%") {
		return 800
	}
	return size
}

// box is why the element's box is not shown.
func (s style) box(l *look) string {
	switch s.get("display") {
	case "none", "table-column", "table-column-group":
		return s.why("display")
	}
	if s.get("content-visibility") == "hidden" {
		return s.why("content-visibility")
	}
	if v := s.get("opacity"); v != "" {
		if opacity, ok := length(v, 1); ok {
			if l.opacity *= opacity; l.opacity <= 0.05 {
				return s.why("opacity")
			}
		}
	}
	if v := strings.ReplaceAll(s.get("filter"), " ", ""); strings.Contains(v, "opacity(0)") || strings.Contains(v, "opacity(0%)") || strings.Contains(v, "alpha(opacity=0)") {
		return s.why("filter")
	}
	if overflow := s.get("overflow"); overflow != "" && overflow != "visible" {
		for _, side := range []string{"height", "max-height", "width", "max-width"} {
			if n, ok := length(s.get(side), l.size); ok && n < max(1.1, l.size/2) && !strings.HasSuffix(s.get(side), "%") {
				return s.why(side) + " with overflow:" + overflow
			}
			if s.get(side) == "0%" {
				return s.why(side) + " with overflow:" + overflow
			}
		}
	}
	return s.place(l)
}

// place is why the element stands where nobody sees it.
func (s style) place(l *look) string {
	away := func(property string) bool {
		n, ok := length(s.get(property), widthOfPage(s.get(property), l.size))
		return ok && (n <= -500 || n >= 2000)
	}
	switch s.get("position") {
	case "absolute", "fixed", "relative", "sticky":
		for _, side := range []string{"left", "top", "right", "bottom"} {
			if away(side) {
				return s.why(side) + " with position:" + s.get("position")
			}
		}
		if clip := s.get("clip"); strings.HasPrefix(clip, "rect(") && zeroRect(clip) {
			return s.why("clip")
		}
	}
	for _, side := range []string{"margin-left", "margin-top", "margin-right"} {
		if away(side) {
			return s.why(side)
		}
	}
	if clip := strings.ReplaceAll(s.get("clip-path"), " ", ""); strings.HasPrefix(clip, "circle(0") || strings.HasPrefix(clip, "inset(100%") || strings.HasPrefix(clip, "inset(50%") || strings.HasPrefix(clip, "polygon(00,00,00") {
		return s.why("clip-path")
	}
	if v := s.get("translate"); v != "" && shrunk("transform", "translate("+strings.Join(strings.Fields(v), ",")+")") {
		return s.why("translate")
	}
	for _, property := range []string{"transform", "scale", "zoom"} {
		if shrunk(property, s.get(property)) {
			return s.why(property)
		}
	}
	return ""
}

// zeroRect tells that a clip rectangle is at most a pixel wide or high.
func zeroRect(clip string) bool {
	inner, _, _ := strings.Cut(strings.TrimPrefix(clip, "rect("), ")")
	sides := strings.FieldsFunc(inner, func(r rune) bool { return r == ',' || r == ' ' })
	if len(sides) != 4 {
		return false
	}
	var n [4]float64
	for i, side := range sides {
		var ok bool
		if n[i], ok = length(side, 16); !ok {
			return false
		}
	}
	return n[2]-n[0] <= 1 || n[1]-n[3] <= 1
}

// shrunk tells that a transformation leaves nothing, or moves it away.
func shrunk(property, v string) bool {
	if property != "transform" {
		return slices.ContainsFunc(strings.Fields(v), func(part string) bool {
			n, ok := length(part, 1)
			return ok && n <= 0.1
		})
	}
	for function := range pieces(v, ' ') {
		name, inner, ok := strings.Cut(strings.TrimSuffix(strings.TrimSpace(function), ")"), "(")
		if !ok {
			continue
		}
		for part := range strings.SplitSeq(inner, ",") {
			part = strings.TrimSpace(part)
			switch {
			case strings.HasPrefix(name, "scale"):
				if n, err := strconv.ParseFloat(part, 64); err == nil && n > -0.1 && n < 0.1 {
					return true
				}
			case strings.HasPrefix(name, "translate"):
				if n, ok := length(part, 16); ok && (n <= -500 || n >= 2000 || strings.HasSuffix(part, "%") && n <= -16) {
					return true
				}
			}
		}
	}
	return false
}

// covers is why an element may lie over other text.
func (s style) covers() string {
	switch s.get("position") {
	case "absolute", "fixed", "sticky", "-webkit-sticky":
		return s.why("position") + ": it may cover other text, and the preview shows it in its line"
	}
	if n, ok := length(s.get("margin-top"), 16); ok && n <= -16 {
		return s.why("margin-top") + ": it may cover the text above"
	}
	return ""
}

// cuts is why not all of an element's text fits into its box.
func (s style) cuts(l look, n *html.Node) string {
	overflow := s.get("overflow")
	if overflow == "" || overflow == "visible" {
		return ""
	}
	lines, letters := extent(n)
	// Lines are as high as the font at least, letters wider than a quarter of that on the average.
	needs := map[string]float64{"height": float64(lines-1) * l.size, "max-height": float64(lines-1) * l.size}
	if v := s.get("white-space"); v == "nowrap" || v == "pre" {
		needs["width"] = float64(letters) * l.size / 4
		needs["max-width"] = needs["width"]
	}
	for _, side := range []string{"height", "max-height", "width", "max-width"} {
		if room, ok := length(s.get(side), l.size); ok && !strings.HasSuffix(s.get(side), "%") && needs[side] > room {
			return s.why(side) + " with overflow:" + overflow + ", which may cut it off"
		}
	}
	return ""
}

// extent is how many lines and letters an element has at least: it looks at a hundred nodes.
func extent(n *html.Node) (lines, letters int) {
	lines = 1
	looked := 0
	for c := range n.Descendants() {
		if looked++; looked > 100 {
			break
		}
		switch {
		case c.Type == html.TextNode:
			letters += utf8.RuneCountInString(fold(c.Data[:min(len(c.Data), 4096)]))
		case c.DataAtom == atom.Br || c.DataAtom == atom.P || c.DataAtom == atom.Li || c.DataAtom == atom.Tr:
			lines++
		}
	}
	return lines, letters
}
