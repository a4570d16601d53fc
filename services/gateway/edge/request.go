package edge

import (
	"context"
	"errors"
	"mime"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/go-kit/kit/endpoint"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/rpc"
	"hub.internal/pkg/schema"
	"hub.internal/pkg/tool"
	"hub.internal/pkg/web"
	"hub.internal/services/gateway/catalog"
)

// NewCall reads what a request says of itself; nothing of it is believed yet. Its Transport is still to be set.
func (g *Gateway) NewCall(r *http.Request) *Call {
	return &Call{
		cancel:         func() {},
		RequestID:      requestID(r.Header),
		Started:        time.Now(),
		Address:        g.clientAddress(r),
		Credential:     credentialOf(r.Header),
		ExternalUserID: r.Header.Get(externalUserHeader),
		Repeated:       repeatedHeaders(r.Header),
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

// ContentType is what the body is said to be. Two headers say nothing, even where they agree: E_VALIDATION.
func ContentType(h http.Header) (string, error) {
	if len(h.Values("Content-Type")) > 1 {
		return "", schema.Invalid("", "contentType", "must be sent once")
	}
	return h.Get("Content-Type"), nil
}

// ReadJSON reads a body of at most limit bytes that is said to be application/json (CONTRACT.md 1.3). No header,
// and the one that curl -d and most HTTP libraries send by default, are taken as that: the
// body is judged as strict JSON in any case.
func ReadJSON(ctx context.Context, r *http.Request, limit int64) ([]byte, error) {
	header, err := ContentType(r.Header)
	if err != nil {
		return nil, err
	}
	kind, _, err := mime.ParseMediaType(header)
	if header != "" && (err != nil || kind != "application/json" && kind != "application/x-www-form-urlencoded" &&
		!strings.HasSuffix(kind, "+json")) {
		return nil, schema.Invalid("", "contentType", "must be sent as Content-Type: application/json")
	}
	return rpc.ReadBody(ctx, r.Body, r.ContentLength, limit)
}

// Response is what a pipeline ends with, as a transport writes it.
type Response interface {
	Write(c *Call, w http.ResponseWriter)
}

// Serve answers a request whose call is c, and whose way is pipeline.
func (g *Gateway) Serve(w http.ResponseWriter, r *http.Request, c *Call, pipeline endpoint.Endpoint) {
	ctx := otel.GetTextMapPropagator().Extract(r.Context(), propagation.HeaderCarrier(r.Header))
	defer func() { c.End() }()
	response, err := pipeline(ctx, c)
	if err != nil {
		g.Refuse(ctx, c, w, err, 0)
		return
	}
	response.(Response).Write(c, w)
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
	c.WriteFailure(w, g.Fault(ctx, c, err), status)
}

// NotFound answers a request for a path that nobody has.
func (g *Gateway) NotFound(w http.ResponseWriter, r *http.Request) {
	f := fault.New(fault.NotFound, "There is nothing at %s. GET /api/tools lists the tools.", catalog.Shown(r.URL.Path))
	g.NewCall(r).WriteFailure(w, f, 0)
}

// ErrMethod is what a fault that is answered as 405 follows from.
var ErrMethod = errors.New("wrong method")

// NotAllowed is the fault of a wrong method (CONTRACT.md 1.1): the request is at fault, so E_VALIDATION.
func NotAllowed(method, allow string) *fault.Error {
	return fault.New(fault.Validation, "The method %s is not allowed here; use %s.", catalog.Shown(method), allow).Because(ErrMethod)
}

// WrongMethod answers 405 with Allow.
func (g *Gateway) WrongMethod(w http.ResponseWriter, r *http.Request, methods []string) {
	allow := strings.Join(methods, ", ")
	w.Header().Set("Allow", allow)
	g.NewCall(r).WriteFailure(w, NotAllowed(r.Method, allow), http.StatusMethodNotAllowed)
}

// Handle adds a route to mux: other methods than its own are answered 405, but for HEAD where it is GET.
func (g *Gateway) Handle(mux *http.ServeMux, method, pattern string, handler http.HandlerFunc) {
	mux.HandleFunc(method+" "+pattern, handler)
	allow := []string{method}
	if method == http.MethodGet {
		allow = append(allow, http.MethodHead)
	}
	mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { g.WrongMethod(w, r, allow) })
}

// Open is the way of what needs no credential and is the same for everybody: it counts against the limit of its network.
func (g *Gateway) Open(ctx context.Context, c *Call, render func() (*web.Static, error)) (*web.Static, error) {
	visitors := g.Authenticators[tool.NoCredential]
	if visitors == nil {
		return render()
	}
	made, err := g.Listing(visitors, func(context.Context, any) (any, error) { return render() })(ctx, c)
	if err != nil {
		return nil, err
	}
	return made.(*web.Static), nil
}

// WriteStatic answers what is the same for everybody: a reader asks with If-None-Match whether it is still so.
func (c *Call) WriteStatic(made *web.Static, w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-cache") // but for a 304
	w.Header().Set("X-Request-Id", c.RequestID)
	c.Limits.headers(w.Header())
	made.ServeHTTP(w, r)
}
