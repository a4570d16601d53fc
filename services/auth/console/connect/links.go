package connect

import (
	"net/http"
	"net/url"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/web"
	"hub.internal/pkg/web/i18n"
	"hub.internal/services/auth/links"
)

// linksPage is a page of a user's links.
type linksPage struct {
	Links []linkRow
	Pager web.Pager
}

// linkRow is a link as its user sees it.
type linkRow struct {
	links.Listed
	User  string
	Words []string
}

// Badge tells of an app that cannot use the link now; it is empty for any other.
func (l linkRow) Badge() web.Badge {
	if l.AppStatus == "ACTIVE" {
		return web.Badge{}
	}
	return web.Badge{Kind: "warn", Text: map[string]string{"SUSPENDED": i18n.N("suspended"), "REVOKED": i18n.N("revoked")}[l.AppStatus]}
}

// list shows a user their links.
func (p *Pages) list(w http.ResponseWriter, r *http.Request) error {
	who, signedIn := person(r)
	if !signedIn {
		return fault.New(fault.AuthMissing, "Sign in to see this page.")
	}
	ctx := r.Context()
	after := r.URL.Query().Get("after")
	page, next, err := p.Links.List(ctx, links.Filter{HubUser: who.User, After: after, Limit: web.RowsOnPage})
	if err != nil {
		return err
	}
	d := linksPage{Pager: web.Pager{Label: i18n.T(ctx, "More linked apps"), Key: "n"}}
	if after != "" {
		d.Pager.Back = web.Link{Text: i18n.T(ctx, "First page"), Href: linksPath}
	}
	if next != "" {
		d.Pager.Next = web.Link{Text: i18n.T(ctx, "Next page"), Href: linksPath + "?after=" + url.QueryEscape(next)}
	}
	for _, l := range page {
		d.Links = append(d.Links, linkRow{l, masked(l.ExternalUser), wordsOf(ctx, l.Scopes)})
	}
	return p.site.Render(w, r, "links", web.Page{Title: i18n.T(ctx, "Linked apps"),
		Lead: i18n.T(ctx, "Services that may act for you in Hub, because you have allowed it."), Data: d})
}

// unlinking asks before a link ends.
func (p *Pages) unlinking(w http.ResponseWriter, r *http.Request) error {
	who, signedIn := person(r)
	if !signedIn {
		return fault.New(fault.AuthMissing, "Sign in to see this page.")
	}
	ctx := r.Context()
	l, err := p.Links.Of(ctx, r.PathValue("id"), who.User)
	if err != nil {
		return err
	}
	return p.site.Confirm(w, r,
		web.Page{Title: i18n.T(ctx, "Unlink %s?", l.AppName), Crumbs: []web.Link{{Text: i18n.T(ctx, "Linked apps"), Href: linksPath}}},
		web.Confirmation{
			Text: i18n.T(ctx,
				"From then on it can do nothing for you in Hub. What it has done stays. It can ask you to link your account again."),
			Facts: []web.Fact{
				{Label: i18n.T(ctx, "App"), Value: l.AppName}, {Label: i18n.T(ctx, "Your account there"), Value: masked(l.ExternalUser)},
				{Label: i18n.T(ctx, "Linked"), At: l.LinkedAt},
			},
			Action: linksPath + "/" + l.ID + "/revoke", Button: i18n.T(ctx, "Unlink"),
			Keep: web.Link{Text: i18n.T(ctx, "Keep it linked"), Href: linksPath},
		})
}

// unlink ends a link of who is signed in.
func (p *Pages) unlink(w http.ResponseWriter, r *http.Request) error {
	who, signedIn := person(r)
	if !signedIn {
		return fault.New(fault.AuthMissing, "Sign in to see this page.")
	}
	if _, err := p.Links.Unlink(r.Context(), r.PathValue("id"), who.User); err != nil {
		return err
	}
	web.Done(w, r, i18n.T(r.Context(), "The app is unlinked."))
	return web.Go(w, r, linksPath)
}
