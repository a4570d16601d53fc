package v1

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"

	"hub.internal/pkg/remote"
	"hub.internal/pkg/rpc"
	"hub.internal/pkg/schema"
	"hub.internal/pkg/tool"
	"hub.internal/services/gateway/catalog"
	"hub.internal/services/gateway/edge"
)

// maxContentType bounds what a raw request says of its body, in bytes.
const maxContentType = 255

// rawInput makes the input of a raw route of a request, whatever its body is (tool.RawRequest).
func (t transport) rawInput(ctx context.Context, limit int64) ([]byte, error) {
	r := t.request
	kind, err := edge.ContentType(r.Header)
	switch {
	case err != nil:
		return nil, err
	case len(r.URL.RawQuery) > tool.MaxRawQuery:
		return nil, schema.Invalid("", "query", "must have at most %d bytes", tool.MaxRawQuery)
	case len(kind) > maxContentType:
		return nil, schema.Invalid("", "contentType", "must have at most %d bytes", maxContentType)
	}
	body, err := rpc.ReadBody(ctx, r.Body, r.ContentLength, limit)
	if err != nil {
		return nil, err
	}
	sent := []catalog.PathValue{{Name: "method", Value: t.Route.Method}, {Name: "contentType", Value: kind},
		{Name: "query", Value: r.URL.RawQuery}, {Name: "body", Value: base64.StdEncoding.EncodeToString(body)}}
	b := append(make([]byte, 0, 1024+2*len(body)), '{')
	return append(appendMembers(b, slices.Concat(t.Values, sent)), '}'), nil
}

// rawAnswer is the answer of a raw route, written as it is.
type rawAnswer struct{ tool.RawAnswer }

// readRaw reads the answer of an owner, and holds it to what one may be. It closes the response.
func readRaw(r *remote.Response, route *tool.RouteSpec) (*rawAnswer, error) {
	defer r.Data.Close()
	data := io.LimitedReader{R: r.Data, N: 2*tool.MaxRawBody + 1}
	a := &rawAnswer{}
	if err := json.NewDecoder(&data).Decode(&a.RawAnswer); err != nil {
		return nil, fmt.Errorf("it cannot be read: %w", err)
	}
	a.Status = cmp.Or(a.Status, route.Success[0])
	refused := a.Status >= http.StatusBadRequest && a.Status <= 599
	switch {
	case !refused && !slices.Contains(route.Success, a.Status):
		return nil, fmt.Errorf("the status %d", a.Status)
	case len(a.Body) > tool.MaxRawBody:
		return nil, fmt.Errorf("%d bytes", len(a.Body))
	case len(a.Body) > 0 && !rawContent.MatchString(a.ContentType):
		return nil, fmt.Errorf("the content type %q", catalog.Shown(a.ContentType))
	case (a.Status == http.StatusSeeOther) != (a.Location != ""):
		return nil, fmt.Errorf("%d with a Location of %d bytes", a.Status, len(a.Location))
	case a.Location != "" && !ownPath(a.Location) && !elsewhere(a.Location):
		return nil, errors.New("a Location that leads nowhere")
	}
	return a, nil
}

// rawContent are the content types that a raw answer may have: text that no browser takes for anything else.
var rawContent = regexp.MustCompile(`^(text/plain|text/html|application/json)(; ?charset=(utf-8|UTF-8))?$`)

// elsewhere tells whether a Location is an address at another host that a browser may be sent to: with https, or
// with http on the machine that the browser runs on, as in a local stack.
func elsewhere(location string) bool {
	u, err := url.Parse(location)
	if err != nil || !edge.PlainAddress(location) || u.User != nil || u.Hostname() == "" || u.Opaque != "" {
		return false
	}
	return u.Scheme == "https" || u.Scheme == "http" && loopback(u.Hostname())
}

// loopback tells whether a host is the machine that asks.
func loopback(host string) bool { return host == "localhost" || net.ParseIP(host).IsLoopback() }

// Write implements edge.Response. It is what others have said, on the host that the console has: no
// browser runs it.
func (a *rawAnswer) Write(c *edge.Call, w http.ResponseWriter) {
	h := c.Headers(w)
	edge.Sandbox(h)
	h.Del("Content-Type")
	if len(a.Body) > 0 {
		h.Set("Content-Type", a.ContentType)
	}
	if a.Location != "" {
		h.Set("Location", a.Location)
	}
	h.Set("Content-Length", strconv.Itoa(len(a.Body)))
	w.WriteHeader(a.Status)
	_, _ = w.Write(a.Body) // the only error left is a reader that has gone
}
