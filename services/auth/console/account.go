package console

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/web"
	"hub.internal/services/auth"
)

// accountPage is a user's own account.
type accountPage struct {
	Sessions []sessionRow
	Old, New web.Field
}

// sessionRow is a session as its user sees it.
type sessionRow struct {
	auth.Session
	// This is the session that the page is looked at in.
	This bool
}

// account shows the account of who is signed in.
func (c *Console) account(w http.ResponseWriter, r *http.Request) error {
	return c.renderAccount(w, r, 0, "", "")
}

// renderAccount shows the account with what is wrong with the form of passwords, if anything.
func (c *Console) renderAccount(w http.ResponseWriter, r *http.Request, status int, oldProblem, newProblem string) error {
	u, _ := web.UserOf(r.Context())
	sessions, err := c.People.Sessions(r.Context(), u.ID)
	if err != nil {
		return err
	}
	p := accountPage{
		Old: web.Field{
			Name: "old", Label: "Current password", Type: "password", Autocomplete: "current-password", Required: true,
			Error: oldProblem, MaxLength: auth.MaxPassword,
		},
		New: web.Field{
			Name: "new", Label: "New password", Type: "password", Autocomplete: "new-password", Required: true,
			Error: newProblem, MaxLength: auth.MaxPassword, Hint: "At least 12 characters. A few unrelated words are good.",
		},
	}
	for _, s := range sessions {
		p.Sessions = append(p.Sessions, sessionRow{s, s.ID == u.Session})
	}
	return c.site.Render(w, r, "account", web.Page{
		Title: "Your account", Lead: "Who you are in Hub, and where you are signed in.", Status: status, Data: p,
	})
}

// endSession ends a session of who is signed in: another one, all others, or this one, which is logging out.
func (c *Console) endSession(w http.ResponseWriter, r *http.Request, form url.Values) error {
	u, _ := web.UserOf(r.Context())
	switch id := form.Get("session"); id {
	case "":
		return fault.New(fault.Validation, "Say which session to end.")
	case u.Session:
		return c.logout(w, r, form)
	case "others":
		n, err := c.People.SignOutOthers(r.Context(), u.ID, u.Session)
		if err != nil {
			return err
		}
		web.Done(w, r, signedOut(n))
	default:
		if err := c.People.SignOut(r.Context(), u.ID, id); err != nil {
			return err
		}
		web.Done(w, r, "That browser is signed out.")
	}
	return web.Go(w, r, "/account/sessions")
}

// signedOut says how many other browsers were signed out.
func signedOut(n int) string {
	switch n {
	case 0:
		return "There was no other browser to sign out."
	case 1:
		return "The other browser is signed out."
	}
	return web.Number(n) + " other browsers are signed out."
}

// changePassword takes another password from who knows the old one.
func (c *Console) changePassword(w http.ResponseWriter, r *http.Request, form url.Values) error {
	u, _ := web.UserOf(r.Context())
	in, err := c.People.ChangePassword(r.Context(), u.Email, form.Get("old"), form.Get("new"), browser(r))
	var f *fault.Error
	switch {
	case err == nil:
	case errors.As(err, &f) && f.Code == fault.AuthInvalid:
		return c.renderAccount(w, r, http.StatusUnprocessableEntity, "This is not your current password.", "")
	case errors.As(err, &f) && f.Code == fault.Validation:
		return c.renderAccount(w, r, http.StatusUnprocessableEntity, "", web.Problems(err)["password"])
	case errors.As(err, &f) && f.Code == fault.RateLimit:
		w.Header().Set("Retry-After", retryAfter(f.RetryAfter))
		return c.renderAccount(w, r, http.StatusTooManyRequests, f.Message, "")
	default:
		return err
	}
	setSession(w, r, in)
	web.Done(w, r, "Your password is changed. Other browsers are signed out.")
	return web.Go(w, r, "/account/sessions")
}

// Device is the browser in words that its owner knows.
func (s sessionRow) Device() string {
	name := "Unknown browser"
	for _, known := range [][2]string{
		{"Edg/", "Edge"}, {"OPR/", "Opera"}, {"Firefox/", "Firefox"}, {"Chrome/", "Chrome"}, {"Safari/", "Safari"}, {"curl/", "curl"},
	} {
		if strings.Contains(s.Agent, known[0]) {
			name = known[1]
			break
		}
	}
	for _, known := range [][2]string{
		{"Android", "Android"}, {"iPhone", "iPhone"}, {"iPad", "iPad"}, {"Windows", "Windows"}, {"Mac OS X", "macOS"}, {"Linux", "Linux"},
	} {
		if strings.Contains(s.Agent, known[0]) {
			return name + " on " + known[1]
		}
	}
	return name
}
