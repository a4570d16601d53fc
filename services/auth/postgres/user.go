package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/postgres"
	"hub.internal/services/auth"
)

var _ auth.UserStore = (*Store)(nil)

// userColumns are what is read of a user. An invitation is one a user at most, so the subquery has one row.
const userColumns = `u.id, u.email, u.name, u.roles, u.password_hash,
	u.created_by, u.created_at, u.disabled_at, u.last_login_at AS last_login, u.language,
	(SELECT i.expires_at FROM auth.invitations i WHERE i.user_id = u.id) AS invited_until`

// AddUser commits a new user, with an invitation unless that is nil.
// E_CONFLICT when the address is taken in any case, which the unique index users_email holds.
func (s *Store) AddUser(ctx context.Context, u auth.User, i *auth.StoredInvitation, e audit.Entry) error {
	return s.atomically(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO auth.users (id, email, name, roles, password_hash, created_by, created_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7)`, u.ID, u.Email, u.Name, u.Roles, u.PasswordHash, u.CreatedBy, u.CreatedAt)
		if postgres.IsUnique(err, "users_email") {
			return fault.New(fault.Conflict, "There is a user with the address %s already.", u.Email).Because(err)
		}
		if err == nil {
			err = invite(ctx, tx, u.ID, i)
		}
		if err != nil {
			return err
		}
		return audit.Append(ctx, tx, e)
	})
}

// invite stores the invitation of a user in the place of the one before; nil leaves that.
func invite(ctx context.Context, tx pgx.Tx, userID string, i *auth.StoredInvitation) error {
	if i == nil {
		return nil
	}
	_, err := tx.Exec(ctx, `INSERT INTO auth.invitations (user_id, hash, created_at, expires_at) VALUES ($1, $2, $3, $4)
		ON CONFLICT (user_id) DO UPDATE SET hash = $2, created_at = $3, expires_at = $4`, userID, i.Hash[:], i.CreatedAt, i.ExpiresAt)
	return err
}

// UserByID finds a user by the id.
func (s *Store) UserByID(ctx context.Context, id string) (auth.User, bool, error) {
	u, err := postgres.One(ctx, s.pool, pgx.RowToStructByName[auth.User], `SELECT `+userColumns+` FROM auth.users u WHERE u.id = $1`, id)
	if errors.Is(err, pgx.ErrNoRows) || isNotText(err) {
		return auth.User{}, false, nil
	}
	return u, err == nil, explain(err)
}

// UserByEmail finds a user by the address in any case.
func (s *Store) UserByEmail(ctx context.Context, email string) (auth.User, bool, error) {
	u, err := userByEmail(ctx, s.pool, email, "")
	if fault.Is(err, fault.NotFound) {
		return auth.User{}, false, nil
	}
	return u, err == nil, explain(err)
}

// userByEmail reads a user by the address in any case, and takes a lock where one is named; E_NOT_FOUND.
// The expression is that of the index users_email; COLLATE "C" makes lower() agree with it.
func userByEmail(ctx context.Context, q postgres.Querier, email, lock string) (auth.User, error) {
	u, err := postgres.One(ctx, q, pgx.RowToStructByName[auth.User],
		`SELECT `+userColumns+` FROM auth.users u WHERE lower(u.email) = lower(btrim($1) COLLATE "C") `+lock, email)
	if errors.Is(err, pgx.ErrNoRows) || isNotText(err) {
		return auth.User{}, fault.New(fault.NotFound, "There is no user with the address %q.", email)
	}
	return u, err
}

// isNotText tells that a parameter is not UTF-8, so no id and no address.
// SQLSTATE 22021 is character_not_in_repertoire; a NUL in a text is that, too.
func isNotText(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "22021"
}

// ChangeUser locks a user, lets decide judge it, and commits what it decides.
// E_NOT_FOUND for an address that nobody has; an error of decide rolls back.
func (s *Store) ChangeUser(ctx context.Context, email string, decide func(auth.User) (auth.UserChange, error)) error {
	return s.atomically(ctx, func(tx pgx.Tx) error {
		u, err := userByEmail(ctx, tx, email, "FOR UPDATE OF u")
		if err != nil {
			return err
		}
		return commitUserChange(ctx, tx, u, decide)
	})
}

// commitUserChange commits what decide makes of a user, who is locked.
func commitUserChange(ctx context.Context, tx pgx.Tx, locked auth.User, decide func(auth.User) (auth.UserChange, error)) error {
	c, err := decide(locked)
	if err != nil {
		return err
	}
	u := c.User
	if c.NeedsOtherAdmin {
		if err := otherAdmin(ctx, tx, u); err != nil {
			return err
		}
	}
	if _, err := tx.Exec(ctx, `UPDATE auth.users SET name = $2, roles = $3, password_hash = $4, disabled_at = $5 WHERE id = $1`,
		u.ID, u.Name, u.Roles, u.PasswordHash, u.DisabledAt); err != nil {
		return err
	}
	// A way in that was given before the change, be it a session, a known browser or an invitation, is none after it.
	if c.EndSessions {
		if _, err := tx.Exec(ctx, `UPDATE auth.sessions SET revoked_at = $2 WHERE user_id = $1 AND revoked_at IS NULL`,
			u.ID, c.Audit.At); err != nil {
			return err
		}
		for _, sql := range []string{`DELETE FROM auth.browsers WHERE user_id = $1`, `DELETE FROM auth.invitations WHERE user_id = $1`} {
			if _, err := tx.Exec(ctx, sql, u.ID); err != nil {
				return err
			}
		}
	}
	if err := invite(ctx, tx, u.ID, c.Invitation); err != nil {
		return err
	}
	return audit.Append(ctx, tx, c.Audit)
}

// SetLanguage keeps the language of a user.
func (s *Store) SetLanguage(ctx context.Context, userID, language string) error {
	_, err := s.pool.Exec(ctx, `UPDATE auth.users SET language = $2 WHERE id = $1`, userID, language)
	return explain(err)
}

// otherAdmin wants an administrator beside this one. Whoever asks waits for those who asked before: two that each take
// the role from the other must not both find one. The first user's row stands for all: no other service's role may lock it, as it
// could an advisory lock, and who holds it waits for no other.
func otherAdmin(ctx context.Context, tx pgx.Tx, u auth.User) error {
	if _, err := tx.Exec(ctx, `SELECT FROM auth.users ORDER BY id LIMIT 1 FOR NO KEY UPDATE`); err != nil {
		return err
	}
	var others bool
	err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM auth.users WHERE id <> $1 AND roles @> ARRAY[$2] AND disabled_at IS NULL
		AND (password_hash <> '' OR last_login_at IS NOT NULL))`, u.ID, auth.Admin).Scan(&others)
	if err == nil && !others {
		err = auth.LastAdmin(u)
	}
	return err
}

// invited finds the user of an invitation that holds, by the unique index invitations_hash.
const invited = `FROM auth.invitations i JOIN auth.users u ON u.id = i.user_id WHERE i.hash = $1 AND i.expires_at > $2`

// Invited returns the user whom an invitation that holds is for.
func (s *Store) Invited(ctx context.Context, h auth.Hash, now time.Time) (auth.User, bool, error) {
	u, err := postgres.One(ctx, s.pool, pgx.RowToStructByName[auth.User], `SELECT `+userColumns+` `+invited, h[:], now)
	if errors.Is(err, pgx.ErrNoRows) {
		return auth.User{}, false, nil
	}
	return u, err == nil, explain(err)
}

// Accept is ChangeUser for who holds an invitation.
// Of two who use one invitation at the same time the second one gets E_NOT_FOUND.
func (s *Store) Accept(ctx context.Context, h auth.Hash, now time.Time, decide func(auth.User) (auth.UserChange, error)) error {
	return s.atomically(ctx, func(tx pgx.Tx) error {
		// Another one who was faster has used it up by the time that the user's lock is had.
		u, err := postgres.One(ctx, tx, pgx.RowToStructByName[auth.User], `SELECT `+userColumns+` `+invited+` FOR UPDATE OF u`, h[:], now)
		if errors.Is(err, pgx.ErrNoRows) {
			return auth.NoInvitation()
		}
		if err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `DELETE FROM auth.invitations WHERE hash = $1`, h[:])
		if err == nil && tag.RowsAffected() == 0 {
			err = auth.NoInvitation()
		}
		if err != nil {
			return err
		}
		return commitUserChange(ctx, tx, u, decide)
	})
}
