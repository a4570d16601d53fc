package main

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
)

// devUsers are the console's users of the local stack.
var devUsers = []struct{ name, email, fullName, roles, variable string }{
	{"reviewer", "reviewer@hub.example", "Rae Reviewer", "reviewer", "HUB_REVIEWER"},
	{"admin", "admin@hub.example", "Ada Admin", "admin,reviewer", "HUB_ADMIN"},
}

// addUsers adds the users that auth does not know yet, through auth's own command.
func addUsers(ctx context.Context, e environment, auth service) error {
	command := func(input string, args ...string) ([]byte, error) {
		cmd := exec.CommandContext(ctx, e.layout.bin(auth.Name), append([]string{"user"}, args...)...)
		cmd.Env, cmd.Dir, cmd.Stdin = environ(e.settings(auth)), e.layout.root, strings.NewReader(input)
		var problems bytes.Buffer
		cmd.Stderr = &problems
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("auth user %s: %w: %s", args[0], err, strings.TrimSpace(problems.String()))
		}
		return out, nil
	}
	known, err := command("", "list", "--json")
	if err != nil {
		return err
	}
	for _, u := range devUsers {
		if bytes.Contains(known, []byte(`"`+u.email+`"`)) {
			continue
		}
		if _, err := command(userPassword(e, u.name)+"\n", "add", u.email, "--name", u.fullName, "--roles", u.roles, "--password-stdin"); err != nil {
			return err
		}
	}
	return e.state.save()
}

// userPassword is drawn once and stays with the state.
func userPassword(e environment, name string) string { return e.state.secret("user-" + name) }
