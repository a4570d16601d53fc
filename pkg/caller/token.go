package caller

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"hub.internal/pkg/fault"
)

const (
	// lifetime bounds what a stolen token is good for.
	lifetime = 60 * time.Second
	// reuseFor is how long a token is used again for the same caller and audience: whoever gets it
	// has at least the rest of its life to show it to a neighbour.
	reuseFor = 20 * time.Second
	// clockSkew is how far the clocks of two machines may be apart.
	clockSkew = 5 * time.Second
	// maxToken bounds what is parsed.
	maxToken = 8 << 10
)

// Keys are what a process signs with and whom it believes. A token is a JWT (EdDSA, at most
// 60 s) for one audience, followed by "~" and a proof whose hash the JWT holds. Whoever has
// both may call; the JWT alone can only be shown beside a token of the service that it was made
// for, so that a service which is shown it can use it for nothing.
type Keys struct {
	process string
	signing SigningKey
	kid     string
	trusted TrustedKeys
	now     func() time.Time
	parser  *jwt.Parser
	minted  recentCache[identity, mintedToken]
	// What was found right to call with, and what was found right to be shown: apart, because
	// the one has to come with its proof.
	opened, shown recentCache[string, *verifiedToken]
}

type mintedToken struct {
	token string
	until time.Time
}

// verifiedToken is what the signature of a token vouches for, as long as it holds.
type verifiedToken struct {
	issuer, audience string
	caller           Caller
	proof            []byte // the SHA-256 of it
	signed           string // the JWT itself
	until            time.Time
}

type claims struct {
	Caller
	jwt.RegisteredClaims
	Proof string `json:"prf"`
}

// NewKeys returns the keys of the named process; now is the clock. Where trusted has keys of
// the process's own name, its signing key has to be among them: others with the same list would
// refuse what it signs.
func NewKeys(process string, signing SigningKey, trusted TrustedKeys, now func() time.Time) (*Keys, error) {
	k := &Keys{process: process, signing: signing, kid: keyID(signing.public()), trusted: trusted, now: now}
	for _, t := range trusted.byID {
		if own := trusted.byID[k.kid]; t.process == process && own.process != process {
			return nil, fmt.Errorf("the signing key of %s (kid %s) is not among its keys there", process, k.kid)
		}
	}
	k.parser = jwt.NewParser(jwt.WithValidMethods([]string{jwt.SigningMethodEdDSA.Alg()}), jwt.WithExpirationRequired(), jwt.WithIssuedAt(),
		jwt.WithLeeway(clockSkew), jwt.WithStrictDecoding(), jwt.WithTimeFunc(now))
	return k, nil
}

// Neighbours is the rule that takes every process whose key is trusted, for itself alone.
func (k *Keys) Neighbours() Rule {
	rule := Rule{}
	for _, t := range k.trusted.byID {
		rule[t.process] = []string{Service}
	}
	return rule
}

// mint returns a token that says to the audience that this process speaks for c, made at most
// 20 s ago.
func (k *Keys) mint(c Caller, audience string) (string, error) {
	c.RequestID = ""
	now, key := k.now(), identify(c, audience)
	if m, ok := k.minted.get(key); ok && now.Before(m.until) {
		return m.token, nil
	}
	proof := rand.Text()
	sum := sha256.Sum256([]byte(proof))
	t := jwt.NewWithClaims(jwt.SigningMethodEdDSA, claims{Caller: c, Proof: base64.RawURLEncoding.EncodeToString(sum[:]),
		RegisteredClaims: jwt.RegisteredClaims{Issuer: k.process, Audience: jwt.ClaimStrings{audience},
			IssuedAt: jwt.NewNumericDate(now), ExpiresAt: jwt.NewNumericDate(now.Add(lifetime))}})
	t.Header["kid"] = k.kid
	signed, err := t.SignedString(k.signing.private)
	if err != nil {
		return "", fmt.Errorf("internal token: %w", err)
	}
	m := mintedToken{signed + "~" + proof, now.Add(reuseFor)}
	k.minted.put(key, m)
	return m.token, nil
}

// identity is what tells callers at an audience apart: two that differ never share one. The
// request id is no part of it.
type identity [sha256.Size]byte

func identify(c Caller, audience string) identity {
	b := make([]byte, 0, 512)
	for _, s := range [...]string{audience, c.Kind, c.Service, c.ExternalUserID, c.CredentialID, c.HubUser, c.Email, c.Name} {
		b = appendText(b, s)
	}
	for _, list := range [...][]string{c.Scopes, c.Roles} {
		b = binary.AppendUvarint(b, uint64(len(list)))
		for _, s := range list {
			b = appendText(b, s)
		}
	}
	return sha256.Sum256(b)
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// open reads a token that is used to call: for this process, with its proof.
func (k *Keys) open(token string) (*verifiedToken, error) {
	return k.read(&k.opened, token, func() (*verifiedToken, error) {
		signed, proof, found := strings.Cut(token, "~")
		if !found {
			return nil, errors.New("it has no proof: it was only to be shown")
		}
		s, err := k.verify(signed)
		if err != nil {
			return nil, err
		}
		if sum := sha256.Sum256([]byte(proof)); subtle.ConstantTimeCompare(sum[:], s.proof) != 1 {
			return nil, errors.New("wrong proof")
		}
		if s.audience != k.process {
			return nil, fmt.Errorf("it is for %q", s.audience)
		}
		return s, nil
	})
}

// openShown reads a token that a service shows of somebody who has called it.
func (k *Keys) openShown(signed, presenter string) (*verifiedToken, error) {
	s, err := k.read(&k.shown, signed, func() (*verifiedToken, error) { return k.verify(signed) })
	switch {
	case err != nil:
		return nil, err
	case s.audience != presenter:
		return nil, invalid(fmt.Errorf("%s shows a token for %q", presenter, s.audience))
	case s.caller.Kind == Service:
		return nil, invalid(fmt.Errorf("%s shows a token of the service %q", presenter, s.issuer))
	}
	return s, nil
}

// read judges a token once; its end counts at each use.
func (k *Keys) read(known *recentCache[string, *verifiedToken], token string, judge func() (*verifiedToken, error)) (
	*verifiedToken, error,
) {
	s, found := known.get(token)
	if !found {
		if len(token) > maxToken {
			return nil, invalid(errors.New("it is too long"))
		}
		var err error
		if s, err = judge(); err != nil {
			return nil, invalid(err)
		}
		known.put(strings.Clone(token), s) // the original may be a part of something larger
	}
	if !k.now().Before(s.until) {
		return nil, invalid(jwt.ErrTokenExpired)
	}
	return s, nil
}

// verify reads a JWT.
func (k *Keys) verify(signed string) (*verifiedToken, error) {
	var c claims
	var signer trustedKey
	_, err := k.parser.ParseWithClaims(signed, &c, func(t *jwt.Token) (any, error) {
		id, _ := t.Header["kid"].(string)
		var ok bool
		if signer, ok = k.trusted.byID[id]; !ok {
			return nil, errors.New("unknown kid")
		}
		return signer.public, nil
	})
	if err != nil {
		return nil, err
	}
	c.RequestID = ""
	proof, err := base64.RawURLEncoding.Strict().DecodeString(c.Proof)
	switch {
	case err != nil || len(proof) != sha256.Size:
		return nil, errors.New("it has no hash of a proof")
	case c.IssuedAt == nil || c.ExpiresAt.Sub(c.IssuedAt.Time) > lifetime:
		return nil, errors.New("it lives too long")
	case c.Issuer != signer.process:
		return nil, fmt.Errorf("%s has signed as %q", signer.process, c.Issuer)
	case len(c.Audience) != 1:
		return nil, fmt.Errorf("it is for %d audiences", len(c.Audience))
	case !maySay(signer.process, c.Kind):
		return nil, fmt.Errorf("%s may not speak for the kind %q", signer.process, c.Kind)
	case c.Kind == Service && identify(c.Caller, "") != identify(Itself(signer.process), ""):
		return nil, fmt.Errorf("%s may speak for no service but itself", signer.process)
	}
	return &verifiedToken{issuer: signer.process, audience: c.Audience[0], caller: c.Caller, proof: proof,
		signed: strings.Clone(signed), until: c.ExpiresAt.Add(clockSkew)}, nil
}

func invalid(cause error) error {
	return fault.New(fault.AuthInvalid, "The internal token is not valid.").Because(cause)
}
