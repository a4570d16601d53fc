package output

import (
	"encoding/json"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"hub.internal/pkg/jsontree"
)

// value is valid JSON as it was written. A map would forget the order of members, and a float64 the digits of numbers.
type value jsontext.Value

// null is a cell without a value.
var null = value("null")

// kind is the first character of the JSON: { [ " n t f, and 0 for each number.
// It is 0 for a value that is not there.
func (v value) kind() jsontext.Kind { return jsontext.Value(v).Kind() }

// members are those of an object in their order, and none of anything else.
func (v value) members() []jsontree.Member {
	members, _ := jsontree.Members(v) // anything but an object has none
	return members
}

// member returns the first member of an object with the name. Without one its kind is 0.
func (v value) member(name string) value {
	for _, m := range v.members() {
		if m.Name == name {
			return value(m.Value)
		}
	}
	return nil
}

// items are those of a list, and none of anything else.
func (v value) items() []value {
	var items []value
	if v.kind() == '[' {
		var raw []json.RawMessage
		_ = json.Unmarshal(v, &raw) // it was valid before
		for _, item := range raw {
			items = append(items, value(item))
		}
	}
	return items
}

// isTable tells whether the value is a list of objects.
// An empty list is none: nothing tells what it is a list of.
func (v value) isTable() bool {
	items := v.items()
	for _, item := range items {
		if item.kind() != '{' {
			return false
		}
	}
	return len(items) > 0
}

// text is a text without its quotes, and the JSON of anything else.
func (v value) text() string {
	var text string
	if v.kind() == '"' && json.Unmarshal(v, &text) == nil {
		return text
	}
	return string(v)
}

// String is the value as a person reads it: a text as it is, a list of simple values with commas, anything else as JSON.
func (v value) String() string {
	items := v.items()
	texts := make([]string, len(items))
	for i, item := range items {
		// A comma in an item would read as two items, so such a list is JSON.
		texts[i] = item.text()
		if item.kind() == '{' || item.kind() == '[' || strings.Contains(texts[i], ",") {
			return v.json()
		}
	}
	if len(items) > 0 {
		return strings.Join(texts, ", ")
	}
	if v.kind() == '{' || v.kind() == '[' {
		return v.json()
	}
	return v.text()
}

// json is the value in one line of JSON, with spaces behind commas and colons.
func (v value) json() string {
	// The answer may break rules that a strict encoder holds to; it is shown as it is.
	line, err := jsontext.AppendFormat(nil, v, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true),
		jsontext.SpaceAfterComma(true), jsontext.SpaceAfterColon(true), jsontext.Multiline(false))
	if err != nil {
		return string(v)
	}
	return string(line)
}
