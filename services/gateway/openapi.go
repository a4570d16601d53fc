package gateway

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/service"
	"hub.internal/pkg/tool"
	"hub.internal/pkg/web"
)

// object is a JSON object of the OpenAPI document.
type object = map[string]any

// openAPI answers the description of the public API.
func (g *Gateway) openAPI(w http.ResponseWriter, r *http.Request) {
	description, err := g.Catalog.merged.Load().openAPI()
	if err != nil {
		g.NewCall(r).writeFailure(w, fault.From(err), 0)
		g.Logger.ErrorContext(r.Context(), "no OpenAPI document", "error", err)
		return
	}
	w.Header().Set("Cache-Control", "no-cache") // but for a 304
	description.ServeHTTP(w, r)
}

// describe is the public API (OpenAPI 3.1), derived from the tools and the routes.
func describe(m *merged) (*web.Static, error) {
	paths := object{
		"/api/tools": object{"get": operation("list_tools", "List the tools", object{"type": "object"})},
		"/api/tools/{name}/detail": object{"get": with(operation("show_tool", "Everything about one tool", object{"type": "object"}),
			"parameters", []object{{"name": "name", "in": "path", "required": true, "schema": object{"type": "string"}}})},
	}
	for _, e := range m.ordered {
		op := operation(e.Spec.Name, e.Spec.Description, e.Spec.Output)
		op["tags"] = []string{e.Spec.Category}
		op["requestBody"] = object{"required": true, "content": object{"application/json": object{"schema": e.Spec.Input}}}
		op["parameters"] = append([]object{keyParameter(e.Spec.Write)}, everyCall()...)
		op["x-scope"] = e.Spec.Scope
		paths["/api/tools/"+e.Spec.Name] = object{"post": op}
	}
	for _, routes := range m.routes {
		for _, e := range routes {
			methods, _ := paths[e.Route.Path].(object)
			if methods == nil {
				methods = object{}
				paths[e.Route.Path] = methods
			}
			methods[strings.ToLower(e.Route.Method)] = e.describe()
		}
	}
	document := object{
		"openapi":  "3.1.0",
		"info":     object{"title": "Hub", "version": service.Version, "description": "Named tools for agents that run B2B marketing."},
		"paths":    paths,
		"security": []object{{"bearer": []string{}}, {"key": []string{}}},
		"components": object{
			"securitySchemes": object{"bearer": object{"type": "http", "scheme": "bearer"},
				"key": object{"type": "apiKey", "in": "header", "name": "X-API-Key"},
				"serviceJWT": object{"type": "http", "scheme": "bearer", "bearerFormat": "JWT",
					"description": "The ServiceJWT of a Connected App, good for one call."}},
			"schemas": object{"Failure": failureSchema()},
		},
	}
	b, err := json.Marshal(document)
	if err != nil {
		return nil, err
	}
	return web.NewStatic("application/json", b)
}

func keyParameter(required bool) object {
	return object{"name": tool.KeyHeader, "in": "header", "required": required,
		"schema": object{"type": "string", "minLength": 1, "maxLength": 255}}
}

// everyCall are the parameters that any call with an API key may have.
func everyCall() []object {
	return []object{requestIDParameter(), {"name": "X-External-User-Id", "in": "header", "schema": object{"type": "string", "maxLength": 200}}}
}

func requestIDParameter() object {
	return object{"name": "X-Request-Id", "in": "header", "schema": object{"type": "string", "maxLength": 128}}
}

// describe is a route: what its input holds is told where a request has it.
func (e *Entry) describe() object {
	op := call(e.Spec.Name, e.Spec.Description, object{"data": e.Spec.Output})
	op["tags"] = []string{e.elements[0]}
	if e.Spec.Scope != "" {
		op["x-scope"] = e.Spec.Scope
	}
	body := *e.input
	body.Properties, body.Required = maps.Clone(e.input.Properties), slices.Clone(e.input.Required)
	var parameters []object
	for _, element := range e.elements {
		if name, isValue := tool.Value(element); isValue {
			parameters = append(parameters, object{"name": name, "in": "path", "required": true, "schema": body.Properties[name]})
			delete(body.Properties, name)
			body.Required = slices.DeleteFunc(body.Required, func(n string) bool { return n == name })
		}
	}
	switch {
	case e.raw():
		if !e.Route.Reads() {
			op["requestBody"] = object{"required": false, "content": object{"*/*": object{"schema": object{"type": "string", "format": "binary"}}}}
		}
	case e.Route.Reads():
		for _, name := range slices.Sorted(maps.Keys(body.Properties)) {
			parameters = append(parameters, object{"name": name, "in": "query",
				"required": slices.Contains(body.Required, name), "schema": body.Properties[name]})
		}
	default:
		op["requestBody"] = object{"required": len(body.Required) > 0, "content": object{"application/json": object{"schema": &body}}}
	}
	if e.key() != tool.KeyIgnored {
		parameters = append(parameters, keyParameter(e.key() == tool.KeyRequired))
	}
	switch e.Route.Credential {
	case tool.KeyCredential:
		parameters = append(parameters, everyCall()...)
	case tool.NoCredential:
		op["security"] = []object{} // none
		parameters = append(parameters, requestIDParameter())
	default:
		op["security"] = []object{{"serviceJWT": []string{}}}
		parameters = append(parameters, requestIDParameter())
	}
	op["parameters"] = parameters
	op["responses"] = e.responses(op["responses"].(object))
	return op
}

// locations say what a Location means beside a status.
var locations = map[int]string{http.StatusCreated: "Where it is.", http.StatusAccepted: "Where its state can be asked for.",
	http.StatusSeeOther: "Where to go on."}

// responses are those of a route, of the success and the failure of any call.
func (e *Entry) responses(ofAny object) object {
	text := func(description string) object {
		return object{"description": description, "content": object{"text/plain": object{"schema": object{"type": "string"}}}}
	}
	all := object{"default": ofAny["default"]}
	if e.raw() {
		all["default"] = text("What went wrong, in one line.")
	}
	for _, status := range e.Route.Success {
		answer := maps.Clone(ofAny["200"].(object))
		if e.raw() {
			answer = text("As whoever calls expects it, without an envelope.")
		}
		if status == http.StatusSeeOther && e.raw() {
			answer = object{"description": "The browser goes on elsewhere."}
		}
		if where := locations[status]; where != "" {
			answer["headers"] = object{"Location": object{"schema": object{"type": "string"}, "description": where,
				"required": status == http.StatusSeeOther}}
		}
		all[strconv.Itoa(status)] = answer
	}
	return all
}

func with(o object, name string, value any) object {
	o[name] = value
	return o
}

// operation is a call of a tool.
func operation(id, description string, data any) object {
	return call(id, description, object{"data": data, "tool": object{"type": "string"}})
}

// call is a call whose answer has these members beside those that every one has.
func call(id, description string, members object) object {
	first, _, _ := strings.Cut(description, ".")
	maps.Copy(members, object{"ok": object{"const": true}, "count": object{"type": "integer"},
		"request_id": object{"type": "string"}, "took_ms": object{"type": "integer"}})
	success := object{"type": "object", "required": slices.Sorted(maps.Keys(members)), "properties": members}
	return object{"operationId": id, "summary": first, "description": description, "responses": object{
		"200": object{"description": "The success envelope.", "content": object{"application/json": object{"schema": success}}},
		"default": object{"description": "The failure envelope.", "content": object{
			"application/json": object{"schema": object{"$ref": "#/components/schemas/Failure"}}}},
	}}
}

func failureSchema() object {
	codes := []string{}
	for code := range fault.Codes() {
		codes = append(codes, string(code))
	}
	slices.Sort(codes)
	return object{"type": "object", "required": []string{"ok", "error", "request_id", "took_ms"}, "properties": object{
		"ok":         object{"const": false},
		"link_url":   object{"type": "string", "description": "With ACCOUNT_LINK_REQUIRED: where the user links their account."},
		"request_id": object{"type": "string"}, "took_ms": object{"type": "integer"},
		"error": object{"type": "object", "required": []string{"code", "message", "retryable"}, "properties": object{
			"code": object{"enum": codes}, "message": object{"type": "string"}, "details": object{}, "retryable": object{"type": "boolean"}}}}}
}
