package postgres

import (
	"context"
	"crypto/sha256"
	"time"

	"github.com/jackc/pgx/v5"

	"hub.internal/pkg/postgres"
	"hub.internal/pkg/text"
	"hub.internal/services/auth/apps"
	"hub.internal/services/auth/links"
)

// useToken uses up a token of an app that is active, and reads the app.
// The primary key of jwt_replay settles which of several uses of one token is the first; a token of an app that is not active is
// not noted. The SELECT sees the app as it was before, which the INSERT does not touch.
const useToken = `WITH used AS (INSERT INTO auth.jwt_replay (service_code, jti_hash, exp)
		SELECT service_code, $2::bytea, $3::timestamptz FROM auth.connected_apps WHERE service_code = $1 AND status = 'ACTIVE'
		ON CONFLICT DO NOTHING RETURNING 1)
	SELECT ` + appColumns + `, EXISTS (SELECT FROM used) AS fresh FROM auth.connected_apps a WHERE a.service_code = $1`

// usedRow is an app with whether its token had not been used before.
type usedRow struct {
	appRow
	Fresh bool
}

// Use uses up a token, in one round trip, and returns what its app and its user's link are then.
func (s *Store) Use(ctx context.Context, code string, id [sha256.Size]byte, exp time.Time, externalUser string) (app apps.App, fresh bool,
	link *links.Link, err error) {
	var found []usedRow
	var linked []links.Link
	batch := &pgx.Batch{}
	postgres.Collect(batch.Queue(useToken, text.Storable(code), id[:], exp), pgx.RowToStructByNameLax[usedRow], &found)
	if externalUser != "" {
		postgres.Collect(batch.Queue(linkOf, text.Storable(code), externalUser), pgx.RowToStructByName[links.Link], &linked)
	}
	if err := s.pool.SendBatch(ctx, batch).Close(); err != nil {
		return app, false, nil, explain(err)
	}
	if len(found) == 0 {
		return app, false, nil, noApp(code)
	}
	if len(linked) > 0 {
		link = &linked[0]
	}
	return found[0].app(), found[0].Fresh, link, nil
}

// sweepStep is how many rows a statement of Sweep deletes.
// A short statement holds its locks and its snapshot for a short time.
const sweepStep = 10_000

// deleteExpiredTokens picks rows by jwt_replay_exp: DELETE itself knows no LIMIT.
const deleteExpiredTokens = `DELETE FROM auth.jwt_replay WHERE ctid = ANY (ARRAY(SELECT ctid FROM auth.jwt_replay WHERE exp < $1 LIMIT $2))`

// Sweep forgets the tokens that expired before a moment.
func (s *Store) Sweep(ctx context.Context, before time.Time) error {
	for {
		tag, err := s.pool.Exec(ctx, deleteExpiredTokens, before, sweepStep)
		if err != nil || tag.RowsAffected() < sweepStep {
			return explain(err)
		}
	}
}
