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

// ResolvePath is where the gateway asks about a console session.
const ResolvePath = "/internal/sessions/resolve"

// ResolveRequest asks whose a session is; ID is the secret that the browser keeps.
type ResolveRequest struct {
	ID string `json:"id"`
}

// ResolveResponse tells it. Session names the session without being its secret.
type ResolveResponse struct {
	Session string   `json:"session"`
	User    string   `json:"user"`
	Email   string   `json:"email"`
	Name    string   `json:"name"`
	Roles   []string `json:"roles"`
	// ExpiresAt is when the session ends unless it is used. Who caches the answer must not
	// use it for longer.
	ExpiresAt time.Time `json:"expires_at"`
}

// MountPeople serves the internal operation on sessions.
func MountPeople(mux *http.ServeMux, p *People, keys *caller.Keys, logger *slog.Logger) {
	tool.Operation(mux, ResolvePath, caller.Neighbour(caller.Gateway), 0, keys, logger, p.resolve, telemetry.Endpoint)
}

func (p *People) resolve(ctx context.Context, in ResolveRequest) (ResolveResponse, error) {
	r, err := p.Resolve(ctx, in.ID)
	if err != nil {
		return ResolveResponse{}, err
	}
	return ResolveResponse{Session: r.Session.ID, User: r.User.ID, Email: r.User.Email, Name: r.User.Name, Roles: r.User.Roles, ExpiresAt: r.Session.Ends()}, nil
}

// Mount serves the manifest, the tools and the internal operations.
func Mount(mux *http.ServeMux, s *Service, keys *caller.Keys, logger *slog.Logger) {
	tool.MountAs(mux, Manifest(s), Tools(s), keys, logger, func(spec tool.Spec) endpoint.Middleware { return telemetry.Endpoint(spec.Name) })
	tool.Operation(mux, VerifyPath, caller.Neighbour(caller.Gateway), 0, keys, logger, s.verify, telemetry.Endpoint)
}

func (s *Service) verify(ctx context.Context, in VerifyRequest) (VerifyResponse, error) {
	k, err := s.Verify(ctx, in.Key)
	if err != nil {
		return VerifyResponse{}, err
	}
	return VerifyResponse{ID: k.ID, Service: k.Service, Scopes: k.Scopes, Limits: k.Limits, Status: k.Status(s.c.Now()), ExpiresAt: k.ExpiresAt}, nil
}
