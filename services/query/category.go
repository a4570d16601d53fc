package query

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/tool"
	"hub.internal/services/query/sqlguard/notice"
)

// Category is a node of the product category tree.
type Category struct {
	ID          ID      `json:"category_id" jsonschema:"Category id; top levels are 12 beauty, 13 fashion, 14 life, 33 food, 34 baby, 35 hobby, 6666 pets"`
	ParentID    ID      `json:"parent_id" jsonschema:"Id of the category above; 0 at the top level"`
	Name        *string `json:"category_name" jsonschema:"Name in the language of the field language; null when the category has no name at all"`
	Language    *string `json:"language" jsonschema:"Language of category_name: the one asked for, else ko, else en, else any that exists"`
	HasChildren bool    `json:"has_children" jsonschema:"Whether list_categories with this id as parentId lists anything"`
}

// CategoryList is the answer of list_categories.
type CategoryList struct {
	Categories []Category     `json:"categories" jsonschema:"In display order"`
	Warnings   []tool.Warning `json:"warnings,omitempty" jsonschema:"That there is no category parentId; absent when there is nothing"`
}

// Count is the number of categories.
func (l CategoryList) Count() int { return len(l.Categories) }

// CategoryNode is a category with the one above it and its own number of brands.
type CategoryNode struct{ ID, Parent, Brands int64 }

// CategoryScope is a category and all below it.
type CategoryScope struct {
	IDs []int64
	// Brands is how many of AllBrands brands are in it, as somebody counted a moment ago:
	// a hint for the plan of a search.
	Brands, AllBrands int64
}

// categoryTree answers which categories lie below another.
type categoryTree struct {
	children map[int64][]int64
	brands   map[int64]int64 // of each category that there is
	all      int64
	at       time.Time
}

func newCategoryTree(nodes []CategoryNode, at time.Time) *categoryTree {
	t := &categoryTree{children: map[int64][]int64{}, brands: make(map[int64]int64, len(nodes)), at: at}
	for _, n := range nodes {
		t.children[n.Parent] = append(t.children[n.Parent], n.ID)
		t.brands[n.ID] = n.Brands
		t.all += n.Brands
	}
	return t
}

func (t *categoryTree) has(id int64) bool {
	_, known := t.brands[id]
	return known
}

// scope returns id and its descendants; nil for an unknown category. Data that goes in
// a circle ends where it began.
func (t *categoryTree) scope(id int64) *CategoryScope {
	if !t.has(id) {
		return nil
	}
	s, seen := &CategoryScope{IDs: []int64{id}, AllBrands: t.all}, map[int64]bool{id: true}
	for i := 0; i < len(s.IDs); i++ {
		s.Brands += t.brands[s.IDs[i]]
		for _, child := range t.children[s.IDs[i]] {
			if !seen[child] {
				seen[child] = true
				s.IDs = append(s.IDs, child)
			}
		}
	}
	return s
}

const (
	// treeAge is how long a category tree is good for.
	treeAge = time.Minute
	// treeRetry is how soon an unknown id may ask for a newer tree.
	treeRetry = time.Second
)

// categories keeps the category tree in memory. One caller at a time refreshes it;
// the others go on with the old one, and wait only while there is none.
type categories struct {
	source  Source
	now     func() time.Time
	tree    atomic.Pointer[categoryTree]
	loading chan struct{} // holds one token while a caller refreshes
}

func newCategories(source Source, now func() time.Time) *categories {
	return &categories{source: source, now: now, loading: make(chan struct{}, 1)}
}

// scope returns the category and its descendants, or nil when it is unknown.
func (c *categories) scope(ctx context.Context, id int64) (*CategoryScope, error) {
	tree, err := c.fresh(ctx, treeAge)
	if err == nil && !tree.has(id) {
		tree, err = c.fresh(ctx, treeRetry)
	}
	if err != nil {
		return nil, err
	}
	return tree.scope(id), nil
}

// below warns of the only category that a statement asks brands for, by its id or its name, where brands are in those below it, too.
func (c *categories) below(ctx context.Context, compared []notice.Comparison) (list []tool.Warning) {
	var asked []notice.Comparison
	for _, one := range compared {
		byID, byName := one.Column == "category_id" && one.Table != "campaign", one.Column == "category_name" && one.Table == "category_name"
		if one.Filters && (byID || byName) {
			asked = append(asked, one)
		}
	}
	if len(asked) != 1 || len(asked[0].Texts) != 1 {
		return nil
	}
	text, ids := asked[0].Texts[0], make([]int64, 1)
	var err error
	if asked[0].Column == "category_id" {
		ids[0], err = strconv.ParseInt(text, 10, 64)
	} else {
		text = "'" + text + "'"
		ids, err = c.source.CategoriesNamed(ctx, text[1:len(text)-1])
	}
	if err != nil || len(ids) != 1 {
		return nil
	}
	id := ids[0]
	tree, err := c.fresh(ctx, treeAge)
	if err != nil {
		return nil
	}
	in := tree.scope(id)
	if in == nil || in.Brands == tree.brands[id] {
		return nil
	}
	return []tool.Warning{{Rule: "sql.tree", Message: fmt.Sprintf("%s = %s has %d brands, and %d more are in the categories below "+
		"it, which are left out: search_brands with categoryId %d has them all, as has WITH RECURSIVE over category.parent_id",
		asked[0].Column, text, tree.brands[id], in.Brands-tree.brands[id], id)}}
}

func (c *categories) fresh(ctx context.Context, age time.Duration) (*categoryTree, error) {
	tree := c.tree.Load()
	if tree != nil && c.now().Sub(tree.at) < age {
		return tree, nil
	}
	select {
	case c.loading <- struct{}{}:
	default:
		if tree != nil {
			return tree, nil
		}
		select {
		case c.loading <- struct{}{}:
		case <-ctx.Done():
			return nil, fault.New(fault.DBTimeout, "The source database did not answer in time.").Because(ctx.Err())
		}
	}
	defer func() { <-c.loading }()
	if newer := c.tree.Load(); newer != tree {
		return newer, nil // somebody else was quicker
	}
	at := c.now()
	nodes, err := c.source.CategoryTree(ctx)
	if err != nil {
		return nil, err
	}
	tree = newCategoryTree(nodes, at)
	c.tree.Store(tree)
	return tree, nil
}
