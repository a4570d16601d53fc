package main

import (
	"context"
	"encoding/json"
	"fmt"
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
	command := func(input string, args ...string) ([]byte, error) {
		return run(ctx, e, auth, input, append([]string{"user"}, args...)...)
	}
	listed, err := command("", "list", "--json")
	if err != nil {
		return err
	}
	var known struct {
		Users []struct{ Email string }
	}
	if err := json.Unmarshal(listed, &known); err != nil {
		return fmt.Errorf("auth user list answered no list: %w", err)
	}
	for _, u := range devUsers {
		password := userPassword(e, u.name) // drawn now, so that it is saved with the state
		if slices.ContainsFunc(known.Users, func(k struct{ Email string }) bool { return k.Email == u.email }) {
			continue
		}
		if _, err := command(password+"\n",
			"add", u.email, "--name", u.fullName, "--roles", u.roles, "--password-stdin"); err != nil {
			return err
		}
	}
	return e.state.save()
}

// userPassword is drawn once and stays with the state.
func userPassword(e environment, name string) string { return e.state.secret("user-" + name) }
