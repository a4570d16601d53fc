package console

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/web"
	"hub.internal/pkg/web/i18n"
	reviewcontrol "hub.internal/services/review-control"
	"hub.internal/services/review-control/body"
	"hub.internal/services/review-control/mailer"
)

// previewPolicy keeps a mail from running, loading and submitting anything, whatever it holds. Its origin is that of the
// console, so that the page around it can measure it: that is why no script may ever run in it (DESIGN.md).
const previewPolicy = "sandbox allow-same-origin; default-src 'none'; script-src 'none'; style-src 'unsafe-inline'; img-src data:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'self'"

// framed is a page that another of ours may show in a sandboxed frame, its errors included.
func framed(h web.Handler) web.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		w.Header().Set("Content-Security-Policy", previewPolicy)
		return h(w, r)
	}
}

// preview answers a target's mail alone, as the frame in its card shows it: of a mail in HTML the very
// bytes that are sent, but that pictures elsewhere, which are not loaded, are described in their place. What keeps it
// in bounds are the policy and the frame's sandbox; that
// nothing harmful is left in it comes on top. The query `of` is the hash of the content that the page
// was made for: another one is not shown in its place. With `marks` it is a second look, in which the target's own values are marked.
func (c *Console) preview(w http.ResponseWriter, r *http.Request, _ reviewcontrol.Reviewer, id reviewcontrol.ID) error {
	index, err := pathIndex(id, r.PathValue("index"))
	if err != nil {
		return err
	}
	t, err := c.service.Target(r.Context(), id, index)
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	hash, content := t.Rendering.Hash(), t.Rendering.Shown()
	status := http.StatusOK
	if of := r.URL.Query().Get("of"); of != "" && of != hash {
		status = http.StatusConflict
		says := i18n.T(r.Context(), "This mail has changed since the page was opened. Reload the page.")
		content = body.Document("<p><strong>"+says+"</strong></p>", says)
	} else if r.URL.Query().Has("marks") { // a second look: it is not what leaves, and nobody has been shown that
		d, err := c.service.Draft(r.Context(), id)
		if err != nil {
			return err
		}
		var marked bool
		if content, marked = t.Marked(d); !marked {
			return fault.New(fault.NotFound, "Nothing in this mail can be marked: no template makes it.")
		}
	} else if r.URL.Query().Has("ahead") { // nobody has opened it yet
		http.SetCookie(w, shownCookie(r, aheadName, hash))
	} else {
		http.SetCookie(w, shownCookie(r, shownName, hash))
		openedBy(r, id).add(w, r, index, hash)
	}
	web.Write(w, r, status, []byte(content))
	return nil
}

// opened are the targets of one draft whose preview a reviewer's browser has been given, newest
// last: each by its index and the begin of its content's hash. Browsers keep it in a cookie, so
// that a reviewer without scripts can approve what they have opened. It says as much as the form that
// lists what was shown, and is believed as much: the content is compared for itself.
type opened struct {
	// whose is the draft and the reviewer.
	whose string
	list  []string
}

const (
	openedCookie = "opened"
	// maxOpened keeps the cookie below 2 KiB.
	maxOpened = 80
	// shownName is that of what was shown last, aheadName that of what was fetched ahead last; seen.js knows them.
	shownName, aheadName = "hub-shown", "hub-ahead"
)

// shownCookie tells the page around a preview that it is the content which the page was made for: a
// sandboxed frame tells it nothing, and comes to an end of its loading with an error as well. So it
// is for scripts to read, and for a moment. There is one of it, and one of what is fetched ahead:
// browsers keep some 180 cookies of a site, and would drop the session for another. Where two pages
// are opened at one moment, one may find the other's, and takes its mail for not shown.
func shownCookie(r *http.Request, name, hash string) *http.Cookie {
	c := web.Cookie(r, "", hash, 60)
	c.Name, c.Path, c.HttpOnly = name, "/drafts", false
	return c
}

// openedBy reads the cookie for a draft and the user of the request; one of another draft or user counts for nothing.
func openedBy(r *http.Request, draft reviewcontrol.ID) opened {
	u, _ := web.UserOf(r.Context())
	whose := draft.String() + "-" + u.ID // the next person at this browser has opened nothing
	parts := strings.Split(web.ReadCookie(r, openedCookie), ".")
	if parts[0] != whose {
		return opened{whose: whose}
	}
	return opened{whose, parts[1:min(len(parts), 1+maxOpened)]}
}

// openedEntry names a target and its content in the cookie: 12 hexadecimal digits of the hash are enough to tell contents of
// one target apart.
func openedEntry(index int, hash string) string { return fmt.Sprintf("%d-%.12s", index, hash) }

// has tells whether the target was opened with this very content.
func (o opened) has(index int, hash string) bool {
	return slices.Contains(o.list, openedEntry(index, hash))
}

// add keeps that the target was opened.
func (o opened) add(w http.ResponseWriter, r *http.Request, index int, hash string) {
	entry := openedEntry(index, hash)
	list := append(slices.DeleteFunc(slices.Clone(o.list), func(e string) bool { return e == entry }), entry)
	list = list[max(0, len(list)-maxOpened):]
	http.SetCookie(w, web.Cookie(r, openedCookie, o.whose+"."+strings.Join(list, "."), 0))
}

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
		web.Wrong(w, r, i18n.T(r.Context(), "It may have been sent to you. %s", sent.Reason))
	case errors.As(err, &sent):
		web.Wrong(w, r, i18n.T(r.Context(), "It was not sent to you. %s", sent.Reason))
	case fault.Is(err, fault.RateLimit):
		web.Wrong(w, r, sentence(err))
	default:
		return answer(w, r, here, i18n.T(r.Context(), "Sent to %s, as a test.", by.Email), err)
	}
	return web.Go(w, r, here)
}
