package credentials

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/schema"
)

const (
	// verifiesFor is how long a credential that is not active any more still verifies webhooks.
	verifiesFor = 30 * 24 * time.Hour
	// maxListed bounds a list: there are a few a year.
	maxListed = 500
)

// Filter says which credentials a list has.
type Filter struct {
	// Provider and Env are empty for all.
	Provider string
	Env      Env
	// ActiveOnly leaves out those that new orders do not use.
	ActiveOnly bool
	// Since has those that are active, or were at that moment or after it.
	Since time.Time
	// Limit is how many there are at most, newest first.
	Limit int
}

// Change is what a decision about a credential does to the store, all of it or nothing.
type Change struct {
	Credential Credential
	// Added takes its place.
	Added *Sealed
	Audit audit.Entry
}

// Store keeps credentials. Its errors are faults; E_NOT_FOUND for an id that it does not have, and E_CONFLICT for a
// second active one of a provider and an environment.
type Store interface {
	// NextCredentialID draws the id of a new row: what is sealed is bound to it.
	NextCredentialID(ctx context.Context) (ID, error)
	// AddCredential commits a new one together with its audit entry.
	AddCredential(ctx context.Context, c Sealed, e audit.Entry) error
	// ChangeCredential locks one, lets decide judge it, and commits what it decides.
	ChangeCredential(ctx context.Context, id ID, decide func(Credential) (Change, error)) error
	// Credential returns one as it is kept.
	Credential(ctx context.Context, id ID) (Sealed, error)
	// Credentials returns those of a filter, newest first.
	Credentials(ctx context.Context, f Filter) ([]Sealed, error)
	// ResealCredentials locks all, replaces what is sealed by what do returns, and commits the audit entry of how many.
	ResealCredentials(ctx context.Context, do func(Sealed) (Sealed, error), entry func(n int) audit.Entry) (n int, err error)
}

// Config is what a Service is made of.
type Config struct {
	Store Store
	// Sealer may be nil where nothing is added or opened.
	Sealer Sealer
	Now    func() time.Time
	// Logger hears of what the keyset does not open. It may be nil where nothing is opened.
	Logger *slog.Logger
}

// Service adds, changes and opens credentials. Who does it is the caller of the context.
type Service struct{ c Config }

// New returns a Service.
func New(c Config) *Service { return &Service{c} }

// List returns the credentials of a filter, newest first, 500 at most.
func (s *Service) List(ctx context.Context, f Filter) ([]Credential, error) {
	f.Limit = maxListed
	sealed, err := s.c.Store.Credentials(ctx, f)
	list := make([]Credential, len(sealed))
	for i, c := range sealed {
		list[i] = c.Credential
	}
	return list, err
}

// Inspect returns what may be known of a credential.
func (s *Service) Inspect(ctx context.Context, id ID) (Credential, error) {
	c, err := s.c.Store.Credential(ctx, id)
	return c.Credential, err
}

// Add makes the active credential of a provider and an environment that have none: E_CONFLICT otherwise, E_VALIDATION for
// values that no provider gives.
func (s *Service) Add(ctx context.Context, provider string, env Env, v Values) (Credential, error) {
	c, err := newCredential(provider, env, v, caller.From(ctx).Actor(), s.now())
	if err != nil {
		return Credential{}, err
	}
	sealed, err := s.sealed(ctx, c, v)
	if err != nil {
		return Credential{}, err
	}
	return sealed.Credential, s.c.Store.AddCredential(ctx, sealed, s.entry(ctx, "credential.add", sealed.Credential, nil))
}

// Rotate puts another credential into the place of the active one, which its orders keep: E_CONFLICT for one that is not active.
func (s *Service) Rotate(ctx context.Context, id ID, v Values) (Credential, error) {
	old, err := s.Inspect(ctx, id)
	if err != nil {
		return Credential{}, err
	}
	next, err := newCredential(old.Provider, old.Env, v, caller.From(ctx).Actor(), s.now())
	if err != nil {
		return Credential{}, err
	}
	sealed, err := s.sealed(ctx, next, v)
	if err != nil {
		return Credential{}, err
	}
	return sealed.Credential, s.c.Store.ChangeCredential(ctx, id, func(c Credential) (Change, error) {
		ended, err := c.become(false, s.now())
		return Change{Credential: ended, Added: &sealed,
			Audit: s.entry(ctx, "credential.rotate", sealed.Credential, map[string]any{"replaces": id})}, err
	})
}

// Activate makes a credential of before the one of new orders: E_CONFLICT while there is another.
func (s *Service) Activate(ctx context.Context, id ID) (Credential, error) {
	return s.become(ctx, "credential.activate", id, true)
}

// Deactivate leaves new orders of its provider and environment without a credential. Who does it has typed the two.
func (s *Service) Deactivate(ctx context.Context, id ID, typed string) (Credential, error) {
	c, err := s.Inspect(ctx, id)
	if err != nil {
		return Credential{}, err
	}
	if typed != c.Name() {
		return Credential{}, schema.Invalid("/confirm", "confirm", "must be what it is for: %s", c.Name())
	}
	return s.become(ctx, "credential.deactivate", id, false)
}

// become activates or deactivates a credential, with its row of the audit log.
func (s *Service) become(ctx context.Context, operation string, id ID, active bool) (changed Credential, err error) {
	err = s.c.Store.ChangeCredential(ctx, id, func(c Credential) (_ Change, err error) {
		changed, err = c.become(active, s.now())
		return Change{Credential: changed, Audit: s.entry(ctx, operation, changed, nil)}, err
	})
	return changed, err
}

// Rekey seals all credentials again, with the primary key of the keyset. The older keys stay in it: accounts that money goes back to are
// sealed with them. It returns how many it has sealed, and how many it has left as they are: inactive ones that the keyset does not
// open. An active one that it does not open fails the whole, E_INTERNAL.
func (s *Service) Rekey(ctx context.Context) (n, left int, err error) {
	if s.c.Sealer == nil {
		return 0, 0, noKeyset()
	}
	n, err = s.c.Store.ResealCredentials(ctx, func(c Sealed) (Sealed, error) {
		v, err := c.open(s.c.Sealer)
		switch {
		case err != nil && !c.Active:
			left++
			return c, nil
		case err != nil:
			return c, err
		}
		return c.seal(s.c.Sealer, v)
	}, func(n int) audit.Entry {
		return audit.Entry{At: s.now(), Caller: caller.From(ctx), Tool: "credential.rekey", Outcome: audit.OK, Count: n - left,
			Detail: map[string]any{"left": left}}
	})
	return n - left, left, err
}

// Unopenable counts the active credentials that the keyset does not open, and all that are active.
func (s *Service) Unopenable(ctx context.Context) (n, active int, err error) {
	list, err := s.c.Store.Credentials(ctx, Filter{ActiveOnly: true, Limit: maxListed})
	if err != nil {
		return 0, 0, err
	}
	for _, c := range list {
		if _, err := s.open(c); err != nil {
			n++
		}
	}
	return n, len(list), nil
}

// CheckVerifying is an error that says how many of the credentials that verify webhooks the keyset does not open. It is nil when it
// opens all of them. What one of those has signed is refused meanwhile.
func (s *Service) CheckVerifying(ctx context.Context) error {
	list, err := s.c.Store.Credentials(ctx, Filter{Since: s.now().Add(-verifiesFor), Limit: maxListed})
	if err != nil {
		return err
	}
	closed := 0
	for _, c := range list {
		if _, err := s.open(c); err != nil {
			closed++
		}
	}
	if closed > 0 {
		return fmt.Errorf("it does not open %d of the %d credentials that verify webhooks", closed, len(list))
	}
	return nil
}

// Active is the credential for new orders: E_DB when there is none.
func (s *Service) Active(ctx context.Context, provider string, env Env) (Unsealed, error) {
	found, err := s.opened(ctx, Filter{Provider: provider, Env: env, ActiveOnly: true, Limit: 1})
	if err != nil {
		return Unsealed{}, err
	}
	if len(found) == 0 {
		return Unsealed{}, fault.New(fault.DB, "Hub has no active credential of %s for %s. Ask an administrator.", provider, env)
	}
	return found[0], nil
}

// ByID is the credential that an order was made with, active or not: E_NOT_FOUND for an id that there is not.
func (s *Service) ByID(ctx context.Context, id ID) (Unsealed, error) {
	c, err := s.c.Store.Credential(ctx, id)
	if err != nil {
		return Unsealed{}, err
	}
	return s.open(c)
}

// Verifying are the credentials that may have signed a webhook: those that are active, or were in the last 30 days. One that does not
// open verifies nothing and is logged; it is an error only when none opens.
func (s *Service) Verifying(ctx context.Context, provider string) ([]Unsealed, error) {
	return s.opened(ctx, Filter{Provider: provider, Since: s.now().Add(-verifiesFor), Limit: maxListed})
}

// opened are the credentials of a filter in clear, without those that do not open. When there are some and none opens, it returns why
// the newest does not.
func (s *Service) opened(ctx context.Context, f Filter) (out []Unsealed, err error) {
	sealed, err := s.c.Store.Credentials(ctx, f)
	if err != nil {
		return nil, err
	}
	var closed error
	for _, c := range sealed {
		one, err := s.open(c)
		if err == nil {
			out = append(out, one)
			continue
		}
		closed = cmp.Or(closed, err)
		s.c.Logger.WarnContext(ctx, "a credential does not open", "credential", c.ID, "provider", c.Provider, "env", c.Env, "error", err)
	}
	if len(out) == 0 {
		return nil, closed
	}
	return out, nil
}

// open opens one; E_CONFLICT without a keyset, E_INTERNAL when the keyset is another one.
func (s *Service) open(c Sealed) (Unsealed, error) {
	if s.c.Sealer == nil {
		return Unsealed{}, noKeyset()
	}
	v, err := c.open(s.c.Sealer)
	return Unsealed{c.ID, c.Env, v.ClientID, v.Secret}, err
}

// sealed gives the credential its id and seals the values to it.
func (s *Service) sealed(ctx context.Context, c Credential, v Values) (Sealed, error) {
	if s.c.Sealer == nil {
		return Sealed{}, noKeyset()
	}
	id, err := s.c.Store.NextCredentialID(ctx)
	if err != nil {
		return Sealed{}, err
	}
	c.ID = id
	return c.seal(s.c.Sealer, v)
}

// noKeyset is the error of a process that has no keyset, such as a command without HUB_SECRETS_KEYSET.
func noKeyset() error {
	return fault.New(fault.Conflict, "Hub has no keyset to keep secrets with: set HUB_SECRETS_KEYSET (`payments keyring new` makes one).")
}

// now is the time that goes into the store: what is answered is what can be read back.
func (s *Service) now() time.Time { return s.c.Now().UTC().Truncate(time.Millisecond) }

// entry tells who did what to which credential, and nothing of what the provider gave.
func (s *Service) entry(ctx context.Context, operation string, c Credential, more map[string]any) audit.Entry {
	detail := map[string]any{"credential": c.ID, "provider": c.Provider, "env": c.Env}
	for name, value := range more {
		detail[name] = value
	}
	return audit.Entry{At: s.now(), Caller: caller.From(ctx), Tool: operation, Outcome: audit.OK, Count: 1, Detail: detail}
}
