package admin

import (
	"context"
	"slices"
	"strings"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/schema"
)

// Change is what people can change of a group or an item.
type Change struct {
	// Name is cut of the spaces around it. An Icon that is empty is none.
	Name string  `json:"name"`
	Icon *string `json:"icon"`
	// Hidden takes it out of the navigation; addresses stay good.
	Hidden bool `json:"hidden"`
}

// Menus returns the built-in groups and then all others, hidden ones too, in their order.
func (s *Service) Menus(ctx context.Context) (fixed, dynamic []Group, err error) {
	dynamic, err = s.c.Store.Menus(ctx)
	return s.c.Fixed, dynamic, err
}

// Arrange puts the groups, or the items of the group, in the order of these slugs. E_CONFLICT when these are not
// all there are, because somebody has added or deleted one meanwhile.
func (s *Service) Arrange(ctx context.Context, group string, slugs []string) error {
	if err := requirePerson(ctx); err != nil {
		return err
	}
	return s.c.Store.Arrange(ctx, group, func(there []string) (Arrangement, error) {
		// An order of what somebody saw a while ago must not lose what has come since.
		if !slices.Equal(slices.Sorted(slices.Values(there)), slices.Sorted(slices.Values(slugs))) {
			return Arrangement{}, fault.New(fault.Conflict,
				"Somebody has changed the menus meanwhile, so nothing was moved. Look at them and try again.")
		}
		return Arrangement{slugs, s.entry(ctx, "menu.arrange", len(slugs), menuDetail(group, "", map[string]any{"order": slugs}))}, nil
	})
}

// Rename gives a group, or its item, another name and icon, and hides it or shows it. E_VALIDATION, E_NOT_FOUND.
func (s *Service) Rename(ctx context.Context, group, item string, c Change) error {
	if err := requirePerson(ctx); err != nil {
		return err
	}
	// Names of groups are tabs and shorter than those of items.
	most := maxGroupName
	if item != "" {
		most = maxItemName
	}
	var v schema.Violations
	c.Name = strings.TrimSpace(c.Name)
	checkName(&v, c.Name, most)
	c.Icon = icon(&v, c.Icon)
	if err := v.Err(); err != nil {
		return err
	}
	return s.c.Store.Change(ctx, group, item, func(before Change) (Change, audit.Entry) {
		return c, s.entry(ctx, "menu.change", 1, menuDetail(group, item, map[string]any{"before": before, "after": c}))
	})
}

// Delete removes a group without items, or an item without a page. E_CONFLICT for another, E_NOT_FOUND.
func (s *Service) Delete(ctx context.Context, group, item string) error {
	if err := requirePerson(ctx); err != nil {
		return err
	}
	return s.c.Store.Delete(ctx, group, item, s.entry(ctx, "menu.delete", 1, menuDetail(group, item, nil)))
}

// Place returns an item with a version of its page, 0 being the newest. E_NOT_FOUND for slugs and versions that are not there.
func (s *Service) Place(ctx context.Context, group, item string, version int) (Place, error) {
	return s.c.Store.Place(ctx, group, item, version)
}

// Versions returns the newest versions of a page below one, without their sections; 0 begins.
func (s *Service) Versions(ctx context.Context, group, item string, below, limit int) ([]Page, error) {
	return s.c.Store.Versions(ctx, group, item, below, limit)
}

// Restore stores a copy of a version as the newest one. newest is the version that the person has seen as
// such: E_CONFLICT when there is a newer one. E_NOT_FOUND.
func (s *Service) Restore(ctx context.Context, group, item string, version, newest int) (Page, error) {
	if err := requirePerson(ctx); err != nil {
		return Page{}, err
	}
	return s.c.Store.Restore(ctx, group, item, func(h Head) (Restoration, error) {
		if err := h.requireOwnPage(group, item); err != nil {
			return Restoration{}, err
		}
		if h.Newest != newest {
			return Restoration{}, fault.New(fault.Conflict,
				"Version %d was written while you looked at version %d, so nothing was restored. Look at it first.", h.Newest, newest).
				With(map[string]int{"newest": h.Newest})
		}
		return Restoration{From: version, Version: newest + 1, By: origin(caller.From(ctx)), At: s.c.Now().UTC(),
			Audit: s.entry(ctx, "page.restore", 1, menuDetail(group, item, map[string]any{"from": version, "version": newest + 1}))}, nil
	})
}

// requirePerson refuses everybody who is not signed in to the console.
func requirePerson(ctx context.Context) error {
	if caller.From(ctx).Kind != caller.User {
		return fault.New(fault.Scope, "Only a person can do that, in the console.")
	}
	return nil
}

// entry is the audit row of what a person asked for.
func (s *Service) entry(ctx context.Context, name string, count int, detail map[string]any) audit.Entry {
	return audit.Entry{At: s.c.Now(), Caller: caller.From(ctx), Tool: name, Outcome: audit.OK, Count: count, Detail: detail}
}

// menuDetail is the detail of an audit row about a group or an item.
func menuDetail(group, item string, detail map[string]any) map[string]any {
	if detail == nil {
		detail = map[string]any{}
	}
	if group != "" {
		detail["group"] = group
	}
	if item != "" {
		detail["item"] = item
	}
	return detail
}
