package body

import (
	"slices"
	"strings"

	"golang.org/x/net/html"
)

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
