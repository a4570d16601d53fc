// Package tooltest derives tests of a tool from its Spec alone, as a manifest or the
// catalog has it. It refuses to know what a tool does.
package tooltest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"hub.internal/pkg/schema"
	"hub.internal/pkg/tool"
)

// Case is one input at or beyond a bound of a tool's schema.
type Case struct {
	// Name says what is tried, such as "/targets/0/name: one over maxLength".
	Name  string
	Input []byte
	// Path and Rule are of the violation that the answer has to list, maybe among others.
	// Both are empty when the input keeps to the schema: then the tool may still refuse it
	// for a reason of its own, such as a row that does not exist.
	Path, Rule string
}

// Valid tells whether the input keeps to the schema.
func (c Case) Valid() bool { return c.Rule == "" }

// Bounds lists inputs for every bound of the spec's input schema, at every depth: min−1,
// min, max, max+1, each value of an enum and one beside it, a broken pattern and format, an
// unknown and a missing member, another type and null, and what stands for a value all the same
// (schema.Lenient). The request of the spec's first example is the valid input that each case changes in one place. An input larger
// than the spec's MaxBody is left out.
func Bounds(t testing.TB, spec tool.Spec) []Case {
	t.Helper()
	var s schema.Schema
	if err := json.Unmarshal(spec.Input, &s); err != nil {
		t.Fatalf("%s: input schema: %v", spec.Name, err)
	}
	v, err := schema.Compile(&s)
	if err != nil {
		t.Fatalf("%s: %v", spec.Name, err)
	}
	if len(spec.Examples) == 0 {
		t.Fatalf("%s has no example to start from", spec.Name)
	}
	base := spec.Examples[0].Request
	if f := v.Validate(t.Context(), base); f != nil {
		t.Fatalf("%s: its first example is not valid: %v", spec.Name, f)
	}
	root, err := decode(base)
	if err != nil {
		t.Fatalf("%s: its first example: %v", spec.Name, err)
	}
	g := &generator{root: root, limit: spec.MaxBody}
	g.text("no body", "", "", "json")
	g.text("two values", string(base)+" {}", "", "json")
	g.text("cut off", strings.TrimRight(string(base), "} \n"), "", "json")
	g.text("as it is", string(base), "", "")
	g.value(&s, nil, true)
	return g.cases
}

// decode reads JSON; numbers stay as they are written.
func decode(b []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	err = d.Decode(&v)
	return v, err
}

// generator makes the cases of one tool.
type generator struct {
	// root is the valid input that each case changes in one place.
	root  any
	limit int64
	cases []Case
}

// text adds a case whose input is written out; one beyond the limit is left out.
func (g *generator) text(name, input, path, rule string) {
	if g.limit > 0 && int64(len(input)) > g.limit {
		return
	}
	g.cases = append(g.cases, Case{Name: name, Input: []byte(input), Path: path, Rule: rule})
}

// absent, as a value, removes a member.
type absent struct{}

// try replaces the value at the path; rule is "" when the input stays valid. below is
// where the violation is expected, from the path on.
func (g *generator) try(at []string, what string, value any, below, rule string) {
	input, err := json.Marshal(replaced(g.root, at, value))
	if err != nil {
		panic(err) // the values are ours
	}
	path := pointer(at) + below
	name := strings.TrimPrefix(path+": "+what, ": ")
	if rule == "" {
		path = ""
	}
	g.text(name, string(input), path, rule)
}

// replaced is a copy of the tree with another value at the path.
func replaced(tree any, at []string, value any) any {
	if len(at) == 0 {
		return value
	}
	switch v := tree.(type) {
	case []any:
		i, err := strconv.Atoi(at[0])
		if err != nil {
			panic(err)
		}
		v = slices.Clone(v)
		v[i] = replaced(v[i], at[1:], value)
		return v
	case map[string]any:
		v = maps.Clone(v)
		if v[at[0]] = replaced(v[at[0]], at[1:], value); v[at[0]] == (absent{}) {
			delete(v, at[0])
		}
		return v
	}
	panic(fmt.Sprintf("nothing at %q", at))
}

// find is the value at a path; it is false where the tree has none.
func find(tree any, at []string) (any, bool) {
	for _, name := range at {
		switch v := tree.(type) {
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i >= len(v) {
				return nil, false
			}
			tree = v[i]
		case map[string]any:
			child, ok := v[name]
			if !ok {
				return nil, false
			}
			tree = child
		default:
			return nil, false
		}
	}
	return tree, true
}

// pointer is a path as a JSON pointer (RFC 6901).
func pointer(at []string) string {
	var p jsontext.Pointer
	for _, name := range at {
		p = p.AppendToken(name)
	}
	return string(p)
}

// value makes the cases of the value at a path. It leaves the base input with a sample
// there while it looks deeper, so that the deeper paths exist. needed tells that null does not stand for it.
func (g *generator) value(s *schema.Schema, at []string, needed bool) {
	before := g.root
	defer func() { g.root = before }()
	if _, ok := find(g.root, at); !ok {
		g.root = replaced(g.root, at, sample(s))
		g.try(at, "a plain value", sample(s), "", "")
	}
	g.try(at, "null", nil, "", map[bool]string{true: "type"}[needed])
	others := map[string]any{"a string": "x", "a number": 7, "a fraction": json.RawMessage("1.5"), "a boolean": true, "an array": []any{},
		"an object": map[string]any{}}
	delete(others, map[string]string{"string": "a string", "integer": "a number", "boolean": "a boolean", "array": "an array",
		"object": "an object"}[s.Type])
	if s.Type == "string" && s.Format == "" {
		delete(others, "a number") // which stands for its digits
	}
	if s.Type == "array" && s.Items != nil && s.Items.Type == "string" {
		delete(others, "a string") // which stands for a list of it
		delete(others, "a number")
	}
	for _, what := range slices.Sorted(maps.Keys(others)) {
		g.try(at, what, others[what], "", "type")
	}
	switch s.Type {
	case "object":
		g.object(s, at)
	case "array":
		g.array(s, at)
	case "string":
		g.string(s, at)
	case "integer":
		g.integer(s, at)
	case "boolean":
		g.try(at, "true", true, "", "")
		g.try(at, "false", false, "", "")
	}
}

// object makes the cases of an object: an unknown member, each member left out, and those of each member.
func (g *generator) object(s *schema.Schema, at []string) {
	here, _ := find(g.root, at)
	with := func(name string, v any) any { return replaced(here, []string{name}, v) }
	const unknown = "no_such_member"
	if s.Properties == nil && s.AdditionalProperties == nil {
		g.try(at, "a member of one's choice", with(unknown, []any{map[string]any{"a": nil}}), "", "")
		g.try(at, "empty", map[string]any{}, "", "")
		most := map[string]any{}
		for i := range schema.MaxMembers {
			most[strconv.Itoa(i)] = 1
		}
		g.try(at, "the most members", most, "", "")
		most[unknown] = 1
		g.try(at, "one more than the most members", most, "", "maxProperties")
		return
	}
	g.try(at, "an unknown member", with(unknown, 1), "/"+unknown, "additionalProperties")
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		member := append(slices.Clone(at), name)
		below, rule := "", ""
		if slices.Contains(s.Required, name) {
			below, rule = pointer([]string{name}), "required"
		}
		g.try(at, "without "+name, with(name, absent{}), below, rule)
		g.value(s.Properties[name], member, rule != "")
	}
}

// array makes the cases of a list: its lengths, and those of its first item.
func (g *generator) array(s *schema.Schema, at []string) {
	item := sample(s.Items)
	if first, ok := find(g.root, append(slices.Clone(at), "0")); ok {
		item = first
	}
	of := func(n int) []any {
		items := make([]any, n)
		for i := range items {
			items[i] = distinct(s.Items, item, i)
		}
		return items
	}
	least, most := 0, 3
	if s.MinItems != nil {
		least = *s.MinItems
		g.try(at, "one fewer than minItems", of(least-1), "", "minItems")
	}
	g.try(at, "minItems", of(least), "", "")
	if s.MaxItems != nil {
		most = *s.MaxItems
		g.try(at, "one more than maxItems", of(most+1), "", "maxItems")
	}
	g.try(at, "maxItems", of(most), "", "")
	if s.Items == nil || most == 0 {
		return
	}
	before := g.root
	defer func() { g.root = before }()
	g.root = replaced(g.root, at, of(max(least, 1)))
	g.value(s.Items, append(slices.Clone(at), "0"), true)
}

// distinct makes the i-th of many items differ from the others where a string leaves room
// for that: a list of the same thing may be refused for another reason.
func distinct(s *schema.Schema, item any, i int) any {
	switch v := item.(type) {
	case map[string]any:
		v = maps.Clone(v)
		for name, p := range s.Properties {
			if member, ok := v[name]; ok {
				v[name] = distinct(p, member, i)
			}
		}
		return v
	case string:
		if text := v + "-" + strconv.Itoa(i); i > 0 && s.Enum == nil && s.Pattern == "" && s.Format == "" &&
			(s.MaxLength == nil || len(text) <= *s.MaxLength) {
			return text
		}
	}
	return item
}

// string makes the cases of a text: the values of an enum and others, lengths, what breaks its pattern and format.
func (g *generator) string(s *schema.Schema, at []string) {
	if s.Enum != nil {
		for _, v := range s.Enum {
			g.try(at, fmt.Sprintf("%q", v), v, "", "")
		}
		g.try(at, "not in the enum", "no such value", "", "enum")
		g.try(at, "the enum's value in capitals", strings.ToUpper(s.Enum[0].(string)), "", "")
		g.try(at, "more than the enum's value", s.Enum[0].(string)+"!", "", "enum")
		return
	}
	// Lengths count characters, and a bound has to hold for all of them: four-byte ones too.
	if s.MinLength != nil {
		g.length(s, at, "one fewer than minLength", *s.MinLength-1, "minLength")
		g.length(s, at, "minLength", *s.MinLength, "")
	}
	if s.MaxLength != nil {
		g.length(s, at, "maxLength", *s.MaxLength, "")
		g.length(s, at, "one more than maxLength", *s.MaxLength+1, "maxLength")
	}
	if s.Pattern != "" {
		re := regexp.MustCompile(s.Pattern)
		for _, candidate := range []string{" ", "!", "-", "A", "a b", "日"} {
			if !re.MatchString(candidate) {
				g.try(at, fmt.Sprintf("not of the pattern: %q", candidate), candidate, "", "pattern")
			}
		}
	}
	if bad := map[string][]string{
		schema.Email:   {"nobody", "a@b@example.com", "A <a@example.com>", "a@example.com\r\nBcc: b@example.com"},
		schema.ISODate: {"soon", "2026-02-30", "2026-01-31 09:00:00", "31.01.2026"},
	}[s.Format]; bad != nil {
		for _, text := range bad {
			g.try(at, fmt.Sprintf("not of the format: %q", text), text, "", "format")
		}
		g.try(at, "of the format", sample(s), "", "")
	}
}

// length makes cases of a text of n characters. Where none of that length keeps to the pattern, only the refusal is tried.
func (g *generator) length(s *schema.Schema, at []string, what string, n int, rule string) {
	if n < 0 {
		return
	}
	if text, ok := text(s, n); ok || rule != "" {
		g.try(at, what, text, "", rule)
	}
	if s.Pattern == "" && s.Format == "" {
		g.try(at, what+" of four-byte characters", strings.Repeat("😀", n), "", rule)
	}
}

// text is a string of n characters that keeps to pattern and format, if one is easily found.
func text(s *schema.Schema, n int) (string, bool) {
	switch s.Format {
	case schema.Email:
		return address(n)
	case schema.ISODate:
		const date = "2026-01-31"
		return date, n == len(date)
	}
	re := regexp.MustCompile(s.Pattern)
	for _, c := range []string{"a", "A", "1", "가"} {
		if text := strings.Repeat(c, n); re.MatchString(text) {
			return text, true
		}
	}
	return strings.Repeat("a", n), false
}

// address is an e-mail address of n characters.
func address(n int) (string, bool) {
	const end = ".example.com"
	rest := n - len("a@") - len(end)
	if rest < 1 || n > 254 {
		return strings.Repeat("a", max(n, 0)), false
	}
	var host strings.Builder
	for ; rest > 63; rest -= 62 {
		host.WriteString(strings.Repeat("d", 61) + ".")
	}
	return "a@" + host.String() + strings.Repeat("d", rest) + end, true
}

// integer makes the cases of a whole number: its bounds, 64 bits without any, and how it may be written.
func (g *generator) integer(s *schema.Schema, at []string) {
	least, most := big.NewInt(math.MinInt64), big.NewInt(math.MaxInt64)
	if s.Minimum != nil {
		least = big.NewInt(int64(*s.Minimum))
	}
	if s.Maximum != nil {
		most = big.NewInt(int64(*s.Maximum))
	}
	one, plain := big.NewInt(1), sample(s)
	raw := func(i *big.Int) json.RawMessage { return json.RawMessage(i.String()) }
	g.try(at, "minimum", raw(least), "", "")
	g.try(at, "maximum", raw(most), "", "")
	g.try(at, "one less than minimum", raw(new(big.Int).Sub(least, one)), "", "minimum")
	g.try(at, "one more than maximum", raw(new(big.Int).Add(most, one)), "", "maximum")
	g.try(at, "far beyond", json.RawMessage("1e400"), "", "maximum")
	g.try(at, "written with a fraction of 0", json.RawMessage(fmt.Sprint(plain)+".0"), "", "")
	g.try(at, "digits in a string", fmt.Sprint(plain), "", "")
}

// sample is a plain valid value.
func sample(s *schema.Schema) any {
	switch {
	case s == nil:
		return map[string]any{}
	case s.Default != nil:
		v, err := decode(s.Default)
		if err != nil {
			panic(err) // the schema has been compiled from JSON
		}
		return v
	case s.Type == "object":
		v := map[string]any{}
		for _, name := range s.Required {
			v[name] = sample(s.Properties[name])
		}
		return v
	case s.Type == "array":
		v := []any{}
		if s.MinItems != nil {
			for i := range *s.MinItems {
				v = append(v, distinct(s.Items, sample(s.Items), i))
			}
		}
		return v
	case s.Type == "boolean":
		return true
	case s.Type == "integer":
		n := 1.0
		if s.Minimum != nil {
			n = max(n, *s.Minimum)
		}
		if s.Maximum != nil {
			n = min(n, *s.Maximum)
		}
		return int64(n)
	case s.Enum != nil:
		return s.Enum[0]
	case s.Format == schema.Email:
		return "someone@example.com"
	case s.Format == schema.ISODate:
		return "2026-01-31"
	}
	n := 1
	if s.MinLength != nil {
		n = max(n, *s.MinLength)
	}
	v, _ := text(s, n)
	return v
}
