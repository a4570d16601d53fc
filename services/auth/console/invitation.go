package console

import (
	"net/http"
	"net/url"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/web"
	"hub.internal/pkg/web/i18n"
	"hub.internal/services/auth"
)

const (
	// invitationCookie keeps an invitation out of the address bar, for as long as somebody thinks of a password.
	invitationCookie, invitationMinutes = "invitation", 30
)

// invitationPage asks an invited user for a password.
type invitationPage struct {
	Email    string
	Password web.Field
}

// invitation is where an invitation's link leads.
// The first visit has the secret in ?t=, puts it into the cookie and leads on to the same page without it, so that neither the
// address bar nor a Referer shows the secret. Looking uses nothing up: a program that opens links in mails does no harm.
func (c *Console) invitation(w http.ResponseWriter, r *http.Request) error {
	if secret := r.URL.Query().Get("t"); secret != "" {
		if len(secret) > maxSearch {
			return auth.NoInvitation()
		}
		http.SetCookie(w, web.Cookie(r, invitationCookie, secret, invitationMinutes*60))
		return web.Go(w, r, auth.InvitationPath)
	}
	return c.renderAcceptance(w, r, 0, "")
}

// renderAcceptance shows the form with a problem of the password, if any.
// E_NOT_FOUND for an invitation that is unknown, used or too old: all are one answer.
func (c *Console) renderAcceptance(w http.ResponseWriter, r *http.Request, status int, problem string) error {
	u, err := c.People.Invited(r.Context(), web.ReadCookie(r, invitationCookie))
	if err != nil {
		return err
	}
	p := invitationPage{u.Email, web.Field{
		Name: "password", Label: i18n.T(r.Context(), "New password"), Type: "password", Autocomplete: "new-password", Required: true,
		Autofocus: true, MaxLength: auth.MaxPassword, Error: problem,
		Hint: i18n.T(r.Context(), "At least 12 characters. A few unrelated words are good."),
	}}
	return c.site.Render(w, r, "invitation", web.Page{
		Title: i18n.T(r.Context(), "Choose your password"), Lead: i18n.T(r.Context(), "You sign in to Hub with %s.", u.Email), Plain: true,
		Status: status, Data: p,
	})
}

// accept sets the password and signs the user in.
// A password that is refused leaves the invitation as it is, and the form is shown again.
func (c *Console) accept(w http.ResponseWriter, r *http.Request, form url.Values) error {
	in, err := c.People.Accept(r.Context(), web.ReadCookie(r, invitationCookie), form.Get("password"), browser(r))
	if problem := web.Problems(err)["password"]; problem != "" {
		return c.renderAcceptance(w, r, http.StatusUnprocessableEntity, problem)
	}
	if fault.Is(err, fault.RateLimit) {
		return c.renderAcceptance(w, r, http.StatusTooManyRequests, fault.From(err).Message)
	}
	if err != nil {
		return err
	}
	http.SetCookie(w, web.Cookie(r, invitationCookie, "", -1))
	setSession(w, r, in)
	web.Done(w, r, i18n.T(r.Context(), "Your password is set, and you are signed in."))
	return web.Go(w, r, start)
}
