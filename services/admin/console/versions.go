package console

import (
	"fmt"
	"math"
	"net/http"
	"strconv"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/web"
	"hub.internal/pkg/web/i18n"
	"hub.internal/services/admin"
	"hub.internal/services/admin/console/changes"
)

// versionsPage is a page of the list of versions.
type versionsPage struct {
	Path   string
	Newest int
	List   []admin.Page
	Pager  web.Pager
}

// versions lists who has written a page, and when.
func (c *Console) versions(w http.ResponseWriter, r *http.Request) error {
	ctx, group, item := r.Context(), r.PathValue("group"), r.PathValue("item")
	below, err := strconv.Atoi(r.URL.Query().Get("below"))
	if err != nil || below < 0 || below > math.MaxInt32 {
		below = 0 // no version has such a number: the list begins with the newest
	}
	place, err := c.service.Place(ctx, group, item, 0)
	if err != nil {
		return err
	}
	list, err := c.service.Versions(ctx, group, item, below, web.RowsOnPage+1)
	if err != nil {
		return err
	}
	p := versionsPage{Path: place.Path(), Newest: place.Newest, Pager: web.Pager{Label: i18n.T(ctx, "More versions"), Key: "n"}}
	if below > 0 {
		p.Pager.Back = web.Link{Text: i18n.T(ctx, "Newest versions"), Href: p.Path + "/versions"}
	}
	if len(list) > web.RowsOnPage {
		list = list[:web.RowsOnPage]
		p.Pager.Next = web.Link{Text: i18n.T(ctx, "Older versions"),
			Href: fmt.Sprintf("%s/versions?below=%d", p.Path, list[len(list)-1].Version)}
	}
	p.List = list
	return c.site.Render(w, r, "versions", web.Page{Title: i18n.T(ctx, "Versions"), Data: p,
		Lead:   i18n.T(ctx, "Each time the page was written it got another version. None is ever lost."),
		Crumbs: []web.Link{{Text: titleOf(place), Href: p.Path}},
		Keys: []web.Key{{Press: "j", Does: i18n.T(ctx, "Next version")}, {Press: "k", Does: i18n.T(ctx, "Version before")},
			{Press: "n", Does: i18n.T(ctx, "Older versions")}}})
}

// versionPage is an old version and what was changed in it.
type versionPage struct {
	pageView
	Newest int
	// Changes are what the version has changed, or what restoring it would.
	Changes []changes.Line
	More    bool
	// Older tells that there is one before, to compare the newest with.
	Older bool
}

// version is one of them, with what it has changed when it is the newest, else with what restoring it would change.
func (c *Console) version(w http.ResponseWriter, r *http.Request) error {
	group, item, number, err := versionOf(r)
	if err != nil {
		return err
	}
	ctx := r.Context()
	this, err := c.service.Place(ctx, group, item, number)
	if err != nil {
		return err
	}
	p := versionPage{pageView: viewOf(ctx, this, r.URL.Path), Newest: this.Newest, Older: true}
	sorted(p.Sections, r.URL.Query().Get("sort"))
	from, to := 0, this.Page // from the newest to this one
	if number == this.Newest {
		from, p.Older = number-1, number > 1
	}
	if p.Older {
		other, err := c.service.Place(ctx, group, item, from)
		if err != nil {
			return err
		}
		p.Newest = max(p.Newest, other.Newest)
		p.Changes, p.More = changes.Between(ctx, other.Page, to)
	}
	return c.site.Render(w, r, "version", web.Page{Title: i18n.T(ctx, "Version %d", number), Lead: this.Page.Title,
		Wide:   wide(this.Page.Sections),
		Crumbs: []web.Link{{Text: titleOf(this), Href: p.Path}, {Text: i18n.T(ctx, "Versions"), Href: p.Path + "/versions"}}, Data: p})
}

// restore makes an old version the newest one.
func (c *Console) restore(w http.ResponseWriter, r *http.Request) error {
	group, item, number, err := versionOf(r)
	if err != nil {
		return err
	}
	form, err := web.Form(r)
	if err != nil {
		return err
	}
	newest, err := strconv.Atoi(form.Get("newest"))
	if err != nil {
		return fault.New(fault.Validation, "The form does not say which version is the newest.")
	}
	p, err := c.service.Restore(r.Context(), group, item, number, newest)
	path := admin.PagePath(group, item)
	if err != nil {
		return web.Back(w, r, path+"/versions", "", err, fault.Conflict)
	}
	web.Done(w, r, i18n.T(r.Context(), "Version %d is shown again, as version %d.", number, p.Version))
	return web.Go(w, r, path)
}

// versionOf reads the address of a version; E_NOT_FOUND for a number that is none.
func versionOf(r *http.Request) (group, item string, number int, err error) {
	group, item = r.PathValue("group"), r.PathValue("item")
	text := r.PathValue("version")
	if number, err = strconv.Atoi(text); err != nil || number < 1 || number > math.MaxInt32 || strconv.Itoa(number) != text {
		return "", "", 0, fault.New(fault.NotFound, "The page has no such version.")
	}
	return group, item, number, nil
}

// titleOf is the title of a page; before there is one, the item's name.
func titleOf(p admin.Place) string {
	if p.Page.Title != "" {
		return p.Page.Title
	}
	return p.Name
}
