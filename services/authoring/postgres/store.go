// Package postgres keeps authoring's tables: the SQL beside the method that runs it, and
// the migrations. It refuses to judge: rules are the domain's.
package postgres

import (
	"context"
	"embed"
	"time"

	"github.com/jackc/pgx/v5"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/postgres"
	"hub.internal/pkg/tool"
	"hub.internal/pkg/write"
	"hub.internal/services/authoring"
)

//go:embed migrations/*.sql
var migrations embed.FS

// schema is authoring's part of the write store.
const schema = "authoring"

// Migrate brings the audit schema and authoring's own up to date, as the owner.
func Migrate(ctx context.Context, ownerURL string) error {
	return postgres.MigrateAll(ctx, ownerURL, "authoring", audit.Tables, postgres.Files(migrations), write.Migrate)
}

// Store is authoring's part of the write store.
type Store struct {
	pool  *postgres.Pool
	keys  *write.Keys
	ready postgres.Readiness
}

var _ authoring.Store = (*Store)(nil)

// New returns the store behind a pool of role hub_authoring. It touches no database.
func New(pool *postgres.Pool) *Store {
	return &Store{pool: pool, keys: write.New(pool, write.Options{Schema: schema})}
}

// Keys are those of authoring's writes.
func (s *Store) Keys() *write.Keys { return s.keys }

// Ready tells whether the store can be reached and authoring's tables are there.
func (s *Store) Ready(ctx context.Context) error {
	return s.ready.Ask(func() error {
		_, err := s.pool.Exec(ctx, `SELECT FROM authoring.drafts, authoring.segments LIMIT 0`)
		return explain(err)
	})
}

// Answered returns the answer of an earlier call with the key, if there is one.
func (s *Store) Answered(ctx context.Context, key write.Key) (tool.Result, bool, error) {
	answer, found, err := s.keys.Stored(ctx, key)
	return answer, found, explain(err)
}

// once runs effect and stores what record makes of the id that it returns.
func (s *Store) once(ctx context.Context, key write.Key, record authoring.Record, effect func(context.Context, pgx.Tx) (authoring.ID, error)) (tool.Result, error) {
	answer, err := s.keys.Once(ctx, key, func(ctx context.Context, tx pgx.Tx) (tool.Result, audit.Entry, error) {
		id, err := effect(ctx, tx)
		if err != nil {
			return tool.Result{}, audit.Entry{}, err
		}
		return record(id)
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
