package links

import (
	"cmp"
	"context"
	"crypto/rand"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/text"
)

// Path is the page that a ticket leads to.
const Path = "/connect"

const (
	// reapEvery is how often what has ended is looked for; usedFor is how long a used ticket is remembered after its
	// end, so that no clock that is behind takes it again.
	reapEvery = time.Minute
	usedFor   = time.Hour
	// maxTold is how much is kept of what a browser says of itself, in bytes.
	maxTold = 300
	// pageSize is how many links a list has that does not say.
	pageSize = 200
)

// Config is what a Service is made of.
type Config struct {
	Store Store
	// Sealer may be nil where no ticket is made or opened.
	Sealer Sealer
	// PublicURL is where browsers reach Hub. Without one the address of a ticket is a path.
	PublicURL string
	Now       func() time.Time
	Logger    *slog.Logger
}

// Service makes and ends links. Who does it is the caller of the context.
type Service struct{ c Config }

// New returns a Service.
func New(c Config) *Service { return &Service{c} }

// Invite returns where an app's user can link an account, with these scopes, and until when. It stores nothing and asks
// nobody. E_VALIDATION for an app or a user that there cannot be; E_CONFLICT where Hub has no keyset.
func (s *Service) Invite(service, externalUser string, scopes []string) (address string, expires time.Time, err error) {
	if err := pair(service, externalUser); err != nil {
		return "", time.Time{}, err
	}
	if s.c.Sealer == nil {
		return "", time.Time{}, fault.New(fault.Conflict,
			"Hub has no keyset to seal links with: set HUB_SECRETS_KEYSET (`auth keyset new` makes one).")
	}
	expires = s.now().Add(TicketLife).Truncate(time.Second)
	text, err := sealed(s.c.Sealer, ticket{Version: ticketVersion, Service: service, User: externalUser, Nonce: random(nonceBytes),
		Expires: expires.Unix(), Scopes: scopes}, ticketName)
	return strings.TrimSuffix(s.c.PublicURL, "/") + Path + "?t=" + text, expires, err
}

// open reads a ticket, and the app that it is for. A ticket that opens but is not good any more names the app in its
// refusal.
func (s *Service) open(ctx context.Context, text string) (ticket, App, error) {
	t, ok := opened[ticket](s.c.Sealer, text, ticketName)
	if !ok || t.Version != ticketVersion || len(t.Nonce) != nonceBytes {
		return ticket{}, App{}, refuse(BadTicket, App{})
	}
	app, err := s.c.Store.LinkApp(ctx, t.Service)
	switch {
	case fault.Is(err, fault.NotFound):
		return ticket{}, App{}, refuse(BadTicket, App{})
	case err != nil:
		return ticket{}, App{}, err
	case !t.good(s.now()):
		return ticket{}, App{}, refuse(BadTicket, app)
	case !app.Live:
		return ticket{}, App{}, refuse(Closed, app)
	}
	return t, app, nil
}

// Opened is a ticket that is good.
type Opened struct {
	// Life is how long it still is.
	Life time.Duration
	// ReturnURL is where the browser will be sent back to; empty for nowhere.
	ReturnURL string
}

// Open tells whether a ticket is good, and whether the browser may be sent back to returnURL. It stores nothing. What it
// refuses is a Refusal.
func (s *Service) Open(ctx context.Context, text, returnURL string) (Opened, error) {
	t, app, err := s.open(ctx, text)
	if err != nil {
		return Opened{}, err
	}
	return Opened{t.ends().Sub(s.now()), app.Returns(returnURL)}, nil
}

// Offer is what a user is asked.
type Offer struct {
	App          App
	ExternalUser string
	// Scopes are those that the user is asked to agree to, New those that they have not before.
	Scopes, New []string
	// Linked tells that the app's user is linked to this account, and nothing is asked.
	Linked bool
	// ReturnURL is where the browser will be sent back to; empty for nowhere.
	ReturnURL string
	// Form comes back with the answer.
	Form string
}

// Person is a user of Hub at a browser.
type Person struct {
	// User is the id of the account, Session names the session.
	User, Session  string
	Address, Agent string
}

// Offer tells what a ticket asks of a user. What it refuses is a Refusal.
func (s *Service) Offer(ctx context.Context, text, returnURL string, who Person) (Offer, error) {
	t, app, err := s.open(ctx, text)
	if err != nil {
		return Offer{}, err
	}
	o := Offer{App: app, ExternalUser: t.User, Scopes: app.allowed(t.Scopes), ReturnURL: app.Returns(returnURL)}
	o.New = o.Scopes
	held, found, err := s.c.Store.LinkOf(ctx, t.Service, t.User)
	switch {
	case err != nil:
		return Offer{}, err
	case found && held.Status == Active && held.HubUser != who.User:
		return Offer{}, refuse(held.taken(), app)
	case found && held.Status == Active:
		o.Linked = held.Covers(o.Scopes)
		o.New = without(o.Scopes, held.Scopes)
	}
	if app.Confirms && o.ReturnURL == "" && !o.Linked {
		return Offer{}, refuse(NoReturn, app)
	}
	o.Form, err = sealed(s.c.Sealer, form{who.Session, t.Nonce, o.Scopes}, formName)
	return o, err
}

// without is what a has and b has not.
func without(a, b []string) []string {
	out := []string{}
	for _, s := range a {
		if len(both([]string{s}, b)) == 0 {
			out = append(out, s)
		}
	}
	return out
}

// Answer is what a user says to an Offer.
type Answer struct {
	Ticket, ReturnURL, Form string
	Person
}

// Allow makes the link that a ticket asks for, or widens it, once. It returns where the browser goes: to the app, with a
// code where it confirms links, or nowhere. What it refuses is a Refusal, and nothing is stored then.
func (s *Service) Allow(ctx context.Context, a Answer) (to string, err error) {
	t, app, err := s.open(ctx, a.Ticket)
	if err != nil {
		return "", err
	}
	shown, ok := opened[form](s.c.Sealer, a.Form, formName)
	if !ok || !shown.matches(a.Session, t) {
		return "", refuse(Stale, app)
	}
	id := s.newID()
	code := newCode()
	err = s.c.Store.ChangeLink(ctx, Attempt{t.Service, t.User, t.Nonce, t.ends()}, func(st State) (Change, error) {
		c, err := s.allow(ctx, st, Link{ID: id, Service: t.Service, ExternalUser: t.User, HubUser: a.User, Scopes: st.App.allowed(shown.Scopes)},
			st.App.Confirms, a.Person)
		if err != nil {
			return Change{}, err
		}
		app = st.App
		to = app.Returns(a.ReturnURL)
		if app.Confirms {
			if to == "" {
				return Change{}, refuse(NoReturn, app)
			}
			c.Grant = &Grant{Hash: code.hash(), Link: c.Link.ID, Version: c.Consent.Version, ExpiresAt: s.now().Add(GrantLife)}
			to = withQuery(to, "code", code.Reveal())
		}
		return c, nil
	})
	return to, err
}

// allow decides what a consent to want does to the link of a pair: it makes one, or widens the one that there is, at once
// or when the app has confirmed it.
func (s *Service) allow(ctx context.Context, st State, want Link, confirms bool, who Person) (Change, error) {
	held := st.Link
	own := held != nil && held.Status == Active && held.HubUser == want.HubUser
	refused := func(reason Reason) error {
		r := refuse(reason, st.App)
		r.Linked = own
		return r
	}
	switch {
	case st.Used:
		return Change{}, refused(Used)
	case !st.App.Live:
		return Change{}, refused(Closed)
	case held != nil && held.Status == Active && !own:
		return Change{}, refused(held.taken())
	}
	c := Change{Consent: &Consent{Version: 1, Scopes: want.Scopes, At: s.now(),
		Address: text.HeadBytes(text.Storable(who.Address), maxTold), Agent: text.HeadBytes(text.Printable(who.Agent), maxTold)}}
	operation := "link.consent"
	switch {
	case own:
		operation = "link.widen"
		c.Link = held.Link
		c.Consent.Version, c.Consent.Scopes = st.Versions+1, union(held.Scopes, want.Scopes)
		if !confirms {
			c.Link.Version, c.Link.Scopes = c.Consent.Version, c.Consent.Scopes
		}
	default:
		to := Active
		if confirms {
			to = Pending
		}
		var err error
		if c.Link, err = want.become(to, s.now()); err != nil {
			return Change{}, err
		}
		c.New, c.Link.Version = true, 1
		if held != nil { // nobody has confirmed it, whoever's it is
			ended, err := held.become(Revoked, s.now())
			if err != nil {
				return Change{}, err
			}
			c.Ended = &ended
		}
	}
	detail := map[string]any{"version": c.Consent.Version, "consented": c.Consent.Scopes}
	if c.Ended != nil {
		detail["replaces"] = c.Ended.ID
	}
	c.Audit = s.entry(ctx, operation, c.Link, detail)
	return c, nil
}

// Decline returns where the browser of a user goes who does not link: to the app, or nowhere. It stores nothing. What it
// refuses is a Refusal.
func (s *Service) Decline(ctx context.Context, a Answer) (to string, err error) {
	t, app, err := s.open(ctx, a.Ticket)
	if err != nil {
		return "", err
	}
	if shown, ok := opened[form](s.c.Sealer, a.Form, formName); !ok || !shown.matches(a.Session, t) {
		return "", refuse(Stale, app)
	}
	if to = app.Returns(a.ReturnURL); to != "" {
		to = withQuery(to, "error", "access_denied")
	}
	return to, nil
}

// withQuery adds to the query of an address, and leaves the rest of it as it is.
func withQuery(address, name, value string) string {
	separator := "?"
	if strings.Contains(address, "?") {
		separator = "&"
	}
	return address + separator + url.QueryEscape(name) + "=" + url.QueryEscape(value)
}

// Reap ends what nobody has confirmed and forgets what means nothing any more, from time to time, until ctx ends.
func (s *Service) Reap(ctx context.Context) error {
	for {
		if err := s.Sweep(ctx); err != nil && ctx.Err() == nil {
			s.c.Logger.WarnContext(ctx, "old links not ended", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(reapEvery):
		}
	}
}

// Sweep is one round of Reap.
func (s *Service) Sweep(ctx context.Context) error {
	now := s.now()
	return s.c.Store.ReapLinks(ctx, now.Add(-GrantLife), now.Add(-usedFor), now, func(ids []string) audit.Entry {
		e := s.entry(caller.With(ctx, caller.Itself("auth")), "link.lapse", Link{}, map[string]any{"links": ids})
		e.Count = len(ids)
		return e
	})
}

// now is the time that goes into the store: what is answered is what can be read back.
func (s *Service) now() time.Time { return s.c.Now().UTC().Truncate(time.Millisecond) }

// newID draws the id of a link.
func (s *Service) newID() string {
	return "lnk_" + ulid.MustNew(ulid.Timestamp(s.c.Now()), rand.Reader).String()
}

// entry is the audit entry of what happens to a link; one of several links names them in its detail.
func (s *Service) entry(ctx context.Context, operation string, l Link, detail map[string]any) audit.Entry {
	if l.ID != "" {
		detail["link"], detail["service_code"], detail["external_user"] = l.ID, l.Service, l.ExternalUser
		detail["hub_user"], detail["status"], detail["scopes"] = l.HubUser, l.Status, l.Scopes
	}
	return audit.Entry{At: s.now(), Caller: caller.From(ctx), Tool: operation, Outcome: audit.OK, Count: 1, Detail: detail}
}

// List returns a page of active links, newest first, and the id after which the next page begins, empty after the last.
func (s *Service) List(ctx context.Context, f Filter) (page []Listed, next string, err error) {
	f.Limit = cmp.Or(f.Limit, pageSize) + 1
	page, err = s.c.Store.ListLinks(ctx, f)
	if err == nil && len(page) == f.Limit {
		page = page[:f.Limit-1]
		next = page[len(page)-1].ID
	}
	return page, next, err
}
