package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"time"

	"hub.internal/pkg/text"
)

const (
	// sessionIdle ends a session that nobody uses, sessionLife one that somebody does.
	sessionIdle = 30 * time.Minute
	sessionLife = 12 * time.Hour
	// seenEvery is how exact LastSeen is.
	seenEvery = 5 * time.Second
	// maxAgent bounds what is kept of a browser's name.
	maxAgent = 300
	// sessionSecret is the length of a secret in bytes.
	sessionSecret = 32
)

// Session is somebody being signed in with a browser. Its secret is with that browser alone.
type Session struct {
	// ID names the session; it opens nothing.
	ID        string
	UserID    string
	Method    Method
	Address   string
	Agent     string
	CreatedAt time.Time
	LastSeen  time.Time
	// ExpiresAt is the end that no use defers.
	ExpiresAt time.Time
	RevokedAt *time.Time
}

// Method says how a user proved who they are.
type Method string

// The ways to sign in.
const (
	ByPassword Method = "password"
	ByOIDC     Method = "oidc"
)

// SessionState says what a session is good for at a moment.
type SessionState string

// The states of a session.
const (
	Open      SessionState = "open"
	Idle      SessionState = "idle"
	Over      SessionState = "over"
	SignedOut SessionState = "signed out"
)

// State is the state of the session at now. Each end begins at the very moment.
func (s Session) State(now time.Time) SessionState {
	switch {
	case s.RevokedAt != nil:
		return SignedOut
	case !now.Before(s.ExpiresAt):
		return Over
	case now.Sub(s.LastSeen) >= sessionIdle:
		return Idle
	}
	return Open
}

// Ends is when the session ends if nobody uses it any more.
func (s Session) Ends() time.Time {
	if idle := s.LastSeen.Add(sessionIdle); idle.Before(s.ExpiresAt) {
		return idle
	}
	return s.ExpiresAt
}

// SessionSecret is what the browser keeps. It shows itself to nobody who does not call Reveal.
type SessionSecret struct{ text.Secret }

// newSessionSecret draws 256 bits.
func newSessionSecret() SessionSecret {
	var b [sessionSecret]byte
	_, _ = rand.Read(b[:]) // ends the program rather than fail
	return SessionSecret{text.Secret(base64.RawURLEncoding.EncodeToString(b[:]))}
}

// hash is what the store keeps: the secret is random, so no slow hash is needed.
func (s SessionSecret) hash() Hash { return sha256.Sum256([]byte(s.Reveal())) }
