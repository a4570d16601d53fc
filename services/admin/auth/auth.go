// Package auth is admin's client of auth: what API keys are called.
package auth

import (
	"context"

	"hub.internal/pkg/remote"
)

// namesRequest is what auth is asked.
type namesRequest struct {
	IDs []string `json:"ids"`
}

// namesResponse is what auth answers: a name for each id that it knows.
type namesResponse struct {
	Names map[string]string `json:"names"`
}

var names = remote.Operation[namesRequest, namesResponse]{Path: "/internal/apikeys/names", Repeatable: true}

// Contracts are what this client takes for granted of auth.
func Contracts() []remote.Contract { return []remote.Contract{names.Contract()} }

// Client asks auth.
type Client struct{ client *remote.Client }

// New returns what is behind a client of auth.
func New(client *remote.Client) *Client { return &Client{client} }

// Names asks what at most 100 keys are called; one that auth does not know is absent.
func (c *Client) Names(ctx context.Context, ids []string) (map[string]string, error) {
	answer, err := names.Call(ctx, c.client, namesRequest{ids})
	return answer.Names, err
}
