package gateway

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

	"github.com/go-kit/kit/endpoint"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/hop"
	"hub.internal/pkg/remote"
	"hub.internal/pkg/telemetry"
	"hub.internal/pkg/tool"
	"hub.internal/pkg/web"
	"hub.internal/services/gateway/reference"
)

const (
	// consoleTimeout bounds a page's request, an upload included.
	consoleTimeout = 60 * time.Second
	// maxUpload bounds the body of a page's request; its owner may bound it tighter.
	maxUpload = 32 << 20
)

// consoleRoots are the parts of the console (CONTRACT.md 9.1), and whether one may be
// used without a session: a manifest cannot open what is closed, nor claim the API's paths.
var consoleRoots = map[string]bool{
	"drafts": false, "p": false, "admin": false, "account": false,
	"login": true, "logout": true, "connect": true, "unsubscribe": true, "assets": true,
}

// Console is the part of the gateway for people with browsers: session → role → the owner
// named in its manifest. It takes no API key, and the API takes no cookie.
type Console struct {
	Sessions SessionVerifier
	// Pages renders the gateway's own error pages.
	Pages *web.Site
	// PlainCookies is set where the console is used over plain HTTP.
	PlainCookies bool
	// Menus are further tabs of the navigation; may be nil.
	Menus *Menus
	// Protection refuses requests that other sites make a browser send.
	Protection http.CrossOriginProtection
	// Visitors are the places of people who are not signed in.
	Visitors *Visitors
}

// ConsoleOptions are what a Console needs.
type ConsoleOptions struct {
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

// NewConsole makes the part for people. Its error names the setting to mend.
func NewConsole(o ConsoleOptions) (*Console, error) {
	pages, err := o.Site(web.Options{Files: reference.Files})
	if err != nil {
		return nil, err
	}
	c := &Console{Sessions: NewSessionCache(AskAuthForSession(o.Auth), time.Now), Pages: pages,
		Menus: o.Menus, PlainCookies: o.PlainCookies, Visitors: NewVisitors(AskAuthForBrowser(o.Auth), time.Now)}
	if o.PublicURL != "" {
		if err := c.Protection.AddTrustedOrigin(strings.TrimRight(o.PublicURL, "/")); err != nil {
			return nil, fmt.Errorf("HUB_PUBLIC_URL: %w", err)
		}
	}
	return c, nil
}

// consoleRoute is a route with its owner.
type consoleRoute struct {
	tool.Route
	service string
}

func checkRoute(service string, r tool.Route) error {
	root, _, _ := strings.Cut(strings.TrimPrefix(r.Prefix, "/"), "/")
	public, known := consoleRoots[root]
	switch {
	case !strings.HasPrefix(r.Prefix, "/") || path.Clean(r.Prefix) != r.Prefix || !known:
		return fmt.Errorf("console route %q of %s is none of the console's", r.Prefix, service)
	case r.Public != public:
		return fmt.Errorf("console route %q of %s must say public: %t", r.Prefix, service, public)
	case r.Public && r.Role != "":
		return fmt.Errorf("console route %q of %s is public and asks for a role", r.Prefix, service)
	case root == "assets" && r.Prefix != "/assets/"+service:
		return fmt.Errorf("console route %q of %s has to be /assets/%s", r.Prefix, service, service)
	}
	return nil
}

// visit is one request of a browser.
type visit struct {
	*Call
	w       http.ResponseWriter
	r       *http.Request
	route   *consoleRoute
	session Session
	// secret is the session's cookie, as it was sent.
	secret string
	// tls tells that the browser's connection is encrypted.
	tls bool
}

// html tells whether a person looks at the answer.
func (v *visit) html() bool { return strings.Contains(v.r.Header.Get("Accept"), "text/html") }

// serve answers a request of the console; false leaves it to the caller: it is none.
func (k *Console) serve(g *Gateway, w http.ResponseWriter, r *http.Request) bool {
	v := &visit{Call: g.NewCall(r), w: w, r: r, tls: g.encrypted(r)}
	ours := g.Catalog.consoleRoute("/login") != nil
	_, signedIn := r.Cookie(web.CookieName(web.SessionCookie, k.PlainCookies))
	// ServeMux cleans what is written plainly; "%2e%2e" is left to us, and means nothing here.
	if tidy(r.URL.Path) {
		v.route = g.Catalog.consoleRoute(r.URL.Path)
	}
	switch {
	case r.URL.Path == "/" && (v.html() || signedIn == nil) && ours && (r.Method == http.MethodGet || r.Method == http.MethodHead):
	case v.route == nil && web.Below(r.URL.Path, "/assets/gateway"):
		k.Pages.Assets().ServeHTTP(w, r)
		return true
	case v.route == nil && v.html() && ours:
		k.begin(v)
		k.nowhere(g, v)
		return true
	case v.route == nil:
		return false
	}
	k.begin(v)
	name := "console /"
	if v.route != nil {
		name = "console " + v.route.Prefix
	}
	ctx := otel.GetTextMapPropagator().Extract(r.Context(), propagation.HeaderCarrier(r.Header))
	ctx, cancel := context.WithTimeout(ctx, consoleTimeout)
	defer cancel()
	visit := recoverVisit(g, func(ctx context.Context, _ any) (any, error) {
		v.r = r.WithContext(ctx)
		return nil, k.visit(ctx, g, v)
	})
	if _, err := telemetry.EndpointBy("console", func(any) string { return name })(visit)(ctx, nil); err != nil {
		k.fail(g, v, err)
	}
	return true
}

// nowhere answers a person that nobody has the path, with the tabs of whoever is signed in.
func (k *Console) nowhere(g *Gateway, v *visit) {
	ctx, cancel := context.WithTimeout(v.r.Context(), menusPatience)
	defer cancel()
	v.secret = web.ReadCookie(v.r, web.SessionCookie)
	v.session, _ = k.session(ctx, g, v) // without it the page has no tabs
	k.fail(g, v, fault.New(fault.NotFound, "There is nothing at %s.", printable(v.r.URL.Path)))
}

// tidy tells whether a path has no empty, "." or ".." element.
func tidy(p string) bool { return p == "/" || path.Clean(p) == strings.TrimSuffix(p, "/") }

// recoverVisit is hop.Recover, but for the panic by which an answer is cut off.
func recoverVisit(g *Gateway, next endpoint.Endpoint) endpoint.Endpoint {
	return func(ctx context.Context, request any) (response any, err error) {
		aborted := false
		response, err = hop.Recover(g.Logger)(func(ctx context.Context, request any) (_ any, err error) {
			defer func() {
				if p := recover(); p == http.ErrAbortHandler { //nolint:errorlint // net/http compares like this
					aborted = true
				} else if p != nil {
					panic(p)
				}
			}()
			return next(ctx, request)
		})(ctx, request)
		if aborted {
			panic(http.ErrAbortHandler)
		}
		return response, err
	}
}

// encrypted tells that the browser's connection is.
func (g *Gateway) encrypted(r *http.Request) bool {
	return r.TLS != nil || g.TrustedHops > 0 && r.Header.Get("X-Forwarded-Proto") == "https"
}

// begin sets what every answer of the console has; its owner may set the policy and the
// caching otherwise.
func (k *Console) begin(v *visit) {
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
func (k *Console) visit(ctx context.Context, g *Gateway, v *visit) error {
	if err := k.Protection.Check(v.r); err != nil {
		return fault.New(fault.Scope,
			"This request came from another site, so it was not carried out. Open the page in Hub and try again.").Because(err)
	}
	if v.BodyLength > maxUpload {
		return hop.TooLarge(maxUpload)
	}
	v.r.Body = http.MaxBytesReader(v.w, v.r.Body, maxUpload)
	v.secret = web.ReadCookie(v.r, web.SessionCookie)
	var err error
	if v.route != nil && web.Below(v.route.Prefix, "/assets") {
		v.secret = "" // the same for everybody
	} else if v.session, err = k.session(ctx, g, v); err != nil && (v.route == nil || !v.route.Public) {
		return err
	}
	if v.route == nil {
		return k.home(g, v)
	}
	if !v.route.Public && !v.route.allows(v.session) {
		return fault.New(fault.Scope, "This page is for users with the role %s. Ask an administrator if you need it.", v.route.Role).
			With(map[string]string{"role": v.route.Role})
	}
	return k.pass(ctx, g, v)
}

// session returns the session of the cookie. Its caller's Session is empty with any error.
func (k *Console) session(ctx context.Context, g *Gateway, v *visit) (Session, error) {
	if v.secret == "" {
		return Session{}, fault.New(fault.AuthMissing, "Sign in to see this page.")
	}
	claims := []string{v.secret}
	way, err := g.mayAsk("sessions", v.Address, claims)
	if err != nil {
		return Session{}, err
	}
	s, err := k.Sessions.Verify(caller.With(ctx, caller.Caller{RequestID: v.RequestID}), v.secret)
	if err != nil {
		if slices.Contains([]fault.Code{fault.AuthInvalid, fault.AuthExpired, fault.AuthRevoked}, fault.From(err).Code) {
			g.beyond(ctx, way) // the browser is told to sign in, however many of its network are
		}
		return Session{}, err
	}
	g.held("sessions", v.Address, claims)
	v.Caller = caller.Caller{Kind: caller.User, Service: "console", ExternalUserID: s.Email, CredentialID: s.ID, HubUser: s.User,
		Roles: s.Roles, Email: s.Email, Name: s.Name, RequestID: v.RequestID}
	return s, nil
}

// home leads to the first page of a role of the user's, and where there is none to the first that the user may see.
func (k *Console) home(g *Gateway, v *visit) error {
	tabs := k.tabs(g, v)
	for _, t := range tabs {
		for _, item := range t.Items {
			if route := g.Catalog.consoleRoute(item.Href); route != nil && route.Role != "" {
				return web.Go(v.w, v.r, item.Href)
			}
		}
	}
	for _, t := range tabs {
		return web.Go(v.w, v.r, t.Href())
	}
	return fault.New(fault.NotFound, "There is no page for you yet. Ask an administrator for a role.")
}

func (k *Console) tabs(g *Gateway, v *visit) []web.Tab {
	if v.session.ID == "" {
		return nil
	}
	return append(g.Catalog.navigation(v.session), k.Menus.tabs(v.session)...)
}

// pass hands the request to its owner and streams the answer back.
func (k *Console) pass(ctx context.Context, g *Gateway, v *visit) error {
	client := g.Services.Client(v.route.service)
	if client == nil {
		return fault.New(fault.DB, "The %s service is not known to this gateway yet.", v.route.service).After(time.Second)
	}
	if v.Caller.Kind == "" {
		way, err := g.mayLook(v)
		if err != nil {
			return err
		}
		leave, err := k.admit(g, v)
		if err != nil {
			return err
		}
		defer leave()
		v.way = way
		v.Caller = caller.Caller{Kind: caller.Visitor, Service: "console", RequestID: v.RequestID}
	}
	prepare := func(h http.Header) {
		// An API key is for the API; the session's secret is for the gateway alone.
		h.Del("Authorization")
		h.Del("X-Api-Key")
		withoutCookie(h, web.CookieName(web.SessionCookie, k.PlainCookies))
		h.Set("X-Forwarded-For", v.Address)
		h.Set("X-Request-Id", v.RequestID)
		if k.PlainCookies {
			h.Set(web.PlainHeader, "1")
		}
		if tabs := web.EncodeNavigation(k.tabs(g, v), v.r.URL.Path); tabs != "" && v.html() {
			h.Set(web.NavigationHeader, tabs)
		}
	}
	edit := func(resp *http.Response) error {
		if err := g.looked(ctx, v, resp.StatusCode); err != nil {
			return err
		}
		if resp.Header.Get(hop.FaultHeader) != "" {
			return remote.ReadFault(resp)
		}
		// What ServeMux says of a path or a method that its service does not have.
		if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/plain") && !web.Below(v.route.Prefix, "/assets") {
			switch resp.StatusCode {
			case http.StatusNotFound:
				return fault.New(fault.NotFound, "There is nothing at %s.", printable(v.r.URL.Path))
			case http.StatusMethodNotAllowed:
				allow := resp.Header.Get("Allow")
				v.w.Header().Set("Allow", allow)
				return notAllowed(v.r.Method, allow)
			}
		}
		for _, c := range resp.Cookies() {
			if c.Name == web.CookieName(web.SessionCookie, k.PlainCookies) && v.secret != "" {
				k.Sessions.Forget(v.secret)
			}
		}
		// What the owner says of these replaces what begin has said.
		for _, name := range []string{"Content-Security-Policy", "X-Content-Type-Options", "Referrer-Policy",
			"Cross-Origin-Opener-Policy", "Cache-Control", "Vary"} {
			if len(resp.Header.Values(name)) > 0 {
				v.w.Header().Del(name)
			}
		}
		if resp.Header.Get(web.NavigationHeader) != "" {
			k.Menus.renew(ctx) // whoever has changed a menu sees it on the next page
		}
		for _, name := range []string{"X-Request-Id", "Strict-Transport-Security", web.NavigationHeader} {
			resp.Header.Del(name)
		}
		return nil
	}
	return client.Proxy(v.w, v.r.WithContext(caller.With(ctx, v.Caller)), prepare, edit)
}

// withoutCookie drops one cookie from a request's header.
func withoutCookie(h http.Header, name string) {
	lines := h.Values("Cookie")
	h.Del("Cookie")
	for _, line := range lines {
		var kept []string
		for part := range strings.SplitSeq(line, ";") {
			part = strings.TrimSpace(part)
			if n, _, _ := strings.Cut(part, "="); part != "" && strings.TrimSpace(n) != name {
				kept = append(kept, part)
			}
		}
		if len(kept) > 0 {
			h.Add("Cookie", strings.Join(kept, "; "))
		}
	}
}

// fail answers what stopped a visit: the way to log in, a page for a person, or the envelope.
func (k *Console) fail(g *Gateway, v *visit, err error) {
	if errors.Is(err, context.Canceled) && v.r.Context().Err() != nil {
		panic(http.ErrAbortHandler) // nobody is there to hear it
	}
	f := fault.From(err)
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		f = fault.From(hop.TooLarge(maxUpload))
	}
	signIn := slices.Contains([]fault.Code{fault.AuthMissing, fault.AuthInvalid, fault.AuthExpired, fault.AuthRevoked}, f.Code)
	status := f.Status()
	if signIn {
		status = http.StatusUnauthorized // whatever has become of the session: sign in again
		f = fault.New(f.Code, "Sign in to go on: there is no session, or it has ended.").Because(f)
	}
	if errors.Is(err, errMethod) {
		status = http.StatusMethodNotAllowed
	}
	if f.Status() >= 500 {
		g.Logger.ErrorContext(v.r.Context(), "page failed", "request_id", v.RequestID, "path", printable(v.r.URL.Path), "error", err)
	}
	v.w.Header().Add("Vary", "Accept")
	reads := v.r.Method == http.MethodGet || v.r.Method == http.MethodHead
	switch {
	case signIn && v.r.Header.Get("HX-Request") != "":
		// htmx would put the log-in page into a part of this one.
		v.w.Header().Set("HX-Redirect", login(pageOf(v.r)))
		v.writeFailure(v.w, f, status)
	case signIn && reads && v.html():
		http.Redirect(v.w, v.r, login(v.r.URL.RequestURI()), http.StatusSeeOther)
	case v.html():
		who := v.Caller
		who.RequestID = v.RequestID
		r := v.r.WithContext(caller.With(v.r.Context(), who))
		if tabs := web.EncodeNavigation(k.tabs(g, v), r.URL.Path); tabs != "" {
			r.Header.Set(web.NavigationHeader, tabs)
		}
		k.Pages.FailAs(v.w, r, f, status)
	default:
		v.writeFailure(v.w, f, status)
	}
}

// login is where a person signs in to go on to a page of ours; auth judges whether it is one.
func login(next string) string {
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
