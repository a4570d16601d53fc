package gateway

import (
	"context"
	"crypto/sha256"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/remote"
)

const (
	// keyTTL bounds how long a revoked key may live on when its notice is lost.
	keyTTL = 2 * time.Second
	// keyLookup bounds one question to auth.
	keyLookup = 3 * time.Second
	// maxKeys bounds the cache; beyond it the cache starts anew.
	maxKeys = 50_000
)

// KeyCache asks auth about a key and remembers a good answer for at most two
// seconds, counted from the question. Forget drops it at once.
type KeyCache struct {
	ask    func(ctx context.Context, key string) (APIKey, error)
	now    func() time.Time
	flight singleflight.Group

	mu      sync.Mutex
	entries map[[sha256.Size]byte]cachedKey
	// notices counts Forgets: an answer asked for before a notice is not kept after it.
	notices uint64
}

type cachedKey struct {
	key   APIKey
	asked time.Time
}

// NewKeyCache caches the answers of ask.
func NewKeyCache(ask func(ctx context.Context, key string) (APIKey, error), now func() time.Time) *KeyCache {
	return &KeyCache{ask: ask, now: now, entries: map[[sha256.Size]byte]cachedKey{}}
}

// Verify implements KeyVerifier.
func (k *KeyCache) Verify(ctx context.Context, key string) (APIKey, error) {
	hash := sha256.Sum256([]byte(key))
	k.mu.Lock()
	cached, ok := k.entries[hash]
	k.mu.Unlock()
	now := k.now()
	if ok && now.Sub(cached.asked) < keyTTL {
		return cached.key, expired(cached.key, now)
	}
	// Callers share one question; the first to leave must not take the answer with it.
	answer := k.flight.DoChan(string(hash[:]), func() (any, error) {
		asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), keyLookup)
		defer cancel()
		return k.fetch(asking, hash, key)
	})
	select {
	case a := <-answer:
		if a.Err != nil {
			return APIKey{}, a.Err
		}
		return a.Val.(APIKey), nil
	case <-ctx.Done():
		return APIKey{}, ctx.Err()
	}
}

func (k *KeyCache) fetch(ctx context.Context, hash [sha256.Size]byte, key string) (APIKey, error) {
	k.mu.Lock()
	notices := k.notices
	k.mu.Unlock()
	asked := k.now()
	found, err := k.ask(ctx, key)
	k.mu.Lock()
	defer k.mu.Unlock()
	if err != nil {
		delete(k.entries, hash)
		return APIKey{}, err
	}
	if k.notices == notices {
		if len(k.entries) >= maxKeys {
			clear(k.entries)
		}
		k.entries[hash] = cachedKey{found, asked}
	}
	return found, expired(found, asked)
}

// Forget drops the key with this id: auth has changed it.
func (k *KeyCache) Forget(id string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.notices++
	for hash, e := range k.entries {
		if e.key.ID == id {
			delete(k.entries, hash)
		}
	}
}

// ForgetAll drops every key: notices may have been missed.
func (k *KeyCache) ForgetAll() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.notices++
	clear(k.entries)
}

func expired(key APIKey, now time.Time) error {
	if !key.ExpiresAt.IsZero() && !now.Before(key.ExpiresAt) {
		return revokedKey("has expired")
	}
	return nil
}

func revokedKey(why string) error {
	return fault.New(fault.AuthRevoked, "The API key %s.", why)
}

// AskAuth returns the question that a KeyCache puts to the auth service.
func AskAuth(auth *remote.Client) func(context.Context, string) (APIKey, error) {
	type question struct {
		Key string `json:"key"`
	}
	type answer struct {
		ID      string   `json:"id"`
		Service string   `json:"service"`
		Scopes  []string `json:"scopes"`
		Limits  struct {
			UserPerMinute    int `json:"user_per_minute"`
			UserBurst        int `json:"user_burst"`
			ServicePerMinute int `json:"service_per_minute"`
			ServiceBurst     int `json:"service_burst"`
		} `json:"limits"`
		Status    string     `json:"status"`
		ExpiresAt *time.Time `json:"expires_at"`
	}
	return func(ctx context.Context, key string) (APIKey, error) {
		ctx = caller.With(ctx, caller.Caller{Kind: caller.Service, Service: "gateway"})
		a, err := remote.Call[question, answer](ctx, auth, "/internal/apikeys/verify", true, question{key})
		if err != nil {
			return APIKey{}, err
		}
		if a.Status == "revoked" {
			return APIKey{}, revokedKey("was revoked")
		}
		if a.Status != "active" {
			return APIKey{}, revokedKey("has expired")
		}
		k := APIKey{ID: a.ID, Service: a.Service, Scopes: a.Scopes,
			User:        Rate{PerMinute: a.Limits.UserPerMinute, Burst: a.Limits.UserBurst},
			ServiceWide: Rate{PerMinute: a.Limits.ServicePerMinute, Burst: a.Limits.ServiceBurst}}
		if a.ExpiresAt != nil {
			k.ExpiresAt = *a.ExpiresAt
		}
		return k, nil
	}
}
