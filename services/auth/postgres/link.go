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
	"hub.internal/services/auth/links"
)

var _ links.Store = (*Store)(nil)

// linkColumns are what is read of a link; each has the name of the field of links.Link that it is read into.
const linkColumns = `l.id, l.service_code AS service, l.external_user_id AS external_user, l.hub_user_id AS hub_user, l.status, l.scopes,
	l.consent_version AS version, l.linked_at, l.revoked_at`

// LinkApp returns an app.
func (s *Store) LinkApp(ctx context.Context, code string) (links.App, error) {
	a, err := linkApp(ctx, s.pool, code, ``)
	return a, explain(err)
}

// linkApp reads what links need to know of an app, and takes a lock where one is named; E_NOT_FOUND.
func linkApp(ctx context.Context, q postgres.Querier, code, lock string) (links.App, error) {
	a, err := postgres.One(ctx, q, pgx.RowToStructByName[links.App], `SELECT service_code AS code, name, status = 'ACTIVE' AS live,
		link_mode = 'confirm' AS confirms, redirect_urls, scopes FROM auth.connected_apps WHERE service_code = $1 `+lock, code)
	if errors.Is(err, pgx.ErrNoRows) || isNotText(err) {
		return a, fault.New(fault.NotFound, "There is no app with the code %.60q.", code)
	}
	return a, err
}

// ofPair is where the link of a pair is that is not revoked, found by the unique index identity_links_pair, which has no other.
const ofPair = ` FROM auth.identity_links l WHERE l.service_code = $1 AND l.external_user_id = $2 AND l.status <> 'REVOKED'`

// linkOf reads the link that acts for a pair: none of a user who is disabled. Each call of an app for a user runs it.
const linkOf = `SELECT ` + linkColumns + ofPair + `
	AND EXISTS (SELECT FROM auth.users u WHERE u.id = l.hub_user_id AND u.disabled_at IS NULL)`

// pairLink reads the link that a pair has, whoever's it is.
const pairLink = `SELECT ` + linkColumns + `,
	EXISTS (SELECT FROM auth.users u WHERE u.id = l.hub_user_id AND u.disabled_at IS NOT NULL) AS disabled` + ofPair

// LinkOf returns the link of a pair that is not revoked, in one read.
// A link that is pending is returned: the caller looks at its status.
func (s *Store) LinkOf(ctx context.Context, service, externalUser string) (links.Held, bool, error) {
	l, err := postgres.One(ctx, s.pool, pgx.RowToStructByName[links.Held], pairLink, service, externalUser)
	if errors.Is(err, pgx.ErrNoRows) || isNotText(err) {
		return l, false, nil
	}
	return l, err == nil, explain(err)
}

// linkTries is how often two may make a link of one pair at the same time, before the one that came later gives up.
const linkTries = 5

// ChangeLink locks a pair and its app, notes that the ticket is used, lets decide judge, and commits what it decides. A pair
// without a link has no row on which two could meet: who comes later finds it taken, and judges it again. decide may run several times.
func (s *Store) ChangeLink(ctx context.Context, a links.Attempt, decide func(links.State) (links.Change, error)) (err error) {
	for range linkTries {
		if err = s.changeLink(ctx, a, decide); !postgres.IsUnique(err, "identity_links_pair") {
			return err
		}
	}
	return err
}

// changeLink is one try of ChangeLink.
func (s *Store) changeLink(ctx context.Context, a links.Attempt, decide func(links.State) (links.Change, error)) error {
	return s.atomically(ctx, func(tx pgx.Tx) (err error) {
		var st links.State
		// Whoever suspends or revokes the app comes before, or after, and finds the link then.
		if st.App, err = linkApp(ctx, tx, a.Service, `FOR SHARE`); err != nil {
			return err
		}
		// A second transaction with the same nonce waits for the first one here, and inserts nothing once that has committed.
		if a.Nonce != nil {
			tag, err := tx.Exec(ctx, `INSERT INTO auth.connect_nonces (nonce, expires_at) VALUES ($1, $2) ON CONFLICT DO NOTHING`, a.Nonce, a.Until)
			if err != nil {
				return err
			}
			st.Used = tag.RowsAffected() == 0
		}
		l, err := postgres.One(ctx, tx, pgx.RowToStructByName[links.Held], pairLink+` FOR UPDATE`, a.Service, a.ExternalUser)
		switch {
		// A pair without a link; st.Link stays nil.
		case errors.Is(err, pgx.ErrNoRows):
		case err != nil:
			return err
		default:
			st.Link = &l
			err := tx.QueryRow(ctx, `SELECT coalesce(max(version), 0) FROM auth.link_consents WHERE link_id = $1`, l.ID).Scan(&st.Versions)
			if err != nil {
				return err
			}
		}
		return commitLinkChange(ctx, tx, func() (links.Change, error) { return decide(st) })
	})
}

// commitLinkChange does what a decision says.
// Whatever the change is about is locked. The link comes before its consent, and that before the grant: foreign keys point back.
func commitLinkChange(ctx context.Context, tx pgx.Tx, decide func() (links.Change, error)) error {
	c, err := decide()
	if err != nil {
		return err
	}
	if c.Ended != nil { // first: a pair has one link that is not revoked
		if err := saveLink(ctx, tx, *c.Ended); err != nil {
			return err
		}
	}
	l := c.Link
	if !c.New {
		err = saveLink(ctx, tx, l)
	} else {
		_, err = tx.Exec(ctx, `INSERT INTO auth.identity_links (id, service_code, external_user_id, hub_user_id, scopes, consent_version,
			status, linked_at, ip, ua) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
			l.ID, l.Service, l.ExternalUser, l.HubUser, l.Scopes, l.Version, l.Status, l.LinkedAt, c.Consent.Address, c.Consent.Agent)
	}
	if err != nil {
		return err
	}
	if n := c.Consent; n != nil {
		_, err := tx.Exec(ctx, `INSERT INTO auth.link_consents (link_id, version, scopes, consented_at, ip, ua) VALUES ($1, $2, $3, $4, $5, $6)`,
			l.ID, n.Version, n.Scopes, n.At, n.Address, n.Agent)
		if err != nil {
			return err
		}
	}
	if g := c.Grant; g != nil {
		_, err := tx.Exec(ctx, `INSERT INTO auth.connect_grants (hash, link_id, version, expires_at) VALUES ($1, $2, $3, $4)`,
			g.Hash[:], g.Link, g.Version, g.ExpiresAt)
		if err != nil {
			return err
		}
	}
	return audit.Append(ctx, tx, c.Audit)
}

// saveLink stores what of a link can change.
func saveLink(ctx context.Context, tx pgx.Tx, l links.Link) error {
	_, err := tx.Exec(ctx, `UPDATE auth.identity_links SET status = $2, scopes = $3, consent_version = $4, linked_at = $5, revoked_at = $6
		WHERE id = $1`, l.ID, l.Status, l.Scopes, l.Version, l.LinkedAt, l.RevokedAt)
	return err
}

// grantRow is a grant with its consent and the app.
// At is when the user consented, ExpiresAt when the grant ends.
type grantRow struct {
	Link          string
	Version       int
	ExpiresAt, At time.Time
	Scopes        []string
	Service       string
}

// RedeemGrant takes a grant away, lets decide judge, and commits what it decides. The app's lock comes before the link's,
// as everywhere.
// E_NOT_FOUND for a code that is unknown or used. One that is too old is for decide to judge.
func (s *Store) RedeemGrant(ctx context.Context, h links.Hash, decide func(links.Redeemed) (links.Change, error)) error {
	return s.atomically(ctx, func(tx pgx.Tx) (err error) {
		gone := fault.New(fault.NotFound, "There is no such code.")
		row, err := postgres.One(ctx, tx, pgx.RowToStructByName[grantRow], `SELECT g.link_id AS link, g.version, g.expires_at,
			c.scopes, c.consented_at AS at, l.service_code AS service FROM auth.connect_grants g
			JOIN auth.link_consents c ON c.link_id = g.link_id AND c.version = g.version
			JOIN auth.identity_links l ON l.id = g.link_id WHERE g.hash = $1`, h[:])
		if errors.Is(err, pgx.ErrNoRows) {
			return gone
		} else if err != nil {
			return err
		}
		r := links.Redeemed{Grant: links.Grant{Hash: h, Link: row.Link, Version: row.Version, ExpiresAt: row.ExpiresAt},
			Consent: links.Consent{Version: row.Version, Scopes: row.Scopes, At: row.At}}
		if r.App, err = linkApp(ctx, tx, row.Service, `FOR SHARE`); err != nil {
			return err
		}
		if r.Link, err = lockLink(ctx, tx, row.Link); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `DELETE FROM auth.connect_grants WHERE hash = $1`, h[:])
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return gone // somebody was faster
		}
		return commitLinkChange(ctx, tx, func() (links.Change, error) { return decide(r) })
	})
}

// lockLink reads a link and locks it; E_NOT_FOUND.
func lockLink(ctx context.Context, tx pgx.Tx, id string) (links.Link, error) {
	l, err := postgres.One(ctx, tx, pgx.RowToStructByName[links.Link],
		`SELECT `+linkColumns+` FROM auth.identity_links l WHERE l.id = $1 FOR UPDATE`, id)
	if errors.Is(err, pgx.ErrNoRows) || isNotText(err) {
		return l, links.NoLink()
	}
	return l, err
}

// EndLink locks a link, lets decide judge it, and commits what it decides.
// E_NOT_FOUND for an id that no link has.
func (s *Store) EndLink(ctx context.Context, id string, decide func(links.Link) (links.Change, error)) error {
	return s.atomically(ctx, func(tx pgx.Tx) error {
		l, err := lockLink(ctx, tx, id)
		if err != nil {
			return err
		}
		return commitLinkChange(ctx, tx, func() (links.Change, error) { return decide(l) })
	})
}

// listLinks walks down the primary key, or that of an app or a user, and looks for what belongs to the links it has found.
// This is keyset pagination over ids, which hold a ULID: newest first. The indexes are identity_links_app and identity_links_user;
// the joins come after LIMIT, so they touch the rows of one page.
func listLinks(f links.Filter) (sql string, args pgx.NamedArgs) {
	sql = `SELECT ` + linkColumns + `, a.name AS app_name, a.status AS app_status, u.email, c.consented_at AS consent_at
		FROM (SELECT * FROM auth.identity_links l WHERE l.status = 'ACTIVE'`
	if f.HubUser != "" {
		sql += ` AND l.hub_user_id = @user`
	}
	if f.Service != "" {
		sql += ` AND l.service_code = @service`
	}
	if f.After != "" {
		sql += ` AND l.id < @after`
	}
	return sql + ` ORDER BY l.id DESC LIMIT @limit) l JOIN auth.connected_apps a ON a.service_code = l.service_code
		JOIN auth.users u ON u.id = l.hub_user_id
		JOIN auth.link_consents c ON c.link_id = l.id AND c.version = l.consent_version ORDER BY l.id DESC`,
		pgx.NamedArgs{"user": text.Storable(f.HubUser), "service": text.Storable(f.Service), "after": text.Storable(f.After), "limit": f.Limit}
}

// ListLinks returns the links of a filter.
func (s *Store) ListLinks(ctx context.Context, f links.Filter) ([]links.Listed, error) {
	sql, args := listLinks(f)
	page, err := postgres.All(ctx, s.pool, pgx.RowToStructByName[links.Listed], sql, args)
	return page, explain(err)
}

// UserID returns the id of the user with an address.
// E_NOT_FOUND without one.
func (s *Store) UserID(ctx context.Context, email string) (string, error) {
	u, err := userByEmail(ctx, s.pool, email, ``)
	return u.ID, explain(err)
}

// ReapLinks revokes the links that were pending before a moment, and deletes what means nothing any more.
// Every replica runs it; a second one finds no rows, so a link is revoked and recorded once.
func (s *Store) ReapLinks(ctx context.Context, pending, used, now time.Time, entry func(ids []string) audit.Entry) error {
	for sql, at := range map[string]time.Time{
		`DELETE FROM auth.connect_nonces WHERE expires_at < $1`:  used,
		`DELETE FROM auth.connect_grants WHERE expires_at <= $1`: now,
	} {
		if _, err := s.pool.Exec(ctx, sql, at); err != nil {
			return explain(err)
		}
	}
	return s.atomically(ctx, func(tx pgx.Tx) error {
		// Whoever confirms one at this moment holds its lock, and it is not pending afterwards.
		ids, err := postgres.All(ctx, tx, pgx.RowTo[string], `UPDATE auth.identity_links SET status = 'REVOKED', revoked_at = $2
			WHERE status = 'PENDING' AND linked_at <= $1 RETURNING id`, pending, now)
		if err != nil || len(ids) == 0 {
			return err
		}
		return audit.Append(ctx, tx, entry(ids))
	})
}
