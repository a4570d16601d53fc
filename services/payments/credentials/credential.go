// Package credentials is the domain of what payment providers know Hub by: for each provider and environment one that new
// orders use, and those before it, which their orders keep. What is secret of one is written and used, and never shown.
// It refuses to know a provider's protocol, and where anything is kept.
//
// A credential is sealed with a keyset that is not in the store (pkg/seal), and bound to its column, row and environment: what
// was copied from the sandbox's row into production's does not open. Of each provider and environment one credential is
// active at most. One that is not active any more still serves the orders that were made with it, and verifies webhooks for
// 30 days.
package credentials

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/schema"
)

// ID is the identity of a credential.
type ID = schema.ID

// Env says whether money moves.
type Env string

// The environments of a provider.
const (
	Sandbox    Env = "sandbox"
	Production Env = "production"
)

// Envs lists the environments.
func Envs() []string { return []string{string(Sandbox), string(Production)} }

// NicePay is the provider that there is.
const NicePay = "nicepay"

// Providers lists the providers.
func Providers() []string { return []string{NicePay} }

// Unsealed is a credential in clear, for as long as a call takes. It shows itself to nobody who does not call Reveal.
type Unsealed struct {
	// ID names the row, and Env is the one that it is for.
	ID  ID
	Env Env

	clientID, secret string
}

// NewUnsealed returns a credential in clear.
func NewUnsealed(id ID, env Env, clientID, secret string) Unsealed {
	return Unsealed{id, env, clientID, secret}
}

// Reveal returns what the provider knows Hub by.
func (c Unsealed) Reveal() (clientID, secret string) { return c.clientID, c.secret }

// String masks the credential.
func (c Unsealed) String() string { return fmt.Sprintf("credential %s (%s)", c.ID, c.Env) }

// GoString masks the credential for %#v.
func (c Unsealed) GoString() string { return c.String() }

// LogValue masks the credential for slog.
func (c Unsealed) LogValue() slog.Value { return slog.StringValue(c.String()) }

// Credential is what may be known of a credential. A row is never deleted: orders name it.
type Credential struct {
	ID       ID
	Provider string
	Env      Env
	// ClientIDMask is enough of the client id to tell two apart.
	ClientIDMask string
	// Active tells that new orders use it; one is, of a provider and an environment.
	Active    bool
	CreatedBy string
	CreatedAt time.Time
	// UpdatedAt is when it became active, or inactive, the last time.
	UpdatedAt time.Time
}

// Name is the credential's place: provider and environment.
func (c Credential) Name() string { return c.Provider + " " + string(c.Env) }

// Sealed is a credential as the store keeps it.
type Sealed struct {
	Credential
	// ClientID and Secret are encrypted, each bound to its column, the row and the environment.
	ClientID, Secret []byte
}

// Values are what a provider has given to Hub.
type Values struct {
	ClientID string `json:"-"`
	Secret   string `json:"-"`
}

// String masks the values.
func (Values) String() string { return "***" }

// GoString masks the values for %#v.
func (Values) GoString() string { return "***" }

// LogValue masks the values for slog.
func (v Values) LogValue() slog.Value { return slog.StringValue(v.String()) }

// Bounds of what a provider gives, in bytes.
const (
	MinValue = 8
	MaxValue = 200
)

// check adds what is wrong with the values, without repeating them.
func (v Values) check(bad *schema.Violations) {
	for _, value := range []struct{ name, text string }{{"client_id", v.ClientID}, {"secret", v.Secret}} {
		strange := strings.ContainsFunc(value.text, func(r rune) bool { return r <= ' ' || r > '~' })
		if n := len(value.text); n < MinValue || n > MaxValue || strange {
			bad.Add("/"+value.name, "value", "must be %d to %d printable characters of ASCII without spaces", MinValue, MaxValue)
		}
	}
}

// newCredential makes an active credential, or tells all that is wrong with the wish.
func newCredential(provider string, env Env, v Values, by string, now time.Time) (Credential, error) {
	var bad schema.Violations
	if !slices.Contains(Providers(), provider) {
		bad.Add("/provider", "enum", "must be one of %s", strings.Join(Providers(), ", "))
	}
	if !slices.Contains(Envs(), string(env)) {
		bad.Add("/env", "enum", "must be one of %s", strings.Join(Envs(), ", "))
	}
	v.check(&bad)
	return Credential{Provider: provider, Env: env, ClientIDMask: mask(v.ClientID), Active: true,
		CreatedBy: by, CreatedAt: now, UpdatedAt: now}, bad.Err()
}

// mask is the first and the last four characters of a client id, and of a short one the last two.
func mask(clientID string) string {
	switch n := len(clientID); {
	case n < 2:
		return "****"
	case n < 12:
		return "****" + clientID[n-2:]
	default:
		return clientID[:4] + "****" + clientID[n-4:]
	}
}

// become makes the credential active, or ends that.
func (c Credential) become(active bool, now time.Time) (Credential, error) {
	if c.Active == active {
		state := map[bool]string{true: "active", false: "inactive"}[active]
		return c, fault.New(fault.Conflict, "Credential %s is %s already.", c.ID, state).With(map[string]any{"active": active})
	}
	c.Active, c.UpdatedAt = active, now
	return c, nil
}

// Sealer encrypts what the store keeps and others must not read.
type Sealer interface {
	// Seal encrypts a text so that it opens under the same name alone.
	Seal(text, name string) ([]byte, error)
	// Open decrypts what was sealed under the name.
	Open(sealed []byte, name string) (string, error)
}

// seal seals the values to the row of the credential.
func (c Credential) seal(s Sealer, v Values) (Sealed, error) {
	clientID, err := s.Seal(v.ClientID, c.sealName("client_id"))
	if err != nil {
		return Sealed{}, err
	}
	secret, err := s.Seal(v.Secret, c.sealName("secret"))
	return Sealed{c, clientID, secret}, err
}

// open returns the values of the row.
func (s Sealed) open(by Sealer) (v Values, err error) {
	if v.ClientID, err = by.Open(s.ClientID, s.sealName("client_id")); err != nil {
		return Values{}, err
	}
	if v.Secret, err = by.Open(s.Secret, s.sealName("secret")); err != nil {
		return Values{}, err
	}
	return v, nil
}

// sealName binds a ciphertext to its column, its row and its environment: one that was moved to another place does not
// open.
func (c Credential) sealName(column string) string {
	return "payments.credentials|" + column + "|" + c.ID.String() + "|" + string(c.Env)
}
