package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
)

// Validator judges the bytes of one JSON value.
type Validator struct {
	root           *node
	nulls, lenient bool
	values         int
}

// node is a schema prepared for one pass: no reflection, no map of keywords.
type node struct {
	kind                 string
	properties           map[string]*member
	required             []string // at most 64: object keeps them in a bit set
	closed               bool
	names                []string // of the properties, sorted, for whoever sends another
	items                *node
	minItems, maxItems   int
	minLength, maxLength int
	minimum, maximum     *float64
	enum                 []string
	pattern              *regexp.Regexp
	format               string
}

// member is a property of an object.
type member struct {
	node     *node
	required int // position in node.required, or -1
}

// Compile prepares a schema. It returns an error for a keyword that the
// validator does not enforce: better no tool than a bound that nobody checks.
func Compile(s *Schema) (*Validator, error) {
	root, err := compile(s, "")
	if err != nil {
		return nil, err
	}
	return &Validator{root: root, values: MaxValues(0)}, nil
}

// Bound lets an input hold as many values as a body of at most maxBody bytes may (MaxValues); without it those of the smallest.
func (v *Validator) Bound(maxBody int64) { v.values = MaxValues(maxBody) }

// compile prepares a schema and all below it; path is where it is, for an error.
func compile(s *Schema, path string) (*node, error) {
	if err := enforceable(s); err != nil {
		return nil, fmt.Errorf("schema %s: %w", orRoot(path), err)
	}
	n := &node{kind: s.Type, minimum: s.Minimum, maximum: s.Maximum, format: s.Format, maxItems: math.MaxInt, maxLength: math.MaxInt,
		required: s.Required}
	for at, bound := range map[*int]*int{
		&n.minItems: s.MinItems, &n.maxItems: s.MaxItems, &n.minLength: s.MinLength, &n.maxLength: s.MaxLength,
	} {
		if bound != nil {
			*at = *bound
		}
	}
	for _, v := range s.Enum {
		text, ok := v.(string)
		if !ok || s.Type != "string" {
			return nil, fmt.Errorf("schema %s: enum of strings only", orRoot(path))
		}
		n.enum = append(n.enum, text)
	}
	if s.Pattern != "" {
		re, err := regexp.Compile(s.Pattern)
		if err != nil {
			return nil, fmt.Errorf("schema %s: %w", orRoot(path), err)
		}
		n.pattern = re
	}
	for i, name := range s.Required {
		if s.Properties[name] == nil || slices.Contains(s.Required[:i], name) || i == 64 {
			return nil, fmt.Errorf("schema %s: required lists %q, which is no property, is there twice, or is one of more than 64",
				orRoot(path), name)
		}
	}
	n.closed = s.AdditionalProperties != nil
	if s.Properties != nil {
		n.properties = make(map[string]*member, len(s.Properties))
		for name, p := range s.Properties {
			child, err := compile(p, path+"/"+name)
			if err != nil {
				return nil, err
			}
			n.properties[name] = &member{node: child, required: slices.Index(s.Required, name)}
		}
	}
	n.names = slices.Sorted(maps.Keys(s.Properties))
	if s.Items != nil {
		items, err := compile(s.Items, path+"/*")
		if err != nil {
			return nil, err
		}
		n.items = items
	}
	return n, nil
}

// TakeNulls lets null stand for an optional member that is not there. What the schema says of itself stays as it is.
func (v *Validator) TakeNulls() { v.nulls = true }

func orRoot(path string) string {
	if path == "" {
		return "(root)"
	}
	return path
}

// enforced are the keywords that node knows; the rest of a schema may only annotate.
var enforced = map[string]bool{
	"type": true, "properties": true, "required": true, "additionalProperties": true, "items": true, "minItems": true, "maxItems": true,
	"minLength": true, "maxLength": true, "minimum": true, "maximum": true, "enum": true, "pattern": true, "format": true,
	"description": true, "default": true, "title": true, "examples": true, "$schema": true, "$comment": true, "deprecated": true,
}

// enforceable tells what of a schema itself the validator could not enforce.
func enforceable(s *Schema) error {
	b, err := json.Marshal(s)
	if err != nil {
		return err
	}
	var keywords map[string]json.RawMessage
	if err := json.Unmarshal(b, &keywords); err != nil {
		return err
	}
	for k := range keywords {
		if !enforced[k] {
			return fmt.Errorf("keyword %q is not enforced", k)
		}
	}
	if a := keywords["additionalProperties"]; a != nil && string(a) != "false" {
		return errors.New("additionalProperties must be false or absent")
	}
	switch s.Type {
	case "object", "array", "string", "integer", "boolean":
	default:
		return fmt.Errorf("type %q is not supported", s.Type)
	}
	if s.Format != "" {
		if _, known := formats[s.Format]; !known {
			return fmt.Errorf("format %q is unknown", s.Format)
		}
	}
	return nil
}
