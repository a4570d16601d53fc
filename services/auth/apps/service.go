package apps

import (
	"cmp"
	"context"
	"crypto/rand"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/schema"
)

// pageSize is how many apps a list has that does not say.
const pageSize = 200

// Filter says which apps a list has.
type Filter struct {
	// Search is a part of the name or of the code; empty finds all.
	Search string
	// Status is empty for apps in every state.
	Status Status
	// After is the code after which the list goes on; empty begins it.
	After string
	// Limit is how many apps a page has, at most; 0 means 200.
	Limit int
	// At is the moment at which secrets are good or not; List sets it.
	At time.Time
}

// Listed is an app in a list.
type Listed struct {
	App
	// HasSecret tells that there is a secret that is good.
	HasSecret bool
}

// Inspected is an app with what belongs to it.
type Inspected struct {
	App
	// Secrets are those that were not destroyed, newest first.
	Secrets []Secret
	// Links is how many users have linked their account, and still do.
	Links int
}

// HasSecret tells whether there is a secret that is good at now.
func (i Inspected) HasSecret(now time.Time) bool { return len(live(i.Secrets, now)) > 0 }

// Change is what a decision about an app does to the store, all of it or nothing.
type Change struct {
	App App
	// Added is a secret to add, if any.
	Added *SealedSecret
	// Ended are secrets that end: a revoked one is destroyed.
	Ended []Secret
	// Unlink ends the links of all users to the app.
	Unlink bool
	Audit  audit.Entry
}

// Store keeps apps. Its errors are faults; E_NOT_FOUND for a code that it does not have.
type Store interface {
	// AddApp commits a new app together with its audit entry; E_CONFLICT when its code is taken.
	AddApp(ctx context.Context, a App, e audit.Entry) error
	// App returns an app with what belongs to it.
	App(ctx context.Context, code string) (Inspected, error)
	// Apps returns the apps of a filter, by code.
	Apps(ctx context.Context, f Filter) ([]Listed, error)
	// ChangeApp locks an app, lets decide judge it and its secrets, and commits what it decides.
	ChangeApp(ctx context.Context, code string, decide func(App, []Secret) (Change, error)) error
}

// Config is what a Service is made of.
type Config struct {
	Store Store
	// Sealer may be nil where no secret is issued.
	Sealer Sealer
	Now    func() time.Time
}

// Service makes and changes apps. Who does it is the caller of the context.
type Service struct{ c Config }

// New returns a Service.
func New(c Config) *Service { return &Service{c} }

// List returns a page of apps, by code, and the code after which the next page begins, empty after the last.
func (s *Service) List(ctx context.Context, f Filter) (page []Listed, next string, err error) {
	f.Search, f.At, f.Limit = strings.TrimSpace(f.Search), s.now(), cmp.Or(f.Limit, pageSize)+1
	page, err = s.c.Store.Apps(ctx, f)
	if err == nil && len(page) == f.Limit {
		page = page[:f.Limit-1]
		next = page[len(page)-1].Code
	}
	return page, next, err
}

// Inspect returns an app with its secrets and how many users have linked their account to it.
func (s *Service) Inspect(ctx context.Context, code string) (Inspected, error) {
	return s.c.Store.App(ctx, code)
}

// Now is the service's clock.
func (s *Service) Now() time.Time { return s.now() }

// Create makes an active app, without a secret.
func (s *Service) Create(ctx context.Context, code string, in Settings) (App, error) {
	a, err := newApp(code, in, actor(ctx), s.now())
	if err != nil {
		return App{}, err
	}
	return a, s.c.Store.AddApp(ctx, a, s.entry(ctx, "app.create", code, map[string]any{"settings": a.Settings}))
}

// Edit gives an app other settings: version is the one of the app that they were made of.
func (s *Service) Edit(ctx context.Context, code string, version int, in Settings) (App, error) {
	return s.change(ctx, code, func(a App, _ []Secret) (Change, error) {
		next, err := a.edit(in, version, s.now())
		return Change{App: next, Audit: s.entry(ctx, "app.edit", code, map[string]any{"from": a.Settings, "to": next.Settings})}, err
	})
}

// Suspend keeps an app from calling until it is resumed.
func (s *Service) Suspend(ctx context.Context, code, reason string) (App, error) {
	return s.become(ctx, "app.suspend", code, Suspended, reason)
}

// Resume lets a suspended app call again.
func (s *Service) Resume(ctx context.Context, code string) (App, error) {
	return s.become(ctx, "app.resume", code, Active, "")
}

func (s *Service) become(ctx context.Context, operation, code string, to Status, reason string) (App, error) {
	return s.change(ctx, code, func(a App, _ []Secret) (Change, error) {
		next, err := a.become(to, reason, s.now())
		return Change{App: next, Audit: s.entry(ctx, operation, code, map[string]any{"from": a.Status, "to": to, "reason": reason})}, err
	})
}

// Revoke ends an app for good: its secrets are destroyed, and the links of its users end. Who does it has typed the
// app's code.
func (s *Service) Revoke(ctx context.Context, code, typed, reason string) (App, error) {
	return s.change(ctx, code, func(a App, secrets []Secret) (Change, error) {
		if typed != code {
			return Change{}, schema.Invalid("/confirm", "confirm", "must be the code of the app: %s", code)
		}
		next, err := a.become(Revoked, reason, s.now())
		ids := []string{}
		for i := range secrets {
			secrets[i].RevokedAt = new(s.now())
			ids = append(ids, secrets[i].ID)
		}
		return Change{App: next, Ended: secrets, Unlink: true, Audit: s.entry(ctx, "app.revoke", code,
			map[string]any{"from": a.Status, "to": Revoked, "reason": reason, "secrets": ids})}, err
	})
}

// Issued is a secret that is revealed this once.
type Issued struct {
	Secret
	Token Token
	// Replaced is the one that expires for it; nil for the first one.
	Replaced *Secret
}

// IssueSecret makes the secret of an app that has none that is good.
func (s *Service) IssueSecret(ctx context.Context, code string) (Issued, error) {
	return s.issue(ctx, "app.issue_secret", code, func(a App, held []Secret) (*Secret, error) {
		if n := len(live(held, s.now())); n > 0 {
			return nil, fault.New(fault.Conflict, "The app %s has a secret already. Rotate it.", a.Code)
		}
		return nil, nil
	})
}

// RotateSecret makes another secret of an app, and lets the one that it has expire after overlap, or earlier if it was
// about to.
func (s *Service) RotateSecret(ctx context.Context, code string, overlap time.Duration) (Issued, error) {
	if overlap < 0 || overlap > MaxOverlap {
		return Issued{}, schema.Invalid("/overlap", "range", "must be between 0 and 30 days")
	}
	return s.issue(ctx, "app.rotate_secret", code, func(a App, held []Secret) (*Secret, error) {
		old, err := replace(a, held, overlap, s.now())
		return &old, err
	})
}

func (s *Service) issue(ctx context.Context, operation, code string, replaces func(App, []Secret) (*Secret, error)) (Issued, error) {
	if s.c.Sealer == nil {
		return Issued{}, fault.New(fault.Conflict,
			"Hub has no keyset to keep secrets with: set HUB_SECRETS_KEYSET (`auth keyset new` makes one).")
	}
	id, err := ulid.New(ulid.Timestamp(s.c.Now()), rand.Reader)
	if err != nil {
		return Issued{}, err
	}
	out := Issued{Secret: Secret{ID: "s_" + id.String(), Code: code, CreatedBy: actor(ctx), CreatedAt: s.now()}, Token: newToken()}
	sealed, err := s.c.Sealer.Seal(out.Token.text, SealName(out.Secret))
	if err != nil {
		return Issued{}, err
	}
	_, err = s.change(ctx, code, func(a App, held []Secret) (Change, error) {
		if a.Status == Revoked {
			return Change{}, ended(a)
		}
		c := Change{App: a, Added: &SealedSecret{out.Secret, sealed}}
		detail := map[string]any{"secret": out.ID}
		var err error
		if out.Replaced, err = replaces(a, held); err == nil && out.Replaced != nil {
			c.Ended = []Secret{*out.Replaced}
			detail["replaces"], detail["old_expires_at"] = out.Replaced.ID, out.Replaced.ExpiresAt
		}
		c.Audit = s.entry(ctx, operation, code, detail)
		return c, err
	})
	return out, err
}

// RevokeSecret destroys a secret of an app, at once.
func (s *Service) RevokeSecret(ctx context.Context, code, id string) (Secret, error) {
	var revoked Secret
	_, err := s.change(ctx, code, func(a App, held []Secret) (Change, error) {
		for _, secret := range held {
			if secret.ID == id {
				secret.RevokedAt = new(s.now())
				revoked = secret
				return Change{App: a, Ended: []Secret{secret}, Audit: s.entry(ctx, "app.revoke_secret", code, map[string]any{"secret": id})}, nil
			}
		}
		return Change{}, fault.New(fault.NotFound, "The app %s has no secret %q.", code, shortened(id))
	})
	return revoked, err
}

func (s *Service) change(ctx context.Context, code string, decide func(App, []Secret) (Change, error)) (App, error) {
	var changed App
	err := s.c.Store.ChangeApp(ctx, code, func(a App, secrets []Secret) (Change, error) {
		c, err := decide(a, secrets)
		changed = c.App
		return c, err
	})
	return changed, err
}

// now is the time that goes into the store: what is answered is what can be read back.
func (s *Service) now() time.Time { return s.c.Now().UTC().Truncate(time.Millisecond) }

func (s *Service) entry(ctx context.Context, operation, code string, detail map[string]any) audit.Entry {
	detail["service_code"] = code
	return audit.Entry{At: s.now(), Caller: caller.From(ctx), Tool: operation, Outcome: audit.OK, Count: 1, Detail: detail}
}

// actor is the name of who acts, as people know it.
func actor(ctx context.Context) string {
	c := caller.From(ctx)
	return cmp.Or(c.Email, c.HubUser, c.ExternalUserID)
}
