package console

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/web"
	"hub.internal/pkg/web/i18n"
	"hub.internal/services/auth"
)

// accountPage is a user's own account.
// Old and New are the form in which the user gets another password.
type accountPage struct {
	Sessions []sessionRow
	Old, New web.Field
}

// sessionRow is a session as its user sees it.
// It embeds the session, so that the template reads its fields directly.
type sessionRow struct {
	auth.Session
	// This is the session that the page is looked at in.
	This bool
	// Device is the browser in words that its owner knows.
	Device string
}

// sessionRowOf is a session as who asks sees it.
func sessionRowOf(r *http.Request, s auth.Session) sessionRow {
	who, _ := web.UserOf(r.Context())
	// The id of the session names it and opens nothing, so it may stand in a page.
	return sessionRow{s, s.ID == who.Session, device(r.Context(), s.Agent)}
}

// account shows the account of who is signed in.
func (c *Console) account(w http.ResponseWriter, r *http.Request) error {
	return c.renderAccount(w, r, 0, "", "")
}

// renderAccount shows the account with what is wrong with the form of passwords, if anything.
// status is the one to answer with; 0 means 200.
func (c *Console) renderAccount(w http.ResponseWriter, r *http.Request, status int, oldProblem, newProblem string) error {
	u, _ := web.UserOf(r.Context())
	sessions, err := c.People.Sessions(r.Context(), u.ID)
	if err != nil {
		return err
	}
	ctx := r.Context()
	p := accountPage{
		Old: web.Field{
			Name: "old", Label: i18n.T(ctx, "Current password"), Type: "password", Autocomplete: "current-password", Required: true,
			Error: oldProblem, MaxLength: auth.MaxPassword,
		},
		New: web.Field{
			Name: "new", Label: i18n.T(ctx, "New password"), Type: "password", Autocomplete: "new-password", Required: true,
			Error: newProblem, MaxLength: auth.MaxPassword, Hint: i18n.T(ctx, "At least 12 characters. A few unrelated words are good."),
		},
	}
	for _, s := range sessions {
		p.Sessions = append(p.Sessions, sessionRowOf(r, s))
	}
	return c.site.Render(w, r, "account", web.Page{
		Title: i18n.T(ctx, "Your account"), Lead: i18n.T(ctx, "Who you are in Hub, and where you are signed in."), Status: status, Data: p,
	})
}

// endSession ends a session of who is signed in: another one, all others, or this one, which is logging out.
// The field session holds an id, the word "others", or nothing, which is E_VALIDATION. SignOut wants the user's id as well: the
// id of somebody else's session ends nothing.
func (c *Console) endSession(w http.ResponseWriter, r *http.Request, form url.Values) error {
	u, _ := web.UserOf(r.Context())
	switch id := form.Get("session"); id {
	case "":
		return fault.New(fault.Validation, "Say which session to end.")
	// Logging out takes the cookie away, too.
	case u.Session:
		return c.logout(w, r, form)
	case "others":
		n, err := c.People.SignOutOthers(r.Context(), u.ID, u.Session)
		if err != nil {
			return err
		}
		web.Done(w, r, signedOut(r.Context(), n))
	default:
		if err := c.People.SignOut(r.Context(), u.ID, id); err != nil {
			return err
		}
		web.Done(w, r, i18n.T(r.Context(), "That browser is signed out."))
	}
	return web.Go(w, r, "/account/sessions")
}

// signedOut says how many other browsers were signed out.
// PluralIn would count them; for none and for one a sentence of its own reads better.
func signedOut(ctx context.Context, n int) string {
	switch n {
	case 0:
		return i18n.T(ctx, "There was no other browser to sign out.")
	case 1:
		return i18n.T(ctx, "The other browser is signed out.")
	}
	return web.PluralIn(ctx, n, "other browser is signed out.", "other browsers are signed out.")
}

// changePassword takes another password from who knows the old one.
// What it refuses is shown at the field that it is about: E_AUTH_INVALID and E_RATE_LIMIT at the old password, E_VALIDATION at the
// new one. The change ends all sessions of the user, this one as well, so the browser gets the cookies of a new one.
func (c *Console) changePassword(w http.ResponseWriter, r *http.Request, form url.Values) error {
	u, _ := web.UserOf(r.Context())
	in, err := c.People.ChangePassword(r.Context(), u.Email, form.Get("old"), form.Get("new"), browser(r))
	var f *fault.Error
	switch {
	case err == nil:
	case errors.As(err, &f) && f.Code == fault.AuthInvalid:
		return c.renderAccount(w, r, http.StatusUnprocessableEntity, i18n.N("This is not your current password."), "")
	case errors.As(err, &f) && f.Code == fault.Validation:
		return c.renderAccount(w, r, http.StatusUnprocessableEntity, "", web.Problems(err)["password"])
	case errors.As(err, &f) && f.Code == fault.RateLimit:
		w.Header().Set("Retry-After", retryAfter(f.RetryAfter))
		return c.renderAccount(w, r, http.StatusTooManyRequests, f.Message, "")
	default:
		return err
	}
	setSession(w, r, in)
	web.Done(w, r, i18n.T(r.Context(), "Your password is changed. Other browsers are signed out."))
	return web.Go(w, r, "/account/sessions")
}

// device is a browser, by what it calls itself, in words that its owner knows.
// An example: "Chrome on Windows". The header User-Agent can be anything, so nothing depends on the answer.
func device(ctx context.Context, agent string) string {
	name := i18n.T(ctx, "Unknown browser")
	for _, known := range [][2]string{
		// The order counts: Edge and Opera call themselves Chrome as well, and Chrome calls itself Safari.
		{"Edg/", "Edge"}, {"OPR/", "Opera"}, {"Firefox/", "Firefox"}, {"Chrome/", "Chrome"}, {"Safari/", "Safari"}, {"curl/", "curl"},
	} {
		if strings.Contains(agent, known[0]) {
			name = known[1]
			break
		}
	}
	for _, known := range [][2]string{
		// The order counts here, too: Android names Linux, and an iPhone names "like Mac OS X".
		{"Android", "Android"}, {"iPhone", "iPhone"}, {"iPad", "iPad"}, {"Windows", "Windows"}, {"Mac OS X", "macOS"}, {"Linux", "Linux"},
	} {
		if strings.Contains(agent, known[0]) {
			return i18n.T(ctx, "%s on %s", name, known[1])
		}
	}
	return name
}
