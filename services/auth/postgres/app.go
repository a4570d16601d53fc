package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/postgres"
	"hub.internal/services/auth/apps"
)

var _ apps.Store = (*Store)(nil)

const appColumns = `a.service_code AS code, a.name, a.status, a.reason, a.redirect_urls, a.origins, a.scopes, a.link_mode,
	a.user_per_minute, a.user_burst, a.service_per_minute, a.service_burst, a.version, a.created_by, a.created_at, a.updated_at`

// appRow is a row of appColumns.
type appRow struct {
	apps.App
	apps.Limits
	HasSecret bool
	Links     int
}

func (r appRow) app() apps.App {
	r.App.Limits = r.Limits
	return r.App
}

// AddApp commits a new app together with its audit entry.
func (s *Store) AddApp(ctx context.Context, a apps.App, e audit.Entry) error {
	return s.atomically(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO auth.connected_apps (service_code, name, status, redirect_urls, origins, scopes, link_mode,
			user_per_minute, user_burst, service_per_minute, service_burst, version, created_by, created_at, updated_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)`,
			a.Code, a.Name, a.Status, a.RedirectURLs, a.Origins, a.Scopes, a.LinkMode,
			a.Limits.UserPerMinute, a.Limits.UserBurst, a.Limits.ServicePerMinute, a.Limits.ServiceBurst,
			a.Version, a.CreatedBy, a.CreatedAt, a.UpdatedAt)
		if postgres.IsUnique(err, "connected_apps_pkey") {
			return fault.New(fault.Conflict, "There is an app with the code %s already.", a.Code).Because(err)
		}
		if err != nil {
			return err
		}
		return audit.Append(ctx, tx, e)
	})
}

// App returns an app with what belongs to it.
func (s *Store) App(ctx context.Context, code string) (out apps.Inspected, err error) {
	err = pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		row, err := appOf(ctx, tx, code, `, (SELECT count(*) FROM auth.identity_links l
			WHERE l.service_code = a.service_code AND l.status = 'ACTIVE') AS links`, ``)
		if err != nil {
			return err
		}
		out.App, out.Links = row.app(), row.Links
		out.Secrets, err = secretsOf(ctx, tx, code)
		return err
	})
	return out, explain(err)
}

func appOf(ctx context.Context, q postgres.Querier, code, more, lock string) (appRow, error) {
	row, err := postgres.One(ctx, q, pgx.RowToStructByNameLax[appRow],
		`SELECT `+appColumns+more+` FROM auth.connected_apps a WHERE a.service_code = $1 `+lock, code)
	if errors.Is(err, pgx.ErrNoRows) || notText(err) {
		return row, fault.New(fault.NotFound, "There is no app with the code %.60q.", code)
	}
	return row, err
}

// secretsOf are those of an app that were not destroyed, newest first.
func secretsOf(ctx context.Context, q postgres.Querier, code string) ([]apps.Secret, error) {
	return postgres.All(ctx, q, pgx.RowToStructByName[apps.Secret], `SELECT id, service_code AS code, created_by, created_at,
		expires_at, revoked_at FROM auth.app_secrets WHERE service_code = $1 AND revoked_at IS NULL ORDER BY id DESC`, code)
}

// listApps walks along the primary key, or that of a state, and looks for the secrets of what it has found.
func listApps(f apps.Filter) (string, []any) {
	var s statement
	s.add(`SELECT `+appColumns+`, EXISTS (SELECT FROM auth.app_secrets s WHERE s.service_code = a.service_code AND s.revoked_at IS NULL
		AND (s.expires_at IS NULL OR s.expires_at > ?)) AS has_secret FROM (SELECT * FROM auth.connected_apps a WHERE true`, f.At)
	if f.After != "" {
		s.and(`a.service_code > ?`, text(f.After))
	}
	if f.Search != "" {
		part := "%" + likely.Replace(text(f.Search)) + "%"
		s.and(`(a.service_code ILIKE ? OR a.name ILIKE ?)`, part, part)
	}
	if f.Status != "" {
		s.and(`a.status = ?`, string(f.Status))
	}
	s.add(` ORDER BY a.service_code LIMIT ?) a ORDER BY a.service_code`, f.Limit)
	return s.sql.String(), s.args
}

// Apps returns the apps of a filter, by code.
func (s *Store) Apps(ctx context.Context, f apps.Filter) ([]apps.Listed, error) {
	sql, args := listApps(f)
	rows, err := postgres.All(ctx, s.pool, pgx.RowToStructByNameLax[appRow], sql, args...)
	if err != nil {
		return nil, explain(err)
	}
	list := make([]apps.Listed, len(rows))
	for i, r := range rows {
		list[i] = apps.Listed{App: r.app(), HasSecret: r.HasSecret}
	}
	return list, nil
}

// ChangeApp locks an app, lets decide judge it and its secrets, and commits what it decides.
func (s *Store) ChangeApp(ctx context.Context, code string, decide func(apps.App, []apps.Secret) (apps.Change, error)) error {
	return s.atomically(ctx, func(tx pgx.Tx) error {
		row, err := appOf(ctx, tx, code, ``, `FOR UPDATE`)
		if err != nil {
			return err
		}
		secrets, err := secretsOf(ctx, tx, code)
		if err != nil {
			return err
		}
		c, err := decide(row.app(), secrets)
		if err != nil {
			return err
		}
		a := c.App
		_, err = tx.Exec(ctx, `UPDATE auth.connected_apps SET name = $2, status = $3, reason = $4, redirect_urls = $5, origins = $6, scopes = $7,
			link_mode = $8, user_per_minute = $9, user_burst = $10, service_per_minute = $11, service_burst = $12, version = $13, updated_at = $14
			WHERE service_code = $1`, a.Code, a.Name, a.Status, a.Reason, a.RedirectURLs, a.Origins, a.Scopes, a.LinkMode,
			a.Limits.UserPerMinute, a.Limits.UserBurst, a.Limits.ServicePerMinute, a.Limits.ServiceBurst, a.Version, a.UpdatedAt)
		if err != nil {
			return err
		}
		if err := endSecrets(ctx, tx, c); err != nil {
			return err
		}
		return audit.Append(ctx, tx, c.Audit)
	})
}

// endSecrets ends those of a change, and the links, and adds its secret.
func endSecrets(ctx context.Context, tx pgx.Tx, c apps.Change) error {
	for _, e := range c.Ended {
		_, err := tx.Exec(ctx, `UPDATE auth.app_secrets SET expires_at = $2, revoked_at = $3::timestamptz,
			sealed = CASE WHEN $3::timestamptz IS NULL THEN sealed END WHERE id = $1`, e.ID, e.ExpiresAt, e.RevokedAt)
		if err != nil {
			return err
		}
	}
	if c.Unlink {
		_, err := tx.Exec(ctx, `UPDATE auth.identity_links SET status = 'REVOKED', revoked_at = $2
			WHERE service_code = $1 AND status <> 'REVOKED'`, c.App.Code, c.App.UpdatedAt)
		if err != nil {
			return err
		}
	}
	if n := c.Added; n != nil {
		_, err := tx.Exec(ctx, `INSERT INTO auth.app_secrets (id, service_code, sealed, created_by, created_at) VALUES ($1, $2, $3, $4, $5)`,
			n.ID, n.Code, n.Sealed, n.CreatedBy, n.CreatedAt)
		return err
	}
	return nil
}
