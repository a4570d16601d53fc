// Package contract holds both ends of an operation between services to what its owner declares
// in deploy/catalog.json, so that neither a client nor a test's stand-in for a neighbour drifts from
// the truth. It refuses to know any operation by name.
package contract

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/remote"
	"hub.internal/pkg/schema"
	"hub.internal/pkg/tool"
)

// operation is what the catalog has of one.
type operation struct {
	tool.OperationSpec
	input, output *schema.Schema
}

// Clients holds what caller's clients of owner take for granted to what owner declares: that the
// operation exists and takes caller, that it knows each member that is sent and gets all that it
// requires, and that it answers each member that is read, with a type that fits.
func Clients(t testing.TB, caller, owner string, clients ...remote.Contract) {
	t.Helper()
	if len(clients) == 0 {
		t.Errorf("%s has no client of %s", caller, owner)
	}
	for _, c := range clients {
		o, err := find(hubtest.Root(t), owner, c.Path)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, problem := range o.client(caller, c) {
			t.Errorf("%s's client of %s %s: %s", caller, owner, c.Path, problem)
		}
	}
}

// client lists in what a client takes for granted what the operation does not declare.
func (o operation) client(caller string, c remote.Contract) (problems []string) {
	if !slices.Contains(o.Callers, caller) {
		problems = append(problems, fmt.Sprintf("it takes %v alone", o.Callers))
	}
	return append(append(problems, sent(c.Sent, o.input, "sent")...), read(c.Read, o.output, "read")...)
}

// load reads the catalog of the repository at root.
func load(root string) (catalog tool.Catalog, err error) {
	b, err := os.ReadFile(filepath.Join(root, "deploy", "catalog.json"))
	if err != nil {
		return catalog, err
	}
	if err := json.Unmarshal(b, &catalog); err != nil {
		return catalog, fmt.Errorf("deploy/catalog.json: %w", err)
	}
	return catalog, nil
}

// find is the operation in the catalog of the repository at root.
// An operation that no manifest has is an error that says how the catalog is made.
func find(root, owner, path string) (o operation, err error) {
	catalog, err := load(root)
	if err != nil {
		return o, err
	}
	for _, m := range catalog.Manifests {
		for _, spec := range m.Operations {
			if m.Service != owner || spec.Path != path {
				continue
			}
			o = operation{spec, new(schema.Schema), new(schema.Schema)}
			if err := json.Unmarshal(spec.Input, o.input); err != nil {
				return o, fmt.Errorf("%s: input schema: %w", path, err)
			}
			if err := json.Unmarshal(spec.Output, o.output); err != nil {
				return o, fmt.Errorf("%s: output schema: %w", path, err)
			}
			return o, nil
		}
	}
	return o, fmt.Errorf("deploy/catalog.json has no operation %s of %s; `make catalog` derives it from the services", path, owner)
}

// sent lists in what a value of one type breaks the declaration of what takes it.
func sent(s, declared *schema.Schema, at string) []string { return mismatches(s, declared, at, true) }

// read lists in what a type cannot hold what is declared of a value that it is read from. Members
// that it leaves unread are none, and null leaves it as it is.
func read(r, declared *schema.Schema, at string) []string { return mismatches(r, declared, at, false) }

// mismatches compares a type with a declaration, member by member: values of the type go to what is declared (sends), or come from it.
// at is where in the value this is, as a path for the message.
func mismatches(s, declared *schema.Schema, at string, sends bool) (problems []string) {
	if unknown(s) || unknown(declared) {
		return nil
	}
	from, to, is := declared, s, "is read as"
	if sends {
		from, to, is = s, declared, "is"
	}
	for _, kind := range kinds(from) {
		if !accepts(to, kind) && (sends || kind != "null") {
			return []string{fmt.Sprintf("%s %s %v, declared is %v", at, is, kinds(s), kinds(declared))}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if p := declared.Properties[name]; p != nil {
			problems = append(problems, mismatches(s.Properties[name], p, at+"/"+name, sends)...)
		} else if declared.AdditionalProperties != nil {
			problems = append(problems, fmt.Sprintf("%s/%s is not declared", at, name))
		}
	}
	if sends && s.Properties != nil {
		for _, name := range declared.Required {
			if !slices.Contains(s.Required, name) {
				problems = append(problems, fmt.Sprintf("%s/%s is required and may be absent", at, name))
			}
		}
	}
	if s.Items != nil && declared.Items != nil {
		problems = append(problems, mismatches(s.Items, declared.Items, at+"/*", sends)...)
	}
	return problems
}

// unknown tells that a type says nothing of its values: any, or JSON as it is.
func unknown(s *schema.Schema) bool { return s.Type == "" && len(s.Types) == 0 }

// kinds are the JSON types that a schema takes.
func kinds(s *schema.Schema) []string {
	if s.Type != "" {
		return []string{s.Type}
	}
	return s.Types
}

// accepts tells whether a schema takes a JSON type; a number may be whole.
func accepts(s *schema.Schema, kind string) bool {
	return slices.Contains(kinds(s), kind) || kind == "integer" && slices.Contains(kinds(s), "number")
}
