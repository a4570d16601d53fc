package console

import (
	"context"
	"net/http"
	"net/url"

	"hub.internal/pkg/web"
	"hub.internal/pkg/web/i18n"
	reviewcontrol "hub.internal/services/review-control"
)

// cancellation asks before a draft is cancelled: what becomes of how many mails, and why.
func (c *Console) cancellation(w http.ResponseWriter, r *http.Request, _ reviewcontrol.Reviewer, id reviewcontrol.ID) error {
	return c.renderCancellation(w, r, id, 0, cancelNote(r.Context()))
}

// cancelNote asks why, which nobody has to say.
func cancelNote(ctx context.Context) web.Field {
	return web.Field{Name: "note", Label: i18n.T(ctx, "Why"), MaxLength: reviewcontrol.MaxNote, Autocomplete: "off",
		Hint: i18n.T(ctx, "It is kept in the audit log.")}
}

// renderCancellation asks with the note as it was typed. A draft that is too late to cancel leads back to its page.
func (c *Console) renderCancellation(w http.ResponseWriter, r *http.Request, id reviewcontrol.ID, status int, note web.Field) error {
	ctx := r.Context()
	d, err := c.service.Draft(ctx, id)
	if err != nil {
		return err
	}
	page := "/drafts/" + id.String()
	if err := d.MayCancel(); err != nil {
		web.Wrong(w, r, sentence(err))
		return web.Go(w, r, page)
	}
	text := i18n.T(ctx,
		"None of its %s mails is sent, and the draft cannot be taken up again: an agent has to save another and queue it for review.",
		web.Number(d.TargetCount))
	if d.TargetCount == 1 {
		text = i18n.T(ctx,
			"Its one mail is not sent, and the draft cannot be taken up again: an agent has to save another and queue it for review.")
	}
	ask := web.Confirmation{
		Text:   text,
		Facts:  cancelled(ctx, d),
		Action: page + "/cancel", Fields: []web.Field{note},
		Button: i18n.T(ctx, "Cancel draft"), Keep: web.Link{Text: i18n.T(ctx, "Keep the draft"), Href: page},
	}
	if n := d.Counts.Approved; d.Review != nil && n > 0 {
		ask.Warning = web.PluralIn(ctx, n, "mail was approved and is not sent.", "mails were approved and are not sent.")
	}
	return c.site.Confirm(w, r, web.Page{
		Title: i18n.T(ctx, "Cancel this draft?"), Lead: d.Name, Status: status,
		Crumbs: []web.Link{{Text: i18n.T(ctx, "Drafts"), Href: "/drafts"}, {Text: d.Name, Href: page}},
	}, ask)
}

// cancelled is how many of a draft's mails are left as what when it is cancelled.
func cancelled(ctx context.Context, d reviewcontrol.Draft) []web.Fact {
	if d.Review == nil {
		return []web.Fact{{Label: i18n.T(ctx, "Mails"), Value: i18n.T(ctx, "%s, not in review yet", web.Number(d.TargetCount))}}
	}
	c := d.Counts
	return []web.Fact{
		{Label: i18n.T(ctx, "Mails"), Value: web.Number(c.Total())},
		{Label: i18n.T(ctx, "Left undecided"), Value: web.Number(c.Pending)},
		{Label: i18n.T(ctx, "Approved"), Value: web.Number(c.Approved)},
		{Label: i18n.T(ctx, "Rejected"), Value: web.Number(c.Rejected)},
	}
}

// cancel cancels a draft, with the note that was typed.
func (c *Console) cancel(w http.ResponseWriter, r *http.Request, by reviewcontrol.Reviewer, id reviewcontrol.ID, form url.Values) error {
	note := cancelNote(r.Context())
	note.Value = form.Get("note")
	err := c.service.Cancel(r.Context(), by, id, note.Value)
	if _, marked := web.Mark(err, &note); marked && note.Error != "" {
		return c.renderCancellation(w, r, id, http.StatusUnprocessableEntity, note)
	}
	return answer(w, r, "/drafts/"+id.String(), i18n.T(r.Context(), "The draft is cancelled. Nothing of it is sent."), err)
}
