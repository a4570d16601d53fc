package gateway

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/process"
	"hub.internal/pkg/tool"
	"hub.internal/pkg/web"
)

// object is a JSON object of the OpenAPI document.
type object = map[string]any

// openAPI answers the description of the public API.
func (g *Gateway) openAPI(w http.ResponseWriter, r *http.Request) {
	description, err := g.Catalog.merged.Load().openAPI()
	if err != nil {
		g.newCall(r).writeFailure(w, fault.From(err), 0)
		g.Logger.ErrorContext(r.Context(), "no OpenAPI document", "error", err)
		return
	}
	w.Header().Set("Cache-Control", "no-cache") // but for a 304
	description.ServeHTTP(w, r)
}

// describe is the public API (OpenAPI 3.1), derived from the tools.
func describe(tools []*Entry) (*web.Static, error) {
	paths := object{
		"/api/tools":               object{"get": operation("list_tools", "List the tools", object{"type": "object"})},
		"/api/tools/{name}/detail": object{"get": with(operation("show_tool", "Everything about one tool", object{"type": "object"}), "parameters", []object{{"name": "name", "in": "path", "required": true, "schema": object{"type": "string"}}})},
	}
	for _, e := range tools {
		op := operation(e.Spec.Name, e.Spec.Description, e.Spec.Output)
		op["tags"] = []string{e.Spec.Category}
		op["requestBody"] = object{"required": true, "content": object{"application/json": object{"schema": e.Spec.Input}}}
		op["parameters"] = []object{
			{"name": tool.KeyHeader, "in": "header", "required": e.Spec.Write, "schema": object{"type": "string", "minLength": 1, "maxLength": 255}},
			{"name": "X-Request-Id", "in": "header", "schema": object{"type": "string", "maxLength": 128}},
			{"name": "X-External-User-Id", "in": "header", "schema": object{"type": "string", "maxLength": 200}},
		}
		op["x-scope"] = e.Spec.Scope
		paths["/api/tools/"+e.Spec.Name] = object{"post": op}
	}
	document := object{
		"openapi":  "3.1.0",
		"info":     object{"title": "Hub", "version": process.Version, "description": "Named tools for agents that run B2B marketing."},
		"paths":    paths,
		"security": []object{{"bearer": []string{}}, {"key": []string{}}},
		"components": object{
			"securitySchemes": object{"bearer": object{"type": "http", "scheme": "bearer"}, "key": object{"type": "apiKey", "in": "header", "name": "X-API-Key"}},
			"schemas":         object{"Failure": failureSchema()},
		},
	}
	b, err := json.Marshal(document)
	if err != nil {
		return nil, err
	}
	return web.NewStatic("application/json", b)
}

func with(o object, name string, value any) object {
	o[name] = value
	return o
}

func operation(id, description string, data any) object {
	first, _, _ := strings.Cut(description, ".")
	success := object{"type": "object", "required": []string{"ok", "tool", "data", "count", "request_id", "took_ms"}, "properties": object{
		"ok": object{"const": true}, "tool": object{"type": "string"}, "data": data, "count": object{"type": "integer"},
		"request_id": object{"type": "string"}, "took_ms": object{"type": "integer"}}}
	return object{"operationId": id, "summary": first, "description": description, "responses": object{
		"200":     object{"description": "The success envelope.", "content": object{"application/json": object{"schema": success}}},
		"default": object{"description": "The failure envelope.", "content": object{"application/json": object{"schema": object{"$ref": "#/components/schemas/Failure"}}}},
	}}
}

func failureSchema() object {
	codes := []string{}
	for code := range fault.Codes() {
		codes = append(codes, string(code))
	}
	slices.Sort(codes)
	return object{"type": "object", "required": []string{"ok", "error", "request_id", "took_ms"}, "properties": object{
		"ok": object{"const": false}, "request_id": object{"type": "string"}, "took_ms": object{"type": "integer"},
		"error": object{"type": "object", "required": []string{"code", "message", "retryable"}, "properties": object{
			"code": object{"enum": codes}, "message": object{"type": "string"}, "details": object{}, "retryable": object{"type": "boolean"}}}}}
}
