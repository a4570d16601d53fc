package tool_test

import (
	"context"
	"encoding/json"
	"testing"

	"hub.internal/pkg/schema"
	"hub.internal/pkg/tool"
)

type routeIn struct {
	ID string `json:"id"`
}

func routeOf(change func(*tool.RouteDeclaration)) tool.RouteDeclaration {
	d := tool.RouteDeclaration{Declaration: tool.Declaration{Name: "orders.get", Description: "One order.", Scope: "query",
		Input: schema.Object(schema.Required("id", schema.String("The order.", schema.Length(1, 9))))},
		Method: "GET", Path: "/v1/orders/{id}", Idempotency: tool.KeyIgnored, Credential: tool.KeyCredential}
	if change != nil {
		change(&d)
	}
	return d
}

func TestARouteIsDeclaredLikeATool(t *testing.T) {
	t.Parallel()
	do := func(ctx context.Context, in routeIn) (map[string]string, error) {
		return map[string]string{"id": in.ID, "key": tool.IdempotencyFrom(ctx).Key}, nil
	}
	ask := func(r tool.APIRoute, input, key string) (*tool.Result, error) {
		response, err := r.Tool.Endpoint(t.Context(), &tool.Call{Input: []byte(input), IdempotencyKey: key})
		if err != nil {
			return nil, err
		}
		return response.(*tool.Result), nil
	}
	read := tool.NewRoute(routeOf(nil), do)
	if r, err := ask(read, `{"id":"7"}`, "ignored"); err != nil || r.Status != 200 || string(r.Data) != `{"id":"7","key":""}` {
		t.Errorf("%+v %v", r, err)
	}
	if _, err := ask(read, `{"id":""}`, ""); err == nil {
		t.Error("a violation is taken")
	}
	for rule, refused := range map[string]bool{tool.KeyRequired: true, tool.KeyOptional: false} {
		write := tool.NewRoute(
			routeOf(func(d *tool.RouteDeclaration) { d.Method, d.Idempotency, d.Success = "POST", rule, []int{201, 200} }),
			do,
		)
		if _, err := ask(write, `{"id":"7"}`, ""); (err != nil) != refused {
			t.Errorf("%s, no key: %v", rule, err)
		}
		if r, err := ask(
			write,
			`{"id":"7"}`,
			"k",
		); err != nil || r.Status != 201 || string(r.Data) != `{"id":"7","key":"k"}` || !write.Spec.Write ||
			!write.Tool.Spec.Write {
			t.Errorf("%s: %+v %v", rule, r, err)
		}
	}
	own := tool.NewRoute(routeOf(func(d *tool.RouteDeclaration) { d.Success, d.Output = []int{200, 303}, schema.FreeObject("") }),
		func(context.Context, routeIn) (tool.Result, error) {
			return tool.Result{Head: tool.Head{Status: 303, Location: "/v1/orders/8"}, Data: []byte(`{}`)}, nil
		})
	if r, err := ask(own, `{"id":"7"}`, ""); err != nil || r.Status != 303 || r.Location != "/v1/orders/8" {
		t.Errorf("%+v %v", r, err)
	}
	// An older gateway reads a manifest with routes, and one without is as it was.
	with, err := json.Marshal(tool.Manifest{Service: "x"}.WithRoutes(read))
	if err != nil {
		t.Fatal(err)
	}
	var m tool.Manifest
	if err := json.Unmarshal(
		with,
		&m,
	); err != nil || len(m.Tools) != 0 || len(m.Routes) != 1 || m.Routes[0].Path != "/v1/orders/{id}" ||
		m.Routes[0].Name != "orders.get" {
		t.Errorf("%s %v", with, err)
	}
	if without, _ := json.Marshal(tool.Manifest{Service: "x", Tools: []tool.Spec{}}); string(without) != `{"service":"x","tools":[]}` {
		t.Errorf("%s", without)
	}
}

func TestARouteThatContradictsItselfStopsTheProgram(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*tool.RouteDeclaration){
		"elsewhere":          func(d *tool.RouteDeclaration) { d.Path = "/login/{id}" },
		"all of it":          func(d *tool.RouteDeclaration) { d.Path = "/v1/{id}" },
		"no such input":      func(d *tool.RouteDeclaration) { d.Path = "/v1/orders/{order}" },
		"a key for a read":   func(d *tool.RouteDeclaration) { d.Idempotency = tool.KeyOptional },
		"no rule for keys":   func(d *tool.RouteDeclaration) { d.Idempotency = "" },
		"no credential":      func(d *tool.RouteDeclaration) { d.Credential = "" },
		"no scope":           func(d *tool.RouteDeclaration) { d.Scope = "" },
		"a status of errors": func(d *tool.RouteDeclaration) { d.Success = []int{404} },
		"a method":           func(d *tool.RouteDeclaration) { d.Method = "FETCH" },
		"a name":             func(d *tool.RouteDeclaration) { d.Name = "../x" },
		"no input":           func(d *tool.RouteDeclaration) { d.Input = nil },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("it is taken")
				}
			}()
			tool.NewRoute(routeOf(change), func(context.Context, routeIn) (map[string]string, error) { return nil, nil })
		})
	}
}
