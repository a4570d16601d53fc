package links

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"hub.internal/pkg/text"
)

const (
	// TicketLife is how long a user has to open a ticket and to allow it.
	TicketLife = 15 * time.Minute
	// GrantLife is how long an app has to confirm a link that its user has allowed.
	GrantLife = time.Minute
	// MaxTicket bounds a ticket in bytes, so that a cookie can hold it. The longest that Invite makes is shorter.
	MaxTicket = 2500

	ticketVersion = 1
	nonceBytes    = 16
	codeBytes     = 32
	// What tickets and forms are sealed under: neither opens as the other.
	ticketName = "auth.connect|ticket|1"
	formName   = "auth.connect|form|1"
)

// Sealer encrypts what travels through browsers, so that they can neither read nor make it.
type Sealer interface {
	// Seal encrypts a text so that it opens under the same name alone.
	Seal(text, name string) ([]byte, error)
	// Open decrypts what was sealed under the name.
	Open(sealed []byte, name string) (string, error)
}

// ticket asks a user to link their account to an app. It is in no table: only one that was used leaves something.
type ticket struct {
	Version int    `json:"v"`
	Service string `json:"c"`
	User    string `json:"u"`
	Nonce   []byte `json:"n"`
	// Expires is in seconds since 1970.
	Expires int64    `json:"e"`
	Scopes  []string `json:"s"`
}

// good tells whether the ticket can be allowed at now.
func (t ticket) good(now time.Time) bool { return now.Before(t.ends()) }

// ends is when the ticket expires.
func (t ticket) ends() time.Time { return time.Unix(t.Expires, 0).UTC() }

// form is what the page has shown, to whom: it comes back with their answer.
type form struct {
	Session string   `json:"s"`
	Nonce   []byte   `json:"n"`
	Scopes  []string `json:"p"`
}

// matches tells whether the form was shown in the session for the ticket.
func (f form) matches(session string, t ticket) bool {
	return session != "" && f.Session == session && slices.Equal(f.Nonce, t.Nonce)
}

// sealed is a value that only the holder of the keyset can read or have made.
func sealed(by Sealer, v any, name string) (string, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	b, err := by.Seal(string(text), name)
	return base64.RawURLEncoding.EncodeToString(b), err
}

// opened reads what sealed has made; false for anything else.
func opened[T any](by Sealer, text, name string) (v T, ok bool) {
	if by == nil || text == "" || len(text) > MaxTicket {
		return v, false
	}
	// What decodes to the same bytes is no other ticket, but nobody makes it.
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || strings.ContainsAny(text, "\r\n") {
		return v, false
	}
	clear, err := by.Open(b, name)
	return v, err == nil && json.Unmarshal([]byte(clear), &v) == nil
}

// Code is what an app confirms a link with. It shows itself to nobody who does not call Reveal.
type Code struct{ text.Secret }

// newCode draws 256 bits.
func newCode() Code {
	return Code{text.Secret(base64.RawURLEncoding.EncodeToString(random(codeBytes)))}
}

// Hash is the SHA-256 of a code: the store keeps no codes.
type Hash [sha256.Size]byte

// hash is what the store keeps of a code.
func (c Code) hash() Hash { return sha256.Sum256([]byte(c.Reveal())) }

// random draws n bytes.
func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // ends the program rather than fail
	return b
}
