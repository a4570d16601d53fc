package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/postgres"
	"hub.internal/services/payments/credentials"
)

var _ credentials.Store = (*Store)(nil)

// credentialColumns are those of credentials.Sealed, by the names of its members.
const credentialColumns = `id, provider, env, client_id_mask, active, created_by, created_at, updated_at,
	client_id_ct AS client_id, secret_ct AS secret`

// NextCredentialID draws the id of a new row.
func (s *Store) NextCredentialID(ctx context.Context) (id credentials.ID, err error) {
	id, err = postgres.One(ctx, s.pool, pgx.RowTo[credentials.ID], `SELECT nextval('payments.credentials_id_seq')`)
	return id, explain(err)
}

// AddCredential commits a new credential together with its audit entry.
func (s *Store) AddCredential(ctx context.Context, c credentials.Sealed, e audit.Entry) error {
	return s.atomically(ctx, func(tx *postgres.Tx) error {
		if err := addCredential(ctx, tx, c); err != nil {
			return err
		}
		return audit.Append(ctx, tx, e)
	})
}

// addCredential stores a credential in the caller's transaction.
func addCredential(ctx context.Context, tx pgx.Tx, c credentials.Sealed) error {
	_, err := tx.Exec(ctx, `INSERT INTO payments.credentials (id, provider, env, client_id_ct, client_id_mask, secret_ct, active, created_by,
		created_at, updated_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
		c.ID, c.Provider, c.Env, c.ClientID, c.ClientIDMask, c.Secret, c.Active, c.CreatedBy, c.CreatedAt, c.UpdatedAt)
	return secondActive(err, c.Credential)
}

// secondActive tells a second active credential of a provider and an environment.
func secondActive(err error, c credentials.Credential) error {
	if postgres.IsUnique(err, "credentials_active") {
		return fault.New(fault.Conflict, "There is an active credential of %s for %s already. Rotate it.", c.Provider, c.Env).Because(err)
	}
	return err
}

// ChangeCredential locks a credential, lets decide judge it, and commits what it decides.
func (s *Store) ChangeCredential(ctx context.Context, id credentials.ID, decide func(credentials.Credential) (credentials.Change,
	error)) error {
	return s.atomically(ctx, func(tx *postgres.Tx) error {
		row, err := credentialOf(ctx, tx, id, ` FOR UPDATE`)
		if err != nil {
			return err
		}
		c, err := decide(row.Credential)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `UPDATE payments.credentials SET active = $2, updated_at = $3 WHERE id = $1`,
			id, c.Credential.Active, c.Credential.UpdatedAt)
		if err != nil {
			return secondActive(err, c.Credential)
		}
		if c.Added != nil {
			if err := addCredential(ctx, tx, *c.Added); err != nil {
				return err
			}
		}
		return audit.Append(ctx, tx, c.Audit)
	})
}

// credentialOf reads a credential, with a lock such as FOR UPDATE or none.
func credentialOf(ctx context.Context, q postgres.Querier, id credentials.ID, lock string) (credentials.Sealed, error) {
	c, err := postgres.One(ctx, q, pgx.RowToStructByName[credentials.Sealed],
		`SELECT `+credentialColumns+` FROM payments.credentials WHERE id = $1`+lock, id)
	if errors.Is(err, pgx.ErrNoRows) {
		return c, fault.New(fault.NotFound, "There is no credential %s.", id)
	}
	return c, err
}

// Credential returns a credential as it is kept.
func (s *Store) Credential(ctx context.Context, id credentials.ID) (credentials.Sealed, error) {
	c, err := credentialOf(ctx, s.pool, id, ``)
	return c, explain(err)
}

// Credentials returns those of a filter, newest first.
func (s *Store) Credentials(ctx context.Context, f credentials.Filter) ([]credentials.Sealed, error) {
	list, err := postgres.All(ctx, s.pool, pgx.RowToStructByName[credentials.Sealed], `SELECT `+credentialColumns+` FROM payments.credentials
		WHERE ($1 = '' OR provider = $1) AND ($2 = '' OR env = $2) AND (active OR NOT $3)
			AND ($4::timestamptz IS NULL OR active OR updated_at >= $4)
		ORDER BY id DESC LIMIT $5`, f.Provider, string(f.Env), f.ActiveOnly, nullTime(f.Since), f.Limit)
	return list, explain(err)
}

// ResealCredentials locks all credentials and replaces what is sealed by what do returns.
func (s *Store) ResealCredentials(ctx context.Context, do func(credentials.Sealed) (credentials.Sealed, error),
	entry func(n int) audit.Entry,
) (n int, err error) {
	err = s.atomically(ctx, func(tx *postgres.Tx) error {
		all, err := postgres.All(ctx, tx, pgx.RowToStructByName[credentials.Sealed],
			`SELECT `+credentialColumns+` FROM payments.credentials ORDER BY id FOR UPDATE`)
		if err != nil {
			return err
		}
		batch := &pgx.Batch{}
		for _, c := range all {
			if c, err = do(c); err != nil {
				return err
			}
			batch.Queue(`UPDATE payments.credentials SET client_id_ct = $2, secret_ct = $3 WHERE id = $1`, c.ID, c.ClientID, c.Secret)
		}
		if err := tx.SendBatch(ctx, batch).Close(); err != nil {
			return err
		}
		n = len(all)
		return audit.Append(ctx, tx, entry(n))
	})
	return n, err
}

// nullTime is a moment for the driver; the zero one is null.
func nullTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
