// Package postgres keeps authoring's tables: the SQL beside the method that runs it, and
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
	"hub.internal/pkg/postgres"
	"hub.internal/services/authoring"
)

//go:embed migrations/*.sql
var migrations embed.FS

// schema is authoring's part of the write store.
const schema = "authoring"

// Migrate brings the audit schema and authoring's own up to date, as the owner.
func Migrate(ctx context.Context, ownerURL string) error {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	if err := audit.Migrate(ctx, ownerURL); err != nil {
		return err
	}
	return postgres.Migrate(ctx, ownerURL, schema, files)
}

// Store is authoring's part of the write store.
type Store struct {
	pool  *pgxpool.Pool
	ready postgres.Readiness
}

var _ authoring.Store = (*Store)(nil)

// Open prepares a store at a URL that names role hub_authoring. It does not wait for the database.
func Open(url string) (*Store, error) {
	pool, err := postgres.Open(postgres.Config{URL: url})
	if err != nil {
		return nil, err
	}
	return &Store{pool: pool}, nil
}

// Close returns the connections.
func (s *Store) Close() { s.pool.Close() }

// AuditLog returns a log for calls that have no transaction of their own.
func (s *Store) AuditLog(logger *slog.Logger) *audit.Log { return audit.NewLog(s.pool, logger) }

// Reaper deletes old idempotency keys until its context ends.
func (s *Store) Reaper(logger *slog.Logger) func(context.Context) error {
	return postgres.Reaper(s.pool, schema, postgres.OnceKept, logger)
}

// Reap deletes the idempotency keys older than kept, now.
func (s *Store) Reap(ctx context.Context, kept time.Duration) (int64, error) {
	return postgres.Reap(ctx, s.pool, schema, kept)
}

// Ready tells whether the store can be reached and authoring's tables are there.
func (s *Store) Ready(ctx context.Context) error {
	return s.ready.Ask(func() error {
		_, err := s.pool.Exec(ctx, `SELECT FROM authoring.drafts, authoring.segments LIMIT 0`)
		return explain(err)
	})
}

// Answered returns the answer of an earlier call with the key, if there is one.
func (s *Store) Answered(ctx context.Context, key postgres.OnceKey) (postgres.Answer, bool, error) {
	answer, found, err := postgres.Stored(ctx, s.pool, schema, key)
	return answer, found, explain(err)
}

// once runs effect and stores what record makes of the id that it returns.
func (s *Store) once(ctx context.Context, key postgres.OnceKey, record authoring.Record, effect func(context.Context, pgx.Tx) (authoring.ID, error)) (postgres.Answer, error) {
	answer, err := postgres.Once(ctx, s.pool, schema, key, func(ctx context.Context, tx pgx.Tx) (postgres.Answer, error) {
		id, err := effect(ctx, tx)
		if err != nil {
			return postgres.Answer{}, err
		}
		answer, entry, err := record(id)
		if err != nil {
			return postgres.Answer{}, err
		}
		return answer, audit.Append(ctx, tx, entry)
	})
	return answer, explain(err)
}

// nullable is NULL for an id that begins at 0.
func nullable(id authoring.ID) *int64 {
	if id == 0 {
		return nil
	}
	return new(int64(id))
}

func utc(times ...*time.Time) {
	for _, t := range times {
		if t != nil {
			*t = t.UTC() // the driver answers times in the machine's zone
		}
	}
}

// explain makes a fault of what the driver says.
func explain(err error) error { return postgres.Explain(err, "authoring") }
