package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
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
	"hub.internal/pkg/schema"
)

// The internal protocol between processes. An answer with FaultHeader carries a
// fault in its wire form; any other 200 carries data, untouched.
const (
	CountHeader    = "Hub-Count"
	FaultHeader    = "Hub-Fault"
	DeadlineHeader = "Hub-Deadline-Ms"
	KeyHeader      = "Idempotency-Key"
	ReplayedHeader = "Idempotent-Replayed"
	ManifestPath   = "/internal/manifest"
	// RefusedHeader marks a fault that is about the internal token, not about the call: whoever
	// called has nothing to mend.
	RefusedHeader = "Hub-Refused"
	callPath      = "/internal/tools/"
)

// Path is where a service serves a tool to its neighbours.
func Path(name string) string { return callPath + name }

// Mount serves the tools and the manifest on a service's internal listener: the tools for
// agents, the manifest for the gateway. mw wraps every tool, outermost first.
func Mount(mux *http.ServeMux, service string, tools []Tool, keys *caller.Keys, logger *slog.Logger, mw ...func(Spec) endpoint.Middleware) {
	MountAs(mux, ManifestOf(service, tools), tools, keys, logger, mw...)
}

// MountAs is Mount for a service whose manifest says more than its tools.
func MountAs(mux *http.ServeMux, manifest Manifest, tools []Tool, keys *caller.Keys, logger *slog.Logger, mw ...func(Spec) endpoint.Middleware) {
	for _, t := range tools {
		e := Recover(logger)(t.Endpoint)
		for i := len(mw) - 1; i >= 0; i-- {
			e = mw[i](t.Spec)(e)
		}
		mux.Handle("POST "+Path(t.Spec.Name), Handler(e, t.Spec.Name, caller.Agents(), t.Spec.MaxBody, keys, logger))
	}
	mux.Handle("GET "+ManifestPath, Authenticated(keys, caller.Neighbour(caller.Gateway), logger, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(manifest)
	})))
}

// Recover turns a panic into an error, so that one call's defect is answered as
// E_INTERNAL and ends there.
func Recover(logger *slog.Logger) endpoint.Middleware {
	return func(next endpoint.Endpoint) endpoint.Endpoint {
		return func(ctx context.Context, request any) (response any, err error) {
			defer func() {
				if p := recover(); p != nil {
					logger.ErrorContext(ctx, "panic", "request_id", caller.From(ctx).RequestID, "panic", p, "stack", string(debug.Stack()))
					err = fmt.Errorf("panic: %v", p)
				}
			}()
			return next(ctx, request)
		}
	}
}

// Handler serves one endpoint of Call and Result to those whom takes names.
func Handler(e endpoint.Endpoint, name string, takes caller.Rule, maxBody int64, keys *caller.Keys, logger *slog.Logger) http.Handler {
	decode := func(_ context.Context, r *http.Request) (any, error) {
		body, err := ReadBody(r.Body, r.ContentLength, maxBody)
		if err != nil {
			return nil, err
		}
		return &Call{Tool: name, Input: body, IdempotencyKey: r.Header.Get(KeyHeader)}, nil
	}
	encode := func(_ context.Context, w http.ResponseWriter, response any) error {
		r := response.(*Result)
		if r.Release != nil {
			defer r.Release()
		}
		h := w.Header()
		h.Set("Content-Type", "application/json")
		h.Set("Content-Length", strconv.Itoa(len(r.Data)))
		h.Set(CountHeader, strconv.Itoa(r.Count))
		if r.Replayed {
			h.Set(ReplayedHeader, "true")
		}
		// The only error left is a caller that has gone away.
		_, _ = w.Write(r.Data)
		return nil
	}
	return Authenticated(keys, takes, logger, kithttp.NewServer(e, decode, encode, kithttp.ServerErrorEncoder(func(ctx context.Context, err error, w http.ResponseWriter) {
		WriteFault(ctx, logger, w, err)
	}), kithttp.ServerErrorHandler(ignore{})))
}

// ReadBody reads a body of at most limit bytes; a larger one is E_VALIDATION with
// details.limit_bytes.
func ReadBody(body io.Reader, length, limit int64) ([]byte, error) {
	if length > limit {
		return nil, TooLarge(limit)
	}
	size := length
	if size < 0 {
		size = 512
	}
	buf := make([]byte, 0, size+1)
	for {
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		n, err := body.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		switch {
		case int64(len(buf)) > limit:
			return nil, TooLarge(limit)
		case err == io.EOF:
			return buf, nil
		case err != nil:
			return nil, schema.Invalid("", "json", "could not be read to its end").Because(err)
		}
	}
}

// TooLarge is the refusal of a body over its cap.
func TooLarge(limit int64) error {
	return fault.New(fault.Validation, "The request body is larger than %d bytes.", limit).With(map[string]any{"limit_bytes": limit,
		"violations": []schema.Violation{{Rule: "maxBytes", Message: "must have at most " + strconv.FormatInt(limit, 10) + " bytes"}}})
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

// ignore keeps go-kit from logging an error that WriteFault has already handled.
type ignore struct{}

func (ignore) Handle(context.Context, error) {}
