// Package postgres keeps review-control's tables: the SQL beside the method that runs it, and
// the migrations. It refuses to judge: rules are the domain's.
package postgres

import (
	"context"
	"embed"
	"io/fs"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/jobs"
	"hub.internal/pkg/postgres"
	"hub.internal/pkg/tool"
	"hub.internal/pkg/write"
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
	role := postgres.ServiceRole("review-control")
	if err := write.Migrate(ctx, ownerURL, schema, role); err != nil {
		return err
	}
	return jobs.Migrate(ctx, ownerURL, schema, role)
}

// Store is review-control's part of the write store.
type Store struct {
	pool *pgxpool.Pool
	keys *write.Keys
	// jobs adds jobs in the transactions of what they follow from.
	jobs  *jobs.Adder
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
	adder, err := jobs.NewAdder(pool, schema)
	if err != nil {
		pool.Close()
		return nil, err
	}
	return &Store{pool: pool, keys: write.New(pool, write.Options{Schema: schema}), jobs: adder}, nil
}

// Close returns the connections.
func (s *Store) Close() { s.pool.Close() }

// AuditLog returns a log for calls that have no transaction of their own.
func (s *Store) AuditLog(logger *slog.Logger) *audit.Log { return audit.NewLog(s.pool, logger) }

// Reaper deletes old idempotency keys until its context ends.
func (s *Store) Reaper(logger *slog.Logger) func(context.Context) error {
	return s.keys.Reaper(logger)
}

// Ready tells whether the store can be reached and review-control's tables are there.
func (s *Store) Ready(ctx context.Context) error {
	return s.ready.Ask(func() error {
		_, err := s.pool.Exec(ctx, `SELECT FROM review_control.reviews, review_control.river_job LIMIT 0`)
		return explain(err)
	})
}

// Answered returns the answer of an earlier call with the key, if there is one.
func (s *Store) Answered(ctx context.Context, key write.Key) (tool.Result, bool, error) {
	answer, found, err := s.keys.Stored(ctx, key)
	return answer, found, explain(err)
}

// Runner returns a runner of the store's jobs, without kinds.
func (s *Store) Runner(logger *slog.Logger) jobs.Runner {
	return jobs.Runner{Pool: s.pool, Service: "review-control", Schema: schema, Logger: logger}
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
