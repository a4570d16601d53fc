package main

import (
	"context"
	"slices"
	"strings"
)

// adminEmail is the address of the local administrator.
const adminEmail = "admin@hub.example"

// devUsers are the console's users of the local stack.
var devUsers = []struct{ name, email, fullName, roles, variable string }{
	{"reviewer", "reviewer@hub.example", "Rae Reviewer", "reviewer", "HUB_REVIEWER"},
	{"admin", adminEmail, "Ada Admin", "admin,reviewer", "HUB_ADMIN"},
}

// addUsers adds the users that auth does not know yet, and the roles that they lack, through
// auth's own command.
func addUsers(ctx context.Context, e environment, auth service) error {
	var known struct {
		Users []struct {
			Email string
			Roles []string
		}
	}
	if err := ask(ctx, e, auth, &known, "user", "list", "--json"); err != nil {
		return err
	}
	for _, u := range devUsers {
		add := []string{"add", u.email, "--name", u.fullName, "--roles", u.roles, "--password-stdin"}
		for _, k := range known.Users {
			if k.Email == u.email {
				add = nil
				// An older checkout may have given fewer roles.
				if lacks := slices.DeleteFunc(strings.Split(u.roles, ","),
					func(role string) bool { return slices.Contains(k.Roles, role) }); len(lacks) > 0 {
					add = []string{"roles", u.email, "--set", strings.Join(append(k.Roles, lacks...), ",")}
				}
			}
		}
		if add == nil {
			continue
		}
		if _, err := run(ctx, e, auth, userPassword(e, u.name)+"\n", append([]string{"user"}, add...)...); err != nil {
			return err
		}
	}
	return e.state.save()
}

// userPassword is drawn once and stays with the state.
func userPassword(e environment, name string) string { return e.state.secret("user-" + name) }
