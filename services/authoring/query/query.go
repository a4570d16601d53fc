// Package query is authoring's client of the query service.
package query

import (
	"context"

	"hub.internal/pkg/remote"
	"hub.internal/services/authoring"
)

// Recipients is the query service as the judge of recipients.
type Recipients struct{ client *remote.Client }

var _ authoring.Recipients = Recipients{}

// New returns the judge behind a client of query.
func New(client *remote.Client) Recipients { return Recipients{client} }

type checkRequest struct {
	Targets []authoring.Recipient `json:"targets"`
}

type checkResponse struct {
	Targets []struct {
		Index   int      `json:"index"`
		Reasons []string `json:"reasons"`
	} `json:"targets"`
}

// check asks about all targets of a draft at once.
var check = remote.Operation[checkRequest, checkResponse]{Path: "/internal/recipients/check", Repeatable: true}

// Contracts are what this client takes for granted of query.
func Contracts() []remote.Contract { return []remote.Contract{check.Contract()} }

// Check implements authoring.Recipients in one call. When query or the source cannot be reached,
// its fault passes through.
func (r Recipients) Check(ctx context.Context, targets []authoring.Recipient) (map[int][]string, error) {
	answer, err := check.Call(ctx, r.client, checkRequest{targets})
	if err != nil {
		return nil, err
	}
	reasons := make(map[int][]string, len(answer.Targets))
	for _, t := range answer.Targets {
		reasons[t.Index] = t.Reasons
	}
	return reasons, nil
}
