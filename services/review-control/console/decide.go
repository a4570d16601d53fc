package console

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/web"
	"hub.internal/pkg/web/i18n"
	reviewcontrol "hub.internal/services/review-control"
)

// decide takes a decision on one target.
func (c *Console) decide(w http.ResponseWriter, r *http.Request, by reviewcontrol.Reviewer, id reviewcontrol.ID, form url.Values) error {
	shown, err := shownOf(id, form.Get("target"))
	if err != nil {
		return err
	}
	back, _ := url.ParseQuery(form.Get("back")) // what cannot be read is the whole draft
	q := queryOf(back)
	choice := reviewcontrol.Choice(form.Get("choice"))
	judgement := reviewcontrol.Judgement{Choice: choice, Reason: reviewcontrol.Reason(form.Get("reason")), Note: form.Get("note")}
	review, err := c.service.Decide(r.Context(), by, id, shown, judgement)
	if err != nil {
		return c.refuse(w, r, by, id, q, shown.Index, judgement, err)
	}
	// The last decision ends the review: what the whole page says is another thing then, and not the list's next mail.
	if review.Status != reviewcontrol.InReview {
		web.Done(w, r, ended(r.Context(), review))
		if partial(r) { // all of the page is another one
			w.Header().Set("HX-Redirect", q.at(id, shown.Index))
			return nil
		}
		return web.Go(w, r, q.at(id, shown.Index))
	}
	if !partial(r) {
		web.Done(w, r, decided(r.Context(), shown.Index, choice))
	}
	d := reviewcontrol.Draft{ID: id, Status: review.Status, Counts: review.Counts, Review: &review, TargetCount: review.Counts.Total()}
	next, err := c.onward(r.Context(), d, q, shown.Index, false)
	if err != nil {
		return err
	}
	return web.Go(w, r, q.at(id, next))
}

// onward is where a reviewer goes from a target: to the next that is left, of what is asked for and perhaps flagged, or else
// from its begin on; to the target itself when none is left.
func (c *Console) onward(ctx context.Context, d reviewcontrol.Draft, q targetQuery, index int, flagged bool) (int, error) {
	f := q.filter()
	f.Choice, f.Flagged, f.After = reviewcontrol.Pending, flagged, index
	for range 2 {
		next, err := c.service.Next(ctx, d, f)
		if err != nil || next >= 0 {
			return next, err
		}
		f.After = -1
	}
	return index, nil
}

// decided says what was decided on one mail.
func decided(ctx context.Context, index int, choice reviewcontrol.Choice) string {
	if choice == reviewcontrol.Approve {
		return i18n.T(ctx, "Mail %s is approved.", web.Number(index+1))
	}
	return i18n.T(ctx, "Mail %s is rejected.", web.Number(index+1))
}

// ended tells what the end of a review means. Who repeats a decision may find a draft that
// has gone further since.
func ended(ctx context.Context, r reviewcontrol.Review) string {
	switch n := r.Counts.Approved; {
	case r.Status == reviewcontrol.Rejected:
		return i18n.T(ctx, "That ends the review. Nothing was approved, so nothing is sent.")
	case r.Status == reviewcontrol.Cancelled:
		return i18n.T(ctx, "Nothing changed: the draft is cancelled, and nothing more of it is sent.")
	case r.Status == reviewcontrol.Sent:
		return i18n.T(ctx, "Nothing changed: the review and the sending are over.")
	case n == 1:
		return i18n.T(ctx, "That ends the review. 1 mail is on its way.")
	default:
		return i18n.T(ctx, "That ends the review. %s mails are on their way.", web.Number(n))
	}
}

// refuse shows the page again with what stopped the decision, and the note that was typed.
func (c *Console) refuse(w http.ResponseWriter, r *http.Request, by reviewcontrol.Reviewer, id reviewcontrol.ID,
	q targetQuery, index int, j reviewcontrol.Judgement, err error) error {
	if !answerable(err) {
		return err
	}
	f, why, field := fault.From(err), refusal{Index: index, Note: j.Note, Reason: j.Reason}, web.Field{Name: "note"}
	if rest, marked := web.Mark(err, &field); marked {
		why.Message, why.NoteProblem = rest, field.Error
	} else {
		why.Message = f.Message
	}
	return c.renderDraft(w, r, by, id, q, index, f.Status(), why)
}

// shownOf reads what a page showed: index:hash:revision.
func shownOf(id reviewcontrol.ID, text string) (reviewcontrol.Shown, error) {
	parts := strings.Split(text, ":")
	if len(parts) != 3 {
		return reviewcontrol.Shown{}, fault.New(fault.Validation, "The form does not say which mail it is for. Open the page again.")
	}
	index, err := pathIndex(id, parts[0])
	if err != nil {
		return reviewcontrol.Shown{}, err
	}
	revision, err := strconv.Atoi(parts[2])
	if err != nil || revision < 0 {
		return reviewcontrol.Shown{}, fault.New(fault.Validation, "The form does not say what it showed. Open the page again.")
	}
	return reviewcontrol.Shown{Index: index, Hash: parts[1], Revision: revision}, nil
}

// answerable tells that an error is the person's to deal with, on the page that they are on.
func answerable(err error) bool {
	return slices.Contains([]fault.Code{fault.Conflict, fault.Scope, fault.Validation}, fault.From(err).Code)
}

// sentence is what a person reads of an error.
func sentence(err error) string {
	for _, problem := range web.Problems(err) {
		return problem
	}
	return fault.From(err).Message
}

// approveShown approves all mails that a page has shown in full, and that have no flag.
func (c *Console) approveShown(w http.ResponseWriter, r *http.Request, by reviewcontrol.Reviewer, id reviewcontrol.ID,
	form url.Values) error {
	shown, err := shownIn(id, form)
	if err != nil {
		return err
	}
	back, _ := url.ParseQuery(form.Get("back")) // what cannot be read is the whole draft
	to := queryOf(back).page(id)
	if len(shown) == 0 {
		web.Wrong(w, r, i18n.T(r.Context(),
			"Nothing was left to approve that has been shown in full. Look through the mails first; what has a flag is decided on by itself."))
		return web.Go(w, r, to)
	}
	n, review, err := c.service.ApproveShown(r.Context(), by, id, shown)
	return answer(w, r, to, together(r.Context(), n, review), err)
}

// undo is what a reviewer could undo now.
type undo struct {
	Action int
	// What says what was decided, Button what undoing it does.
	What, Button string
	// Ended tells that it has ended the review, LeavesAt when the mails leave then, and LeavesIn in how many milliseconds: the reader's
	// clock may be wrong.
	Ended    bool
	LeavesAt *time.Time
	LeavesIn int64
}

// undoable is what the user could undo now, nil for nothing.
func (c *Console) undoable(ctx context.Context, by reviewcontrol.Reviewer, d reviewcontrol.Draft) (*undo, error) {
	if d.Review == nil {
		return nil, nil
	}
	action, found, err := c.service.Undoable(ctx, by, *d.Review)
	if err != nil || !found {
		return nil, err
	}
	u := &undo{Action: action.Number, What: web.PluralIn(ctx, action.Targets, "mail rejected", "mails rejected"), Button: i18n.T(ctx, "Undo")}
	if action.Choice == reviewcontrol.Approve {
		u.What = web.PluralIn(ctx, action.Targets, "mail approved", "mails approved")
	}
	if d.Status == reviewcontrol.Approved {
		u.Ended, u.LeavesAt = true, d.Review.LeavesAt
		if u.LeavesAt != nil {
			u.LeavesIn = max(u.LeavesAt.Sub(c.service.Config().Now()).Milliseconds(), 0)
		}
	}
	return u, nil
}

// undo takes back what was decided in one action.
func (c *Console) undo(w http.ResponseWriter, r *http.Request, by reviewcontrol.Reviewer, id reviewcontrol.ID, form url.Values) error {
	back, _ := url.ParseQuery(form.Get("back")) // what cannot be read is the whole draft
	action, _ := strconv.Atoi(form.Get("action"))
	n, _, err := c.service.Undo(r.Context(), by, id, action)
	to := queryOf(back).page(id)
	if variant, err := strconv.Atoi(form.Get("variant")); err == nil && variant > 0 {
		to = variantAt(id, variant, afterOf(form.Get("after")))
	}
	return answer(w, r, to, i18n.T(r.Context(), "Undone: %s",
		web.PluralIn(r.Context(), n, "mail is as it was before.", "mails are as they were before.")), err)
}
