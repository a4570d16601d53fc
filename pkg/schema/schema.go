// Package schema declares the JSON Schema (2020-12) of a tool's input as a Go
// value, binds it to the Go type that the tool decodes into, and judges bytes
// against it in one streaming pass that reports every violation. It refuses
// keywords that it cannot enforce, and it knows no tool.
//
// The declaration type and the inference of output schemas are
// github.com/google/jsonschema-go; what is Hub's own is the validator: that
// library, like its peers, judges decoded values, which costs a map for every
// object of a 32 MiB body and loses duplicate names on the way. A test holds
// both validators to the same verdicts.
package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// Schema is a JSON Schema, written as a value.
type Schema = jsonschema.Schema

// Property is a named member of an Object.
type Property struct {
	Name     string
	Schema   *Schema
	Required bool
}

// Required declares a member that must be present.
func Required(name string, s *Schema) Property { return Property{name, s, true} }

// Optional declares a member that may be absent.
func Optional(name string, s *Schema) Property { return Property{name, s, false} }

// Object declares an object that holds these members and no other.
func Object(members ...Property) *Schema {
	s := &Schema{Type: "object", Properties: map[string]*Schema{}, AdditionalProperties: &Schema{Not: &Schema{}}}
	for _, m := range members {
		s.Properties[m.Name] = m.Schema
		s.PropertyOrder = append(s.PropertyOrder, m.Name)
		if m.Required {
			s.Required = append(s.Required, m.Name)
		}
	}
	return s
}

// FreeObject declares an object with members of the caller's choice, at most MaxMembers. Its description says so in words and not as
// maxProperties: a gateway of the release before refuses a manifest with a keyword that it does not enforce.
func FreeObject(description string) *Schema {
	bound := fmt.Sprintf("At most %d members.", MaxMembers)
	return &Schema{Type: "object", Description: strings.TrimSpace(description + " " + bound)}
}

// Option bounds or annotates a scalar or an array.
type Option func(*Schema)

// String declares a string. Lengths count Unicode code points.
func String(description string, options ...Option) *Schema {
	return build("string", description, options)
}

// Integer declares a whole number: 1, 1.0 and 1e0 are the same number.
func Integer(description string, options ...Option) *Schema {
	return build("integer", description, options)
}

// Boolean declares true or false.
func Boolean(description string, options ...Option) *Schema {
	return build("boolean", description, options)
}

// Array declares a list of items.
func Array(description string, items *Schema, options ...Option) *Schema {
	s := build("array", description, options)
	s.Items = items
	return s
}

func build(kind, description string, options []Option) *Schema {
	s := &Schema{Type: kind, Description: description}
	for _, o := range options {
		o(s)
	}
	return s
}

// Length bounds a string, in code points; max 0 leaves it open.
func Length(min, max int) Option {
	return func(s *Schema) {
		if min > 0 {
			s.MinLength = &min
		}
		if max > 0 {
			s.MaxLength = &max
		}
	}
}

// Items bounds an array's length; max 0 leaves it open.
func Items(min, max int) Option {
	return func(s *Schema) {
		if min > 0 {
			s.MinItems = &min
		}
		if max > 0 {
			s.MaxItems = &max
		}
	}
}

// Min sets the smallest allowed number.
func Min(n float64) Option { return func(s *Schema) { s.Minimum = &n } }

// Range sets the smallest and the greatest allowed number.
func Range(min, max float64) Option {
	return func(s *Schema) { s.Minimum, s.Maximum = &min, &max }
}

// Enum lists the allowed values.
func Enum(values ...string) Option {
	return func(s *Schema) {
		for _, v := range values {
			s.Enum = append(s.Enum, v)
		}
	}
}

// Pattern sets a regular expression (RE2) that a string has to match.
func Pattern(re string) Option { return func(s *Schema) { s.Pattern = re } }

// Format names one of the formats of format.go.
func Format(name string) Option { return func(s *Schema) { s.Format = name } }

// Default is the value that an absent member takes.
func Default(v any) Option {
	return func(s *Schema) {
		b, err := json.Marshal(v)
		if err != nil {
			panic(fmt.Sprintf("schema: default %v: %v", v, err))
		}
		s.Default = b
	}
}

// Of infers the schema of a Go type, for documentation of outputs: a field's
// `jsonschema` tag is its description. A nil slice is never answered, so lists
// are plain arrays. It panics on a type that JSON cannot hold.
func Of[T any]() *Schema {
	known := map[reflect.Type]*Schema{reflect.TypeFor[json.RawMessage](): {}}
	learn(reflect.TypeFor[T](), known)
	s, err := jsonschema.For[T](&jsonschema.ForOptions{TypeSchemas: apartFrom(known, reflect.TypeFor[T]())})
	if err != nil {
		panic(fmt.Sprintf("schema: %v", err))
	}
	arraysNeverNull(s)
	return s
}

// Titled is a type that descriptions of the API say once, under this name, wherever it stands.
type Titled interface{ SchemaTitle() string }

// learn adds the schemas of the titled types that a type is made of, the innermost first.
func learn(t reflect.Type, known map[reflect.Type]*Schema) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || known[t] != nil {
		return
	}
	for _, f := range reflect.VisibleFields(t) {
		if f.IsExported() {
			learn(f.Type, known)
		}
	}
	named, is := reflect.Zero(t).Interface().(Titled)
	if !is {
		return
	}
	s, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: apartFrom(known, t)})
	if err != nil {
		panic(fmt.Sprintf("schema: %v", err))
	}
	s.Title = named.SchemaTitle()
	known[t] = s
}

// apartFrom are the known schemas without those of the types that t embeds: their members are its own.
func apartFrom(known map[reflect.Type]*Schema, t reflect.Type) map[reflect.Type]*Schema {
	apart := maps.Clone(known)
	if t.Kind() == reflect.Struct {
		for i := range t.NumField() {
			if f := t.Field(i); f.Anonymous {
				delete(apart, f.Type)
			}
		}
	}
	return apart
}

// Encode is a schema as JSON. It panics at one that is none: that is a programming error.
func Encode(s *Schema) json.RawMessage {
	b, err := json.Marshal(s)
	if err != nil {
		panic(fmt.Sprintf("schema: %v", err))
	}
	return b
}

// arraysNeverNull takes null out of the types of arrays, wherever they are.
func arraysNeverNull(s *Schema) {
	if s == nil {
		return
	}
	if len(s.Types) == 2 && s.Types[0] == "null" && s.Types[1] == "array" {
		s.Type, s.Types = "array", nil
	}
	arraysNeverNull(s.Items)
	for _, p := range s.Properties {
		arraysNeverNull(p)
	}
}
