package main

import (
	"context"

	"hub.internal/services/auth/links"
	"hub.internal/services/auth/servicejwt"
)

// linkedUsers are the links as whoever judges the tokens of apps needs them.
type linkedUsers struct{ *links.Service }

// Link implements servicejwt.Links.
func (l linkedUsers) Link(ctx context.Context, service, externalUser string) (servicejwt.Link, bool, error) {
	found, ok, err := l.Service.Link(ctx, service, externalUser)
	return servicejwt.Link{ID: found.ID, HubUser: found.HubUser, Status: string(found.Status), Scopes: found.Scopes}, ok, err
}
