package console

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"hub.internal/pkg/web"
	reviewcontrol "hub.internal/services/review-control"
)

// undo is what a reviewer could undo now.
type undo struct {
	Action int
	// What says what was decided, Button what undoing it does.
	What, Button string
	// Ended tells that it has ended the review, LeavesAt when the mails leave then.
	Ended    bool
	LeavesAt *time.Time
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
	u := &undo{Action: action.Number, What: web.Plural(action.Targets, "mail", "mails") + " " + string(action.Choice), Button: "Undo"}
	if d.Status == reviewcontrol.Approved {
		u.Ended, u.LeavesAt = true, d.Review.LeavesAt
	}
	return u, nil
}

// undo takes back what was decided in one action.
func (c *Console) undo(w http.ResponseWriter, r *http.Request, by reviewcontrol.Reviewer, id reviewcontrol.ID) error {
	form, err := web.Form(r)
	if err != nil {
		return err
	}
	back, _ := url.ParseQuery(form.Get("back")) // what cannot be read is the whole draft
	action, _ := strconv.Atoi(form.Get("action"))
	n, _, err := c.service.Undo(r.Context(), by, id, action)
	switch {
	case err == nil:
		web.Done(w, r, "Undone: "+web.Plural(n, "mail is as it was before.", "mails are as they were before."))
	case answerable(err):
		web.Wrong(w, r, sentence(err))
	default:
		return err
	}
	return web.Go(w, r, queryOf(back).page(id, -1))
}
