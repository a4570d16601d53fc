package main

import (
	_ "embed"
	"strconv"
	"strings"
)

// A category belongs to one of seven themes, by its top level; theme indexes the
// word lists (products, brand nouns).
type category struct {
	id, parent int64
	order      int64
	theme      int
	names      []categoryName
}

// values are those of the row, in the order of the table's columns.
func (c category) values() []any { return []any{c.id, c.parent, c.order} }

// categoryName is a name in one language.
type categoryName struct{ language, name string }

// languages are the column order of categoryText. "in" is the old code of
// Indonesian, which the source still uses.
var languages = []string{"ko", "en", "ja", "cn", "vi", "in"}

// categoryText is the tree, one category a line: id, parent, display order, then its
// name in each language, "-" where the source has none. Ids say nothing about the
// place in the tree, some display orders are equal, and names are missing so that
// every step of the fallback (language, ko, en, nothing) is taken.
//
//go:embed categories.txt
var categoryText string

// readCategories parses categoryText; parents stand before their children.
func readCategories() []category {
	var list []category
	theme := map[int64]int{}
	for line := range strings.SplitSeq(strings.TrimSpace(categoryText), "\n") {
		f := strings.Split(line, "|")
		c := category{id: number(f[0]), parent: number(f[1]), order: number(f[2])}
		if c.parent == 0 {
			c.theme = len(theme)
		} else {
			c.theme = theme[c.parent]
		}
		theme[c.id] = c.theme
		for i, name := range f[3:] {
			if name != "-" {
				c.names = append(c.names, categoryName{languages[i], name})
			}
		}
		list = append(list, c)
	}
	return list
}

// number is an id in categories.txt.
func number(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		panic(err) // the file is embedded
	}
	return n
}
