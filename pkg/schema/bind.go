package schema

import (
	"bytes"
	"context"
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
	defaults []byte // of the root's members, as one object
	options  jsonv2.Options
}

// Bind checks that the schema and the struct In name the same members with types
// that fit, and prepares both. It panics on a mismatch: that is a programming error,
// and it has to stop the program at its start, not a caller later.
func Bind[In any](s *Schema) *Binding[In] {
	v, err := Compile(s)
	if err != nil {
		panic(err)
	}
	if err := sameMembers(s, reflect.TypeFor[In](), "(root)"); err != nil {
		panic(fmt.Sprintf("schema: %v", err))
	}
	b := &Binding[In]{Validator: v, options: jsonv2.JoinOptions(jsonv2.WithUnmarshalers(
		jsonv2.JoinUnmarshalers(jsonv2.UnmarshalFromFunc(unmarshalWhole), jsonv2.UnmarshalFromFunc(unmarshalRaw))),
		jsontext.AllowDuplicateNames(true))} // Validate has refused them
	defaults := map[string]json.RawMessage{}
	for name, p := range s.Properties {
		if p.Default == nil {
			continue
		}
		if f := (&Validator{root: v.root.properties[name].node, values: v.values}).Validate(context.Background(), p.Default); f != nil {
			panic(fmt.Sprintf("schema: default of %s: %v", name, f))
		}
		defaults[name] = p.Default
	}
	if b.defaults, err = json.Marshal(defaults); err != nil {
		panic(fmt.Sprintf("schema: defaults: %v", err))
	}
	var in In
	if f := b.decode(b.defaults, &in); f != nil {
		panic(fmt.Sprintf("schema: defaults: %v", f))
	}
	return b
}

// Decode validates input and decodes it; absent members take their defaults. A
// json.RawMessage in the result is a part of input, not a copy (of a copy where Lenient has mended something).
// It returns E_VALIDATION with every violation; when ctx ends it stops with that.
func (b *Binding[In]) Decode(ctx context.Context, input []byte) (In, *fault.Error) {
	var in In
	mends, f := b.judge(ctx, input)
	if f != nil {
		return in, f
	}
	// Decoded for each call: what one caller gets must not share a slice with the next one's.
	if f := b.decode(b.defaults, &in); f != nil {
		return in, f
	}
	f = b.decode(mended(input, mends), &in)
	return in, f
}

func (b *Binding[In]) decode(input []byte, in *In) *fault.Error {
	if err := jsonv2.Unmarshal(input, in, b.options); err != nil {
		return Invalid("", "type", "cannot be read: a value does not fit its type").Because(err)
	}
	return nil
}

// unmarshalWhole reads an int64 the way JSON Schema understands integers: 1.0 is 1.
func unmarshalWhole(dec *jsontext.Decoder, to *int64) error {
	raw, err := dec.ReadValue()
	if err != nil {
		return err
	}
	value, ok := Int64(raw)
	if !ok {
		return fmt.Errorf("%s is not a 64-bit integer", bytes.TrimSpace(raw))
	}
	*to = value
	return nil
}

// unmarshalRaw takes a part of the input as it is: a copy would double what a large body
// costs. The decoder reads the caller's bytes, not a buffer of its own that it would reuse.
func unmarshalRaw(dec *jsontext.Decoder, to *json.RawMessage) error {
	raw, err := dec.ReadValue()
	if err != nil {
		return err
	}
	*to = json.RawMessage(raw[:len(raw):len(raw)])
	return nil
}

// Int64 reads a JSON number the way inputs are decoded: 1.0 and 1e0 are 1. It is for
// tools that read a part of their validated input by themselves.
func Int64(raw []byte) (int64, bool) {
	value, whole := wholeNumber(raw)
	if !whole || value == nil {
		return 0, false
	}
	return *value, true
}

// sameMembers holds a Go type to a schema: what Validate lets through has to decode.
func sameMembers(s *Schema, t reflect.Type, at string) error {
	if s.Default != nil && strings.Count(at, "/") != 1 {
		return fmt.Errorf("%s: only a member of the root may have a default", at)
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == reflect.TypeFor[json.RawMessage](), t == reflect.TypeFor[any](),
		s.Type == "string" && t.Kind() == reflect.String,
		s.Type == "integer" && t == reflect.TypeFor[int64](),
		s.Type == "boolean" && t.Kind() == reflect.Bool,
		s.Type == "array" && t.Kind() == reflect.Slice && s.Items == nil,
		s.Type == "object" && t.Kind() == reflect.Map && s.Properties == nil:
		return nil
	case s.Type == "array" && t.Kind() == reflect.Slice:
		return sameMembers(s.Items, t.Elem(), at+"/*")
	case s.Type != "object" || t.Kind() != reflect.Struct:
		return fmt.Errorf("%s: %s bound to %s", at, s.Type, t)
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
