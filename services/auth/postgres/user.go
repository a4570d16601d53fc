package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/postgres"
	"hub.internal/services/auth"
)

var _ auth.UserStore = (*Store)(nil)

const userColumns = `u.id, u.email, u.name, u.roles, u.password_hash,
	u.created_by, u.created_at, u.disabled_at, u.last_login_at AS last_login`

// AddUser commits a new user.
func (s *Store) AddUser(ctx context.Context, u auth.User, e audit.Entry) error {
	return s.atomically(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO auth.users (id, email, name, roles, password_hash, created_by, created_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7)`, u.ID, u.Email, u.Name, u.Roles, u.PasswordHash, u.CreatedBy, u.CreatedAt)
		if postgres.IsUnique(err, "users_email") {
			return fault.New(fault.Conflict, "There is a user with the address %s already.", u.Email).Because(err)
		}
		if err != nil {
			return err
		}
		return audit.Append(ctx, tx, e)
	})
}

// UserByEmail finds a user by the address in any case.
func (s *Store) UserByEmail(ctx context.Context, email string) (auth.User, bool, error) {
	u, err := userByEmail(ctx, s.pool, email, "")
	if fault.Is(err, fault.NotFound) {
		return auth.User{}, false, nil
	}
	return u, err == nil, explain(err)
}

func userByEmail(ctx context.Context, q postgres.Querier, email, lock string) (auth.User, error) {
	u, err := postgres.One(ctx, q, pgx.RowToStructByName[auth.User],
		`SELECT `+userColumns+` FROM auth.users u WHERE lower(u.email) = lower(btrim($1) COLLATE "C") `+lock, email)
	if errors.Is(err, pgx.ErrNoRows) || notText(err) {
		return auth.User{}, fault.New(fault.NotFound, "There is no user with the address %q.", email)
	}
	return u, err
}

// notText tells that a parameter is not UTF-8, so no id and no address.
func notText(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "22021"
}

// Users lists all users by address.
func (s *Store) Users(ctx context.Context) ([]auth.User, error) {
	all, err := postgres.All(ctx, s.pool, pgx.RowToStructByName[auth.User], `SELECT `+userColumns+` FROM auth.users u ORDER BY lower(u.email)`)
	return all, explain(err)
}

// ChangeUser locks a user, lets decide judge it, and commits what it decides.
func (s *Store) ChangeUser(ctx context.Context, email string, decide func(auth.User) (auth.User, audit.Entry, error),
	endSessions bool) error {
	return s.atomically(ctx, func(tx pgx.Tx) error {
		u, err := userByEmail(ctx, tx, email, "FOR UPDATE")
		if err != nil {
			return err
		}
		u, e, err := decide(u)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `UPDATE auth.users SET name = $2, roles = $3, password_hash = $4, disabled_at = $5 WHERE id = $1`,
			u.ID, u.Name, u.Roles, u.PasswordHash, u.DisabledAt); err != nil {
			return err
		}
		if endSessions {
			if _, err := tx.Exec(ctx, `UPDATE auth.sessions SET revoked_at = $2 WHERE user_id = $1 AND revoked_at IS NULL`, u.ID, e.At); err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, `DELETE FROM auth.browsers WHERE user_id = $1`, u.ID); err != nil {
				return err
			}
		}
		return audit.Append(ctx, tx, e)
	})
}
