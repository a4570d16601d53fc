package console

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"hub.internal/pkg/web"
	reviewcontrol "hub.internal/services/review-control"
)

// rejects is how a page asks for what reason mails are rejected together.
type rejects struct {
	// Text names the mails, Key opens it.
	Text, Key string
	// ID keeps the fields of several on one page apart.
	ID string
}

// Reasons are those to choose from, by the keys 0 to 6.
func (rejects) Reasons() []web.Option { return reasons() }

// Note is what agents are told beside the reason.
func (r rejects) Note() web.Field {
	return web.Field{ID: "note-" + r.ID, Name: "note", Label: "Note", MaxLength: reviewcontrol.MaxNote, Autocomplete: "off",
		Placeholder: "Agents read it"}
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
		web.Wrong(w, r, "Nothing was rejected: no mail was chosen.")
		return web.Go(w, r, here)
	default:
		out, err = c.service.RejectShown(r.Context(), by, id, shown, j)
	}
	if err == nil && number > 0 {
		if here, err = c.behind(r.Context(), id, number, reviewcontrol.MaxIndex); err != nil {
			return err
		}
	}
	return answer(w, r, here, rejected(out), err)
}

// rejected says what became of mails that were rejected together.
func rejected(out reviewcontrol.Rejection) string {
	var text string
	switch {
	case out.Rejected > 0 && out.Review.Status != reviewcontrol.InReview:
		text = web.Plural(out.Rejected, "mail is rejected. ", "mails are rejected. ") + ended(out.Review)
	case out.Rejected > 0:
		text = web.Plural(out.Rejected, "mail is rejected.", "mails are rejected.")
	default:
		text = "Nothing was rejected."
	}
	if out.Left > 0 {
		text += fmt.Sprintf(" %s, and left as %s.", web.Plural(out.Left, "was decided on in the meantime", "were decided on in the meantime"),
			map[bool]string{true: "it is", false: "they are"}[out.Left == 1])
	}
	return text
}
