// Package postgres keeps review-control's tables and runs its jobs: the SQL beside the method
// that runs it, the migrations, and River. It refuses to judge: rules are the domain's.
package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/postgres"
	reviewcontrol "hub.internal/services/review-control"
)

//go:embed migrations/*.sql
var migrations embed.FS

// schema is review-control's part of the write store.
const schema = "review_control"

// Migrate brings the audit schema, review-control's own and River's tables in it up to date,
// as the owner.
func Migrate(ctx context.Context, ownerURL string) error {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	if err := audit.Migrate(ctx, ownerURL); err != nil {
		return err
	}
	if err := postgres.Migrate(ctx, ownerURL, schema, files); err != nil {
		return err
	}
	if err := migrateJobs(ctx, ownerURL); err != nil {
		return fmt.Errorf("migrate jobs: %w", err)
	}
	return nil
}

// What River's client does to its tables as the service's role.
const grantJobs = `
GRANT SELECT, INSERT, UPDATE, DELETE ON review_control.river_job, review_control.river_leader, review_control.river_queue, review_control.river_notification TO hub_review_control;
GRANT USAGE ON SEQUENCE review_control.river_job_id_seq, review_control.river_notification_id_seq TO hub_review_control`

// migrateJobs does for River's tables what postgres.Migrate does for ours.
func migrateJobs(ctx context.Context, ownerURL string) error {
	config, err := pgxpool.ParseConfig(ownerURL)
	if err != nil {
		return errors.New("HUB_MIGRATE_URL is not a PostgreSQL URL")
	}
	config.MaxConns = 2
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return err
	}
	defer pool.Close()
	// River's migrations do not wait for one another; the lock ends with the connection.
	lock, err := pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer lock.Release()
	if _, err := lock.Exec(ctx, `SELECT pg_advisory_lock(hashtext('review_control jobs'))`); err != nil {
		return err
	}
	defer func() {
		_, _ = lock.Exec(context.WithoutCancel(ctx), `SELECT pg_advisory_unlock(hashtext('review_control jobs'))`)
	}()
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Schema: schema, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return err
	}
	_, err = pool.Exec(ctx, grantJobs)
	return err
}

// Store is review-control's part of the write store.
type Store struct {
	pool *pgxpool.Pool
	// jobs adds jobs in the transactions of what they follow from.
	jobs  *river.Client[pgx.Tx]
	ready postgres.Readiness
}

var _ reviewcontrol.Store = (*Store)(nil)

// connections are those of the calls; the workers have theirs beside them.
const connections = 10

// Open prepares a store at a URL that names role hub_review_control, with a connection for
// each of so many workers. It does not wait for the database.
func Open(url string, workers int) (*Store, error) {
	pool, err := postgres.Open(postgres.Config{URL: url, MaxConns: int32(connections + workers)})
	if err != nil {
		return nil, err
	}
	jobs, err := river.NewClient(riverpgxv5.New(pool), &river.Config{Schema: schema, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		pool.Close()
		return nil, err
	}
	return &Store{pool: pool, jobs: jobs}, nil
}

// Close returns the connections.
func (s *Store) Close() { s.pool.Close() }

// AuditLog returns a log for calls that have no transaction of their own.
func (s *Store) AuditLog(logger *slog.Logger) *audit.Log { return audit.NewLog(s.pool, logger) }

// Reaper deletes old idempotency keys until its context ends.
func (s *Store) Reaper(logger *slog.Logger) func(context.Context) error {
	return postgres.Reaper(s.pool, schema, postgres.OnceKept, logger)
}

// Ready tells whether the store can be reached and review-control's tables are there.
func (s *Store) Ready(ctx context.Context) error {
	return s.ready.Ask(func() error {
		_, err := s.pool.Exec(ctx, `SELECT FROM review_control.reviews, review_control.river_job LIMIT 0`)
		return explain(err)
	})
}

// Answered returns the answer of an earlier call with the key, if there is one.
func (s *Store) Answered(ctx context.Context, key postgres.OnceKey) (postgres.Answer, bool, error) {
	answer, found, err := postgres.Stored(ctx, s.pool, schema, key)
	return answer, found, explain(err)
}

// Record keeps an audit row of what was done elsewhere.
func (s *Store) Record(ctx context.Context, entry audit.Entry) error {
	return explain(audit.Append(ctx, s.pool, entry))
}

func (s *Store) atomically(ctx context.Context, do func(pgx.Tx) error) error {
	return explain(pgx.BeginFunc(ctx, s.pool, do))
}

func utc(times ...*time.Time) {
	for _, t := range times {
		if t != nil {
			*t = t.UTC() // the driver answers times in the machine's zone
		}
	}
}

// explain makes a fault of what the driver says.
func explain(err error) error { return postgres.Explain(err, "review-control") }
