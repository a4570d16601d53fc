// Package connect is the pages on which users link their account to Connected Apps, see which they have linked, and
// unlink them. It speaks HTML and HTTP to people, and refuses to judge what may be linked: that is for links to say.
package connect

import (
	"embed"
	"encoding/base64"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/tool"
	"hub.internal/pkg/web"
	"hub.internal/pkg/web/i18n"
	"hub.internal/services/auth/links"
)

//go:embed pages/*.html pages/*.json assets
var files embed.FS

const (
	consentPath  = links.Path + "/consent"
	declinedPath = links.Path + "/declined"
	linksPath    = "/account/links"
	// ticketCookie keeps a ticket, and where its user comes back to, out of the address bar.
	ticketCookie = "connect"
	// maxReturn bounds where a user comes back to, in bytes: none of an app's redirect URLs is longer.
	maxReturn = 500
)

// Config is what the Pages are made of.
type Config struct {
	Links *links.Service
	// PublicURL is where browsers reach Hub, when a proxy in front changes the Host header; may be empty.
	PublicURL string
	// Trusted are the keys of whose word is taken.
	Trusted *caller.Keys
	Logger  *slog.Logger
}

// Pages are the pages.
type Pages struct {
	Config
	site *web.Site
	// protection is the gateway's once more: consent is worth asking twice where a form comes from.
	protection http.CrossOriginProtection
}

// New returns the pages. Its error names the setting to mend.
func New(c Config) (*Pages, error) {
	site, err := web.New(web.Options{Service: "auth", Folder: "connect", Files: files, Keys: c.Trusted, Logger: c.Logger})
	if err != nil {
		return nil, err
	}
	p := &Pages{Config: c, site: site}
	if c.PublicURL != "" {
		u, err := url.Parse(c.PublicURL)
		if err == nil {
			err = p.protection.AddTrustedOrigin(u.Scheme + "://" + u.Host)
		}
		if err != nil {
			return nil, fmt.Errorf("HUB_PUBLIC_URL: %w", err)
		}
	}
	return p, nil
}

// Routes are the parts of the console that the pages are.
func Routes() []tool.Route {
	return []tool.Route{
		{Prefix: links.Path, Public: true},
		{Prefix: linksPath, Tab: "System", Title: "Linked apps", Position: 91},
	}
}

// Routes implements service.Console.
func (p *Pages) Routes() []tool.Route { return Routes() }

// Mount serves the pages and their assets.
func (p *Pages) Mount(mux *http.ServeMux) {
	p.site.Mount(mux)
	p.site.Handle(mux, "GET /connect", web.Anybody, p.open)
	p.site.Handle(mux, "GET /connect/consent", web.Anybody, p.ask)
	p.site.Handle(mux, "POST /connect/consent", web.Anybody, p.answer)
	p.site.Handle(mux, "GET /connect/declined", web.Anybody, p.declined)
	p.site.Handle(mux, "GET /account/links", web.SignedIn, p.list)
	p.site.Handle(mux, "GET /account/links/{id}/revoke", web.SignedIn, p.unlinking)
	p.site.Handle(mux, "POST /account/links/{id}/revoke", web.SignedIn, p.unlink)
}

// open takes a ticket out of the address bar, into a cookie. It stores nothing: anybody can come here.
func (p *Pages) open(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	text, returnURL := q.Get("t"), q.Get("returnUrl")
	if len(returnURL) > maxReturn {
		returnURL = ""
	}
	o, err := p.Links.Open(r.Context(), text, returnURL)
	if err != nil {
		return p.refused(w, r, err, "")
	}
	life := max(1, int(o.Life.Seconds()))
	http.SetCookie(w, web.Cookie(r, ticketCookie, text+"."+base64.RawURLEncoding.EncodeToString([]byte(o.ReturnURL)), life))
	return web.Go(w, r, consentPath)
}

// kept is the ticket that the browser has opened, and where its user comes back to, which is to be judged again.
func kept(r *http.Request) (text, returnURL string) {
	text, encoded, _ := strings.Cut(web.ReadCookie(r, ticketCookie), ".")
	if b, err := base64.RawURLEncoding.DecodeString(encoded); err == nil && len(b) <= maxReturn {
		returnURL = string(b)
	}
	return text, returnURL
}

// person is who is signed in; false for a visitor.
func person(r *http.Request) (links.Person, bool) {
	u, signedIn := web.UserOf(r.Context())
	return links.Person{User: u.ID, Session: u.Session, Address: web.Address(r), Agent: r.UserAgent()}, signedIn && u.Session != ""
}

// signIn leads to the log-in, and from there to the consent and nowhere else.
func signIn(w http.ResponseWriter, r *http.Request) error {
	return web.Go(w, r, "/login?next="+url.QueryEscape(consentPath))
}

// consentPage asks a user to link their account.
type consentPage struct {
	links.Offer
	// User is the app's own name for its user, as far as it is shown.
	User  string
	Asked []asked
	// Changed tells that something else was asked before.
	Changed bool
	// Next is where a user goes on to whose account is linked already.
	Next string
}

// Wider tells that the account is linked, and more is asked.
func (c consentPage) Wider() bool { return len(c.New) < len(c.Scopes) }

// asked is a scope as its user reads it.
type asked struct {
	Text string
	// New tells that the user has not agreed to it before.
	New bool
}

// ask shows what the user would agree to.
func (p *Pages) ask(w http.ResponseWriter, r *http.Request) error { return p.render(w, r, false) }

// render shows what a user is asked, or why nothing is.
func (p *Pages) render(w http.ResponseWriter, r *http.Request, changed bool) error {
	who, signedIn := person(r)
	text, returnURL := kept(r)
	if !signedIn {
		if _, err := p.Links.Open(r.Context(), text, returnURL); err != nil {
			return p.refused(w, r, err, "")
		}
		return signIn(w, r)
	}
	ctx := r.Context()
	o, err := p.Links.Offer(ctx, text, returnURL, who)
	if err != nil {
		return p.refused(w, r, err, returnURL)
	}
	c := consentPage{Offer: o, User: masked(o.ExternalUser), Changed: changed, Next: o.ReturnURL}
	for _, s := range o.Scopes {
		c.Asked = append(c.Asked, asked{inWords(ctx, s), len(without(s, o.New)) < len(o.New)})
	}
	if o.Linked {
		return p.site.Render(w, r, "linked", web.Page{Title: i18n.T(ctx, "%s is linked", o.App.Name), Plain: true, Data: c})
	}
	page := web.Page{Title: i18n.T(ctx, "Link your account to %s?", o.App.Name), Plain: true, Data: c}
	if c.Wider() {
		page.Title = i18n.T(ctx, "Allow %s more?", o.App.Name)
	}
	if changed {
		page.Status = http.StatusConflict
	}
	if o.ReturnURL != "" {
		page.FormActions = []string{formAction(o.ReturnURL)}
	}
	return p.site.Render(w, r, "consent", page)
}

// without is a list without one of its strings.
func without(s string, all []string) (rest []string) {
	for _, a := range all {
		if a != s {
			rest = append(rest, a)
		}
	}
	return rest
}

// formAction is what the policy of the page has to let its form end at. Browsers hold every redirect after a form to it, also
// those that the app makes then, to whichever of its own sites: so it is all of https, and one origin of a development machine.
func formAction(returnURL string) string {
	u, err := url.Parse(returnURL)
	switch {
	case err != nil:
		return ""
	case u.Scheme == "https":
		return "https:"
	}
	return u.Scheme + "://" + u.Host
}

// answer takes what the user says.
func (p *Pages) answer(w http.ResponseWriter, r *http.Request) error {
	if err := p.protection.Check(r); err != nil {
		return fault.New(fault.Scope,
			"This request came from another site, so it was not carried out. Open the page in Hub and try again.").Because(err)
	}
	sent, err := web.Form(r)
	if err != nil {
		return err
	}
	who, signedIn := person(r)
	if !signedIn {
		return signIn(w, r)
	}
	a := links.Answer{Form: sent.Get("form"), Person: who}
	a.Ticket, a.ReturnURL = kept(r)
	var to string
	switch sent.Get("answer") {
	case "allow":
		to, err = p.Links.Allow(r.Context(), a)
		if to == "" { // the page says then that the account is linked
			to = consentPath
		}
	case "cancel":
		to, err = p.Links.Decline(r.Context(), a)
		if to == "" {
			to = declinedPath
		}
		if err == nil {
			http.SetCookie(w, web.Cookie(r, ticketCookie, "", -1))
		}
	default:
		return fault.New(fault.Validation, "Say whether to link the account: answer is allow or cancel.")
	}
	if refusal := links.RefusalOf(err); refusal != nil && refusal.Reason == links.Stale {
		return p.render(w, r, true)
	}
	if err != nil {
		return p.refused(w, r, err, a.ReturnURL)
	}
	return web.Go(w, r, to)
}

// declined says that nothing was linked, where no app is to be told.
func (p *Pages) declined(w http.ResponseWriter, r *http.Request) error {
	return p.site.Render(w, r, "declined", web.Page{Title: i18n.T(r.Context(), "Nothing was linked"), Plain: true})
}

// refusedPage says why an account cannot be linked.
type refusedPage struct {
	Text string
	// Next leads on, if there is anything to do.
	Next web.Link
	// Stranger tells that another account could be the right one.
	Stranger bool
}

// refused tells why nothing was linked, and what to do.
func (p *Pages) refused(w http.ResponseWriter, r *http.Request, err error, returnURL string) error {
	refusal := links.RefusalOf(err)
	if refusal == nil {
		return err
	}
	ctx, app := r.Context(), refusal.App.Name
	page := web.Page{Plain: true, Status: fault.From(err).Status()}
	var d refusedPage
	switch refusal.Reason {
	case links.Used:
		page.Title = i18n.T(ctx, "This link was already used")
		d.Text = i18n.T(ctx, "Ask %s for a new link.", app)
		if refusal.Linked {
			d.Text = i18n.T(ctx, "%s is linked to your Hub account already. There is nothing left to do here.", app)
			if to := refusal.App.Returns(returnURL); to != "" {
				d.Next = web.Link{Text: i18n.T(ctx, "Go back to %s", app), Href: to}
			}
		}
	case links.Taken:
		page.Title = i18n.T(ctx, "Linked to another account")
		d.Text = i18n.T(ctx,
			"Your user of %s is linked to another Hub account. Sign in to that account and unlink it there first, at Linked apps.", app)
		d.Stranger = true
	case links.TakenForGood:
		page.Title = i18n.T(ctx, "Linked to another account")
		d.Text = i18n.T(ctx, "Your user of %s is linked to a Hub account that is disabled. Ask an administrator of Hub to end that link.", app)
	case links.Closed:
		page.Title = i18n.T(ctx, "No account can be linked to this app")
		d.Text = i18n.T(ctx, "%[1]s is not active in Hub now. Nothing was linked. Ask %[1]s when to try again.", app)
	case links.NoReturn:
		page.Title = i18n.T(ctx, "This link lacks something")
		d.Text = i18n.T(ctx, "%[1]s has to say where you go back to, and has not. Nothing was linked. Ask %[1]s for another link.", app)
	default:
		page.Title = i18n.T(ctx, "This link does not work")
		d.Text = i18n.T(ctx, "Ask the service that sent you for a new link.")
		if app != "" {
			d.Text = i18n.T(ctx, "Ask %s for a new link.", app)
		}
	}
	page.Data = d
	return p.site.Render(w, r, "refused", page)
}
