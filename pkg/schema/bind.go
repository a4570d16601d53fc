package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"hub.internal/pkg/fault"
)

// Binding ties an object schema to the Go type that its inputs decode into.
type Binding[In any] struct {
	*Validator
	template In
	options  jsonv2.Options
}

// Bind checks that the schema and the struct In name the same members, and
// prepares both. It panics on a mismatch: that is a programming error, and it
// has to stop the program at its start, not a caller later.
func Bind[In any](s *Schema) *Binding[In] {
	v, err := Compile(s)
	if err != nil {
		panic(err)
	}
	if err := sameMembers(s, reflect.TypeFor[In](), "(root)"); err != nil {
		panic(fmt.Sprintf("schema: %v", err))
	}
	b := &Binding[In]{Validator: v, options: jsonv2.WithUnmarshalers(jsonv2.UnmarshalFromFunc(unmarshalWhole))}
	defaults := map[string]json.RawMessage{}
	for name, p := range s.Properties {
		if p.Default != nil {
			defaults[name] = p.Default
		}
	}
	raw, err := json.Marshal(defaults)
	if err != nil {
		panic(fmt.Sprintf("schema: defaults: %v", err))
	}
	if f := b.decode(raw, &b.template); f != nil {
		panic(fmt.Sprintf("schema: defaults: %v", f))
	}
	return b
}

// Decode validates input and decodes it; absent members take their defaults.
// It returns E_VALIDATION with every violation.
func (b *Binding[In]) Decode(input []byte) (In, *fault.Error) {
	in := b.template
	if f := b.Validate(input); f != nil {
		return in, f
	}
	return in, b.decode(input, &in)
}

func (b *Binding[In]) decode(input []byte, in *In) *fault.Error {
	if err := jsonv2.Unmarshal(input, in, b.options); err != nil {
		return Invalid(Violation{Rule: "type", Message: "cannot be read: a value does not fit its type"}).Because(err)
	}
	return nil
}

// unmarshalWhole reads an int64 the way JSON Schema understands integers: 1.0 is 1.
func unmarshalWhole(dec *jsontext.Decoder, to *int64) error {
	raw, err := dec.ReadValue()
	if err != nil {
		return err
	}
	value, whole := wholeNumber(raw)
	if !whole || value == nil {
		return fmt.Errorf("%s is not a 64-bit integer", bytes.TrimSpace(raw))
	}
	*to = *value
	return nil
}

func sameMembers(s *Schema, t reflect.Type, at string) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case s.Type == "array" && t.Kind() == reflect.Slice && s.Items != nil:
		return sameMembers(s.Items, t.Elem(), at+"/*")
	case s.Type != "object" || s.Properties == nil:
		return nil
	case t.Kind() != reflect.Struct:
		return fmt.Errorf("%s: object bound to %s", at, t)
	}
	fields := map[string]reflect.Type{}
	for _, f := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
			fields[name] = f.Type
		}
	}
	for name, p := range s.Properties {
		field, ok := fields[name]
		if !ok {
			return fmt.Errorf("%s: %s has no field for %q", at, t, name)
		}
		if err := sameMembers(p, field, at+"/"+name); err != nil {
			return err
		}
		delete(fields, name)
	}
	for name := range fields {
		return fmt.Errorf("%s: the schema has no member for field %q of %s", at, name, t)
	}
	return nil
}
