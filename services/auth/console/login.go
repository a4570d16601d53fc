package console

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/text"
	"hub.internal/pkg/web"
	"hub.internal/pkg/web/i18n"
	"hub.internal/services/auth"
)

// start is where a log-in leads when it is not told: the gateway finds the user's first page.
const start = "/"

// next is where the log-in goes on to: a page of this console, but not one of signing in or out.
// Anything else, such as https://evil.example or //evil.example, is start: a log-in must not be an open redirect.
func next(address string) string {
	path := web.LocalPath(address, start)
	bare, _, _ := strings.Cut(path, "?")
	if web.Below(bare, "/login") || web.Below(bare, "/logout") {
		return start
	}
	return path
}

// loginForm is the form of the log-in.
type loginForm struct {
	Email, Password web.Field
	// Next is where to go on to, as a hidden field of the form.
	Next    string
	Problem string
	// OIDC shows the button of the log-in provider, where one is configured.
	OIDC bool
}

// renderLogin shows the form with what went wrong.
func (c *Console) renderLogin(w http.ResponseWriter, r *http.Request, status int, next, email, problem string) error {
	f := loginForm{
		Next: next, Problem: problem, OIDC: c.SingleSignOn != nil,
		Email: web.Field{
			Name: "email", Label: i18n.T(r.Context(), "E-mail"), Type: "email", Value: email, Autocomplete: "username", Required: true,
			// The first field that is still empty has the focus.
			Autofocus: email == "", MaxLength: auth.MaxEmail,
		},
		Password: web.Field{
			Name: "password", Label: i18n.T(r.Context(), "Password"), Type: "password", Autocomplete: "current-password", Required: true,
			Autofocus: email != "", MaxLength: auth.MaxPassword,
		},
	}
	return c.site.Render(w, r, "login", web.Page{Title: i18n.T(r.Context(), "Sign in"), Plain: true, Status: status, Data: f})
}

// throttledLogin says that there were too many attempts, and when the next one is worth while.
func (c *Console) throttledLogin(w http.ResponseWriter, r *http.Request, next, email string, f *fault.Error) error {
	w.Header().Set("Retry-After", retryAfter(f.RetryAfter))
	return c.renderLogin(w, r, http.StatusTooManyRequests, next, email, f.Message)
}

// loginPage shows the form, but to nobody who is signed in.
func (c *Console) loginPage(w http.ResponseWriter, r *http.Request) error {
	to := next(r.URL.Query().Get("next"))
	if _, signedIn := web.UserOf(r.Context()); signedIn {
		return web.Go(w, r, to)
	}
	return c.renderLogin(w, r, 0, to, "", "")
}

// login signs a user in by password. A wrong password and an unknown address look alike.
// Both are E_AUTH_INVALID, and status 401. E_RATE_LIMIT is status 429 with Retry-After; the form keeps the address that was typed.
func (c *Console) login(w http.ResponseWriter, r *http.Request, form url.Values) error {
	email, to := strings.TrimSpace(form.Get("email")), next(form.Get("next"))
	in, err := c.People.SignIn(r.Context(), email, form.Get("password"), browser(r))
	if err != nil {
		f := fault.From(err)
		switch f.Code {
		case fault.AuthInvalid:
			return c.renderLogin(w, r, http.StatusUnauthorized, to, email, f.Message)
		case fault.RateLimit:
			return c.throttledLogin(w, r, to, email, f)
		}
		return err
	}
	setSession(w, r, in)
	return web.Go(w, r, to)
}

// setSession leaves with the browser what it has got: a session, and what makes it known to be its user's for longer than that.
// The session's cookie has no Max-Age: it ends with the browser, or earlier with the session itself.
func setSession(w http.ResponseWriter, r *http.Request, in auth.SignedIn) {
	http.SetCookie(w, web.Cookie(r, web.SessionCookie, in.Secret.Reveal(), 0))
	http.SetCookie(w, web.Cookie(r, web.BrowserCookie, in.Known.Reveal(), int(auth.KnownFor.Seconds())))
	if in.Language != "" {
		http.SetCookie(w, languageCookie(r, in.Language))
	}
}

// languageCookie has the browser remember a language for a year.
func languageCookie(r *http.Request, code string) *http.Cookie {
	return web.Cookie(r, web.LanguageCookie, code, 365*24*60*60)
}

// language takes the choice of a language, keeps it with who is signed in, so that it follows them to other browsers, and goes back to the
// page on which it was made.
// An unknown language is E_VALIDATION. Signing in is not needed: the footer of the log-in page has the choice, too.
func (c *Console) language(w http.ResponseWriter, r *http.Request, form url.Values) error {
	to := form.Get("to")
	if !slices.ContainsFunc(i18n.Languages, func(l i18n.Language) bool { return l.Code() == to }) {
		return fault.New(fault.Validation, "The console has no language %q.", text.Shown(to, maxSearch))
	}
	if u, signedIn := web.UserOf(r.Context()); signedIn {
		if err := c.People.SetLanguage(r.Context(), u.ID, to); err != nil {
			return err
		}
	}
	http.SetCookie(w, languageCookie(r, to))
	return web.Go(w, r, web.LocalPath(form.Get("next"), start))
}

// flowCookie holds the auth.Flow of a log-in through the provider; flowLifetime is in seconds.
const flowCookie, flowLifetime = "signin", 600

// begin sends the browser to the provider (OIDC authorization code flow with PKCE). What has to be known afterwards is in a
// cookie.
// The verifier of PKCE (RFC 7636) is in it as well, so an authorization code that was stolen on the way back opens nothing.
func (c *Console) begin(w http.ResponseWriter, r *http.Request) error {
	if c.SingleSignOn == nil {
		return fault.New(fault.NotFound, "Single sign-on is not set up.")
	}
	f := auth.Flow{State: randomToken(), Nonce: randomToken(), Verifier: randomToken(), Next: next(r.URL.Query().Get("next"))}
	to, err := c.SingleSignOn.Begin(r.Context(), f)
	if err != nil {
		return err
	}
	b, err := json.Marshal(f)
	if err != nil {
		return err
	}
	http.SetCookie(w, web.Cookie(r, flowCookie, base64.RawURLEncoding.EncodeToString(b), flowLifetime))
	return web.Go(w, r, to)
}

// finish takes the browser back from the provider. The state ties it to the browser that began; each way back costs what a
// failed log-in costs, until it works.
func (c *Console) finish(w http.ResponseWriter, r *http.Request) error {
	if c.SingleSignOn == nil {
		return fault.New(fault.NotFound, "Single sign-on is not set up.")
	}
	f, err := flowOf(r)
	http.SetCookie(w, web.Cookie(r, flowCookie, "", -1)) // once, whatever comes of it
	if err != nil {
		return err
	}
	q := r.URL.Query()
	if subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(f.State)) != 1 {
		return staleFlow()
	}
	// From here on Hub asks the provider. Anybody can make it do so, hence the throttle.
	worked, err := c.People.Ask(r.Context(), browser(r))
	if fault.Is(err, fault.RateLimit) {
		return c.throttledLogin(w, r, f.Next, "", fault.From(err))
	}
	if err != nil {
		return err
	}
	if q.Get("error") != "" {
		c.Logger.InfoContext(r.Context(), "log-in refused by the provider", "error", fmt.Sprintf("%.100s", q.Get("error")))
		return c.renderLogin(w, r, http.StatusUnauthorized, f.Next, "", i18n.N("The log-in was cancelled, or the provider refused it."))
	}
	who, err := c.SingleSignOn.Finish(r.Context(), f, q.Get("code"), q.Get("iss"))
	if err == nil {
		var in auth.SignedIn
		if in, err = c.People.SignInVerified(r.Context(), who.Email, who.Name, who.Roles, browser(r)); err == nil {
			worked()
			setSession(w, r, in)
			return web.Go(w, r, f.Next)
		}
	}
	// A refusal of the provider or of People is shown above the form; a provider that does not answer is an error page.
	if refusal := fault.From(err); refusal.Status() < 500 {
		c.Logger.InfoContext(r.Context(), "log-in through the provider refused", "error", err)
		return c.renderLogin(w, r, http.StatusUnauthorized, f.Next, "", refusal.Message)
	}
	return err
}

// flowOf reads the cookie of begin.
// The browser can write what it likes into it, so next judges the address once more.
func flowOf(r *http.Request) (auth.Flow, error) {
	var f auth.Flow
	b, err := base64.RawURLEncoding.DecodeString(web.ReadCookie(r, flowCookie))
	if err != nil || json.Unmarshal(b, &f) != nil || f.State == "" || f.Nonce == "" || f.Verifier == "" {
		return auth.Flow{}, staleFlow()
	}
	f.Next = next(f.Next)
	return f, nil
}

// staleFlow is the refusal of a way back that was not begun here.
func staleFlow() error {
	return fault.New(fault.Validation, "This log-in has not begun in this browser, or took longer than ten minutes. Start again at /login.")
}

// randomToken draws 256 bits.
func randomToken() string {
	var b [32]byte
	_, _ = rand.Read(b[:])
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// logoutPage asks before the session ends.
func (c *Console) logoutPage(w http.ResponseWriter, r *http.Request) error {
	if _, signedIn := web.UserOf(r.Context()); !signedIn {
		return web.Go(w, r, "/login")
	}
	return c.site.Render(w, r, "logout", web.Page{Title: i18n.T(r.Context(), "Sign out"), Plain: true,
		Lead: i18n.T(r.Context(), "You are about to leave Hub in this browser.")})
}

// logout ends the session. A form that names a next page leads to the log-in that goes on to it: for somebody who is not
// who is signed in.
func (c *Console) logout(w http.ResponseWriter, r *http.Request, form url.Values) error {
	to := "/login"
	if after := next(form.Get("next")); after != start {
		to += "?next=" + url.QueryEscape(after)
	}
	if u, signedIn := web.UserOf(r.Context()); signedIn {
		if err := c.People.SignOut(r.Context(), u.ID, u.Session); err != nil {
			return err
		}
	}
	http.SetCookie(w, web.Cookie(r, web.SessionCookie, "", -1))
	web.Done(w, r, i18n.T(r.Context(), "You are signed out."))
	return web.Go(w, r, to)
}
