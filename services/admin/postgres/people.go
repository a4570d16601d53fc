package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/postgres"
	"hub.internal/services/admin"
)

// Arrange puts groups, or the items of one, in the order that decide makes of their slugs.
// group is empty for the groups themselves. Positions begin at 0.
func (s *Store) Arrange(ctx context.Context, group string, decide func([]string) (admin.Arrangement, error)) error {
	list := `SELECT slug FROM admin.menu_groups WHERE $1 = ''`
	put := `UPDATE admin.menu_groups t SET position = o.position - 1 FROM unnest($2::text[]) WITH ORDINALITY AS o (slug, position)
		WHERE t.slug = o.slug AND $1 = ''`
	if group != "" {
		list = `SELECT i.slug FROM admin.menu_items i JOIN admin.menu_groups g ON g.id = i.group_id WHERE g.slug = $1`
		put = `UPDATE admin.menu_items t SET position = o.position - 1 FROM unnest($2::text[]) WITH ORDINALITY AS o (slug, position)
			WHERE t.slug = o.slug AND t.group_id = (SELECT id FROM admin.menu_groups WHERE slug = $1)`
	}
	return explain(pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if err := lockMenu(ctx, tx, group); err != nil {
			return err
		}
		// Read under the lock: nobody adds one until the order is stored.
		there, err := postgres.All(ctx, tx, pgx.RowTo[string], list, group)
		if err != nil {
			return err
		}
		a, err := decide(there)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, put, group, a.Slugs); err != nil {
			return err
		}
		return audit.Append(ctx, tx, a.Audit)
	}))
}

// lockMenu lets one at a time change which groups there are, or which items a group has.
func lockMenu(ctx context.Context, tx pgx.Tx, group string) error {
	if group == "" {
		_, err := tx.Exec(ctx, ordering)
		return err
	}
	_, err := holdGroup(ctx, tx, group)
	return err
}

// Change gives a group, or an item of it, what decide makes of what it has.
// E_NOT_FOUND where one of the slugs names nothing; item is empty for the group itself.
func (s *Store) Change(ctx context.Context, group, item string, decide func(admin.Change) (admin.Change, audit.Entry)) error {
	read := `SELECT name, icon, hidden FROM admin.menu_groups WHERE slug = $1 AND $2 = '' FOR NO KEY UPDATE`
	put := `UPDATE admin.menu_groups SET name = $3, icon = $4, hidden = $5 WHERE slug = $1 AND $2 = ''`
	if item != "" {
		read = `SELECT i.name, i.icon, i.hidden FROM admin.menu_items i JOIN admin.menu_groups g ON g.id = i.group_id
			WHERE g.slug = $1 AND i.slug = $2 FOR NO KEY UPDATE OF i`
		put = `UPDATE admin.menu_items SET name = $3, icon = $4, hidden = $5
			WHERE group_id = (SELECT id FROM admin.menu_groups WHERE slug = $1) AND slug = $2`
	}
	return explain(pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		before, err := postgres.One(ctx, tx, pgx.RowToStructByName[admin.Change], read, group, item)
		if errors.Is(err, pgx.ErrNoRows) {
			return missingSlug(ctx, tx, group, item)
		}
		if err != nil {
			return err
		}
		c, entry := decide(before)
		if _, err := tx.Exec(ctx, put, group, item, c.Name, c.Icon, c.Hidden); err != nil {
			return err
		}
		return audit.Append(ctx, tx, entry)
	}))
}

// Delete removes a group without items, or an item without a page. What refers to it holds it: nobody can add
// to it in between.
func (s *Store) Delete(ctx context.Context, group, item string, entry audit.Entry) error {
	// Where item is empty the group goes; the condition on $2 keeps both statements at the same parameters.
	statement := `DELETE FROM admin.menu_groups WHERE slug = $1 AND $2 = ''`
	if item != "" {
		statement = `DELETE FROM admin.menu_items WHERE group_id = (SELECT id FROM admin.menu_groups WHERE slug = $1) AND slug = $2`
	}
	return explain(pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, statement, group, item)
		var pg *pgconn.PgError
		switch {
		// The foreign keys are the rule that nothing in use is deleted; they hold against whoever adds to it at this moment.
		case errors.As(err, &pg) && pg.Code == "23503": // something refers to it
			return admin.StillUsed(item)
		case err == nil && tag.RowsAffected() == 0:
			return missingSlug(ctx, tx, group, item)
		case err != nil:
			return err
		}
		return audit.Append(ctx, tx, entry)
	}))
}
