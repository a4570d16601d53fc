package postgres

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"
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

// ExecAsOwner executes one statement as the owner role, outside of any migration; what names it in its error.
func ExecAsOwner(ctx context.Context, ownerURL, what, statement string, args ...any) error {
	conn, err := pgx.Connect(ctx, ownerURL)
	if err != nil {
		return errors.New("HUB_MIGRATE_URL does not lead to the store")
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if _, err := conn.Exec(ctx, statement, args...); err != nil {
		return fmt.Errorf("%s: %w", what, err)
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
	return WithMigrationLock(ctx, ownerURL, schema, func(ctx context.Context, config *pgx.ConnConfig) error {
		db := stdlib.OpenDB(*config)
		defer db.Close()
		store, err := database.NewStore(database.DialectPostgres, schema+"."+versions)
		if err != nil {
			return fmt.Errorf("migrate %s: %w", schema, err)
		}
		provider, err := goose.NewProvider("", db, migrations, append(options, goose.WithStore(store), goose.WithDisableGlobalRegistry(true))...)
		if err != nil {
			return fmt.Errorf("migrate %s: %w", schema, err)
		}
		if _, err := provider.Up(ctx); err != nil {
			return fmt.Errorf("migrate %s: %w", schema, err)
		}
		return nil
	})
}

const (
	// migrationWait is how long a migration waits for another one of the same schema.
	migrationWait = 5 * time.Minute
	// lockTimeout is how long a statement of a migration waits for a table: who comes after it waits as long. It is less than PostgreSQL's
	// deadlock_timeout, a second: where a migration and a call wait for one another, the migration gives way before the call is ended.
	lockTimeout = 500 * time.Millisecond
	// lockAttempts is how often a migration tries to get a table that others use, and lockPause what lies between.
	lockAttempts = 24
	lockPause    = 2 * time.Second
)

// WithMigrationLock makes the schema where it is not there, and runs do while no other migration of it runs. What do makes of the
// owner's configuration waits half a second for a lock; it is run again, for a minute, when that was too short. Others are kept away
// by a lock on a table that is the owner's: an advisory lock could be had by any role that may log in.
func WithMigrationLock(ctx context.Context, ownerURL, schema string, do func(context.Context, *pgx.ConnConfig) error) error {
	config, err := pgx.ParseConfig(ownerURL)
	if err != nil {
		return errors.New("HUB_MIGRATE_URL is not a PostgreSQL URL")
	}
	if mode, err := takePooler(config); err != nil || mode != "" {
		return cmp.Or(err, errSession)
	}
	config.RuntimeParams["lock_timeout"] = fmt.Sprint(lockTimeout.Milliseconds())
	held, err := lockSchema(ctx, config, schema)
	if err != nil {
		return fmt.Errorf("migrate %s: %w", schema, err)
	}
	defer held.Close(context.WithoutCancel(ctx))
	for range lockAttempts - 1 {
		if err = do(ctx, config.Copy()); !isLockTimeout(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lockPause):
		}
	}
	if err = do(ctx, config.Copy()); isLockTimeout(err) {
		err = fmt.Errorf("others hold what it changes (pg_locks and pg_stat_activity tell who): %w", err)
	}
	return err
}

// lockSchema returns a connection that has the schema's lock until it is closed.
func lockSchema(ctx context.Context, config *pgx.ConnConfig, schema string) (*pgx.Conn, error) {
	own := config.Copy()
	own.RuntimeParams["lock_timeout"], own.RuntimeParams["idle_in_transaction_session_timeout"] = fmt.Sprint(migrationWait.Milliseconds()), "0"
	conn, err := pgx.ConnectConfig(ctx, own)
	if err != nil {
		return nil, err
	}
	name := pgx.Identifier{schema}.Sanitize()
	for _, statement := range []string{"CREATE SCHEMA IF NOT EXISTS " + name, "CREATE TABLE IF NOT EXISTS " + name + ".migrating ()",
		"BEGIN", "LOCK TABLE " + name + ".migrating IN SHARE UPDATE EXCLUSIVE MODE"} {
		if _, err := conn.Exec(ctx, statement); err != nil && !isDuplicateObject(err) {
			return nil, errors.Join(err, conn.Close(context.WithoutCancel(ctx)))
		}
	}
	return conn, nil
}
