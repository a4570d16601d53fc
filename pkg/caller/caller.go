// Package caller says who is calling: the principal that the gateway has
// authenticated, carried in a context inside a process and in a signed internal
// token between processes. Each process signs with a key of its own, what a key may
// say is one table (maySay), and each operation says whom it takes (Rule). It refuses
// to authenticate anybody from outside: keys, ServiceJWTs and sessions are the
// gateway's and auth's.
package caller

import (
	"cmp"
	"context"
	"slices"

	"hub.internal/pkg/fault"
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

// Gateway is the name of the process that authenticates whoever comes from outside.
const Gateway = "gateway"

// maySay tells whether the key of a process may sign for a principal of this kind: the
// gateway's for everybody from outside, and each for the process itself.
func maySay(process, kind string) bool {
	switch kind {
	case Key, App, User, Visitor:
		return process == Gateway
	case Service:
		return true // of no other: Keys holds it to Itself
	}
	return false
}

// Caller is an authenticated principal. Its slices are not to be changed.
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
	// RequestID follows one call through every process, beside the token.
	RequestID string `json:"rid,omitempty"`
}

// Itself is a process that acts for nobody else.
func Itself(process string) Caller {
	return Caller{Kind: Service, Service: process, CredentialID: process}
}

// Holds tells whether the caller has the scope.
func (c Caller) Holds(scope string) bool { return slices.Contains(c.Scopes, scope) }

// Actor is the name of who acts, as people know it: a user of the console by the address, else the caller's own name.
func (c Caller) Actor() string { return cmp.Or(c.Email, c.HubUser, c.ExternalUserID) }

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

// callContext is what a context holds: the caller, and the token that can be shown to a
// neighbour for it, where there is one.
type callContext struct {
	Caller
	shown string
}

// With returns a context that carries c.
func With(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, key{}, callContext{Caller: c})
}

// From returns the caller of ctx; the zero Caller, which holds no scope, when there is none.
func From(ctx context.Context) Caller { return carriedBy(ctx).Caller }

func carriedBy(ctx context.Context) callContext {
	c, _ := ctx.Value(key{}).(callContext)
	return c
}

// RequirePerson is E_SCOPE for everybody but a person with a console session: what a key or an app holds does not help.
func RequirePerson(ctx context.Context) error {
	if From(ctx).Kind != User {
		return fault.New(fault.Scope, "Only a person can do that, in the console.")
	}
	return nil
}

// Alone returns a context in which the process acts for itself, under the request id of ctx.
func Alone(ctx context.Context, process string) context.Context {
	c := Itself(process)
	c.RequestID = From(ctx).RequestID
	return With(ctx, c)
}

// ValidRequestID tells whether id has the form of a request id: 1..128 of [A-Za-z0-9._:-].
func ValidRequestID(id string) bool {
	if len(id) < 1 || len(id) > 128 {
		return false
	}
	for i := range len(id) {
		switch c := id[i]; {
		case c >= 'A' && c <= 'Z', c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '.', c == '_', c == ':', c == '-':
		default:
			return false
		}
	}
	return true
}
