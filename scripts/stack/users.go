package main

import (
	"context"
	"slices"
)

// adminEmail is the address of the local administrator.
const adminEmail = "admin@hub.example"

// devUsers are the console's users of the local stack.
var devUsers = []struct{ name, email, fullName, roles, variable string }{
	{"reviewer", "reviewer@hub.example", "Rae Reviewer", "reviewer", "HUB_REVIEWER"},
	{"admin", adminEmail, "Ada Admin", "admin,reviewer", "HUB_ADMIN"},
}

// addUsers adds the users that auth does not know yet, through auth's own command.
func addUsers(ctx context.Context, e environment, auth service) error {
	var known struct {
		Users []struct{ Email string }
	}
	if err := ask(ctx, e, auth, &known, "user", "list", "--json"); err != nil {
		return err
	}
	for _, u := range devUsers {
		password := userPassword(e, u.name) // drawn now, so that it is saved with the state
		if slices.ContainsFunc(known.Users, func(k struct{ Email string }) bool { return k.Email == u.email }) {
			continue
		}
		if _, err := run(ctx, e, auth, password+"\n",
			"user", "add", u.email, "--name", u.fullName, "--roles", u.roles, "--password-stdin"); err != nil {
			return err
		}
	}
	// A password that was drawn and not saved would be lost.
	return e.state.save()
}

// userPassword is drawn once and stays with the state.
func userPassword(e environment, name string) string { return e.state.secret("user-" + name) }
