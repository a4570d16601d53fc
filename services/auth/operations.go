package auth

import (
	"context"
	"time"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/rpc"
	"hub.internal/pkg/text"
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

// KnownPath is where the gateway asks about a browser.
const KnownPath = "/internal/browsers/known"

// KnownRequest asks whether somebody has signed in with a browser; ID is the secret that the browser keeps.
type KnownRequest struct {
	ID string `json:"id"`
}

// KnownResponse tells it, and not who.
type KnownResponse struct {
	Known bool `json:"known"`
}

// NamesPath is where review-control and admin ask what keys are called.
const NamesPath = "/internal/apikeys/names"

// NamesRequest asks for the names of at most 100 keys.
type NamesRequest struct {
	IDs []string `json:"ids"`
}

// NamesResponse has the names by id, also those of keys that are not active any more. An id that names no key
// is absent.
type NamesResponse struct {
	Names map[string]string `json:"names"`
}

// Operations declares what auth does for the gateway, and for who shows people what was made with a key.
func Operations(s *Service, p *People) []rpc.Operation {
	gateway := caller.Neighbour(caller.Gateway)
	return []rpc.Operation{
		rpc.New(rpc.Declaration{Path: VerifyPath, Takes: gateway}, s.verify),
		rpc.New(rpc.Declaration{Path: ResolvePath, Takes: gateway}, p.resolve),
		rpc.New(rpc.Declaration{Path: KnownPath, Takes: gateway}, p.known),
		rpc.New(rpc.Declaration{Path: NamesPath, Takes: caller.Rule{"review-control": {caller.Service}, "admin": {caller.Service}}}, s.names),
	}
}

// resolve tells the gateway whose session a cookie opens.
func (p *People) resolve(ctx context.Context, in ResolveRequest) (ResolveResponse, error) {
	r, err := p.Resolve(ctx, in.ID)
	if err != nil {
		return ResolveResponse{}, err
	}
	return ResolveResponse{
		Session: r.Session.ID, User: r.User.ID, Email: r.User.Email, Name: r.User.Name, Roles: r.User.Roles, ExpiresAt: r.Session.Ends(),
	}, nil
}

// known tells whether a browser is known to be of a user: the gateway lets those wait less.
func (p *People) known(ctx context.Context, in KnownRequest) (KnownResponse, error) {
	_, known, err := p.c.Store.KnownBrowser(ctx, SessionSecret{text.Secret(in.ID)}.hash(), p.now())
	return KnownResponse{known}, err
}

// verify tells the gateway what a key may do. A key that is no longer good is told apart by its status, not by a fault.
func (s *Service) verify(ctx context.Context, in VerifyRequest) (VerifyResponse, error) {
	k, err := s.Verify(ctx, in.Key)
	if err != nil {
		return VerifyResponse{}, err
	}
	return VerifyResponse{
		ID: k.ID, Service: k.Service, Scopes: k.Scopes, Limits: k.Limits, Status: k.Status(s.c.Now()), ExpiresAt: k.ExpiresAt,
	}, nil
}

// maxNames is how many keys one question may name.
const maxNames = 100

// names tells neighbours what keys are called.
func (s *Service) names(ctx context.Context, in NamesRequest) (NamesResponse, error) {
	if len(in.IDs) > maxNames {
		return NamesResponse{}, fault.New(fault.Validation, "ids must have at most %d entries, not %d.", maxNames, len(in.IDs))
	}
	names, err := s.c.Store.Names(ctx, in.IDs)
	return NamesResponse{names}, err
}
