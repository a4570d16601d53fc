package auth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"strings"
	"time"
	"unicode"

	"github.com/oklog/ulid/v2"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/schema"
)

// Throttle says how often something may fail: Burst times at once, and once in Every after that.
type Throttle struct {
	Burst int
	Every time.Duration
}

// Throttles of failed log-ins. A log-in that works counts against neither.
var (
	// AccountThrottle is per account, whether it exists or not.
	AccountThrottle = Throttle{Burst: 10, Every: time.Minute}
	// AddressThrottle is per client address.
	AddressThrottle = Throttle{Burst: 50, Every: 3 * time.Second}
)

// UserStore keeps users, sessions and throttles. Its errors are faults.
type UserStore interface {
	// AddUser commits a new user; E_CONFLICT when the address is taken in any case.
	AddUser(ctx context.Context, u User, e audit.Entry) error
	// UserByEmail finds a user by the address in any case.
	UserByEmail(ctx context.Context, email string) (u User, found bool, err error)
	Users(ctx context.Context) ([]User, error)
	// ChangeUser locks a user, lets decide judge it, and commits what it decides. When endSessions is
	// true the user's sessions end in the same transaction.
	ChangeUser(ctx context.Context, email string, decide func(User) (User, audit.Entry, error), endSessions bool) error

	// AddSession commits a new session of u and the end of the one that it replaces, if any; E_AUTH_INVALID
	// when u has got another password, or was disabled, since it was read.
	AddSession(ctx context.Context, s Session, h Hash, u User, replaces string, e audit.Entry) error
	// FindSession returns a session with its user.
	FindSession(ctx context.Context, h Hash) (s Session, u User, found bool, err error)
	// SeeSession sets LastSeen, never backwards. It does not wait for a lock.
	SeeSession(ctx context.Context, id string, at time.Time) error
	// EndSession ends a session of a user, or all but the one kept when id is empty. It returns how many ended.
	EndSession(ctx context.Context, userID, id, keep string, at time.Time, e audit.Entry) (int, error)
	// Sessions lists those of a user that have not been ended and are not over, last seen first.
	Sessions(ctx context.Context, userID string, now time.Time) ([]Session, error)
	// Reap deletes sessions that were over before a moment, and throttles that have been full since.
	Reap(ctx context.Context, before time.Time) error

	// Take takes a token of each bucket, or of none: then it answers how long to wait.
	Take(ctx context.Context, now time.Time, buckets []Bucket) (wait time.Duration, err error)
	// Return gives the tokens back.
	Return(ctx context.Context, buckets []Bucket) error
	// Refill makes a bucket full.
	Refill(ctx context.Context, b Bucket) error
	// Record commits an audit entry alone.
	Record(ctx context.Context, e audit.Entry) error
}

// Bucket is a throttle of one account or address.
type Bucket struct {
	Name string
	Throttle
}

// PeopleConfig is what People are made of.
type PeopleConfig struct {
	Store  UserStore
	Now    func() time.Time
	Logger *slog.Logger
}

// bucket names one by a hash: what was typed may be anything, a password in the wrong field too.
func bucket(kind, of string, t Throttle) Bucket {
	sum := sha256.Sum256([]byte(of))
	return Bucket{kind + " " + hex.EncodeToString(sum[:16]), t}
}

func accountBucket(email string) Bucket { return bucket("account", account(email), AccountThrottle) }

// People are the users of the console and their sessions.
type People struct {
	c         PeopleConfig
	passwords *passwords
}

// NewPeople returns People.
func NewPeople(c PeopleConfig) (*People, error) {
	p, err := newPasswords()
	if err != nil {
		return nil, err
	}
	return &People{c, p}, nil
}

// refused is the one answer to a log-in that fails, whatever the reason.
func refused() *fault.Error {
	return fault.New(fault.AuthInvalid, "The e-mail address or the password is not right.")
}

// Browser is where somebody signs in.
type Browser struct {
	Address, Agent string
	// Session is the id of the session that the browser has already, which the new one replaces.
	Session string
}

// SignIn makes a session for the user with this address and password. Unknown, disabled and
// wrong are one answer, and take the same time. E_RATE_LIMIT says that there were too many
// failures.
func (p *People) SignIn(ctx context.Context, email, password string, b Browser) (Session, SessionSecret, error) {
	u, outdated, err := p.authenticate(ctx, email, password, b, "log-in", bucket("address", b.Address, AddressThrottle))
	if err != nil {
		return Session{}, SessionSecret{}, err
	}
	s, secret, err := p.open(ctx, u, b, ByPassword)
	if err == nil && outdated {
		p.rehash(ctx, u, password)
	}
	return s, secret, err
}

// authenticate returns the user whose password this is; outdated tells that it has to be
// hashed anew. A failure counts against the account and the other buckets. What could not be
// judged does not.
func (p *People) authenticate(ctx context.Context, email, password string, b Browser, purpose string, others ...Bucket) (u User, outdated bool, err error) {
	buckets := append([]Bucket{accountBucket(email)}, others...)
	wait, err := p.c.Store.Take(ctx, p.now(), buckets)
	if err != nil {
		return User{}, false, err
	}
	record := func(code fault.Code, why string) {
		p.record(ctx, p.loginEntry(ctx, email, b, ByPassword, code, map[string]any{"why": why, "for": purpose}))
	}
	if wait > 0 {
		record(fault.RateLimit, "throttled")
		return User{}, false, fault.New(fault.RateLimit, "Too many failed tries. Wait a moment, then try again.").After(wait)
	}
	u, found, err := p.c.Store.UserByEmail(ctx, email)
	if err != nil {
		return User{}, false, errors.Join(err, p.c.Store.Return(ctx, buckets))
	}
	hash := ""
	if found {
		hash = u.PasswordHash
	}
	if len(password) > maxPassword {
		password = password[:maxPassword] // never right, as expensive as the longest that is
		hash = ""
	}
	ok, outdated, err := p.passwords.check(ctx, password, hash)
	if err != nil {
		return User{}, false, errors.Join(err, p.c.Store.Return(context.WithoutCancel(ctx), buckets))
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
	if err := p.c.Store.Return(ctx, buckets); err != nil {
		p.c.Logger.WarnContext(ctx, "log-in throttle not given back", "error", err)
	}
	return u, outdated, nil
}

// rehash replaces a hash that was made under other parameters.
func (p *People) rehash(ctx context.Context, u User, password string) {
	hash, err := p.passwords.hash(ctx, password)
	if err == nil {
		err = p.c.Store.ChangeUser(ctx, u.Email, func(now User) (User, audit.Entry, error) {
			if now.PasswordHash == u.PasswordHash {
				now.PasswordHash = hash
			}
			return now, p.entry(ctx, "user.rehash", map[string]any{"user": u.ID}), nil
		}, false)
	}
	if err != nil {
		p.c.Logger.WarnContext(ctx, "password hash not renewed", "user", u.ID, "error", err)
	}
}

// SignInVerified makes a session for the user with an address that an OIDC provider vouches
// for. With roles (nil takes the user's own) the user gets these, and is made when there is none.
func (p *People) SignInVerified(ctx context.Context, email, name string, roles []string, b Browser) (Session, SessionSecret, error) {
	u, found, err := p.c.Store.UserByEmail(ctx, email)
	if err != nil {
		return Session{}, SessionSecret{}, err
	}
	if roles != nil {
		if !found {
			if strings.TrimSpace(name) == "" {
				name = email
			}
			if u, err = p.Add(caller.With(ctx, actorOIDC(ctx)), NewUser{Email: email, Name: printableLine(name), Roles: roles}, ""); err != nil {
				return Session{}, SessionSecret{}, err
			}
			found = true
		} else if chosen := chosenRoles(&schema.Violations{}, roles); strings.Join(chosen, ",") != strings.Join(u.Roles, ",") && u.DisabledAt == nil {
			if u, err = p.SetRoles(caller.With(ctx, actorOIDC(ctx)), email, roles); err != nil {
				return Session{}, SessionSecret{}, err
			}
		}
	}
	if !found || u.DisabledAt != nil {
		p.record(ctx, p.loginEntry(ctx, email, b, ByOIDC, fault.AuthInvalid, map[string]any{"why": map[bool]string{true: "disabled", false: "unknown"}[found]}))
		return Session{}, SessionSecret{}, fault.New(fault.AuthInvalid, "Your account may not use Hub. Ask an administrator to add you.")
	}
	return p.open(ctx, u, b, ByOIDC)
}

func actorOIDC(ctx context.Context) caller.Caller {
	c := caller.From(ctx)
	c.HubUser, c.Service, c.ExternalUserID = "", "oidc", "oidc"
	return c
}

// open makes a session; its secret never existed before, so nobody can have planted it.
func (p *People) open(ctx context.Context, u User, b Browser, m Method) (Session, SessionSecret, error) {
	now := p.now()
	id, err := newID("ses_", now)
	if err != nil {
		return Session{}, SessionSecret{}, err
	}
	secret := newSessionSecret()
	s := Session{ID: id, UserID: u.ID, Method: m, Address: bounded(b.Address, maxAgent), Agent: bounded(printableLine(b.Agent), maxAgent),
		CreatedAt: now, LastSeen: now, ExpiresAt: now.Add(sessionLife)}
	e := p.loginEntry(ctx, u.Email, b, m, "", map[string]any{"user": u.ID, "session": id, "replaces": b.Session})
	if err := p.c.Store.AddSession(ctx, s, secret.hash(), u, b.Session, e); err != nil {
		if fault.Is(err, fault.AuthInvalid) {
			p.record(ctx, p.loginEntry(ctx, u.Email, b, m, fault.AuthInvalid, map[string]any{"why": "changed"}))
		}
		return Session{}, SessionSecret{}, err
	}
	return s, secret, nil
}

// Resolved is a session that holds, and whose it is.
type Resolved struct {
	Session Session
	User    User
}

// Resolve returns the session that a secret opens: E_AUTH_INVALID for none, E_AUTH_EXPIRED
// for one that has ended by itself, E_AUTH_REVOKED for one that was ended or whose user may
// not sign in any more. Asking is using: it defers the idle end.
func (p *People) Resolve(ctx context.Context, secret string) (Resolved, error) {
	s, u, found, err := p.c.Store.FindSession(ctx, SessionSecret{secret}.hash())
	if err != nil {
		return Resolved{}, err
	}
	if !found {
		return Resolved{}, fault.New(fault.AuthInvalid, "The session is not valid.")
	}
	now := p.now()
	switch state := s.State(now); {
	case state == SignedOut, u.DisabledAt != nil:
		return Resolved{}, fault.New(fault.AuthRevoked, "The session was ended.")
	case state != Open:
		return Resolved{}, fault.New(fault.AuthExpired, "The session has ended.")
	}
	if now.Sub(s.LastSeen) >= seenEvery {
		if err := p.c.Store.SeeSession(ctx, s.ID, now); err != nil {
			return Resolved{}, err
		}
		s.LastSeen = now
	}
	return Resolved{s, u}, nil
}

// SignOut ends a session; one that has ended is no failure.
func (p *People) SignOut(ctx context.Context, userID, session string) error {
	_, err := p.c.Store.EndSession(ctx, userID, session, "", p.now(), p.entry(ctx, "session.end", map[string]any{"user": userID, "session": session}))
	return err
}

// SignOutOthers ends every session of a user but one, and returns how many.
func (p *People) SignOutOthers(ctx context.Context, userID, keep string) (int, error) {
	return p.c.Store.EndSession(ctx, userID, "", keep, p.now(), p.entry(ctx, "session.end", map[string]any{"user": userID, "all_but": keep}))
}

// Sessions lists where a user is signed in, last seen first.
func (p *People) Sessions(ctx context.Context, userID string) ([]Session, error) {
	all, err := p.c.Store.Sessions(ctx, userID, p.now())
	now := p.now()
	open := all[:0]
	for _, s := range all {
		if s.State(now) == Open {
			open = append(open, s)
		}
	}
	return open, err
}

// Add makes a user; without a password they sign in through OIDC alone, until they get one.
func (p *People) Add(ctx context.Context, in NewUser, password string) (User, error) {
	id, err := newID("usr_", p.now())
	if err != nil {
		return User{}, err
	}
	u, err := newUser(id, in, actor(ctx), p.now())
	if err != nil {
		return User{}, err
	}
	if password != "" {
		if err := goodPassword(password, u.Email); err != nil {
			return User{}, err
		}
		if u.PasswordHash, err = p.passwords.hash(ctx, password); err != nil {
			return User{}, err
		}
	}
	e := p.entry(ctx, "user.add", map[string]any{"user": u.ID, "email": u.Email, "roles": u.Roles, "password": password != ""})
	return u, p.c.Store.AddUser(ctx, u, e)
}

// Users lists all users by address.
func (p *People) Users(ctx context.Context) ([]User, error) { return p.c.Store.Users(ctx) }

// SetPassword gives a user a password, ends their sessions and forgets their failed log-ins.
func (p *People) SetPassword(ctx context.Context, email, password string) (User, error) {
	if err := goodPassword(password, email); err != nil {
		return User{}, err
	}
	hash, err := p.passwords.hash(ctx, password)
	if err != nil {
		return User{}, err
	}
	u, err := p.change(ctx, email, "user.passwd", true, func(u *User) error {
		u.PasswordHash = hash
		return nil
	})
	if err != nil {
		return User{}, err
	}
	if err := p.c.Store.Refill(ctx, accountBucket(email)); err != nil {
		p.c.Logger.WarnContext(ctx, "failed log-ins not forgotten", "user", u.ID, "error", err)
	}
	return u, nil
}

// ChangePassword is SetPassword by a user who knows the old one. Failures count as those of log-in.
func (p *People) ChangePassword(ctx context.Context, email, old, password string, b Browser) error {
	if err := goodPassword(password, email); err != nil {
		return err
	}
	if _, _, err := p.authenticate(ctx, email, old, b, "passwd"); err != nil {
		return err
	}
	_, err := p.SetPassword(ctx, email, password)
	return err
}

// SetRoles gives a user other roles; sessions have them within two seconds.
func (p *People) SetRoles(ctx context.Context, email string, roles []string) (User, error) {
	var v schema.Violations
	chosen := chosenRoles(&v, roles)
	if err := v.Err(); err != nil {
		return User{}, err
	}
	return p.change(ctx, email, "user.roles", false, func(u *User) error {
		u.Roles = chosen
		return nil
	})
}

// Disable ends a user's sessions and keeps them out. Repeating it is harmless.
func (p *People) Disable(ctx context.Context, email string) (User, error) {
	return p.change(ctx, email, "user.disable", true, func(u *User) error {
		if u.DisabledAt == nil {
			u.DisabledAt = new(p.now())
		}
		return nil
	})
}

// Enable lets a user in again.
func (p *People) Enable(ctx context.Context, email string) (User, error) {
	return p.change(ctx, email, "user.enable", false, func(u *User) error {
		u.DisabledAt = nil
		return nil
	})
}

func (p *People) change(ctx context.Context, email, operation string, endSessions bool, do func(*User) error) (User, error) {
	var changed User
	err := p.c.Store.ChangeUser(ctx, email, func(u User) (User, audit.Entry, error) {
		detail := map[string]any{"user": u.ID, "email": u.Email, "roles_before": u.Roles}
		err := do(&u)
		changed = u
		detail["roles"] = u.Roles
		return u, p.entry(ctx, operation, detail), err
	}, endSessions)
	return changed, err
}

const (
	reapEvery = time.Hour
	// reapAfter is how long an ended session is kept, for whoever wants to know what happened.
	reapAfter = 7 * 24 * time.Hour
)

// Reap deletes what has ended long ago, from time to time, until ctx ends.
func (p *People) Reap(ctx context.Context) error {
	for {
		if err := p.c.Store.Reap(ctx, p.now().Add(-reapAfter)); err != nil && ctx.Err() == nil {
			p.c.Logger.WarnContext(ctx, "old sessions not deleted", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(reapEvery):
		}
	}
}

func (p *People) now() time.Time { return p.c.Now().UTC().Truncate(time.Millisecond) }

func (p *People) entry(ctx context.Context, operation string, detail map[string]any) audit.Entry {
	return audit.Entry{At: p.now(), Caller: caller.From(ctx), Tool: operation, Outcome: audit.OK, Count: 1, Detail: detail}
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

// record keeps a refusal; failing to is no reason to answer otherwise.
func (p *People) record(ctx context.Context, e audit.Entry) {
	if err := p.c.Store.Record(ctx, e); err != nil && ctx.Err() == nil {
		p.c.Logger.ErrorContext(ctx, "refused log-in not recorded", "error", err)
	}
}

func newID(prefix string, now time.Time) (string, error) {
	id, err := ulid.New(ulid.Timestamp(now), rand.Reader)
	return prefix + id.String(), err
}

// bounded cuts a text to at most n bytes of valid UTF-8.
func bounded(s string, n int) string {
	if len(s) > n {
		s = s[:n]
	}
	return strings.ToValidUTF8(s, "")
}

// printableLine drops what does not belong in a line of text.
func printableLine(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return -1
	}, strings.ToValidUTF8(s, ""))
}
