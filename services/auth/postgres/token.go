package postgres

import (
	"context"
	"crypto/sha256"
	"time"
)

const insertUsedToken = `INSERT INTO auth.jwt_replay (service_code, jti_hash, exp) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`

// MarkUsed uses up the token of an app that has this id, and tells whether it had not been used before. Of several that use
// it at once, one is told so.
func (s *Store) MarkUsed(ctx context.Context, code string, jti [sha256.Size]byte, exp time.Time) (fresh bool, err error) {
	tag, err := s.pool.Exec(ctx, insertUsedToken, code, jti[:], exp)
	return tag.RowsAffected() == 1, explain(err)
}

// sweepStep is how many rows a statement of Sweep deletes.
const sweepStep = 10_000

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
