// Package v1 is the transport of the pipeline for the API below /v1: method and path name a route, and its input is made of
// the path's values with the query or the body. It holds what owners answer to what an answer may be, and refuses to know
// any route by name.
//
// A raw route (tool.RawForm) is for callers that know nothing of Hub's envelope, such as the payment provider's webhook and a
// browser that comes back from its page: its request is handed over as it came, and its answer is written as it is, once it
// is certain that no browser takes it for a page of the console.
package v1

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/go-kit/kit/endpoint"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/remote"
	"hub.internal/pkg/schema"
	"hub.internal/services/gateway/catalog"
	"hub.internal/services/gateway/edge"
)

// Handler serves the API below /v1/: each route goes through the pipeline of the credential that it
// names. One that this gateway cannot check is as if it were not there.
func Handler(g *edge.Gateway) http.Handler {
	pipelines := map[string]endpoint.Endpoint{} // by the credential that a route names
	for credential, a := range g.Authenticators {
		pipelines[credential] = g.Pipeline(a, checked(g.Route))
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m, allow := g.Catalog.Match(r.Method, r.URL.EscapedPath())
		if m == nil && allow != nil {
			g.WrongMethod(w, r, allow)
			return
		}
		if m == nil || pipelines[m.Route.Credential] == nil {
			g.NotFound(w, r)
			return
		}
		c := g.NewCall(r)
		c.Name, c.Plain, c.Transport = m.Spec.Name, m.Raw(), transport{m, r}
		g.Serve(w, r, c, pipelines[m.Route.Credential])
	})
}

// checked holds the answer of an owner to what one of a route may be.
func checked(next endpoint.Endpoint) endpoint.Endpoint {
	return func(ctx context.Context, request any) (any, error) {
		response, err := next(ctx, request)
		if err != nil {
			return nil, err
		}
		a, e := response.(*edge.Answer), request.(*edge.Call).Entry
		if e.Raw() {
			raw, err := readRaw(a.Response, e.Route)
			if err != nil {
				return nil, fmt.Errorf("raw answer of %s to %s: %w", e.Service, e.Spec.Name, err)
			}
			return raw, nil
		}
		if err := checkAnswer(a.Response); err != nil {
			_ = a.Data.Close()
			return nil, fmt.Errorf("answer of %s to %s: %w", e.Service, e.Spec.Name, err)
		}
		return a, nil
	}
}

// transport is a request for a route.
type transport struct {
	*catalog.Match
	request *http.Request
}

// Find implements edge.Transport.
func (t transport) Find() *catalog.Entry { return t.Entry }

// Read implements edge.Transport: the input is made of the query or the body, and of the values of the path.
func (t transport) Read(ctx context.Context, limit int64) ([]byte, error) {
	if t.Raw() {
		return t.rawInput(ctx, limit)
	}
	return t.input(ctx, limit)
}

// input makes the input of a request: of its query, or of its body, and of the values of its path.
func (t transport) input(ctx context.Context, limit int64) ([]byte, error) {
	r := t.request
	// A body of a GET means nothing in HTTP, and caches and proxies may drop it: it is refused, so that nobody relies on it.
	if t.Route.Reads() {
		if r.ContentLength != 0 {
			return nil, schema.Invalid("", "body", "must not be there: a GET takes its input from the query")
		}
		return t.fromQuery(r.URL.RawQuery)
	}
	if r.URL.RawQuery != "" {
		return nil, schema.Invalid("", "query", "must not be there: a %s takes its input from the body", r.Method)
	}
	body, err := edge.ReadJSON(ctx, r, limit)
	if err != nil {
		return nil, err
	}
	return withValues(t.Values, body), nil
}

// withValues puts the path's values in front of the members of body. A body that has them too holds a
// name twice, and is refused for it; one that is no object stays as it is, and is refused as well.
func withValues(values []catalog.PathValue, body []byte) []byte {
	rest := bytes.TrimLeft(body, " \t\r\n")
	if len(rest) == 0 {
		rest = []byte("{}")
	}
	if rest[0] != '{' || len(values) == 0 {
		return rest
	}
	rest = bytes.TrimLeft(rest[1:], " \t\r\n")
	b := make([]byte, 0, len(rest)+200*len(values))
	b = appendMembers(append(b, '{'), values)
	if len(rest) > 0 && rest[0] != '}' {
		b = append(b, ',')
	}
	return append(b, rest...)
}

// appendMembers appends values as members of an object to b.
func appendMembers(b []byte, values []catalog.PathValue) []byte {
	for i, v := range values {
		if i > 0 {
			b = append(b, ',')
		}
		b = edge.AppendQuote(append(edge.AppendQuote(b, v.Name), ':'), v.Value)
	}
	return b
}

// fromQuery makes an object of the path's values and the query. A parameter that the schema has as a
// number, a boolean or a list becomes one where it can be read so; any other is text, which the schema
// then judges.
func (t transport) fromQuery(raw string) ([]byte, error) {
	query, err := url.ParseQuery(raw)
	if err != nil {
		return nil, schema.Invalid("", "query", "cannot be read").Because(err)
	}
	members := map[string]json.RawMessage{}
	for name, values := range query {
		members[name] = queryValue(t.Input.Properties[name], values)
	}
	for _, v := range t.Values {
		if _, twice := members[v.Name]; twice {
			return nil, schema.Invalid("/"+v.Name, "query", "is a part of the path")
		}
		members[v.Name] = edge.AppendQuote(nil, v.Value)
	}
	b, err := json.Marshal(members)
	if err != nil {
		return nil, fault.From(err)
	}
	return b, nil
}

// queryValue is a parameter of the query as JSON: a list where the schema has one or the parameter is repeated, a number or a
// boolean where the schema has that and the text is one, and otherwise a text.
func queryValue(s *schema.Schema, values []string) json.RawMessage {
	if len(values) != 1 || s != nil && s.Type == "array" {
		var items *schema.Schema
		if s != nil && s.Type == "array" {
			items = s.Items
		}
		list := []byte{'['}
		for i, v := range values {
			if i > 0 {
				list = append(list, ',')
			}
			list = append(list, queryValue(items, []string{v})...)
		}
		return append(list, ']')
	}
	v := values[0]
	if s != nil && (s.Type == "boolean" && (v == "true" || v == "false") || s.Type == "integer" && integer.MatchString(v)) {
		return json.RawMessage(v)
	}
	return edge.AppendQuote(nil, v)
}

// integer is the form of a whole number in a query, of at most 19 digits.
var integer = regexp.MustCompile(`^-?(0|[1-9][0-9]{0,18})$`)

// ownPath tells whether a Location is a path here: of no other host, and nothing that a reader of it may
// take for one.
func ownPath(location string) bool {
	if !edge.PlainAddress(location) || !strings.HasPrefix(location, "/") || strings.HasPrefix(location, "//") {
		return false
	}
	_, err := url.Parse(location)
	return err == nil
}

// maxAnswer bounds the answer of a route, in bytes.
const maxAnswer = 16 << 20

// checkAnswer holds an owner's answer to what one may be: a Location is a path here, where the status has one,
// and a body that goes on beyond its bound is cut off.
func checkAnswer(a *remote.Response) error {
	if a.Status == http.StatusOK {
		a.Location = ""
	}
	switch {
	case a.Status == http.StatusSeeOther && a.Location == "":
		return errors.New("303 without a Location")
	case a.Location != "" && !ownPath(a.Location):
		return fmt.Errorf("a Location that is no path here: %q", catalog.Shown(a.Location))
	case a.Length > maxAnswer:
		return fmt.Errorf("%d bytes", a.Length)
	}
	a.Data = &bounded{a.Data, maxAnswer}
	return nil
}

// bounded is an answer's data that fails beyond a number of bytes.
type bounded struct {
	io.ReadCloser
	left int64
}

// Read implements io.Reader. It fails beyond the bound, so that the answer is cut off there.
func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, errors.New("the answer is too large")
	}
	return n, err
}
