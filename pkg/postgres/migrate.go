package postgres

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"
	"github.com/pressly/goose/v3/lock"
)

// Migrate brings the schema that a package owns up to date as the owner role. The
// migrations are goose files (expand first, contract in a later release); the
// version table lives in that schema. Two runs at once wait for one another.
func Migrate(ctx context.Context, ownerURL, schema string, migrations fs.FS) error {
	config, err := pgx.ParseConfig(ownerURL)
	if err != nil {
		return errors.New("HUB_MIGRATE_URL is not a PostgreSQL URL")
	}
	db := stdlib.OpenDB(*config)
	defer db.Close()
	if _, err := db.ExecContext(ctx, "CREATE SCHEMA IF NOT EXISTS "+pgx.Identifier{schema}.Sanitize()); err != nil && !alreadyThere(err) {
		return fmt.Errorf("migrate %s: %w", schema, err)
	}
	store, err := database.NewStore(database.DialectPostgres, schema+".migrations")
	if err != nil {
		return fmt.Errorf("migrate %s: %w", schema, err)
	}
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 300)) // asks every second, for five minutes
	if err != nil {
		return fmt.Errorf("migrate %s: %w", schema, err)
	}
	provider, err := goose.NewProvider("", db, migrations, goose.WithStore(store), goose.WithSessionLocker(locker))
	if err != nil {
		return fmt.Errorf("migrate %s: %w", schema, err)
	}
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("migrate %s: %w", schema, err)
	}
	return nil
}
