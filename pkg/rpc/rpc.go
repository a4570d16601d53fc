// Package rpc is the protocol between Hub's processes, on the side that answers: the headers, the
// check of the token, the deadline that travels, a tool or an operation behind one handler, and a
// fault on the wire. It refuses to be public: what it serves is for processes that hold each
// other's keys. The side that asks is pkg/remote.
//
// It is go-kit's transport/http, with the codecs written once: each service would otherwise have a
// decode and an encode function for each endpoint that differ in a type's name.
package rpc

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/go-kit/kit/endpoint"
	kithttp "github.com/go-kit/kit/transport/http"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/tool"
)

// The headers between processes. An answer with FaultHeader carries a fault in its wire form; any
// other carries data, untouched.
const (
	CountHeader    = "Hub-Count"
	FaultHeader    = "Hub-Fault"
	DeadlineHeader = "Hub-Deadline-Ms"
	ReplayedHeader = "Idempotent-Replayed"
	// RefusedHeader marks a fault that is about the internal token, not about the call: whoever
	// called has nothing to mend.
	RefusedHeader = "Hub-Refused"
	// AgeHeader is how long ago the write of a replayed answer happened, in milliseconds.
	AgeHeader = "Hub-Age-Ms"

	// ManifestPath is where a service serves its manifest.
	ManifestPath = "/internal/manifest"
	// TrustPath is where a process tells a neighbour that it believes it.
	TrustPath = "/internal/trust"
	toolPath  = "/internal/tools/"
	routePath = "/internal/routes/"
)

// ToolPath is where a service serves a tool.
func ToolPath(name string) string { return toolPath + name }

// RoutePath is where a service serves a route of the API, whatever its path and method are outside.
func RoutePath(name string) string { return routePath + name }

// Server serves what a service answers its neighbours on a mux of its own.
type Server struct {
	Mux    *http.ServeMux
	Keys   *caller.Keys
	Logger *slog.Logger
}

// Tool serves a tool for agents; mw wraps it, outermost first.
func (s Server) Tool(t tool.Tool, mw ...endpoint.Middleware) {
	s.serve(ToolPath(t.Spec.Name), t.Spec.Name, caller.Agents(), t.Spec.MaxBody, t.Endpoint, mw)
}

// Route serves a route of the API for those who have its credential; mw wraps it, outermost first.
func (s Server) Route(r tool.APIRoute, mw ...endpoint.Middleware) {
	s.serve(RoutePath(r.Spec.Name), r.Spec.Name, RouteRule(r.Spec.Credential), r.Spec.MaxInput(), r.Tool.Endpoint, mw)
}

// RouteRule is the rule of a route that takes this credential: whom it makes, at the gateway. One that is not
// known makes nobody.
func RouteRule(credential string) caller.Rule {
	kinds := map[string]string{tool.KeyCredential: caller.Key, tool.AppCredential: caller.App,
		tool.AppUnlinkedCredential: caller.App, tool.NoCredential: caller.Visitor}
	if kind, known := kinds[credential]; known {
		return caller.Rule{caller.Gateway: {kind}}
	}
	return nil
}

// Operation serves an operation for those whom it takes; mw wraps it, outermost first.
func (s Server) Operation(o Operation, mw ...endpoint.Middleware) {
	s.serve(o.Spec.Path, o.Name(), o.takes, o.maxBody, o.endpoint, mw)
}

// Manifest serves the manifest for the gateway.
func (s Server) Manifest(m tool.Manifest) {
	answer := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(m)
	})
	s.Mux.Handle("GET "+ManifestPath, Authenticated(s.Keys, caller.Neighbour(caller.Gateway), s.Logger, answer))
}

// Trust answers 204 to whichever process of the trusted keys asks for itself: that it is believed.
func (s Server) Trust() {
	answer := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	s.Mux.Handle("GET "+TrustPath, Authenticated(s.Keys, s.Keys.Neighbours(), s.Logger, answer))
}

func (s Server) serve(path, name string, takes caller.Rule, maxBody int64, e endpoint.Endpoint, mw []endpoint.Middleware) {
	e = Recover(s.Logger)(e)
	for i := len(mw) - 1; i >= 0; i-- {
		e = mw[i](e)
	}
	s.Mux.Handle("POST "+path, Handler(e, name, takes, maxBody, s.Keys, s.Logger))
}

// Recover turns a panic into an error, so that one call's defect is answered as E_INTERNAL and ends there. That of
// http.ErrAbortHandler goes on: it cuts an answer off that cannot be taken back.
func Recover(logger *slog.Logger) endpoint.Middleware {
	return func(next endpoint.Endpoint) endpoint.Endpoint {
		return func(ctx context.Context, request any) (response any, err error) {
			defer func() {
				p := recover()
				if p == http.ErrAbortHandler { //nolint:errorlint // net/http compares like this
					panic(p)
				}
				if p != nil {
					logger.ErrorContext(ctx, "panic", "request_id", caller.From(ctx).RequestID, "panic", p, "stack", string(debug.Stack()))
					err = fmt.Errorf("panic: %v", p)
				}
			}()
			return next(ctx, request)
		}
	}
}

// Handler serves one endpoint of tool.Call and tool.Result to those whom takes names.
func Handler(e endpoint.Endpoint, name string, takes caller.Rule, maxBody int64, keys *caller.Keys, logger *slog.Logger) http.Handler {
	decode := func(ctx context.Context, r *http.Request) (any, error) {
		body, err := ReadBody(ctx, r.Body, r.ContentLength, maxBody)
		if err != nil {
			return nil, err
		}
		most, _ := strconv.Atoi(r.Header.Get(tool.BytesHeader)) // 0 for none
		return &tool.Call{Tool: name, Input: body, IdempotencyKey: r.Header.Get(tool.KeyHeader),
			DeriveKey: r.Header.Get(tool.DeriveHeader) != "", MostBytes: most}, nil
	}
	encode := func(_ context.Context, w http.ResponseWriter, response any) error {
		r := response.(*tool.Result)
		if r.Release != nil {
			defer r.Release()
		}
		h := w.Header()
		h.Set("Content-Type", "application/json")
		h.Set("Content-Length", strconv.Itoa(len(r.Data)))
		h.Set(CountHeader, strconv.Itoa(r.Count))
		if r.Replayed {
			h.Set(ReplayedHeader, "true")
			h.Set(AgeHeader, strconv.FormatInt(r.Age.Milliseconds(), 10))
		}
		if r.Location != "" {
			h.Set("Location", r.Location)
		}
		if r.Status != 0 {
			w.WriteHeader(r.Status)
		}
		// The only error left is a caller that has gone away.
		_, _ = w.Write(r.Data)
		return nil
	}
	fail := func(ctx context.Context, err error, w http.ResponseWriter) { WriteFault(ctx, logger, w, err) }
	return Authenticated(keys, takes, logger,
		kithttp.NewServer(e, decode, encode, kithttp.ServerBefore(withHolder), kithttp.ServerErrorEncoder(fail),
			kithttp.ServerErrorHandler(ignoreErrors{})))
}

// Authenticated puts the caller, the trace and the deadline of a neighbour's request into the
// context of next. It answers 401 without a valid token, and 403 with that of somebody whom
// takes does not name.
func Authenticated(keys *caller.Keys, takes caller.Rule, logger *slog.Logger, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, err := keys.Accept(otel.GetTextMapPropagator().Extract(r.Context(), propagation.HeaderCarrier(r.Header)), r.Header, takes)
		if err != nil {
			logger.WarnContext(r.Context(), "internal token refused", "path", r.URL.Path, "peer", r.RemoteAddr, "error", err)
			w.Header().Set(RefusedHeader, "token")
			WriteFault(r.Context(), logger, w, err)
			return
		}
		if ms, err := strconv.ParseInt(r.Header.Get(DeadlineHeader), 10, 64); err == nil {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, time.Duration(ms)*time.Millisecond)
			defer cancel()
		}
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// WriteFault answers err in the wire form that remote reads, and logs what is a
// failure of ours: the one place in a service where that happens.
func WriteFault(ctx context.Context, logger *slog.Logger, w http.ResponseWriter, err error) {
	f := fault.From(err)
	if f.Status() >= 500 {
		logger.ErrorContext(ctx, "call failed", "request_id", caller.From(ctx).RequestID, "error", err)
	}
	body, encodeErr := json.Marshal(f)
	if encodeErr != nil {
		logger.ErrorContext(ctx, "fault not encoded", "error", encodeErr)
		f = fault.From(encodeErr)
		body, _ = json.Marshal(f) // it has no details
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set(FaultHeader, string(f.Code))
	w.WriteHeader(f.Status())
	_, _ = w.Write(body)
}

// ignoreErrors keeps go-kit from logging an error that WriteFault has already handled.
type ignoreErrors struct{}

func (ignoreErrors) Handle(context.Context, error) {}
