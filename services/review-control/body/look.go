package body

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

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
	color, back color
	picture     bool // a picture lies under the text
}

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

// tells lists the properties that say whether text is seen.
func tells(property string) bool {
	switch property {
	case "display", "visibility", "opacity", "content-visibility", "mso-hide",
		"font-size", "font", "color", "-webkit-text-fill-color", "background-color", "background", "background-image",
		"width", "height", "max-width", "max-height", "overflow", "overflow-x", "overflow-y",
		"position", "left", "right", "top", "bottom", "text-indent", "margin-left", "margin-top", "margin-right", "margin",
		"clip", "clip-path", "transform", "scale", "zoom", "filter", "direction", "unicode-bidi":
		return true
	}
	return false
}

// shorthands that set another property of the list, or unset it.
func (s style) set(d declaration, from string) {
	v := styleValue{d.value, from}
	switch d.property {
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
			}
		}
	case "margin":
		sides := strings.Fields(d.value)
		if len(sides) > 0 {
			s["margin-top"], s["margin-left"] = styleValue{sides[0], from}, styleValue{sides[len(sides)-1], from}
		}
		if len(sides) == 3 {
			s["margin-left"] = styleValue{sides[1], from}
		}
	default:
		s[d.property] = v
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
		if why := plain.why(); why != "" {
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

// why is the look's reason for not being shown, if it has one.
func (l look) why() string {
	switch {
	case l.gone != "":
		return l.gone
	case l.unseen != "":
		return l.unseen
	case l.indent != "":
		return l.indent
	case l.size <= 1:
		return l.sizeWhy
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
			if c, ok := parseColor(strings.ToLower(a.Val)); ok {
				l.back, l.picture = c.over(l.back), false
			}
		case a.Key == "background" && a.Val != "":
			l.picture = true
		case a.Key == "color" && n.DataAtom == atom.Font, a.Key == "text" && n.DataAtom == atom.Body, a.Key == "fill" && n.Namespace == "svg":
			if c, ok := parseColor(strings.ToLower(a.Val)); ok {
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
		if l.indent = ""; indent <= -200 || indent >= 2000 {
			l.indent = s.why("text-indent")
		}
	}
	if bidi := s.get("unicode-bidi"); strings.HasSuffix(bidi, "override") && s.get("direction") == "rtl" {
		l.doubt = "shown from right to left (" + s.why("unicode-bidi") + "): it reads differently"
	}
	if s.get("mso-hide") == "all" {
		l.doubt = s.why("mso-hide") + ", not shown by Outlook"
	}
	for _, property := range []string{"display", "visibility", "opacity", "font-size", "color", "height", "max-height", "text-indent"} {
		if computed(s.get(property)) {
			l.doubt = s.why(property) + ", which may hide it"
		}
	}
	if why := s.box(l); why != "" && l.gone == "" {
		l.gone = why
	}
}

func (l *look) applyFont(s style) {
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

func (l *look) applyColors(s style) {
	if c, ok := parseColor(s.get("background-color")); ok {
		l.back = c.over(l.back)
		if c.alpha == 1 {
			l.picture = false
		}
	}
	if isPicture(s.get("background-image")) {
		l.picture = true
	}
	for _, property := range []string{"color", "-webkit-text-fill-color"} {
		if c, ok := parseColor(s.get(property)); ok {
			l.color = c
		}
	}
}

// computed tells that a value is not known before the mail is laid out.
func computed(v string) bool {
	if !strings.Contains(v, "(") {
		return false
	}
	for _, function := range []string{"var(", "min(", "max(", "clamp(", "env(", "attr("} {
		if strings.Contains(v, function) {
			return true
		}
	}
	_, ok := length(v, 16)
	return strings.Contains(v, "calc(") && !ok
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
	if s.get("display") == "none" {
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
			if n, ok := length(s.get(side), l.size); ok && n <= 1 && !strings.HasSuffix(s.get(side), "%") {
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
		return ok && (n <= -500 || n >= 5000)
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
		n, ok := length(v, 1)
		return ok && n <= 0.01
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
				if n, err := strconv.ParseFloat(part, 64); err == nil && n > -0.01 && n < 0.01 {
					return true
				}
			case strings.HasPrefix(name, "translate"):
				if n, ok := length(part, 16); ok && (n <= -500 || n >= 5000) {
					return true
				}
			}
		}
	}
	return false
}

// faint is why text of this look can hardly be told from what is behind it.
func (l look) faint() string {
	seen := l.color.over(l.back)
	if !seen.near(l.back) {
		return ""
	}
	why := fmt.Sprintf("text of color %s on %s", seen, l.back)
	if l.color.alpha <= 0.05 {
		why = "transparent text"
	}
	if l.picture {
		why += ", until a background picture is loaded"
	}
	return why
}
