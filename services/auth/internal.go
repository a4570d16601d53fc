package auth

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/go-kit/kit/endpoint"

	"hub.internal/pkg/caller"
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
	tool.Operation(mux, VerifyPath, 0, keys, logger, s.verify, telemetry.Endpoint)
}

func (s *Service) verify(ctx context.Context, in VerifyRequest) (VerifyResponse, error) {
	k, err := s.Verify(ctx, in.Key)
	if err != nil {
		return VerifyResponse{}, err
	}
	return VerifyResponse{ID: k.ID, Service: k.Service, Scopes: k.Scopes, Limits: k.Limits, Status: k.Status(s.c.Now()), ExpiresAt: k.ExpiresAt}, nil
}
