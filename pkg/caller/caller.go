// Package caller says who is calling: the principal that the gateway has
// authenticated, carried in a context inside a process and in a signed internal
// token between processes. It refuses to authenticate anybody from outside:
// keys, ServiceJWTs and sessions are the gateway's and auth's.
package caller

import (
	"context"
	"slices"
)

// Kinds of principal.
const (
	// Key is an agent with a CRM API key.
	Key = "key"
	// App is a Connected App with a ServiceJWT.
	App = "app"
	// User is a person with a console session.
	User = "user"
	// Service is a neighbour that acts for itself.
	Service = "service"
)

// Caller is an authenticated principal.
type Caller struct {
	Kind string `json:"kind"`
	// Service and ExternalUserID are the rate-limit and audit identity.
	Service        string   `json:"svc,omitempty"`
	ExternalUserID string   `json:"ext,omitempty"`
	CredentialID   string   `json:"cid,omitempty"`
	Scopes         []string `json:"scp,omitempty"`
	// HubUser and Roles are set for a console session or a linked account.
	HubUser string   `json:"usr,omitempty"`
	Roles   []string `json:"rol,omitempty"`
	// RequestID follows one call through every process.
	RequestID string `json:"rid,omitempty"`
}

// Holds tells whether the caller has the scope.
func (c Caller) Holds(scope string) bool { return slices.Contains(c.Scopes, scope) }

type key struct{}

// With returns a context that carries c.
func With(ctx context.Context, c Caller) context.Context { return context.WithValue(ctx, key{}, c) }

// From returns the caller of ctx; the zero Caller, which holds no scope, when there is none.
func From(ctx context.Context) Caller {
	c, _ := ctx.Value(key{}).(Caller)
	return c
}
