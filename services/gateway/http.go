package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"mime"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/go-kit/kit/endpoint"
	kithttp "github.com/go-kit/kit/transport/http"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/hop"
	"hub.internal/pkg/schema"
	"hub.internal/pkg/tool"
	"hub.internal/pkg/web"
	"hub.internal/services/gateway/reference"
)

// Routes adds the public routes of the gateway to mux.
func (g *Gateway) Routes(mux *http.ServeMux) {
	route := func(method, pattern string, handler http.Handler) {
		mux.Handle(method+" "+pattern, handler)
		allow := []string{method}
		if method == http.MethodGet {
			allow = append(allow, http.MethodHead)
		}
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { g.WrongMethod(w, r, allow) })
	}
	keys := g.Authenticators[tool.KeyCredential]
	route("GET", "/api/tools", g.tools(g.Listing(keys, g.catalog)))
	route("POST", reference.ToolRoot+"{name}", g.tools(g.Pipeline(keys)))
	route("GET", reference.ToolRoot+"{name}/detail", g.tools(g.Listing(keys, g.detail)))
	route("GET", "/openapi.json", http.HandlerFunc(g.openAPI))
	route("GET", reference.Path, http.HandlerFunc(g.docs))
	routes := g.routes()
	mux.Handle(tool.RouteRoot, routes)
	mux.Handle(strings.TrimSuffix(tool.RouteRoot, "/"), routes)
	mux.Handle("/", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if g.Console == nil || !g.Console.serve(g, w, r) {
			g.nothing(w, r)
		}
	}))
}

func (g *Gateway) nothing(w http.ResponseWriter, r *http.Request) {
	f := fault.New(fault.NotFound, "There is nothing at %s. GET /api/tools lists the tools.", printable(r.URL.Path))
	g.NewCall(r).writeFailure(w, f, 0)
}

// errMethod is what a fault that is answered as 405 follows from.
var errMethod = errors.New("wrong method")

// notAllowed is the fault of a wrong method (CONTRACT.md 1.1): the request is at fault, so E_VALIDATION.
func notAllowed(method, allow string) *fault.Error {
	return fault.New(fault.Validation, "The method %s is not allowed here; use %s.", printable(method), allow).Because(errMethod)
}

// WrongMethod answers 405 with Allow.
func (g *Gateway) WrongMethod(w http.ResponseWriter, r *http.Request, methods []string) {
	allow := strings.Join(methods, ", ")
	w.Header().Set("Allow", allow)
	g.NewCall(r).writeFailure(w, notAllowed(r.Method, allow), http.StatusMethodNotAllowed)
}

// tools is the transport of /api/tools: the body is the input of the tool that the path names.
func (g *Gateway) tools(e endpoint.Endpoint) http.Handler {
	pipeline := g.server(e)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := g.NewCall(r)
		c.Name = r.PathValue("name")
		c.Find = func() *Entry { return g.Catalog.Entry(c.Name) }
		c.Read = func(ctx context.Context, limit int64) ([]byte, error) {
			if err := jsonContent(r.Header); err != nil {
				return nil, err
			}
			return hop.ReadBody(ctx, r.Body, r.ContentLength, limit)
		}
		g.answer(pipeline, c, w, r)
	})
}

// server is go-kit's transport around an endpoint of Call, for answer.
func (g *Gateway) server(e endpoint.Endpoint) http.Handler {
	return kithttp.NewServer(e,
		func(ctx context.Context, _ *http.Request) (any, error) { return callOf(ctx), nil },
		func(ctx context.Context, w http.ResponseWriter, response any) error {
			response.(interface {
				write(*Call, http.ResponseWriter)
			}).write(callOf(ctx), w)
			return nil
		},
		kithttp.ServerErrorEncoder(g.writeError), kithttp.ServerErrorHandler(handled{}))
}

// answer lets a server answer a request, whose call this is.
func (g *Gateway) answer(server http.Handler, c *Call, w http.ResponseWriter, r *http.Request) {
	ctx := otel.GetTextMapPropagator().Extract(r.Context(), propagation.HeaderCarrier(r.Header))
	defer func() { c.end() }()
	server.ServeHTTP(w, r.WithContext(context.WithValue(ctx, callKey{}, c)))
}

type callKey struct{}

func callOf(ctx context.Context) *Call { return ctx.Value(callKey{}).(*Call) }

// handled keeps go-kit from logging what writeError has handled.
type handled struct{}

func (handled) Handle(context.Context, error) {}

// NewCall reads what a request says of itself; nothing of it is believed yet.
func (g *Gateway) NewCall(r *http.Request) *Call {
	return &Call{
		end:            func() {},
		RequestID:      requestID(r.Header),
		Started:        time.Now(),
		Address:        g.clientAddress(r),
		Credential:     credentialOf(r.Header),
		ExternalUserID: r.Header.Get(externalUserHeader),
		Repeated:       repeated(r.Header),
		IdempotencyKey: r.Header.Get(tool.KeyHeader),
		IfNoneMatch:    r.Header.Get("If-None-Match"),
		HasKey:         len(r.Header.Values(tool.KeyHeader)) > 0,
		BodyLength:     r.ContentLength,
	}
}

// clientAddress is the peer's, or what the outermost trusted proxy says of its own peer: each
// proxy appends to X-Forwarded-For, so what a client has put there itself is further left and
// is not looked at. A header that is too short or holds no address says nothing.
func (g *Gateway) clientAddress(r *http.Request) string {
	if g.TrustedHops > 0 {
		hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
		if i := len(hops) - g.TrustedHops; i >= 0 {
			if address, ok := caller.ParseAddress(hops[i]); ok {
				return address.String()
			}
		}
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// contentType is what the body is said to be. Two headers say nothing, even where they agree.
func contentType(h http.Header) (string, error) {
	if len(h.Values("Content-Type")) > 1 {
		return "", schema.Invalid("", "contentType", "must be sent once")
	}
	return h.Get("Content-Type"), nil
}

// jsonContent holds a body to application/json (CONTRACT.md 1.3). No header,
// and the one that curl -d and most HTTP libraries send by default, are taken as that: the
// body is judged as strict JSON in any case.
func jsonContent(h http.Header) error {
	header, err := contentType(h)
	if header == "" || err != nil {
		return err
	}
	kind, _, err := mime.ParseMediaType(header)
	if err == nil && (kind == "application/json" || kind == "application/x-www-form-urlencoded" || strings.HasSuffix(kind, "+json")) {
		return nil
	}
	return schema.Invalid("", "contentType", "must be sent as Content-Type: application/json")
}

// writeError is where a failed call is answered.
func (g *Gateway) writeError(ctx context.Context, err error, w http.ResponseWriter) {
	c := callOf(ctx)
	c.writeFailure(w, g.Fault(ctx, c, err), 0)
}

// Fault is what a failed call is answered with; a failure of ours is logged.
func (g *Gateway) Fault(ctx context.Context, c *Call, err error) *fault.Error {
	f := fault.From(err)
	if f.Status() >= 500 {
		g.Logger.ErrorContext(ctx, "call failed", "request_id", c.RequestID, "tool", c.Name, "error", err)
	}
	return f
}

// Refuse answers a request whose call failed with the failure envelope; status 0 takes the code's.
func (g *Gateway) Refuse(ctx context.Context, c *Call, w http.ResponseWriter, err error, status int) {
	c.writeFailure(w, g.Fault(ctx, c, err), status)
}

func (a *Answer) write(c *Call, w http.ResponseWriter) {
	name := c.Name
	if c.Entry.Route != nil {
		name = "" // the envelope below /v1 has no tool
	}
	c.writeAnswer(w, name, a)
}

// document is data that the gateway makes itself, with its ETag. Many answers may share it.
type document struct {
	tool  string
	count int
	data  []byte
	etag  string
}

func (d *document) write(c *Call, w http.ResponseWriter) {
	w.Header().Set("ETag", d.etag)
	w.Header().Set("Cache-Control", "private, no-cache")
	w.Header().Set("Vary", "Authorization, X-API-Key")
	if web.MatchesETag(c.IfNoneMatch, d.etag) {
		c.Headers(w).Del("Content-Type")
		w.WriteHeader(http.StatusNotModified)
		return
	}
	c.writeData(w, d.tool, d.count, d.data)
}

// newDocument renders data, whose count and tag a request may then be answered with.
func newDocument(name string, count int, data any) (*document, error) {
	b, err := plainJSON(data)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(b)
	return &document{tool: name, count: count, data: b, etag: `"` + hex.EncodeToString(sum[:12]) + `"`}, nil
}

func (g *Gateway) catalog(_ context.Context, request any) (any, error) {
	return g.Catalog.listing(request.(*Call).Caller)
}

func (g *Gateway) detail(_ context.Context, request any) (any, error) {
	c := request.(*Call)
	e := c.Find()
	if e == nil {
		return nil, g.Catalog.unknown(c.Name)
	}
	return newDocument(e.Spec.Name, 1, e.detailed(c.Principal))
}
