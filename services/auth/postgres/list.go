package postgres

import (
	"context"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/postgres"
	"hub.internal/pkg/text"
	"hub.internal/services/auth"
)

// statement is SQL that grows with its arguments.
// It takes values as arguments only, so nothing that a person typed becomes SQL.
type statement struct {
	sql  strings.Builder
	args []any
}

// and adds a condition; each ? of it is the next argument.
func (s *statement) and(condition string, args ...any) {
	s.add(" AND "+condition, args...)
}

// add appends SQL; each ? becomes the number of the next argument.
// An example: add("a = ? AND b = ?", x, y) after one argument appends "a = $2 AND b = $3".
func (s *statement) add(sql string, args ...any) {
	for _, v := range args {
		s.args = append(s.args, v)
		sql = strings.Replace(sql, "?", "$"+strconv.Itoa(len(s.args)), 1)
	}
	s.sql.WriteString(sql)
}

// listKeys walks down the primary key: what a search or a state leaves out is passed over.
// It begins below the id of the page before (keyset pagination), so the tenth page costs what the first does, as OFFSET would not.
// Revoked keys, which are few, have the partial index api_keys_revoked. A search for a part of a text may read all keys.
func listKeys(f auth.KeyFilter) (string, []any) {
	var s statement
	s.add(`SELECT ` + columns + ` FROM auth.api_keys WHERE true`)
	if f.After != "" {
		s.and(`id < ?`, text.Storable(f.After))
	}
	if f.Search != "" {
		part := "%" + postgres.LikePattern(text.Storable(f.Search)) + "%"
		s.and(`(name ILIKE ? OR service ILIKE ? OR id = ? OR head = ?)`, part, part, text.Storable(f.Search), text.Storable(f.Search))
	}
	switch f.Status {
	case auth.Active:
		s.and(`revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?)`, f.At)
	case auth.Expired:
		s.and(`revoked_at IS NULL AND expires_at <= ?`, f.At)
	case auth.Revoked:
		s.and(`revoked_at IS NOT NULL`)
	}
	s.add(` ORDER BY id DESC LIMIT ?`, f.Limit)
	return s.sql.String(), s.args
}

// List returns the keys of a filter, newest first.
// Looking at keys is recorded too, in the same transaction: no list is answered that the audit log lacks.
func (s *Store) List(ctx context.Context, f auth.KeyFilter, e audit.Entry) (page []auth.Key, err error) {
	sql, args := listKeys(f)
	err = s.atomically(ctx, func(tx pgx.Tx) error {
		rows, err := postgres.All(ctx, tx, pgx.RowToStructByNameLax[keyRow], sql, args...)
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

// listUsers walks along the index of addresses.
// An address is unique in any case, so it is keyset enough. The rare states, and administrators, have partial indexes in the same order
// (users_pending, users_disabled, users_administrators), and a condition here has to read as the index has it to use one.
func listUsers(f auth.UserFilter) (string, []any) {
	var s statement
	s.add(`SELECT ` + userColumns + ` FROM auth.users u WHERE true`)
	if f.After != "" {
		s.and(`lower(u.email) > lower(? COLLATE "C")`, text.Storable(f.After))
	}
	if f.Search != "" {
		part := "%" + postgres.LikePattern(text.Storable(f.Search)) + "%"
		s.and(`(u.email ILIKE ? OR u.name ILIKE ? OR u.id = ?)`, part, part, text.Storable(f.Search))
	}
	if f.Administrators {
		s.and(`u.roles @> '{` + auth.Admin + `}'`)
	}
	switch f.State {
	case auth.UserActive:
		s.and(`u.disabled_at IS NULL AND (u.password_hash <> '' OR u.last_login_at IS NOT NULL)`)
	case auth.UserPending:
		s.and(`u.disabled_at IS NULL AND u.password_hash = '' AND u.last_login_at IS NULL`)
	case auth.UserDisabled:
		s.and(`u.disabled_at IS NOT NULL`)
	}
	s.add(` ORDER BY lower(u.email) LIMIT ?`, f.Limit)
	return s.sql.String(), s.args
}

// Users returns the users of a filter, by address.
func (s *Store) Users(ctx context.Context, f auth.UserFilter) ([]auth.User, error) {
	sql, args := listUsers(f)
	all, err := postgres.All(ctx, s.pool, pgx.RowToStructByName[auth.User], sql, args...)
	return all, explain(err)
}
