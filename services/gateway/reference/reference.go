// Package reference describes Hub's API to those who write programs for it: as an OpenAPI document and as a page, both
// made of what tools and routes declare. It refuses to know any of them by name, and to serve what it makes.
//
// Both are made of one list of operations, in which a tool is a route like any other. What is the same for every version of
// the catalog, such as headers, credentials and the schemas of the envelopes, stands in openapi.base.json.
package reference

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"hub.internal/pkg/schema"
	"hub.internal/pkg/tool"
)

const (
	// ToolList is the path of the list of tools.
	ToolList = "/api/tools"
	// ToolRoot is what the path of every tool begins with.
	ToolRoot = ToolList + "/"
)

// API is what is described: the tools in the order of the catalog, and the routes.
// The catalog makes one of each version that it has, and renders it when somebody asks.
type API struct {
	Version string
	Tools   []tool.Spec
	Routes  []tool.RouteSpec
	// Notifications are what services send to Connected Apps.
	Notifications []*tool.Notifications
}

// operation is a tool or a route as a client calls it. A tool is a route that takes API keys, at the path of its name.
type operation struct {
	tool.RouteSpec
	// isTool tells tools from routes: a tool has its whole input in the body, its name in the envelope, and an API key.
	isTool bool
	// group is the category of a tool, and the word of a route that belongs to its owner.
	group string
	// path and query name members of the input that a request has there, in order; body is the schema of the rest, and nil
	// for none.
	path, query []string
	body        *schema.Schema
	// input is the whole schema, as it was declared.
	input *schema.Schema
}

// operations are the tools, and then the routes by path, of each path those that read first.
// So two replicas write the same document, in whatever order the services have answered.
func (a API) operations() (all []operation, err error) {
	for _, s := range a.Tools {
		key := tool.KeyIgnored
		if s.Write {
			key = tool.KeyRequired
		}
		all = append(all, operation{isTool: true, group: s.Category, RouteSpec: tool.RouteSpec{Spec: s, Method: http.MethodPost,
			Path: ToolRoot + s.Name, Success: []int{http.StatusOK}, Idempotency: key, Credential: tool.KeyCredential}})
	}
	for _, r := range slices.SortedFunc(slices.Values(a.Routes), func(x, y tool.RouteSpec) int {
		return cmp.Or(strings.Compare(x.Path, y.Path), strings.Compare(x.Method, y.Method))
	}) {
		all = append(all, operation{RouteSpec: r, group: r.Elements()[0]})
	}
	for i := range all {
		if err := all[i].split(); err != nil {
			return nil, fmt.Errorf("%s: %w", all[i].Name, err)
		}
	}
	return all, nil
}

// split tells which members of the input a request has where. Its schema was judged when the manifest came.
// An example: POST /v1/pay/orders/{code}/refund has code in the path and all other members in the body; a GET has them in the query. The
// input is decoded twice, because the body loses what the path has.
func (o *operation) split() error {
	var input, body schema.Schema
	if err := errors.Join(json.Unmarshal(o.Input, &input), json.Unmarshal(o.Input, &body)); err != nil {
		return err
	}
	o.input = &input
	for _, element := range o.Elements() {
		if name, isValue := tool.Value(element); isValue {
			o.path = append(o.path, name)
			delete(body.Properties, name)
			body.Required = slices.DeleteFunc(body.Required, func(n string) bool { return n == name })
		}
	}
	names, err := members(o.Input)
	if err != nil {
		return err
	}
	body.PropertyOrder = slices.DeleteFunc(names, func(n string) bool { return body.Properties[n] == nil })
	switch {
	// A raw route reads its body itself, and has no schema for it.
	case o.Form == tool.RawForm:
	case o.Reads():
		o.query = body.PropertyOrder
	default:
		o.body = &body
	}
	return nil
}

// valuesOf are the members of an example's request.
// An example that is no object has none.
func valuesOf(e tool.Example) map[string]json.RawMessage {
	var all map[string]json.RawMessage
	if json.Unmarshal(e.Request, &all) != nil {
		return nil
	}
	return all
}

// rest is the body of a request with these members, in the order of the schema.
func (o operation) rest(values map[string]json.RawMessage) json.RawMessage {
	body := []byte{'{'}
	for _, name := range o.body.PropertyOrder {
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
// An example: "Search brands: by name, category and date." becomes "Search brands". A dot within a word, as in details.code, ends
// nothing.
func summary(description string) string {
	for i, r := range description {
		end := r == '.' || r == ':'
		if end && (i+1 == len(description) || description[i+1] == ' ') && (i == 0 || description[i-1] != '.') {
			return description[:i]
		}
	}
	return description
}
