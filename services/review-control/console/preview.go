package reviewcontrol

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"hub.internal/pkg/web"
)

// opened are the targets of one draft that a reviewer has had on a page of their own, newest
// last: each by its index and the begin of its content's hash. Browsers keep it in a cookie, so
// that a reviewer without scripts can approve what they have opened. It says as much as the form that
// lists what was shown, and is believed as much: the content is compared for itself.
type opened struct {
	draft ID
	list  []string
}

const (
	openedCookie = "opened"
	// maxOpened keeps the cookie below 2 KiB.
	maxOpened = 80
	// shownCookies is how many names there are for what was shown; review.js knows it.
	shownCookies = 50
)

// shownCookie tells the page around a preview that it is the content which the page was made for: a
// sandboxed frame tells it nothing, and comes to an end of its loading with an error as well. So it
// is for scripts to read, and for a moment. There are few names of it: browsers keep some 180 cookies
// of a site, and would drop the session for another.
func shownCookie(r *http.Request, draft ID, index int, hash string) *http.Cookie {
	c := web.Cookie(r, "", hash, 60)
	c.Name, c.Path, c.HttpOnly = fmt.Sprintf("hub-shown-%d", index%shownCookies), "/drafts/"+draft.String(), false
	return c
}

func openedBy(r *http.Request, draft ID) opened {
	parts := strings.Split(web.ReadCookie(r, openedCookie), ".")
	if parts[0] != draft.String() {
		return opened{draft: draft}
	}
	return opened{draft, parts[1:min(len(parts), 1+maxOpened)]}
}

func openedEntry(index int, hash string) string { return fmt.Sprintf("%d-%.12s", index, hash) }

func (o opened) has(index int, hash string) bool {
	return slices.Contains(o.list, openedEntry(index, hash))
}

// add keeps that the target was opened.
func (o opened) add(w http.ResponseWriter, r *http.Request, index int, hash string) {
	entry := openedEntry(index, hash)
	list := append(slices.DeleteFunc(slices.Clone(o.list), func(e string) bool { return e == entry }), entry)
	list = list[max(0, len(list)-maxOpened):]
	http.SetCookie(w, web.Cookie(r, openedCookie, o.draft.String()+"."+strings.Join(list, "."), 0))
}
