package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/postgres"
	"hub.internal/pkg/text"
	"hub.internal/services/auth"
)

// listKeys walks down the primary key: what a search or a state leaves out is passed over.
// It begins below the id of the page before (keyset pagination), so the tenth page costs what the first does, as OFFSET would not.
// Revoked keys, which are few, have the partial index api_keys_revoked. A search for a part of a text may read all keys.
func listKeys(f auth.KeyFilter) (sql string, args pgx.NamedArgs) {
	sql = `SELECT ` + columns + ` FROM auth.api_keys WHERE true`
	if f.After != "" {
		sql += ` AND id < @after`
	}
	if f.Search != "" {
		sql += ` AND (name ILIKE @part OR service ILIKE @part OR id = @search OR head = @search)`
	}
	switch f.Status {
	case auth.Active:
		sql += ` AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > @at)`
	case auth.Expired:
		sql += ` AND revoked_at IS NULL AND expires_at <= @at`
	case auth.Revoked:
		sql += ` AND revoked_at IS NOT NULL`
	}
	return sql + ` ORDER BY id DESC LIMIT @limit`, pgx.NamedArgs{"after": text.Storable(f.After), "part": part(f.Search),
		"search": text.Storable(f.Search), "at": f.At, "limit": f.Limit}
}

// List returns the keys of a filter, newest first.
// Looking at keys is recorded too, in the same transaction: no list is answered that the audit log lacks.
func (s *Store) List(ctx context.Context, f auth.KeyFilter, e audit.Entry) (page []auth.Key, err error) {
	sql, args := listKeys(f)
	err = s.atomically(ctx, func(tx pgx.Tx) error {
		rows, err := postgres.All(ctx, tx, pgx.RowToStructByNameLax[keyRow], sql, args)
		if err != nil {
			return err
		}
		page = make([]auth.Key, len(rows))
		for i, row := range rows {
			page[i] = row.key()
		}
		e.Count = len(page)
		return audit.Append(ctx, tx, e)
	})
	return page, err
}

// part is a pattern of texts that have what is searched for in them.
func part(search string) string { return "%" + postgres.LikePattern(text.Storable(search)) + "%" }

// listUsers walks along the index of addresses.
// An address is unique in any case, so it is keyset enough. The rare states, and administrators, have partial indexes in the same order
// (users_pending, users_disabled, users_administrators), and a condition here has to read as the index has it to use one.
func listUsers(f auth.UserFilter) (sql string, args pgx.NamedArgs) {
	sql = `SELECT ` + userColumns + ` FROM auth.users u WHERE true`
	if f.After != "" {
		sql += ` AND lower(u.email) > lower(@after COLLATE "C")`
	}
	if f.Search != "" {
		sql += ` AND (u.email ILIKE @part OR u.name ILIKE @part OR u.id = @search)`
	}
	if f.Administrators {
		sql += ` AND u.roles @> '{` + auth.Admin + `}'`
	}
	switch f.State {
	case auth.UserActive:
		sql += ` AND u.disabled_at IS NULL AND (u.password_hash <> '' OR u.last_login_at IS NOT NULL)`
	case auth.UserPending:
		sql += ` AND u.disabled_at IS NULL AND u.password_hash = '' AND u.last_login_at IS NULL`
	case auth.UserDisabled:
		sql += ` AND u.disabled_at IS NOT NULL`
	}
	return sql + ` ORDER BY lower(u.email) LIMIT @limit`, pgx.NamedArgs{"after": text.Storable(f.After), "part": part(f.Search),
		"search": text.Storable(f.Search), "limit": f.Limit}
}

// Users returns the users of a filter, by address.
func (s *Store) Users(ctx context.Context, f auth.UserFilter) ([]auth.User, error) {
	sql, args := listUsers(f)
	all, err := postgres.All(ctx, s.pool, pgx.RowToStructByName[auth.User], sql, args)
	return all, explain(err)
}
