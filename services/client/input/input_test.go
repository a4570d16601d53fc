package input_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"testing"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/tool"
	"hub.internal/services/client"
	"hub.internal/services/client/input"
	"hub.internal/services/client/manual"
)

const schema = `{"type":"object","additionalProperties":false,"required":["s"],"properties":{
	"s":{"type":"string"},"i":{"type":"integer"},"n":{"type":["number","null"]},"b":{"type":"boolean"},"o":{"type":"object"},
	"ss":{"type":"array","items":{"type":"string"}},"is":{"type":"array","items":{"type":"integer"}},
	"os":{"type":"array","items":{"type":"object"}},"any":{},"both":{"type":["string","integer"]}}}`

func toolOf(t *testing.T, schema string) *client.Tool {
	t.Helper()
	of := &client.Tool{Name: "t", Input: &client.Schema{}}
	if err := json.Unmarshal([]byte(schema), of.Input); err != nil {
		t.Fatal(err)
	}
	return of
}

var files = input.Files{
	Stdin: func() ([]byte, error) { return []byte(`{"s":"stdin"}`), nil },
	Read: func(name string) ([]byte, error) {
		b, there := map[string]string{"text": "SELECT 1;\r\n", "list": "\ufeff[1,\n2]\n", "object": "{\"a\": [1]}\n", "latin": "\xe9"}[name]
		if !there {
			return nil, os.ErrNotExist
		}
		return []byte(b), nil
	},
}

func TestMake(t *testing.T) {
	t.Parallel()
	of := toolOf(t, schema)
	for _, c := range []struct{ args, want string }{
		{"s=12", `{"s":"12"}`},
		{"s=", `{"s":""}`},
		{"s=a=b", `{"s":"a=b"}`},
		{"s=true", `{"s":"true"}`},
		{"s=null", `{"s":"null"}`},
		{`s={"a":1}`, `{"s":"{\"a\":1}"}`},
		{"s=@text", `{"s":"SELECT 1;"}`},
		{"s=@@text", `{"s":"@text"}`},
		{"s=@-", `{"s":"{\"s\":\"stdin\"}"}`},
		{"s=x i=12", `{"i":12,"s":"x"}`},
		{"s=x i=123456789012345678901", `{"i":123456789012345678901,"s":"x"}`},
		{"s=x n=-1.5e3", `{"n":-1.5e3,"s":"x"}`},
		{"s=x n=null", `{"n":null,"s":"x"}`},
		{"s=x b=true", `{"b":true,"s":"x"}`},
		{`s=x o={"a":{}}`, `{"o":{"a":{}},"s":"x"}`},
		{"s=x o=@object", `{"o":{"a":[1]},"s":"x"}`},
		{"s=x ss=a,b", `{"s":"x","ss":["a","b"]}`},
		{"s=x ss=1", `{"s":"x","ss":["1"]}`},
		{"s=x ss=a ss=b,c", `{"s":"x","ss":["a","b","c"]}`},
		{"s=x ss=", `{"s":"x","ss":[]}`},
		{`s=x ss=["a,b"]`, `{"s":"x","ss":["a,b"]}`},
		{"s=x is=1,2", `{"is":[1,2],"s":"x"}`},
		{"s=x is=@list is=3", `{"is":[1,2,3],"s":"x"}`},
		{`s=x os={"a":1} os={"b":2},{"c":3}`, `{"os":[{"a":1},{"b":2},{"c":3}],"s":"x"}`},
		{"s=x any=5", `{"any":5,"s":"x"}`},
		{"s=x any=five", `{"any":"five","s":"x"}`},
		{"s=x both=5", `{"both":5,"s":"x"}`},
		{`{"z":1}`, `{"z":1}`},
		{"-", `{"s":"stdin"}`},
		{"@object", `{"a": [1]}`},
		{`{"s":"a","i":1} s=b`, `{"i":1,"s":"b"}`},
	} {
		got, err := input.Make(of, strings.Fields(c.args), files)
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %s %v, want %s", c.args, got, err, c.want)
		}
	}
}

func TestMisuse(t *testing.T) {
	t.Parallel()
	of := toolOf(t, schema)
	for args, want := range map[string]string{
		"":                "t needs s",
		"i=1":             "t needs s",
		"s=x i=x":         "i has to be a number (integer)",
		"s=x i=05":        "i has to be a number",
		"s=x i=":          "i has to be a number",
		"s=x b=yes":       "b has to be true or false",
		"s=x o=1":         "o is JSON but no object",
		"s=x o={":         "o is no JSON",
		"s=x is=1,x":      "is has to be a number",
		"s=x os={},":      "os is no JSON",
		"s=x sss=1":       `did you mean ss?`,
		"s=x other=1":     "its fields are s, i, n, b",
		"s=x s=y":         "s is given twice",
		"=x":              "neither name=value nor",
		"x":               "neither name=value nor",
		"{} {}":           "a second input",
		"[]":              "the input is JSON but no object",
		"{}x":             "the input is no JSON",
		"s=\xff":          "s is not UTF-8",
		"s=@latin":        "s is not UTF-8",
		"@latin":          "latin is not UTF-8",
		"s=x os=@text":    "text is no JSON",
		"{\"s\":1} what=": "has no field",
	} {
		if got, err := input.Make(
			of,
			strings.Fields(args),
			files,
		); !fault.Is(err, fault.Validation) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %s %v, want %s", args, got, err, want)
		}
	}
	if _, err := input.Make(of, []string{"s=@nowhere"}, files); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "s=@@") {
		t.Error(err)
	}
	if _, err := input.Make(
		toolOf(t, `{"additionalProperties":false}`),
		[]string{"a=1"},
		files,
	); err == nil ||
		err.Error() != "E_VALIDATION: t has no fields" {
		t.Error(err)
	}
}

// TestExamplesAreCommands: each example of the catalog is written as a command that a shell reads back as that example.
func TestExamplesAreCommands(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("../../../deploy/catalog.json")
	if err != nil {
		t.Fatal(err)
	}
	var catalog tool.Catalog
	if err := json.Unmarshal(b, &catalog); err != nil {
		t.Fatal(err)
	}
	odd := map[string]json.RawMessage{
		`{"s":"it's \"$HOME\" ` + "`x`" + ` \\ ; & 뷰티"}`: []byte(
			schema,
		),
		`{"s":"@home"}`:                            []byte(schema),
		`{"s":"","ss":["a,b"," c","@d"]}`:          []byte(schema),
		`{"s":"a","ss":[],"is":[1],"o":{"a":"b"}}`: []byte(schema),
		`{"unknown":1,"s":"x"}`:                    []byte(schema),
		`{"s":"a\nb"}`:                             []byte(schema),
	}
	for request, schema := range odd {
		catalog.Manifests = append(
			catalog.Manifests,
			tool.Manifest{Tools: []tool.Spec{{Name: "t", Input: schema, Examples: []tool.Example{{Request: json.RawMessage(request)}}}}},
		)
	}
	n := 0
	for _, m := range catalog.Manifests {
		for _, spec := range m.Tools {
			of := toolOf(t, string(spec.Input))
			of.Name = spec.Name
			for _, e := range spec.Examples {
				n++
				line := manual.Command(of, e.Request)
				out, err := exec.Command("sh", "-c", "hub() { shift 2; for a in \"$@\"; do printf '%s\\0' \"$a\"; done; }; "+line).Output()
				if err != nil {
					t.Fatalf("%s: %v", line, err)
				}
				var args []string
				if len(out) > 0 {
					args = strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
				}
				got, err := input.Make(of, args, files)
				if err != nil || !same(t, got, e.Request) || strings.Contains(line, "\n") {
					t.Errorf("%s\nis %s, want %s: %v", line, got, e.Request, err)
				}
			}
		}
	}
	if n < 40 {
		t.Errorf("%d examples", n)
	}
}

func same(t *testing.T, a, b []byte) bool {
	t.Helper()
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return false
	}
	return reflect.DeepEqual(x, y)
}

func FuzzMake(f *testing.F) {
	for _, arg := range []string{"s=x", "ss=a,b", "os={}", `{"s":1}`, "o=@object", "=", "n=1e9"} {
		f.Add(arg, "s=x")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		if got, err := input.Make(toolOf(t, schema), []string{a, b}, files); err == nil && !json.Valid(got) {
			t.Errorf("%q %q: %s", a, b, got)
		}
	})
}
