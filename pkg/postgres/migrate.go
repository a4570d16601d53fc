package postgres

import (
	"cmp"
	"context"
	"database/sql"
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
	return migrate(ctx, ownerURL, schema, "migrations", migrations)
}

// Step brings one part of what a service has in the write store up to date.
type Step func(ctx context.Context, ownerURL, service string) error

// Files is the step of a service's own tables: the goose files in the folder migrations.
func Files(embedded fs.FS) Step {
	return func(ctx context.Context, ownerURL, service string) error {
		files, err := fs.Sub(embedded, "migrations")
		if err != nil {
			return err
		}
		return Migrate(ctx, ownerURL, Schema(service), files)
	}
}

// MigrateAll takes the steps of a service in their order.
func MigrateAll(ctx context.Context, ownerURL, service string, steps ...Step) error {
	for _, step := range steps {
		if err := step(ctx, ownerURL, service); err != nil {
			return err
		}
	}
	return nil
}

// MigratePart does what Migrate does for what a package adds to the schema of a service: each step is SQL
// that runs in a transaction of its own, once and in order. Steps are only ever appended. The
// versions are in a table of the part's own, {part}_migrations.
func MigratePart(ctx context.Context, ownerURL, schema, part string, steps ...string) error {
	migrations := make([]*goose.Migration, len(steps))
	for i, step := range steps {
		migrations[i] = goose.NewGoMigration(int64(i+1), &goose.GoFunc{RunTx: func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, step)
			return err
		}}, nil)
	}
	return migrate(ctx, ownerURL, schema, part+"_migrations", nil, goose.WithGoMigrations(migrations...))
}

func migrate(ctx context.Context, ownerURL, schema, versions string, migrations fs.FS, options ...goose.ProviderOption) error {
	config, err := pgx.ParseConfig(ownerURL)
	if err != nil {
		return errors.New("HUB_MIGRATE_URL is not a PostgreSQL URL")
	}
	if mode, err := takePooler(config); err != nil || mode != "" {
		return cmp.Or(err, errSession)
	}
	db := stdlib.OpenDB(*config)
	defer db.Close()
	if _, err := db.ExecContext(ctx, "CREATE SCHEMA IF NOT EXISTS "+pgx.Identifier{schema}.Sanitize()); err != nil && !alreadyThere(err) {
		return fmt.Errorf("migrate %s: %w", schema, err)
	}
	store, err := database.NewStore(database.DialectPostgres, schema+"."+versions)
	if err != nil {
		return fmt.Errorf("migrate %s: %w", schema, err)
	}
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 300)) // asks every second, for five minutes
	if err != nil {
		return fmt.Errorf("migrate %s: %w", schema, err)
	}
	options = append(options, goose.WithStore(store), goose.WithSessionLocker(locker), goose.WithDisableGlobalRegistry(true))
	provider, err := goose.NewProvider("", db, migrations, options...)
	if err != nil {
		return fmt.Errorf("migrate %s: %w", schema, err)
	}
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("migrate %s: %w", schema, err)
	}
	return nil
}
