package auth

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/tool"
	"hub.internal/pkg/web"
)

//go:embed pages/*.html
var pages embed.FS

// Flow is a log-in through an OIDC provider that has begun: it stays with the browser until
// the provider sends that browser back.
type Flow struct {
	State    string `json:"s"`
	Nonce    string `json:"n"`
	Verifier string `json:"v"`
	Next     string `json:"x"`
}

// Identity is whom an OIDC provider vouches for.
type Identity struct {
	Email, Name string
	// Roles are those that the provider's claims map to; nil leaves them to Hub.
	Roles []string
}

// SingleSignOn is an OIDC provider.
type SingleSignOn interface {
	// Begin returns where to send the browser.
	Begin(ctx context.Context, f Flow) (string, error)
	// Finish redeems what the provider has sent the browser back with. Its errors are faults.
	Finish(ctx context.Context, f Flow, code, issuer string) (Identity, error)
}

// Console is auth's pages.
type Console struct {
	people *People
	sso    SingleSignOn
	site   *web.Site
	logger *slog.Logger
}

// NewConsole returns the pages; sso may be nil.
func NewConsole(p *People, sso SingleSignOn, keys *caller.Keys, logger *slog.Logger) (*Console, error) {
	files, err := fs.Sub(pages, "pages")
	if err != nil {
		return nil, err
	}
	site, err := web.New(web.Options{Service: "auth", Pages: files, Keys: keys, Logger: logger})
	return &Console{p, sso, site, logger}, err
}

// Routes implements service.Console.
func (c *Console) Routes() []tool.Route { return Routes() }

// Mount serves the pages and their assets.
func (c *Console) Mount(mux *http.ServeMux) {
	c.site.Mount(mux)
	c.site.Handle(mux, "GET /login", web.Anybody, c.loginPage)
	c.site.Handle(mux, "POST /login", web.Anybody, c.login)
	c.site.Handle(mux, "GET /login/oidc", web.Anybody, c.begin)
	c.site.Handle(mux, "GET /login/oidc/callback", web.Anybody, c.finish)
	c.site.Handle(mux, "GET /logout", web.Anybody, c.logoutPage)
	c.site.Handle(mux, "POST /logout", web.Anybody, c.logout)
	c.site.Handle(mux, "GET /account/sessions", web.SignedIn, c.account)
	c.site.Handle(mux, "POST /account/sessions/end", web.SignedIn, c.endSession)
	c.site.Handle(mux, "POST /account/sessions/password", web.SignedIn, c.changePassword)
}

// start is where a log-in leads when it is not told: the gateway finds the user's first page.
const start = "/"

// next is where the log-in goes on to: a page of this console, but not one of signing in or out.
func next(text string) string {
	path := web.LocalPath(text, start)
	bare, _, _ := strings.Cut(path, "?")
	if web.Below(bare, "/login") || web.Below(bare, "/logout") {
		return start
	}
	return path
}

type loginForm struct {
	Email, Password web.Field
	Next            string
	Problem         string
	OIDC            bool
}

func (c *Console) renderLogin(w http.ResponseWriter, r *http.Request, status int, next, email, problem string) error {
	f := loginForm{Next: next, Problem: problem, OIDC: c.sso != nil,
		Email:    web.Field{Name: "email", Label: "E-mail", Type: "email", Value: email, Autocomplete: "username", Required: true, Autofocus: email == "", MaxLength: maxEmail},
		Password: web.Field{Name: "password", Label: "Password", Type: "password", Autocomplete: "current-password", Required: true, Autofocus: email != "", MaxLength: maxPassword}}
	return c.site.Render(w, r, "login", web.Page{Title: "Sign in", Plain: true, Status: status, Data: f})
}

func (c *Console) throttledLogin(w http.ResponseWriter, r *http.Request, next, email string, f *fault.Error) error {
	w.Header().Set("Retry-After", seconds(f.RetryAfter))
	return c.renderLogin(w, r, http.StatusTooManyRequests, next, email, f.Message)
}

func (c *Console) loginPage(w http.ResponseWriter, r *http.Request) error {
	to := next(r.URL.Query().Get("next"))
	if _, signedIn := web.UserOf(r.Context()); signedIn {
		return web.Go(w, r, to)
	}
	return c.renderLogin(w, r, 0, to, "", "")
}

func (c *Console) login(w http.ResponseWriter, r *http.Request) error {
	form, err := web.Form(r)
	if err != nil {
		return err
	}
	email, to := strings.TrimSpace(form.Get("email")), next(form.Get("next"))
	in, err := c.people.SignIn(r.Context(), email, form.Get("password"), browser(r))
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
	keep(w, r, in)
	return web.Go(w, r, to)
}

// browserCookie makes a browser known to be its user's, for longer than a session.
const browserCookie = "browser"

// keep leaves with the browser what it has got.
func keep(w http.ResponseWriter, r *http.Request, in SignedIn) {
	http.SetCookie(w, web.Cookie(r, web.SessionCookie, in.Secret.Reveal(), 0))
	http.SetCookie(w, web.Cookie(r, browserCookie, in.Known.Reveal(), int(knownFor.Seconds())))
}

const flowCookie, flowLifetime = "signin", 600

func (c *Console) begin(w http.ResponseWriter, r *http.Request) error {
	if c.sso == nil {
		return fault.New(fault.NotFound, "Single sign-on is not set up.")
	}
	f := Flow{State: random(), Nonce: random(), Verifier: random(), Next: next(r.URL.Query().Get("next"))}
	to, err := c.sso.Begin(r.Context(), f)
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

func (c *Console) finish(w http.ResponseWriter, r *http.Request) error {
	if c.sso == nil {
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
	worked, err := c.people.Ask(r.Context(), browser(r))
	if fault.Is(err, fault.RateLimit) {
		return c.throttledLogin(w, r, f.Next, "", fault.From(err))
	}
	if err != nil {
		return err
	}
	if q.Get("error") != "" {
		c.logger.InfoContext(r.Context(), "log-in refused by the provider", "error", bounded(q.Get("error"), 100))
		return c.renderLogin(w, r, http.StatusUnauthorized, f.Next, "", "The log-in was cancelled, or the provider refused it.")
	}
	who, err := c.sso.Finish(r.Context(), f, q.Get("code"), q.Get("iss"))
	if err == nil {
		var in SignedIn
		if in, err = c.people.SignInVerified(r.Context(), who.Email, who.Name, who.Roles, browser(r)); err == nil {
			worked()
			keep(w, r, in)
			return web.Go(w, r, f.Next)
		}
	}
	if refusal := fault.From(err); refusal.Status() < 500 {
		c.logger.InfoContext(r.Context(), "log-in through the provider refused", "error", err)
		return c.renderLogin(w, r, http.StatusUnauthorized, f.Next, "", refusal.Message)
	}
	return err
}

func flowOf(r *http.Request) (Flow, error) {
	var f Flow
	b, err := base64.RawURLEncoding.DecodeString(web.ReadCookie(r, flowCookie))
	if err != nil || json.Unmarshal(b, &f) != nil || f.State == "" || f.Nonce == "" || f.Verifier == "" {
		return Flow{}, staleFlow()
	}
	f.Next = next(f.Next)
	return f, nil
}

func staleFlow() error {
	return fault.New(fault.Validation, "This log-in has not begun in this browser, or took longer than ten minutes. Start again at /login.")
}

func random() string {
	var b [32]byte
	_, _ = rand.Read(b[:])
	return base64.RawURLEncoding.EncodeToString(b[:])
}

func (c *Console) logoutPage(w http.ResponseWriter, r *http.Request) error {
	if _, signedIn := web.UserOf(r.Context()); !signedIn {
		return web.Go(w, r, "/login")
	}
	return c.site.Render(w, r, "logout", web.Page{Title: "Sign out", Plain: true, Lead: "You are about to leave Hub in this browser."})
}

func (c *Console) logout(w http.ResponseWriter, r *http.Request) error {
	if u, signedIn := web.UserOf(r.Context()); signedIn {
		if err := c.people.SignOut(r.Context(), u.ID, u.Session); err != nil {
			return err
		}
	}
	http.SetCookie(w, web.Cookie(r, web.SessionCookie, "", -1))
	web.Done(w, r, "You are signed out.")
	return web.Go(w, r, "/login")
}

type accountPage struct {
	Sessions []Session
	This     string
	Old, New web.Field
	Roles    string
}

func (c *Console) account(w http.ResponseWriter, r *http.Request) error {
	return c.renderAccount(w, r, 0, "", "")
}

func (c *Console) renderAccount(w http.ResponseWriter, r *http.Request, status int, oldProblem, newProblem string) error {
	u, signedIn := web.UserOf(r.Context())
	if !signedIn {
		return fault.New(fault.AuthMissing, "Sign in to see this page.")
	}
	sessions, err := c.people.Sessions(r.Context(), u.ID)
	if err != nil {
		return err
	}
	p := accountPage{Sessions: sessions, This: u.Session, Roles: strings.Join(u.Roles, ", "),
		Old: web.Field{Name: "old", Label: "Current password", Type: "password", Autocomplete: "current-password", Required: true, Error: oldProblem, MaxLength: maxPassword},
		New: web.Field{Name: "new", Label: "New password", Type: "password", Autocomplete: "new-password", Required: true, Error: newProblem, MaxLength: maxPassword,
			Hint: "At least 12 characters. A few unrelated words are good."}}
	return c.site.Render(w, r, "account", web.Page{Title: "Your account", Lead: "Who you are in Hub, and where you are signed in.", Status: status, Data: p})
}

func (c *Console) endSession(w http.ResponseWriter, r *http.Request) error {
	u, signedIn := web.UserOf(r.Context())
	if !signedIn {
		return fault.New(fault.AuthMissing, "Sign in to see this page.")
	}
	form, err := web.Form(r)
	if err != nil {
		return err
	}
	switch id := form.Get("session"); id {
	case "":
		return fault.New(fault.Validation, "Say which session to end.")
	case u.Session:
		return c.logout(w, r)
	case "others":
		n, err := c.people.SignOutOthers(r.Context(), u.ID, u.Session)
		if err != nil {
			return err
		}
		web.Done(w, r, signedOut(n))
	default:
		if err := c.people.SignOut(r.Context(), u.ID, id); err != nil {
			return err
		}
		web.Done(w, r, "That browser is signed out.")
	}
	return web.Go(w, r, "/account/sessions")
}

func signedOut(n int) string {
	switch n {
	case 0:
		return "There was no other browser to sign out."
	case 1:
		return "The other browser is signed out."
	}
	return web.Number(n) + " other browsers are signed out."
}

func (c *Console) changePassword(w http.ResponseWriter, r *http.Request) error {
	u, signedIn := web.UserOf(r.Context())
	if !signedIn {
		return fault.New(fault.AuthMissing, "Sign in to see this page.")
	}
	form, err := web.Form(r)
	if err != nil {
		return err
	}
	in, err := c.people.ChangePassword(r.Context(), u.Email, form.Get("old"), form.Get("new"), browser(r))
	var f *fault.Error
	switch {
	case err == nil:
	case errors.As(err, &f) && f.Code == fault.AuthInvalid:
		return c.renderAccount(w, r, http.StatusUnprocessableEntity, "This is not your current password.", "")
	case errors.As(err, &f) && f.Code == fault.Validation:
		return c.renderAccount(w, r, http.StatusUnprocessableEntity, "", web.Problems(err)["password"])
	case errors.As(err, &f) && f.Code == fault.RateLimit:
		w.Header().Set("Retry-After", seconds(f.RetryAfter))
		return c.renderAccount(w, r, http.StatusTooManyRequests, f.Message, "")
	default:
		return err
	}
	keep(w, r, in)
	web.Done(w, r, "Your password is changed. Other browsers are signed out.")
	return web.Go(w, r, "/account/sessions")
}

func browser(r *http.Request) Browser {
	u, _ := web.UserOf(r.Context())
	return Browser{Address: web.Address(r), Agent: r.UserAgent(), Session: u.Session, Known: web.ReadCookie(r, browserCookie)}
}

func seconds(d time.Duration) string {
	return strconv.Itoa(max(1, int((d + time.Second - 1).Seconds())))
}

// Device is the browser in words that its owner knows.
func (s Session) Device() string {
	name := "Unknown browser"
	for _, known := range [][2]string{{"Edg/", "Edge"}, {"OPR/", "Opera"}, {"Firefox/", "Firefox"}, {"Chrome/", "Chrome"}, {"Safari/", "Safari"}, {"curl/", "curl"}} {
		if strings.Contains(s.Agent, known[0]) {
			name = known[1]
			break
		}
	}
	for _, known := range [][2]string{{"Android", "Android"}, {"iPhone", "iPhone"}, {"iPad", "iPad"}, {"Windows", "Windows"}, {"Mac OS X", "macOS"}, {"Linux", "Linux"}} {
		if strings.Contains(s.Agent, known[0]) {
			return name + " on " + known[1]
		}
	}
	return name
}
