package write

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"hub.internal/pkg/postgres"
)

const (
	// reapEvery is how often keys are reaped, and reapBatch how many rows one statement
	// deletes: no lock is held for long.
	reapEvery = 10 * time.Minute
	reapBatch = 1000
)

// Reap deletes the keys that are older than Options.Kept, batch by batch, and returns how many they
// were. A claim that is not finished stays however old it is: what it stands for may have happened
// at the second system. Replicas that reap at once share the work.
func (k *Keys) Reap(ctx context.Context) (deleted int64, err error) {
	for {
		tag, err := k.pool.Exec(ctx, `DELETE FROM `+k.table+` WHERE ctid = ANY (ARRAY(SELECT ctid FROM `+k.table+`
			WHERE created_at < now() - make_interval(secs => $1) AND state = 'done' ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED))`,
			k.options.Kept.Seconds(), reapBatch)
		if err != nil {
			return deleted, fmt.Errorf("reap keys: %w", postgres.Explain(err, k.options.Service))
		}
		deleted += tag.RowsAffected()
		if tag.RowsAffected() < reapBatch {
			return deleted, nil
		}
	}
}

// Reaper reaps from time to time until ctx ends: a background task. A store that is
// away is tried again at the next turn.
func (k *Keys) Reaper(logger *slog.Logger) func(context.Context) error {
	return func(ctx context.Context) error {
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(reapEvery/2 + rand.N(reapEvery)):
			}
			n, err := k.Reap(ctx)
			if err != nil && ctx.Err() == nil {
				logger.WarnContext(ctx, "idempotency keys not reaped", "error", err)
			} else if n > 0 {
				logger.InfoContext(ctx, "idempotency keys reaped", "keys", n)
			}
		}
	}
}
