// Package servicejwt verifies the tokens of Connected Apps (ServiceJWT), uses each up once, and tells for whom one
// speaks. It refuses to make a token, and every form of one but the one that it knows: a JWS in compact form with HS256.
//
// What a token has to be is RFC 7515 and 7519 as RFC 8725 wants them: one algorithm, keys from the store alone, an
// audience, no member twice.
package servicejwt

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/golang-jwt/jwt/v5"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/text"
)

const (
	// MaxToken bounds a token, in bytes.
	MaxToken = 4 << 10
	// Lifetime bounds what lies between iat and exp.
	Lifetime = 300 * time.Second
	// skew is how far iat and nbf may lie in the future. exp has no leeway.
	skew = 30 * time.Second

	maxCode    = 40
	maxSubject = 200
	maxID      = 128
	// maxSecond bounds a time: the year 9999.
	maxSecond = 253402300799
)

// members are those of a JSON object, as they were sent.
type members map[string]jsontext.Value

// UnmarshalJSON refuses what encoding/json lets pass: a member twice, invalid UTF-8.
func (m *members) UnmarshalJSON(b []byte) error {
	return json.Unmarshal(b, (*map[string]jsontext.Value)(m))
}

// text is a member that has to be a string of 1 to longest characters, each of which shows itself.
func (m members) text(name string, longest int) (s string, ok bool) {
	value := m[name]
	if value.Kind() != '"' || json.Unmarshal(value, &s) != nil {
		return "", false
	}
	return s, s != "" && utf8.RuneCountInString(s) <= longest && text.IsPrintable(s)
}

// second is a member that has to be a whole number of seconds since 1970.
func (m members) second(name string) (t time.Time, ok bool) {
	var n int64
	value := m[name]
	if value.Kind() != '0' || json.Unmarshal(value, &n) != nil || n <= 0 || n > maxSecond {
		return t, false
	}
	return time.Unix(n, 0), true
}

// isFor tells whether aud, a string or a list of strings, has the audience.
func (m members) isFor(audience string) bool {
	said := m["aud"]
	list := []jsontext.Value{said}
	if said.Kind() == '[' {
		list = nil
		if json.Unmarshal(said, &list) != nil {
			return false
		}
	}
	found := false
	for _, value := range list {
		var s string
		if value.Kind() != '"' || json.Unmarshal(value, &s) != nil {
			return false
		}
		found = found || s == audience
	}
	return found
}

// Claims of the library's interface: the rules are validateClaims'.
func (m *members) GetExpirationTime() (*jwt.NumericDate, error) { return nil, nil }
func (m *members) GetIssuedAt() (*jwt.NumericDate, error)       { return nil, nil }
func (m *members) GetNotBefore() (*jwt.NumericDate, error)      { return nil, nil }
func (m *members) GetIssuer() (string, error)                   { return "", nil }
func (m *members) GetSubject() (string, error)                  { return "", nil }
func (m *members) GetAudience() (jwt.ClaimStrings, error)       { return nil, nil }

// Claims are what a token says, once it is believed.
type Claims struct {
	// Issuer is the app's code, Subject its user.
	Issuer, Subject string
	// ID is the jti: it names the token among those of its app.
	ID        string
	ExpiresAt time.Time
}

// invalidToken is the one answer to a token whose signature does not hold, for whatever reason.
func invalidToken(cause error) error {
	return fault.New(fault.AuthInvalid, "The ServiceJWT is not valid.").Because(cause)
}

// invalidClaim is the answer to claims that do not hold: whoever hears it has the app's secret.
func invalidClaim(format string, args ...any) error {
	return fault.New(fault.AuthInvalid, "The ServiceJWT is not valid: "+format, args...)
}

// forbidden are members of a header that say with what to verify, or how else to read the token.
var forbidden = []string{"crit", "jku", "jwk", "jwks", "x5u", "x5c", "x5t", "x5t#S256", "b64", "enc", "zip"}

// unverified is a token that nobody has vouched for yet.
type unverified struct {
	issuer string
	// kid is empty when the token does not name its secret.
	kid string
}

// parseUnverified reads what has to be known of a token before its signature can be judged: strictly, since what two readers
// take for different things must not come so far.
func parseUnverified(token string) (u unverified, err error) {
	if len(token) > MaxToken {
		return u, errors.New("it is too long")
	}
	for i := range len(token) {
		if c := token[i]; (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' && c != '.' {
			return u, errors.New("it has a character that no token has")
		}
	}
	parts := strings.Split(token, ".")
	if len(parts) != 3 || parts[2] == "" {
		return u, errors.New("it has not three parts")
	}
	var header, claims members
	for i, m := range []*members{&header, &claims} {
		b, err := base64.RawURLEncoding.Strict().DecodeString(parts[i])
		if err == nil {
			err = m.object(b)
		}
		if err != nil {
			return u, fmt.Errorf("part %d: %w", i+1, err)
		}
	}
	if u.kid, err = validateHeader(header); err != nil {
		return u, err
	}
	var ok bool
	if u.issuer, ok = claims.text("iss", maxCode); !ok {
		return u, errors.New("iss is no code")
	}
	return u, nil
}

// object reads a JSON object, and no other value.
func (m *members) object(b []byte) error {
	if jsontext.Value(b).Kind() != '{' {
		return errors.New("it is no object")
	}
	return m.UnmarshalJSON(b)
}

// validateHeader takes the one algorithm and no header by which a token could say how it is to be verified (RFC 8725), and
// returns the kid.
func validateHeader(h members) (kid string, err error) {
	for _, name := range forbidden {
		if _, there := h[name]; there {
			return "", fmt.Errorf("its header has %s", name)
		}
	}
	if alg, _ := h.text("alg", 16); alg != jwt.SigningMethodHS256.Alg() {
		return "", errors.New("its alg is another one")
	}
	if _, there := h["typ"]; there {
		if typ, _ := h.text("typ", 32); typ != "JWT" && typ != "hub-service+jwt" {
			return "", errors.New("its typ is another one")
		}
	}
	if _, there := h["kid"]; there {
		var ok bool
		if kid, ok = h.text("kid", maxID); !ok {
			return "", errors.New("its kid names no secret")
		}
	}
	return kid, nil
}

// validateClaims judges the claims of a token whose signature holds: first whether they are right at all, then whether they are
// still. It returns E_AUTH_INVALID and says what is wrong, or E_AUTH_EXPIRED.
func validateClaims(m members, audience string, now time.Time) (c Claims, err error) {
	var subject, id, issued, expires bool
	c.Issuer, _ = m.text("iss", maxCode)
	c.Subject, subject = m.text("sub", maxSubject)
	c.ID, id = m.text("jti", maxID)
	iat, issued := m.second("iat")
	c.ExpiresAt, expires = m.second("exp")
	lifetime := c.ExpiresAt.Sub(iat)
	switch {
	case !subject:
		return c, invalidClaim("sub must be 1 to %d printable characters.", maxSubject)
	case !id:
		return c, invalidClaim("jti must be 1 to %d printable characters.", maxID)
	case !m.isFor(audience):
		return c, invalidClaim("aud must be %q, or a list with it.", audience)
	case !issued || !expires:
		return c, invalidClaim("iat and exp must be whole numbers of seconds since 1970.")
	case lifetime <= 0 || lifetime > Lifetime:
		return c, invalidClaim("exp must be 1 to %d seconds after iat.", int(Lifetime.Seconds()))
	case iat.After(now.Add(skew)):
		return c, invalidClaim("iat is more than %d seconds in the future: set the clock.", int(skew.Seconds()))
	}
	if _, there := m["nbf"]; there {
		if nbf, ok := m.second("nbf"); !ok || nbf.After(now.Add(skew)) {
			return c, invalidClaim("nbf must be a whole number of seconds since 1970, at most %d seconds in the future.", int(skew.Seconds()))
		}
	}
	if !now.Before(c.ExpiresAt) {
		return c, expiredToken()
	}
	return c, nil
}

// expiredToken is E_AUTH_EXPIRED: the one refusal that tells a client to make a new token and no more.
func expiredToken() error {
	return fault.New(fault.AuthExpired, "The ServiceJWT has expired: make a new one for each call, of at most %d seconds.",
		int(Lifetime.Seconds()))
}
