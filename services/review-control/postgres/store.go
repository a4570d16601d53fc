// Package postgres keeps review-control's tables: the SQL beside the method that runs it, and
// the migrations. It refuses to judge: rules are the domain's.
//
// What happens to a review happens in one transaction that has locked its row: the domain changes a Transaction and records its
// steps, and keep writes exactly these, with the audit row and the jobs that follow. So two decisions on one draft come one
// after the other, and a job never runs for what was rolled back.
package postgres

import (
	"context"
	"embed"

	"github.com/jackc/pgx/v5"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/jobs"
	"hub.internal/pkg/postgres"
	"hub.internal/pkg/tool"
	"hub.internal/pkg/write"
	reviewcontrol "hub.internal/services/review-control"
	"hub.internal/services/review-control/suppression"
)

//go:embed migrations/*.sql
var migrations embed.FS

// service is the discovery name, and schema its part of the write store.
const (
	service = "review-control"
	schema  = "review_control"
)

// Migrate brings the audit schema, review-control's own and River's tables in it up to date,
// as the owner.
func Migrate(ctx context.Context, ownerURL string) error {
	return postgres.MigrateAll(ctx, ownerURL, service, audit.Tables, postgres.Files(migrations), write.Migrate, jobs.Migrate)
}

// Store is review-control's part of the write store.
type Store struct {
	*postgres.Readiness
	pool *postgres.Pool
	keys *write.Keys
	// jobs adds jobs in the transactions of what they follow from.
	jobs *jobs.Adder
}

var (
	_ reviewcontrol.Store = (*Store)(nil)
	_ suppression.Store   = (*Store)(nil)
)

// New returns the store behind a pool of role hub_review_control. It touches no database.
func New(pool *postgres.Pool) *Store {
	return &Store{Readiness: postgres.NewReadiness(pool, service, `SELECT FROM review_control.reviews, review_control.river_job LIMIT 0`),
		pool: pool, keys: write.New(pool, write.Options{Service: service}), jobs: jobs.NewAdder(pool, schema)}
}

// Keys are those of review-control's writes.
func (s *Store) Keys() *write.Keys { return s.keys }

// Answered returns the answer of an earlier call with the key, if there is one.
func (s *Store) Answered(ctx context.Context, key write.Key) (tool.Result, bool, error) {
	return s.keys.Stored(ctx, key)
}

// atomically runs do in a transaction, and makes faults of what the driver says.
func (s *Store) atomically(ctx context.Context, do func(pgx.Tx) error) error {
	return explain(pgx.BeginFunc(ctx, s.pool, do))
}

// explain makes a fault of what the driver says.
func explain(err error) error { return postgres.Explain(err, service) }
