package markup

import (
	"regexp"
	"strconv"
)

// layout is how an element is laid out: it says what styles mean for it.
type layout int

const (
	// inline stands in a line of text; block begins a line of its own. The kinds after these matter for widths, margins and alignment.
	inline layout = iota
	block
	list
	item
	table
	section
	row
	cell
	picture
	void
)

// element is what the package knows of one that can stay.
type element struct {
	kind layout
	// scale is the size of its font by that around it; 0 is 1.
	scale float64
	// attributes are those that it can have beside dir, lang and style, each with its form.
	attributes map[string]form
}

// form judges the value of an attribute and returns the one that stays.
type form func(value string) (string, bool)

// elements are all that can stay. None of them hides what is in it, puts text of its own into
// the page but the marks of lists, leaves its place, or is unknown to mail programs.
var elements = map[string]element{
	"a": {}, "b": {}, "cite": {}, "del": {}, "em": {}, "i": {}, "ins": {}, "s": {}, "span": {}, "strike": {}, "strong": {},
	"u": {}, "var": {},
	"code": {scale: monospaceScale}, "kbd": {scale: monospaceScale}, "samp": {scale: monospaceScale}, "tt": {scale: monospaceScale},
	"small": {scale: smallerScale}, "sub": {scale: smallerScale}, "sup": {scale: smallerScale},
	"font": {attributes: map[string]form{"color": colorForm, "face": familyForm, "size": matching(`^[+-]?[1-7]$`)}},

	"br": {kind: void}, "hr": {kind: void}, "wbr": {kind: void},
	"img": {kind: picture, attributes: map[string]form{"width": measure(1200), "height": measure(1200)}},

	"div": {kind: block, attributes: aligned}, "p": {kind: block, attributes: aligned}, "center": {kind: block},
	"blockquote": {kind: block},
	"pre":        {kind: block, scale: monospaceScale},
	"h1":         {kind: block, scale: 2, attributes: aligned}, "h2": {kind: block, scale: 1.5, attributes: aligned},
	"h3": {kind: block, scale: 1.17, attributes: aligned}, "h4": {kind: block, attributes: aligned},
	"h5": {kind: block, scale: .83, attributes: aligned}, "h6": {kind: block, scale: .67, attributes: aligned},
	"dl": {kind: block}, "dt": {kind: block}, "dd": {kind: block},
	"ul": {kind: list}, "ol": {kind: list, attributes: map[string]form{"start": matching(`^[0-9]{1,4}$`)}}, "li": {kind: item},

	"table": {kind: table, attributes: map[string]form{"align": matching(`^center$`), "bgcolor": colorForm, "width": measure(1200),
		"border": matching(`^[0-9]$`), "cellpadding": matching(`^[0-9]{1,2}$`), "cellspacing": matching(`^[0-9]{1,2}$`)}},
	"tbody": {kind: section},
	"tr":    {kind: row, attributes: map[string]form{"align": horizontalAlign, "valign": verticalAlign, "bgcolor": colorForm}},
	"td":    {kind: cell, attributes: cellAttributes}, "th": {kind: cell, attributes: cellAttributes},
}

const (
	// monospaceScale is what browsers make of a size when the font becomes one of a typewriter.
	monospaceScale = 13.0 / 16
	smallerScale   = 1 / 1.2
)

var (
	// horizontalAlign is no align for pictures and tables: there it lets text flow around them.
	horizontalAlign = matching(`^(?i:left|right|center|justify)$`)
	verticalAlign   = matching(`^(?i:top|middle|bottom|baseline)$`)
	aligned         = map[string]form{"align": horizontalAlign}

	cellAttributes = map[string]form{
		"align": horizontalAlign, "valign": verticalAlign, "bgcolor": colorForm, "width": measure(1200), "height": measure(400),
		"colspan": matching(`^(?:[2-9]|1[0-9]|20)$`),
	}
)

// replacements are elements that programs know too differently, or that hide or move what is in them, by
// the one that they stay as.
var replacements = map[string]string{
	"address": "div", "article": "div", "aside": "div", "body": "div", "details": "div", "dialog": "div", "dir": "ul", "fieldset": "div",
	"figcaption": "div", "figure": "div", "footer": "div", "form": "div", "header": "div", "hgroup": "div", "html": "div", "legend": "div",
	"listing": "pre", "main": "div", "menu": "ul", "nav": "div", "optgroup": "div", "option": "div", "plaintext": "pre", "search": "div",
	"section": "div", "summary": "div", "tfoot": "tbody", "thead": "tbody", "xmp": "pre",
}

// droppedElements are the elements that go with all that is in them: it is no text, or one that nobody
// reads. Of every other element that does not stay its content does.
var droppedElements = setOf("applet", "audio", "base", "canvas", "datalist", "embed", "frame", "frameset", "iframe", "link", "math", "meta",
	"noembed", "noframes", "object", "param", "script", "source", "style", "svg", "template", "title", "track", "video")

// quietElements are the elements of which nothing is lost that a reader of the text could miss.
var quietElements = setOf("abbr", "acronym", "address", "article", "aside", "bdi", "body", "data", "dfn", "dir", "figcaption", "figure",
	"footer", "head", "header", "hgroup", "html", "label", "listing", "main", "menu", "nav", "nobr", "search", "section", "tbody",
	"thead", "time", "title", "wbr")

// idleAttributes are attributes that do nothing once styles and scripts are gone.
var idleAttributes = setOf("alt", "class", "dir", "href", "id", "lang", "name", "rel", "role", "src", "style", "summary", "tabindex",
	"target")

// setOf is a set of names.
func setOf(names ...string) map[string]bool {
	s := make(map[string]bool, len(names))
	for _, name := range names {
		s[name] = true
	}
	return s
}

// matching is the form of values that fit a pattern.
// The value stays as it is; who writes it makes it lower case.
func matching(pattern string) form {
	fits := regexp.MustCompile(pattern)
	return func(value string) (string, bool) { return value, fits.MatchString(value) }
}

// measurePattern is digits, which may have a fraction that is dropped, and px or %: "600", "600px", "50.5%".
var measurePattern = regexp.MustCompile(`^([0-9]{1,5})(?:\.[0-9]+)?(px|%)?$`)

// measure is the form of a width or height: so many pixels at most, or per cent up to 100.
func measure(most int) form {
	return func(value string) (string, bool) {
		m := measurePattern.FindStringSubmatch(value)
		if m == nil {
			return "", false
		}
		n, _ := strconv.Atoi(m[1]) // at most five digits
		if m[2] == "%" {
			return m[1] + "%", n >= 1 && n <= 100
		}
		return m[1], n <= most
	}
}

// colorForm is the form of a colour. Old HTML writes six digits without a #, too.
func colorForm(value string) (string, bool) {
	c, ok := ParseColor(value)
	if !ok && len(value) == 6 {
		c, ok = ParseColor("#" + value)
	}
	return c.String(), ok
}
