package markup

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tdewolff/parse/v2/css"
)

// rule judges a value of a property, sets what stays of it, and tells whether that is all.
type rule func(s *style, property string, value []token) bool

// styles are the properties that can stay. None of them takes an element out of its line, draws
// it over another, cuts it off or makes it fainter; values are bounded so that the others
// cannot either.
var styles = map[string]rule{
	"color": colorRule, "background-color": backgroundRule, "background": backgroundRule,

	"font": fontRule, "font-family": familyRule, "font-size": sizeRule, "line-height": lineRule,
	"font-weight": weightRule, "font-style": slantRule,
	"letter-spacing":  lengths(-.5, 3),
	"text-align":      oneOf("left", "right", "center", "justify", "start", "end"),
	"text-decoration": oneOf("none", "underline", "line-through"),
	"text-transform":  oneOf("none", "uppercase", "lowercase", "capitalize"),
	"white-space":     oneOf("normal", "pre-wrap", "pre-line"),
	"vertical-align":  onlyFor(oneOf("top", "middle", "bottom", "baseline"), cell, row, section, picture),

	"width": widthRule, "max-width": maxWidthRule, "height": onlyFor(heightRule, table, row, cell, picture),

	"margin": margin, "margin-top": margin, "margin-right": margin, "margin-bottom": margin, "margin-left": margin,
	"padding": padding, "padding-top": padding, "padding-right": padding, "padding-bottom": padding, "padding-left": padding,

	"border": borderRule, "border-top": borderRule, "border-right": borderRule, "border-bottom": borderRule, "border-left": borderRule,
	"border-color": borderPart, "border-style": borderPart, "border-width": borderPart,
	"border-radius":   radiusRule,
	"border-collapse": onlyFor(oneOf("collapse", "separate"), table),
	"border-spacing":  onlyFor(lengths(0, 20), table),

	"list-style": listRule, "list-style-type": listRule,
}

var (
	weightRule = oneOf("normal", "bold", "bolder", "lighter", "100", "200", "300", "400", "500", "600", "700", "800", "900")
	margin     = bySide("margin", marginOf)
	padding    = bySide("padding", paddingOf)
	slantRule  = oneOf("normal", "italic", "oblique")
)

// oneOf is the rule of a property with a word for its value.
func oneOf(allowed ...string) rule {
	return func(s *style, property string, value []token) bool {
		return len(value) == 1 && slices.Contains(allowed, value[0].text) && s.set(property, value[0].text)
	}
}

// lengths is the rule of a property with one length for its value, in CSS pixels.
// letter-spacing has normal as well.
func lengths(least, most float64) rule {
	return func(s *style, property string, value []token) bool {
		if len(value) == 1 && value[0].text == "normal" && property == "letter-spacing" {
			return s.set(property, "normal")
		}
		px, ok := s.bounded(value[0], least, most)
		return ok && len(value) == 1 && s.set(property, px)
	}
}

// onlyFor is a rule for some kinds of elements.
func onlyFor(r rule, kinds ...layout) rule {
	return func(s *style, property string, value []token) bool {
		return slices.Contains(kinds, s.element.kind) && r(s, property, value)
	}
}

// colorRule takes an opaque colour.
// There is no transparent text: color has neither rgba() nor the word.
func colorRule(s *style, property string, value []token) bool {
	c, ok := color(value)
	return ok && s.set(property, c.String())
}

// backgroundRule takes the colour of a background, and no picture.
// Of background:url(x) #fff the colour stays, and false tells that the rest was taken out.
func backgroundRule(s *style, _ string, value []token) bool {
	if len(value) == 1 && (value[0].text == "transparent" || value[0].text == "none") {
		s.unset("background-color")
		return true
	}
	if colorRule(s, "background-color", value) {
		return true
	}
	for i := range value {
		if colorRule(s, "background-color", value[i:i+1]) {
			break
		}
	}
	return false
}

// familyRule takes the fonts of a list that are made to be read.
func familyRule(s *style, _ string, value []token) bool {
	kept, all := families(value)
	if kept != "" {
		s.set("font-family", kept)
	}
	return all
}

// sizeRule takes sizes that can be read, as pixels.
// Sizes are stored as pixels, so that em inside em, or a mail program's own default, cannot shrink a text step by step. The bounds are
// leastFont and 72.
func sizeRule(s *style, _ string, value []token) bool {
	const most = 72
	own := s.size
	named := map[string]float64{"xx-small": 9, "x-small": 10, "small": 13, "medium": 16, "large": 18, "x-large": 24, "xx-large": 32,
		"smaller": s.around * smallerScale, "larger": s.around / smallerScale}
	s.size = s.around // which em is of, here
	px, ok := s.length(value[0])
	if n, isNamed := named[value[0].text]; isNamed {
		px, ok = float64(int(n*100+.5))/100, true
	}
	if part, isPart := percentage(value[0], 1, 1000); isPart {
		n, _ := number(strings.TrimSuffix(part, "%"))
		px, ok = float64(int(n*s.around+.5))/100, true
	}
	if !ok || len(value) != 1 || px < leastFont || px > most {
		s.size = own
		return false
	}
	s.size = px
	return s.set("font-size", inPixels(px))
}

// lineRule takes heights at which lines do not lie upon each other, as a number: that goes with
// the size of the font, also in the elements inside.
// From 1 to 3: below 1 lines cover each other.
func lineRule(s *style, _ string, value []token) bool {
	if len(value) != 1 {
		return false
	}
	if value[0].text == "normal" {
		return s.set("line-height", "normal")
	}
	var times float64
	var ok bool
	switch value[0].kind {
	case css.NumberToken:
		times, ok = number(value[0].text)
	case css.PercentageToken:
		times, ok = number(strings.TrimSuffix(value[0].text, "%"))
		times /= 100
	default:
		times, ok = s.length(value[0])
		times /= s.size
	}
	times = float64(int(times*100+.5)) / 100
	return ok && times >= 1 && times <= 3 && s.set("line-height", strconv.FormatFloat(times, 'f', -1, 64))
}

// fontRule takes font: style and weight, size/line-height, families.
func fontRule(s *style, _ string, value []token) bool {
	i := 0
	isSize := func(t token) bool {
		named := t.text == "medium" || strings.HasSuffix(t.text, "small") || strings.HasSuffix(t.text, "large")
		return named || t.kind == css.DimensionToken || t.kind == css.PercentageToken
	}
	for ; i < len(value) && !isSize(value[i]); i++ {
		if value[i].text == "normal" {
			continue
		}
		one := value[i : i+1]
		if !slantRule(s, "font-style", one) && !weightRule(s, "font-weight", one) {
			return false
		}
	}
	if i == len(value) || !sizeRule(s, "", value[i:i+1]) {
		return false
	}
	if i++; i+1 < len(value) && value[i].text == "/" {
		if !lineRule(s, "", value[i+1:i+2]) {
			return false
		}
		i += 2
	}
	return i < len(value) && familyRule(s, "", value[i:])
}

// widthRule takes a width. Blocks are as wide as what is around them; theirs is a bound.
func widthRule(s *style, _ string, value []token) bool {
	if len(value) != 1 {
		return false
	}
	width, ok := s.bounded(value[0], 1, 1200)
	if !ok {
		width, ok = percentage(value[0], 1, 100)
	}
	switch kind := s.element.kind; {
	case value[0].text == "auto":
		return true
	case !ok || kind == inline || kind == item || kind == row || kind == section || kind == void:
		return false
	case kind == block || kind == list:
		return maxWidthRule(s, "", value)
	}
	return s.set("width", width)
}

// maxWidthRule takes bounds between which words still have room.
// At least 100 pixels or 25 per cent: a column of one letter could not be read.
func maxWidthRule(s *style, _ string, value []token) bool {
	if len(value) != 1 || s.element.kind != block && s.element.kind != list && s.element.kind != table && s.element.kind != picture {
		return false
	}
	if value[0].text == "none" {
		return true
	}
	width, ok := s.bounded(value[0], 100, 2000)
	if !ok {
		width, ok = percentage(value[0], 25, 100)
	}
	return ok && s.set("max-width", width)
}

// heightRule takes the least height of a cell, and that of a picture: what is in them is never cut.
func heightRule(s *style, _ string, value []token) bool {
	if len(value) != 1 {
		return false
	}
	if value[0].text == "auto" {
		return true
	}
	most := 400.0
	if s.element.kind == picture {
		most = 1200
	}
	px, ok := s.bounded(value[0], 1, most)
	return ok && s.set("height", px)
}

// sides are a value for all sides, or for each in the order of CSS: top, right, bottom, left. judge is asked about each side.
func sides(value []token, judge func(side int, t token) (string, bool)) (all [4]string, ok bool) {
	of := [][4]int{1: {0, 0, 0, 0}, 2: {0, 1, 0, 1}, 3: {0, 1, 2, 1}, 4: {0, 1, 2, 3}}
	if len(value) < 1 || len(value) > 4 {
		return all, false
	}
	for side, at := range of[len(value)] {
		if all[side], ok = judge(side, value[at]); !ok {
			return all, false
		}
	}
	return all, true
}

// leftSide is a place in sideNames.
const leftSide = 3

var sideNames = [4]string{"-top", "-right", "-bottom", "-left"}

// bySide is the rule of a property for all sides, or, where a side is behind its name, for that one. judge says what stays of a value
// at a side.
func bySide(all string, judge func(s *style, side int, t token) (string, bool)) rule {
	return func(s *style, property string, value []token) bool {
		if property != all {
			side := slices.Index(sideNames[:], strings.TrimPrefix(property, all))
			px, ok := judge(s, side, value[0])
			return ok && len(value) == 1 && s.setSide(all, side, px)
		}
		each, ok := sides(value, func(side int, t token) (string, bool) { return judge(s, side, t) })
		if !ok {
			return false
		}
		whole := true
		for side, px := range each {
			whole = s.setSide(all, side, px) && whole
		}
		return whole
	}
}

// setSide sets a property for one of its sides, and tells whether it could. An inline element has it to its left and right alone:
// above and below it would cover other lines.
func (s *style) setSide(property string, side int, px string) bool {
	if s.element.kind == inline && side%2 == 0 {
		return px == "0"
	}
	return s.set(property+sideNames[side], px)
}

// marginOf is never negative: that would draw an element over another.
// At most 60 pixels: what stands far away is read as something else's.
func marginOf(s *style, side int, t token) (string, bool) {
	px, ok := s.bounded(t, 0, 60)
	if t.text == "auto" {
		px, ok = "auto", true
	}
	switch s.element.kind {
	case block, list, item:
		return px, ok
	case table:
		return px, ok && (side%2 == 0 || px == "auto" || px == "0")
	}
	return "", false
}

// paddingOf leaves a list room for its marks.
func paddingOf(s *style, side int, t token) (string, bool) {
	least, _ := s.length(t)
	px, ok := s.bounded(t, 0, 60)
	if s.element.kind == list && side == leftSide && least < leastIndent {
		px = inPixels(leastIndent)
	}
	return px, ok && s.padded()
}

// leastIndent is how far the items of a list are from its left side at least, in CSS pixels.
const leastIndent = 20

// padded tells that the element can have a padding.
func (s *style) padded() bool {
	switch s.element.kind {
	case inline, block, list, item, cell:
		return true
	}
	return false
}

// borderRule takes border: width, style and colour in any order.
func borderRule(s *style, property string, value []token) bool {
	var parts []string
	for len(value) > 0 {
		n := 1
		if value[0].kind == css.FunctionToken {
			n = min(7, len(value))
		}
		part, ok := s.border(value[:n])
		if !ok || len(parts) == 3 {
			return false
		}
		parts, value = append(parts, part), value[n:]
	}
	return s.bordered() && s.set(property, strings.Join(parts, " "))
}

// bordered tells that the element can have a border.
func (s *style) bordered() bool {
	return s.padded() || s.element.kind == table || s.element.kind == picture
}

// border is a part of a border, as it stays.
func (s *style) border(value []token) (string, bool) {
	if c, ok := color(value); ok {
		return c.String(), true
	}
	if len(value) != 1 {
		return "", false
	}
	if slices.Contains([]string{"none", "solid", "dashed", "dotted", "double", "thin", "medium"}, value[0].text) {
		return value[0].text, true
	}
	most := 20.0
	if s.element.kind == inline {
		most = 2 // more would cover the lines above and below
	}
	return s.bounded(value[0], 0, most)
}

// borderPart takes one of width, style and colour, for all sides or for each.
// rgb() is more than one token and is taken by border alone; a colour for each side has to be a name or #rrggbb.
func borderPart(s *style, property string, value []token) bool {
	all, ok := sides(value, func(_ int, t token) (string, bool) { return s.border([]token{t}) })
	if !ok || !s.bordered() {
		return false
	}
	return s.set(property, joined(all))
}

// joined is a value for four sides, or for all of them.
func joined(all [4]string) string {
	if all[0] == all[1] && all[0] == all[2] && all[0] == all[3] {
		return all[0]
	}
	return strings.Join(all[:], " ")
}

// radiusRule takes corners of at most half of the element, or 100 pixels.
func radiusRule(s *style, property string, value []token) bool {
	all, ok := sides(value, func(_ int, t token) (string, bool) {
		if part, isPart := percentage(t, 0, 50); isPart {
			return part, true
		}
		return s.bounded(t, 0, 100)
	})
	return ok && s.set(property, joined(all))
}

// listRule takes the marks that every program knows, and none of the text's own.
func listRule(s *style, _ string, value []token) bool {
	if s.element.kind != list && s.element.kind != item {
		return false
	}
	return oneOf("none", "disc", "circle", "square", "decimal")(s, "list-style-type", value)
}
