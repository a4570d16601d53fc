package client

import (
	"bytes"
	"encoding/json"
	"slices"

	"hub.internal/pkg/jsontree"
)

// Schema is what the client has to know of a JSON Schema; keywords that it does not know are the gateway's to judge.
type Schema struct {
	// The keywords that a page or an input needs, by their names in JSON Schema. Numbers keep their digits.
	Type                 Types
	Description          string
	Format, Pattern      string
	Enum                 []json.RawMessage
	Default              json.RawMessage
	Minimum, Maximum     json.Number
	MinLength, MaxLength json.Number
	MinItems, MaxItems   json.Number
	Properties           Properties
	Items                *Schema
	Required             []string
	AnyOf                []*Schema
	// AdditionalProperties is false, true or a schema; absent means any.
	AdditionalProperties json.RawMessage
}

// UnmarshalJSON takes an object; true and false are schemas too, which say nothing here.
func (s *Schema) UnmarshalJSON(b []byte) error {
	// A type of its own has no UnmarshalJSON, which would call itself.
	type object Schema
	if !bytes.HasPrefix(b, []byte("{")) {
		return nil
	}
	return json.Unmarshal(b, (*object)(s))
}

// Closed tells that an object has no fields but its Properties.
// A field that it does not have is then a mistake that can be named before anything is sent.
func (s *Schema) Closed() bool { return string(bytes.TrimSpace(s.AdditionalProperties)) == "false" }

// Requires tells whether an object must have the field.
func (s *Schema) Requires(name string) bool { return slices.Contains(s.Required, name) }

// Types are the types that a value may have.
type Types []string

// UnmarshalJSON takes one name or a list of names.
func (t *Types) UnmarshalJSON(b []byte) error {
	if one := ""; json.Unmarshal(b, &one) == nil {
		*t = Types{one}
		return nil
	}
	return json.Unmarshal(b, (*[]string)(t))
}

// Is tells whether the value has this type, or may be null beside it.
// Without any type it is false for each: the value may be anything.
func (t Types) Is(name string) bool {
	return len(t) > 0 && slices.Contains(t, name) && !slices.ContainsFunc(t, func(s string) bool { return s != name && s != "null" })
}

// Nullable tells whether the value may be null.
func (t Types) Nullable() bool { return slices.Contains(t, "null") }

// Property is a field of an object.
type Property struct {
	Name   string
	Schema *Schema
}

// Properties are the fields of an object in the order of the schema.
// A map would forget it, and help and completion show the order that the tool's author chose.
type Properties []Property

// UnmarshalJSON keeps the order.
func (p *Properties) UnmarshalJSON(b []byte) error {
	*p = nil
	members, _ := jsontree.Members(b) // anything but an object has no fields
	for _, m := range members {
		of := Property{Name: m.Name, Schema: &Schema{}}
		if err := json.Unmarshal(m.Value, of.Schema); err != nil {
			return err
		}
		*p = append(*p, of)
	}
	return nil
}

// Field returns the schema of a field, or nil.
func (p Properties) Field(name string) *Schema {
	for _, of := range p {
		if of.Name == name {
			return of.Schema
		}
	}
	return nil
}

// Names are those of the fields.
func (p Properties) Names() []string {
	names := make([]string, len(p))
	for i, of := range p {
		names[i] = of.Name
	}
	return names
}
