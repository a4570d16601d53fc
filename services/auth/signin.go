package auth

import (
	"context"
	"slices"
	"time"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/schema"
	"hub.internal/pkg/text"
)

const (
	// KnownFor is how long a browser is known after its user has signed in with it.
	KnownFor = 180 * 24 * time.Hour
	// KnownBrowsers is how many browsers of a user are known at a time, the latest.
	KnownBrowsers = 10
)

// Known makes the browser of a log-in known: the next tries with it have an allowance of their own. Only who has
// signed in gets one, each log-in makes a new one in its place, and another password ends them all.
type Known struct {
	Hash Hash
	// Replaces is the one that the browser had, of this user or not; of this user it ends.
	Replaces  Hash
	ExpiresAt time.Time
}

// Browser is where somebody signs in.
type Browser struct {
	Address, Agent string
	// Session is the id of the session that the browser has already, which the new one replaces.
	Session string
	// Known is what the browser was given at its last log-in; it may be anything.
	Known string
}

// SignedIn is what a browser gets.
type SignedIn struct {
	Session Session
	// Secret opens the session; Known makes the browser known.
	Secret, Known SessionSecret
	// Language is what the user wants the console in; empty when they have not chosen.
	Language string
}

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
	// Roles are those that the provider's claims map to, empty for somebody who has none; nil leaves them to Hub.
	Roles []string
}

// SingleSignOn is an OIDC provider.
type SingleSignOn interface {
	// Begin returns where to send the browser.
	Begin(ctx context.Context, f Flow) (string, error)
	// Finish redeems what the provider has sent the browser back with. Its errors are faults.
	Finish(ctx context.Context, f Flow, code, issuer string) (Identity, error)
}

// refused is the one answer to a log-in that fails, whatever the reason.
func refused() *fault.Error {
	return fault.New(fault.AuthInvalid, "The e-mail address or the password is not right.")
}

// SignIn makes a session for the user with this address and password. Unknown, disabled and
// wrong are one answer, and take the same time. E_RATE_LIMIT says that there were too many
// failures, or that too many people sign in at this moment.
func (p *People) SignIn(ctx context.Context, email, password string, b Browser) (SignedIn, error) {
	u, outdated, err := p.authenticate(ctx, email, password, b, "log-in", func() (admission, error) { return p.admit(ctx, email, b) })
	if err != nil {
		return SignedIn{}, err
	}
	in, err := p.open(ctx, u, b, ByPassword)
	if err == nil && outdated {
		p.rehash(ctx, u, password)
	}
	return in, err
}

// authenticate returns the user whose password this is; outdated tells that it has to be
// hashed anew. A failure costs what admit takes. What could not be judged costs nothing.
func (p *People) authenticate(ctx context.Context, email, password string, b Browser, purpose string,
	admit func() (admission, error)) (u User, outdated bool, err error) {
	record := func(code fault.Code, why string) {
		p.record(ctx, b, p.loginEntry(ctx, email, b, ByPassword, code, map[string]any{"why": why, "for": purpose}))
	}
	admitted, err := admit()
	if fault.Is(err, fault.RateLimit) {
		record(fault.RateLimit, "throttled")
	}
	if err != nil {
		return User{}, false, err
	}
	defer admitted.permit.Release()
	u, found, err := p.c.Store.UserByEmail(ctx, email)
	if err != nil {
		p.giveBack(ctx, admitted.taken)
		return User{}, false, err
	}
	hash := ""
	if found {
		hash = u.PasswordHash
	}
	if len(password) > MaxPassword {
		password = password[:MaxPassword] // never right, as expensive as the longest that is
		hash = ""
	}
	ok, outdated, err := p.passwords.check(password, hash)
	admitted.permit.Release() // what is left to do takes no core, and may wait for the store
	if err != nil {
		p.giveBack(ctx, admitted.taken)
		return User{}, false, err
	}
	if !ok || u.DisabledAt != nil {
		why := "unknown"
		switch {
		case found && ok:
			why = "disabled"
		case found:
			why = "password"
		}
		record(fault.AuthInvalid, why)
		return User{}, false, refused()
	}
	admitted.permit.Forgive()
	p.giveBack(ctx, admitted.taken)
	return u, outdated, nil
}

// rehash replaces a hash that was made under other parameters.
func (p *People) rehash(ctx context.Context, u User, password string) {
	hash, err := p.passwords.hash(ctx, password, u.ID)
	if err == nil {
		err = p.c.Store.ChangeUser(ctx, u.Email, func(now User) (UserChange, error) {
			if now.PasswordHash == u.PasswordHash {
				now.PasswordHash = hash
			}
			return UserChange{User: now, Audit: p.entry(ctx, "user.rehash", map[string]any{"user": u.ID})}, nil
		})
	}
	if err != nil {
		p.c.Logger.WarnContext(ctx, "password hash not renewed", "user", u.ID, "error", err)
	}
}

// Ask charges the browser, or the network of one that nobody is known to have signed in with, for a question to the
// log-in provider, which anybody can make Hub put. worked gives it back. E_RATE_LIMIT after too many that did not.
func (p *People) Ask(ctx context.Context, b Browser) (worked func(), err error) {
	taken, known, err := p.takeKnown(ctx, b, func(_, browser string) (Bucket, bool) { return Bucket{browser, NetworkThrottle}, true })
	if err == nil && !known {
		taken, err = p.takeNetworks(ctx, caller.Networks(b.Address))
	}
	return func() { p.giveBack(ctx, taken) }, err
}

// SignInVerified makes a session for the user with an address that an OIDC provider vouches
// for. With roles (nil takes the user's own) the user gets these, and is made when there is none. E_AUTH_INVALID for who is not
// there or disabled, and for who has no role at the provider: it is taken from the user and all sessions, too.
func (p *People) SignInVerified(ctx context.Context, email, name string, roles []string, b Browser) (SignedIn, error) {
	u, found, err := p.c.Store.UserByEmail(ctx, email)
	if err != nil {
		return SignedIn{}, err
	}
	without := roles != nil && len(roles) == 0
	if roles != nil {
		if !found && !without {
			if name = text.OneLine(text.Printable(name)); name == "" {
				name = email
			}
			in := NewUser{Email: email, Name: text.Shorten(name, maxName), Roles: roles}
			if u, err = p.Add(caller.With(ctx, actorOIDC(ctx)), in, ""); err != nil {
				return SignedIn{}, err
			}
			found = true
		} else if chosen := chosenRoles(&schema.Violations{}, roles); found && !slices.Equal(chosen, u.Roles) && u.DisabledAt == nil {
			if u, err = p.SetRoles(caller.With(ctx, actorOIDC(ctx)), email, roles); err != nil {
				return SignedIn{}, err
			}
		}
	}
	if found && u.DisabledAt == nil && !without {
		return p.open(ctx, u, b, ByOIDC)
	}
	why, says := "unknown", "Your account may not use Hub. Ask an administrator to add you."
	switch {
	case found && u.DisabledAt != nil:
		why = "disabled"
	case without:
		why, says = "no role", "Your account has no role in Hub. Ask an administrator."
	}
	p.record(ctx, b, p.loginEntry(ctx, email, b, ByOIDC, fault.AuthInvalid, map[string]any{"why": why}))
	return SignedIn{}, fault.New(fault.AuthInvalid, "%s", says)
}

// actorOIDC is the caller of what the log-in provider decides, such as a user's roles.
func actorOIDC(ctx context.Context) caller.Caller {
	c := caller.From(ctx)
	c.HubUser, c.Service, c.ExternalUserID = "", "oidc", "oidc"
	return c
}

// open makes a session and a known browser; their secrets never existed before, so nobody can have planted them.
func (p *People) open(ctx context.Context, u User, b Browser, m Method) (SignedIn, error) {
	now := p.now()
	id := newID("ses_", now)
	in := SignedIn{Secret: newSessionSecret(), Known: newSessionSecret(), Language: u.Language, Session: Session{ID: id, UserID: u.ID,
		Method: m, Address: text.HeadBytes(text.Storable(b.Address), maxAgent), Agent: text.HeadBytes(text.Printable(b.Agent), maxAgent),
		CreatedAt: now, LastSeen: now, ExpiresAt: now.Add(sessionLife)}}
	known := Known{Hash: in.Known.hash(), Replaces: SessionSecret{text.Secret(b.Known)}.hash(), ExpiresAt: now.Add(KnownFor)}
	e := p.loginEntry(ctx, u.Email, b, m, "", map[string]any{"user": u.ID, "session": id, "replaces": b.Session})
	if err := p.c.Store.AddSession(ctx, in.Session, in.Secret.hash(), u, b.Session, known, e); err != nil {
		if fault.Is(err, fault.AuthInvalid) {
			p.record(ctx, b, p.loginEntry(ctx, u.Email, b, m, fault.AuthInvalid, map[string]any{"why": "changed"}))
		}
		return SignedIn{}, err
	}
	return in, nil
}

// loginEntry is the audit entry of a try to sign in; code is empty for one that worked.
func (p *People) loginEntry(ctx context.Context, email string, b Browser, m Method, code fault.Code, detail map[string]any) audit.Entry {
	if !isAddress(email) {
		email = "(no address)" // what was typed may be a password in the wrong field
	}
	all := map[string]any{"email": email, "address": b.Address, "method": m}
	for name, value := range detail {
		all[name] = value
	}
	e := p.entry(ctx, "session.start", all)
	e.Caller.Service, e.Caller.ExternalUserID = "console", email
	if code != "" {
		e.Outcome, e.Count = string(code), 0
	}
	return e
}

// record keeps a refusal, or its count when the browser's network has had many; failing to is no reason to answer
// otherwise.
func (p *People) record(ctx context.Context, b Browser, e audit.Entry) {
	if p.c.Refused.Counted(caller.Network(b.Address), e) {
		return
	}
	if err := p.c.Store.Record(ctx, e); err != nil && ctx.Err() == nil {
		p.c.Logger.ErrorContext(ctx, "refused log-in not recorded", "error", err)
	}
}
