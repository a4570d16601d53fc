// Package reference describes Hub's API to those who write programs for it: as an OpenAPI document and as a page, both
// made of what tools and routes declare. It refuses to know any of them by name, and to serve what it makes.
package reference

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"hub.internal/pkg/schema"
	"hub.internal/pkg/tool"
)

// ToolRoot is what the path of every tool begins with.
const ToolRoot = "/api/tools/"

// API is what is described: the tools in the order of the catalog, and the routes.
type API struct {
	Version string
	Tools   []tool.Spec
	Routes  []tool.RouteSpec
}

// sorted are the routes by path, of each path those that read first.
func (a API) sorted() []tool.RouteSpec {
	return slices.SortedFunc(slices.Values(a.Routes), func(x, y tool.RouteSpec) int {
		return cmp.Or(strings.Compare(x.Path, y.Path), strings.Compare(x.Method, y.Method))
	})
}

// request is what of the input of a route a request has where.
type request struct {
	// path and query name members, in order; body is the schema of the rest, and nil for none.
	path, query []string
	body        *schema.Schema
	input       *schema.Schema
}

// requestOf takes the input of a route apart. Its schema was judged when the manifest came.
func requestOf(r tool.RouteSpec) (request, error) {
	var input, body schema.Schema
	if err := json.Unmarshal(r.Input, &input); err != nil {
		return request{}, err
	}
	if err := json.Unmarshal(r.Input, &body); err != nil {
		return request{}, err
	}
	q := request{input: &input}
	for _, element := range r.Elements() {
		if name, isValue := tool.Value(element); isValue {
			q.path = append(q.path, name)
			delete(body.Properties, name)
			body.Required = slices.DeleteFunc(body.Required, func(n string) bool { return n == name })
		}
	}
	names, err := members(r.Input)
	if err != nil {
		return request{}, err
	}
	body.PropertyOrder = slices.DeleteFunc(names, func(n string) bool { return body.Properties[n] == nil })
	switch {
	case r.Form == tool.RawForm:
	case r.Reads():
		q.query = body.PropertyOrder
	default:
		q.body = &body
	}
	return q, nil
}

// valuesOf are the members of an example's request.
func valuesOf(e tool.Example) map[string]json.RawMessage {
	var all map[string]json.RawMessage
	if json.Unmarshal(e.Request, &all) != nil {
		return nil
	}
	return all
}

// rest is the body of a request with these members, in the order of the schema.
func (q request) rest(values map[string]json.RawMessage) json.RawMessage {
	body := []byte{'{'}
	for _, name := range q.body.PropertyOrder {
		v, given := values[name]
		if !given {
			continue
		}
		if len(body) > 1 {
			body = append(body, ',')
		}
		quoted, _ := json.Marshal(name) // a string can be encoded
		body = append(append(append(body, quoted...), ':'), v...)
	}
	return append(body, '}')
}

// inAddress is a member as an address has it: text without its quotes.
func inAddress(v json.RawMessage) string {
	var text string
	if json.Unmarshal(v, &text) == nil {
		return text
	}
	return string(v)
}

// summary is the first sentence of a description. "WITH ... SELECT" is no end of one.
func summary(description string) string {
	for i, r := range description {
		end := r == '.' || r == ':'
		if end && (i+1 == len(description) || description[i+1] == ' ') && (i == 0 || description[i-1] != '.') {
			return description[:i]
		}
	}
	return description
}
