package jobs

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"hub.internal/pkg/postgres"
)

// grants are what River's client does to its tables as the service's role.
const grants = `
GRANT USAGE ON SCHEMA %[1]s TO %[2]s;
GRANT SELECT, INSERT, UPDATE, DELETE ON %[1]s.river_job, %[1]s.river_leader, %[1]s.river_queue, %[1]s.river_notification TO %[2]s;
GRANT USAGE ON SEQUENCE %[1]s.river_job_id_seq, %[1]s.river_notification_id_seq TO %[2]s;
REVOKE ALL ON FUNCTION %[1]s.river_job_state_in_bitmask(bit, %[1]s.river_job_state) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION %[1]s.river_job_state_in_bitmask(bit, %[1]s.river_job_state) TO %[2]s`

// Migrate is the step of River's tables, after the service's own migrations. River's migrations do not wait for one another.
func Migrate(ctx context.Context, ownerURL, service string) error {
	schema, role := postgres.Schema(service), postgres.ServiceRole(service)
	return postgres.WithMigrationLock(ctx, ownerURL, schema, func(ctx context.Context, owner *pgx.ConnConfig) error {
		config, err := pgxpool.ParseConfig(ownerURL)
		if err != nil {
			return err
		}
		config.ConnConfig, config.MaxConns = owner, 2
		pool, err := pgxpool.NewWithConfig(ctx, config)
		if err != nil {
			return fmt.Errorf("migrate jobs of %s: %w", schema, err)
		}
		defer pool.Close()
		if err := migrate(ctx, pool, schema, role); err != nil {
			return fmt.Errorf("migrate jobs of %s: %w", schema, err)
		}
		return nil
	})
}

func migrate(ctx context.Context, pool *pgxpool.Pool, schema, role string) error {
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Schema: schema, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return err
	}
	_, err = pool.Exec(ctx, fmt.Sprintf(grants, pgx.Identifier{schema}.Sanitize(), pgx.Identifier{role}.Sanitize()))
	return err
}
