// Package evidence makes JSON that nobody has agreed on fit for a page: in its own order, as deep and
// as much of it as people can read. It refuses to take any of it for markup, and to fail on any input.
package evidence

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	// maxDepth is how deep evidence is shown as a table; what lies deeper is shown as JSON.
	maxDepth = 12
	// foldedText and foldedMembers are what is shown of a value before it is folded.
	foldedText    = 400
	foldedMembers = 12
)

// Value is a JSON value as a page shows it: never as HTML, and with its kind to be seen.
type Value struct {
	// Kind is "object", "list", "text", "moment", "number", "bool", "null" or "raw".
	Kind    string
	Text    string
	Members []Member
	// At is a moment that the text says, with its zone or as Hub's tools answer those of the source: without one, of UTC.
	At time.Time
}

// Member is a property of an object, or an entry of a list by its number.
type Member struct {
	Name  string
	Value Value
}

// Label is the name as people read it: brand_id and brandId are "Brand id". What is no such name is its own label.
func (m Member) Label() string {
	if !isName.MatchString(m.Name) {
		return m.Name
	}
	words := strings.Fields(strings.ReplaceAll(betweenWords.ReplaceAllString(m.Name, "$1 $2"), "_", " "))
	for i, word := range words {
		if word != strings.ToUpper(word) {
			words[i] = strings.ToLower(word)
		}
	}
	label := strings.Join(words, " ")
	return strings.ToUpper(label[:1]) + label[1:]
}

var (
	isName       = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)*$`)
	betweenWords = regexp.MustCompile(`([a-z0-9])([A-Z])`)
	ofID         = regexp.MustCompile(`(?i)(?:^| )ids?$`)
)

// isID tells that the member names something by its id, which says little to people.
func (m Member) isID() bool { return m.Value.Kind != "object" && ofID.MatchString(m.Label()) }

// Told are the members that say something to people. IDs are those that name something by its id, and Without those that have no
// value.
func (v Value) Told() []Member {
	return v.those(func(m Member) bool { return m.Value.Kind != "null" && !m.isID() })
}

// IDs are the members that name something by its id.
func (v Value) IDs() []Member {
	return v.those(func(m Member) bool { return m.Value.Kind != "null" && m.isID() })
}

// Without are the members that have no value.
func (v Value) Without() []Member {
	return v.those(func(m Member) bool { return m.Value.Kind == "null" })
}

func (v Value) those(are func(Member) bool) (list []Member) {
	for _, m := range v.Members {
		if are(m) {
			list = append(list, m)
		}
	}
	return list
}

// Take takes the members out of an object that are of some names, and returns them.
func (v *Value) Take(is func(name string) bool) []Member {
	if v.Kind != "object" {
		return nil
	}
	taken := v.those(func(m Member) bool { return is(m.Name) })
	v.Members = v.those(func(m Member) bool { return !is(m.Name) })
	return taken
}

// Long tells that the value is folded until a reader opens it.
func (v Value) Long() bool {
	return len(v.Members) > foldedMembers || utf8.RuneCountInString(v.Text) > foldedText
}

// Start is the first part of a long text.
func (v Value) Start() string {
	return string([]rune(v.Text)[:min(foldedText/4, utf8.RuneCountInString(v.Text))])
}

// Empty tells that there is nothing to show.
func (v Value) Empty() bool {
	return v.Kind == "" || v.Kind == "null" || (v.Kind == "object" || v.Kind == "list") && len(v.Members) == 0
}

// Read reads JSON in its own order, up to so many values; cut tells that there are more.
// Nothing at all is an empty value.
func Read(raw json.RawMessage, most int) (v Value, cut bool) {
	if len(bytes.TrimSpace(raw)) == 0 {
		return Value{}, false
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	e := reader{d, most}
	v, err := e.value(0)
	if err != nil && !errors.Is(err, errCut) {
		return Value{Kind: "raw", Text: string(raw)}, false
	}
	return v, err != nil
}

// zoneless is a moment as Hub's tools answer those of the source.
const zoneless = "2006-01-02T15:04:05"

// errCut ends the reading of evidence that is larger than a page shows.
var errCut = errors.New("there is more")

// reader reads evidence, and counts how many values it may still read.
type reader struct {
	*json.Decoder
	left int
}

// value reads the next value. What was read before an error is returned with it.
func (e *reader) value(depth int) (Value, error) {
	if e.left--; e.left < 0 {
		return Value{Kind: "raw", Text: "…"}, errCut
	}
	if depth > maxDepth {
		var raw json.RawMessage
		err := e.Decode(&raw)
		return Value{Kind: "raw", Text: string(raw)}, err
	}
	token, err := e.Token()
	if err != nil {
		return Value{}, err
	}
	switch t := token.(type) {
	case json.Delim:
		if t == '{' {
			return e.members("object", depth)
		}
		return e.members("list", depth)
	case string:
		for _, layout := range []string{time.RFC3339, zoneless} {
			if at, err := time.Parse(layout, t); err == nil {
				return Value{Kind: "moment", Text: t, At: at}, nil
			}
		}
		return Value{Kind: "text", Text: t}, nil
	case json.Number:
		return Value{Kind: "number", Text: t.String()}, nil
	case bool:
		if t {
			return Value{Kind: "bool", Text: "true"}, nil
		}
		return Value{Kind: "bool", Text: "false"}, nil
	}
	return Value{Kind: "null", Text: "null"}, nil
}

// members reads an object or a list to its end. With an error it returns what was read before.
func (e *reader) members(kind string, depth int) (Value, error) {
	v := Value{Kind: kind}
	for e.More() {
		m := Member{Name: ""}
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
