package main

import (
	"context"

	"hub.internal/pkg/postgres"
)

// storeProcesses is how many processes of a service the store has connections for.
const storeProcesses = 3

// bootstrapStore makes the write store's database and roles: the owner, the audit log's reader and one per service.
// It runs at each start: a service that is new gets its role, and the others keep theirs.
func bootstrapStore(ctx context.Context, e environment, superuserURL string) error {
	logins := map[string]postgres.Login{}
	for role, connections := range e.services.Connections() {
		logins[role] = postgres.Login{Password: e.state.secret(role), Connections: storeProcesses * connections}
	}
	return postgres.Bootstrap(ctx, superuserURL, storeDatabase, logins)
}
