package postgres_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"

	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/postgres"
)

// TestPooler: what services do works through a PgBouncer that gives each transaction another session.
func TestPooler(t *testing.T) {
	t.Parallel()
	store := hubtest.WriteStore(t).Pooled(t)
	migrations := fstest.MapFS{"00001_t.sql": {Data: []byte(`-- +goose Up
CREATE TYPE authoring.kind AS ENUM ('a', 'b');
CREATE TABLE authoring.t (id bigint PRIMARY KEY, name text[], doc jsonb, at timestamptz, pause interval, kind authoring.kind, u uuid);
GRANT USAGE ON SCHEMA authoring TO hub_authoring; GRANT SELECT, INSERT ON authoring.t TO hub_authoring;`)}}
	if err := postgres.Migrate(
		t.Context(),
		store.URL("authoring"),
		"authoring",
		migrations,
	); err == nil ||
		!strings.Contains(err.Error(), "HUB_MIGRATE_URL goes through a pooler") {
		t.Errorf("migrations through the pooler: %v", err)
	}
	if err := postgres.Migrate(t.Context(), store.OwnerURL, "authoring", migrations); err != nil {
		t.Fatal(err)
	}
	pool := open(t, postgres.Config{URL: store.URL("authoring")})
	if !postgres.Pooled(pool) || postgres.Pooled(open(t, postgres.Config{URL: store.OwnerURL})) {
		t.Error("it is not known whether there is a pooler")
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	const u = "6f9619ff-8b86-4d01-b42d-00cf4fc964ff"
	if err := together(8, func(i int) error {
		for j := range 20 {
			id := i*1000 + j
			err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
				batch := &pgx.Batch{}
				batch.Queue(
					`INSERT INTO authoring.t VALUES ($1, $2, $3, $4, $5, $6, $7)`,
					id,
					[]string{"x", fmt.Sprint(i)},
					`{"a":1}`,
					at,
					90*time.Second,
					"b",
					u,
				)
				batch.Queue(`SELECT count(*) FROM authoring.t WHERE id = $1`, id)
				if err := tx.SendBatch(t.Context(), batch).Close(); err != nil {
					return err
				}
				return postgres.Copy(t.Context(), tx, pgx.Identifier{"authoring", "t"}, []string{"id", "at", "kind"},
					pgx.CopyFromRows([][]any{{id + 500, at, "a"}}))
			})
			if err != nil {
				return err
			}
			var names []string
			var pause time.Duration
			var when time.Time
			var kind, uuid string
			if err := pool.QueryRow(
				t.Context(),
				`SELECT name, pause, at, kind, u FROM authoring.t WHERE id = $1`,
				id,
			).Scan(
				&names,
				&pause,
				&when,
				&kind,
				&uuid,
			); err != nil {
				return err
			}
			if names[1] != fmt.Sprint(i) || pause != 90*time.Second || !when.Equal(at) || when.Location() != time.UTC || kind != "b" ||
				uuid != u {
				return fmt.Errorf("read %v %v %v %v %v", names, pause, when, kind, uuid)
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	var limits string
	if err := pool.QueryRow(
		t.Context(),
		`SELECT current_setting('statement_timeout') || ' ' || current_setting('idle_in_transaction_session_timeout') `+
			`|| ' ' || current_setting('timezone')`,
	).Scan(
		&limits,
	); err != nil ||
		limits != "10s 30s UTC" {
		t.Errorf("the role's limits are %q, %v", limits, err)
	}
	// A role of somebody else's making has none.
	superuser := open(t, postgres.Config{URL: store.SuperuserURL + "&pooler=session"})
	if err := superuser.Ping(
		t.Context(),
	); err == nil ||
		!strings.Contains(err.Error(), "ALTER ROLE hub_super SET statement_timeout = '10s'") {
		t.Errorf("a role without limits: %v", err)
	}
	if _, err := postgres.Open(
		postgres.Config{URL: store.OwnerURL + "&pooler=statement"},
	); err == nil ||
		!strings.Contains(err.Error(), "pooler=statement") {
		t.Errorf("an unknown mode: %v", err)
	}
}
