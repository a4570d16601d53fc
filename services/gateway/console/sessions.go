package console

import (
	"context"
	"crypto/sha256"
	"strings"
	"time"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/remote"
	"hub.internal/services/gateway/cache"
)

// sessionLength is that of 256 bits in base64url.
const sessionLength = 43

// isSecret tells whether a text has the form of what auth gives a browser: to ask auth about any other is no use.
func isSecret(text string) bool {
	return len(text) == sessionLength && strings.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") == ""
}

// Session is a console session that holds.
type Session struct {
	// ID names the session without being its secret.
	ID string
	// User is the id of its user.
	User, Email, Name string
	Roles             []string
	// ExpiresAt is when the session ends if it is not used: auth moves that on with each use.
	ExpiresAt time.Time
}

// SessionCache asks auth about a session and remembers a good answer for at most two
// seconds, counted from the question: that is how long an ended session, a disabled user
// or a lost role lives on.
type SessionCache struct{ answers *cache.Cache[Session] }

// NewSessionCache caches the answers of ask.
func NewSessionCache(ask func(ctx context.Context, secret string) (Session, error), now func() time.Time) *SessionCache {
	return &SessionCache{cache.New(ask, now)}
}

// Verify finds a session by its secret. It returns E_AUTH_INVALID, E_AUTH_EXPIRED or E_AUTH_REVOKED for a session that does not
// hold, and E_DB when it cannot tell.
func (s *SessionCache) Verify(ctx context.Context, secret string) (Session, error) {
	if !isSecret(secret) {
		return Session{}, fault.New(fault.AuthInvalid, "The session is not valid.")
	}
	// A session lives on while it is used, so auth is asked again at its end.
	return s.answers.Get(ctx, secret, func(known Session, now time.Time) bool { return now.Before(known.ExpiresAt) })
}

// Forget drops a session: it has just been ended or replaced.
func (s *SessionCache) Forget(secret string) {
	ended := sha256.Sum256([]byte(secret))
	s.answers.Forget(func(hash [sha256.Size]byte, _ Session) bool { return hash == ended })
}

// sessionQuestion names a session by the secret in its cookie.
type sessionQuestion struct {
	ID string `json:"id"`
}

// sessionAnswer is what auth says of a session that holds.
type sessionAnswer struct {
	Session   string    `json:"session"`
	User      string    `json:"user"`
	Email     string    `json:"email"`
	Name      string    `json:"name"`
	Roles     []string  `json:"roles"`
	ExpiresAt time.Time `json:"expires_at"`
}

// resolveSession asks auth about a session. It may be repeated, since it changes nothing.
var resolveSession = remote.Operation[sessionQuestion, sessionAnswer]{Path: "/internal/sessions/resolve", Repeatable: true}

// AskAuthForSession returns the question that a SessionCache puts to the auth service.
func AskAuthForSession(auth *remote.Client) func(context.Context, string) (Session, error) {
	return func(ctx context.Context, secret string) (Session, error) {
		a, err := resolveSession.Call(caller.Alone(ctx, caller.Gateway), auth, sessionQuestion{secret})
		if err != nil {
			return Session{}, err
		}
		return Session{ID: a.Session, User: a.User, Email: a.Email, Name: a.Name, Roles: a.Roles, ExpiresAt: a.ExpiresAt}, nil
	}
}

// Contracts are what the console takes for granted of a neighbour, auth or admin.
func Contracts(owner string) []remote.Contract {
	return map[string][]remote.Contract{
		"auth":           {resolveSession.Contract(), knownBrowser.Contract(), askFinder.Contract()},
		"admin":          {readMenus.Contract(), askFinder.Contract()},
		"payments":       {askFinder.Contract()},
		"review-control": {askFinder.Contract()},
	}[owner]
}
