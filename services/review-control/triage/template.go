package triage

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"regexp"
	"strings"
)

// Template is a text with the placeholders {{toName}}, {{toEmail}} and {{context.KEY}}.
type Template struct {
	// literals are what stands before, between and behind the placeholders.
	literals, placeholders []string
	// inTag tells of each placeholder whether it stands in a tag, where it may be a part of a link's address.
	inTag []bool
}

// ParseTemplate takes a template apart. It is false for one whose braces do not match.
func ParseTemplate(text string) (Template, bool) {
	var t Template
	inTag := false
	for {
		literal, rest, found := strings.Cut(text, "{{")
		if i := strings.LastIndexAny(literal, "<>"); i >= 0 {
			inTag = literal[i] == '<'
		}
		t.literals = append(t.literals, literal)
		if !found {
			return t, true
		}
		name, after, closed := strings.Cut(rest, "}}")
		if !closed {
			return Template{}, false
		}
		t.placeholders, t.inTag = append(t.placeholders, name), append(t.inTag, inTag)
		text = after
	}
}

// Placeholders lists the placeholders of the templates, each once, in the order in which they stand there.
func Placeholders(templates ...Template) []string {
	list, seen := []string{}, map[string]bool{}
	for _, t := range templates {
		for _, name := range t.placeholders {
			if !seen[name] {
				seen[name] = true
				list = append(list, strings.Clone(name)) // a part of the template would keep all of it
			}
		}
	}
	return list
}

// Values are what the placeholders of one target stand for.
type Values map[string]string

// ValuesOf are a target's values: its name and address, and the texts, numbers and booleans of its context.
func ValuesOf(toName, toEmail string, context json.RawMessage) Values {
	v := Values{"toName": toName, "toEmail": toEmail}
	var members map[string]json.RawMessage
	if json.Unmarshal(context, &members) != nil {
		return v
	}
	for name, raw := range members {
		raw = bytes.TrimSpace(raw)
		var text string
		switch {
		case len(raw) == 0, raw[0] == '{', raw[0] == '[', string(raw) == "null":
			continue
		case raw[0] != '"':
			text = string(raw)
		case json.Unmarshal(raw, &text) != nil:
			continue
		}
		v["context."+name] = text
	}
	return v
}

// Makes tells whether the text is what the template becomes for the values, and nothing else: in HTML each
// value has to stand there as text, and may in a tag be encoded for an address. So whoever reads the template and the
// values has read the text, whatever made it. The spans are where the values stand, each by its first byte and the one
// behind its last.
func (t Template) Makes(text string, v Values, isHTML bool) (spans [][2]int, made bool) {
	left := text
	for i, literal := range t.literals {
		rest, found := strings.CutPrefix(left, literal)
		if !found {
			return nil, false
		}
		left = rest
		if i == len(t.placeholders) {
			break
		}
		value, known := v[t.placeholders[i]]
		if !known {
			return nil, false
		}
		from := len(text) - len(left)
		if left, found = cutValue(left, value, isHTML, t.inTag[i]); !found {
			return nil, false
		}
		spans = append(spans, [2]int{from, len(text) - len(left)})
	}
	return spans, left == ""
}

// cutValue takes a value off the begin of a text. In HTML each of its characters may stand as its number, and those that mean
// something there have to be escaped. In a tag those that mean something in an address may stand as their byte.
func cutValue(text, value string, isHTML, inTag bool) (rest string, found bool) {
	if !isHTML {
		return strings.CutPrefix(text, value)
	}
	for i, r := range value {
		rest, found = text, false
		if inTag && r < 0x80 && !unreserved(r) && !escape.MatchString(value[i:]) {
			rest, found = strings.CutPrefix(text, fmt.Sprintf("%%%02X", r))
		}
		if !found {
			rest, found = strings.CutPrefix(text, fmt.Sprintf("&#%d;", r))
		}
		if !found {
			if rest, found = strings.CutPrefix(text, html.EscapeString(string(r))); !found {
				return "", false
			}
		}
		text = rest
	}
	return text, true
}

// escape is a byte that is encoded already.
var escape = regexp.MustCompile(`^%[0-9A-Fa-f]{2}`)

// unreserved tells a character of which RFC 3986 says that it stands as it is.
func unreserved(r rune) bool {
	return r|0x20 >= 'a' && r|0x20 <= 'z' || r >= '0' && r <= '9' || strings.ContainsRune("-._~", r)
}

// Outline are the parts of a template; all of a text that is none.
func Outline(text string) []Part {
	if t, ok := ParseTemplate(text); ok {
		return t.Parts()
	}
	return []Part{{Text: text}}
}
