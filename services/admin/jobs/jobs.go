// Package jobs does what the audit log needs from time to time: its roll-ups each minute, and the months to come and the end of
// what is too old each day. All may run late, twice, or twice at once.
package jobs

import (
	"context"
	"log/slog"
	"time"

	"hub.internal/pkg/jobs"
)

// Log is the audit log's reader.
type Log interface {
	RollUp(ctx context.Context) error
	Extend(ctx context.Context) error
	Expire(ctx context.Context) (dropped []string, err error)
}

// The jobs have no arguments: what is due is in the store.
type (
	rollUp struct{}
	extend struct{}
	expire struct{}
)

// Kind implements jobs.Job.
func (rollUp) Kind() string { return "audit_roll_up" }

// Kind implements jobs.Job.
func (extend) Kind() string { return "audit_extend" }

// Kind implements jobs.Job.
func (expire) Kind() string { return "audit_expire" }

// Queue implements jobs.InQueue: a roll-up that catches up holds up no other job.
func (rollUp) Queue() string { return queue }

const (
	queue       = "audit"
	rollUpEvery = time.Minute
	extendEvery = 24 * time.Hour
	expireEvery = 24 * time.Hour
	// catchingUp is how long a roll-up may take that was not done for long.
	catchingUp = 10 * time.Minute
)

// Runner runs admin's jobs.
func Runner(log Log, logger *slog.Logger) jobs.Runner {
	return jobs.Runner{
		Kinds: []jobs.Kind{
			jobs.On(func(ctx context.Context, _ rollUp) error { return log.RollUp(ctx) }, jobs.Within[rollUp](catchingUp)),
			jobs.On(func(ctx context.Context, _ extend) error { return log.Extend(ctx) }),
			jobs.On(func(ctx context.Context, _ expire) error {
				dropped, err := log.Expire(ctx)
				if len(dropped) > 0 {
					logger.InfoContext(ctx, "months of the audit log were dropped: they are older than HUB_AUDIT_RETENTION", "partitions", dropped)
				}
				return err
			}),
		},
		Queues: []jobs.Queue{{Name: queue, Workers: 1, Pause: time.Second}},
		Periodic: []jobs.Periodic{{Every: rollUpEvery, Job: rollUp{}}, {Every: extendEvery, Job: extend{}},
			{Every: expireEvery, Job: expire{}}},
	}
}
