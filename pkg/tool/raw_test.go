package tool_test

import (
	"context"
	"encoding/json"
	"testing"

	"hub.internal/pkg/schema"
	"hub.internal/pkg/tool"
)

type rawIn struct {
	ID string `json:"id"`
	tool.RawRequest
}

func rawRoute(change func(*tool.RouteDeclaration)) tool.RouteDeclaration {
	return routeOf(func(d *tool.RouteDeclaration) {
		d.Method, d.Scope, d.Credential, d.Form, d.MaxBody = "POST", "", tool.NoCredential, tool.RawForm, tool.MaxRawBody
		d.Input = tool.RawInput(schema.Required("id", schema.String("The order.", schema.Length(1, 9))))
		if change != nil {
			change(d)
		}
	})
}

func TestARawRouteTakesWhateverWasSent(t *testing.T) {
	t.Parallel()
	r := tool.NewRoute(rawRoute(nil), func(_ context.Context, in rawIn) (tool.RawAnswer, error) {
		b, err := in.Bytes()
		return tool.RawAnswer{Status: 200, ContentType: in.ContentType, Location: in.ID + in.Query, Body: b}, err
	})
	ask := func(body string) (tool.RawAnswer, error) {
		response, err := r.Tool.Endpoint(
			t.Context(),
			&tool.Call{Input: []byte(`{"id":"7","method":"POST","contentType":"x/y","query":"a=b","body":"` + body + `"}`)},
		)
		if err != nil {
			return tool.RawAnswer{}, err
		}
		var a tool.RawAnswer
		return a, json.Unmarshal(response.(*tool.Result).Data, &a)
	}
	if a, err := ask("/wA="); err != nil || string(a.Body) != "\xff\x00" || a.ContentType != "x/y" || a.Location != "7a=b" {
		t.Errorf("%+v %v", a, err)
	}
	if _, err := ask("?"); err == nil {
		t.Error("what is not in base64 is taken")
	}
	if want := int64(tool.MaxRawBody*4/3 + 32<<10); r.Spec.MaxInput() < want {
		t.Errorf("its owner reads %d bytes, which is less than %d", r.Spec.MaxInput(), want)
	}
	if json := tool.NewRoute(
		routeOf(nil),
		func(context.Context, routeIn) (string, error) { return "", nil },
	); json.Spec.MaxInput() != json.Spec.MaxBody {
		t.Errorf("%d", json.Spec.MaxInput())
	}
}

func TestScopesAndForms(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*tool.RouteDeclaration)
		taken  bool
	}{
		"raw":                    {nil, true},
		"raw, of an app":         {func(d *tool.RouteDeclaration) { d.Credential, d.Scope = tool.AppCredential, "pay:read" }, true},
		"an app before its link": {func(d *tool.RouteDeclaration) { d.Credential = tool.AppUnlinkedCredential }, true},
		"that, with a scope": {func(d *tool.RouteDeclaration) { d.Credential, d.Scope = tool.AppUnlinkedCredential, "pay:read" },
			true},
		"a read":                       {func(d *tool.RouteDeclaration) { d.Method = "GET" }, true},
		"a scope for nobody":           {func(d *tool.RouteDeclaration) { d.Scope = "pay:read" }, false},
		"an app without a scope":       {func(d *tool.RouteDeclaration) { d.Credential = tool.AppCredential }, false},
		"a key without a scope":        {func(d *tool.RouteDeclaration) { d.Credential = tool.KeyCredential }, false},
		"another form":                 {func(d *tool.RouteDeclaration) { d.Form = "xml" }, false},
		"raw, and more than 64 KiB":    {func(d *tool.RouteDeclaration) { d.MaxBody = tool.MaxRawBody + 1 }, false},
		"raw, with an Idempotency-Key": {func(d *tool.RouteDeclaration) { d.Idempotency = tool.KeyOptional }, false},
		"raw, and a DELETE":            {func(d *tool.RouteDeclaration) { d.Method = "DELETE" }, false},
		"raw, and no room for its method": {func(d *tool.RouteDeclaration) {
			d.Input = schema.Object(schema.Required("id",
				schema.String("")))
		}, false},
	} {
		spec := func() (s tool.RouteSpec, taken bool) {
			defer func() { taken = recover() == nil }()
			return tool.NewRoute(
				rawRoute(c.change),
				func(context.Context, json.RawMessage) (tool.RawAnswer, error) { return tool.RawAnswer{}, nil },
			).Spec, true
		}
		if _, taken := spec(); taken != c.taken {
			t.Errorf("%s: taken is %t", name, taken)
		}
	}
}
