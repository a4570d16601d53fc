package main

import (
	"context"

	"hub.internal/services/auth/links"
	"hub.internal/services/auth/servicejwt"
)

// linksOfTokens lets the tokens of apps know the links of users.
type linksOfTokens struct{ *links.Service }

// Link implements servicejwt.Links.
func (l linksOfTokens) Link(ctx context.Context, service, externalUser string) (servicejwt.Link, bool, error) {
	found, ok, err := l.Service.Link(ctx, service, externalUser)
	return servicejwt.Link{ID: found.ID, HubUser: found.HubUser, Status: string(found.Status), Scopes: found.Scopes}, ok, err
}
