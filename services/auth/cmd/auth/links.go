package main

import (
	"context"
	"time"

	"hub.internal/pkg/fault"
	"hub.internal/services/auth/postgres"
	"hub.internal/services/auth/servicejwt"
)

// links are the links that the store has. There is no page yet at which a user could make one.
type links struct{ store *postgres.Store }

// Link implements servicejwt.Links.
func (l links) Link(ctx context.Context, service, externalUser string) (servicejwt.Link, bool, error) {
	found, ok, err := l.store.IdentityLink(ctx, service, externalUser)
	return servicejwt.Link(found), ok, err
}

// Invite implements servicejwt.Links.
func (links) Invite(string, string, []string) (string, time.Time, error) {
	return "", time.Time{}, fault.New(fault.DB, "Accounts cannot be linked here yet.")
}
