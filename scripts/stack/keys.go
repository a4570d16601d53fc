package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"hub.internal/pkg/inventory"
)

// devKeys are the API keys of the local stack.
var devKeys = []struct {
	name, variable string
	args           []string
}{
	// Limits far above any load, so that a benchmark measures the gateway and not them.
	{"dev", "HUB_API_KEY", []string{"--scopes", "explore,sql,query,author,control,admin:read,admin:write",
		"--user-per-minute", "6000000", "--user-burst", "100000", "--service-per-minute", "6000000", "--service-burst", "100000"}},
	{"dev-readonly", "HUB_API_KEY_READONLY", []string{"--scopes", "explore,query"}},
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
	cmd := exec.CommandContext(ctx, e.layout.bin(s.Name), args...)
	cmd.Env, cmd.Dir, cmd.Stdin = environ(e.settings(s)), e.layout.root, strings.NewReader(input)
	var problems bytes.Buffer
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w: %s", s.Name, strings.Join(args[:2], " "), err, strings.TrimSpace(problems.String()))
	}
	return out, nil
}

// issueKeys issues the keys that the state does not hold yet, through auth's own command.
func issueKeys(ctx context.Context, e environment, auth service) error {
	for _, k := range devKeys {
		if _, ok := e.state.Keys[k.name]; ok {
			continue
		}
		args := append([]string{"apikey", "issue", "--name", k.name, "--service", "hub-dev", "--json"}, k.args...)
		out, err := run(ctx, e, auth, "", args...)
		if err != nil {
			return err
		}
		var issued apiKey
		err = json.Unmarshal(out, &issued)
		if err == nil && issued.Key == "" {
			err = errors.New("there is none in its answer")
		}
		if err != nil {
			return fmt.Errorf("auth apikey issue --name %s answered no key: %w", k.name, err)
		}
		// Saved one by one: a key is shown once only.
		e.state.Keys[k.name] = issued
		if err := e.state.save(); err != nil {
			return err
		}
	}
	return nil
}
