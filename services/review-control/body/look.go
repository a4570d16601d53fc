package body

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// look is how the text in an element appears.
type look struct {
	// gone is why nothing of the element is shown, whatever stands inside.
	gone string
	// unseen and indent are why its own text is not shown; an element inside may undo them.
	unseen, indent string
	// doubt is why its text may not be seen by everybody.
	doubt string

	opacity     float64
	size        float64 // of the font, in pixels
	sizeWhy     string
	line        string // why its lines lie upon each other
	color, back color
	picture     bool // a picture lies under the text
}

// unreadable is the size in pixels below which nobody reads a text.
const unreadable = 5

// canvas is the look of an empty window.
func canvas() look { return look{opacity: 1, size: 16, color: black, back: white} }

// style is the properties that hold for an element, each with where it came from.
type style map[string]styleValue

type styleValue struct{ value, from string }

func (s style) get(property string) string { return s[property].value }

// why names a property as a reason.
func (s style) why(property string) string {
	v := s[property]
	return property + ":" + v.value + v.from
}

// tells lists the properties that say whether text is seen, by their canonical names.
func tells(property string) bool {
	switch canonicalName(property) {
	case "display", "visibility", "opacity", "content-visibility", "mso-hide",
		"font-size", "font", "color", "-webkit-text-fill-color", "background-color", "background", "background-image",
		"width", "height", "max-width", "max-height", "overflow", "overflow-x", "overflow-y",
		"position", "left", "right", "top", "bottom", "text-indent", "margin-left", "margin-top", "margin-right", "margin",
		"clip", "clip-path", "transform", "scale", "zoom", "filter", "direction", "unicode-bidi",
		"line-height", "letter-spacing", "z-index", "contain", "inset", "margin-block", "margin-inline",
		"mask", "mask-image", "mix-blend-mode", "animation", "animation-name", "offset", "offset-path", "rotate", "translate",
		"text-security", "content", "quotes", "white-space":
		return true
	}
	return false
}

// aliases are names for a horizontal text from left to right.
var aliases = map[string]string{
	"inset-block-start": "top", "inset-block-end": "bottom", "inset-inline-start": "left", "inset-inline-end": "right",
	"margin-block-start": "margin-top", "margin-inline-start": "margin-left", "margin-inline-end": "margin-right",
	"block-size": "height", "inline-size": "width", "max-block-size": "max-height", "max-inline-size": "max-width",
	"overflow-block": "overflow-y", "overflow-inline": "overflow-x",
}

// canonicalName is a property without the prefix of a browser, and by its physical name.
func canonicalName(property string) string {
	if property[0] == '-' && property != "-webkit-text-fill-color" {
		for _, prefix := range []string{"-webkit-", "-moz-", "-ms-"} {
			property = strings.TrimPrefix(property, prefix)
		}
	}
	if name, ok := aliases[property]; ok {
		return name
	}
	return property
}

// means tells that browsers know the value of a property. They drop a declaration with any
// other, so that the one before it holds.
func means(property, v string) bool {
	if strings.Contains(v, "(") {
		return true
	}
	switch v {
	case "inherit", "initial", "unset", "revert", "revert-layer":
		return true
	}
	switch property {
	case "display":
		for word := range strings.FieldsSeq(v) {
			if !slices.Contains(displays, strings.TrimPrefix(strings.TrimPrefix(word, "-webkit-"), "-ms-")) {
				return false
			}
		}
		return v == "none" || v == "contents" || !slices.Contains(strings.Fields(v), "none")
	case "visibility":
		return v == "visible" || v == "hidden" || v == "collapse"
	case "position":
		return slices.Contains([]string{"static", "relative", "absolute", "fixed", "sticky", "-webkit-sticky"}, v)
	case "font-size":
		if _, ok := sizeKeyword(v, 16); ok {
			return true
		}
		return isLength(v)
	case "opacity":
		return isLength(v)
	case "color", "-webkit-text-fill-color", "background-color":
		if v == "currentcolor" {
			return true
		}
		_, ok := parseColor(v)
		return ok
	case "height", "width", "max-height", "max-width", "left", "right", "top", "bottom", "text-indent", "line-height", "letter-spacing",
		"margin-left", "margin-top", "margin-right":
		return isLength(v) || v != "" && strings.Trim(v, "abcdefghijklmnopqrstuvwxyz-") == ""
	}
	return true
}

var displays = []string{"none", "contents", "block", "inline", "inline-block", "flow", "flow-root", "list-item", "run-in", "flex", "inline-flex", "flexbox", "inline-flexbox", "grid", "inline-grid",
	"box", "inline-box", "table", "inline-table", "table-row", "table-cell", "table-caption", "table-row-group", "table-header-group", "table-footer-group", "table-column",
	"table-column-group", "ruby", "ruby-base", "ruby-text", "math"}

func isLength(v string) bool {
	_, ok := length(v, 1)
	return ok
}

// shorthands that set another property of the list, or unset it.
func (s style) set(d declaration, from string) {
	property := canonicalName(d.property)
	if !means(property, d.value) {
		return
	}
	v := styleValue{d.value, from}
	switch property {
	case "overflow-x", "overflow-y":
		s["overflow"] = v
	case "font":
		if size := fontSize(d.value); size != "" {
			s["font-size"] = styleValue{size, from}
		}
	case "background":
		s["background-color"], s["background-image"] = styleValue{"transparent", from}, styleValue{}
		for part := range pieces(d.value, ' ') {
			if _, ok := parseColor(part); ok {
				s["background-color"] = styleValue{part, from}
			} else if isPicture(part) {
				s["background-image"] = styleValue{part, from}
			} else if part == "currentcolor" || strings.Contains(part, "(") {
				s["background-color"] = styleValue{part, from}
			}
		}
	case "margin":
		s.sides(v, "margin-top", "margin-right", "", "margin-left")
	case "inset":
		s.sides(v, "top", "right", "bottom", "left")
	case "margin-inline":
		s.sides(v, "margin-left", "margin-right", "", "")
	case "margin-block":
		s.sides(v, "margin-top", "", "", "")
	default:
		s[property] = v
	}
}

// sides sets properties from a value for top, right, bottom and left; "" leaves one out.
func (s style) sides(v styleValue, names ...string) {
	var each []string
	for part := range pieces(v.value, ' ') {
		if part != "" {
			each = append(each, part)
		}
	}
	// The number of the value for each side, by how many there are.
	of := [][4]int{1: {0, 0, 0, 0}, 2: {0, 1, 0, 1}, 3: {0, 1, 2, 1}, 4: {0, 1, 2, 3}}
	if len(each) == 0 || len(each) > 4 {
		return
	}
	for i, name := range names {
		if name != "" {
			s[name] = styleValue{each[of[len(each)][i]], v.from}
		}
	}
}

// fontSize is the size in a font shorthand: the first length or size keyword.
func fontSize(font string) string {
	for part := range strings.FieldsSeq(font) {
		part, _, _ = strings.Cut(part, "/")
		if n, ok := length(part, 16); ok && (n < 100 || strings.IndexFunc(part, func(r rune) bool { return r >= 'a' && r <= 'z' || r == '%' }) > 0) {
			return part
		}
		if _, ok := sizeKeyword(part, 16); ok {
			return part
		}
	}
	return ""
}

func sizeKeyword(name string, parent float64) (float64, bool) {
	switch name {
	case "xx-small":
		return 9, true
	case "x-small":
		return 10, true
	case "small":
		return 13, true
	case "medium", "initial":
		return 16, true
	case "large":
		return 18, true
	case "x-large":
		return 24, true
	case "xx-large", "xxx-large":
		return 32, true
	case "smaller":
		return parent / 1.2, true
	case "larger":
		return parent * 1.2, true
	case "inherit", "unset", "revert", "revert-layer":
		return parent, true
	}
	return 0, false
}

func isPicture(value string) bool {
	return strings.Contains(value, "url(") || strings.Contains(value, "gradient(") || strings.Contains(value, "image(") || strings.Contains(value, "image-set(")
}

// styleOf is the element's style, and why a rule that does not hold for everybody hides it.
func (r *reader) styleOf(n *html.Node) (s style, doubt string) {
	attribute := value(n, "style")
	rules := r.sheet.match(n)
	if attribute == "" && len(rules) == 0 {
		return nil, ""
	}
	type level struct {
		d    declaration
		from string
	}
	var normal, important []level
	take := func(list []declaration, from string) {
		for _, d := range list {
			if d.important {
				important = append(important, level{d, from})
			} else {
				normal = append(normal, level{d, from})
			}
		}
	}
	for _, m := range rules {
		from := " (style rule " + m.text + ")"
		if m.sure {
			take(m.rule.declarations, from)
			continue
		}
		unsure := style{}
		for _, d := range m.rule.declarations {
			unsure.set(d, from)
		}
		plain := canvas()
		plain.apply(unsure)
		why := plain.why()
		if why == "" && !nightly(m) {
			why = plain.faint()
		}
		if why == "" {
			why = plain.doubt
		}
		if why != "" {
			doubt = strings.TrimSpace(why + " " + m.rule.condition)
		}
	}
	take(declarations(attribute), "")
	s = style{}
	for _, l := range slices.Concat(normal, important) {
		s.set(l.d, l.from)
	}
	return s, doubt
}

// nightly tells of a rule for dark windows, where light text lies on a dark ground.
func nightly(m matched) bool {
	return strings.Contains(m.rule.condition, "dark") && !strings.Contains(m.rule.condition, "not") || strings.HasPrefix(m.text, "[data-ogs")
}

// why is the look's reason for not being shown, if it has one.
func (l look) why() string {
	switch {
	case l.gone != "":
		return l.gone
	case l.unseen != "":
		return l.unseen
	case l.indent != "":
		return l.indent
	case l.size < unreadable:
		return l.sizeWhy
	case l.line != "":
		return l.line
	}
	return ""
}

// inside is the look of an element in one of look l.
func (r *reader) inside(l look, n *html.Node) look {
	s, doubt := r.styleOf(n)
	if doubt != "" {
		l.doubt = doubt
	}
	l.attributes(n, s)
	l.apply(s)
	if _, hidden := attr(n, "hidden"); hidden && s.get("display") == "" && l.gone == "" {
		l.gone = "hidden attribute"
	}
	if why := neverShown(n); why != "" && l.gone == "" && s.get("display") == "" {
		l.gone = why
	}
	if _, popover := attr(n, "popover"); popover && s.get("display") == "" && l.gone == "" {
		l.gone = "popover attribute"
	}
	if l.doubt == "" && (dropped[n.Data] || n.Namespace != "") {
		l.doubt = "inside of <" + n.Data + ">, which the preview leaves out"
	}
	if shadowed(n) {
		l.doubt = "beside a shadow tree, which may hide it"
	}
	if l.gone == "" {
		if why := s.covers(); why != "" {
			r.note(why)
		}
		if why := s.cuts(l, n); why != "" {
			l.doubt = why
		}
	}
	switch n.DataAtom {
	case atom.Audio, atom.Video, atom.Canvas:
		l.doubt = "inside of <" + n.Data + ">: shown by programs without it"
	case atom.Details:
		if _, open := attr(n, "open"); !open {
			l.doubt = closedDetails
		}
	case atom.Summary:
		if l.doubt == closedDetails {
			l.doubt = ""
		}
	}
	if n.DataAtom == atom.Bdo && strings.EqualFold(value(n, "dir"), "rtl") {
		l.doubt = "shown from right to left (bdo): it reads differently"
	}
	return l
}

// shadowed tells that an element has a shadow tree, which is shown in place of what it holds.
func shadowed(n *html.Node) bool {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if c.DataAtom == atom.Template {
			if _, ok := attr(c, "shadowrootmode"); ok {
				return true
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

const closedDetails = "inside of a closed <details>"

// neverShown is why browsers do not show what is in such an element.
func neverShown(n *html.Node) string {
	switch n.DataAtom {
	case atom.Template, atom.Datalist, atom.Noembed, atom.Noframes, atom.Rp, atom.Iframe:
		return "inside of <" + n.Data + ">"
	case atom.Dialog:
		if _, open := attr(n, "open"); !open {
			return "closed <dialog>"
		}
	}
	if n.Namespace != "" {
		switch n.Data {
		case "title", "desc", "metadata", "defs", "symbol", "clipPath", "mask", "annotation", "annotation-xml":
			return "inside of <" + n.Data + ">"
		}
	}
	return ""
}

// attributes applies the attributes that stand for style; CSS is stronger.
func (l *look) attributes(n *html.Node, s style) {
	for _, a := range n.Attr {
		if a.Namespace != "" {
			continue
		}
		switch {
		case a.Key == "bgcolor":
			if c, ok := attributeColor(a.Val); ok {
				l.back, l.picture = c.over(l.back), false
			}
		case a.Key == "background" && a.Val != "":
			l.picture = true
		case a.Key == "color" && n.DataAtom == atom.Font, a.Key == "text" && n.DataAtom == atom.Body, a.Key == "fill" && n.Namespace == "svg":
			if c, ok := attributeColor(a.Val); ok {
				l.color = c
			}
		}
	}
	if n.DataAtom == atom.A && s.get("color") == "" {
		if _, ok := attr(n, "href"); ok {
			l.color = blue
		}
	}
	if n.DataAtom == atom.Mark && s.get("background-color") == "" {
		l.back, l.color = color{255, 255, 0, 1}, black
	}
	switch n.DataAtom {
	case atom.Small, atom.Sub, atom.Sup:
		l.size, l.sizeWhy = l.size/1.2, "font made small by many <"+n.Data+">"
	case atom.Font:
		// From 1 to 7, or relative to 3; none of them is too small.
		if v := value(n, "size"); v != "" {
			if _, err := strconv.Atoi(v); err == nil {
				l.size = 16
			}
		}
	}
}

// apply applies the style of an element to the look it inherited.
func (l *look) apply(s style) {
	if len(s) == 0 {
		return
	}
	l.applyFont(s)
	l.applyColors(s)
	switch v := s.get("visibility"); v {
	case "hidden", "collapse":
		l.unseen = s.why("visibility")
	case "visible", "initial":
		l.unseen = ""
	}
	if indent, ok := length(s.get("text-indent"), widthOfPage(s.get("text-indent"), l.size)); ok {
		if l.indent = ""; indent <= -200 || indent >= 800 {
			l.indent = s.why("text-indent")
		}
	}
	if bidi := s.get("unicode-bidi"); strings.HasSuffix(bidi, "override") && s.get("direction") == "rtl" {
		l.doubt = "shown from right to left (" + s.why("unicode-bidi") + "): it reads differently"
	}
	if s.get("mso-hide") == "all" {
		l.doubt = s.why("mso-hide") + ", not shown by Outlook"
	}
	if property := s.strange(l); property != "" {
		l.doubt = s.why(property) + ", which may hide it"
	}
	if why := s.box(l); why != "" && l.gone == "" {
		l.gone = why
	}
}

func (l *look) applyFont(s style) {
	defer l.applyLine(s)
	v := s.get("font-size")
	if v == "" {
		return
	}
	if size, ok := sizeKeyword(v, l.size); ok {
		l.size = size
	} else if size, ok := length(v, l.size); ok {
		l.size = size
	} else {
		return
	}
	l.sizeWhy = s.why("font-size")
}

// applyLine looks at the height of a line; a number is of the font.
func (l *look) applyLine(s style) {
	v := s.get("line-height")
	if v == "" {
		return
	}
	n, ok := length(v, l.size)
	if _, err := strconv.ParseFloat(v, 64); err == nil {
		n *= l.size
	}
	if l.line = ""; ok && n < l.size/4 {
		l.line = s.why("line-height")
	}
}

func (l *look) applyColors(s style) {
	for _, property := range []string{"color", "-webkit-text-fill-color"} {
		if c, ok := parseColor(s.get(property)); ok {
			l.color = c
		}
	}
	c, ok := parseColor(s.get("background-color"))
	if s.get("background-color") == "currentcolor" {
		c, ok = l.color, true
	}
	if ok {
		l.back = c.over(l.back)
		if c.alpha == 1 {
			l.picture = false
		}
	}
	if v := s.get("background-image"); isPicture(v) {
		if c, ok := plainGradient(v); ok {
			l.back = c.over(l.back)
		} else {
			l.picture = true
		}
	}
}

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

// faint is why text of this look can hardly be told from what is behind it.
func (l look) faint() string {
	text := l.color
	text.alpha *= min(max(l.opacity, 0), 1)
	seen := text.over(l.back)
	if !seen.near(l.back) {
		return ""
	}
	why := fmt.Sprintf("text of color %s on %s", seen, l.back)
	if text.alpha <= 0.05 {
		why = "transparent text"
	}
	if l.picture {
		why += ", until a background picture is loaded"
	}
	return why
}
