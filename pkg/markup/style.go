package markup

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tdewolff/parse/v2"
	"github.com/tdewolff/parse/v2/css"
)

// style gathers what stays of an element's style.
type style struct {
	*cleaner
	element element
	name    string
	// size is that of the element's font, and around that of the one around it, in CSS pixels.
	size, around float64
	list         []declaration
	// wide tells of a width in pixels among the attributes.
	wide bool
}

// declaration is a property with a value that stays.
type declaration struct{ property, value string }

// rawDeclaration is a declaration as it stands in the text.
type rawDeclaration struct {
	property, source string
	// value is nil when the text is none that a program has to understand.
	value []token
}

// token is a part of a value; text is in lower case.
type token struct {
	kind css.TokenType
	text string
}

// declarations reads the text of a style attribute. Of what CSS forgives nothing is read.
// Examples of what CSS forgives: an escape in a value (color:r\65 d), and a custom property (--x: red). Programs recover from such
// things in different ways, so a value of nil refuses the declaration.
func declarations(text string) (list []rawDeclaration) {
	lexer := css.NewLexer(parse.NewInputString(text))
	var now rawDeclaration
	begun, broken := false, false
	depth := 0
	end := func() {
		if now.property = strings.ToLower(now.property); broken {
			now.value = nil
		}
		if now.source = strings.TrimSpace(now.source); now.source != "" {
			list = append(list, now)
		}
		now, begun, broken = rawDeclaration{}, false, false
	}
	for {
		kind, b := lexer.Next()
		if kind == css.ErrorToken {
			end()
			return list
		}
		if kind == css.CommentToken {
			continue
		}
		if kind == css.SemicolonToken && depth == 0 {
			end()
			continue
		}
		// What is shown of it later is short, so 200 bytes are kept.
		now.source += string(b[:min(len(b), max(0, 200-len(now.source)))])
		switch kind {
		case css.LeftParenthesisToken, css.LeftBracketToken, css.LeftBraceToken, css.FunctionToken:
			depth++
		case css.RightParenthesisToken, css.RightBracketToken, css.RightBraceToken:
			depth = max(depth-1, 0)
		}
		switch {
		case !begun && kind == css.WhitespaceToken && now.property == "":
		case !begun && kind == css.IdentToken && now.property == "":
			now.property = string(b)
		case !begun && kind == css.CustomPropertyNameToken && now.property == "":
			now.property, broken = string(b), true
		case !begun && kind == css.ColonToken:
			begun = true
		case !begun && kind == css.WhitespaceToken:
		case !begun:
			broken = true
		case kind == css.WhitespaceToken:
		case len(now.value) >= maxTokens, strings.ContainsRune(string(b), '\\'):
			broken = true
		default:
			now.value = append(now.value, token{kind, strings.ToLower(string(b))})
		}
	}
}

// maxTokens bounds a value: the longest that stays is a list of fonts.
const maxTokens = 100

// read takes what stays of a style attribute.
// One that is too long is taken out whole, before anything of it is parsed.
func (s *style) read(text string) {
	if len(text) > maxStyle {
		s.note("attribute style", `style="`+text+`"`)
		return
	}
	list := declarations(text)
	// What em and line-height mean depends on the size of the font.
	sizes := func(d rawDeclaration) bool { return d.property == "font-size" || d.property == "font" }
	for _, first := range []bool{true, false} {
		for _, d := range list {
			if sizes(d) == first {
				s.take(d)
			}
		}
	}
}

// maxStyle bounds a style attribute in bytes.
const maxStyle = 16 << 10

// take judges a declaration by the rule of its property. A value that an element has from around it anyway goes without a word.
// !important is dropped: no other rule is there that it could win against.
func (s *style) take(d rawDeclaration) {
	rule := styles[d.property]
	important := []token{{css.DelimToken, "!"}, {css.IdentToken, "important"}}
	if n := len(d.value) - len(important); n >= 0 && slices.Equal(d.value[n:], important) {
		d.value = d.value[:n]
	}
	if len(d.value) == 1 && d.value[0].text == "inherit" && inherited[d.property] {
		if d.property == "color" { // which a link has of its own
			s.set("color", "inherit")
		}
		return
	}
	if rule == nil || !s.p.mail || len(d.value) == 0 || !rule(s, d.property, d.value) {
		name := d.property
		if name == "" {
			name = "without a property"
		}
		s.note("style "+name, d.source)
	}
}

// inherited are properties that an element has from what is around it.
var inherited = setOf("color", "font", "font-family", "font-size", "font-style", "font-weight", "letter-spacing", "line-height",
	"list-style", "list-style-type", "text-align", "text-transform", "white-space")

// set keeps a declaration in place of an earlier one of the property.
func (s *style) set(property, value string) bool {
	s.unset(property)
	s.list = append(s.list, declaration{property, value})
	return true
}

// unset forgets a declaration of the property.
func (s *style) unset(property string) {
	s.list = slices.DeleteFunc(s.list, func(d declaration) bool { return d.property == property })
}

// get is the value that is kept of a property; empty without one.
func (s *style) get(property string) string {
	for _, d := range s.list {
		if d.property == property {
			return d.value
		}
	}
	return ""
}

// attribute hears of an attribute that stays and that styles have to go with.
func (s *style) attribute(key, value string) {
	switch {
	case key == "size" && s.name == "font":
		n, _ := strconv.Atoi(value) // the form says so
		if value[0] == '+' || value[0] == '-' {
			n += 3
		}
		s.size = []float64{10, 13, 16, 18, 24, 32, 48}[min(max(n, 1), 7)-1]
	case key == "width":
		s.wide = !strings.HasSuffix(value, "%")
	}
}

// write is what stays, as the value of an attribute. Widths never exceed what is around, and lines of
// preformatted text break: nothing lies beside the window.
// The declarations are sorted by property, so the same style is the same bytes, which the rounds of Clean need to end.
func (s *style) write() string {
	if !s.p.mail {
		return "" // the page around says how all of it looks
	}
	fixed := strings.HasSuffix(s.get("width"), "px")
	switch s.element.kind {
	case picture:
		s.set("max-width", "100%")
		if s.wide || fixed {
			s.set("height", "auto")
		}
	case table:
		if s.wide || fixed {
			s.set("max-width", "100%")
		}
	}
	if s.name == "pre" {
		s.set("white-space", "pre-wrap")
	}
	s.together("margin")
	s.together("padding")
	slices.SortFunc(s.list, func(a, b declaration) int { return strings.Compare(a.property, b.property) })
	var b strings.Builder
	for i, d := range s.list {
		if i > 0 {
			b.WriteByte(';')
		}
		b.WriteString(d.property + ":" + d.value)
	}
	return b.String()
}

// together makes one declaration of those for all four sides.
// margin:0 8px for four declarations of a side each; where one side is missing they stay alone.
func (s *style) together(property string) {
	var all [4]string
	for i, side := range sideNames {
		if all[i] = s.get(property + side); all[i] == "" {
			return
		}
	}
	for _, side := range sideNames {
		s.unset(property + side)
	}
	if all[0] == all[2] && all[1] == all[3] && all[0] != all[1] {
		s.set(property, all[0]+" "+all[1])
		return
	}
	s.set(property, joined(all))
}

// length reads a length in CSS pixels, rounded to hundredths.
// A number without a unit is a length only when it is 0. Units that depend on the window (vw, vh) or on another font (ex, ch) are none.
func (s *style) length(t token) (px float64, ok bool) {
	units := map[string]float64{"px": 1, "pt": 4.0 / 3, "pc": 16, "in": 96, "cm": 96 / 2.54, "mm": 96 / 25.4, "em": s.size, "rem": 16}
	switch t.kind {
	case css.NumberToken:
		px, ok = number(t.text)
		ok = ok && px == 0
	case css.DimensionToken:
		digits := strings.TrimRight(t.text, "abcdefghijklmnopqrstuvwxyz")
		unit, known := units[t.text[len(digits):]]
		px, ok = number(digits)
		px, ok = math.Round(px*unit*100)/100, ok && known
	}
	return px, ok
}

// number reads a number without an exponent.
func number(text string) (float64, bool) {
	if strings.ContainsAny(text, "eE") {
		return 0, false
	}
	n, err := strconv.ParseFloat(text, 64)
	return n, err == nil
}

// bounded is a length between two bounds, as it stays.
func (s *style) bounded(t token, least, most float64) (string, bool) {
	px, ok := s.length(t)
	if !ok || px < least || px > most {
		return "", false
	}
	return inPixels(px), true
}

// inPixels is a length as it is written.
func inPixels(px float64) string {
	if px == 0 {
		return "0"
	}
	return strconv.FormatFloat(px, 'f', -1, 64) + "px"
}

// percentage is a percentage between two bounds, as it stays.
func percentage(t token, least, most float64) (string, bool) {
	digits, isOne := strings.CutSuffix(t.text, "%")
	n, ok := number(digits)
	return strconv.FormatFloat(n, 'f', -1, 64) + "%", isOne && ok && t.kind == css.PercentageToken && n >= least && n <= most
}

// color reads a colour: opaque, and of a form that every program knows.
func color(value []token) (Color, bool) {
	if len(value) == 1 {
		return ParseColor(value[0].text)
	}
	// rgb(1, 2, 3)
	if len(value) != 7 || value[0] != (token{css.FunctionToken, "rgb("}) || value[2].kind != css.CommaToken ||
		value[4].kind != css.CommaToken || value[6].kind != css.RightParenthesisToken {
		return Color{}, false
	}
	var parts [3]uint8
	for i := range parts {
		n, err := strconv.ParseUint(value[1+2*i].text, 10, 8)
		if err != nil {
			return Color{}, false
		}
		parts[i] = uint8(n)
	}
	return Color{parts[0], parts[1], parts[2]}, true
}
