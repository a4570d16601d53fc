package apps

import (
	"cmp"
	"context"
	"strings"
	"time"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/caller"
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
	// Secrets are those to sign tokens with that were not destroyed, newest first; Webhooks those that notifications are
	// signed with.
	Secrets, Webhooks []Secret
	// Links is how many users have linked their account, and still do.
	Links int
}

// HasSecret tells whether there is a secret that is good at now.
func (i Inspected) HasSecret(now time.Time) bool { return len(live(i.Secrets, now)) > 0 }

// Change is what a decision about an app does to the store, all of it or nothing.
type Change struct {
	App App
	// Added is a secret to add, if any, AddedWebhook a webhook secret.
	Added, AddedWebhook *SealedSecret
	// Ended are secrets that end: a revoked one is destroyed. EndedWebhooks are webhook secrets.
	Ended, EndedWebhooks []Secret
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
	// Keyring returns an app and its at most two secrets of the kind that are good at a moment: the current one first.
	Keyring(ctx context.Context, code string, kind Kind, at time.Time) (App, []SealedSecret, error)
	// NewestSealed returns the secrets of the kind that are good at a moment, of all apps, newest first, and limit at most.
	NewestSealed(ctx context.Context, kind Kind, at time.Time, limit int) ([]SealedSecret, error)
	// ChangeApp locks an app, lets decide judge it and its secrets, and commits what it decides.
	ChangeApp(ctx context.Context, code string, decide func(App, Held) (Change, error)) error
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

// triedSecrets is how many secrets of a kind tell whether the keyset is the one that they were sealed with.
const triedSecrets = 20

// Unopenable counts those of the newest secrets of each kind that the keyset does not open, and all that were tried.
func (s *Service) Unopenable(ctx context.Context) (n, tried int, err error) {
	for _, kind := range []Kind{Signing, Webhook} {
		list, err := s.c.Store.NewestSealed(ctx, kind, s.now(), triedSecrets)
		if err != nil {
			return 0, 0, err
		}
		tried += len(list)
		for _, secret := range list {
			if s.c.Sealer == nil {
				n++
			} else if _, err := s.c.Sealer.Open(secret.Sealed, kind.SealName(secret.Secret)); err != nil {
				n++
			}
		}
	}
	return n, tried, nil
}

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
	a, err := newApp(code, in, caller.From(ctx).Actor(), s.now())
	if err != nil {
		return App{}, err
	}
	return a, s.c.Store.AddApp(ctx, a, s.entry(ctx, "app.create", code, map[string]any{"settings": a.Settings}))
}

// Edit gives an app other settings: version is the one of the app that they were made of.
func (s *Service) Edit(ctx context.Context, code string, version int, in Settings) (App, error) {
	return s.change(ctx, code, func(a App, _ Held) (Change, error) {
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

// become moves an app to another status, as its transition table allows.
func (s *Service) become(ctx context.Context, operation, code string, to Status, reason string) (App, error) {
	return s.change(ctx, code, func(a App, _ Held) (Change, error) {
		next, err := a.become(to, reason, s.now())
		return Change{App: next, Audit: s.entry(ctx, operation, code, map[string]any{"from": a.Status, "to": to, "reason": reason})}, err
	})
}

// Revoke ends an app for good: its secrets are destroyed, and the links of its users end. Who does it has typed the
// app's code.
func (s *Service) Revoke(ctx context.Context, code, typed, reason string) (App, error) {
	return s.change(ctx, code, func(a App, held Held) (Change, error) {
		if typed != code {
			return Change{}, schema.Invalid("/confirm", "confirm", "must be the code of the app: %s", code)
		}
		next, err := a.become(Revoked, reason, s.now())
		ids := []string{}
		for _, list := range [][]Secret{held.Signing, held.Webhook} {
			for i := range list {
				list[i].RevokedAt = new(s.now())
				ids = append(ids, list[i].ID)
			}
		}
		return Change{App: next, Ended: held.Signing, EndedWebhooks: held.Webhook, Unlink: true, Audit: s.entry(ctx, "app.revoke", code,
			map[string]any{"from": a.Status, "to": Revoked, "reason": reason, "secrets": ids})}, err
	})
}

// change locks an app, lets decide say what happens to it, and returns the app as it was stored.
func (s *Service) change(ctx context.Context, code string, decide func(App, Held) (Change, error)) (App, error) {
	var changed App
	err := s.c.Store.ChangeApp(ctx, code, func(a App, held Held) (Change, error) {
		c, err := decide(a, held)
		changed = c.App
		return c, err
	})
	return changed, err
}

// now is the time that goes into the store: what is answered is what can be read back.
func (s *Service) now() time.Time { return s.c.Now().UTC().Truncate(time.Millisecond) }

// entry is the audit entry of a change of an app, by whoever calls.
func (s *Service) entry(ctx context.Context, operation, code string, detail map[string]any) audit.Entry {
	detail["service_code"] = code
	return audit.Entry{At: s.now(), Caller: caller.From(ctx), Tool: operation, Outcome: audit.OK, Count: 1, Detail: detail}
}
