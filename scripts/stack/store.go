package main

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"

	"hub.internal/pkg/postgres"
)

// bootstrapStore makes the write store's database and roles: the owner and one per row of
// the table, also of services that are not in this checkout yet.
func bootstrapStore(ctx context.Context, e environment, superuserURL string) error {
	passwords := map[string]string{postgres.Owner: e.state.secret(postgres.Owner)}
	for _, s := range table {
		role := postgres.ServiceRole(s.name)
		passwords[role] = e.state.secret(role)
	}
	return postgres.Bootstrap(ctx, superuserURL, storeDatabase, passwords)
}

// migrate runs a service's own migrations as the owner.
func migrate(ctx context.Context, e environment, s service) error {
	settings := e.settings(s)
	settings["HUB_MIGRATE_URL"] = e.storeURL(postgres.Owner)
	cmd := exec.CommandContext(ctx, e.layout.bin(s.name), "migrate")
	cmd.Dir, cmd.Env = e.layout.root, environ(settings)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s migrate: %w: %s", s.name, err, bytes.TrimSpace(out.Bytes()))
	}
	return nil
}
