// Package admin keeps what an operator finds in the console beside the services' own pages: groups of the
// menu, their items, and the pages that agents write there, every version of them. It refuses to let
// anything into a page that could run, hide or lead astray, and to delete a page that was ever written.
//
// The domain is in menu.go, page.go and section.go; this file is what the tools can ask for.
package admin

import (
	"context"
	"math"
	"strings"
	"time"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/markup"
	"hub.internal/pkg/picture"
	"hub.internal/pkg/schema"
	"hub.internal/pkg/text"
	"hub.internal/pkg/tool"
	"hub.internal/pkg/write"
)

// Store keeps menus and pages. Its errors are faults; E_NOT_FOUND for a slug or an id that it does not have. What changes is
// locked and shown to decide, which says what happens; the store writes exactly that, with the audit row, in one transaction.
type Store interface {
	// Menus returns all groups with their items, hidden ones too, in their order.
	Menus(ctx context.Context) ([]Group, error)
	// AddGroup stores a group once for the key. SlugTaken for a slug that is.
	AddGroup(ctx context.Context, key write.Key, decide func(Siblings) (Addition[Group], error)) (tool.Result, error)
	// AddItem does the same for an item of a group.
	AddItem(ctx context.Context, key write.Key, group string, decide func(Siblings) (Addition[Item], error)) (tool.Result, error)
	// AddPage stores a version of an item's page once for the key.
	AddPage(ctx context.Context, key write.Key, group, item string, decide func(Head) (Addition[Page], error)) (tool.Result, error)
	// Place returns an item with a version of its page, 0 being the newest; without any its Newest is 0.
	Place(ctx context.Context, group, item string, version int) (Place, error)
	// Versions returns the newest versions below one, without their sections; 0 begins.
	Versions(ctx context.Context, group, item string, below, limit int) ([]Page, error)
	// Restore stores a copy of a version.
	Restore(ctx context.Context, group, item string, decide func(Head) (Restoration, error)) (Page, error)

	// Arrange puts groups, or the items of one, in an order; decide is told the slugs that there are.
	Arrange(ctx context.Context, group string, decide func(slugs []string) (Arrangement, error)) error
	// Change gives a group, or an item of it, what decide makes of what it has.
	Change(ctx context.Context, group, item string, decide func(before Change) (after Change, entry audit.Entry)) error
	// Delete removes a group without items, or an item without a page. StillUsed for another.
	Delete(ctx context.Context, group, item string, entry audit.Entry) error
}

// Siblings is what a new group, or a new item of a group, comes beside.
type Siblings struct {
	Count int
	// Last is the highest position; 0 without any.
	Last int64
}

// position is where something comes that wants a position; atEnd is behind all others.
func (s Siblings) position(wanted int64) int64 {
	switch {
	case wanted != atEnd:
		return wanted
	case s.Count == 0:
		return 0
	case s.Last == math.MaxInt64:
		return s.Last
	}
	return s.Last + 1
}

// Head is what an item has when a version of its page is written.
type Head struct {
	// Href is where the item leads instead of a page of its own, nil for one that has it.
	Href *string
	// Hidden tells that the item is out of the navigation.
	Hidden bool
	// Newest is the newest version of the page; 0 while there is none.
	Newest int
}

// Addition is what is stored, the answer that is stored with it, and the audit row.
type Addition[T any] struct {
	// Added is what the store inserts as it stands.
	Added T
	// Answer is what a replay of the call is answered with.
	Answer tool.Result
	Audit  audit.Entry
}

// Restoration is that a copy of the version From is stored as Version.
type Restoration struct {
	// From is the version that is copied, Version the number of the copy.
	From, Version int
	// By is who restored it; CreatedBy stays that of the copied version.
	By    Origin
	At    time.Time
	Audit audit.Entry
}

// Arrangement is an order of slugs, the first at position 0.
type Arrangement struct {
	Slugs []string
	Audit audit.Entry
}

// Config is what a Service is made of.
type Config struct {
	// Store is where menus and pages are kept.
	Store Store
	// Fixed are the groups that the services' own pages make.
	Fixed []Group
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Service keeps menus and pages.
// It is safe for use by many at once, and holds nothing that another replica would have to know.
type Service struct{ c Config }

// New returns a service. It touches no database.
func New(c Config) *Service {
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Service{c}
}

// fixed finds a built-in group.
func (s *Service) fixed(slug string) (Group, bool) {
	for _, g := range s.c.Fixed {
		if g.Slug == slug {
			return g, true
		}
	}
	return Group{}, false
}

// ItemInfo is an item as tools answer it.
type ItemInfo struct {
	ItemSlug string  `json:"itemSlug" jsonschema:"Slug: itemSlug of upsert_dynamic_page"`
	Name     string  `json:"name" jsonschema:"Name in the sidebar"`
	Icon     *string `json:"icon" jsonschema:"Icon; null without one"`
	Href     string  `json:"href" jsonschema:"Where it leads: /p/{groupSlug}/{itemSlug} unless it has a link of its own"`
	Position int64   `json:"position" jsonschema:"Place in the sidebar, from 0"`
	HasPage  bool    `json:"hasPage" jsonschema:"Whether upsert_dynamic_page has written its page"`
}

// GroupInfo is a group as tools answer it.
type GroupInfo struct {
	GroupSlug string     `json:"groupSlug" jsonschema:"Slug: groupSlug of create_menu_item and upsert_dynamic_page"`
	Name      string     `json:"name" jsonschema:"Name of the tab"`
	Icon      *string    `json:"icon" jsonschema:"Icon; null without one"`
	Position  int64      `json:"position" jsonschema:"Place among the dynamic groups, or among the built-in ones, from 0"`
	Fixed     bool       `json:"fixed" jsonschema:"Whether it is built in: tools cannot add to it"`
	Items     []ItemInfo `json:"items" jsonschema:"Its items in their order"`
}

// MenuList is the answer of list_menu_groups.
type MenuList struct {
	Groups []GroupInfo `json:"groups" jsonschema:"In the order of the tabs"`
}

// Count is the number of groups.
func (l MenuList) Count() int { return len(l.Groups) }

// info is what tools answer of it.
func (i Item) info(group string) ItemInfo {
	return ItemInfo{ItemSlug: i.Slug, Name: i.Name, Icon: i.Icon, Href: i.Address(group), Position: i.Position, HasPage: i.HasPage}
}

// info is what tools answer of it.
func (g Group) info() GroupInfo {
	out := GroupInfo{GroupSlug: g.Slug, Name: g.Name, Icon: g.Icon, Position: g.Position, Fixed: g.Fixed,
		Items: make([]ItemInfo, len(g.Items))}
	for n, i := range g.Items {
		out.Items[n] = i.info(g.Slug)
	}
	return out
}

// ListMenuGroups lists the groups, the built-in ones first where they are wanted.
func (s *Service) ListMenuGroups(ctx context.Context, in listMenuGroupsIn) (MenuList, error) {
	groups, err := s.c.Store.Menus(ctx)
	if err != nil {
		return MenuList{}, err
	}
	// A new slice: what is kept in the config is everybody's.
	if in.IncludeFixed {
		groups = append(append([]Group{}, s.c.Fixed...), groups...)
	}
	list := MenuList{Groups: make([]GroupInfo, len(groups))}
	for n, g := range groups {
		list.Groups[n] = g.info()
	}
	return list, nil
}

// GroupCreated is the answer of create_menu_group.
type GroupCreated struct {
	GroupInfo
	CreatedAt string `json:"createdAt" jsonschema:"When it was stored, UTC"`
}

// CreateMenuGroup stores a group once for the call's Idempotency-Key.
func (s *Service) CreateMenuGroup(ctx context.Context, in createMenuGroupIn) (tool.Result, error) {
	w, err := write.NewCall(ctx, createMenuGroup, s.c.Now())
	if err != nil {
		return tool.Result{}, err
	}
	var v schema.Violations
	g := Group{Slug: in.Slug, Name: in.Name, Icon: icon(&v, in.Icon), Position: positionOrEnd(in.Position), Items: []Item{},
		Origin: origin(w.Caller), CreatedAt: w.At}
	checkName(&v, g.Name, maxGroupName)
	if err := v.Err(); err != nil {
		return tool.Result{}, err
	}
	if built, ok := s.fixed(g.Slug); ok {
		return tool.Result{}, fault.New(fault.Conflict, "The slug %q is that of the built-in group %s. Choose another slug.", g.Slug, built.Name).
			With(map[string]string{"slug": g.Slug})
	}
	for _, built := range s.c.Fixed { // a tab that looks like Hub's own is for people to make
		own := skeleton(built.Name)
		if skeleton(g.Name) == own || skeleton(text.OrEmpty(g.Icon)) == own || skeleton(text.OrEmpty(g.Icon)+g.Name) == own {
			return tool.Result{}, fault.New(fault.Conflict, "The name %q is that of a built-in group. Choose another name.", built.Name).
				With(map[string]string{"name": built.Name})
		}
	}
	return s.c.Store.AddGroup(ctx, w.Key, func(others Siblings) (a Addition[Group], err error) {
		if others.Count >= MaxGroups {
			return a, fault.New(fault.Conflict, "There are %d menu groups, and no room for more. Use one of them, or ask an administrator to "+
				"delete one that is empty.", MaxGroups)
		}
		// Counted under the lock of the transaction: two calls at once get two places.
		g.Position = others.position(g.Position)
		a.Added, a.Audit = g, w.Entry(1, map[string]any{"group": g.Slug, "name": g.Name, "position": g.Position})
		a.Answer, err = write.Answer(GroupCreated{g.info(), schema.Moment(g.CreatedAt)}, 1)
		return a, err
	})
}

// ItemCreated is the answer of create_menu_item.
type ItemCreated struct {
	GroupSlug string `json:"groupSlug" jsonschema:"Group that the item is in"`
	ItemInfo
	CreatedAt string `json:"createdAt" jsonschema:"When it was stored, UTC"`
}

// CreateMenuItem stores an item once for the call's Idempotency-Key.
func (s *Service) CreateMenuItem(ctx context.Context, in createMenuItemIn) (tool.Result, error) {
	w, err := write.NewCall(ctx, createMenuItem, s.c.Now())
	if err != nil {
		return tool.Result{}, err
	}
	if in.Href != nil && *in.Href == PagePath(in.GroupSlug, in.Slug) {
		in.Href = nil // its own page: list_menu_groups answers that address, so agents send it
	}
	var v schema.Violations
	i := Item{Slug: in.Slug, Name: in.Name, Icon: icon(&v, in.Icon), Href: href(&v, in.Href), Position: positionOrEnd(in.Position),
		Origin: origin(w.Caller), CreatedAt: w.At}
	checkName(&v, i.Name, maxItemName)
	if err := v.Err(); err != nil {
		return tool.Result{}, err
	}
	if err := s.requireDynamic(in.GroupSlug); err != nil {
		return tool.Result{}, err
	}
	return s.c.Store.AddItem(ctx, w.Key, in.GroupSlug, func(others Siblings) (a Addition[Item], err error) {
		if others.Count >= MaxItems {
			return a, fault.New(fault.Conflict, "The menu group %q has %d items, and no room for more. Use another group.", in.GroupSlug, MaxItems)
		}
		i.Position = others.position(i.Position)
		a.Added, a.Audit = i, w.Entry(1, map[string]any{"group": in.GroupSlug, "item": i.Slug, "name": i.Name, "href": i.Address(in.GroupSlug),
			"position": i.Position})
		a.Answer, err = write.Answer(ItemCreated{in.GroupSlug, i.info(in.GroupSlug), schema.Moment(i.CreatedAt)}, 1)
		return a, err
	})
}

// PageStored is the answer of upsert_dynamic_page. It does not repeat the sections, which the caller has just sent: Removed and
// Warnings say how what is stored differs from them.
type PageStored struct {
	GroupSlug   string  `json:"groupSlug" jsonschema:"Group of the item"`
	ItemSlug    string  `json:"itemSlug" jsonschema:"Item whose page it is"`
	Title       string  `json:"title" jsonschema:"Heading as stored"`
	Description *string `json:"description" jsonschema:"Description as stored; null without one"`
	CreatedBy   *string `json:"createdBy" jsonschema:"Label of whoever made it; null without one"`
	CreatedAt   string  `json:"createdAt" jsonschema:"When it was stored, UTC"`
	Version     int     `json:"version" jsonschema:"Number of this version, from 1. One that is more than yours before plus 1 tells that somebody else wrote in between"`
	URL         string  `json:"url" jsonschema:"Path of the page in the console"`
	Replaced    bool    `json:"replaced" jsonschema:"Whether there was a page before; it is kept as a version"`
	// Removed is never null.
	Removed []markup.Removed `json:"removed" jsonschema:"What readers will not get of the texts, because it could run, hide or lead astray; empty when all stays"`
	// Warnings is never null.
	Warnings []Warning `json:"warnings" jsonschema:"What was stored and is likely not meant, such as a column that is empty in all rows; write the page again when so"`
}

// UpsertDynamicPage stores the next version of a page once for the call's Idempotency-Key.
func (s *Service) UpsertDynamicPage(ctx context.Context, in upsertPageIn) (tool.Result, error) {
	w, err := write.NewCall(ctx, upsertPage, s.c.Now())
	if err != nil {
		return tool.Result{}, err
	}
	// All that is wrong is answered at once, and what is only cleaned is told in removed.
	c := cleaner{pictures: picture.Redrawer{Pixels: maxPixels}}
	p := Page{Title: c.line("/title", in.Title, maxTitle), Description: c.prose("/description", in.Description),
		CreatedBy: c.optional("/createdBy", in.CreatedBy, maxCreatedBy), Origin: origin(w.Caller), CreatedAt: w.At}
	if !strings.ContainsFunc(p.Title, schema.Visible) {
		c.Add("/title", "visible", "must have a character that can be seen")
	}
	p.Sections = c.sections(ctx, in.Sections)
	if err := c.Err(); err != nil {
		return tool.Result{}, err
	}
	if err := s.requireDynamic(in.GroupSlug); err != nil {
		return tool.Result{}, err
	}
	return s.c.Store.AddPage(ctx, w.Key, in.GroupSlug, in.ItemSlug, func(h Head) (a Addition[Page], err error) {
		if err := h.requireOwnPage(in.GroupSlug, in.ItemSlug); err != nil {
			return a, err
		}
		// The item is locked, so nobody else takes the number.
		p.Version = h.Newest + 1
		a.Added, a.Audit = p, w.Entry(1, map[string]any{"group": in.GroupSlug, "item": in.ItemSlug, "title": p.Title, "version": p.Version,
			"sections": len(p.Sections)})
		a.Answer, err = write.Answer(PageStored{GroupSlug: in.GroupSlug, ItemSlug: in.ItemSlug, Title: p.Title, Description: p.Description,
			CreatedBy: p.CreatedBy, CreatedAt: schema.Moment(p.CreatedAt), Version: p.Version,
			URL: PagePath(in.GroupSlug, in.ItemSlug), Replaced: p.Version > 1, Removed: append([]markup.Removed{}, c.removed...),
			Warnings: warnings(p, h.Hidden)}, 1)
		return a, err
	})
}

// requireOwnPage refuses an item that leads elsewhere.
func (h Head) requireOwnPage(group, item string) error {
	if h.Href == nil {
		return nil
	}
	return fault.New(fault.Conflict, "The item %q leads to %s and has no page of its own. Make another item without href for a page.",
		item, *h.Href).With(map[string]string{"groupSlug": group, "itemSlug": item, "href": *h.Href})
}

// requireDynamic refuses what only dynamic groups take.
func (s *Service) requireDynamic(group string) error {
	if built, ok := s.fixed(group); ok {
		return fault.New(fault.Conflict, "%s is a built-in group: its items are the console's own pages. Use a group of create_menu_group.",
			built.Name).With(map[string]string{"groupSlug": group})
	}
	return nil
}

// atEnd is the position of what comes behind all others.
const atEnd = -1

// positionOrEnd is the position that was given, or atEnd.
func positionOrEnd(given *int64) int64 {
	if given == nil {
		return atEnd
	}
	return *given
}

// origin is who a caller is, as rows keep it.
func origin(c caller.Caller) Origin {
	return Origin{Service: c.Service, ExternalUserID: c.ExternalUserID, CredentialID: c.CredentialID, HubUser: c.HubUser}
}

// MissingGroup is E_NOT_FOUND for the slug of a group.
func MissingGroup(slug string) error {
	return fault.New(fault.NotFound, "There is no menu group %q. list_menu_groups lists them; create_menu_group makes one.", shown(slug))
}

// MissingItem is E_NOT_FOUND for the slug of an item.
func MissingItem(group, slug string) error {
	return fault.New(fault.NotFound, "The menu group %q has no item %q. create_menu_item makes one.", shown(group), shown(slug))
}

// SlugTaken is E_CONFLICT for the slug of a new group, or of a new item of a group.
func SlugTaken(group, item string) error {
	if item == "" {
		return fault.New(fault.Conflict, "The slug %q is taken by another menu group. Choose another one, or add to that group with "+
			"create_menu_item.", group).With(map[string]string{"slug": group})
	}
	return fault.New(fault.Conflict, "The slug %q is taken in the menu group %q. Choose another one, or write that item's page with "+
		"upsert_dynamic_page.", item, group).With(map[string]string{"groupSlug": group, "slug": item})
}

// StillUsed is E_CONFLICT for a group with items, or an item with a page, that somebody wants to delete.
func StillUsed(item string) error {
	if item == "" {
		return fault.New(fault.Conflict, "This group still has items. Delete those first, or hide the group.")
	}
	return fault.New(fault.Conflict, "This item has a page, and versions of pages are kept. Hide the item instead.")
}

// MissingVersion is E_NOT_FOUND for a version of a page.
func MissingVersion(version int) error {
	return fault.New(fault.NotFound, "The page has no version %d.", version)
}

// shown is a name of somebody's in a message.
func shown(s string) string { return text.Shown(s, 60) }
