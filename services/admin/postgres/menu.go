package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/postgres"
	"hub.internal/pkg/tool"
	"hub.internal/pkg/write"
	"hub.internal/services/admin"
)

// EXISTS could read all versions to make a hash of them; what has a LIMIT looks into the index, item by item.
const (
	listGroups = `SELECT id, slug, name, icon, position, hidden, created_at FROM admin.menu_groups ORDER BY position, id`
	listItems  = `SELECT id, group_id, slug, name, icon, href, position, hidden, created_at,
			coalesce((SELECT true FROM admin.page_versions v WHERE v.item_id = i.id LIMIT 1), false) AS has_page
		FROM admin.menu_items i ORDER BY group_id, position, id`
)

// Menus returns all groups with their items.
// Two statements for all of it, however many groups there are; hidden ones are for the caller to leave out.
func (s *Store) Menus(ctx context.Context) ([]admin.Group, error) {
	groups, err := menus(ctx, s.pool)
	return groups, explain(err)
}

// menus reads items before groups: a group with items is not deleted in between.
func menus(ctx context.Context, q postgres.Querier) ([]admin.Group, error) {
	items, err := postgres.All(ctx, q, pgx.RowToStructByNameLax[admin.Item], listItems)
	if err != nil {
		return nil, err
	}
	groups, err := postgres.All(ctx, q, pgx.RowToStructByNameLax[admin.Group], listGroups)
	if err != nil {
		return nil, err
	}
	// Items by their group; both are in order already.
	of := map[admin.ID][]admin.Item{}
	for _, i := range items {
		of[i.GroupID] = append(of[i.GroupID], i)
	}
	for n := range groups {
		groups[n].Items = of[groups[n].ID]
	}
	return groups, nil
}

// ordering lets one at a time change which groups there are and how they stand. Readers, and who changes a row, do not
// wait for it, and no other service's role may take it, as it could an advisory lock.
const ordering = `LOCK TABLE admin.menu_groups IN SHARE UPDATE EXCLUSIVE MODE`

const (
	// siblingGroups and siblingItems tell how many there are, and where the last one stands.
	siblingGroups = `SELECT count(*), coalesce(max(position), 0) AS last FROM admin.menu_groups`
	siblingItems  = `SELECT count(*), coalesce(max(position), 0) AS last FROM admin.menu_items WHERE group_id = $1`

	insertGroup = `INSERT INTO admin.menu_groups (slug, name, icon, position, created_at,
		service, external_user_id, credential_id, hub_user) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`
	insertItem = `INSERT INTO admin.menu_items (group_id, slug, name, icon, href, position, created_at,
		service, external_user_id, credential_id, hub_user) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`
)

// addOnce stores something once for the key: lock reads what decide has to know, under a lock that lasts until the transaction
// ends, and insert stores what decide has made of it.
func addOnce[K, T any](ctx context.Context, keys *write.Keys, key write.Key, lock func(context.Context, pgx.Tx) (K, error),
	decide func(K) (admin.Addition[T], error), insert func(context.Context, pgx.Tx, T) error) (tool.Result, error) {
	return keys.Once(ctx, key, func(ctx context.Context, tx pgx.Tx) (tool.Result, audit.Entry, error) {
		var a admin.Addition[T]
		known, err := lock(ctx, tx)
		if err == nil {
			a, err = decide(known)
		}
		if err == nil {
			err = insert(ctx, tx, a.Added)
		}
		return a.Answer, a.Audit, err
	})
}

// AddGroup stores a group once for the key.
// E_CONFLICT for a slug that is taken, by whomever: the unique constraint is the judge, not a look before.
func (s *Store) AddGroup(ctx context.Context, key write.Key,
	decide func(admin.Siblings) (admin.Addition[admin.Group], error)) (tool.Result, error) {
	return addOnce(ctx, s.keys, key, func(ctx context.Context, tx pgx.Tx) (others admin.Siblings, err error) {
		if _, err := tx.Exec(ctx, ordering); err != nil {
			return others, err
		}
		return postgres.One(ctx, tx, pgx.RowToStructByName[admin.Siblings], siblingGroups)
	}, decide, func(ctx context.Context, tx pgx.Tx, g admin.Group) error {
		_, err := tx.Exec(ctx, insertGroup, g.Slug, g.Name, g.Icon, g.Position, g.CreatedAt, g.Origin.Service, g.Origin.ExternalUserID,
			g.Origin.CredentialID, g.Origin.HubUser)
		if postgres.IsUnique(err, "menu_groups_slug") {
			err = admin.SlugTaken(g.Slug, "")
		}
		return err
	})
}

// holdGroup locks a group: who changes which items it has holds its row.
func holdGroup(ctx context.Context, tx pgx.Tx, slug string) (id admin.ID, err error) {
	err = tx.QueryRow(ctx, `SELECT id FROM admin.menu_groups WHERE slug = $1 FOR NO KEY UPDATE`, slug).Scan(&id)
	if errors.Is(err, pgx.ErrNoRows) {
		err = admin.MissingGroup(slug)
	}
	return id, err
}

// AddItem stores an item once for the key.
// The lock is on the group's row, so items of other groups are added at the same time.
func (s *Store) AddItem(ctx context.Context, key write.Key, group string,
	decide func(admin.Siblings) (admin.Addition[admin.Item], error)) (tool.Result, error) {
	var id admin.ID
	return addOnce(ctx, s.keys, key, func(ctx context.Context, tx pgx.Tx) (others admin.Siblings, err error) {
		if id, err = holdGroup(ctx, tx, group); err != nil {
			return others, err
		}
		return postgres.One(ctx, tx, pgx.RowToStructByName[admin.Siblings], siblingItems, id)
	}, decide, func(ctx context.Context, tx pgx.Tx, i admin.Item) error {
		_, err := tx.Exec(ctx, insertItem, id, i.Slug, i.Name, i.Icon, i.Href, i.Position, i.CreatedAt, i.Origin.Service,
			i.Origin.ExternalUserID, i.Origin.CredentialID, i.Origin.HubUser)
		if postgres.IsUnique(err, "menu_items_slug") {
			err = admin.SlugTaken(group, i.Slug)
		}
		return err
	})
}
