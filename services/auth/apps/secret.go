package apps

import (
	"crypto/rand"
	"encoding/base64"
	"hash/crc32"
	"strings"
	"time"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/text"
)

const (
	secretPrefix  = "hss_"
	webhookPrefix = "whsec_"
	secretBytes   = 32
	// Base62 are the digits of keys and checksums.
	Base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	// MaxOverlap is how long a secret that was replaced stays good, at most.
	MaxOverlap = 30 * 24 * time.Hour
	// WebhookOverlap is how long a webhook secret that was replaced is still signed with.
	WebhookOverlap = 24 * time.Hour
)

// Kind says what an app's secret is for.
type Kind string

// The kinds of secret.
const (
	// Signing secrets are what an app signs its tokens with.
	Signing Kind = "signing"
	// Webhook secrets are what Hub signs its notifications to the app with.
	Webhook Kind = "webhook"
)

// Token is the secret of an app in clear: all of it as text is what is signed with (HS256), for a webhook secret what
// its base64 stands for. It exists where it is made or used, and shows itself to nobody who does not call Reveal.
type Token struct{ text.Secret }

// newToken draws a secret: the prefix, 256 bits in base64url, and six base62 digits of the CRC32 of all before, which
// turns typos away.
func newToken() Token {
	var b [secretBytes]byte
	_, _ = rand.Read(b[:]) // ends the program rather than fail
	body := secretPrefix + base64.RawURLEncoding.EncodeToString(b[:])
	return Token{text.Secret(body + Checksum(body))}
}

// Checksum is the CRC32 of a text in six base62 digits, with leading zeros.
func Checksum(body string) string {
	sum := crc32.ChecksumIEEE([]byte(body))
	var digits [6]byte
	for i := len(digits) - 1; i >= 0; i-- {
		digits[i] = Base62[sum%uint32(len(Base62))]
		sum /= uint32(len(Base62))
	}
	return string(digits[:])
}

// newWebhookToken draws a secret in the form of Standard Webhooks: the prefix and the base64 of 256 bits.
func newWebhookToken() Token {
	var b [secretBytes]byte
	_, _ = rand.Read(b[:])
	return Token{text.Secret(webhookPrefix + base64.StdEncoding.EncodeToString(b[:]))}
}

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

// Kind is what the secret is for.
func (s Secret) Kind() Kind {
	if strings.HasPrefix(s.ID, Webhook.prefix()) {
		return Webhook
	}
	return Signing
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

// Held are the secrets of an app that were not destroyed, newest first.
type Held struct{ Signing, Webhook []Secret }

// Sealer encrypts what the store keeps and others must not read.
type Sealer interface {
	// Seal encrypts a text so that it opens under the same name alone.
	Seal(text, name string) ([]byte, error)
	// Open decrypts what was sealed under the name.
	Open(sealed []byte, name string) (string, error)
}

// SealName binds a sealed secret of the kind to its row and its app.
func (k Kind) SealName(s Secret) string {
	table := "auth.app_secrets"
	if k == Webhook {
		table = "auth.app_webhook_secrets"
	}
	return table + "|sealed|" + s.ID + "|" + s.Code
}

// prefix is that of the ids of secrets of the kind.
func (k Kind) prefix() string {
	if k == Webhook {
		return "w_"
	}
	return "s_"
}

// draw makes a secret of the kind.
func (k Kind) draw() Token {
	if k == Webhook {
		return newWebhookToken()
	}
	return newToken()
}

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

// replace lets the live one of an app's secrets of a kind expire after overlap, for another one. An app has two live ones at most.
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
