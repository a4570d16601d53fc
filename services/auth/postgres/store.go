// Package postgres keeps auth's tables: the SQL beside the method that runs it, and the
// migrations. It refuses to judge: rules are the service's.
package postgres

import (
	"context"
	"embed"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/postgres"
	"hub.internal/services/auth"
)

//go:embed migrations/*.sql
var migrations embed.FS

// service is the discovery name.
const service = "auth"

// Migrate brings the audit schema and auth's own up to date, as the owner.
func Migrate(ctx context.Context, ownerURL string) error {
	return postgres.MigrateAll(ctx, ownerURL, service, audit.Tables, postgres.Files(migrations))
}

// Store is auth's part of the write store.
type Store struct {
	*postgres.Readiness
	pool *postgres.Pool
}

var _ auth.Store = (*Store)(nil)

// New returns the store behind a pool of role hub_auth. It touches no database.
// Readiness reads a table of each part: one that is missing, or that the role may not read, tells of migrations that did not run.
func New(pool *postgres.Pool) *Store {
	const tables = `SELECT FROM auth.api_keys, auth.invitations, auth.app_secrets, auth.jwt_replay, auth.connect_grants LIMIT 0`
	return &Store{postgres.NewReadiness(pool, service, tables), pool}
}

// columns are what is read of a key; each has the name of the field of keyRow that it is read into.
const columns = `id, name, service, hash, pepper_id, head, tail, scopes, user_per_minute, user_burst, service_per_minute, service_burst,
	created_by, created_at, expires_at, revoked_at, revoke_reason, coalesce(rotated_from, '') AS rotated_from,
	coalesce(rotated_to, '') AS rotated_to, last_used_at`

// keyRow is a row of columns.
type keyRow struct {
	auth.Key
	auth.Limits
	Hash []byte
}

// key is the key of the row; its limits are columns of their own.
func (r keyRow) key() auth.Key {
	r.Key.Limits = r.Limits
	return r.Key
}

// hashed is the key of the row with its hash.
func (r keyRow) hashed() auth.HashedKey {
	k := auth.HashedKey{Key: r.key()}
	copy(k.Hash[:], r.Hash)
	return k
}

// keyByID reads the only row of a query; id names it in the refusal.
// E_NOT_FOUND without one.
func keyByID(ctx context.Context, q postgres.Querier, id, sql string) (auth.Key, error) {
	row, err := postgres.One(ctx, q, pgx.RowToStructByNameLax[keyRow], sql, id)
	if errors.Is(err, pgx.ErrNoRows) || isNotText(err) {
		return auth.Key{}, fault.New(fault.NotFound, "There is no API key with the id %q.", id)
	}
	return row.key(), err
}

// Add commits a new key together with its audit entry.
// E_CONFLICT when the id is taken: the form that issues a key holds its id, so sending it twice makes one key (an idempotency key).
func (s *Store) Add(ctx context.Context, k auth.HashedKey, e audit.Entry) error {
	return s.atomically(ctx, func(tx pgx.Tx) error {
		err := insertKey(ctx, tx, k)
		if postgres.IsUnique(err, "api_keys_pkey") {
			return fault.New(fault.Conflict, "This key was issued already, and shown then. Issue another one if you did not keep it.").Because(err)
		}
		if err != nil {
			return err
		}
		return audit.Append(ctx, tx, e)
	})
}

// insertKey adds a key.
func insertKey(ctx context.Context, tx pgx.Tx, k auth.HashedKey) error {
	_, err := tx.Exec(ctx, `INSERT INTO auth.api_keys (id, name, service, hash, pepper_id, head, tail, scopes,
		user_per_minute, user_burst, service_per_minute, service_burst, created_by, created_at, expires_at, rotated_from)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, nullif($16, ''))`,
		k.ID, k.Name, k.Service, k.Hash[:], k.PepperID, k.Head, k.Tail, k.Scopes,
		k.Limits.UserPerMinute, k.Limits.UserBurst, k.Limits.ServicePerMinute, k.Limits.ServiceBurst,
		k.CreatedBy, k.CreatedAt, k.ExpiresAt, k.RotatedFrom)
	return err
}

// find is one read by the unique index api_keys_hash. There is a hash for each pepper, two while one is being replaced.
const find = `SELECT ` + columns + ` FROM auth.api_keys WHERE hash = ANY ($1::bytea[])`

// Find returns the key that has one of the hashes.
func (s *Store) Find(ctx context.Context, hashes []auth.Hash) (auth.HashedKey, bool, error) {
	wanted := make([][]byte, len(hashes))
	for i := range hashes {
		wanted[i] = hashes[i][:]
	}
	row, err := postgres.One(ctx, s.pool, pgx.RowToStructByNameLax[keyRow], find, wanted)
	if errors.Is(err, pgx.ErrNoRows) {
		return auth.HashedKey{}, false, nil
	}
	return row.hashed(), err == nil, explain(err)
}

// Get returns a key.
// That somebody looked at it is recorded in the same transaction. E_NOT_FOUND for an id that no key has.
func (s *Store) Get(ctx context.Context, id string, e audit.Entry) (k auth.Key, err error) {
	err = s.atomically(ctx, func(tx pgx.Tx) error {
		if k, err = keyByID(ctx, tx, id, `SELECT `+columns+` FROM auth.api_keys WHERE id = $1`); err != nil {
			return err
		}
		return audit.Append(ctx, tx, e)
	})
	return k, err
}

// Chain returns the ids of the rotations that a key is part of, oldest first.
// Each key has one predecessor and one successor at most, which unique constraints hold, so the walk has no branches.
func (s *Store) Chain(ctx context.Context, id string) ([]string, error) {
	chain, err := postgres.All(ctx, s.pool, pgx.RowTo[string], `WITH RECURSIVE
		older AS (SELECT id, rotated_from, 0 AS step FROM auth.api_keys WHERE id = $1
			UNION ALL SELECT k.id, k.rotated_from, step - 1 FROM older JOIN auth.api_keys k ON k.id = older.rotated_from),
		newer AS (SELECT id, rotated_to, 0 AS step FROM auth.api_keys WHERE id = $1
			UNION ALL SELECT k.id, k.rotated_to, step + 1 FROM newer JOIN auth.api_keys k ON k.id = newer.rotated_to)
		SELECT id FROM (SELECT id, step FROM older UNION SELECT id, step FROM newer) AS chain ORDER BY step`, id)
	return chain, explain(err)
}

// Names returns the names of those of the keys that there are, by id.
// An id that names no key is absent, and keys that are not active have their name, too.
func (s *Store) Names(ctx context.Context, ids []string) (map[string]string, error) {
	// No id has a NUL, and the store takes none.
	ids = slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return strings.ContainsRune(id, 0) })
	rows, err := s.pool.Query(ctx, `SELECT id, name FROM auth.api_keys WHERE id = ANY ($1::text[])`, ids)
	if err != nil {
		return nil, explain(err)
	}
	names := make(map[string]string, len(ids))
	var id, name string
	_, err = pgx.ForEachRow(rows, []any{&id, &name}, func() error {
		names[id] = name
		return nil
	})
	return names, explain(err)
}

// Change locks a key, lets decide judge it, and commits what it decides.
// The row lock makes changes of one key follow each other, so a key is rotated once. An error of decide rolls back.
func (s *Store) Change(ctx context.Context, id string, decide func(auth.Key) (auth.Change, error)) error {
	return s.atomically(ctx, func(tx pgx.Tx) error {
		k, err := keyByID(ctx, tx, id, `SELECT `+columns+` FROM auth.api_keys WHERE id = $1 FOR UPDATE`)
		if err != nil {
			return err
		}
		c, err := decide(k)
		if err != nil {
			return err
		}
		if c.Successor != nil {
			if err := insertKey(ctx, tx, *c.Successor); err != nil {
				return err
			}
		}
		_, err = tx.Exec(ctx, `UPDATE auth.api_keys
			SET scopes = $2, expires_at = $3, revoked_at = $4, revoke_reason = $5, rotated_to = nullif($6, '') WHERE id = $1`,
			id, c.Key.Scopes, c.Key.ExpiresAt, c.Key.RevokedAt, c.Key.RevokeReason, c.Key.RotatedTo)
		if err != nil {
			return err
		}
		return audit.Append(ctx, tx, c.Audit)
	})
}

// Touch sets LastUsedAt unless that was done less than every before at. Many verify the
// same key at once: whoever finds the row locked leaves it to the other.
func (s *Store) Touch(ctx context.Context, id string, at time.Time, every time.Duration) error {
	_, err := s.pool.Exec(ctx, `UPDATE auth.api_keys SET last_used_at = $2 WHERE id = (SELECT id FROM auth.api_keys
		WHERE id = $1 AND (last_used_at IS NULL OR last_used_at <= $3) FOR NO KEY UPDATE SKIP LOCKED)`, id, at, at.Add(-every))
	return explain(err)
}

// KeysUnderOtherPeppers counts the active keys that were hashed under other peppers, and all that are active.
// The proof of the pepper asks it when the service starts; it reads the whole table.
func (s *Store) KeysUnderOtherPeppers(ctx context.Context, peppers []string, now time.Time) (n, active int, err error) {
	err = s.pool.QueryRow(ctx, `SELECT count(*) FILTER (WHERE pepper_id <> ALL ($1::text[])), count(*) FROM auth.api_keys
		WHERE revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $2)`, peppers, now).Scan(&n, &active)
	return n, active, explain(err)
}

// atomically runs do in a transaction and makes a fault of its error.
func (s *Store) atomically(ctx context.Context, do func(pgx.Tx) error) error {
	return explain(pgx.BeginFunc(ctx, s.pool, do))
}

// explain makes a fault of what the driver says.
func explain(err error) error { return postgres.Explain(err, service) }
