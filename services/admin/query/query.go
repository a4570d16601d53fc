// Package query is admin's client of query: how the source database is.
package query

import (
	"context"

	"hub.internal/pkg/remote"
	"hub.internal/services/admin"
)

var health = remote.Operation[struct{}, admin.SourceHealth]{Path: "/internal/source/health", Repeatable: true}

// Contracts are what this client takes for granted of query.
func Contracts() []remote.Contract { return []remote.Contract{health.Contract()} }

// Client asks query.
type Client struct{ client *remote.Client }

// New returns what is behind a client of query.
func New(client *remote.Client) *Client { return &Client{client} }

// Health asks how the source is.
func (c *Client) Health(ctx context.Context) (admin.SourceHealth, error) {
	return health.Call(ctx, c.client, struct{}{})
}
