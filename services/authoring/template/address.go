package template

import (
	"fmt"
	"html"
	"regexp"
	"strings"
	"unicode"

	"hub.internal/pkg/markup"
)

// address is where in the address of a link or a picture a text ends, so that a value that follows can be written there as what it
// is meant for.
type address int

const (
	// nowhere is outside of any address.
	nowhere address = iota
	// beginning is where a value is an address, and stays as it is.
	beginning
	path
	// continued is behind a value, which may have had a query.
	continued
	inQuery
	// parameter is behind the = of a query: a value is all or a part of what one parameter says.
	parameter
	fragment
)

// linked ends with the begin of an address.
var linked = regexp.MustCompile(`(?i)(?:^|[\s"'/])(?:href|src)\s*=\s*["']?$`)

// mostAhead is how much of a text in front of an attribute's value is looked at for its name.
const mostAhead = 64

// after is where a text ends that begins at a and ends at p, in the value of an attribute that begins at value, if in any.
func (a address) after(text string, p placement, value int) address {
	switch {
	case p < beforeValue:
		return nowhere
	case linked.MatchString(text[max(0, value-mostAhead):value]):
		a = beginning
	case value > 0, a == nowhere:
		return nowhere
	}
	for _, c := range html.UnescapeString(text[value:]) {
		switch {
		case a == beginning && c <= ' ':
		case c == '#':
			a = fragment
		case a != fragment && (c == '?' && a < inQuery || c == '&' && a >= continued):
			a = inQuery
		case a == inQuery && c == '=':
			a = parameter
		case a == beginning:
			a = path
		}
	}
	return a
}

// afterValue is where a value ends that begins at a.
func (a address) afterValue() address {
	if a == beginning || a == path {
		return continued
	}
	return a
}

// encode writes a value as RFC 3986 asks: a parameter's has nothing that ends it, others keep all that an address can have. Letters
// beyond ASCII stay, as people read them, and so does what is encoded already.
func (a address) encode(value string) string {
	if a <= beginning {
		return value
	}
	var b strings.Builder
	for i := range len(value) {
		c := value[i]
		stays := c > ' ' && c != 0x7f && strings.IndexByte("\"'<>\\^`{|}", c) < 0
		if a == parameter {
			stays = stays && strings.IndexByte("#&+;", c) < 0 &&
				(c != '%' || i+2 < len(value) && isHex(value[i+1]) && isHex(value[i+2]))
		}
		if stays {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// isHex tells a hexadecimal digit.
func isHex(c byte) bool { return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f' }

// mostUsual is how long an ordinary value in an address is, in bytes.
const mostUsual = 1000

// Usual tells that the values are such that the text for them loses what it loses for any others of which that is told: in a text they
// have no invisible characters, an address that they begin is one of the web, and elsewhere in one they are of letters and digits. In
// another attribute none is usual.
func (t Template) Usual(v Values) bool {
	for _, p := range t.parts {
		if p.placeholder == "" {
			continue
		}
		value, err := v.value(p.placeholder)
		if _, removed := markup.Text(value); err != nil || len(removed) > 0 {
			return false
		}
		if !t.HTML || p.at == inText {
			continue
		}
		if p.in == nowhere || len(value) > mostUsual {
			return false
		}
		if to, ok := markup.Address(value); p.in == beginning && (!ok || !strings.HasPrefix(to, "http")) {
			return false
		}
		isOdd := func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '-' }
		if p.in > beginning && strings.ContainsFunc(value, isOdd) {
			return false
		}
	}
	return true
}
