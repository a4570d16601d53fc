package redis

import (
	"context"
	"time"

	"hub.internal/services/gateway/edge"
	"hub.internal/services/gateway/lease"
)

// OpenPatient is Open for a client that waits for its answers: on a busy machine, the budget
// of a call is soon spent.
func OpenPatient(url string) (*Redis, error) { return open(url, time.Minute) }

// Take asks for one call, as lease.Leases does near the limit.
func (r *Redis) Take(ctx context.Context, buckets []edge.Bucket) (edge.Decision, error) {
	return lease.New(r, time.Now).Take(ctx, buckets)
}
