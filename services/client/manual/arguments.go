package manual

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"hub.internal/pkg/schema"
	"hub.internal/services/client"
)

// arguments writes an input as the arguments that input.Make reads it from, with fields in the order of the schema. It
// returns nil for what is not an object.
func arguments(s *client.Schema, request json.RawMessage) []string {
	var fields map[string]json.RawMessage
	if json.Unmarshal(request, &fields) != nil {
		return nil
	}
	// The order of the schema is the order in which a person reads the fields above.
	var args []string
	for _, of := range s.Properties {
		if raw, given := fields[of.Name]; given {
			args = append(args, of.Name+"="+written(of.Schema, raw))
			delete(fields, of.Name)
		}
	}
	lines := slices.ContainsFunc(args, func(arg string) bool { return strings.ContainsFunc(arg, schema.Unprintable) })
	if len(fields) > 0 || lines { // JSON alone has names that the schema has not, and escapes
		return []string{compact(request)}
	}
	return args
}

// written is a value as input.Make reads it.
func written(of *client.Schema, raw json.RawMessage) string {
	var text string
	if of.Type.Is("string") && json.Unmarshal(raw, &text) == nil {
		if strings.HasPrefix(text, "@") {
			// The first @ would name a file.
			return "@" + text
		}
		return text
	}
	var items []string
	if of.Type.Is("array") && of.Items != nil && of.Items.Type.Is("string") && json.Unmarshal(raw, &items) == nil &&
		!slices.ContainsFunc(items, func(s string) bool { return s == "" || strings.ContainsAny(s, ",[{ @") }) {
		return strings.Join(items, ",")
	}
	return compact(raw)
}

// compact is JSON without the white space between its tokens.
func compact(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return string(raw)
	}
	return b.String()
}

// plain texts mean the same to a shell with quotes and without.
var plain = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// quote writes an argument for a POSIX shell.
// The name of a field needs no quotes, and a line is easier to change without.
func quote(arg string) string {
	if plain.MatchString(arg) {
		return arg
	}
	if name, value, found := strings.Cut(arg, "="); found && plain.MatchString(name) {
		return name + "=" + quoted(value)
	}
	return quoted(arg)
}

// quoted puts a text between single quotes, within which a shell reads nothing but the closing one.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
