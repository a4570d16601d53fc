// Package auth owns API keys: who may call Hub's tools, with which scopes and within
// which limits; and People: who may sign in to the console, and who has. It refuses to keep
// or log a key, a password or a session's secret itself, and to count calls: the gateway
// enforces what a verified key says.
package auth

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
)

const (
	// touchEvery is how exact LastUsedAt is.
	touchEvery = time.Minute
	// touchTimeout bounds what LastUsedAt may cost the caller of Verify.
	touchTimeout = 250 * time.Millisecond
	// pageSize is how many rows a list has that does not say.
	pageSize = 200
)

// HashedKey is a key with its hash, as the store keeps it.
type HashedKey struct {
	Key
	Hash Hash
}

// Change is what a decision about a key does to the store, all of it or nothing.
type Change struct {
	Key Key
	// Successor is a key to add, if any.
	Successor *HashedKey
	Audit     audit.Entry
}

// Store keeps keys. Its errors are faults; E_NOT_FOUND for an id that it does not have.
type Store interface {
	// Add commits a new key together with its audit entry; E_CONFLICT when its id is taken.
	Add(ctx context.Context, k HashedKey, e audit.Entry) error
	// Find returns the key that has one of the hashes.
	Find(ctx context.Context, hashes []Hash) (k HashedKey, found bool, err error)
	Get(ctx context.Context, id string, e audit.Entry) (Key, error)
	// Chain returns the ids of the rotations that a key is part of, oldest first.
	Chain(ctx context.Context, id string) ([]string, error)
	// List returns the keys of a filter, newest first.
	List(ctx context.Context, f KeyFilter, e audit.Entry) ([]Key, error)
	// Names returns the names of those of the keys that there are, by id.
	Names(ctx context.Context, ids []string) (map[string]string, error)
	// Change locks a key, lets decide judge it, and commits what it decides.
	Change(ctx context.Context, id string, decide func(Key) (Change, error)) error
	// Touch sets LastUsedAt unless that was done less than every before at. It does not wait for a lock.
	Touch(ctx context.Context, id string, at time.Time, every time.Duration) error
	// KeysUnderOtherPeppers counts the active keys that were hashed under other peppers, and all that are active.
	KeysUnderOtherPeppers(ctx context.Context, peppers []string, now time.Time) (n, active int, err error)
}

// Notices tells every replica of the gateway at once that it must ask about a key again.
// An implementation deals with its own failures: without a notice a gateway
// asks again within two seconds.
type Notices interface {
	Changed(ctx context.Context, id string)
}

// Config is what a Service is made of.
type Config struct {
	Store   Store
	Peppers Peppers
	// Notices may be nil where no key is changed.
	Notices Notices
	Now     func() time.Time
	Logger  *slog.Logger
}

// Service issues, changes and verifies API keys. Who does it is the caller of the context.
type Service struct{ c Config }

// New returns a Service.
func New(c Config) *Service { return &Service{c} }

// Verify returns the key that text is, whatever its state, and E_AUTH_INVALID when it is
// none of Hub's. It costs one indexed read, and one write a minute and key.
func (s *Service) Verify(ctx context.Context, text string) (Key, error) {
	secret, err := ParseSecret(text)
	if err != nil {
		return Key{}, err
	}
	hashes := s.c.Peppers.hashes(secret)
	k, found, err := s.c.Store.Find(ctx, hashes)
	if err != nil {
		return Key{}, err
	}
	if !found || !matches(hashes, k.Hash) {
		return Key{}, invalid()
	}
	s.touch(ctx, k.Key)
	return k.Key, nil
}

// touch notes that a key was used. That it fails costs a warning and no call.
func (s *Service) touch(ctx context.Context, k Key) {
	now := s.c.Now()
	if k.Status(now) != Active || k.LastUsedAt != nil && now.Sub(*k.LastUsedAt) < touchEvery {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, touchTimeout)
	defer cancel()
	if err := s.c.Store.Touch(ctx, k.ID, now, touchEvery); err != nil && !errors.Is(ctx.Err(), context.Canceled) {
		s.c.Logger.WarnContext(ctx, "last use of a key not recorded", "key_id", k.ID, "error", err)
	}
}

// Issue makes a key. This is the only time that it can be revealed.
func (s *Service) Issue(ctx context.Context, in Issue) (Key, Secret, error) {
	hashed, secret, err := s.newHashedKey(in.ID, func(id string, secret Secret, pepperID string) (Key, error) {
		return newKey(id, in, secret, pepperID, caller.From(ctx).Actor(), s.now())
	})
	if err != nil {
		return Key{}, Secret{}, err
	}
	if err := s.c.Store.Add(ctx, hashed, s.entry(ctx, "apikey.issue", issueDetail(hashed.Key))); err != nil {
		return Key{}, Secret{}, err
	}
	return hashed.Key, secret, nil
}

// Get returns a key and the ids of its rotations, oldest first.
func (s *Service) Get(ctx context.Context, id string) (Key, []string, error) {
	k, err := s.c.Store.Get(ctx, id, s.entry(ctx, "apikey.show", map[string]any{"id": id}))
	if err != nil {
		return Key{}, nil, err
	}
	chain, err := s.c.Store.Chain(ctx, id)
	return k, chain, err
}

// List returns a page of keys, newest first, and the id after which the next page begins, empty after the last.
func (s *Service) List(ctx context.Context, f KeyFilter) (page []Key, next string, err error) {
	f.Search, f.At, f.Limit = searchTerm(f.Search), s.now(), cmp.Or(f.Limit, pageSize)+1
	e := s.entry(ctx, "apikey.list", map[string]any{"after": f.After, "search": f.Search, "status": f.Status})
	page, err = s.c.Store.List(ctx, f, e)
	if err != nil {
		return nil, "", err
	}
	if len(page) == f.Limit {
		page = page[:f.Limit-1]
		next = page[len(page)-1].ID
	}
	return page, next, nil
}

// Revoke ends a key for good, at once. Repeating it is harmless and sends the notice again.
func (s *Service) Revoke(ctx context.Context, id, reason string) (Key, error) {
	return s.change(ctx, id, func(old Key) (Change, error) {
		k, err := old.revoke(reason, s.now())
		return Change{Key: k, Audit: s.entry(ctx, "apikey.revoke", map[string]any{"id": id, "reason": reason, "was": old.Status(s.now())})}, err
	})
}

// Rescope gives a key other scopes, at once; its successor in a rotation keeps its own. had are those that whoever asks has seen, nil
// when nobody has looked: E_CONFLICT when these are others by now, and for a key that is not active.
func (s *Service) Rescope(ctx context.Context, id string, had, scopes []string) (Key, error) {
	return s.change(ctx, id, func(old Key) (Change, error) {
		k, err := old.rescope(had, scopes, s.now())
		return Change{Key: k, Audit: s.entry(ctx, "apikey.scopes", map[string]any{"id": id, "from": old.Scopes, "to": k.Scopes})}, err
	})
}

// Rotation is a key and its successor, whose Secret is revealed this once.
type Rotation struct {
	Old, Successor Key
	Secret         Secret
	// Chain is the ids of all rotations, oldest first.
	Chain []string
}

// Rotate issues a successor that may do the same, and lets the key expire after overlap.
func (s *Service) Rotate(ctx context.Context, id string, overlap time.Duration) (Rotation, error) {
	var r Rotation
	err := s.c.Store.Change(ctx, id, func(k Key) (Change, error) {
		hashed, secret, err := s.newHashedKey("", func(next string, secret Secret, pepperID string) (successor Key, err error) {
			r.Old, successor, err = k.rotate(next, secret, pepperID, caller.From(ctx).Actor(), overlap, s.now())
			return successor, err
		})
		if err != nil {
			return Change{}, err
		}
		r.Successor, r.Secret = hashed.Key, secret
		detail := issueDetail(hashed.Key)
		detail["rotated_from"], detail["old_expires_at"] = id, r.Old.ExpiresAt
		return Change{Key: r.Old, Successor: &hashed, Audit: s.entry(ctx, "apikey.rotate", detail)}, nil
	})
	if err != nil {
		return Rotation{}, err
	}
	s.notify(ctx, id) // however long the overlap: a gateway that cannot ask keeps to the end that it knows
	// The successor exists and its secret is shown once: from here on nothing may fail.
	if r.Chain, err = s.c.Store.Chain(ctx, id); err != nil {
		s.c.Logger.WarnContext(ctx, "rotations of a key not read", "key_id", id, "error", err)
		r.Chain = []string{r.Old.ID, r.Successor.ID}
	}
	return r, nil
}

// UnverifiableKeys counts the active keys that this process cannot verify, because they were
// hashed under a pepper that it does not have, and all that are active.
func (s *Service) UnverifiableKeys(ctx context.Context) (n, active int, err error) {
	return s.c.Store.KeysUnderOtherPeppers(ctx, s.c.Peppers.IDs(), s.c.Now())
}

// change commits a decision that gateways have to hear of.
func (s *Service) change(ctx context.Context, id string, decide func(Key) (Change, error)) (Key, error) {
	var changed Key
	err := s.c.Store.Change(ctx, id, func(k Key) (Change, error) {
		c, err := decide(k)
		changed = c.Key
		return c, err
	})
	if err != nil {
		return Key{}, err
	}
	s.notify(ctx, id)
	return changed, nil
}

// notify tells the gateways that a key has changed.
func (s *Service) notify(ctx context.Context, id string) {
	if s.c.Notices != nil {
		s.c.Notices.Changed(ctx, id)
	}
}

// NewKeyID draws the id of a key that is yet to be issued.
func (s *Service) NewKeyID() string { return newID("ak_", s.c.Now()) }

// newHashedKey draws a key, and its id where there is none yet, and hashes it.
func (s *Service) newHashedKey(id string, fill func(id string, secret Secret, pepperID string) (Key, error)) (HashedKey, Secret, error) {
	if len(s.c.Peppers.all) == 0 {
		return HashedKey{}, Secret{}, fault.New(fault.Validation, "a key cannot be made without a pepper")
	}
	if id == "" {
		id = s.NewKeyID()
	}
	secret := NewSecret()
	k, err := fill(id, secret, s.c.Peppers.all[0].id)
	if err != nil {
		return HashedKey{}, Secret{}, err
	}
	return HashedKey{k, s.c.Peppers.hashes(secret)[0]}, secret, nil
}

// now is the time that goes into the store: what is answered is what can be read back.
func (s *Service) now() time.Time { return s.c.Now().UTC().Truncate(time.Millisecond) }

// entry is the audit entry of what the caller does.
func (s *Service) entry(ctx context.Context, operation string, detail map[string]any) audit.Entry {
	return audit.Entry{At: s.now(), Caller: caller.From(ctx), Tool: operation, Outcome: audit.OK, Count: 1, Detail: detail}
}

// issueDetail is what the audit log keeps of a new key.
func issueDetail(k Key) map[string]any {
	return map[string]any{"id": k.ID, "name": k.Name, "service": k.Service, "scopes": k.Scopes, "limits": k.Limits,
		"expires_at": k.ExpiresAt, "pepper_id": k.PepperID}
}
