// Package markup decides what of a text from elsewhere stays: of HTML the elements, attributes,
// CSS properties and values that a policy allows, of any text the characters that can be seen.
// What stays can neither hide nor move text, nor read differently in another program: whoever
// has seen it has seen all of it. What was taken out is listed. It refuses to guess what
// markup might do: what it does not know goes.
//
// Sources: HTML (WHATWG) 13.2 for the tree, CSS Syntax 3 for declarations, RFC 3986 and UTS 46
// for addresses, UAX 9 and UTS 51 for characters.
package markup

import (
	"strings"

	"golang.org/x/net/html"

	"hub.internal/pkg/text"
)

// Removed is one kind of thing that was taken out of a text.
type Removed struct {
	// What names it: "<style>", "attribute onclick", "style display", "link", "picture".
	What string `json:"what" jsonschema:"What was taken out: an element, an attribute, a CSS property, a link, a picture, a kind of character"`
	// Count is how often.
	Count int `json:"count" jsonschema:"How often"`
	// Example is the first one, in one line of at most 120 characters.
	Example string `json:"example" jsonschema:"The first one"`
}

// Policy says what stays of an HTML text. It may be used by many at once.
type Policy struct {
	elements map[string]bool
	// mail lets styles and pictures from elsewhere stay, which a page of Hub's own has not.
	mail bool
	// size is that of the font around the text, in CSS pixels.
	size float64
}

// Sizes of the font around what stays, in CSS pixels.
const (
	// MailFontSize is that around what Mail lets stay.
	MailFontSize = 15
	pageFontSize = 16
)

// Mail is what stays in a mail's body: every element and CSS property that can, with values that are bounded; links to the web, to
// mailboxes and telephones; pictures of http and https, which nobody sees before they are fetched, and those that the text carries
// itself (PNG, JPEG and GIF that stand still).
func Mail() *Policy {
	p := &Policy{elements: map[string]bool{}, mail: true, size: MailFontSize}
	for name := range elements {
		p.elements[name] = true
	}
	return p
}

// Page is what stays in a page of Hub's own: these elements, without styles; links as in a mail, and to paths of the site; pictures
// that the text carries itself. The page around has to keep pictures, tables and preformatted text within the window. Page panics at
// an element that cannot stay: that is a programming error.
func Page(names ...string) *Policy {
	for _, name := range names {
		if _, known := elements[name]; !known {
			panic("markup: no element " + name + " can stay")
		}
	}
	return &Policy{elements: setOf(names...), size: pageFontSize}
}

// address judges where a link leads.
func (p *Policy) address(href string) (string, bool) {
	if !p.mail {
		if to, ok := LocalAddress(href); ok {
			return to, true
		}
	}
	return Address(href)
}

// rounds bounds how often a text is cleaned until nothing changes. Two do for all but markup
// that browsers' rules for tables and links turn inside out.
const rounds = 8

// Clean returns what stays of an HTML text, as a fragment for the body of a page in standards
// mode, and what was taken out, in the order of appearance. It takes any text. The fragment is
// its own: cleaned again it stays as it is, with nothing taken out, so that what was judged is the
// tree that a browser makes of these very bytes. Lines end with \n.
//
// Markup that is nested or repeated beyond what mail programs lay out alike is taken out whole,
// and the text stays. The time is linear in the length.
func (p *Policy) Clean(text string) (string, []Removed) { return p.clean(text, nil) }

// Redraw is Clean, with each picture that the text carries made anew: one that cannot be is taken out. WebP is taken too.
func (p *Policy) Redraw(text string, redraw Redraw) (string, []Removed) {
	return p.clean(text, &redrawn{redraw, map[string]string{}})
}

// clean is Clean; pictures may be nil.
func (p *Policy) clean(text string, pictures *redrawn) (string, []Removed) {
	l := &removals{}
	text = newlines.Replace(strings.ToValidUTF8(text, "\uFFFD"))
	for range rounds {
		root, ok := treeOf(text)
		if !ok {
			break
		}
		c := &cleaner{p: p, removals: l, redrawn: pictures}
		c.inside(root, place{size: p.size})
		clean := strings.Trim(c.out.String(), space)
		if clean == text {
			return clean, l.list
		}
		text = clean
	}
	l.note("markup", "too much of it, or too deep, to look alike everywhere; the text stays")
	return p.plain(text, l), l.list
}

const space = " \t\n\f\r"

// newlines makes one kind of line break of all three, as HTML's parser does before anything else.
var newlines = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// plain is the text of HTML whose tree is not made: without any markup of its own.
func (p *Policy) plain(text string, l *removals) string {
	var b strings.Builder
	skip := ""
	tokens := html.NewTokenizer(strings.NewReader(text))
	for {
		kind := tokens.Next()
		if kind == html.ErrorToken {
			break
		}
		switch token := tokens.Token(); {
		case kind == html.StartTagToken && droppedElements[token.Data] && skip == "":
			skip = token.Data
		case kind == html.EndTagToken && token.Data == skip:
			skip = ""
		case kind == html.TextToken && skip == "":
			b.WriteString(visible(token.Data, l))
		case kind != html.TextToken && skip == "" && b.Len() > 0 && !strings.HasSuffix(b.String(), " "):
			b.WriteByte(' ')
		}
	}
	clean := strings.Trim(escapeText(b.String()), space)
	if clean == "" || !p.elements["p"] || !p.mail {
		return strings.Join(strings.Fields(clean), " ")
	}
	return `<p style="white-space:pre-wrap">` + clean + `</p>`
}

// Text returns what stays of plain text: no characters without a shape where they do nothing for
// those beside them, none that turn the direction of others, no controls but tab and line
// break. Lines end with \n.
func Text(text string) (string, []Removed) {
	l := &removals{}
	clean := visible(newlines.Replace(strings.ToValidUTF8(text, "\uFFFD")), l)
	return clean, l.list
}

// Merge adds up what was taken out of several texts.
func Merge(lists ...[]Removed) []Removed {
	var l removals
	for _, list := range lists {
		for _, r := range list {
			l.add(r.What, r.Example, r.Count)
		}
	}
	return l.list
}

// maxKinds bounds a list: names can be made up.
const maxKinds = 40

// removals adds up what is taken out.
type removals struct {
	list []Removed
	at   map[string]int
}

// note tells of one thing that was taken out.
func (l *removals) note(what, example string) { l.add(what, example, 1) }

// add tells of n things of one kind. Of more kinds than maxKinds the rest is one.
func (l *removals) add(what, example string, n int) {
	const others = "something else"
	if l.at == nil {
		l.at = map[string]int{}
	}
	i, known := l.at[what]
	if !known && len(l.list) >= maxKinds-1 {
		what = others
		i, known = l.at[what]
	}
	if !known {
		i = len(l.list)
		l.at[what] = i
		l.list = append(l.list, Removed{What: shorten(what, 60), Example: shorten(example, 120)})
	}
	l.list[i].Count += n
}

// shorten is a text in one line of at most so many characters; what cannot be seen is spelled out.
func shorten(s string, most int) string {
	return text.Shorten(text.OneLine(spellOut(strings.ToValidUTF8(text.HeadBytes(s, 8*most), ""))), most)
}
