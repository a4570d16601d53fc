package console

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"hub.internal/pkg/web"
	"hub.internal/pkg/web/i18n"
	reviewcontrol "hub.internal/services/review-control"
)

// rejects is how a page asks for what reason mails are rejected together.
type rejects struct {
	// Text names the mails, Key opens it.
	Text, Key string
	// Reasons are those to choose from, by the keys 0 to 6.
	Reasons []web.Option
	// Note is what agents are told beside the reason.
	Note web.Field
}

// rejectsOf asks for a reason; id keeps the fields of several on one page apart.
func rejectsOf(ctx context.Context, text, key, id string) rejects {
	return rejects{text, key, reasons(ctx), web.Field{ID: "note-" + id, Name: "note", Label: i18n.T(ctx, "Note"),
		MaxLength: reviewcontrol.MaxNote, Autocomplete: "off", Placeholder: i18n.T(ctx, "Agents read it")}}
}

// reject rejects mails together: those that a form names, or with the field `all`, which says how many the page has shown, all
// undecided ones of its filter.
func (c *Console) reject(w http.ResponseWriter, r *http.Request, by reviewcontrol.Reviewer, id reviewcontrol.ID, form url.Values) error {
	back, _ := url.ParseQuery(form.Get("back")) // what cannot be read is the whole draft
	q := queryOf(back)
	here := q.page(id)
	number, _ := strconv.Atoi(form.Get("variant"))
	if number > 0 {
		here = variantAt(id, number, afterOf(form.Get("after")))
	}
	j := reviewcontrol.Judgement{Reason: reviewcontrol.Reason(form.Get("reason")), Note: form.Get("note")}
	var out reviewcontrol.Rejection
	shown, err := shownIn(id, form)
	switch found, _ := strconv.Atoi(form.Get("all")); {
	case err != nil:
		return err
	case found > 0:
		out, err = c.service.RejectFound(r.Context(), by, id, q.filter(), found, j)
	case len(shown) == 0:
		web.Wrong(w, r, i18n.T(r.Context(), "Nothing was rejected: no mail was chosen."))
		return web.Go(w, r, here)
	default:
		out, err = c.service.RejectShown(r.Context(), by, id, shown, j)
	}
	if err == nil && number > 0 {
		if here, err = c.behind(r.Context(), id, number, reviewcontrol.MaxIndex); err != nil {
			return err
		}
	}
	return answer(w, r, here, rejected(r.Context(), out), err)
}

// rejected says what became of mails that were rejected together.
func rejected(ctx context.Context, out reviewcontrol.Rejection) string {
	text := i18n.T(ctx, "Nothing was rejected.")
	if out.Rejected > 0 {
		text = web.PluralIn(ctx, out.Rejected, "mail is rejected.", "mails are rejected.")
		if out.Review.Status != reviewcontrol.InReview {
			text += " " + ended(ctx, out.Review)
		}
	}
	if out.Left > 0 {
		text += " " + web.PluralIn(ctx, out.Left, "was decided on in the meantime, and left as it is.",
			"were decided on in the meantime, and left as they are.")
	}
	return text
}
