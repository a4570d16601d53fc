// Package console is the part of the gateway for people with browsers: session, role, and a reverse proxy to the service
// that has the page, with the navigation that all pages share. It takes no API key, and the API takes no cookie.
//
// A visit goes on as long as nothing refuses it: a form that another site has sent, a session that does not hold, a role that
// is missing, and for visitors a place among the visitors. Then its request is the owner's, who sees the person in the
// internal token and never the session's cookie.
package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/remote"
	"hub.internal/pkg/rpc"
	"hub.internal/pkg/telemetry"
	"hub.internal/pkg/web"
	"hub.internal/pkg/web/i18n"
	"hub.internal/services/gateway/catalog"
	"hub.internal/services/gateway/edge"
	"hub.internal/services/gateway/reference"
)

const (
	// consoleTimeout bounds a page's request, an upload included.
	consoleTimeout = 60 * time.Second
	// maxUpload bounds the body of a page's request; its owner may bound it tighter.
	maxUpload = 32 << 20
)

// Console serves people with browsers: session → role → the owner named in its manifest.
type Console struct {
	// Edge makes a Call of each request, has the limits, and knows the services.
	Edge     *edge.Gateway
	Sessions *SessionCache
	// Pages renders errors and the API reference, Own the gateway's own pages: the entrance, and that of a search.
	Pages, Own *web.Site
	// PlainCookies is set where the console is used over plain HTTP.
	PlainCookies bool
	// Menus are further tabs of the navigation; may be nil.
	Menus *Menus
	// Protection refuses requests that other sites make a browser send.
	Protection http.CrossOriginProtection
	// Visitors are the places of people who are not signed in.
	Visitors *Visitors
}

// Options are what a Console needs.
type Options struct {
	Edge *edge.Gateway
	// Auth knows the sessions.
	Auth *remote.Client
	// Menus are further tabs of the navigation.
	Menus *Menus
	// Site makes the site of the gateway's own pages.
	Site         func(web.Options) (*web.Site, error)
	PlainCookies bool
	// PublicURL is where browsers reach the gateway, when a proxy in front changes the Host header; may be empty.
	PublicURL string
}

// New makes the part for people. Its error names the setting to mend.
func New(o Options) (*Console, error) {
	pages, err := o.Site(web.Options{Files: reference.Files})
	if err != nil {
		return nil, err
	}
	own, err := o.Site(web.Options{Files: Files, Folder: "console"})
	if err != nil {
		return nil, err
	}
	c := &Console{Edge: o.Edge, Sessions: NewSessionCache(AskAuthForSession(o.Auth), time.Now), Pages: pages, Own: own,
		Menus: o.Menus, PlainCookies: o.PlainCookies, Visitors: NewVisitors(AskAuthForBrowser(o.Auth), time.Now)}
	if o.PublicURL != "" {
		if err := c.Protection.AddTrustedOrigin(strings.TrimRight(o.PublicURL, "/")); err != nil {
			return nil, fmt.Errorf("HUB_PUBLIC_URL: %w", err)
		}
	}
	return c, nil
}

// visit is one request of a browser.
type visit struct {
	*edge.Call
	w       http.ResponseWriter
	r       *http.Request
	route   *catalog.ConsoleRoute
	session Session
	// secret is the session's cookie, as it was sent.
	secret string
	// suspects are what a visitor's lookup of a secret in an address counts against if there is none.
	suspects []edge.Bucket
	// tls tells that the browser's connection is encrypted.
	tls bool
}

// html tells whether a person looks at the answer.
func (v *visit) html() bool { return strings.Contains(v.r.Header.Get("Accept"), "text/html") }

// visitOf begins the visit of a request.
func (k *Console) visitOf(w http.ResponseWriter, r *http.Request) *visit {
	return &visit{Call: k.Edge.NewCall(r), w: w, r: r, tls: k.encrypted(r)}
}

// ServeHTTP answers a request of the console, and whatever nobody has a path for.
func (k *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	v := k.visitOf(w, r)
	ours := k.Edge.Catalog.ConsoleRoute("/login") != nil
	_, signedIn := r.Cookie(web.CookieName(web.SessionCookie, k.PlainCookies))
	// ServeMux cleans what is written plainly; "%2e%2e" is left to us, and means nothing here.
	if isClean(r.URL.Path) {
		v.route = k.Edge.Catalog.ConsoleRoute(r.URL.Path)
	}
	switch {
	case ours && isOwn(r) && (v.html() || signedIn == nil):
	case v.route == nil && web.Below(r.URL.Path, "/assets/gateway/console"):
		k.Own.Assets().ServeHTTP(w, r)
		return
	case v.route == nil && web.Below(r.URL.Path, "/assets/gateway"):
		k.Pages.Assets().ServeHTTP(w, r)
		return
	case v.route == nil && k.Pages.Icon(r.URL.Path) != nil:
		k.Pages.Icon(r.URL.Path).ServeHTTP(w, r)
		return
	case v.route == nil && v.html() && ours:
		k.setHeaders(v)
		k.notFound(v)
		return
	case v.route == nil:
		k.Edge.NotFound(w, r)
		return
	}
	k.setHeaders(v)
	name := "console /"
	if v.route != nil {
		name = "console " + v.route.Prefix
	}
	ctx := otel.GetTextMapPropagator().Extract(r.Context(), propagation.HeaderCarrier(r.Header))
	ctx, cancel := context.WithTimeout(ctx, consoleTimeout)
	defer cancel()
	visit := rpc.Recover(k.Edge.Logger)(func(ctx context.Context, _ any) (any, error) {
		v.r = r.WithContext(ctx)
		return nil, k.visit(ctx, v)
	})
	if _, err := telemetry.EndpointBy("console", func(any) string { return name })(visit)(ctx, nil); err != nil {
		k.fail(v, err)
	}
}

// isOwn tells that a request reads a page of the gateway's own: the first one, or that of a search.
func isOwn(r *http.Request) bool {
	return (r.URL.Path == "/" || r.URL.Path == searchPath) && (r.Method == http.MethodGet || r.Method == http.MethodHead)
}

// notFound answers a person that nobody has the path, with the tabs of whoever is signed in.
func (k *Console) notFound(v *visit) {
	ctx, cancel := context.WithTimeout(v.r.Context(), menusPatience)
	defer cancel()
	v.secret = web.ReadCookie(v.r, web.SessionCookie)
	v.session, _ = k.session(ctx, v) // without it the page has no tabs
	k.fail(v, fault.New(fault.NotFound, "There is nothing at %s.", catalog.Shown(v.r.URL.Path)))
}

// isClean tells whether a path has no empty, "." or ".." element.
func isClean(p string) bool { return p == "/" || path.Clean(p) == strings.TrimSuffix(p, "/") }

// encrypted tells that the browser's connection is.
func (k *Console) encrypted(r *http.Request) bool {
	return r.TLS != nil || k.Edge.TrustedHops > 0 && r.Header.Get("X-Forwarded-Proto") == "https"
}

// setHeaders sets what every answer of the console has; its owner may set the policy and the
// caching otherwise.
func (k *Console) setHeaders(v *visit) {
	h := v.w.Header()
	web.Secure(h)
	h.Set("X-Request-Id", v.RequestID)
	if v.tls {
		h.Set("Strict-Transport-Security", "max-age=31536000; includeSubDomains")
	}
	v.r.Header.Del(web.NavigationHeader)
	v.r.Header.Del(web.PlainHeader)
	if k.PlainCookies {
		v.r.Header.Set(web.PlainHeader, "1")
	}
}

// visit is the way of a console request: other site? → session → role → owner.
func (k *Console) visit(ctx context.Context, v *visit) error {
	if err := k.Protection.Check(v.r); err != nil {
		return fault.New(fault.Scope,
			"This request came from another site, so it was not carried out. Open the page in Hub and try again.").Because(err)
	}
	if v.BodyLength > maxUpload {
		return rpc.TooLarge(maxUpload)
	}
	v.r.Body = http.MaxBytesReader(v.w, v.r.Body, maxUpload)
	v.secret = web.ReadCookie(v.r, web.SessionCookie)
	var err error
	if v.route != nil && web.Below(v.route.Prefix, "/assets") {
		v.secret = "" // the same for everybody
	} else if v.session, err = k.session(ctx, v); err != nil && (v.route == nil || !v.route.Public) {
		if v.secret == "" && v.route == nil && v.r.URL.Path == "/" && v.html() {
			return k.entrance(v)
		}
		return err
	}
	if v.route == nil && v.r.URL.Path == searchPath {
		return k.search(v)
	}
	if v.route == nil {
		return k.home(v)
	}
	if !v.route.Public && !v.route.Allows(v.session.Roles) {
		return fault.New(fault.Scope, "This page is for users with the role %s. Ask an administrator if you need it.", v.route.Role).
			With(map[string]string{"role": v.route.Role})
	}
	return k.proxy(ctx, v)
}

// session returns the session of the cookie. Its caller's Session is empty with any error.
func (k *Console) session(ctx context.Context, v *visit) (Session, error) {
	if v.secret == "" {
		return Session{}, fault.New(fault.AuthMissing, "Sign in to see this page.")
	}
	identities := []string{v.secret}
	suspects, err := k.Edge.MayLookUp("sessions", v.Address, identities)
	if err != nil {
		return Session{}, err
	}
	s, err := k.Sessions.Verify(caller.With(ctx, caller.Caller{RequestID: v.RequestID}), v.secret)
	if err != nil {
		if slices.Contains([]fault.Code{fault.AuthInvalid, fault.AuthExpired, fault.AuthRevoked}, fault.From(err).Code) {
			k.Edge.Overdraw(ctx, suspects) // the browser is told to sign in, however many of its network are
		}
		return Session{}, err
	}
	k.Edge.RecordSuccess("sessions", v.Address, identities)
	v.Caller = caller.Caller{Kind: caller.User, Service: "console", ExternalUserID: s.Email, CredentialID: s.ID, HubUser: s.User,
		Roles: s.Roles, Email: s.Email, Name: s.Name, RequestID: v.RequestID}
	return s, nil
}

// entrance says what Hub is, to whoever has no session.
func (k *Console) entrance(v *visit) error {
	r := k.Own.Speak(v.r)
	return k.Own.Render(v.w, r, "entrance", web.Page{Title: i18n.T(r.Context(), "Welcome to Hub"), Plain: true})
}

// home leads to the first page of a role of the user's, and where there is none to the first that the user may see.
func (k *Console) home(v *visit) error {
	tabs := k.tabs(v)
	for _, t := range tabs {
		for _, item := range t.Items {
			if route := k.Edge.Catalog.ConsoleRoute(item.Href); route != nil && route.Role != "" {
				return web.Go(v.w, v.r, item.Href)
			}
		}
	}
	for _, t := range tabs {
		return web.Go(v.w, v.r, t.Href())
	}
	return fault.New(fault.NotFound, "There is no page for you yet. Ask an administrator for a role.")
}

// tabs are those of whoever is signed in: by role from the manifests, and then the menus that admin keeps. A visitor has none.
func (k *Console) tabs(v *visit) []web.Tab {
	if v.session.ID == "" {
		return nil
	}
	return append(navigation(k.Edge.Catalog.ConsoleRoutes(), v.session.Roles), k.Menus.tabs(v.session)...)
}

// fail answers what stopped a visit: the way to log in, a page for a person, or the envelope.
func (k *Console) fail(v *visit, err error) {
	if errors.Is(err, context.Canceled) && v.r.Context().Err() != nil {
		panic(http.ErrAbortHandler) // nobody is there to hear it
	}
	f := fault.From(err)
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		f = fault.From(rpc.TooLarge(maxUpload))
	}
	signIn := slices.Contains([]fault.Code{fault.AuthMissing, fault.AuthInvalid, fault.AuthExpired, fault.AuthRevoked}, f.Code)
	status := f.Status()
	if signIn {
		status = http.StatusUnauthorized // whatever has become of the session: sign in again
		f = fault.New(f.Code, "Sign in to go on: there is no session, or it has ended.").Because(f)
	}
	if errors.Is(err, edge.ErrMethod) {
		status = http.StatusMethodNotAllowed
	}
	if f.Status() >= 500 {
		k.Edge.Logger.ErrorContext(v.r.Context(), "page failed", "request_id", v.RequestID, "path", catalog.Shown(v.r.URL.Path), "error", err)
	}
	v.w.Header().Add("Vary", "Accept")
	reads := v.r.Method == http.MethodGet || v.r.Method == http.MethodHead
	switch {
	case signIn && v.r.Header.Get("HX-Request") != "":
		// htmx would put the log-in page into a part of this one.
		v.w.Header().Set("HX-Redirect", loginURL(pageOf(v.r)))
		v.WriteFailure(v.w, f, status)
	case signIn && reads && v.html():
		http.Redirect(v.w, v.r, loginURL(v.r.URL.RequestURI()), http.StatusSeeOther)
	case v.html():
		who := v.Caller
		who.RequestID = v.RequestID
		r := v.r.WithContext(caller.With(v.r.Context(), who))
		if tabs := web.EncodeNavigation(k.tabs(v), r.URL.Path); tabs != "" {
			r.Header.Set(web.NavigationHeader, tabs)
		}
		k.Pages.FailAs(v.w, r, f, status)
	default:
		v.WriteFailure(v.w, f, status)
	}
}

// loginURL is where a person signs in to go on to a page of ours; auth judges whether it is one.
func loginURL(next string) string {
	if next == "/" {
		return "/login"
	}
	return "/login?next=" + url.QueryEscape(next)
}

// pageOf is the page that a part of it was asked for from, as htmx says it.
func pageOf(r *http.Request) string {
	page, err := url.Parse(r.Header.Get("HX-Current-URL"))
	if err != nil || page.Path == "" {
		return "/"
	}
	return page.RequestURI()
}

// Docs answers a page of the API reference. It is the same for everybody, so it has no tabs of whoever is signed in.
func (k *Console) Docs(w http.ResponseWriter, r *http.Request) {
	v := k.visitOf(w, r)
	k.setHeaders(v)
	page, err := k.Edge.Open(r.Context(), v.Call, func() (*web.Static, error) { return k.Edge.Catalog.Docs(k.Pages, r.URL.Path) })
	if err != nil {
		k.fail(v, err)
		return
	}
	v.WriteStatic(page, w, r)
}
