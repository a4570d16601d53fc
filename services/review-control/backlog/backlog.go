// Package backlog tells a neighbour what waits for people and for the mail server, in numbers. It refuses to tell what
// the mails say and to whom they go.
package backlog

import (
	"context"
	"time"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/rpc"
	"hub.internal/services/review-control/metrics"
)

// Path is where admin asks what waits.
const Path = "/internal/reviews/backlog"

// Request asks for it; Since is from when on failures count.
type Request struct {
	Since time.Time `json:"since"`
}

// Response has the numbers of metrics.Backlog. Oldest is null when nothing waits.
type Response struct {
	Drafts  int        `json:"drafts"`
	Mails   int        `json:"mails"`
	Oldest  *time.Time `json:"oldest"`
	ToSend  int        `json:"to_send"`
	Sending int        `json:"sending"`
	Failed  int        `json:"failed"`
	Unknown int        `json:"unknown"`
}

// Store counts.
type Store interface {
	Backlog(ctx context.Context, since time.Time) (metrics.Backlog, error)
}

// Operations declares what review-control does for its neighbours.
func Operations(s Store) []rpc.Operation {
	return []rpc.Operation{rpc.New(rpc.Declaration{Path: Path, Takes: caller.Neighbour("admin")},
		func(ctx context.Context, in Request) (Response, error) {
			b, err := s.Backlog(ctx, in.Since)
			return Response(b), err
		})}
}
