// Package input makes the input of a tool of what a person writes on a command line, by the tool's schema: keyword=12 is
// a text and limit=12 a number. It judges no more than it has to for that; the gateway judges the rest.
package input

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/schema"
	"hub.internal/pkg/text"
	"hub.internal/services/client"
)

// Files reads what arguments name.
// Both bound what they read. A test brings its own.
type Files struct {
	// Stdin reads standard input to its end.
	Stdin func() ([]byte, error)
	// Read reads a file.
	Read func(name string) ([]byte, error)
}

// misuse is an argument that cannot be meant: its message says what to write instead.
func misuse(format string, args ...any) error { return fault.New(fault.Validation, format, args...) }

// Make returns the input of a call of t: of "name=value" arguments, or of a whole object, which is JSON, "@file" or "-" for
// standard input, with fields that are set in it. What cannot be meant is E_VALIDATION.
func Make(t *client.Tool, args []string, files Files) (json.RawMessage, error) {
	// The whole input, nil where none was given, and the fields that are set in it or make it up.
	var whole json.RawMessage
	fields := map[string]json.RawMessage{}
	for _, arg := range args {
		name, value, found := strings.Cut(arg, "=")
		switch {
		case isWhole(arg):
			if whole != nil {
				return nil, misuse("%q is a second input: there is one object, and fields name=value that are set in it", excerpt(arg))
			}
			var err error
			if whole, err = object(arg, files); err != nil {
				return nil, err
			}
		case !found || name == "":
			return nil, misuse("%q is neither name=value nor an object of JSON", excerpt(arg))
		default:
			if err := set(t, fields, name, value, files); err != nil {
				return nil, err
			}
		}
	}
	if whole == nil {
		if err := complete(t, fields); err != nil {
			return nil, err
		}
		return json.Marshal(fields)
	}
	return merge(whole, fields)
}

// isWhole tells whether an argument is a whole input, in contrast to one field of it.
// A list is taken for one too, so that the error says that an object is needed.
func isWhole(arg string) bool {
	start := strings.TrimSpace(arg)
	return arg == "-" || strings.HasPrefix(arg, "@") || strings.HasPrefix(start, "{") || strings.HasPrefix(start, "[")
}

// object is a whole input as an argument names it.
func object(arg string, files Files) (b json.RawMessage, err error) {
	from := "the input"
	switch {
	case arg == "-" || arg == "@-":
		from = "standard input"
		b, err = files.Stdin()
	case strings.HasPrefix(arg, "@"):
		from = arg[1:]
		b, err = files.Read(from)
	default:
		b = []byte(arg)
	}
	if err != nil {
		return nil, fault.New(fault.Validation, "%v", err).Because(err)
	}
	return Object(b, from)
}

// Object checks that a text is one JSON object; from says where it was found.
func Object(b []byte, from string) (json.RawMessage, error) {
	// Editors on Windows begin a file with a byte order mark.
	b = bytes.TrimSpace(bytes.TrimPrefix(b, []byte("\ufeff")))
	if err := valid(b, from); err != nil {
		return nil, err
	}
	if b[0] != '{' {
		return nil, misuse("%s is JSON but no object, as {\"limit\":5} is", from)
	}
	return b, nil
}

// valid checks that a text is one value of JSON in UTF-8; from says in the error where it was found.
func valid(b []byte, from string) error {
	if len(b) == 0 {
		return misuse("%s is empty: an object of JSON is needed, {} at least", from)
	}
	if !utf8.Valid(b) {
		return misuse("%s is not UTF-8", from)
	}
	var any json.RawMessage
	if err := json.Unmarshal(b, &any); err != nil {
		return misuse("%s is no JSON: %v", from, err)
	}
	return nil
}

// merge sets fields in a whole input. The input stays byte for byte as it is when there are none.
func merge(whole json.RawMessage, fields map[string]json.RawMessage) (json.RawMessage, error) {
	if len(fields) == 0 {
		return whole, nil
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(whole, &all); err != nil {
		return nil, err
	}
	for name, value := range fields {
		all[name] = value
	}
	return json.Marshal(all)
}

// complete names what a call needs and was not given.
func complete(t *client.Tool, fields map[string]json.RawMessage) error {
	var missing []string
	for _, name := range t.Input.Required {
		if _, given := fields[name]; !given {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return misuse("%s needs %s", t.Name, strings.Join(missing, ", "))
	}
	return nil
}

// set puts a field into fields; a list grows.
func set(t *client.Tool, fields map[string]json.RawMessage, name, text string, files Files) error {
	of := t.Input.Properties.Field(name)
	// A tool that takes any field gets it; its value is read as JSON where it is JSON.
	if of == nil && t.Input.Closed() {
		return unknown(t, name)
	}
	if of == nil {
		of = &client.Schema{}
	}
	value, err := read(of, name, text, files)
	if err != nil {
		return err
	}
	before, given := fields[name]
	switch {
	case !given:
		fields[name] = value
	case of.Type.Is("array"):
		fields[name], err = joined(before, value)
	default:
		return misuse("%s is given twice, and is no list", name)
	}
	return err
}

// joined is one list of two.
// It keeps the order in which the parts were given.
func joined(a, b json.RawMessage) (json.RawMessage, error) {
	var all, more []json.RawMessage
	if err := json.Unmarshal(a, &all); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(b, &more); err != nil {
		return nil, err
	}
	return json.Marshal(append(all, more...))
}

// unknown is the error for a field that the tool does not have, with the field that may have been meant.
func unknown(t *client.Tool, name string) error {
	names := t.Input.Properties.Names()
	if len(names) == 0 {
		return misuse("%s has no fields", t.Name)
	}
	meant := ""
	if nearest := schema.Nearest(name, names); nearest != "" {
		meant = fmt.Sprintf("did you mean %s? ", nearest)
	}
	return misuse("%s has no field %q: %sits fields are %s", t.Name, excerpt(name), meant, strings.Join(names, ", "))
}

// read makes the value of a field of its text, or of the file that the text names.
// What begins with @ names a file, and @@ stands for an @ itself.
func read(of *client.Schema, name, text string, files Files) (json.RawMessage, error) {
	if literal, escaped := strings.CutPrefix(text, "@@"); escaped {
		return convert(of, name, "@"+literal)
	}
	path, named := strings.CutPrefix(text, "@")
	if !named {
		return convert(of, name, text)
	}
	load := func() ([]byte, error) { return files.Read(path) }
	if path == "-" {
		load = files.Stdin
	}
	b, err := load()
	if err != nil {
		return nil, fault.New(fault.Validation, "%s (a text that begins with @ is written %s=@@…): %v", name, name, err).Because(err)
	}
	b = bytes.TrimPrefix(b, []byte("\ufeff"))
	if of.Type.Is("array") || of.Type.Is("object") {
		b = bytes.TrimSpace(b)
		if err := valid(b, path); err != nil {
			return nil, err
		}
		return convert(of, name, string(b))
	}
	// Editors end a file with a line break that nobody has meant.
	return convert(of, name, strings.TrimSuffix(strings.TrimSuffix(string(b), "\n"), "\r"))
}

// number is the form of a number in JSON (RFC 8259 section 6): Go's own parser takes more, such as 0x1 and 1_000.
var number = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)

// convert makes the JSON of a text as the schema wants it.
func convert(of *client.Schema, name, text string) (json.RawMessage, error) {
	if !utf8.ValidString(text) {
		return nil, misuse("%s is not UTF-8", name)
	}
	// The schema decides, not the look of the text: 12 is a text where a text is wanted.
	switch is := of.Type.Is; {
	case text == "null" && of.Type.Nullable():
		return json.RawMessage(text), nil
	case is("string"):
		return json.Marshal(text)
	case is("integer"), is("number"):
		if !number.MatchString(text) {
			return nil, misuse("%s has to be a number (%s), not %q", name, strings.Join(of.Type, " or "), excerpt(text))
		}
		return json.RawMessage(text), nil
	case is("boolean"):
		if text != "true" && text != "false" {
			return nil, misuse("%s has to be true or false, not %q", name, excerpt(text))
		}
		return json.RawMessage(text), nil
	case is("array"):
		return list(of, name, text)
	case is("object"):
		return Object([]byte(text), name)
	case json.Valid([]byte(text)):
		return json.RawMessage(text), nil
	}
	return json.Marshal(text)
}

// list makes an array: of JSON, of one object or several with commas between them, or of values with commas.
// An item with a comma in it takes the form of JSON.
func list(of *client.Schema, name, text string) (json.RawMessage, error) {
	trimmed := strings.TrimSpace(text)
	switch {
	case trimmed == "":
		return json.RawMessage("[]"), nil
	case trimmed[0] == '[':
		return json.RawMessage(trimmed), valid([]byte(trimmed), name)
	case trimmed[0] == '{':
		all := "[" + trimmed + "]"
		return json.RawMessage(all), valid([]byte(all), name)
	}
	item := of.Items
	if item == nil {
		item = &client.Schema{}
	}
	var values []json.RawMessage
	for _, part := range strings.Split(text, ",") {
		value, err := convert(item, name, strings.TrimSpace(part))
		if err != nil {
			return nil, err
		}
		values = append(values, value)
	}
	return json.Marshal(values)
}

// excerpt is a text in a message, where 60 characters of it do.
func excerpt(s string) string { return text.Shown(s, 60) }
