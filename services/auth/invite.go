package auth

import (
	"context"
	"strings"
	"time"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/text"
)

// InvitationLife is how long an invitation holds.
const InvitationLife = 72 * time.Hour

// Invitation is a user's way in: whoever holds its secret may give the user a password, once.
type Invitation struct {
	Secret    SessionSecret
	ExpiresAt time.Time
}

// InvitationPath is the page that an invitation's link leads to.
const InvitationPath = "/login/invitation"

// Link is where the user chooses a password; publicURL is where browsers reach Hub, and may be empty.
func (i Invitation) Link(publicURL string) string {
	return strings.TrimSuffix(publicURL, "/") + InvitationPath + "?t=" + i.Secret.Reveal()
}

// StoredInvitation is what the store keeps of an invitation: its secret is a hash.
type StoredInvitation struct {
	Hash                 Hash
	CreatedAt, ExpiresAt time.Time
}

// newInvitation draws an invitation, and returns what is stored of it.
func (p *People) newInvitation() (Invitation, *StoredInvitation) {
	i := Invitation{newSessionSecret(), p.now().Add(InvitationLife)}
	return i, &StoredInvitation{i.Secret.hash(), p.now(), i.ExpiresAt}
}

// Invite makes a user without a password, and an invitation, which is revealed this once. E_CONFLICT for an address that is taken.
func (p *People) Invite(ctx context.Context, in NewUser) (User, Invitation, error) {
	u, err := newUser(newID("usr_", p.now()), in, caller.From(ctx).Actor(), p.now())
	if err != nil {
		return User{}, Invitation{}, err
	}
	i, stored := p.newInvitation()
	if err := p.c.Store.AddUser(ctx, u, stored, p.invitationEntry(ctx, "user.invite", u, i)); err != nil {
		return User{}, Invitation{}, err
	}
	u.InvitedUntil = &i.ExpiresAt
	return u, i, nil
}

// InviteAgain makes another invitation for a user, whose former one holds no longer: the link was lost, or the
// password. Until it is used the user signs in as before. E_CONFLICT for a user who is disabled.
func (p *People) InviteAgain(ctx context.Context, email string) (u User, i Invitation, err error) {
	i, stored := p.newInvitation()
	err = p.c.Store.ChangeUser(ctx, email, func(now User) (UserChange, error) {
		if now.DisabledAt != nil {
			return UserChange{}, fault.New(fault.Conflict, "%s is disabled. Enable the user before you invite them.", now.Email)
		}
		u = now
		return UserChange{User: now, Invitation: stored, Audit: p.invitationEntry(ctx, "user.invite_again", now, i)}, nil
	})
	if err != nil {
		return User{}, Invitation{}, err
	}
	u.InvitedUntil = &i.ExpiresAt
	return u, i, nil
}

// invitationEntry is the audit entry of an invitation.
func (p *People) invitationEntry(ctx context.Context, operation string, u User, i Invitation) audit.Entry {
	return p.entry(ctx, operation, map[string]any{"user": u.ID, "email": u.Email, "roles": u.Roles, "expires_at": i.ExpiresAt})
}

// Invited returns the user whom an invitation is for; E_NOT_FOUND for one that does not hold, or never did.
func (p *People) Invited(ctx context.Context, secret string) (User, error) {
	u, found, err := p.c.Store.Invited(ctx, SessionSecret{text.Secret(secret)}.hash(), p.now())
	if err == nil && !found {
		err = NoInvitation()
	}
	return u, err
}

// NoInvitation is the answer to an invitation that does not hold.
func NoInvitation() error {
	return fault.New(fault.NotFound, "This link does not work: it was used, replaced, or is too old. Ask an administrator for another one.")
}

// Accept gives the user of an invitation a password and signs them in. Their sessions end, and the invitation.
func (p *People) Accept(ctx context.Context, secret, password string, b Browser) (SignedIn, error) {
	u, err := p.Invited(ctx, secret)
	if err != nil {
		return SignedIn{}, err
	}
	if err := goodPassword(password, u.Email); err != nil {
		return SignedIn{}, err
	}
	hash, err := p.passwords.hash(ctx, password, u.ID)
	if err != nil {
		return SignedIn{}, err
	}
	err = p.c.Store.Accept(ctx, SessionSecret{text.Secret(secret)}.hash(), p.now(), func(now User) (UserChange, error) {
		now.PasswordHash = hash
		u = now
		return UserChange{User: now, Audit: p.acceptance(ctx, now, b), EndSessions: true}, nil
	})
	if err != nil {
		return SignedIn{}, err
	}
	p.forget(ctx, u)
	return p.open(ctx, u, b, ByPassword)
}

// acceptance is the audit entry of an invitation that was used, by the user themself.
func (p *People) acceptance(ctx context.Context, u User, b Browser) audit.Entry {
	e := p.entry(ctx, "user.accept", map[string]any{"user": u.ID, "email": u.Email, "address": b.Address})
	e.Caller.Service, e.Caller.ExternalUserID = "console", u.Email
	return e
}
