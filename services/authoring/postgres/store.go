// Package postgres keeps authoring's tables: the SQL beside the method that runs it, and
// the migrations. It refuses to judge: rules are the domain's.
package postgres

import (
	"context"
	"embed"

	"github.com/jackc/pgx/v5"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/postgres"
	"hub.internal/pkg/tool"
	"hub.internal/pkg/write"
	"hub.internal/services/authoring"
)

//go:embed migrations/*.sql
var migrations embed.FS

// service is the discovery name, and that of authoring's schema.
const service = "authoring"

// Migrate brings the audit schema and authoring's own up to date, as the owner.
func Migrate(ctx context.Context, ownerURL string) error {
	return postgres.MigrateAll(ctx, ownerURL, service, audit.Tables, postgres.Files(migrations), write.Migrate)
}

// Store is authoring's part of the write store.
type Store struct {
	*postgres.Readiness
	pool *postgres.Pool
	keys *write.Keys
}

var _ authoring.Store = (*Store)(nil)

// New returns the store behind a pool of role hub_authoring. It touches no database.
func New(pool *postgres.Pool) *Store {
	return &Store{Readiness: postgres.NewReadiness(pool, service, `SELECT FROM authoring.drafts, authoring.segments LIMIT 0`),
		pool: pool, keys: write.New(pool, write.Options{Service: service})}
}

// Keys are those of authoring's writes.
func (s *Store) Keys() *write.Keys { return s.keys }

// StoredAnswer returns the answer of an earlier call with the key, if there is one.
func (s *Store) StoredAnswer(ctx context.Context, key write.Key) (tool.Result, bool, error) {
	return s.keys.Stored(ctx, key)
}

// Equal warns of an equal call of the last day.
func (s *Store) Equal(ctx context.Context, key write.Key, what string) (*tool.Warning, error) {
	return s.keys.Equal(ctx, key, what)
}

// once runs effect and stores what record makes of the id that it returns.
func (s *Store) once(ctx context.Context, key write.Key, record authoring.Record,
	effect func(context.Context, pgx.Tx) (authoring.ID, error)) (tool.Result, error) {
	return s.keys.Once(ctx, key, func(ctx context.Context, tx pgx.Tx) (tool.Result, audit.Entry, error) {
		id, err := effect(ctx, tx)
		if err != nil {
			return tool.Result{}, audit.Entry{}, err
		}
		return record(id)
	})
}

// explain makes a fault of what the driver says.
func explain(err error) error { return postgres.Explain(err, service) }
