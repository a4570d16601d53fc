package caller

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"hub.internal/pkg/fault"
)

// Header carries the internal token from process to process.
const Header = "Hub-Token"

const (
	// lifetime bounds what a stolen token is good for.
	lifetime = 60 * time.Second
	// skew is how far the clocks of two machines may be apart.
	skew   = 5 * time.Second
	issuer = "hub"
	// minSecret is the HS256 key length that RFC 7518 3.2 asks for.
	minSecret = 32
)

// Keys mints and verifies internal tokens (JWT, HS256, at most 60 s). The first
// secret signs, each verifies: to rotate, add the new one in front, wait a
// minute, drop the old one.
type Keys struct {
	signing key256
	byID    map[string]key256
	now     func() time.Time
	parser  *jwt.Parser
}

type key256 struct {
	id     string
	secret []byte
}

type claims struct {
	Caller
	jwt.RegisteredClaims
}

// NewKeys takes one or two secrets of at least 32 bytes; now is the clock.
func NewKeys(secrets []string, now func() time.Time) (*Keys, error) {
	if len(secrets) < 1 || len(secrets) > 2 {
		return nil, fmt.Errorf("one or two secrets are needed, not %d", len(secrets))
	}
	k := &Keys{byID: map[string]key256{}, now: now}
	for i, s := range secrets {
		if len(s) < minSecret {
			return nil, fmt.Errorf("secret %d has %d bytes; at least %d are needed", i+1, len(s), minSecret)
		}
		sum := sha256.Sum256([]byte("hub internal token key id\x00" + s))
		key := key256{id: hex.EncodeToString(sum[:4]), secret: []byte(s)}
		k.byID[key.id] = key
		if i == 0 {
			k.signing = key
		}
	}
	k.parser = jwt.NewParser(jwt.WithValidMethods([]string{"HS256"}), jwt.WithIssuer(issuer), jwt.WithExpirationRequired(),
		jwt.WithIssuedAt(), jwt.WithLeeway(skew), jwt.WithTimeFunc(now))
	return k, nil
}

// Mint returns a token that says the bearer speaks for c, for the next 60 seconds.
func (k *Keys) Mint(c Caller) (string, error) {
	now := k.now()
	t := jwt.NewWithClaims(jwt.SigningMethodHS256, claims{Caller: c, RegisteredClaims: jwt.RegisteredClaims{
		Issuer: issuer, IssuedAt: jwt.NewNumericDate(now), ExpiresAt: jwt.NewNumericDate(now.Add(lifetime)),
	}})
	t.Header["kid"] = k.signing.id
	return t.SignedString(k.signing.secret)
}

// Verify returns the caller that a token speaks for, E_AUTH_MISSING for no token
// and E_AUTH_INVALID for one that is forged, expired or lives too long.
func (k *Keys) Verify(token string) (Caller, error) {
	if token == "" {
		return Caller{}, fault.New(fault.AuthMissing, "An internal token is required.")
	}
	var c claims
	_, err := k.parser.ParseWithClaims(token, &c, func(t *jwt.Token) (any, error) {
		id, _ := t.Header["kid"].(string)
		key, ok := k.byID[id]
		if !ok {
			return nil, errors.New("unknown kid")
		}
		return key.secret, nil
	})
	if err == nil && (c.IssuedAt == nil || c.ExpiresAt.Sub(c.IssuedAt.Time) > lifetime) {
		err = errors.New("token lives too long")
	}
	if err != nil {
		return Caller{}, fault.New(fault.AuthInvalid, "The internal token is not valid.").Because(err)
	}
	return c.Caller, nil
}
