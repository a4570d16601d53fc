package tool_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/schema"
	"hub.internal/pkg/tool"
)

type in struct {
	Name  string `json:"name"`
	Limit int64  `json:"limit"`
}

type out struct {
	Said string   `json:"said"`
	Rows []string `json:"rows"`
}

func (o out) Count() int { return len(o.Rows) }

// raw writes its own JSON.
type raw string

func (r raw) JSON() []byte { return []byte(r) }

func declaration(change func(*tool.Declaration)) tool.Declaration {
	d := tool.Declaration{Name: "say", Category: tool.Query, Description: "Says it.", Scope: "query", Position: 1, Input: schema.Object(
		schema.Required("name", schema.String("", schema.Length(1, 20))),
		schema.Optional("limit", schema.Integer("", schema.Range(1, 5), schema.Default(2))))}
	if change != nil {
		change(&d)
	}
	return d
}

func say(_ context.Context, i in) (out, error) {
	switch i.Name {
	case "panic":
		panic("SELECT secret")
	case "fault":
		return out{}, fault.New(fault.Suppressed, "Suppressed.").With(map[string]any{"targets": []int{1}}).After(2 * time.Second)
	case "foreign":
		return out{}, errors.New("dial tcp 10.0.0.7: SELECT secret")
	case "bad details":
		return out{}, fault.New(fault.Validation, "x").With(func() {})
	}
	return out{Said: "<" + i.Name + ">", Rows: make([]string, i.Limit)}, nil
}

func TestBrokenDeclarationStopsTheProgram(t *testing.T) {
	for name, change := range map[string]func(*tool.Declaration){
		"no name":        func(d *tool.Declaration) { d.Name = "" },
		"no category":    func(d *tool.Declaration) { d.Category = "" },
		"no description": func(d *tool.Declaration) { d.Description = "" },
		"no scope":       func(d *tool.Declaration) { d.Scope = "" },
		"no position":    func(d *tool.Declaration) { d.Position = 0 },
		"no input":       func(d *tool.Declaration) { d.Input = nil },
		"open input":     func(d *tool.Declaration) { d.Input = schema.FreeObject("") },
		"no object":      func(d *tool.Declaration) { d.Input = schema.String("") },
		"other members":  func(d *tool.Declaration) { d.Input = schema.Object(schema.Required("other", schema.String(""))) },
		"not enforced":   func(d *tool.Declaration) { d.Input.Properties["name"].Const = new(any) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			tool.New(declaration(change), say)
		})
	}
}

func TestSpecSaysItAll(t *testing.T) {
	s := tool.New(declaration(func(d *tool.Declaration) { d.Write, d.Timeout, d.MaxBody = true, 35*time.Second, 32<<20 }), say).Spec
	if !s.Write || s.Timeout() != 35*time.Second || s.MaxBody != 32<<20 || s.Errors == nil || s.Examples == nil {
		t.Errorf("got %+v", s)
	}
	if s = tool.New(declaration(nil), say).Spec; s.Timeout() != 10*time.Second || s.MaxBody != 1<<20 {
		t.Errorf("defaults: %+v", s)
	}
	for _, text := range []string{`"additionalProperties":false`, `"required":["name"]`, `"maximum":5`, `"default":2`} {
		if !bytes.Contains(s.Input, []byte(text)) {
			t.Errorf("input schema %s lacks %s", s.Input, text)
		}
	}
	if !bytes.Contains(s.Output, []byte(`"said"`)) {
		t.Errorf("output schema %s", s.Output)
	}
}

func TestResult(t *testing.T) {
	call := func(t tool.Tool, input string) (*tool.Result, error) {
		r, err := t.Endpoint(context.Background(), &tool.Call{Input: []byte(input)})
		if err != nil {
			return nil, err
		}
		return r.(*tool.Result), nil
	}
	for name, c := range map[string]struct {
		tool  tool.Tool
		data  string
		count int
	}{
		"counts rows": {tool.New(declaration(nil), say), `{"said":"\u003cx\u003e","rows":["",""]}`, 2},
		"counts as one": {tool.New(declaration(nil), func(context.Context, in) (map[string]int, error) {
			return map[string]int{"a": 1},
				nil
		}), `{"a":1}`, 1},
		"writes its own": {tool.New(declaration(func(d *tool.Declaration) { d.Output = schema.FreeObject("") }),
			func(context.Context, in) (raw, error) { return `{"b": 1e2}`, nil }), `{"b": 1e2}`, 1},
		"answers nothing": {tool.New(declaration(nil), func(context.Context, in) (struct{}, error) { return struct{}{}, nil }), `{}`, 1},
	} {
		if r, err := call(c.tool, `{"name":"x"}`); err != nil || string(r.Data) != c.data || r.Count != c.count {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
	if _, err := call(tool.New(declaration(nil), say), `{"limit":9}`); !fault.Is(err, fault.Validation) {
		t.Errorf("invalid input: %v", err)
	}
	unencodable := tool.New(
		declaration(func(d *tool.Declaration) { d.Output = schema.FreeObject("") }),
		func(context.Context, in) (any, error) { return func() {}, nil },
	)
	if _, err := call(unencodable, `{"name":"x"}`); fault.From(err).Code != fault.Internal {
		t.Errorf("an answer that JSON cannot hold: %v", err)
	}
}
