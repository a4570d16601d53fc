package mysql

import (
	"context"
	"database/sql"

	"hub.internal/services/query"
)

// CategoryTree implements query.Source.
// It reads the whole table, which is small, with a count of brands for each category in ix_brand_category. The service
// keeps the answer for a minute and computes everything below a category from it: no recursive CTE runs at the source.
func (s *Source) CategoryTree(ctx context.Context) ([]query.CategoryNode, error) {
	var nodes []query.CategoryNode
	const statement = `SELECT c.category_id, c.parent_id, (SELECT COUNT(*) FROM brand b WHERE b.category_id = c.category_id) FROM category c`
	err := s.Query(ctx, statement, nil, func(r *sql.Rows) error {
		var n query.CategoryNode
		if err := r.Scan(&n.ID, &n.Parent, &n.Brands); err != nil {
			return err
		}
		nodes = append(nodes, n)
		return nil
	})
	return nodes, err
}

// CategoriesNamed implements query.Source. It reads all names, which are few; the column's collation compares.
func (s *Source) CategoriesNamed(ctx context.Context, name string) (ids []int64, err error) {
	const statement = `SELECT DISTINCT n.category_id FROM category_name n WHERE n.category_name = ? ORDER BY 1 LIMIT 10`
	err = s.Query(ctx, statement, []any{name}, func(r *sql.Rows) error {
		var id int64
		err := r.Scan(&id)
		ids = append(ids, id)
		return err
	})
	if incomparable(err) {
		return nil, nil
	}
	return ids, err
}

// The best name there is: the language asked for, ko, en, any.
const selectCategories = `SELECT c.category_id, c.parent_id, n.category_name, n.language,
  EXISTS (SELECT 1 FROM category k WHERE k.parent_id = c.category_id)
FROM category c
LEFT JOIN category_name n ON n.category_id = c.category_id AND n.language = (
  SELECT x.language FROM category_name x WHERE x.category_id = c.category_id
  ORDER BY x.language = ? DESC, x.language = 'ko' DESC, x.language = 'en' DESC, x.language LIMIT 1)
WHERE c.parent_id = ?
ORDER BY c.display_order, c.category_id`

// Categories implements query.Source.
// The children of a parent are a range of ix_category_parent, in the order of display_order. Language in an answer says
// which one the name is in, so that a caller sees a fallback.
func (s *Source) Categories(ctx context.Context, parent int64, language string) ([]query.Category, error) {
	categories := []query.Category{}
	err := s.Query(ctx, selectCategories, []any{language, parent}, func(r *sql.Rows) error {
		var c query.Category
		if err := r.Scan(&c.ID, &c.ParentID, &c.Name, &c.Language, &c.HasChildren); err != nil {
			return err
		}
		categories = append(categories, c)
		return nil
	})
	return categories, err
}
