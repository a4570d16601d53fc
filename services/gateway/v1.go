package gateway

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
	"slices"
	"strings"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/hop"
	"hub.internal/pkg/remote"
	"hub.internal/pkg/schema"
	"hub.internal/pkg/tool"
)

// pathValue is what one element of a path may be: nothing that has to be decoded, and no dots alone.
var pathValue = regexp.MustCompile(`^[A-Za-z0-9._~-]{1,128}$`)

// match is a route and the values of its path, in order.
type match struct {
	*Entry
	values []member
}

type member struct{ name, value string }

// match finds the route of a request: path is as it was sent, and an element that is written in any other
// way than plainly fits nothing. Without a route, allow lists the methods that the path has; nil when
// there is no such path.
func (c *Catalog) match(method, path string) (m *match, allow []string) {
	rest, below := strings.CutPrefix(path, tool.RouteRoot)
	if !below {
		return nil, nil
	}
	elements := strings.Split(rest, "/")
	for _, e := range c.merged.Load().routes[elements[0]] {
		values, fits := e.fits(elements)
		if !fits {
			continue
		}
		if e.Route.Method == method || e.Route.Reads() && method == http.MethodHead {
			return &match{e, values}, nil
		}
		if allow = append(allow, e.Route.Method); e.Route.Reads() {
			allow = append(allow, http.MethodHead)
		}
	}
	slices.Sort(allow)
	return nil, slices.Compact(allow)
}

func (e *Entry) fits(elements []string) (values []member, fits bool) {
	if len(elements) != len(e.elements) {
		return nil, false
	}
	for i, want := range e.elements {
		name, isValue := tool.Value(want)
		switch {
		case !isValue && want != elements[i]:
			return nil, false
		case isValue && (!pathValue.MatchString(elements[i]) || strings.Trim(elements[i], ".") == ""):
			return nil, false
		case isValue:
			values = append(values, member{name, elements[i]})
		}
	}
	return values, true
}

// routes serves the API below /v1/: each route goes through the pipeline of the credential that it
// names. One that this gateway cannot check is as if it were not there.
func (g *Gateway) routes() http.Handler {
	pipelines := map[string]http.Handler{} // by the credential that a route names
	for credential, a := range g.Authenticators {
		pipelines[credential] = g.server(g.Pipeline(a))
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m, allow := g.Catalog.match(r.Method, r.URL.EscapedPath())
		if m == nil && allow != nil {
			g.WrongMethod(w, r, allow)
			return
		}
		if m == nil || pipelines[m.Route.Credential] == nil {
			g.nothing(w, r)
			return
		}
		c := g.NewCall(r)
		c.Name = m.Spec.Name
		c.Find = func() *Entry { return m.Entry }
		c.Read = func(ctx context.Context, limit int64) ([]byte, error) { return m.input(ctx, r, limit) }
		if m.raw() {
			c.Plain = true
			c.Read = func(ctx context.Context, limit int64) ([]byte, error) { return m.rawInput(ctx, r, limit) }
		}
		g.answer(pipelines[m.Route.Credential], c, w, r)
	})
}

// input makes the input of a request: of its query, or of its body, and of the values of its path.
func (m *match) input(ctx context.Context, r *http.Request, limit int64) ([]byte, error) {
	if m.Route.Reads() {
		if r.ContentLength != 0 {
			return nil, schema.Invalid("", "body", "must not be there: a GET takes its input from the query")
		}
		return m.fromQuery(r.URL.RawQuery)
	}
	if r.URL.RawQuery != "" {
		return nil, schema.Invalid("", "query", "must not be there: a %s takes its input from the body", r.Method)
	}
	if err := jsonContent(r.Header); err != nil {
		return nil, err
	}
	body, err := hop.ReadBody(ctx, r.Body, r.ContentLength, limit)
	if err != nil {
		return nil, err
	}
	return m.withValues(body), nil
}

// withValues puts the path's values in front of the members of body. A body that has them too holds a
// name twice, and is refused for it; one that is no object stays as it is, and is refused as well.
func (m *match) withValues(body []byte) []byte {
	rest := bytes.TrimLeft(body, " \t\r\n")
	if len(rest) == 0 {
		rest = []byte("{}")
	}
	if rest[0] != '{' || len(m.values) == 0 {
		return rest
	}
	rest = bytes.TrimLeft(rest[1:], " \t\r\n")
	b := make([]byte, 0, len(rest)+200*len(m.values))
	b = append(b, '{')
	for i, v := range m.values {
		if i > 0 {
			b = append(b, ',')
		}
		b = quote(append(quote(b, v.name), ':'), v.value)
	}
	if len(rest) > 0 && rest[0] != '}' {
		b = append(b, ',')
	}
	return append(b, rest...)
}

// fromQuery makes an object of the path's values and the query. A parameter that the schema has as a
// number, a boolean or a list becomes one where it can be read so; any other is text, which the schema
// then judges.
func (m *match) fromQuery(raw string) ([]byte, error) {
	query, err := url.ParseQuery(raw)
	if err != nil {
		return nil, schema.Invalid("", "query", "cannot be read").Because(err)
	}
	members := map[string]json.RawMessage{}
	for name, values := range query {
		members[name] = queryValue(m.Entry.input.Properties[name], values)
	}
	for _, v := range m.values {
		if _, twice := members[v.name]; twice {
			return nil, schema.Invalid("/"+v.name, "query", "is a part of the path")
		}
		members[v.name] = quote(nil, v.value)
	}
	b, err := json.Marshal(members)
	if err != nil {
		return nil, fault.From(err)
	}
	return b, nil
}

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
	return quote(nil, v)
}

var integer = regexp.MustCompile(`^-?(0|[1-9][0-9]{0,18})$`)

// ownPath tells whether a Location is a path here: of no other host, and nothing that a reader of it may
// take for one.
func ownPath(location string) bool {
	if !plainAddress(location) || !strings.HasPrefix(location, "/") || strings.HasPrefix(location, "//") {
		return false
	}
	_, err := url.Parse(location)
	return err == nil
}

// plainAddress tells that an address has nothing that its readers take for different things.
func plainAddress(s string) bool {
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7f || c == '\\' {
			return false
		}
	}
	return len(s) <= 2048
}

// maxAnswer bounds the answer of a route, in bytes.
const maxAnswer = 16 << 20

// settle holds an owner's answer to what one may be: a Location is a path here, where the status has one,
// and a body that goes on beyond its bound is cut off.
func settle(a *remote.Response) error {
	if a.Status == http.StatusOK {
		a.Location = ""
	}
	switch {
	case a.Status == http.StatusSeeOther && a.Location == "":
		return errors.New("303 without a Location")
	case a.Location != "" && !ownPath(a.Location):
		return fmt.Errorf("a Location that is no path here: %q", printable(a.Location))
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

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, errors.New("the answer is too large")
	}
	return n, err
}
