package postgres

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/jackc/pgx/v5"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/postgres"
	"hub.internal/pkg/tool"
	"hub.internal/pkg/write"
	"hub.internal/services/admin"
)

// itemOf finds an item by its slugs. Who writes its page holds its row, so that versions come one after the other.
const (
	itemOf = `SELECT i.id, i.href, i.hidden OR g.hidden AS hidden FROM admin.menu_items i JOIN admin.menu_groups g ON g.id = i.group_id
		WHERE g.slug = $1 AND i.slug = $2`
	holdOf = itemOf + ` FOR NO KEY UPDATE OF i`
)

// hold locks an item, and returns what it has.
// Newest is 0 for an item without a page. E_NOT_FOUND where one of the slugs names nothing.
func hold(ctx context.Context, tx pgx.Tx, group, item string) (id admin.ID, h admin.Head, err error) {
	err = tx.QueryRow(ctx, holdOf, group, item).Scan(&id, &h.Href, &h.Hidden)
	if errors.Is(err, pgx.ErrNoRows) {
		err = missingSlug(ctx, tx, group, item)
	}
	if err == nil {
		// In a statement after the lock: it sees the version of whoever held it.
		err = tx.QueryRow(ctx, `SELECT coalesce(max(version), 0) FROM admin.page_versions WHERE item_id = $1`, id).Scan(&h.Newest)
	}
	return id, h, err
}

// missingSlug tells which of the two slugs names nothing.
// The look is a second statement, so only a refusal pays for it.
func missingSlug(ctx context.Context, q postgres.Querier, group, item string) error {
	var there bool
	if err := q.QueryRow(ctx, `SELECT EXISTS (SELECT FROM admin.menu_groups WHERE slug = $1)`, group).Scan(&there); err != nil {
		return err
	}
	if !there {
		return admin.MissingGroup(group)
	}
	return admin.MissingItem(group, item)
}

// Sections are json and not jsonb, which keeps their members in order; bytes is their length, so that lists need not read them.
const insertPage = `INSERT INTO admin.page_versions (item_id, version, title, description, sections, bytes, created_by, created_at,
		service, external_user_id, credential_id, hub_user) VALUES ($1, $2, $3, $4, $5::json, $6, $7, $8, $9, $10, $11, $12)`

// AddPage stores a version of an item's page once for the key.
// decide gives the version the number after the newest. The lock on the item makes that number free until the transaction ends.
func (s *Store) AddPage(ctx context.Context, key write.Key, group, item string,
	decide func(admin.Head) (admin.Addition[admin.Page], error)) (tool.Result, error) {
	var id admin.ID
	return addOnce(ctx, s.keys, key, func(ctx context.Context, tx pgx.Tx) (h admin.Head, err error) {
		id, h, err = hold(ctx, tx, group, item)
		return h, err
	}, decide, func(ctx context.Context, tx pgx.Tx, p admin.Page) error {
		sections, err := p.Sections.JSON()
		if err == nil {
			_, err = tx.Exec(ctx, insertPage, id, p.Version, p.Title, p.Description, string(sections), len(sections), p.CreatedBy, p.CreatedAt,
				p.Origin.Service, p.Origin.ExternalUserID, p.Origin.CredentialID, p.Origin.HubUser)
		}
		return err
	})
}

// pageRow is a row of versionColumns, with the sections or without.
type pageRow struct {
	admin.Page
	admin.Origin
	Sections []byte
	// Sections is NULL in lists, and RestoredFrom in a version that is no copy.
	RestoredFrom *int
}

// page is the version of the row.
func (r pageRow) page() (p admin.Page, err error) {
	p = r.Page
	p.Origin = r.Origin
	if r.RestoredFrom != nil {
		p.RestoredFrom = *r.RestoredFrom
	}
	if r.Sections != nil {
		err = json.Unmarshal(r.Sections, &p.Sections)
	}
	return p, err
}

const (
	// The primary key (item_id, version) serves both statements: the newest is at its end.
	versionColumns = `version, title, description, bytes, created_by, restored_from, created_at,
		service, external_user_id, credential_id, hub_user`
	newestPage = `SELECT sections, ` + versionColumns + ` FROM admin.page_versions WHERE item_id = $1 ORDER BY version DESC LIMIT 1`
	onePage    = `SELECT sections, ` + versionColumns + ` FROM admin.page_versions WHERE item_id = $1 AND version = $2`
)

const placeOf = `SELECT i.id, i.name, i.href, coalesce((SELECT max(version) FROM admin.page_versions v WHERE v.item_id = i.id), 0) AS newest
	FROM admin.menu_items i JOIN admin.menu_groups g ON g.id = i.group_id WHERE g.slug = $1 AND i.slug = $2`

// Place returns an item with a version of its page.
// E_NOT_FOUND for an item or a version that is not there. Its two statements are no transaction: versions are never changed.
func (s *Store) Place(ctx context.Context, group, item string, version int) (admin.Place, error) {
	found, err := postgres.One(ctx, s.pool, pgx.RowToStructByName[struct {
		ID     admin.ID
		Name   string
		Href   *string
		Newest int
	}], placeOf, group, item)
	p := admin.Place{Group: group, Item: item, Name: found.Name, Href: found.Href, Newest: found.Newest}
	if errors.Is(err, pgx.ErrNoRows) {
		err = missingSlug(ctx, s.pool, group, item)
	}
	if err != nil || p.Newest == 0 && version == 0 {
		return p, explain(err)
	}
	statement, args := newestPage, []any{found.ID}
	if version != 0 {
		statement, args = onePage, append(args, version)
	}
	row, err := postgres.One(ctx, s.pool, pgx.RowToStructByNameLax[pageRow], statement, args...)
	if errors.Is(err, pgx.ErrNoRows) {
		return p, fault.New(fault.NotFound, "The page %s has no version %d.", p.Path(), version)
	}
	if err == nil {
		p.Page, err = row.page()
	}
	// One may have been written in between.
	p.Newest = max(p.Newest, p.Page.Version)
	return p, explain(err)
}

// Versions returns the newest versions below one.
// This is keyset pagination by version. An item has its page for as long as it is there, so the look at the item needs no lock.
func (s *Store) Versions(ctx context.Context, group, item string, below, limit int) ([]admin.Page, error) {
	var id admin.ID
	err := s.pool.QueryRow(ctx, `SELECT id FROM (`+itemOf+`) i`, group, item).Scan(&id)
	if errors.Is(err, pgx.ErrNoRows) {
		err = missingSlug(ctx, s.pool, group, item)
	}
	if err != nil {
		return nil, explain(err)
	}
	rows, err := postgres.All(ctx, s.pool, pgx.RowToStructByNameLax[pageRow],
		`SELECT `+versionColumns+` FROM admin.page_versions WHERE item_id = $1 AND ($2 = 0 OR version < $2) ORDER BY version DESC LIMIT $3`,
		id, below, limit)
	list := make([]admin.Page, len(rows))
	for n, row := range rows {
		if list[n], err = row.page(); err != nil {
			return nil, err
		}
	}
	return list, explain(err)
}

// restorePage keeps the maker of the version that it copies; who has restored it is the origin.
const restorePage = `INSERT INTO admin.page_versions (item_id, version, title, description, sections, bytes, created_by, restored_from,
		created_at, service, external_user_id, credential_id, hub_user)
	SELECT item_id, $3::int, title, description, sections, bytes, created_by, version, $4, $5, $6, $7, $8
	FROM admin.page_versions WHERE item_id = $1 AND version = $2
	RETURNING sections, ` + versionColumns

// Restore stores a copy of a version.
// E_NOT_FOUND for a version that is not there. The copy gets a number of its own, so history only grows.
func (s *Store) Restore(ctx context.Context, group, item string,
	decide func(admin.Head) (admin.Restoration, error)) (p admin.Page, err error) {
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		id, head, err := hold(ctx, tx, group, item)
		if err != nil {
			return err
		}
		r, err := decide(head)
		if err != nil {
			return err
		}
		row, err := postgres.One(ctx, tx, pgx.RowToStructByNameLax[pageRow], restorePage, id, r.From, r.Version, r.At, r.By.Service,
			r.By.ExternalUserID, r.By.CredentialID, r.By.HubUser)
		if errors.Is(err, pgx.ErrNoRows) {
			err = admin.MissingVersion(r.From)
		}
		if err == nil {
			p, err = row.page()
		}
		if err != nil {
			return err
		}
		return audit.Append(ctx, tx, r.Audit)
	})
	return p, explain(err)
}
