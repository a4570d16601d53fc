package suppressions

import (
	"net/http"
	"strings"
	"unicode/utf8"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/web"
	"hub.internal/pkg/web/i18n"
)

// unsubscribePage is what a recipient sees.
type unsubscribePage struct {
	// Email is masked: whoever got hold of the link does not learn the address from it.
	Email         string
	Done, Unknown bool
}

// unsubscribePage asks before it unsubscribes: programs that look through mails open links too.
func (c *Pages) unsubscribePage(w http.ResponseWriter, r *http.Request) error {
	email, done, err := c.suppressed.Unsubscription(r.Context(), r.PathValue("token"))
	return c.renderUnsubscribe(w, r, email, done, err)
}

// unsubscribe takes the button's form and the one-click request of RFC 8058 alike. The
// latter comes from a mail program's server, without a session, and gets no redirect.
func (c *Pages) unsubscribe(w http.ResponseWriter, r *http.Request) error {
	email, err := c.suppressed.Unsubscribe(r.Context(), r.PathValue("token"))
	return c.renderUnsubscribe(w, r, email, true, err)
}

// renderUnsubscribe shows whose mails end, or that nobody has the link's token.
func (c *Pages) renderUnsubscribe(w http.ResponseWriter, r *http.Request, email string, done bool, err error) error {
	page := web.Page{Title: i18n.T(r.Context(), "Unsubscribe"), Plain: true}
	switch {
	case fault.Is(err, fault.NotFound):
		page.Title, page.Status = i18n.T(r.Context(), "This link does not work"), http.StatusNotFound
		page.Data = unsubscribePage{Unknown: true}
	case err != nil:
		return err
	default:
		if done {
			page.Title = i18n.T(r.Context(), "You are unsubscribed")
		}
		page.Data = unsubscribePage{Email: masked(email), Done: done}
	}
	return c.site.Render(w, r, "unsubscribe", page)
}

// masked shows of an address what its owner knows it by: m•••@example.com.
func masked(email string) string {
	at := strings.LastIndexByte(email, '@')
	if at <= 0 {
		return "•••"
	}
	_, first := utf8.DecodeRuneInString(email)
	return email[:first] + "•••" + email[at:]
}
