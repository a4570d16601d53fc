package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/postgres"
	"hub.internal/pkg/text"
	"hub.internal/services/auth/apps"
)

var _ apps.Store = (*Store)(nil)

// appColumns are what is read of an app; each has the name of the field of appRow that it is read into.
const appColumns = `a.service_code AS code, a.name, a.status, a.reason, a.redirect_urls, a.origins, a.scopes, a.link_mode,
	a.user_per_minute, a.user_burst, a.service_per_minute, a.service_burst, a.version, a.created_by, a.created_at, a.updated_at`

// appRow is a row of appColumns.
type appRow struct {
	apps.App
	apps.Limits
	// HasSecret is read by listApps alone, Links by App alone. RowToStructByNameLax leaves zero what a query does not have.
	HasSecret bool
	Links     int
}

// app is the app of the row; its limits are columns of their own.
func (r appRow) app() apps.App {
	r.App.Limits = r.Limits
	return r.App
}

// AddApp commits a new app together with its audit entry.
// E_CONFLICT when the code is taken, by a revoked app as well: a row is never deleted.
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
// The three reads see one snapshot (REPEATABLE READ), so the secrets and the state of the app fit each other. The count walks along
// identity_links_app, which has active links alone.
func (s *Store) App(ctx context.Context, code string) (out apps.Inspected, err error) {
	err = pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		row, err := appOf(ctx, tx, code, `, (SELECT count(*) FROM auth.identity_links l
			WHERE l.service_code = a.service_code AND l.status = 'ACTIVE') AS links`, ``)
		if err != nil {
			return err
		}
		out.App, out.Links = row.app(), row.Links
		held, err := heldBy(ctx, tx, code)
		out.Secrets, out.Webhooks = held.Signing, held.Webhook
		return err
	})
	return out, explain(err)
}

// appOf reads an app, with more columns, and takes a lock where one is named; E_NOT_FOUND.
func appOf(ctx context.Context, q postgres.Querier, code, more, lock string) (appRow, error) {
	row, err := postgres.One(ctx, q, pgx.RowToStructByNameLax[appRow],
		`SELECT `+appColumns+more+` FROM auth.connected_apps a WHERE a.service_code = $1 `+lock, code)
	if errors.Is(err, pgx.ErrNoRows) || isNotText(err) {
		return row, noApp(code)
	}
	return row, err
}

// noApp is E_NOT_FOUND for a code.
func noApp(code string) error {
	return fault.New(fault.NotFound, "There is no app with the code %.60q.", code)
}

// secretTables hold the secrets of apps; they have the same columns.
var secretTables = map[apps.Kind]string{apps.Signing: "auth.app_secrets", apps.Webhook: "auth.app_webhook_secrets"}

// secretColumns are those of what is known of a secret.
const secretColumns = `s.id, s.service_code AS code, s.created_by, s.created_at, s.expires_at, s.revoked_at`

// heldBy are the secrets of an app that were not destroyed, newest first.
// The ids hold a ULID, which sorts by time, so their order is that of issuing. The indexes are app_secrets_held and
// app_webhook_secrets_held.
func heldBy(ctx context.Context, q postgres.Querier, code string) (h apps.Held, err error) {
	for kind, list := range map[apps.Kind]*[]apps.Secret{apps.Signing: &h.Signing, apps.Webhook: &h.Webhook} {
		*list, err = postgres.All(ctx, q, pgx.RowToStructByName[apps.Secret], `SELECT `+secretColumns+` FROM `+secretTables[kind]+` s
			WHERE s.service_code = $1 AND s.revoked_at IS NULL ORDER BY s.id DESC`, code)
		if err != nil {
			return h, err
		}
	}
	return h, nil
}

// keyringRow is an app with one of its secrets, if it has any.
type keyringRow struct {
	appRow
	// SecretID is nil for an app without a good secret: the join is an outer one, so that such an app is told from none.
	SecretID  *string
	Sealed    []byte
	ExpiresAt *time.Time
}

// keyring is the query of an app with its secrets of a kind that are good at a moment, the current one first.
// The current secret has no end yet, so it sorts before the one that it overlaps.
func keyring(kind apps.Kind) string {
	return `SELECT ` + appColumns + `, s.id AS secret_id, s.sealed, s.expires_at FROM auth.connected_apps a
		LEFT JOIN ` + secretTables[kind] + ` s ON s.service_code = a.service_code AND s.revoked_at IS NULL
			AND (s.expires_at IS NULL OR s.expires_at > $2)
		WHERE a.service_code = $1 ORDER BY s.expires_at IS NOT NULL, s.id DESC LIMIT 2`
}

// NewestSealed returns the secrets of the kind that are good at a moment, of all apps, newest first.
func (s *Store) NewestSealed(ctx context.Context, kind apps.Kind, at time.Time, limit int) ([]apps.SealedSecret, error) {
	list, err := postgres.All(ctx, s.pool, pgx.RowToStructByNameLax[apps.SealedSecret],
		`SELECT `+secretColumns+`, s.sealed FROM `+secretTables[kind]+` s
		WHERE s.revoked_at IS NULL AND (s.expires_at IS NULL OR s.expires_at > $1) ORDER BY s.id DESC LIMIT $2`, at, limit)
	return list, explain(err)
}

// Keyring returns an app and its at most two secrets of the kind that are good at a moment.
// It is one round trip for each token that is verified. The code is what a token claims, so it may be any text; E_NOT_FOUND for no app.
func (s *Store) Keyring(ctx context.Context, code string, kind apps.Kind, at time.Time) (apps.App, []apps.SealedSecret, error) {
	rows, err := postgres.All(ctx, s.pool, pgx.RowToStructByNameLax[keyringRow], keyring(kind), text.Storable(code), at)
	if err != nil {
		return apps.App{}, nil, explain(err)
	}
	if len(rows) == 0 {
		return apps.App{}, nil, noApp(code)
	}
	var secrets []apps.SealedSecret
	for _, r := range rows {
		if r.SecretID != nil {
			known := apps.Secret{ID: *r.SecretID, Code: r.Code, ExpiresAt: r.ExpiresAt}
			secrets = append(secrets, apps.SealedSecret{Secret: known, Sealed: r.Sealed})
		}
	}
	return rows[0].app(), secrets, nil
}

// listApps walks along the primary key, or that of a state, and looks for the secrets of what it has found.
// The inner SELECT is cut off by LIMIT first, so EXISTS is asked for the rows of one page only. A search is a part of a text, which
// no index helps with: it reads on until the page is full.
func listApps(f apps.Filter) (sql string, args pgx.NamedArgs) {
	sql = `SELECT ` + appColumns + `, EXISTS (SELECT FROM auth.app_secrets s WHERE s.service_code = a.service_code AND s.revoked_at IS NULL
		AND (s.expires_at IS NULL OR s.expires_at > @at)) AS has_secret FROM (SELECT * FROM auth.connected_apps a WHERE true`
	if f.After != "" {
		sql += ` AND a.service_code > @after`
	}
	if f.Search != "" {
		sql += ` AND (a.service_code ILIKE @part OR a.name ILIKE @part)`
	}
	if f.Status != "" {
		sql += ` AND a.status = @status`
	}
	return sql + ` ORDER BY a.service_code LIMIT @limit) a ORDER BY a.service_code`, pgx.NamedArgs{"at": f.At, "after": text.Storable(f.After),
		"part": part(f.Search), "status": string(f.Status), "limit": f.Limit}
}

// Apps returns the apps of a filter, by code.
func (s *Store) Apps(ctx context.Context, f apps.Filter) ([]apps.Listed, error) {
	sql, args := listApps(f)
	rows, err := postgres.All(ctx, s.pool, pgx.RowToStructByNameLax[appRow], sql, args)
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
// The row lock makes changes of one app follow each other. An error of decide rolls back, and nothing is recorded.
func (s *Store) ChangeApp(ctx context.Context, code string, decide func(apps.App, apps.Held) (apps.Change, error)) error {
	return s.atomically(ctx, func(tx pgx.Tx) error {
		row, err := appOf(ctx, tx, code, ``, `FOR UPDATE`)
		if err != nil {
			return err
		}
		held, err := heldBy(ctx, tx, code)
		if err != nil {
			return err
		}
		c, err := decide(row.app(), held)
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

// endSecrets ends those of a change, and the links, and adds its secrets.
// The seal of a secret that is revoked is deleted; one that expires later keeps it until then.
func endSecrets(ctx context.Context, tx pgx.Tx, c apps.Change) error {
	for kind, ended := range map[apps.Kind][]apps.Secret{apps.Signing: c.Ended, apps.Webhook: c.EndedWebhooks} {
		for _, e := range ended {
			_, err := tx.Exec(ctx, `UPDATE `+secretTables[kind]+` SET expires_at = $2, revoked_at = $3::timestamptz,
				sealed = CASE WHEN $3::timestamptz IS NULL THEN sealed END WHERE id = $1`, e.ID, e.ExpiresAt, e.RevokedAt)
			if err != nil {
				return err
			}
		}
	}
	// An app that is revoked has no links, those that wait for a confirmation included.
	if c.Unlink {
		_, err := tx.Exec(ctx, `UPDATE auth.identity_links SET status = 'REVOKED', revoked_at = $2
			WHERE service_code = $1 AND status <> 'REVOKED'`, c.App.Code, c.App.UpdatedAt)
		if err != nil {
			return err
		}
	}
	for kind, n := range map[apps.Kind]*apps.SealedSecret{apps.Signing: c.Added, apps.Webhook: c.AddedWebhook} {
		if n == nil {
			continue
		}
		_, err := tx.Exec(ctx, `INSERT INTO `+secretTables[kind]+` (id, service_code, sealed, created_by, created_at)
			VALUES ($1, $2, $3, $4, $5)`,
			n.ID, n.Code, n.Sealed, n.CreatedBy, n.CreatedAt)
		if err != nil {
			return err
		}
	}
	return nil
}
