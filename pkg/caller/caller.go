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
	// Visitor is somebody with a browser who has not signed in.
	Visitor = "visitor"
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
	// Email and Name are a console user's; CredentialID is then the session's public id.
	Email string `json:"eml,omitempty"`
	Name  string `json:"nam,omitempty"`
	// RequestID follows one call through every process.
	RequestID string `json:"rid,omitempty"`
}

// Holds tells whether the caller has the scope.
func (c Caller) Holds(scope string) bool { return slices.Contains(c.Scopes, scope) }

// Is tells whether the caller has the role.
func (c Caller) Is(role string) bool { return slices.Contains(c.Roles, role) }

// Account names whom a call counts for where something is shared out among callers: a
// credential; without one all who come from the same place, as visitors do. It is empty for a
// service that acts for itself.
func (c Caller) Account() string {
	switch {
	case c.Kind == Service || c.Kind == "":
		return ""
	case c.CredentialID != "":
		return c.CredentialID
	}
	return c.Kind + " " + c.Service + " " + c.ExternalUserID
}

type key struct{}

// With returns a context that carries c.
func With(ctx context.Context, c Caller) context.Context { return context.WithValue(ctx, key{}, c) }

// From returns the caller of ctx; the zero Caller, which holds no scope, when there is none.
func From(ctx context.Context) Caller {
	c, _ := ctx.Value(key{}).(Caller)
	return c
}
