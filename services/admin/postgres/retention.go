package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"hub.internal/pkg/postgres"
)

// LeastRetention is the shortest time, in days, that the log may be kept: this month and the one before always are.
const LeastRetention = 62

// Retain makes the owner's policy say for how many days rows are kept, and returns what it said: a part of one service's
// migrate. No service's role may change it.
func Retain(ctx context.Context, ownerURL string, days int) (before int, err error) {
	// The table has the same bound: whoever owns it cannot shorten the log to nothing by mistake.
	if days < LeastRetention {
		return 0, fmt.Errorf("HUB_AUDIT_RETENTION has to be at least %d days, not %d", LeastRetention, days)
	}
	pool, err := postgres.Open(postgres.Config{URL: ownerURL})
	if err != nil {
		return 0, err
	}
	defer pool.Close()
	err = pool.QueryRow(ctx, `UPDATE audit.policy SET days = $1 FROM audit.policy before RETURNING before.days`, days).Scan(&before)
	if err != nil {
		return 0, fmt.Errorf("retention of the audit log: %w", err)
	}
	return before, nil
}

// RollUp brings the roll-ups up to date, an hour of the log at a time, until ctx ends. It may run on several
// replicas at once, and be cut off: a step is done or it is not.
func (r *Reader) RollUp(ctx context.Context) error {
	for more := true; more; {
		if err := r.change(ctx, func(tx pgx.Tx) error {
			return tx.QueryRow(ctx, `SELECT audit.roll_up()`).Scan(&more)
		}); err != nil {
			return err
		}
	}
	return nil
}

// Extend makes the coming year's months that are not there yet. It waits for nobody who reads or writes the log.
func (r *Reader) Extend(ctx context.Context) error {
	return r.change(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `SELECT audit.extend()`)
		return err
	})
}

// Expire drops the months that are older than the policy keeps, and names them. E_DB when others use the log so
// much that it did not come to it.
func (r *Reader) Expire(ctx context.Context) (dropped []string, err error) {
	err = r.change(ctx, func(tx pgx.Tx) error {
		dropped, err = postgres.All(ctx, tx, pgx.RowTo[string], `SELECT audit.expire()`)
		return err
	})
	return dropped, err
}

// change runs one of the functions that write, as their owner; the role itself is read-only.
func (r *Reader) change(ctx context.Context, do func(pgx.Tx) error) error {
	return explainReader(pgx.BeginTxFunc(ctx, r.pool, pgx.TxOptions{AccessMode: pgx.ReadWrite}, do))
}
