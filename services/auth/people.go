package auth

import (
	"cmp"
	"context"
	"crypto/rand"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/alexedwards/argon2id"
	"github.com/oklog/ulid/v2"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/schema"
	"hub.internal/pkg/text"
)

// UserStore keeps users, sessions and throttles. Its errors are faults.
type UserStore interface {
	// AddUser commits a new user, with an invitation unless that is nil; E_CONFLICT when the address is taken in any case.
	AddUser(ctx context.Context, u User, i *StoredInvitation, e audit.Entry) error
	// UserByEmail finds a user by the address in any case.
	UserByEmail(ctx context.Context, email string) (u User, found bool, err error)
	// UserByID finds a user by the id.
	UserByID(ctx context.Context, id string) (u User, found bool, err error)
	// Users returns the users of a filter, by address.
	Users(ctx context.Context, f UserFilter) ([]User, error)
	// ChangeUser locks a user, lets decide judge it, and commits what it decides.
	ChangeUser(ctx context.Context, email string, decide func(User) (UserChange, error)) error
	// SetLanguage keeps the language of a user; one that is there no more is no failure.
	SetLanguage(ctx context.Context, userID, language string) error

	// Invited returns the user whom an invitation that holds is for.
	Invited(ctx context.Context, h Hash, now time.Time) (u User, found bool, err error)
	// Accept is ChangeUser for who holds an invitation, which it uses up; E_NOT_FOUND when it does not hold.
	Accept(ctx context.Context, h Hash, now time.Time, decide func(User) (UserChange, error)) error

	// AddSession commits a new session of u, the end of the one that it replaces, if any, and that its browser is
	// known; E_AUTH_INVALID when u has got another password, or was disabled, since it was read.
	AddSession(ctx context.Context, s Session, h Hash, u User, replaces string, k Known, e audit.Entry) error
	// KnownBrowser returns the address of the user whose browser it is known to be.
	KnownBrowser(ctx context.Context, h Hash, now time.Time) (email string, known bool, err error)
	// FindSession returns a session with its user.
	FindSession(ctx context.Context, h Hash) (s Session, u User, found bool, err error)
	// SeeSession sets LastSeen, never backwards. It does not wait for a lock.
	SeeSession(ctx context.Context, id string, at time.Time) error
	// EndSession ends a session of a user, or all but the one kept when id is empty. It returns how many ended.
	EndSession(ctx context.Context, userID, id, keep string, at time.Time, e audit.Entry) (int, error)
	// Sessions lists those of a user that have not been ended and are not over, last seen first.
	Sessions(ctx context.Context, userID string, now time.Time) ([]Session, error)
	// Reap deletes sessions that were over before a moment, and what means nothing any more by now: browsers
	// that are known no more, throttles that are full.
	Reap(ctx context.Context, before, now time.Time) error

	// Take takes a token of each bucket, or of none: then it answers how long to wait, and for which bucket.
	Take(ctx context.Context, now time.Time, buckets []Bucket) (wait time.Duration, empty string, err error)
	// Return gives the tokens back.
	Return(ctx context.Context, buckets []Bucket) error
	// Refill makes a bucket full, and those whose name begins with its name and a space.
	Refill(ctx context.Context, b Bucket) error
	// Record commits an audit entry alone.
	Record(ctx context.Context, e audit.Entry) error
}

// UserChange is what a decision about a user does to the store, all of it or nothing.
type UserChange struct {
	User  User
	Audit audit.Entry
	// EndSessions ends the user's sessions and invitation, and their browsers are known no more.
	EndSessions bool
	// Invitation is stored in the place of the one before; nil leaves that.
	Invitation *StoredInvitation
	// NeedsOtherAdmin tells that the user was an administrator and is none any more: the change is refused, with LastAdmin,
	// unless there is another one who may sign in. Who they are is known under a lock that the store takes.
	NeedsOtherAdmin bool
}

// LastAdmin is the refusal to leave the console without an administrator.
func LastAdmin(u User) error {
	return fault.New(fault.Conflict, "%s is the last administrator who can sign in. Make somebody else an administrator first.", u.Email)
}

// PeopleConfig is what People are made of.
type PeopleConfig struct {
	Store UserStore
	// Refused counts refused log-ins that are too many to be recorded each; nil records each.
	Refused *audit.Tally
	Now     func() time.Time
	Logger  *slog.Logger

	// cost is what a password's hash costs; nil is argonParams. Tests alone, of something else than hashes, have another.
	cost *argon2id.Params
}

// People are the users of the console and their sessions.
type People struct {
	c         PeopleConfig
	passwords *passwords
	throttled throttled
}

// NewPeople returns People.
func NewPeople(c PeopleConfig) (*People, error) {
	p, err := newPasswords(*cmp.Or(c.cost, &argonParams), c.Now)
	if err != nil {
		return nil, err
	}
	return &People{c: c, passwords: p}, nil
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
	s, u, found, err := p.c.Store.FindSession(ctx, SessionSecret{text.Secret(secret)}.hash())
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

// EndSessions ends a session of a user, or all of them when the id is empty, and returns how many. One that has ended is
// no failure.
func (p *People) EndSessions(ctx context.Context, userID, session string) (int, error) {
	return p.c.Store.EndSession(ctx, userID, session, "", p.now(),
		p.entry(ctx, "session.end", map[string]any{"user": userID, "session": session}))
}

// SignOut ends a session of the one who asks; one that has ended is no failure.
func (p *People) SignOut(ctx context.Context, userID, session string) error {
	if session == "" {
		return nil
	}
	_, err := p.EndSessions(ctx, userID, session)
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
	u, err := newUser(newID("usr_", p.now()), in, caller.From(ctx).Actor(), p.now())
	if err != nil {
		return User{}, err
	}
	if password != "" {
		if err := goodPassword(password, u.Email); err != nil {
			return User{}, err
		}
		if u.PasswordHash, err = p.passwords.hash(ctx, password, caller.From(ctx).Actor()); err != nil {
			return User{}, err
		}
	}
	e := p.entry(ctx, "user.add", map[string]any{"user": u.ID, "email": u.Email, "roles": u.Roles, "password": password != ""})
	return u, p.c.Store.AddUser(ctx, u, nil, e)
}

// Users returns a page of users, by address, and the address after which the next page begins, empty after the last.
func (p *People) Users(ctx context.Context, f UserFilter) (page []User, next string, err error) {
	f.Search, f.Limit = strings.TrimSpace(f.Search), cmp.Or(f.Limit, pageSize)+1
	page, err = p.c.Store.Users(ctx, f)
	if err == nil && len(page) == f.Limit {
		page = page[:f.Limit-1]
		next = page[len(page)-1].Email
	}
	return page, next, err
}

// User returns a user by the id; E_NOT_FOUND when there is none.
func (p *People) User(ctx context.Context, id string) (User, error) {
	u, found, err := p.c.Store.UserByID(ctx, id)
	if err == nil && !found {
		err = fault.New(fault.NotFound, "There is no user with the id %q.", text.Shown(id, maxAgent))
	}
	return u, err
}

// UserByEmail returns a user by the address, in any case; E_NOT_FOUND when there is none.
func (p *People) UserByEmail(ctx context.Context, email string) (User, error) {
	u, found, err := p.c.Store.UserByEmail(ctx, email)
	if err == nil && !found {
		err = fault.New(fault.NotFound, "There is no user with the address %q.", text.Shown(email, MaxEmail))
	}
	return u, err
}

// SetPassword gives a user a password, ends their sessions and forgets their failed log-ins.
func (p *People) SetPassword(ctx context.Context, email, password string) (User, error) {
	if err := goodPassword(password, email); err != nil {
		return User{}, err
	}
	hash, err := p.passwords.hash(ctx, password, account(email))
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
	p.forget(ctx, u)
	return u, nil
}

// forget forgets the failed log-ins of a user who has got another password.
func (p *People) forget(ctx context.Context, u User) {
	if err := p.c.Store.Refill(ctx, accountBucket(u.Email)); err != nil {
		p.c.Logger.WarnContext(ctx, "failed log-ins not forgotten", "user", u.ID, "error", err)
	}
}

// ChangePassword is SetPassword by a user who is signed in and knows the old one, and signs them in
// anew: every other session has ended. Failures count against the session that they are made in.
func (p *People) ChangePassword(ctx context.Context, email, old, password string, b Browser) (SignedIn, error) {
	if err := goodPassword(password, email); err != nil {
		return SignedIn{}, err
	}
	admit := func() (admission, error) {
		taken, err := p.take(ctx, placeBucket(email, "session "+b.Session))
		if err != nil {
			return admission{}, err
		}
		return p.admitKnown(ctx, taken)
	}
	if _, _, err := p.authenticate(ctx, email, old, b, "passwd", admit); err != nil {
		return SignedIn{}, err
	}
	u, err := p.SetPassword(ctx, email, password)
	if err != nil {
		return SignedIn{}, err
	}
	return p.open(ctx, u, b, ByPassword)
}

// SetRoles gives a user other roles; sessions have them within two seconds.
func (p *People) SetRoles(ctx context.Context, email string, roles []string) (User, error) {
	return p.SetRolesOf(ctx, email, nil, roles)
}

// SetRolesOf is SetRoles by somebody who saw the roles that the user had: E_CONFLICT when these are others by now. Nil
// is what nobody has looked at.
func (p *People) SetRolesOf(ctx context.Context, email string, had, roles []string) (User, error) {
	var v schema.Violations
	chosen := chosenRoles(&v, roles)
	if err := v.Err(); err != nil {
		return User{}, err
	}
	return p.change(ctx, email, "user.roles", false, func(u *User) error {
		if had != nil && !slices.Equal(chosenRoles(&schema.Violations{}, had), chosenRoles(&schema.Violations{}, u.Roles)) {
			return fault.New(fault.Conflict, "Somebody else has just changed the roles of %s: they are %s now.", u.Email,
				cmp.Or(strings.Join(u.Roles, ", "), "none"))
		}
		u.Roles = chosen
		return nil
	})
}

// SetLanguage keeps the language in which a user wants the console. It is no act upon anything, so the audit log has none of it.
func (p *People) SetLanguage(ctx context.Context, userID, language string) error {
	return p.c.Store.SetLanguage(ctx, userID, language)
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

// change commits what do makes of a user. Who does it in the console leaves one administrator who can sign in there; a
// terminal, or a log-in provider, can make another one.
func (p *People) change(ctx context.Context, email, operation string, endSessions bool, do func(*User) error) (User, error) {
	var changed User
	err := p.c.Store.ChangeUser(ctx, email, func(u User) (UserChange, error) {
		changed = u
		if err := do(&changed); err != nil {
			return UserChange{}, err
		}
		detail := map[string]any{"user": u.ID, "email": u.Email, "roles_before": u.Roles, "roles": changed.Roles}
		return UserChange{User: changed, Audit: p.entry(ctx, operation, detail), EndSessions: endSessions,
			NeedsOtherAdmin: caller.From(ctx).HubUser != "" && u.Administers() && !changed.Administers()}, nil
	})
	return changed, err
}

const (
	// reapEvery bounds what visitors leave behind who sign in nowhere: two throttles for each name that they type.
	reapEvery = 10 * time.Minute
	// reapAfter is how long an ended session is kept, for whoever wants to know what happened.
	reapAfter = 7 * 24 * time.Hour
)

// Reap deletes what has ended long ago, from time to time, until ctx ends.
func (p *People) Reap(ctx context.Context) error {
	for {
		if err := p.c.Store.Reap(ctx, p.now().Add(-reapAfter), p.now()); err != nil && ctx.Err() == nil {
			p.c.Logger.WarnContext(ctx, "old sessions not deleted", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(reapEvery):
		}
	}
}

// now is the time that goes into the store: what is answered is what can be read back.
func (p *People) now() time.Time { return p.c.Now().UTC().Truncate(time.Millisecond) }

// entry is the audit entry of what the caller does.
func (p *People) entry(ctx context.Context, operation string, detail map[string]any) audit.Entry {
	return audit.Entry{At: p.now(), Caller: caller.From(ctx), Tool: operation, Outcome: audit.OK, Count: 1, Detail: detail}
}

// newID draws an id: a prefix and a ULID, which sorts by time.
func newID(prefix string, now time.Time) string {
	return prefix + ulid.MustNew(ulid.Timestamp(now), rand.Reader).String()
}
