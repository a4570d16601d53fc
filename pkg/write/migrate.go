package write

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"hub.internal/pkg/postgres"
)

// table is the first step. Services made the table by themselves before, without a status;
// rows are reaped by age.
const table = `
CREATE TABLE IF NOT EXISTS %[1]s.idempotency_keys (
  credential_id text        NOT NULL,
  tool          text        NOT NULL,
  key           text        NOT NULL,
  fingerprint   bytea       NOT NULL,
  count         integer     NOT NULL DEFAULT 0,
  data          bytea,
  created_at    timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (credential_id, tool, key)
);
ALTER TABLE %[1]s.idempotency_keys ADD COLUMN IF NOT EXISTS status smallint NOT NULL DEFAULT 200;
CREATE INDEX IF NOT EXISTS idempotency_keys_created_at ON %[1]s.idempotency_keys (created_at);
GRANT USAGE ON SCHEMA %[1]s TO %[2]s;
GRANT SELECT, INSERT, UPDATE, DELETE ON %[1]s.idempotency_keys TO %[2]s`

// claims is the second step: what a claim holds beside. A row of before, and one of a process that
// does not know of claims, is done.
const claims = `
ALTER TABLE %[1]s.idempotency_keys
  ADD COLUMN IF NOT EXISTS state       text NOT NULL DEFAULT 'done' CHECK (state IN ('running', 'done')),
  ADD COLUMN IF NOT EXISTS resource    text NOT NULL DEFAULT '',
  ADD COLUMN IF NOT EXISTS lease       uuid,
  ADD COLUMN IF NOT EXISTS lease_until timestamptz;
CREATE INDEX IF NOT EXISTS idempotency_keys_left ON %[1]s.idempotency_keys (lease_until) WHERE state = 'running'`

// inputs is the third step: Equal looks for an input.
const inputs = `CREATE INDEX IF NOT EXISTS idempotency_keys_input ON %[1]s.idempotency_keys (fingerprint, created_at)`

// Migrate is the step of the table of keys, after the service's own migrations.
func Migrate(ctx context.Context, ownerURL, service string) error {
	schema := postgres.Schema(service)
	quoted := pgx.Identifier{schema}.Sanitize()
	return postgres.MigratePart(ctx, ownerURL, schema, "write",
		fmt.Sprintf(table, quoted, pgx.Identifier{postgres.ServiceRole(service)}.Sanitize()), fmt.Sprintf(claims, quoted),
		fmt.Sprintf(inputs, quoted))
}
