package tooltest_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/schema"
	"hub.internal/pkg/tool"
	"hub.internal/pkg/tool/tooltest"
)

type in struct {
	Name    string          `json:"name"`
	Kind    string          `json:"kind"`
	Slug    string          `json:"slug"`
	Mail    string          `json:"mail"`
	Since   string          `json:"since"`
	Limit   int64           `json:"limit"`
	Offset  *int64          `json:"offset"`
	Flag    bool            `json:"flag"`
	Free    json.RawMessage `json:"free"`
	Codes   []string        `json:"codes"`
	Targets []struct {
		ID       string         `json:"id"`
		Snapshot map[string]any `json:"snapshot"`
	} `json:"targets"`
}

func input() *schema.Schema {
	return schema.Object(
		schema.Required("name", schema.String("", schema.Length(2, 200))),
		schema.Required("kind", schema.String("", schema.Enum("brand", "partner"))),
		schema.Optional("slug", schema.String("", schema.Length(1, 60), schema.Pattern("^[a-z0-9]+(-[a-z0-9]+)*$"))),
		schema.Optional("mail", schema.String("", schema.Format(schema.Email), schema.Length(0, 200))),
		schema.Optional("since", schema.String("", schema.Format(schema.ISODate))),
		schema.Optional("limit", schema.Integer("", schema.Range(1, 200), schema.Default(50))),
		schema.Optional("offset", schema.Integer("", schema.Min(0))),
		schema.Optional("flag", schema.Boolean("")),
		schema.Optional("free", schema.FreeObject("")),
		schema.Optional("codes", schema.Array("", schema.String("", schema.Length(0, 10)))),
		schema.Required("targets", schema.Array("", schema.Object(
			schema.Required("id", schema.String("", schema.Length(1, 200))),
			schema.Optional("snapshot", schema.FreeObject("")),
		), schema.Items(1, 500))),
	)
}

func spec(t testing.TB) tool.Spec {
	t.Helper()
	declared := tool.New(tool.Declaration{Name: "x", Category: tool.Author, Description: "x", Scope: "author", Position: 1, Input: input(),
		Examples: []tool.Example{{Title: "x", Request: json.RawMessage(`{"name":"win back","kind":"brand","targets":[{"id":"1"}]}`)}},
	}, func(context.Context, in) (string, error) { return "", nil })
	// As a manifest carries it.
	b, err := json.Marshal(declared.Spec)
	if err != nil {
		t.Fatal(err)
	}
	var s tool.Spec
	if err := json.Unmarshal(b, &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// holds tells whether a validator does with a case what the case expects.
func holds(c tooltest.Case, f *fault.Error) bool {
	if c.Valid() || f == nil {
		return c.Valid() == (f == nil)
	}
	return slices.ContainsFunc(f.Details.(map[string]any)["violations"].([]schema.Violation), func(v schema.Violation) bool {
		return v.Path == c.Path && v.Rule == c.Rule
	})
}

func TestCasesHoldForTheSchema(t *testing.T) {
	binding := schema.Bind[in](input())
	binding.Lenient()
	cases := tooltest.Bounds(t, spec(t))
	names, rules := map[string]bool{}, map[string]int{}
	for _, c := range cases {
		_, f := binding.Decode(t.Context(), c.Input)
		if !holds(c, f) {
			t.Errorf("%s: %v, want %q at %q\n%.300s", c.Name, f, c.Rule, c.Path, c.Input)
		}
		if names[c.Name] {
			t.Errorf("two cases are called %q", c.Name)
		}
		names[c.Name] = true
		rules[c.Rule]++
	}
	for _, rule := range []string{"", "type", "required", "additionalProperties", "minLength", "maxLength", "pattern", "format", "enum",
		"minimum", "maximum", "minItems", "maxItems", "json"} {
		if rules[rule] == 0 {
			t.Errorf("no case of rule %q in %d cases", rule, len(cases))
		}
	}
}

// TestCasesSeeEveryChange moves each bound by one: the cases of the right schema have to notice.
func TestCasesSeeEveryChange(t *testing.T) {
	cases := tooltest.Bounds(t, spec(t))
	for name, change := range map[string]func(*schema.Schema){
		"minLength less":   func(s *schema.Schema) { *s.Properties["name"].MinLength-- },
		"minLength more":   func(s *schema.Schema) { *s.Properties["name"].MinLength++ },
		"maxLength less":   func(s *schema.Schema) { *s.Properties["name"].MaxLength-- },
		"maxLength more":   func(s *schema.Schema) { *s.Properties["name"].MaxLength++ },
		"slug's length":    func(s *schema.Schema) { *s.Properties["slug"].MaxLength-- },
		"mail's length":    func(s *schema.Schema) { *s.Properties["mail"].MaxLength-- },
		"pattern gone":     func(s *schema.Schema) { s.Properties["slug"].Pattern = "" },
		"format gone":      func(s *schema.Schema) { s.Properties["since"].Format = "" },
		"enum grows":       func(s *schema.Schema) { s.Properties["kind"].Enum = append(s.Properties["kind"].Enum, "no such value") },
		"enum shrinks":     func(s *schema.Schema) { s.Properties["kind"].Enum = s.Properties["kind"].Enum[:1] },
		"minimum less":     func(s *schema.Schema) { *s.Properties["limit"].Minimum-- },
		"minimum more":     func(s *schema.Schema) { *s.Properties["limit"].Minimum++ },
		"maximum less":     func(s *schema.Schema) { *s.Properties["limit"].Maximum-- },
		"maximum more":     func(s *schema.Schema) { *s.Properties["limit"].Maximum++ },
		"offset's minimum": func(s *schema.Schema) { s.Properties["offset"].Minimum = nil },
		"minItems less":    func(s *schema.Schema) { *s.Properties["targets"].MinItems-- },
		"minItems more":    func(s *schema.Schema) { *s.Properties["targets"].MinItems++ },
		"maxItems less":    func(s *schema.Schema) { *s.Properties["targets"].MaxItems-- },
		"maxItems more":    func(s *schema.Schema) { *s.Properties["targets"].MaxItems++ },
		"required less":    func(s *schema.Schema) { s.Required = s.Required[1:] },
		"required more":    func(s *schema.Schema) { s.Required = append(s.Required, "flag") },
		"deep required":    func(s *schema.Schema) { s.Properties["targets"].Items.Required = nil },
		"open":             func(s *schema.Schema) { s.AdditionalProperties = nil },
		"deep open":        func(s *schema.Schema) { s.Properties["targets"].Items.AdditionalProperties = nil },
		"deep maxLength":   func(s *schema.Schema) { *s.Properties["targets"].Items.Properties["id"].MaxLength++ },
		"item's maxLength": func(s *schema.Schema) { *s.Properties["codes"].Items.MaxLength++ },
		"free object":      func(s *schema.Schema) { s.Properties["free"] = schema.Object() },
		"type":             func(s *schema.Schema) { s.Properties["flag"] = schema.Integer("") },
		"member gone":      func(s *schema.Schema) { delete(s.Properties, "flag") },
	} {
		changed := input()
		change(changed)
		v, err := schema.Compile(changed)
		if err != nil {
			t.Fatal(err)
		}
		v.Lenient()
		if !slices.ContainsFunc(cases, func(c tooltest.Case) bool { return !holds(c, v.Validate(t.Context(), c.Input)) }) {
			t.Errorf("no case notices: %s", name)
		}
	}
}

func TestCasesFitTheBodyCap(t *testing.T) {
	s := spec(t)
	all := len(tooltest.Bounds(t, s))
	s.MaxBody = 2000 // less than 500 targets
	some := tooltest.Bounds(t, s)
	for _, c := range some {
		if len(c.Input) > 2000 || strings.HasSuffix(c.Name, "than maxItems") {
			t.Errorf("%s has %d bytes", c.Name, len(c.Input))
		}
	}
	if len(some) >= all || len(some) < all/2 {
		t.Errorf("%d of %d cases", len(some), all)
	}
}
