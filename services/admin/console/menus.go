package console

import (
	"net/http"
	"net/url"
	"slices"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/text"
	"hub.internal/pkg/web"
	"hub.internal/pkg/web/i18n"
	"hub.internal/services/admin"
)

const menusPath = "/admin/menus"

// menusPage is the menus with the built-in groups above them.
type menusPage struct {
	// Fixed are shown for orientation; nobody moves them.
	Fixed  []admin.Group
	Groups []menuRow
}

// menuRow is a group, or an item of one.
type menuRow struct {
	// Group and Item are the slugs; Item is empty for a group.
	Group, Item string
	// Detail is the slug of a group, and where an item leads.
	Name, Icon, Detail string
	Hidden             bool
	// First and Last tell which of the two buttons has nothing to do.
	First, Last bool
	// Focus is the button to go on with: "up", "down" or none.
	Focus string
	Items []menuRow
}

// Element is part of ids: slugs have no dots.
func (m menuRow) Element() string { return m.Group + "." + m.Item }

// Edit is where it is renamed.
func (m menuRow) Edit() string {
	return menusPath + "/edit?" + url.Values{"group": {m.Group}, "item": {m.Item}}.Encode()
}

// menus is the page on which an administrator puts groups and items in order.
func (c *Console) menus(w http.ResponseWriter, r *http.Request) error {
	fixed, groups, err := c.service.Menus(r.Context())
	if err != nil {
		return err
	}
	p := menusPage{Fixed: fixed}
	q := r.URL.Query()
	at, by := q.Get("moved"), q.Get("by")
	// place says where a row stands among its siblings, and whether the focus goes back to it.
	place := func(m menuRow, n, of int) menuRow {
		m.First, m.Last = n == 0, n == of-1
		if m.Element() == at {
			// Whoever moves it step by step goes on with the same key; at the end there is only the way back.
			switch m.Focus = "up"; {
			case by == "down" && !m.Last, m.First:
				m.Focus = "down"
			}
		}
		return m
	}
	for n, g := range groups {
		row := menuRow{Group: g.Slug, Name: g.Name, Icon: text.OrEmpty(g.Icon), Hidden: g.Hidden, Detail: g.Slug}
		for k, i := range g.Items {
			row.Items = append(row.Items, place(menuRow{Group: g.Slug, Item: i.Slug, Name: i.Name, Icon: text.OrEmpty(i.Icon), Hidden: i.Hidden,
				Detail: i.Address(g.Slug)}, k, len(g.Items)))
		}
		p.Groups = append(p.Groups, place(row, n, len(groups)))
	}
	return c.site.Render(w, r, "menus", web.Page{Title: i18n.T(r.Context(), "Menus"), Data: p,
		Lead: i18n.T(r.Context(), "The tabs and sidebars of the console, in the order in which everybody sees them. "+
			"Agents make groups and items; you put them in order.")})
}

// move puts a group or an item one place up or down.
func (c *Console) move(w http.ResponseWriter, r *http.Request, form url.Values) error {
	group, item, by := form.Get("group"), form.Get("item"), form.Get("by")
	_, groups, err := c.service.Menus(r.Context())
	if err != nil {
		return err
	}
	// slugs is the order in which the row stands now: of all groups, or of the items of its group.
	var slugs []string
	at, in := group, ""
	for _, g := range groups {
		if item == "" {
			slugs = append(slugs, g.Slug)
		} else if g.Slug == group {
			at, in = item, group
			for _, i := range g.Items {
				slugs = append(slugs, i.Slug)
			}
		}
	}
	n := slices.Index(slugs, at)
	other := n + map[string]int{"up": -1, "down": 1}[by]
	if n < 0 {
		return fault.New(fault.NotFound, "That group or item is no longer there.")
	}
	to := menusPath + "?" + url.Values{"moved": {menuRow{Group: group, Item: item}.Element()}, "by": {by}}.Encode()
	if other >= 0 && other < len(slugs) && other != n {
		slugs[n], slugs[other] = slugs[other], slugs[n]
		return c.arrange(w, r, to, in, slugs)
	}
	return web.Go(w, r, to)
}

// order takes the order that somebody has dragged groups or items into.
func (c *Console) order(w http.ResponseWriter, r *http.Request, form url.Values) error {
	return c.arrange(w, r, menusPath, form.Get("group"), form["slug"])
}

// arrange stores an order. That somebody was faster is told on the page at path.
func (c *Console) arrange(w http.ResponseWriter, r *http.Request, path, group string, slugs []string) error {
	err := c.service.Arrange(r.Context(), group, slugs)
	if err == nil {
		changed(w)
	}
	return web.Back(w, r, path, i18n.T(r.Context(), "The order is changed."), err, fault.Conflict)
}

// changed tells the gateway that the menus are others now, so that the next page shows them.
func changed(w http.ResponseWriter) { w.Header().Set(web.NavigationHeader, "changed") }

// editPage is the form of a group or an item.
type editPage struct {
	Group, Item        string
	Name, Icon, Hidden web.Field
	// Empty ones can be deleted; Keeps says why another cannot, as a message.
	Empty   bool
	Keeps   string
	Delete  string
	Problem string
}

// edit is the page on which a group or an item is renamed and hidden.
func (c *Console) edit(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	p, title, err := c.editing(r, q.Get("group"), q.Get("item"))
	if err != nil {
		return err
	}
	return c.renderEdit(w, r, 0, title, p)
}

// renderEdit shows the form with what is wrong with it.
func (c *Console) renderEdit(w http.ResponseWriter, r *http.Request, status int, title string, p editPage) error {
	return c.site.Render(w, r, "menu", web.Page{Title: title, Crumbs: upToMenus(r), Status: status, Data: p})
}

// upToMenus leads from the page of a group or an item to the menus.
func upToMenus(r *http.Request) []web.Link {
	return []web.Link{{Text: i18n.T(r.Context(), "Menus"), Href: menusPath}}
}

// editing finds what is to be edited, with its name.
func (c *Console) editing(r *http.Request, group, item string) (editPage, string, error) {
	ctx := r.Context()
	_, groups, err := c.service.Menus(ctx)
	if err != nil {
		return editPage{}, "", err
	}
	p := editPage{Group: group, Item: item, Delete: menusPath + "/delete?" + url.Values{"group": {group}, "item": {item}}.Encode()}
	fill := func(name, icon string, hidden bool, most int) {
		p.Name = web.Field{Name: "name", Label: i18n.T(ctx, "Name"), Value: name, Required: true, MaxLength: most, Autocomplete: "off"}
		p.Icon = web.Field{Name: "icon", Label: i18n.T(ctx, "Icon"), Value: icon, Autocomplete: "off",
			Hint: i18n.T(ctx, "An emoji or a few letters: at most 10 characters.")}
		p.Hidden = web.Field{Name: "hidden", Label: i18n.T(ctx, "In the menu"), Type: "select",
			Options: []web.Option{{Text: i18n.T(ctx, "Shown")}, {Value: "yes", Text: i18n.T(ctx, "Hidden")}},
			Hint:    i18n.T(ctx, "A hidden page still opens by its address.")}
		if hidden {
			p.Hidden.Value = "yes"
		}
	}
	for _, g := range groups {
		if g.Slug != group {
			continue
		}
		if item == "" {
			fill(g.Name, text.OrEmpty(g.Icon), g.Hidden, 50)
			p.Empty, p.Keeps = len(g.Items) == 0, i18n.N("It has items, so it cannot be deleted. Hide it instead.")
			return p, g.Name, nil
		}
		for _, i := range g.Items {
			if i.Slug == item {
				fill(i.Name, text.OrEmpty(i.Icon), i.Hidden, 100)
				p.Empty = !i.HasPage
				p.Keeps = i18n.N("It has a page, and versions of pages are kept, so it cannot be deleted. Hide it instead.")
				return p, i.Name, nil
			}
		}
		return editPage{}, "", admin.MissingItem(group, item)
	}
	return editPage{}, "", admin.MissingGroup(group)
}

// save renames and hides.
func (c *Console) save(w http.ResponseWriter, r *http.Request, form url.Values) error {
	group, item := form.Get("group"), form.Get("item")
	icon := form.Get("icon")
	err := c.service.Rename(r.Context(), group, item, admin.Change{Name: form.Get("name"), Icon: &icon, Hidden: form.Get("hidden") == "yes"})
	if web.Problems(err) != nil {
		p, title, missing := c.editing(r, group, item)
		if missing != nil {
			return missing
		}
		p.Name.Value, p.Icon.Value, p.Hidden.Value = form.Get("name"), icon, form.Get("hidden")
		p.Problem, _ = web.Mark(err, &p.Name, &p.Icon)
		return c.renderEdit(w, r, http.StatusUnprocessableEntity, title, p)
	}
	if err != nil {
		return err
	}
	changed(w)
	web.Done(w, r, i18n.T(r.Context(), "The changes are saved."))
	return web.Go(w, r, menusPath)
}

// deletion asks before something empty is deleted.
func (c *Console) deletion(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	group, item := q.Get("group"), q.Get("item")
	p, title, err := c.editing(r, group, item)
	if err != nil {
		return err
	}
	if !p.Empty {
		return fault.New(fault.Conflict, "%s", p.Keeps)
	}
	ctx := r.Context()
	page := web.Page{Title: i18n.T(ctx, "Delete from the menu"), Crumbs: upToMenus(r)}
	return c.site.Confirm(w, r, page, web.Confirmation{
		Text:   i18n.T(ctx, "It has nothing in it, so nothing else is lost. Its slug can be used again."),
		Facts:  []web.Fact{{Label: i18n.T(ctx, "Name"), Value: title}},
		Action: menusPath + "/delete", Hidden: map[string]string{"group": group, "item": item},
		Button: i18n.T(ctx, "Delete"), Keep: web.Link{Text: i18n.T(ctx, "Keep it"), Href: menuRow{Group: group, Item: item}.Edit()}})
}

// remove deletes what is empty. That it is not, or is gone, is told on the page of the menus.
func (c *Console) remove(w http.ResponseWriter, r *http.Request, form url.Values) error {
	err := c.service.Delete(r.Context(), form.Get("group"), form.Get("item"))
	if err == nil {
		changed(w)
	}
	return web.Back(w, r, menusPath, i18n.T(r.Context(), "It is deleted."), err, fault.Conflict, fault.NotFound)
}
