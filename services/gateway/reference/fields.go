package reference

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"hub.internal/pkg/jsontree"
)

// field is a member of an input or of data, as a line of a table.
// Kind is its type in words, Bounds what of the type is allowed, Default the JSON of its default.
type field struct {
	// Name is its place: targets[].externalId.
	Name, Kind, Bounds, Default, Text string
	Required                          bool
	// In says where a request has it: path, query or body.
	In string
}

// node is as much of a schema as the page shows.
// What it leaves out, such as $ref or allOf, no tool declares in a place that the page shows.
type node struct {
	Type                 any                        `json:"type"`
	Title                string                     `json:"title"`
	Description          string                     `json:"description"`
	Properties           map[string]json.RawMessage `json:"properties"`
	Required             []string                   `json:"required"`
	Items                json.RawMessage            `json:"items"`
	AnyOf                []json.RawMessage          `json:"anyOf"`
	Enum                 []any                      `json:"enum"`
	Default              json.RawMessage            `json:"default"`
	Minimum, Maximum     *json.Number
	MinLength, MaxLength *json.Number
	MinItems, MaxItems   *json.Number
	Pattern, Format      string
}

// read reads a schema; true and false are schemas too (JSON Schema 2020-12), and say nothing that a page could show.
func read(raw json.RawMessage) (n node, err error) {
	if len(raw) > 0 && raw[0] == '{' {
		err = json.Unmarshal(raw, &n)
	}
	return n, err
}

// fields are the members of an object's schema, and theirs, in the order in which they are declared.
// prefix is the place of the object: empty for the input itself, "targets[]." for the entries of a list.
func fields(raw json.RawMessage, prefix string) ([]field, error) {
	n, err := read(raw)
	if err != nil {
		return nil, err
	}
	names, err := members(raw)
	if err != nil {
		return nil, err
	}
	var all []field
	for _, name := range names {
		member, err := read(n.Properties[name])
		if err != nil {
			return nil, err
		}
		below, kind, path, inner := n.Properties[name], kindOf(member.Type), prefix+name, member
		// A list of lists of strings is "array of array of string"; what its entries allow is told in the same line.
		for len(inner.Items) > 0 {
			below, path = inner.Items, path+"[]"
			if inner, err = read(below); err != nil {
				return nil, err
			}
			kind += " of " + kindOf(inner.Type)
		}
		bounds := member.bounds()
		if path != prefix+name {
			bounds = append(bounds, inner.bounds()...)
		}
		all = append(all, field{Name: prefix + name, Kind: kind, Bounds: strings.Join(bounds, "; "), Default: string(member.Default),
			Text: joinTexts(member.Description, inner.Description), Required: slices.Contains(n.Required, name)})
		more, err := fields(below, path+".")
		if err != nil {
			return nil, err
		}
		all = append(all, more...)
	}
	return all, nil
}

// joinTexts joins what is said of a list and of its entries.
func joinTexts(texts ...string) string {
	return strings.Join(slices.Compact(slices.DeleteFunc(texts, func(s string) bool { return s == "" })), " ")
}

// alternatives are the tables of a schema: one, or one for each of what it may be.
// What has no members, such as null, has no table.
func alternatives(raw json.RawMessage) ([][]field, error) {
	n, err := read(raw)
	if err != nil {
		return nil, err
	}
	if len(n.AnyOf) == 0 {
		n.AnyOf = []json.RawMessage{raw}
	}
	var all [][]field
	for _, one := range n.AnyOf {
		list, err := fields(one, "")
		if err != nil {
			return nil, err
		}
		if len(list) > 0 {
			all = append(all, list)
		}
	}
	return all, nil
}

// kindOf is a type in words: "string", "string or null", "anything".
func kindOf(t any) string {
	switch t := t.(type) {
	case string:
		return t
	case []any:
		var names []string
		for _, one := range t {
			names = append(names, fmt.Sprint(one))
		}
		if i := slices.Index(names, "null"); i >= 0 { // null comes last
			names = append(slices.Delete(names, i, i+1), "null")
		}
		return strings.Join(names, " or ")
	}
	return "anything"
}

// bounds say in words what of the type is allowed: values, range, length, pattern and format.
// An example: "one of asc, desc", "1 to 200", "at most 100 characters", "format date".
func (n node) bounds() (all []string) {
	if len(n.Enum) > 0 {
		var values []string
		for _, v := range n.Enum {
			values = append(values, fmt.Sprint(v))
		}
		all = append(all, "one of "+strings.Join(values, ", "))
	}
	// The numbers are json.Number, so that they are shown as they were declared.
	span := func(least, most *json.Number, unit string) {
		switch {
		case least != nil && most != nil:
			all = append(all, string(*least)+" to "+string(*most)+unit)
		case least != nil:
			all = append(all, "at least "+string(*least)+unit)
		case most != nil:
			all = append(all, "at most "+string(*most)+unit)
		}
	}
	span(n.Minimum, n.Maximum, "")
	span(n.MinLength, n.MaxLength, " characters")
	span(n.MinItems, n.MaxItems, " entries")
	if n.Pattern != "" {
		all = append(all, "matches "+n.Pattern)
	}
	if n.Format != "" {
		all = append(all, "format "+n.Format)
	}
	return all
}

// members are the names of an object schema's properties, in the order in which they are declared.
// encoding/json keeps no order in a map, hence jsontree.
func members(raw json.RawMessage) ([]string, error) {
	if len(raw) == 0 || raw[0] != '{' {
		return nil, nil
	}
	var s struct{ Properties json.RawMessage }
	if err := json.Unmarshal(raw, &s); err != nil || len(s.Properties) == 0 {
		return nil, err
	}
	properties, err := jsontree.Members(s.Properties)
	names := make([]string, len(properties))
	for i, p := range properties {
		names[i] = p.Name
	}
	return names, err
}
