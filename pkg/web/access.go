package web

import (
	"net/http"

	"hub.internal/pkg/fault"
)

// Access says whom a page is for. Each page names it where it is registered; the zero value stops
// the program.
type Access struct{ name, role string }

var (
	// Anybody needs no session: the page protects itself.
	Anybody = Access{name: "anybody"}
	// SignedIn lets every user in.
	SignedIn = Access{name: "signed in"}
	// AnyRole lets in users that have a role, whichever it is.
	AnyRole = Access{name: "any role"}
)

// Role lets in users that have the role.
func Role(name string) Access {
	if name == "" {
		return Access{}
	}
	return Access{name: "role " + name, role: name}
}

// admit returns E_AUTH_MISSING for a visitor and E_SCOPE for a user without the role, or any.
func (a Access) admit(r *http.Request) error {
	if a == Anybody {
		return nil
	}
	u, signedIn := UserOf(r.Context())
	if !signedIn {
		return fault.New(fault.AuthMissing, "Sign in to see this page.")
	}
	if a == AnyRole && len(u.Roles) == 0 {
		return fault.New(fault.Scope, "This page is for users with a role. Ask an administrator if you need one.")
	}
	if a.role != "" && !u.Is(a.role) {
		return fault.New(fault.Scope, "This page is for users with the role %s. Ask an administrator if you need it.", a.role).
			With(map[string]string{"role": a.role})
	}
	return nil
}
