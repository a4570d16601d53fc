package console

import (
	"net/http"
	"net/url"

	"hub.internal/pkg/web"
	reviewcontrol "hub.internal/services/review-control"
)

// cancellation asks before a draft is cancelled: what becomes of how many mails, and why.
func (c *Console) cancellation(w http.ResponseWriter, r *http.Request, _ reviewcontrol.Reviewer, id reviewcontrol.ID) error {
	return c.renderCancellation(w, r, id, 0, cancelNote())
}

// cancelNote asks why, which nobody has to say.
func cancelNote() web.Field {
	return web.Field{Name: "note", Label: "Why", MaxLength: reviewcontrol.MaxNote, Autocomplete: "off", Hint: "It is kept in the audit log."}
}

// renderCancellation asks with the note as it was typed. A draft that is too late to cancel leads back to its page.
func (c *Console) renderCancellation(w http.ResponseWriter, r *http.Request, id reviewcontrol.ID, status int, note web.Field) error {
	d, err := c.service.Draft(r.Context(), id)
	if err != nil {
		return err
	}
	page := "/drafts/" + id.String()
	if err := d.MayCancel(); err != nil {
		web.Wrong(w, r, sentence(err))
		return web.Go(w, r, page)
	}
	what := "None of its " + web.Number(d.TargetCount) + " mails is sent"
	if d.TargetCount == 1 {
		what = "Its one mail is not sent"
	}
	ask := web.Confirmation{
		Text:   what + ", and the draft cannot be taken up again: an agent has to save another and queue it for review.",
		Facts:  cancelled(d),
		Action: page + "/cancel", Fields: []web.Field{note},
		Button: "Cancel draft", Keep: web.Link{Text: "Keep the draft", Href: page},
	}
	if n := d.Counts.Approved; d.Review != nil && n > 0 {
		ask.Warning = web.Plural(n, "mail was approved and is not sent.", "mails were approved and are not sent.")
	}
	return c.site.Confirm(w, r, web.Page{
		Title: "Cancel this draft?", Lead: d.Name, Status: status,
		Crumbs: []web.Link{{Text: "Drafts", Href: "/drafts"}, {Text: d.Name, Href: page}},
	}, ask)
}

// cancelled is how many of a draft's mails are left as what when it is cancelled.
func cancelled(d reviewcontrol.Draft) []web.Fact {
	if d.Review == nil {
		return []web.Fact{{Label: "Mails", Value: web.Number(d.TargetCount) + ", not in review yet"}}
	}
	c := d.Counts
	return []web.Fact{
		{Label: "Mails", Value: web.Number(c.Total())},
		{Label: "Left undecided", Value: web.Number(c.Pending)},
		{Label: "Approved", Value: web.Number(c.Approved)},
		{Label: "Rejected", Value: web.Number(c.Rejected)},
	}
}

// cancel cancels a draft, with the note that was typed.
func (c *Console) cancel(w http.ResponseWriter, r *http.Request, by reviewcontrol.Reviewer, id reviewcontrol.ID, form url.Values) error {
	note := cancelNote()
	note.Value = form.Get("note")
	err := c.service.Cancel(r.Context(), by, id, note.Value)
	if _, marked := web.Mark(err, &note); marked && note.Error != "" {
		return c.renderCancellation(w, r, id, http.StatusUnprocessableEntity, note)
	}
	return answer(w, r, "/drafts/"+id.String(), "The draft is cancelled. Nothing of it is sent.", err)
}
