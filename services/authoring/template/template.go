// Package template reads and renders the texts of drafts: {{toName}}, {{toEmail}} and {{context.KEY}} stand for values of a target,
// and a value that is written into HTML is text there, wherever it stands, or a part of a link's address. It refuses to know drafts
// and targets.
package template

import (
	"fmt"
	"html"
	"iter"
	"math"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"hub.internal/pkg/schema"
	"hub.internal/pkg/text"
)

// Template is a text with placeholders: {{toName}}, {{toEmail}} and {{context.KEY}}, written
// exactly so. A lone }} is text, as in a style sheet.
type Template struct {
	parts []part
	// HTML tells that the text is HTML, so values are written into it as text is written
	// into HTML. It is the template that decides: a value cannot turn text into HTML.
	HTML bool
}

// IsEmpty tells whether there is nothing in the template.
func (t Template) IsEmpty() bool { return len(t.parts) == 0 }

// part is a piece of text, or the name of a placeholder and where in HTML it stands.
type part struct {
	text, placeholder string
	at                placement
	in                address
}

const (
	toName  = "toName"
	toEmail = "toEmail"
	// ContextPrefix begins the name of a placeholder that stands for a member of a target's context.
	ContextPrefix = "context."
)

// element finds a tag, comment or doctype that a mail in HTML is made of. Whatever is
// not found here is taken for plain text and escaped, which is the safe side.
var element = regexp.MustCompile(`(?i)<(?:!--|!doctype|/?(?:` +
	`a|abbr|article|b|blockquote|body|br|center|code|div|em|font|footer|h[1-6]|head|header|hr|html|i|img|li|main|meta|ol|p|pre|` +
	`s|section|small|span|strong|style|sub|sup|table|tbody|td|tfoot|th|thead|title|tr|u|ul)(?:[\s/][^<>]*)?>)`)

// Parse reads a template. The error says what is wrong with a placeholder.
func Parse(text string) (Template, error) {
	t := Template{HTML: element.MatchString(text)}
	at, in := inText, nowhere
	for text != "" {
		literal, rest, found := strings.Cut(text, "{{")
		var value int
		at, value = at.after(literal)
		in = in.after(literal, at, value)
		if literal != "" {
			t.parts = append(t.parts, part{text: literal})
		}
		if !found {
			break
		}
		name, after, closed := strings.Cut(rest, "}}")
		if !closed {
			return Template{}, fmt.Errorf("has a {{ without }}")
		}
		key, isContext := strings.CutPrefix(name, ContextPrefix)
		if name != toName && name != toEmail && (!isContext || key == "" || strings.ContainsAny(key, "{}") || strings.ContainsFunc(key,
			schema.Unprintable)) {
			return Template{}, fmt.Errorf("has the placeholder %s; there are {{toName}}, {{toEmail}} and {{context.KEY}}, without blanks",
				excerpt(name))
		}
		t.parts = append(t.parts, part{placeholder: name, at: at, in: in})
		in = in.afterValue()
		switch at { // a value can only go on with what it stands in
		case afterLess:
			at = inTag
		case beforeValue:
			at = unquoted
		}
		text = after
	}
	return t, nil
}

// excerpt is a placeholder in a message, cut when it is long.
func excerpt(name string) string {
	return "{{" + text.Shown(name, 60) + "}}"
}

// Values are what the placeholders of one target stand for.
type Values struct {
	ToName, ToEmail string
	// Context returns the members of the target's context; it is asked for each placeholder of one.
	Context func() (map[string]jsontext.Value, error)
}

// value returns a placeholder's value; the error says why it has none.
func (v Values) value(placeholder string) (string, error) {
	switch placeholder {
	case toEmail:
		return v.ToEmail, nil
	case toName:
		if v.ToName == "" {
			return "", fmt.Errorf("has no value for {{toName}}: give it a toName")
		}
		return v.ToName, nil
	}
	members, err := v.Context()
	if err != nil {
		return "", fmt.Errorf("has a context that cannot be read")
	}
	raw, there := members[strings.TrimPrefix(placeholder, ContextPrefix)]
	switch {
	case !there, string(raw) == "null":
		return "", fmt.Errorf("has no value for %s: give its context the member", excerpt(placeholder))
	case raw[0] == '{', raw[0] == '[':
		return "", fmt.Errorf("has a list or an object for %s, not a text, number or boolean", excerpt(placeholder))
	case raw[0] != '"':
		return string(raw), nil // as it is written: 1.50 stays 1.50
	}
	text, err := jsontext.AppendUnquote(nil, raw)
	if err != nil {
		return "", fmt.Errorf("has a value for %s that cannot be read", excerpt(placeholder))
	}
	return string(text), nil
}

// Piece is a part of the text that a template becomes.
type Piece struct {
	Text string
	// IsValue tells that it stands in the place of a placeholder.
	IsValue bool
}

// Pieces are those of the text that the template becomes for v, each made when it is asked for: a value of megabytes may stand in
// thousands of places. The error is that of a placeholder without a value, and ends nothing.
func (t Template) Pieces(v Values) iter.Seq2[Piece, error] {
	return func(yield func(Piece, error) bool) {
		for _, p := range t.parts {
			piece, err := Piece{Text: p.text}, error(nil)
			if p.placeholder != "" {
				piece.IsValue = true
				if piece.Text, err = v.value(p.placeholder); err == nil && t.HTML {
					piece.Text = p.at.escape(p.in.encode(piece.Text))
				}
			}
			if !yield(piece, err) {
				return
			}
		}
	}
}

// Render returns the text that the template becomes for v. The error is that of a placeholder without a value, which is left out.
func (t Template) Render(v Values) (string, error) { return t.Head(v, math.MaxInt) }

// Head is Render up to the piece with which the text has at least so many bytes.
func (t Template) Head(v Values, bytes int) (string, error) {
	var b strings.Builder
	var wrong error
	for piece, err := range t.Pieces(v) {
		if err != nil {
			wrong = err
		} else if b.WriteString(piece.Text); b.Len() >= bytes {
			break
		}
	}
	return b.String(), wrong
}

// placement is where in HTML a text ends, so that a value that follows can be written there as
// text: the states of a tokenizer (WHATWG HTML 13.2.5) as far as they differ for a value.
type placement int

const (
	inText placement = iota
	afterLess
	inTag
	beforeValue
	unquoted
	inDouble
	inSingle
)

// after is where the text ends when it begins at p, and where in the text the value of an attribute begins that it ends in: 0 for one
// that has begun before it.
func (p placement) after(text string) (end placement, value int) {
	for i := range len(text) {
		c := text[i]
		blank := strings.IndexByte(" \t\n\f\r", c) >= 0
		switch p {
		case inText:
			if c == '<' {
				p = afterLess
			}
		case afterLess:
			switch {
			case strings.IndexByte("</!?-", c) >= 0: // what follows may still make a tag or a comment of it
			case c|0x20 >= 'a' && c|0x20 <= 'z':
				p = inTag
			default:
				p = inText
			}
		case inTag, beforeValue, unquoted:
			switch {
			case c == '>':
				p = inText
			case p == beforeValue && c == '"':
				p, value = inDouble, i+1
			case p == beforeValue && c == '\'':
				p, value = inSingle, i+1
			case p == inTag && c == '=':
				p, value = beforeValue, len(text)
			case p == beforeValue && !blank:
				p, value = unquoted, i
			case p == unquoted && blank:
				p = inTag
			}
		case inDouble:
			if c == '"' {
				p = inTag
			}
		case inSingle:
			if c == '\'' {
				p = inTag
			}
		}
	}
	return p, value
}

// escape writes a value as text where it stands, and nothing but text.
func (p placement) escape(value string) string {
	first := ""
	if p == afterLess && value != "" { // which would begin a tag or a comment
		r, size := utf8.DecodeRuneInString(value)
		first, value = fmt.Sprintf("&#%d;", r), value[size:]
	}
	value = html.EscapeString(value)
	if p != inText && p != inDouble && p != inSingle {
		value = bareEscapes.Replace(value)
	}
	return first + value
}

// bareEscapes keep a value that stands in a tag without quotes in one piece.
var bareEscapes = strings.NewReplacer(" ", "&#32;", "\t", "&#9;", "\n", "&#10;", "\f", "&#12;", "\r", "&#13;",
	"=", "&#61;", "`", "&#96;", "/", "&#47;")
