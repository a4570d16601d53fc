package auth

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/go-kit/kit/endpoint"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/telemetry"
	"hub.internal/pkg/tool"
)

// VerifyPath is where the gateway asks about a key.
const VerifyPath = "/internal/apikeys/verify"

// VerifyRequest asks what a key is good for.
type VerifyRequest struct {
	Key string `json:"key"`
}

// VerifyResponse tells it. A key that is not active is told apart here and not by a
// fault, so that the gateway can record which key was refused.
type VerifyResponse struct {
	ID      string   `json:"id"`
	Service string   `json:"service"`
	Scopes  []string `json:"scopes"`
	Limits  Limits   `json:"limits"`
	Status  Status   `json:"status"`
	// ExpiresAt is null for a key that does not expire. Who caches the answer must not
	// use it for longer.
	ExpiresAt *time.Time `json:"expires_at"`
}

// Mount serves the manifest, the tools and the internal operations.
func Mount(mux *http.ServeMux, s *Service, keys *caller.Keys, logger *slog.Logger) {
	tool.Mount(mux, "auth", Tools(s), keys, logger, func(spec tool.Spec) endpoint.Middleware { return telemetry.Endpoint(spec.Name) })
	mux.Handle("POST "+VerifyPath, operation("apikeys.verify", s.verify, keys, logger))
}

func (s *Service) verify(ctx context.Context, in VerifyRequest) (VerifyResponse, error) {
	k, err := s.Verify(ctx, in.Key)
	if err != nil {
		return VerifyResponse{}, err
	}
	return VerifyResponse{ID: k.ID, Service: k.Service, Scopes: k.Scopes, Limits: k.Limits, Status: k.Status(s.c.Now()), ExpiresAt: k.ExpiresAt}, nil
}

// operation serves a neighbour's call like a tool's, but ignores members that it does not
// know: the JSON between services only grows, and a newer gateway may be ahead.
func operation[In, Out any](name string, do func(context.Context, In) (Out, error), keys *caller.Keys, logger *slog.Logger) http.Handler {
	e := func(ctx context.Context, request any) (any, error) {
		var in In
		// The decoder's error may quote the input, and the input is a secret.
		if json.Unmarshal(request.(*tool.Call).Input, &in) != nil {
			return nil, fault.New(fault.Validation, "The body is not the JSON that %s takes.", name)
		}
		out, err := do(ctx, in)
		if err != nil {
			return nil, err
		}
		data, err := json.Marshal(out)
		if err != nil {
			return nil, fmt.Errorf("encode answer of %s: %w", name, err)
		}
		return &tool.Result{Data: data, Count: 1}, nil
	}
	return tool.Handler(telemetry.Endpoint(name)(tool.Recover(logger)(e)), name, tool.DefaultMaxBody, keys, logger)
}
