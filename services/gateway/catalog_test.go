package gateway_test

import (
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"hub.internal/pkg/tool"
	"hub.internal/services/gateway"
)

func TestCatalogAndDetail(t *testing.T) {
	e := newEdge(t)
	r := e.do(t, "GET", "/api/tools", "", bearer(readOnly)...)
	var data struct {
		Version string
		Tools   []struct {
			Name, Category, Description, Scope string
			Write, Allowed                     bool
			InputSchema                        map[string]any `json:"input_schema"`
		}
	}
	if err := json.Unmarshal(r.env.Data, &data); err != nil || r.env.Tool != "catalog" || *r.env.Count != 2 || data.Version != "0.2.0" {
		t.Fatalf("%v: %s", err, r.body)
	}
	if read, write := data.Tools[0], data.Tools[1]; read.Name != "search_echo" || !read.Allowed || write.Allowed || !write.Write || read.InputSchema["additionalProperties"] != false {
		t.Errorf("got %s", r.body)
	}
	d := e.do(t, "GET", "/api/tools/store_echo/detail", "", bearer(readOnly)...)
	var detail struct {
		Name         string
		OutputSchema map[string]any `json:"output_schema"`
		Errors       []struct{ Code, Reason string }
		Limits       map[string]int64
		Examples     []any
	}
	if err := json.Unmarshal(d.env.Data, &detail); err != nil || detail.Name != "store_echo" || detail.OutputSchema["type"] != "object" || detail.Limits["max_body_bytes"] != 4096 || detail.Examples == nil {
		t.Errorf("%v: %s", err, d.body)
	}
	codes := ""
	for _, c := range detail.Errors {
		if c.Reason == "" {
			t.Errorf("%s without a reason", c.Code)
		}
		codes += c.Code + " "
	}
	if !strings.Contains(codes, "E_IDEMPOTENCY") || !strings.Contains(codes, "E_RATE_LIMIT") {
		t.Errorf("codes %s", codes)
	}
	if r := e.do(t, "GET", "/api/tools/nope/detail", "", bearer(readOnly)...); r.code() != "E_NOT_FOUND" {
		t.Errorf("unknown tool: %s", r.body)
	}
	if r := e.do(t, "GET", "/api/tools", ""); r.code() != "E_AUTH_MISSING" {
		t.Errorf("no credential: %s", r.body)
	}
}

func TestCatalogETag(t *testing.T) {
	e := newEdge(t)
	first := e.do(t, "GET", "/api/tools", "", bearer(readOnly)...)
	tag := first.header.Get("ETag")
	for _, sent := range []string{tag, "W/" + tag, `"other", ` + tag, "*"} {
		if r := e.do(t, "GET", "/api/tools", "", append(bearer(readOnly), "If-None-Match", sent)...); r.status != 304 || r.body != "" {
			t.Errorf("If-None-Match %s: %d", sent, r.status)
		}
	}
	if r := e.do(t, "GET", "/api/tools", "", append(bearer(allScopes), "If-None-Match", tag)...); r.status != 200 {
		t.Errorf("another credential sees another catalog: %d", r.status)
	}
}

func TestCatalogKeepsTheLastGoodManifest(t *testing.T) {
	c := gateway.NewCatalog(slog.New(slog.DiscardHandler))
	input := json.RawMessage(`{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}`)
	good := tool.Manifest{Service: "one", Tools: []tool.Spec{{Name: "a", Input: input, Position: 2}, {Name: "b", Input: input, Position: 1}}}
	if err := c.Update(good); err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string]tool.Manifest{
		"another's tool": {Service: "two", Tools: []tool.Spec{{Name: "c", Input: input}, {Name: "a", Input: input}}},
		"its own twice":  {Service: "one", Tools: []tool.Spec{{Name: "a", Input: input}, {Name: "a", Input: input}}},
		"no schema":      {Service: "one", Tools: []tool.Spec{{Name: "a", Input: json.RawMessage(`{"type":"object","oneOf":[{"type":"object"}]}`)}}},
	} {
		if err := c.Update(bad); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	if c.Entry("a") == nil || c.Entry("c") != nil || c.Entries()[0].Spec.Name != "b" {
		t.Error("the catalog changed")
	}
	if err := c.Update(tool.Manifest{Service: "one", Tools: good.Tools[:1]}); err != nil || c.Entry("b") != nil {
		t.Error("a tool that its service gave up stays")
	}
}

func TestOpenAPIDescribesTheCatalog(t *testing.T) {
	e := newEdge(t)
	r := e.do(t, "GET", "/openapi.json", "")
	var document struct {
		OpenAPI string
		Paths   map[string]map[string]struct {
			RequestBody struct {
				Content map[string]struct{ Schema map[string]any }
			}
		}
	}
	if err := json.Unmarshal([]byte(r.body), &document); err != nil || document.OpenAPI != "3.1.0" {
		t.Fatalf("%v: %s", err, r.body)
	}
	schema := document.Paths["/api/tools/search_echo"]["post"].RequestBody.Content["application/json"].Schema
	if schema["additionalProperties"] != false || len(document.Paths) != 4 {
		t.Errorf("got %s", r.body)
	}
}
