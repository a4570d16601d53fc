package console

import (
	"errors"
	"net/http"
	"net/url"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/web"
	reviewcontrol "hub.internal/services/review-control"
	"hub.internal/services/review-control/mailer"
)

// test sends the mail that the page has shown to the reviewer's own address.
func (c *Console) test(w http.ResponseWriter, r *http.Request, by reviewcontrol.Reviewer, id reviewcontrol.ID, form url.Values) error {
	index, err := pathIndex(id, r.PathValue("index"))
	if err != nil {
		return err
	}
	back, _ := url.ParseQuery(form.Get("back")) // what cannot be read is the whole draft
	here := queryOf(back).at(id, index)
	err = c.service.SendTest(r.Context(), by, id, index, form.Get("of"))
	var sent *mailer.SendError
	switch {
	case errors.As(err, &sent) && sent.Verdict == mailer.Perhaps:
		web.Wrong(w, r, "It may have been sent to you. "+sent.Reason)
	case errors.As(err, &sent):
		web.Wrong(w, r, "It was not sent to you. "+sent.Reason)
	case fault.Is(err, fault.RateLimit):
		web.Wrong(w, r, sentence(err))
	default:
		return answer(w, r, here, "Sent to "+by.Email+", as a test.", err)
	}
	return web.Go(w, r, here)
}
