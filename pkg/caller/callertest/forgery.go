package callertest

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"hub.internal/pkg/caller"
)

// Forgery is what somebody sends who wants to pass for another.
type Forgery struct {
	// Name says what is tried.
	Name string
	// Header is what the call comes with.
	Header http.Header
}

// Token is a token to be made, right or wrong.
type Token struct {
	// Key signs it, and KeyID names the key that it claims.
	Key   any
	KeyID string
	// Method is the algorithm; the product takes EdDSA alone.
	Method jwt.SigningMethod
	Claims map[string]any
	// Proof is what follows the signature; "" leaves it out.
	Proof string
}

// NewToken is a good one: of the process, for the audience, speaking for c.
func NewToken(process, audience string, c caller.Caller) Token {
	c.RequestID = ""
	claims := map[string]any{}
	b, err := json.Marshal(c)
	if err == nil {
		err = json.Unmarshal(b, &claims)
	}
	if err != nil {
		panic(err)
	}
	proof := rand.Text()
	now := time.Now()
	maps.Copy(claims, map[string]any{"iss": process, "aud": audience, "prf": proofHash(proof),
		"iat": now.Unix(), "exp": now.Add(time.Minute).Unix()})
	key := private(process)
	return Token{Key: key, KeyID: keyID(key.Public().(ed25519.PublicKey)), Method: jwt.SigningMethodEdDSA, Claims: claims, Proof: proof}
}

// With is the token with other claims; one that is nil is left out.
func (t Token) With(claims map[string]any) Token {
	t.Claims = maps.Clone(t.Claims)
	for name, value := range claims {
		if t.Claims[name] = value; value == nil {
			delete(t.Claims, name)
		}
	}
	return t
}

// By is the token signed with the key of another process, under the id of either.
func (t Token) By(process, keyOf string) Token {
	t.Key, t.KeyID = private(process), keyID(private(keyOf).Public().(ed25519.PublicKey))
	return t
}

// Signed is the JWT alone.
func (t Token) Signed() string {
	token := jwt.NewWithClaims(t.Method, jwt.MapClaims(t.Claims))
	if token.Header["kid"] = t.KeyID; t.KeyID == "" {
		delete(token.Header, "kid")
	}
	signed, err := token.SignedString(t.Key)
	if err != nil {
		panic(err)
	}
	return signed
}

// String is the JWT with its proof.
func (t Token) String() string {
	if t.Proof == "" {
		return t.Signed()
	}
	return t.Signed() + "~" + t.Proof
}

// proofHash is the claim prf of a token with this proof.
func proofHash(proof string) string {
	sum := sha256.Sum256([]byte(proof))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// keyID is the header kid of a key, made anew here so that a test sees when the product changes it.
func keyID(public ed25519.PublicKey) string {
	sum := sha256.Sum256(public)
	return hex.EncodeToString(sum[:16])
}

// Forgeries are the ways in which others may try to pass at the audience for who, whom only the
// issuer may present there: other keys, other claims, other algorithms, tokens that are good
// elsewhere, and tokens of the other processes with and without one that they were shown.
func Forgeries(issuer, audience string, who caller.Caller, others ...string) (all []Forgery) {
	others = slices.DeleteFunc(slices.Clone(others), func(name string) bool { return name == issuer })
	good := NewToken(issuer, audience, who)
	add := func(name string, t Token) {
		all = append(all, Forgery{name, http.Header{caller.Header: {t.String()}}})
	}
	shown := func(name, presenter string, token string) {
		h := http.Header{caller.Header: {NewToken(presenter, audience, caller.Itself(presenter)).String()}}
		h.Set(caller.ShownHeader, token)
		all = append(all, Forgery{name, h})
	}
	for _, other := range append([]string{"an unknown process"}, others...) {
		add("signed by "+other, good.By(other, other))
		add("signed by "+other+" in its own name", good.By(other, other).With(map[string]any{"iss": other}))
		add("signed by "+other+" under the key id of "+issuer, good.By(other, issuer))
		add("signed by "+issuer+" under the key id of "+other, good.By(issuer, other))
	}
	for _, other := range others {
		itself := NewToken(other, audience, caller.Itself(other))
		add(other+" with roles and scopes", itself.With(map[string]any{"rol": who.Roles, "scp": who.Scopes, "usr": "usr_1"}))
		add(other+" as the service "+issuer, itself.With(map[string]any{"svc": issuer, "cid": issuer}))
		add(other+" as "+issuer, NewToken(other, audience, caller.Itself(issuer)).With(map[string]any{"iss": issuer}))
		if other == audience || other == caller.Gateway {
			continue // it is shown nothing
		}
		add("a token of "+issuer+" for "+other, NewToken(issuer, other, who))
		// What a service could have caught, or make up, and show beside a good token of its own.
		shown(other+" shows a token for the audience", other, good.Signed())
		shown(other+" shows what it has signed", other, NewToken(other, other, who).Signed())
		shown(other+" shows what it has signed as "+issuer, other, NewToken(other, other, who).With(map[string]any{"iss": issuer}).Signed())
		shown(other+" shows a token with its proof", other, NewToken(issuer, other, who).String())
		shown(other+" shows the gateway's own token", other, NewToken(caller.Gateway, other, caller.Itself(caller.Gateway)).Signed())
		shown(other+" shows nonsense", other, "x")
		for _, third := range others {
			if third != other {
				shown(other+" shows a token for "+third, other, NewToken(issuer, third, who).Signed())
			}
		}
	}
	public := private(issuer).Public().(ed25519.PublicKey)
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		panic(err)
	}
	encoded := base64.StdEncoding.EncodeToString(der)
	for name, secret := range map[string][]byte{"bytes": public, "DER": der, "base64": []byte(encoded),
		"PEM": []byte("-----BEGIN PUBLIC KEY-----\n" + encoded + "\n-----END PUBLIC KEY-----\n")} {
		t := good
		t.Method, t.Key = jwt.SigningMethodHS256, secret
		add("HS256 with the public key as "+name, t)
	}
	none := good
	none.Method, none.Key = jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType
	add("no signature", none)
	now := time.Now()
	for name, claims := range map[string]map[string]any{
		"expired":             {"iat": now.Add(-2 * time.Minute).Unix(), "exp": now.Add(-time.Minute).Unix()},
		"living too long":     {"exp": now.Add(62 * time.Second).Unix()},
		"living for an hour":  {"exp": now.Add(time.Hour).Unix()},
		"from the future":     {"iat": now.Add(time.Minute).Unix(), "exp": now.Add(2 * time.Minute).Unix()},
		"without an end":      {"exp": nil},
		"without a beginning": {"iat": nil},
		"without an issuer":   {"iss": nil},
		"another issuer":      {"iss": "hub"},
		"without an audience": {"aud": nil},
		"two audiences":       {"aud": []string{audience, "another"}},
		"every audience":      {"aud": "*"},
		"without a kind":      {"kind": nil},
		"an unknown kind":     {"kind": "root"},
		"another service":     {"kind": caller.Service, "svc": "another"},
		"without a proof":     {"prf": nil},
		"an empty proof":      {"prf": ""},
	} {
		add(name, good.With(claims))
	}
	bare, wrong, empty := good, good, good
	bare.Proof, wrong.Proof, empty.KeyID = "", rand.Text(), ""
	add("only to be shown", bare)
	add("another proof", wrong)
	add("without a key id", empty)
	signed := good.Signed()
	parts := strings.Split(signed, ".")
	for name, token := range map[string]string{
		"an empty proof after it": signed + "~",
		"cut":                     signed[:len(signed)-2] + "~" + good.Proof,
		"other payload":           parts[0] + "." + parts[1] + "A." + parts[2] + "~" + good.Proof,
		"no signature at all":     parts[0] + "." + parts[1] + ".~" + good.Proof,
		"dots":                    strings.Repeat(".", 20_000),
		"nonsense":                "x~y",
	} {
		all = append(all, Forgery{name, http.Header{caller.Header: {token}}})
	}
	shown("shown beside another token of "+issuer, issuer, signed)
	return append(all, Forgery{"nothing", http.Header{}}, Forgery{"only a shown token", http.Header{caller.ShownHeader: {signed}}},
		Forgery{"only a shown token with its proof", http.Header{caller.ShownHeader: {good.String()}}})
}
