// Package reviewcontrol is admin's client of review-control: what waits there.
package reviewcontrol

import (
	"context"
	"time"

	"hub.internal/pkg/remote"
	"hub.internal/services/admin"
)

// backlogRequest is what review-control is asked.
type backlogRequest struct {
	Since time.Time `json:"since"`
}

var backlog = remote.Operation[backlogRequest, admin.Backlog]{Path: "/internal/reviews/backlog", Repeatable: true}

// Contracts are what this client takes for granted of review-control.
func Contracts() []remote.Contract { return []remote.Contract{backlog.Contract()} }

// Client asks review-control.
type Client struct{ client *remote.Client }

// New returns what is behind a client of review-control.
func New(client *remote.Client) *Client { return &Client{client} }

// Backlog asks what waits, and what has failed since a moment.
func (c *Client) Backlog(ctx context.Context, since time.Time) (admin.Backlog, error) {
	return backlog.Call(ctx, c.client, backlogRequest{since})
}
