package schema_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/schema"
)

// violations are what a caller reads in error.details.
func violations(f *fault.Error) []schema.Violation {
	if f == nil {
		return nil
	}
	return f.Details.(map[string]any)["violations"].([]schema.Violation)
}

func listed(f *fault.Error) []string {
	var out []string
	for _, v := range violations(f) {
		out = append(out, strings.TrimSpace(v.Path+" "+v.Rule))
	}
	return out
}

func TestEveryViolationIsListedInOrder(t *testing.T) {
	b := schema.Bind[everything](everythingSchema)
	for input, want := range map[string][]string{
		`{"text":"a"}`: nil,
		`{}`:           {"/text required"},
		`{"text":"","kind":"x","number":0,"maybe":null,"flag":1,"list":[],"free":[],"nested":{}}`: {
			"/text minLength", "/kind enum", "/number minimum", "/maybe type", "/flag type", "/list minItems", "/free type", "/nested type"},
		`{"text":"xxxxxx","when":"soon","mail":"nobody","number":11}`: {"/text maxLength", "/text pattern", "/when format", "/mail format",
			"/number maximum"},
		`{"list":[-1,"2",3.5,4],"text":"a"}`: {"/list/0 minimum", "/list/1 type", "/list/2 type", "/list maxItems"},
		`{"text":"a","nested":[{"id":"1"},{"deep":{"n":-1,"m":0}},{"id":null,"a/b~":1}]}`: {
			"/nested/1/deep/n minimum", "/nested/1/deep/m additionalProperties", "/nested/1/id required", "/nested/2/id type",
			"/nested/2/a~1b~0 additionalProperties"},
		`{"TEXT":"a"}`:                     {"/TEXT additionalProperties", "/text required"},
		`{"\u0074ext":"a"}`:                nil,
		`{"text":"a","free":{"any":[{}]}}`: nil,
		`[]`:                               {"type"},
		`"text"`:                           {"type"},
		`null`:                             {"type"},
		// Not strict JSON: one violation, where the text stops being JSON.
		``:                                      {"json"},
		`   `:                                   {"json"},
		`{"text":"a"} {}`:                       {"json"},
		`{"text":"a"}x`:                         {"json"},
		`{"text":"a","text":"b"}`:               {"/text json"},
		`{"text":"a","\u0074ext":"b"}`:          {"/text json"},
		`{"text":"a","free":{"b":1,"b":2}}`:     {"/free/b json"},
		`{"text":"a","zz":{"b":1,"b":2}}`:       {"/zz/b json"},
		`{"text":"a",}`:                         {"json"},
		`{'text':'a'}`:                          {"json"},
		`{"text":"\ud800"}`:                     {"/text json"},
		"{\"text\":\"\xff\"}":                   {"/text json"},
		"\ufeff{\"text\":\"a\"}":                {"json"},
		`{"text":"a","number":01}`:              {"json"},
		`{"text":"a","number":NaN}`:             {"/number json"},
		`{"text":"a","nested":[{"id":"1"}`:      {"/nested json"},
		`{"text":"a"` + "\x00" + `}`:            {"json"},
		`{"text":"a"/**/}`:                      {"json"},
		`{"text":"한국어다섯"}`:                      nil, // five characters, fifteen bytes
		`{"text":"😀😀😀😀😀"}`:                      nil,
		`{"text":"\ud83d\ude00😀😀😀😀😀"}`:          {"/text maxLength"},
		`{"text":"a","number":1.0,"maybe":1e2}`: nil,
	} {
		if got := listed(b.Validate(t.Context(), []byte(input))); !reflect.DeepEqual(got, want) {
			t.Errorf("%s\n got %q\nwant %q", input, got, want)
		}
	}
}

func TestAWrongTypeIsNamed(t *testing.T) {
	t.Parallel()
	b := schema.Bind[everything](everythingSchema)
	for value, want := range map[string]string{"7": `a number: write "7"`, "7.5": `a number: write "7.5"`, "null": "null",
		"true": `a boolean: write "true"`,
		"[]":   "an array", "{}": "an object"} {
		f := b.Validate(t.Context(), []byte(`{"text":`+value+`}`))
		if f == nil || violations(f)[0].Message != "must be a string, not "+want {
			t.Errorf("%s: %v", value, f)
		}
	}
}

func TestDeepNestingIsRefused(t *testing.T) {
	t.Parallel()
	b := schema.Bind[everything](everythingSchema)
	deep := `{"text":"a","free":` + strings.Repeat(`{"a":`, 20_000) + `1` + strings.Repeat(`}`, 20_001)
	if f := b.Validate(t.Context(), []byte(deep)); f == nil || violations(f)[0].Rule != "maxDepth" {
		t.Errorf("got %.200v", f)
	}
}

func TestFiftyViolationsAreListedAndAllCounted(t *testing.T) {
	v, err := schema.Compile(schema.Array("", schema.Boolean("")))
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{1, 49, 50, 51, 90_000} {
		f := v.Validate(t.Context(), []byte("[1"+strings.Repeat(",1", n-1)+"]"))
		if got := violations(f); len(got) != min(n, 50) || got[len(got)-1].Path != fmt.Sprintf("/%d", min(n, 50)-1) {
			t.Errorf("%d: %d listed, last %+v", n, len(got), got[len(got)-1])
		}
		if n > 1 && !strings.Contains(f.Message, fmt.Sprintf("(%d more", n-1)) {
			t.Errorf("%d: %s", n, f.Message)
		}
	}
	var many schema.Violations
	for range 70 {
		many.Add("/a", "rule", "must be another")
	}
	if f := fault.From(many.Err()); len(violations(f)) != 50 || !strings.Contains(f.Message, "69 more") {
		t.Errorf("Invalid: %v", f)
	}
}

// TestMillionsOfViolationsCostLittle: a body at the cap must not turn into gigabytes.
func TestMillionsOfViolationsCostLittle(t *testing.T) {
	v, err := schema.Compile(schema.Array("", schema.Boolean("")))
	if err != nil {
		t.Fatal(err)
	}
	body := []byte("[1" + strings.Repeat(",1", 1<<16) + "]")
	if perByte := float64(testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			v.Validate(t.Context(), body)
		}
	}).AllocedBytesPerOp()) / float64(len(body)); perByte > 40 {
		t.Errorf("%.1f bytes allocated for each byte of the body", perByte)
	}
}

func TestDefaultsHoldForAbsentMembersOnly(t *testing.T) {
	b := schema.Bind[everything](everythingSchema)
	decode := func(input string) everything {
		t.Helper()
		in, f := b.Decode(t.Context(), []byte(input))
		if f != nil {
			t.Fatal(f)
		}
		return in
	}
	in := decode(`{"text":"a"}`)
	if in.Kind != "brand" || in.Number != 7 || !in.Flag || !reflect.DeepEqual(in.List, []int64{1, 2}) || in.Maybe != nil ||
		in.Mail != nil ||
		in.Nested != nil {
		t.Errorf("got %+v", in)
	}
	in.List[0] = 99 // what a call does with its input stays its own
	if in = decode(
		`{"text":"a","list":[3],"flag":false,"maybe":0,"number":1,"kind":"partner"}`,
	); in.List[0] != 3 || len(in.List) != 1 || in.Flag || in.Maybe == nil || *in.Maybe != 0 || in.Number != 1 ||
		in.Kind != "partner" {
		t.Errorf("got %+v", in)
	}
	if in = decode(`{"text":"a"}`); !reflect.DeepEqual(in.List, []int64{1, 2}) {
		t.Errorf("a default has changed: %v", in.List)
	}
}

func TestDecodeKeepsWhatWasSent(t *testing.T) {
	b := schema.Bind[everything](everythingSchema)
	in, f := b.Decode(
		t.Context(),
		[]byte(
			`{"text":"é\n\u00e9","free":{"n":12345678901234567890.10, "s":"<&>"},"nested":[{"id":"1","bag":{"k":[1,null]},"deep":{"n":2.0}}]}`,
		),
	)
	if f != nil {
		t.Fatal(f)
	}
	if in.Text != "é\né" || string(in.Free) != `{"n":12345678901234567890.10, "s":"<&>"}` || in.Nested[0].Deep.N != 2 ||
		!reflect.DeepEqual(in.Nested[0].Bag["k"], []any{1.0, nil}) {
		t.Errorf("got %+v, free %s", in, in.Free)
	}
}

func TestBindPanicsOnMismatch(t *testing.T) {
	str, num := schema.String(""), schema.Integer("")
	one := func(s *schema.Schema, o ...schema.Option) *schema.Schema {
		for _, option := range o {
			option(s)
		}
		return schema.Object(schema.Optional("a", s))
	}
	for name, bind := range map[string]func(){
		"schema member without field": func() { schema.Bind[struct{}](one(str)) },
		"field without schema member": func() { schema.Bind[struct{ A, B string }](schema.Object()) }, // no tags: no members
		"other name": func() {
			schema.Bind[struct {
				A string `json:"A"`
			}](one(str))
		},
		"extra field": func() {
			schema.Bind[struct {
				A string `json:"a"`
				B string `json:"b"`
			}](one(str))
		},
		"string to number": func() {
			schema.Bind[struct {
				A int64 `json:"a"`
			}](one(str))
		},
		"number to string": func() {
			schema.Bind[struct {
				A string `json:"a"`
			}](one(num))
		},
		"number to int": func() {
			schema.Bind[struct {
				A int `json:"a"`
			}](one(num))
		},
		"object to string": func() {
			schema.Bind[struct {
				A string `json:"a"`
			}](one(schema.FreeObject("")))
		},
		"deep": func() {
			schema.Bind[struct {
				A []struct {
					B string `json:"b"`
				} `json:"a"`
			}](one(schema.Array("", schema.Object(schema.Optional("c", str)))))
		},
		"default out of bounds": func() {
			schema.Bind[struct {
				A int64 `json:"a"`
			}](one(schema.Integer("", schema.Range(1, 2), schema.Default(3))))
		},
		"default of another type": func() {
			schema.Bind[struct {
				A string `json:"a"`
			}](one(schema.String("", schema.Default(3))))
		},
		"default below the root": func() {
			schema.Bind[struct {
				A struct {
					B int64 `json:"b"`
				} `json:"a"`
			}](one(schema.Object(schema.Optional("b", schema.Integer("", schema.Default(1))))))
		},
		"root is no struct": func() { schema.Bind[string](one(str)) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if p := recover(); (p == nil) != (name == "field without schema member") {
					t.Errorf("panic: %v", p)
				}
			}()
			bind()
		})
	}
}

func TestWhatCannotBeEnforcedIsRefused(t *testing.T) {
	five := 5
	required := func(n int) *schema.Schema {
		var members []schema.Property
		for i := range n {
			members = append(members, schema.Required(fmt.Sprint("m", i), schema.Boolean("")))
		}
		return schema.Object(members...)
	}
	for name, s := range map[string]*schema.Schema{
		"no type":                  {},
		"number":                   {Type: "number"},
		"two types":                {Types: []string{"string", "null"}},
		"uniqueItems":              {Type: "array", UniqueItems: true},
		"minProperties":            {Type: "object", MinProperties: &five},
		"oneOf":                    {Type: "object", OneOf: []*schema.Schema{{Type: "object"}}},
		"open additional":          {Type: "object", AdditionalProperties: &schema.Schema{Type: "string"}},
		"unknown format":           schema.String("", schema.Format("uri")),
		"bad pattern":              schema.String("", schema.Pattern("(")),
		"enum of an integer":       schema.Integer("", schema.Enum("1")),
		"enum of numbers":          {Type: "string", Enum: []any{1}},
		"required without member":  {Type: "object", Required: []string{"a"}},
		"required twice":           {Type: "object", Properties: map[string]*schema.Schema{"a": {Type: "string"}}, Required: []string{"a", "a"}},
		"65 required":              required(65),
		"deep inside":              schema.Object(schema.Optional("a", schema.Array("", &schema.Schema{Type: "null"}))),
		"property named but false": schema.Object(schema.Optional("a", &schema.Schema{Not: &schema.Schema{}})),
	} {
		if _, err := schema.Compile(s); err == nil {
			t.Errorf("%s: compiled", name)
		}
	}
	v, err := schema.Compile(required(64))
	if err != nil {
		t.Fatal(err)
	}
	if got := listed(v.Validate(t.Context(), []byte(`{"m62":true}`))); len(got) != 50 || got[0] != "/m0 required" {
		t.Errorf("64 required: %v", got)
	}
}

func TestOutputSchemaHasListsThatAreNeverNull(t *testing.T) {
	type out struct {
		Rows []struct {
			Tags []string `json:"tags"`
		} `json:"rows"`
		Raw json.RawMessage `json:"raw" jsonschema:"what it is"`
	}
	b, err := json.Marshal(schema.Of[out]())
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(b), "null") || !strings.Contains(string(b), "what it is") {
		t.Errorf("got %s", b)
	}
}
