package gateway

import (
	"context"
	"crypto/sha256"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/remote"
)

const (
	// sessionTTL bounds how long an ended session, a disabled user or a lost role lives on.
	sessionTTL = 2 * time.Second
	// sessionLookup bounds one question to auth.
	sessionLookup = 3 * time.Second
	// maxSessions bounds the cache; beyond it the cache starts anew.
	maxSessions = 10_000
	// sessionLength is that of 256 bits in base64url.
	sessionLength = 43
)

// Session is a console session that holds.
type Session struct {
	// ID names the session without being its secret.
	ID                string
	User, Email, Name string
	Roles             []string
	ExpiresAt         time.Time
}

// SessionVerifier finds a session by its secret, and forgets what it knows of one. Verify
// returns E_AUTH_INVALID, E_AUTH_EXPIRED or E_AUTH_REVOKED for a session that does not hold,
// and E_DB when it cannot tell.
type SessionVerifier interface {
	Verify(ctx context.Context, secret string) (Session, error)
	Forget(secret string)
}

// SessionCache asks auth about a session and remembers a good answer for at most two
// seconds, counted from the question.
type SessionCache struct {
	ask    func(ctx context.Context, secret string) (Session, error)
	now    func() time.Time
	flight singleflight.Group

	mu      sync.Mutex
	entries map[[sha256.Size]byte]cachedSession
	// forgotten counts Forgets: an answer asked for before one is not kept after it.
	forgotten uint64
}

type cachedSession struct {
	session Session
	asked   time.Time
}

// NewSessionCache caches the answers of ask.
func NewSessionCache(ask func(ctx context.Context, secret string) (Session, error), now func() time.Time) *SessionCache {
	return &SessionCache{ask: ask, now: now, entries: map[[sha256.Size]byte]cachedSession{}}
}

// Verify implements SessionVerifier.
func (s *SessionCache) Verify(ctx context.Context, secret string) (Session, error) {
	if len(secret) != sessionLength || strings.Trim(secret, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
		return Session{}, fault.New(fault.AuthInvalid, "The session is not valid.")
	}
	hash := sha256.Sum256([]byte(secret))
	s.mu.Lock()
	cached, ok := s.entries[hash]
	s.mu.Unlock()
	now := s.now()
	if ok && now.Sub(cached.asked) < sessionTTL && now.Before(cached.session.ExpiresAt) {
		return cached.session, nil
	}
	answer := s.flight.DoChan(string(hash[:]), func() (any, error) {
		asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), sessionLookup)
		defer cancel()
		return s.fetch(asking, hash, secret)
	})
	select {
	case a := <-answer:
		if a.Err != nil {
			return Session{}, a.Err
		}
		return a.Val.(Session), nil
	case <-ctx.Done():
		return Session{}, ctx.Err()
	}
}

func (s *SessionCache) fetch(ctx context.Context, hash [sha256.Size]byte, secret string) (Session, error) {
	s.mu.Lock()
	forgotten := s.forgotten
	s.mu.Unlock()
	asked := s.now()
	found, err := s.ask(ctx, secret)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		delete(s.entries, hash)
		return Session{}, err
	}
	if s.forgotten == forgotten {
		if len(s.entries) >= maxSessions {
			clear(s.entries)
		}
		s.entries[hash] = cachedSession{found, asked}
	}
	return found, nil
}

// Forget drops a session: it has just been ended or replaced.
func (s *SessionCache) Forget(secret string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgotten++
	delete(s.entries, sha256.Sum256([]byte(secret)))
	s.flight.Forget(string(hashOf(secret)))
}

func hashOf(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}

// AskAuthForSession returns the question that a SessionCache puts to the auth service.
func AskAuthForSession(auth *remote.Client) func(context.Context, string) (Session, error) {
	type question struct {
		ID string `json:"id"`
	}
	type answer struct {
		Session   string    `json:"session"`
		User      string    `json:"user"`
		Email     string    `json:"email"`
		Name      string    `json:"name"`
		Roles     []string  `json:"roles"`
		ExpiresAt time.Time `json:"expires_at"`
	}
	return func(ctx context.Context, secret string) (Session, error) {
		ctx = caller.With(ctx, caller.Caller{Kind: caller.Service, Service: "gateway", RequestID: caller.From(ctx).RequestID})
		a, err := remote.Call[question, answer](ctx, auth, "/internal/sessions/resolve", true, question{secret})
		if err != nil {
			return Session{}, err
		}
		return Session{ID: a.Session, User: a.User, Email: a.Email, Name: a.Name, Roles: a.Roles, ExpiresAt: a.ExpiresAt}, nil
	}
}
