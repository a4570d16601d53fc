package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
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

// keysetSecret is the state's name for the keyset that seals the secrets of apps.
const keysetSecret = "secrets-keyset"

// drawKeyset draws it through auth's own command, once.
func drawKeyset(ctx context.Context, e environment, auth service) error {
	if e.state.Secrets[keysetSecret] != "" {
		return nil
	}
	cmd := exec.CommandContext(ctx, e.layout.bin(auth.Name), "keyset", "new")
	cmd.Dir = e.layout.root
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("auth keyset new: %w", err)
	}
	e.state.Secrets[keysetSecret] = strings.TrimSpace(string(out))
	return e.state.save()
}

// issueKeys issues the keys that the state does not hold yet, through auth's own command.
func issueKeys(ctx context.Context, e environment, auth service) error {
	for _, k := range devKeys {
		if _, ok := e.state.Keys[k.name]; ok {
			continue
		}
		args := append([]string{"apikey", "issue", "--name", k.name, "--service", "hub-dev", "--json"}, k.args...)
		cmd := exec.CommandContext(ctx, e.layout.bin(auth.Name), args...)
		cmd.Env = environ(e.settings(auth))
		cmd.Dir = e.layout.root
		var out, problems bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &problems
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("auth apikey issue --name %s: %w: %s", k.name, err, strings.TrimSpace(problems.String()))
		}
		var issued apiKey
		err := json.Unmarshal(out.Bytes(), &issued)
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
