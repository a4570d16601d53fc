package postgres

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// OnceKept is how long an idempotency key is kept.
	OnceKept = 72 * time.Hour
	// reapEvery is how often keys are reaped, and reapBatch how many rows one statement
	// deletes: no lock is held for long.
	reapEvery = 10 * time.Minute
	reapBatch = 1000
)

// Reap deletes the keys of a schema's OnceTable that are older than kept, batch by
// batch, and returns how many they were. Replicas that reap at once share the work.
func Reap(ctx context.Context, pool *pgxpool.Pool, schema string, kept time.Duration) (deleted int64, err error) {
	table := pgx.Identifier{schema, "idempotency_keys"}.Sanitize()
	for {
		tag, err := pool.Exec(ctx, `DELETE FROM `+table+` WHERE ctid = ANY (ARRAY(SELECT ctid FROM `+table+`
			WHERE created_at < now() - make_interval(secs => $1) ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED))`, kept.Seconds(), reapBatch)
		if err != nil {
			return deleted, fmt.Errorf("reap %s: %w", schema, Fault(err))
		}
		deleted += tag.RowsAffected()
		if tag.RowsAffected() < reapBatch {
			return deleted, nil
		}
	}
}

// Reaper reaps from time to time until ctx ends: a task for process.Go. A store that is
// away is tried again at the next turn.
func Reaper(pool *pgxpool.Pool, schema string, kept time.Duration, logger *slog.Logger) func(context.Context) error {
	return func(ctx context.Context) error {
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(reapEvery/2 + rand.N(reapEvery)):
			}
			n, err := Reap(ctx, pool, schema, kept)
			if err != nil && ctx.Err() == nil {
				logger.WarnContext(ctx, "idempotency keys not reaped", "error", err)
			} else if n > 0 {
				logger.InfoContext(ctx, "idempotency keys reaped", "keys", n)
			}
		}
	}
}
