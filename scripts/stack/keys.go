package main

import (
	"context"
	"strings"

	"hub.internal/pkg/inventory"
	"hub.internal/pkg/localstack"
)

// devKey is an API key of the local stack.
type devKey struct {
	// The key's name in auth, its variable in dev.env, and further arguments of auth's command.
	name, variable string
	args           []string
}

// devKeys are the keys that dev.env names: one that may do everything, and one that may only read.
func devKeys() []devKey {
	return []devKey{
		{"dev", "HUB_API_KEY",
			append([]string{"--scopes", "explore,sql,query,author,control,admin:read,admin:write"}, localstack.Unlimited()...)},
		{"dev-readonly", "HUB_API_KEY_READONLY", []string{"--scopes", "explore,query"}},
	}
}

// keysetOf is the state's name for the keyset of a service: each has its own.
func keysetOf(s service) string {
	if s.Has(inventory.Pepper) {
		return "secrets-keyset"
	}
	return s.Name + "-keyset"
}

// drawKeysets draws those that are missing, through the services' own commands.
func drawKeysets(ctx context.Context, e environment) error {
	for _, s := range e.services {
		if !s.Has(inventory.Keyset) || e.state.Secrets[keysetOf(s)] != "" {
			continue
		}
		// The service that takes payments calls its keyset a keyring. Either command prints a new one.
		command := "keyset"
		if s.Has(inventory.Provider) {
			command = "keyring"
		}
		out, err := run(ctx, e, s, "", command, "new")
		if err != nil {
			return err
		}
		e.state.Secrets[keysetOf(s)] = strings.TrimSpace(string(out))
		if err := e.state.save(); err != nil {
			return err
		}
	}
	return nil
}

// run is a command of a service: its output, or its own words as the error.
func run(ctx context.Context, e environment, s service, input string, args ...string) ([]byte, error) {
	return e.stack().Command(ctx, s, input, args...)
}

// issueKeys issues the keys that the state does not hold yet, through auth's own command.
func issueKeys(ctx context.Context, e environment) error {
	for _, k := range devKeys() {
		if _, ok := e.state.Keys[k.name]; ok {
			continue
		}
		issued, err := e.stack().IssueKey(ctx, k.name, "hub-dev", k.args...)
		if err != nil {
			return err
		}
		// Saved one by one: a key is shown once only.
		e.state.Keys[k.name] = issued
		if err := e.state.save(); err != nil {
			return err
		}
	}
	return nil
}
