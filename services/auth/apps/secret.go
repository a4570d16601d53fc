package apps

import (
	"crypto/rand"
	"encoding/base64"
	"hash/crc32"
	"log/slog"
	"time"

	"hub.internal/pkg/fault"
)

const (
	secretPrefix = "hss_"
	secretBytes  = 32
	base62       = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	// MaxOverlap is how long a secret that was replaced stays good, at most.
	MaxOverlap = 30 * 24 * time.Hour
)

// Token is the secret of an app in clear: what the app signs its tokens with (HS256), all of it as text. It exists
// where it is made or verified with, and shows itself to nobody who does not call Reveal.
type Token struct{ text string }

// newToken draws a secret: the prefix, 256 bits in base64url, and six base62 digits of the CRC32 of all before, which
// turns typos away.
func newToken() Token {
	var b [secretBytes]byte
	_, _ = rand.Read(b[:]) // ends the program rather than fail
	body := secretPrefix + base64.RawURLEncoding.EncodeToString(b[:])
	sum := crc32.ChecksumIEEE([]byte(body))
	var digits [6]byte
	for i := len(digits) - 1; i >= 0; i-- {
		digits[i] = base62[sum%uint32(len(base62))]
		sum /= uint32(len(base62))
	}
	return Token{body + string(digits[:])}
}

// Reveal returns the secret itself.
func (t Token) Reveal() string { return t.text }

// String masks the secret.
func (t Token) String() string { return secretPrefix + "***" }

// GoString masks the secret for %#v.
func (t Token) GoString() string { return t.String() }

// LogValue masks the secret for slog.
func (t Token) LogValue() slog.Value { return slog.StringValue(t.String()) }

// Secret is what is known of a secret that an app holds.
type Secret struct {
	// ID is the kid of tokens that are signed with it.
	ID        string
	Code      string
	CreatedBy string
	CreatedAt time.Time
	// ExpiresAt is nil for the secret that was not replaced.
	ExpiresAt *time.Time
	// RevokedAt is when the secret was destroyed.
	RevokedAt *time.Time
}

// Live tells whether tokens that are signed with it are good at now. The end begins at the very moment.
func (s Secret) Live(now time.Time) bool {
	return s.RevokedAt == nil && (s.ExpiresAt == nil || now.Before(*s.ExpiresAt))
}

// SealedSecret is a secret as the store keeps it.
type SealedSecret struct {
	Secret
	// Sealed is the Token, encrypted and bound to its row.
	Sealed []byte
}

// Sealer encrypts what the store keeps and others must not read.
type Sealer interface {
	// Seal encrypts a text so that it opens under the same name alone.
	Seal(text, name string) ([]byte, error)
}

// SealName binds a sealed secret to its row and its app.
func SealName(s Secret) string { return "auth.app_secrets|sealed|" + s.ID + "|" + s.Code }

// live are those of the secrets that are good at now.
func live(all []Secret, now time.Time) []Secret {
	var out []Secret
	for _, s := range all {
		if s.Live(now) {
			out = append(out, s)
		}
	}
	return out
}

// replace lets the live secret expire after overlap, for another one. An app has two live ones at most.
func replace(a App, all []Secret, overlap time.Duration, now time.Time) (Secret, error) {
	held := live(all, now)
	switch {
	case len(held) == 0:
		return Secret{}, fault.New(fault.Conflict, "The app %s has no secret that could be rotated. Issue one.", a.Code)
	case len(held) > 1:
		return Secret{}, fault.New(fault.Conflict,
			"The app %s has two secrets that are good. Wait until the older one has expired, or revoke it.", a.Code)
	}
	old := held[0]
	if end := now.Add(overlap); old.ExpiresAt == nil || end.Before(*old.ExpiresAt) {
		old.ExpiresAt = &end
	}
	return old, nil
}
