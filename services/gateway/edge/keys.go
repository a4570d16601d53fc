package edge

import (
	"context"
	"crypto/sha256"
	"sync/atomic"
	"time"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/remote"
	"hub.internal/services/gateway/cache"
)

// noticesLast is how long notices are taken to arrive after it was last seen that they do. What was revoked just when they
// stopped is of no use two seconds later, by this or by the age of an answer.
const noticesLast = 1500 * time.Millisecond

// KeyCache asks auth about a key and remembers a good answer for at most two
// seconds, counted from the question. Forget drops it at once.
type KeyCache struct {
	answers *cache.Cache[APIKey]
	now     func() time.Time
	heard   atomic.Pointer[time.Time]
}

// NewKeyCache caches the answers of ask.
func NewKeyCache(ask func(ctx context.Context, key string) (APIKey, error), now func() time.Time) *KeyCache {
	return &KeyCache{answers: cache.New(ask, now), now: now}
}

// ServeStale lets a good answer that is no older than most stand in for one that auth cannot give, because its store or auth
// itself does not answer: while notices arrive (CaughtUp), until a notice or a refusal, and never beyond the key's own end. It
// is called before the first Verify.
func (k *KeyCache) ServeStale(most time.Duration) {
	k.answers.StaleIfError = func(now time.Time) time.Duration {
		if at := k.heard.Load(); at == nil || now.Sub(*at) > noticesLast {
			return 0
		}
		return most
	}
}

// CaughtUp tells that each notice from before this moment has arrived.
func (k *KeyCache) CaughtUp(at time.Time) { k.heard.Store(&at) }

// ServesStale tells whether older answers stand in for those of auth at this moment.
func (k *KeyCache) ServesStale() bool { return k.answers.ServesStale() }

// Verify implements KeyVerifier.
func (k *KeyCache) Verify(ctx context.Context, key string) (APIKey, error) {
	found, err := k.answers.Get(ctx, key, nil)
	if err != nil {
		return APIKey{}, err
	}
	return found, expired(found, k.now())
}

// Forget drops the key with this id: auth has changed it, and the next call with it asks auth again, wherever the notice of the
// change came from.
func (k *KeyCache) Forget(id string) {
	k.answers.Forget(func(_ [sha256.Size]byte, key APIKey) bool { return key.ID == id })
}

// ForgetAll drops every key: notices may have been missed.
func (k *KeyCache) ForgetAll() {
	k.answers.Forget(func([sha256.Size]byte, APIKey) bool { return true })
}

// expired is E_AUTH_REVOKED for a key whose time is over: it may have come since auth was asked.
func expired(key APIKey, now time.Time) error {
	if !key.ExpiresAt.IsZero() && !now.Before(key.ExpiresAt) {
		return revokedKey("has expired")
	}
	return nil
}

// revokedKey is E_AUTH_REVOKED, and says why.
func revokedKey(why string) error {
	return fault.New(fault.AuthRevoked, "The API key %s.", why)
}

// keyQuestion is a key as it was sent.
type keyQuestion struct {
	Key string `json:"key"`
}

// keyAnswer is what auth knows of a key. Status is active, revoked or expired; ExpiresAt is null for one that does not expire.
type keyAnswer struct {
	ID        string           `json:"id"`
	Service   string           `json:"service"`
	Scopes    []string         `json:"scopes"`
	Limits    credentialLimits `json:"limits"`
	Status    string           `json:"status"`
	ExpiresAt *time.Time       `json:"expires_at"`
}

// credentialLimits are those that auth has of a key or an app.
type credentialLimits struct {
	UserPerMinute    int `json:"user_per_minute"`
	UserBurst        int `json:"user_burst"`
	ServicePerMinute int `json:"service_per_minute"`
	ServiceBurst     int `json:"service_burst"`
}

// rates are the limits of one external user, and those of the service as a whole.
func (l credentialLimits) rates() (user, serviceWide Rate) {
	return Rate{l.UserPerMinute, l.UserBurst}, Rate{l.ServicePerMinute, l.ServiceBurst}
}

// verifyKey asks auth about a key. It may be repeated, since it changes nothing that a caller sees.
var verifyKey = remote.Operation[keyQuestion, keyAnswer]{Path: "/internal/apikeys/verify", Repeatable: true}

// AskAuth returns the question that a KeyCache puts to the auth service.
func AskAuth(auth *remote.Client) func(context.Context, string) (APIKey, error) {
	return func(ctx context.Context, key string) (APIKey, error) {
		a, err := verifyKey.Call(caller.Alone(ctx, caller.Gateway), auth, keyQuestion{key})
		if err != nil {
			return APIKey{}, err
		}
		if a.Status == "revoked" {
			return APIKey{}, revokedKey("was revoked")
		}
		if a.Status != "active" {
			return APIKey{}, revokedKey("has expired")
		}
		k := APIKey{ID: a.ID, Service: a.Service, Scopes: a.Scopes}
		k.User, k.ServiceWide = a.Limits.rates()
		if a.ExpiresAt != nil {
			k.ExpiresAt = *a.ExpiresAt
		}
		return k, nil
	}
}

// Contracts are what the edge takes for granted of auth.
func Contracts() []remote.Contract {
	return []remote.Contract{verifyKey.Contract(), verifyToken.Contract(), admitToken.Contract()}
}
