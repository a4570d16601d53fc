package schema_test

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"hub.internal/pkg/schema"
)

// TestAgreesWithLibrary holds the streaming validator to the verdicts of
// google/jsonschema-go, which judges decoded values. Formats, which are Hub's own, and
// numbers beyond 64 bits, which that library accepts, stay out.
func TestAgreesWithLibrary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anySchema(t, 3)
		ours, err := schema.Compile(s)
		if err != nil {
			t.Fatal(err)
		}
		theirs, err := s.Resolve(nil)
		if err != nil {
			t.Fatal(err)
		}
		for range 10 {
			text := textFor(t, s, 3)
			var value any
			if err := json.Unmarshal([]byte(text), &value); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			f, err := ours.Validate(t.Context(), []byte(text)), theirs.Validate(value)
			if (f == nil) != (err == nil) {
				b, _ := json.Marshal(s)
				t.Fatalf("schema %s\nvalue %s\nours: %v\ntheirs: %v", b, text, f, err)
			}
		}
	})
}

var names = []string{"a", "b", "long name", "d/e", "~", "이름"}

func anySchema(t *rapid.T, depth int) *schema.Schema {
	kinds := []string{"string", "integer", "boolean"}
	if depth > 0 {
		kinds = append(kinds, "array", "object", "object", "free")
	}
	switch rapid.SampledFrom(kinds).Draw(t, "kind") {
	case "string":
		options := []schema.Option{schema.Length(rapid.IntRange(0, 3).Draw(t, "minLength"), rapid.IntRange(0, 4).Draw(t, "maxLength"))}
		if rapid.Bool().Draw(t, "has enum") {
			options = append(options, schema.Enum(rapid.SliceOfNDistinct(rapid.SampledFrom(words), 1, 3, rapid.ID).Draw(t, "enum")...))
		}
		if rapid.Bool().Draw(t, "has pattern") {
			options = append(options, schema.Pattern(rapid.SampledFrom([]string{"^[a-z]+$", "é", "^.{2}$", "b"}).Draw(t, "pattern")))
		}
		return schema.String("", options...)
	case "integer":
		bounds := []schema.Option{nil, schema.Min(float64(rapid.IntRange(-3, 3).Draw(t, "min"))),
			schema.Range(float64(rapid.IntRange(-3, 3).Draw(t, "low")), float64(rapid.IntRange(-3, 3).Draw(t, "high")))}
		if option := rapid.SampledFrom([]int{0, 1, 2}).Draw(t, "bounds"); option > 0 {
			return schema.Integer("", bounds[option])
		}
		return schema.Integer("")
	case "boolean":
		return schema.Boolean("")
	case "free":
		return schema.FreeObject("")
	case "array":
		return schema.Array(
			"",
			anySchema(t, depth-1),
			schema.Items(rapid.IntRange(0, 2).Draw(t, "minItems"), rapid.IntRange(0, 3).Draw(t, "maxItems")),
		)
	}
	var members []schema.Property
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, 4, rapid.ID).Draw(t, "members") {
		members = append(members, schema.Property{Name: name, Schema: anySchema(t, depth-1), Required: rapid.Bool().Draw(t, "required")})
	}
	return schema.Object(members...)
}

var words = []string{"", "a", "ab", "abc", "abcd", "é", "日本", "😀", "a\u0000", `"\/`, "B"}

// textFor writes a value that mostly has the schema's shape, so that bounds decide.
func textFor(t *rapid.T, s *schema.Schema, depth int) string {
	kind := s.Type
	if rapid.IntRange(0, 7).Draw(t, "stray") == 0 {
		kind = rapid.SampledFrom([]string{"string", "integer", "boolean", "array", "object", "null", "fraction"}).Draw(t, "other kind")
	}
	switch kind {
	case "string":
		word := rapid.SampledFrom(words).Draw(t, "word")
		if rapid.Bool().Draw(t, "escaped") {
			return escaped(word)
		}
		b, _ := json.Marshal(word)
		return string(b)
	case "integer":
		return spelled(t, rapid.Int64Range(-4, 4).Draw(t, "whole"))
	case "fraction":
		return rapid.SampledFrom([]string{"0.5", "-1.25", "15e-1", "1e-30", "0.1e0"}).Draw(t, "fraction")
	case "boolean":
		return strconv.FormatBool(rapid.Bool().Draw(t, "bool"))
	case "null":
		return "null"
	case "array":
		items := s.Items
		if items == nil {
			items = schema.Integer("")
		}
		parts := make([]string, rapid.IntRange(0, 4).Draw(t, "length"))
		for i := range parts {
			parts[i] = textFor(t, items, depth-1)
		}
		return "[" + strings.Join(parts, rapid.SampledFrom([]string{",", " ,\n"}).Draw(t, "gap")) + "]"
	}
	parts := []string{}
	for _, name := range names {
		p := s.Properties[name]
		if p == nil && rapid.IntRange(0, 9).Draw(t, "unknown") > 0 || p != nil && rapid.IntRange(0, 5).Draw(t, "absent") == 0 {
			continue
		}
		if p == nil {
			p = schema.String("")
		}
		text := escaped(name)
		if rapid.Bool().Draw(t, "plain name") {
			b, _ := json.Marshal(name)
			text = string(b)
		}
		parts = append(parts, text+": "+textFor(t, p, depth-1))
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// escaped writes every character as \uXXXX.
func escaped(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r > 0xffff {
			r -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04X`, 0xd800+r>>10, 0xdc00+r&0x3ff)
			continue
		}
		fmt.Fprintf(&b, `\u%04x`, r)
	}
	return `"` + b.String() + `"`
}

func spelled(t *rapid.T, i int64) string {
	plain := strconv.FormatInt(i, 10)
	return rapid.SampledFrom(
		[]string{plain, plain + ".0", plain + ".00e0", plain + "e+0", plain + "E-0", strconv.FormatInt(i*1000, 10) + ".0e-3"},
	).Draw(
		t,
		"spelling",
	)
}

// TestIntegersAreExact compares with math/big, however the number is written.
func TestIntegersAreExact(t *testing.T) {
	type in struct {
		N int64 `json:"n"`
	}
	b := schema.Bind[in](schema.Object(schema.Required("n", schema.Integer(""))))
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,22})?([eE][+-]?[0-9]{1,2})?`).Draw(t, "number")
		exact, ok := new(big.Rat).SetString(text)
		if !ok {
			t.Skip("not a number")
		}
		got, f := b.Decode(t.Context(), []byte(`{"n":`+text+`}`))
		valid := exact.IsInt() && exact.Num().IsInt64()
		switch {
		case valid != (f == nil):
			t.Fatalf("%s: %v", text, f)
		case valid && got.N != exact.Num().Int64():
			t.Fatalf("%s was read as %d", text, got.N)
		case !valid && violations(f)[0].Rule != wantRule(exact):
			t.Fatalf("%s: %v", text, violations(f))
		}
	})
}

func wantRule(r *big.Rat) string {
	switch {
	case !r.IsInt():
		return "type"
	case r.Sign() < 0:
		return "minimum"
	}
	return "maximum"
}

// TestNumbersCostNoMore tries what makes arbitrary precision expensive.
func TestNumbersCostNoMore(t *testing.T) {
	v, err := schema.Compile(schema.Integer(""))
	if err != nil {
		t.Fatal(err)
	}
	zeros := strings.Repeat("0", 1<<20)
	for text, valid := range map[string]bool{
		"1." + zeros: true, "1" + zeros: false, "0." + zeros + "1e" + strconv.Itoa(len(zeros)+1): true, "1" + zeros + "e-" +
			strconv.Itoa(len(zeros)): true,
		"1e999999999": false, "1e-999999999": false, "0e999999999999999999999": true, "1e999999999999999999999": false,
		"1e-999999999999999999999": false,
		"9223372036854775807":      true, "9223372036854775808": false, "-9223372036854775808": true, "9223372036854775807.0": true,
		"922337203685477580.8e1": false,
	} {
		if f := v.Validate(t.Context(), []byte(text)); (f == nil) != valid {
			t.Errorf("%.40s…: %v, want valid %v", text, f, valid)
		}
	}
}

type everything struct {
	Text   string          `json:"text"`
	When   string          `json:"when"`
	Mail   *string         `json:"mail"`
	Kind   string          `json:"kind"`
	Number int64           `json:"number"`
	Maybe  *int64          `json:"maybe"`
	Flag   bool            `json:"flag"`
	List   []int64         `json:"list"`
	Free   json.RawMessage `json:"free"`
	Nested []struct {
		ID   string         `json:"id"`
		Bag  map[string]any `json:"bag"`
		Deep *struct {
			N int64 `json:"n"`
		} `json:"deep"`
	} `json:"nested"`
}

var everythingSchema = schema.Object(
	schema.Required("text", schema.String("", schema.Length(1, 5), schema.Pattern("^[^x]*$"))),
	schema.Optional("when", schema.String("", schema.Format(schema.ISODate))),
	schema.Optional("mail", schema.String("", schema.Format(schema.Email))),
	schema.Optional("kind", schema.String("", schema.Enum("brand", "partner"), schema.Default("brand"))),
	schema.Optional("number", schema.Integer("", schema.Range(1, 10), schema.Default(7))),
	schema.Optional("maybe", schema.Integer("")),
	schema.Optional("flag", schema.Boolean("", schema.Default(true))),
	schema.Optional("list", schema.Array("", schema.Integer("", schema.Min(0)), schema.Items(1, 3), schema.Default([]int{1, 2}))),
	schema.Optional("free", schema.FreeObject("")),
	schema.Optional("nested", schema.Array("", schema.Object(
		schema.Required("id", schema.String("")),
		schema.Optional("bag", schema.FreeObject("")),
		schema.Optional("deep", schema.Object(schema.Required("n", schema.Integer("", schema.Min(0))))),
	), schema.Items(0, 100))),
)

// FuzzValidate: no input panics, the verdict is always the same, and what passes decodes.
func FuzzValidate(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, `{"text":"a"}`, `{"text":"a","number":1.0e0,"list":[1],"nested":[{"id":"","bag":{"a":[1,{}]},"deep":{"n":0}}]}`,
		`{"text":"a","text":"b"}`, `{"text":"a"}}`, `{"text":"\ud83d\ude00"}`, `{"text":"\ud800"}`, "{\"text\":\"\xff\"}", `{"\u0074ext":"a"}`,
		`[`, `{"text":`, `{"number":1e400}`, `{"text":"a","free":{"x":1,"x":2}}`, `{"text":"a","when":"2026-02-30","mail":"a@b"}`, `nullnull`,
	} {
		f.Add([]byte(seed))
	}
	b := schema.Bind[everything](everythingSchema)
	f.Fuzz(func(t *testing.T, input []byte) {
		before := string(input)
		first, second := b.Validate(t.Context(), input), b.Validate(t.Context(), input)
		if fmt.Sprint(first) != fmt.Sprint(second) || string(input) != before {
			t.Fatalf("%q: once %v, once %v", input, first, second)
		}
		in, err := b.Decode(t.Context(), input)
		if fmt.Sprint(err) != fmt.Sprint(first) {
			t.Fatalf("%q is valid (%v) and does not decode: %v", input, first, err)
		}
		if first != nil {
			if found := violations(first); len(found) == 0 || len(found) > schema.MaxViolations {
				t.Fatalf("%q: %d violations", input, len(found))
			}
			return
		}
		if !json.Valid(input) || !utf8.Valid(input) || len(in.Text) == 0 || in.Number < 1 || len(in.List) == 0 {
			t.Fatalf("%q passed as %+v", input, in)
		}
	})
}
