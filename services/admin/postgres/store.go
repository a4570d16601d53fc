// Package postgres keeps admin's tables: the SQL beside the method that runs it, and the migrations. It
// refuses to judge: rules are the domain's.
package postgres

import (
	"context"
	"embed"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/jobs"
	"hub.internal/pkg/postgres"
	"hub.internal/pkg/write"
	"hub.internal/services/admin"
)

//go:embed migrations/*.sql
var migrations embed.FS

// service is the discovery name, and that of admin's schema.
const service = "admin"

// Migrate brings the audit schema and admin's own up to date, as the owner.
func Migrate(ctx context.Context, ownerURL string) error {
	return postgres.MigrateAll(ctx, ownerURL, service, audit.Tables, postgres.Files(migrations), write.Migrate, jobs.Migrate)
}

// Store is admin's part of the write store.
type Store struct {
	*postgres.Readiness
	pool *postgres.Pool
	keys *write.Keys
}

var _ admin.Store = (*Store)(nil)

// New returns the store behind a pool of role hub_admin. It touches no database.
func New(pool *postgres.Pool) *Store {
	const tables = `SELECT FROM admin.menu_groups, admin.menu_items, admin.page_versions LIMIT 0`
	return &Store{Readiness: postgres.NewReadiness(pool, service, tables), pool: pool, keys: write.New(pool, write.Options{Service: service})}
}

// Keys are those of admin's writes.
func (s *Store) Keys() *write.Keys { return s.keys }

// explain makes a fault of what the driver says.
func explain(err error) error { return postgres.Explain(err, service) }
