package main

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"

	"hub.internal/pkg/postgres"
)

// storeProcesses is how many processes of a service the store has connections for.
const storeProcesses = 3

// bootstrapStore makes the write store's database and roles: the owner, the audit log's reader and one per service.
func bootstrapStore(ctx context.Context, e environment, superuserURL string) error {
	logins := map[string]postgres.Login{}
	for role, connections := range e.services.Connections() {
		logins[role] = postgres.Login{Password: e.state.secret(role), Connections: storeProcesses * connections}
	}
	return postgres.Bootstrap(ctx, superuserURL, storeDatabase, logins)
}

// migrate runs a service's own migrations as the owner.
func migrate(ctx context.Context, e environment, s service) error {
	settings := e.settings(s)
	settings["HUB_MIGRATE_URL"] = e.storeURL(postgres.Owner)
	cmd := exec.CommandContext(ctx, e.layout.bin(s.Name), "migrate")
	cmd.Dir, cmd.Env = e.layout.root, environ(settings)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s migrate: %w: %s", s.Name, err, bytes.TrimSpace(out.Bytes()))
	}
	return nil
}
