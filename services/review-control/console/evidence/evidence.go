package reviewcontrol

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"unicode/utf8"
)

const (
	// maxDepth is how deep evidence is shown as a table; what lies deeper is shown as JSON.
	maxDepth = 12
	// foldedText and foldedMembers are what is shown of a value before it is folded.
	foldedText    = 400
	foldedMembers = 12
)

// value is a JSON value as a page shows it: never as HTML, and with its kind to be seen.
type value struct {
	// Kind is "object", "list", "text", "number", "bool", "null" or "raw".
	Kind    string
	Text    string
	Members []member
}

// member is a property of an object, or an entry of a list by its number.
type member struct {
	Name  string
	Value value
}

// Long tells that the value is folded until a reader opens it.
func (v value) Long() bool {
	return len(v.Members) > foldedMembers || utf8.RuneCountInString(v.Text) > foldedText
}

// Start is the begin of a long text.
func (v value) Start() string {
	return string([]rune(v.Text)[:min(foldedText/4, utf8.RuneCountInString(v.Text))])
}

// Empty tells that there is nothing to show.
func (v value) Empty() bool {
	return v.Kind == "" || v.Kind == "null" || (v.Kind == "object" || v.Kind == "list") && len(v.Members) == 0
}

// evidence reads JSON in its own order, up to so many values; cut tells that there are more.
// Nothing at all is an empty value.
func evidence(raw json.RawMessage, most int) (v value, cut bool) {
	if len(bytes.TrimSpace(raw)) == 0 {
		return value{}, false
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	e := reader{d, most}
	v, err := e.value(0)
	if err != nil && !errors.Is(err, errCut) {
		return value{Kind: "raw", Text: string(raw)}, false
	}
	return v, err != nil
}

var errCut = errors.New("there is more")

type reader struct {
	*json.Decoder
	left int
}

// value reads the next value. What was read before an error is returned with it.
func (e *reader) value(depth int) (value, error) {
	if e.left--; e.left < 0 {
		return value{Kind: "raw", Text: "…"}, errCut
	}
	if depth > maxDepth {
		var raw json.RawMessage
		err := e.Decode(&raw)
		return value{Kind: "raw", Text: string(raw)}, err
	}
	token, err := e.Token()
	if err != nil {
		return value{}, err
	}
	switch t := token.(type) {
	case json.Delim:
		if t == '{' {
			return e.members("object", depth)
		}
		return e.members("list", depth)
	case string:
		return value{Kind: "text", Text: t}, nil
	case json.Number:
		return value{Kind: "number", Text: t.String()}, nil
	case bool:
		if t {
			return value{Kind: "bool", Text: "true"}, nil
		}
		return value{Kind: "bool", Text: "false"}, nil
	}
	return value{Kind: "null", Text: "null"}, nil
}

func (e *reader) members(kind string, depth int) (value, error) {
	v := value{Kind: kind}
	for e.More() {
		m := member{Name: ""}
		if kind == "object" {
			token, err := e.Token()
			if err != nil {
				return v, err
			}
			m.Name, _ = token.(string)
		}
		var err error
		m.Value, err = e.value(depth + 1)
		if err == nil || errors.Is(err, errCut) {
			v.Members = append(v.Members, m)
		}
		if err != nil {
			return v, err
		}
	}
	_, err := e.Token()
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return v, err
}

// begin is the begin of a text in at most so many bytes, of whole characters.
func begin(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return strings.ToValidUTF8(text[:most], "\ufffd")
}
