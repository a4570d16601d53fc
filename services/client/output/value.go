package output

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
)

// value is JSON with the members of objects in their order.
type value struct {
	kind    byte // of the first character: { [ " and n t f or 0 for a number
	members []member
	items   []value
	text    string
}

type member struct {
	name  string
	value value
}

// parse reads JSON. Its depth is bounded by json.Valid's own bound.
func parse(raw []byte) (value, error) {
	if !json.Valid(raw) {
		return value{}, errors.New("the answer is no JSON")
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return next(d)
}

func next(d *json.Decoder) (v value, err error) {
	token, err := d.Token()
	if err != nil {
		return v, err
	}
	switch t := token.(type) {
	case json.Delim:
		v.kind = byte(t)
		for d.More() {
			var m member
			if t == '{' {
				name, err := d.Token()
				if err != nil {
					return v, err
				}
				m.name, _ = name.(string)
			}
			if m.value, err = next(d); err != nil {
				return v, err
			}
			if t == '{' {
				v.members = append(v.members, m)
			} else {
				v.items = append(v.items, m.value)
			}
		}
		_, err = d.Token() // the end
	case string:
		v.kind, v.text = '"', t
	case json.Number:
		v.text = t.String()
	case bool:
		v.kind, v.text = 'f', "false"
		if t {
			v.kind, v.text = 't', "true"
		}
	default:
		v.kind, v.text = 'n', "null"
	}
	return v, err
}

func (v value) member(name string) (value, bool) {
	for _, m := range v.members {
		if m.name == name {
			return m.value, true
		}
	}
	return value{}, false
}

// isTable tells a list of objects.
func (v value) isTable() bool {
	for _, item := range v.items {
		if item.kind != '{' {
			return false
		}
	}
	return v.kind == '[' && len(v.items) > 0
}

// String is the value as a person reads it: a text as it is, anything else as JSON.
func (v value) String() string {
	switch v.kind {
	case '[':
		if texts, simple := v.texts(); simple {
			return strings.Join(texts, ", ")
		}
		return v.json()
	case '{':
		return v.json()
	}
	return v.text
}

// texts are the items of a list that has no list or object in it, nor a text with a comma.
func (v value) texts() ([]string, bool) {
	texts := make([]string, len(v.items))
	for i, item := range v.items {
		if item.kind == '{' || item.kind == '[' || strings.Contains(item.text, ",") {
			return nil, false
		}
		texts[i] = item.text
	}
	return texts, len(texts) > 0
}

// json is the value in one line of JSON.
func (v value) json() string {
	var b strings.Builder
	v.write(&b)
	return b.String()
}

func (v value) write(b *strings.Builder) {
	switch v.kind {
	case '{':
		b.WriteByte('{')
		for i, m := range v.members {
			if i > 0 {
				b.WriteString(", ")
			}
			quote(b, m.name)
			b.WriteString(": ")
			m.value.write(b)
		}
		b.WriteByte('}')
	case '[':
		b.WriteByte('[')
		for i, item := range v.items {
			if i > 0 {
				b.WriteString(", ")
			}
			item.write(b)
		}
		b.WriteByte(']')
	case '"':
		quote(b, v.text)
	default:
		b.WriteString(v.text)
	}
}

func quote(b *strings.Builder, text string) {
	var line strings.Builder
	e := json.NewEncoder(&line)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // a string is always JSON
	b.WriteString(strings.TrimSuffix(line.String(), "\n"))
}
