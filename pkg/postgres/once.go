package postgres

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"hub.internal/pkg/fault"
)

const (
	// OnceWait is how long a second caller with the same key waits for the first.
	OnceWait = 5 * time.Second
	// onceRest is what a second caller keeps of its own deadline, to be told why.
	onceRest = 500 * time.Millisecond
)

// OnceTable returns the DDL of a service's idempotency table; a migration of the
// service holds it. Rows are reaped by age through the index on created_at.
func OnceTable(schema string) string {
	return fmt.Sprintf(`CREATE TABLE %[1]s.idempotency_keys (
  credential_id text        NOT NULL,
  tool          text        NOT NULL,
  key           text        NOT NULL,
  fingerprint   bytea       NOT NULL,
  count         integer     NOT NULL DEFAULT 0,
  data          bytea,
  created_at    timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (credential_id, tool, key)
);
CREATE INDEX idempotency_keys_created_at ON %[1]s.idempotency_keys (created_at);`, pgx.Identifier{schema}.Sanitize())
}

// OnceKey is the scope of an idempotency key and what it was first used for.
type OnceKey struct {
	Credential, Tool, Key string
	Fingerprint           [sha256.Size]byte
}

// Answer is what a write answered.
type Answer struct {
	Data     []byte
	Count    int
	Replayed bool
}

// Once runs effect at most once for a key: the key's row, the effect and the stored
// answer commit together, so no crash loses or doubles a write. A second caller
// waits on the unique index, at most OnceWait and not until its own deadline, and gets
// the stored answer. An error of effect rolls everything back and frees the key.
//
// Besides effect's own errors it returns E_IDEMPOTENCY when the key was used for
// another input, E_CONFLICT with details.code REQUEST_IN_PROGRESS when the first
// call still runs, and E_DB when the store cannot be reached.
func Once(ctx context.Context, pool *pgxpool.Pool, schema string, key OnceKey, effect func(context.Context, pgx.Tx) (Answer, error)) (Answer, error) {
	table := pgx.Identifier{schema, "idempotency_keys"}.Sanitize()
	var answer Answer
	// One round trip begins the transaction and bounds its waits.
	begin := pgx.TxOptions{BeginQuery: fmt.Sprintf("BEGIN; SET LOCAL lock_timeout = %d", wait(ctx).Milliseconds())}
	err := pgx.BeginTxFunc(ctx, pool, begin, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `INSERT INTO `+table+` (credential_id, tool, key, fingerprint) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING`,
			key.Credential, key.Tool, key.Key, key.Fingerprint[:])
		if err != nil {
			return claimError(err)
		}
		if tag.RowsAffected() == 0 {
			answer, err = replay(ctx, tx, table, key)
			return err
		}
		if answer, err = effect(ctx, tx); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `UPDATE `+table+` SET data = $4, count = $5 WHERE credential_id = $1 AND tool = $2 AND key = $3`,
			key.Credential, key.Tool, key.Key, answer.Data, answer.Count)
		return err
	})
	if err != nil {
		return Answer{}, Fault(err)
	}
	return answer, nil
}

func wait(ctx context.Context) time.Duration {
	deadline, bounded := ctx.Deadline()
	if !bounded {
		return OnceWait
	}
	return max(min(OnceWait, time.Until(deadline)-onceRest), time.Millisecond) // 0 would wait for ever
}

// Stored returns the answer of an earlier call with the key, if one was stored: a look
// before the checks that a replay must not fail on, such as asking a neighbour. The
// decision stays with Once. It returns E_IDEMPOTENCY as Once does.
func Stored(ctx context.Context, pool *pgxpool.Pool, schema string, key OnceKey) (answer Answer, found bool, err error) {
	answer, err = replay(ctx, pool, pgx.Identifier{schema, "idempotency_keys"}.Sanitize(), key)
	if errors.Is(err, pgx.ErrNoRows) {
		return Answer{}, false, nil
	}
	return answer, err == nil, Fault(err)
}

func replay(ctx context.Context, q Querier, table string, key OnceKey) (Answer, error) {
	answer := Answer{Replayed: true}
	var fingerprint []byte
	err := q.QueryRow(ctx, `SELECT fingerprint, data, count FROM `+table+` WHERE credential_id = $1 AND tool = $2 AND key = $3`,
		key.Credential, key.Tool, key.Key).Scan(&fingerprint, &answer.Data, &answer.Count)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		// The first call was refused, or the row was reaped, between our two statements.
		return Answer{}, inProgress(err)
	case err != nil:
		return Answer{}, err
	case string(fingerprint) != string(key.Fingerprint[:]):
		return Answer{}, fault.New(fault.Idempotency, "This Idempotency-Key was used before with another input. Send a new key for a new call.")
	}
	return answer, nil
}

func claimError(err error) error {
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == "55P03" { // lock_not_available
		return inProgress(err)
	}
	return err
}

func inProgress(cause error) error {
	return fault.New(fault.Conflict, "A call with this Idempotency-Key is still running. Send it again in a second.").
		With(map[string]string{"code": "REQUEST_IN_PROGRESS"}).After(time.Second).Because(cause)
}
