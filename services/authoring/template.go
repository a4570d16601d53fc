package authoring

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"hub.internal/pkg/schema"
)

// Template is a text with placeholders: {{toName}}, {{toEmail}} and {{context.KEY}}, written
// exactly so. A lone }} is text, as in a style sheet.
type Template struct {
	parts []part
	// HTML tells that the text is HTML, so values are written into it as text is written
	// into HTML. It is the template that decides: a value cannot turn text into HTML.
	HTML bool
}

// part is a piece of text, or the name of a placeholder and where in HTML it stands.
type part struct {
	text, placeholder string
	at                placement
}

const (
	toName        = "toName"
	toEmail       = "toEmail"
	contextPrefix = "context."
)

// element finds a tag, comment or doctype that a mail in HTML is made of. Whatever is
// not found here is taken for plain text and escaped, which is the safe side.
var element = regexp.MustCompile(`(?i)<(?:!--|!doctype|/?(?:` +
	`a|abbr|article|b|blockquote|body|br|center|code|div|em|font|footer|h[1-6]|head|header|hr|html|i|img|li|main|meta|ol|p|pre|` +
	`s|section|small|span|strong|style|sub|sup|table|tbody|td|tfoot|th|thead|title|tr|u|ul)(?:[\s/][^<>]*)?>)`)

// ParseTemplate reads a template. The error says what is wrong with a placeholder.
func ParseTemplate(text string) (Template, error) {
	t := Template{HTML: element.MatchString(text)}
	at := inText
	for text != "" {
		literal, rest, found := strings.Cut(text, "{{")
		at = at.after(literal)
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
		key, isContext := strings.CutPrefix(name, contextPrefix)
		if name != toName && name != toEmail && (!isContext || key == "" || strings.ContainsAny(key, "{}") || strings.ContainsFunc(key,
			schema.Unprintable)) {
			return Template{}, fmt.Errorf("has the placeholder %s; there are {{toName}}, {{toEmail}} and {{context.KEY}}, without blanks",
				shown(name))
		}
		t.parts = append(t.parts, part{placeholder: name, at: at})
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

// shown is a placeholder in a message, cut when it is long.
func shown(name string) string {
	if r := []rune(name); len(r) > 60 {
		name = string(r[:60]) + "…"
	}
	return "{{" + name + "}}"
}

// values are what the placeholders of one target stand for.
type values struct {
	toName, toEmail string
	context         []byte

	members map[string]jsontext.Value // of context, read at the first need
}

// of returns a placeholder's value; the error says why it has none.
func (v *values) of(placeholder string) (string, error) {
	switch placeholder {
	case toEmail:
		return v.toEmail, nil
	case toName:
		if v.toName == "" {
			return "", fmt.Errorf("has no value for {{toName}}")
		}
		return v.toName, nil
	}
	if v.members == nil {
		v.members = map[string]jsontext.Value{}
		if v.context != nil {
			err := members(decoder(v.context), v, func(v *values, name string, value jsontext.Value) error {
				v.members[name] = value
				return nil
			})
			if err != nil {
				return "", fmt.Errorf("has a context that cannot be read")
			}
		}
	}
	raw, there := v.members[strings.TrimPrefix(placeholder, contextPrefix)]
	switch {
	case !there, string(raw) == "null":
		return "", fmt.Errorf("has no value for %s", shown(placeholder))
	case raw[0] == '{', raw[0] == '[':
		return "", fmt.Errorf("has a list or an object for %s, not a text, number or boolean", shown(placeholder))
	case raw[0] != '"':
		return string(raw), nil // as it is written: 1.50 stays 1.50
	}
	var s string
	if err := text(raw, &s); err != nil {
		return "", fmt.Errorf("has a value for %s that cannot be read", shown(placeholder))
	}
	return s, nil
}

// pieces calls yield with each piece of the text that the template becomes for v, and
// missing with each placeholder that has no value.
func (t Template) pieces(v *values, yield func(piece string, isValue bool), missing func(error)) {
	for _, p := range t.parts {
		if p.placeholder == "" {
			yield(p.text, false)
			continue
		}
		value, err := v.of(p.placeholder)
		if err != nil {
			missing(err)
			continue
		}
		if t.HTML {
			value = p.at.escape(value)
		}
		yield(value, true)
	}
}

// render is the text that the template becomes for v.
func (t Template) render(v *values) (string, error) {
	var b strings.Builder
	var wrong error
	t.pieces(v, func(piece string, _ bool) { b.WriteString(piece) }, func(err error) { wrong = err })
	return b.String(), wrong
}
