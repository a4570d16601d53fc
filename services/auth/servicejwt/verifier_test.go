package servicejwt_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/jackc/pgx/v5"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/localserver"
	"hub.internal/pkg/seal"
	"hub.internal/services/auth/apps"
	"hub.internal/services/auth/postgres"
	"hub.internal/services/auth/servicejwt"
)

func TestMain(m *testing.M) { hubtest.Main(m) }

// counting is a keyset that counts what it opens: every secret that is opened is tried on a token.
type counting struct {
	*seal.Box
	opened atomic.Int64
}

func (c *counting) Open(sealed []byte, name string) (string, error) {
	c.opened.Add(1)
	return c.Box.Open(sealed, name)
}

// tickets are links of the store, with addresses that can be read.
type tickets struct{ *postgres.Store }

func (tickets) Invite(service, externalUser string, scopes []string) (string, time.Time, error) {
	return fmt.Sprintf(
			"https://hub.example/connect?t=%s.%s.%d",
			service,
			externalUser,
			len(scopes),
		), time.Date(
			2030,
			1,
			1,
			0,
			0,
			0,
			0,
			time.UTC,
		), nil
}

// office is a verifier on a store of its own, with an app that may read and write, and its secret.
type office struct {
	*servicejwt.Verifier
	apps   *apps.Service
	store  *postgres.Store
	box    *counting
	clock  *hubtest.Clock
	db     hubtest.WriteStoreDB
	owner  *pgx.Conn
	ctx    context.Context
	log    *hubtest.Buffer
	secret apps.Issued
}

func newOffice(t *testing.T) *office {
	t.Helper()
	o := &office{db: hubtest.MigratedStore(t, "auth", postgres.Migrate), clock: hubtest.NewClock(time.Time{}), log: &hubtest.Buffer{}}
	o.store = postgres.New(hubtest.Pool(t, o.db.URL("auth")))
	keyset, err := seal.NewKeyset()
	if err != nil {
		t.Fatal(err)
	}
	box, err := seal.Open(keyset)
	if err != nil {
		t.Fatal(err)
	}
	o.box = &counting{Box: box}
	if o.owner, err = pgx.Connect(t.Context(), o.db.OwnerURL); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = o.owner.Close(context.Background()) })
	o.Verifier = o.verifier(t, o.store)
	o.apps = apps.New(apps.Config{Store: o.store, Sealer: box, Now: o.clock.Now})
	o.ctx = caller.With(
		t.Context(),
		caller.Caller{Kind: caller.User, Service: "console", ExternalUserID: "ada@example.com", Email: "ada@example.com"},
	)
	o.secret = o.open(t, "shop", "pay:read", "pay:write")
	return o
}

func (o *office) verifier(t *testing.T, store *postgres.Store) *servicejwt.Verifier {
	t.Helper()
	v, err := servicejwt.New(servicejwt.Config{Store: store, Sealer: o.box, Links: tickets{store}, Audience: "hub", Now: o.clock.Now,
		Logger: slog.New(slog.NewJSONHandler(o.log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// open makes an app with a secret.
func (o *office) open(t *testing.T, code string, scopes ...string) apps.Issued {
	t.Helper()
	if _, err := o.apps.Create(o.ctx, code, apps.Settings{Name: code, Scopes: scopes}); err != nil {
		t.Fatal(err)
	}
	issued, err := o.apps.IssueSecret(o.ctx, code)
	if err != nil {
		t.Fatal(err)
	}
	return issued
}

// claims are those of a good token of the shop, as they are changed; nil takes one away.
func (o *office) claims(change map[string]any) map[string]any {
	now := o.clock.Now().Unix()
	c := map[string]any{"iss": "shop", "sub": "u-77", "aud": "hub", "iat": now, "exp": now + 300, "jti": "j-1"}
	maps.Copy(c, change)
	maps.DeleteFunc(c, func(_ string, v any) bool { return v == nil })
	return c
}

func part(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func asJSON(v any) []byte {
	if text, ok := v.(string); ok {
		return []byte(text)
	}
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// sign makes a token by hand, of what no library would sign: texts are taken as they are.
func sign(key string, header, claims any) string {
	text := part(asJSON(header)) + "." + part(asJSON(claims))
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(text))
	return text + "." + part(mac.Sum(nil))
}

var hs256 = map[string]any{"alg": "HS256", "typ": "JWT"}

// used tells how many tokens were used up.
func (o *office) used(t *testing.T) (n int) {
	t.Helper()
	if err := o.owner.QueryRow(t.Context(), `SELECT count(*) FROM auth.jwt_replay`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func code(err error) fault.Code {
	if err == nil {
		return ""
	}
	return fault.From(err).Code
}

const generic = "The ServiceJWT is not valid."

// TestHostileTokens: each is refused with its code, and none uses anything up. Whoever has no secret learns nothing.
func TestHostileTokens(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	key := o.secret.Token.Reveal()
	now := o.clock.Now().Unix()
	good := func(change map[string]any) string { return sign(key, hs256, o.claims(change)) }
	head := func(header any) string { return sign(key, header, o.claims(nil)) }
	with := func(name string, value any) map[string]any {
		h := maps.Clone(hs256)
		h[name] = value
		return h
	}
	other, _ := jwt.NewWithClaims(jwt.SigningMethodHS512, jwt.MapClaims(o.claims(nil))).SignedString([]byte(key))
	unsigned, _ := jwt.NewWithClaims(jwt.SigningMethodNone, jwt.MapClaims(o.claims(nil))).SignedString(jwt.UnsafeAllowNoneSignatureType)
	token := good(nil)
	parts := strings.Split(token, ".")
	loose := func(s string) string { // the same bytes, written with another last character
		for _, c := range "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_" {
			twin := s[:len(s)-1] + string(c)
			a, errA := base64.RawURLEncoding.DecodeString(s)
			b, errB := base64.RawURLEncoding.DecodeString(twin)
			if twin != s && errA == nil && errB == nil && bytes.Equal(a, b) {
				return twin
			}
		}
		t.Fatal("there is no other way to write it")
		return ""
	}
	claimText := string(asJSON(o.claims(nil)))
	for _, c := range []struct {
		name, token string
		code        fault.Code
		// blind wants the message that everybody hears.
		blind bool
	}{
		{"nothing", "", "E_AUTH_INVALID", true},
		{"dots", "..", "E_AUTH_INVALID", true},
		{"100,000 dots", strings.Repeat(".", 100_000), "E_AUTH_INVALID", true},
		{"two parts", parts[0] + "." + parts[1], "E_AUTH_INVALID", true},
		{"four parts", token + ".x", "E_AUTH_INVALID", true},
		{"an API key", "crm_" + strings.Repeat("a", 42), "E_AUTH_INVALID", true},
		{"no JSON", part([]byte("x")) + "." + parts[1] + "." + parts[2], "E_AUTH_INVALID", true},
		{"a list for a header", head(`["HS256"]`), "E_AUTH_INVALID", true},
		{"null for claims", sign(key, hs256, `null`), "E_AUTH_INVALID", true},
		{"alg none", unsigned, "E_AUTH_INVALID", true},
		{"alg none, signed", head(with("alg", "none")), "E_AUTH_INVALID", true},
		{"alg NONE", head(with("alg", "NONE")), "E_AUTH_INVALID", true},
		{"no alg", head(`{"typ":"JWT"}`), "E_AUTH_INVALID", true},
		{"alg in small letters", head(with("alg", "hs256")), "E_AUTH_INVALID", true},
		{"another alg", other, "E_AUTH_INVALID", true},
		{"HS256 said to be RS256", head(with("alg", "RS256")), "E_AUTH_INVALID", true},
		{"alg as a list", head(with("alg", []string{"HS256"})), "E_AUTH_INVALID", true},
		{"alg twice", head(`{"alg":"none","alg":"HS256"}`), "E_AUTH_INVALID", true},
		{"alg twice, escaped", head(`{"alg":"HS256","\u0061lg":"HS256"}`), "E_AUTH_INVALID", true},
		{"another typ", head(with("typ", "at+jwt")), "E_AUTH_INVALID", true},
		{"typ null", head(with("typ", nil)), "E_AUTH_INVALID", true},
		{"crit", head(with("crit", []string{"exp"})), "E_AUTH_INVALID", true},
		{"crit null", head(with("crit", nil)), "E_AUTH_INVALID", true},
		{"jku", head(with("jku", "https://evil.example/keys")), "E_AUTH_INVALID", true},
		{"jwk", head(with("jwk", map[string]string{"kty": "oct", "k": part([]byte(key))})), "E_AUTH_INVALID", true},
		{"jwks", head(with("jwks", "x")), "E_AUTH_INVALID", true},
		{"x5u", head(with("x5u", "https://evil.example/cert")), "E_AUTH_INVALID", true},
		{"x5c", head(with("x5c", []string{"x"})), "E_AUTH_INVALID", true},
		{"unencoded", head(with("b64", false)), "E_AUTH_INVALID", true},
		{"a kid that nobody has", head(with("kid", "s_nobody")), "E_AUTH_INVALID", true},
		{"a kid of a file", head(with("kid", "../../dev/null")), "E_AUTH_INVALID", true},
		{"kid as a number", head(with("kid", 1)), "E_AUTH_INVALID", true},
		{"an empty kid", head(with("kid", "")), "E_AUTH_INVALID", true},
		{"the kid of a webhook secret", sign(o.secret.Webhook.Token.Reveal(), with("kid", o.secret.Webhook.ID), o.claims(nil)),
			"E_AUTH_INVALID", true},
		{"signed with a webhook secret", sign(o.secret.Webhook.Token.Reveal(), hs256, o.claims(nil)), "E_AUTH_INVALID", true},
		{"signed with nothing", sign("", hs256, o.claims(nil)), "E_AUTH_INVALID", true},
		{"signed with a part of the secret", sign(strings.TrimPrefix(key, "hss_"), hs256, o.claims(nil)), "E_AUTH_INVALID", true},
		{"no signature", parts[0] + "." + parts[1] + ".", "E_AUTH_INVALID", true},
		{"half a signature", token[:len(token)-20], "E_AUTH_INVALID", true},
		{"other claims under the signature", parts[0] + "." + part(asJSON(o.claims(map[string]any{"sub": "u-78"}))) + "." + parts[2],
			"E_AUTH_INVALID", true},
		{"padding", token + "=", "E_AUTH_INVALID", true},
		{"a signature written in another way", parts[0] + "." + parts[1] + "." + loose(parts[2]), "E_AUTH_INVALID", true},
		{"a line break in the signature", parts[0] + "." + parts[1] + "." + parts[2][:9] + "\n" + parts[2][9:], "E_AUTH_INVALID", true},
		{"a space behind it", token + " ", "E_AUTH_INVALID", true},
		{"standard base64", parts[0] + "." + parts[1] + "." + strings.Repeat("+/", 21) + "A", "E_AUTH_INVALID", true},
		{"claims twice", sign(key, hs256, strings.TrimSuffix(claimText, "}")+`,"sub":"u-78"}`), "E_AUTH_INVALID", true},
		{"iss twice", sign(key, hs256, strings.TrimSuffix(claimText, "}")+`,"iss":"other"}`), "E_AUTH_INVALID", true},
		{"two claim objects", sign(key, hs256, claimText+claimText), "E_AUTH_INVALID", true},
		{"claims that are no UTF-8", sign(key, hs256, strings.Replace(claimText, "u-77", "\xff", 1)), "E_AUTH_INVALID", true},
		{"no iss", good(map[string]any{"iss": nil}), "E_AUTH_INVALID", true},
		{"an unknown iss", good(map[string]any{"iss": "shoq"}), "E_AUTH_INVALID", true},
		{"iss in capitals", good(map[string]any{"iss": "SHOP"}), "E_AUTH_INVALID", true},
		{"iss with a NUL", good(map[string]any{"iss": "shop\x00"}), "E_AUTH_INVALID", true},
		{"iss as a list", good(map[string]any{"iss": []string{"shop"}}), "E_AUTH_INVALID", true},
		{"a long iss", good(map[string]any{"iss": strings.Repeat("a", 41)}), "E_AUTH_INVALID", true},
		{"more than 4 KiB", good(map[string]any{"x": strings.Repeat("x", 4096)}), "E_AUTH_INVALID", true},
		{"over, and badly signed", sign("x", hs256, o.claims(map[string]any{"iat": now - 400, "exp": now - 100})), "E_AUTH_INVALID", true},

		{"no sub", good(map[string]any{"sub": nil}), "E_AUTH_INVALID", false},
		{"an empty sub", good(map[string]any{"sub": ""}), "E_AUTH_INVALID", false},
		{"a long sub", good(map[string]any{"sub": strings.Repeat("가", 201)}), "E_AUTH_INVALID", false},
		{"sub as a number", good(map[string]any{"sub": 77}), "E_AUTH_INVALID", false},
		{"sub with a line break", good(map[string]any{"sub": "u\n77"}), "E_AUTH_INVALID", false},
		{"sub with a direction", good(map[string]any{"sub": "u\u202e77"}), "E_AUTH_INVALID", false},
		{"SUB for sub", good(map[string]any{"sub": nil, "SUB": "u-77"}), "E_AUTH_INVALID", false},
		{"no aud", good(map[string]any{"aud": nil}), "E_AUTH_INVALID", false},
		{"another aud", good(map[string]any{"aud": "hub2"}), "E_AUTH_INVALID", false},
		{"a list without it", good(map[string]any{"aud": []string{"a", "b"}}), "E_AUTH_INVALID", false},
		{"an empty list", good(map[string]any{"aud": []string{}}), "E_AUTH_INVALID", false},
		{"a list of more than texts", good(map[string]any{"aud": []any{"hub", 1}}), "E_AUTH_INVALID", false},
		{"aud as an object", good(map[string]any{"aud": map[string]any{"hub": true}}), "E_AUTH_INVALID", false},
		{"no jti", good(map[string]any{"jti": nil}), "E_AUTH_INVALID", false},
		{"an empty jti", good(map[string]any{"jti": ""}), "E_AUTH_INVALID", false},
		{"a long jti", good(map[string]any{"jti": strings.Repeat("j", 129)}), "E_AUTH_INVALID", false},
		{"no exp", good(map[string]any{"exp": nil}), "E_AUTH_INVALID", false},
		{"exp null", sign(key, hs256, strings.Replace(claimText, fmt.Sprint(now+300), "null", 1)), "E_AUTH_INVALID", false},
		{"exp 0", good(map[string]any{"exp": 0}), "E_AUTH_INVALID", false},
		{"exp below 0", good(map[string]any{"exp": -1}), "E_AUTH_INVALID", false},
		{"exp with a fraction", good(map[string]any{"exp": float64(now) + 60.5}), "E_AUTH_INVALID", false},
		{"exp with an exponent", sign(key, hs256, strings.Replace(claimText, fmt.Sprint(now+300), "1.7685540e9", 1)), "E_AUTH_INVALID", false},
		{"exp as a text", good(map[string]any{"exp": fmt.Sprint(now + 60)}), "E_AUTH_INVALID", false},
		{"exp beyond 64 bits", sign(key, hs256, strings.Replace(claimText, fmt.Sprint(now+300), "99999999999999999999", 1)), "E_AUTH_INVALID",
			false},
		{"exp in ten years", good(map[string]any{"exp": now + 10*365*86400}), "E_AUTH_INVALID", false},
		{"exp one second too far", good(map[string]any{"exp": now + 301}), "E_AUTH_INVALID", false},
		{"exp at iat", good(map[string]any{"exp": now}), "E_AUTH_INVALID", false},
		{"exp before iat", good(map[string]any{"exp": now - 1}), "E_AUTH_INVALID", false},
		{"no iat", good(map[string]any{"iat": nil}), "E_AUTH_INVALID", false},
		{"iat as a text", good(map[string]any{"iat": fmt.Sprint(now)}), "E_AUTH_INVALID", false},
		{"iat in 31 seconds", good(map[string]any{"iat": now + 31}), "E_AUTH_INVALID", false},
		{"nbf in 31 seconds", good(map[string]any{"nbf": now + 31}), "E_AUTH_INVALID", false},
		{"nbf as a text", good(map[string]any{"nbf": "0"}), "E_AUTH_INVALID", false},
		{"over, and for another", good(map[string]any{"aud": "x", "iat": now - 400, "exp": now - 100}), "E_AUTH_INVALID", false},
		{"over for a second", good(map[string]any{"iat": now - 301, "exp": now - 1}), "E_AUTH_EXPIRED", false},
		{"over at this moment", good(map[string]any{"iat": now - 300, "exp": now}), "E_AUTH_EXPIRED", false},
	} {
		v, err := o.Verify(o.ctx, c.token)
		if f := fault.From(
			err,
		); code(err) != c.code || c.blind && (f.Message != generic || f.Details != nil) ||
			!c.blind && f.Message == generic {
			t.Errorf("%s: %v %+v", c.name, err, v.Claims)
		}
	}
	if n := o.used(t); n != 0 {
		t.Errorf("%d tokens are used up", n)
	}
	if log := o.log.String(); strings.Contains(log, key) || strings.Contains(log, parts[2]) {
		t.Errorf("the log holds a secret: %s", log)
	}
}

func TestGoodTokens(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	key := o.secret.Token.Reveal()
	now := o.clock.Now().Unix()
	library, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims(o.claims(nil))).SignedString([]byte(key))
	if err != nil {
		t.Fatal(err)
	}
	for name, token := range map[string]string{
		"as a library makes it": library,
		"without typ":           sign(key, `{"alg":"HS256"}`, o.claims(nil)),
		"its own typ":           sign(key, `{"alg":"HS256","typ":"hub-service+jwt"}`, o.claims(nil)),
		"with its kid":          sign(key, `{"alg":"HS256","kid":"`+o.secret.ID+`","extra":1}`, o.claims(nil)),
		"a list of aud":         sign(key, hs256, o.claims(map[string]any{"aud": []string{"x", "hub"}})),
		"iat in 30 seconds":     sign(key, hs256, o.claims(map[string]any{"iat": now + 30, "exp": now + 330})),
		"nbf in 30 seconds":     sign(key, hs256, o.claims(map[string]any{"nbf": now + 30})),
		"a second is left":      sign(key, hs256, o.claims(map[string]any{"iat": now - 299, "exp": now + 1})),
		"more claims": sign(key, hs256, o.claims(map[string]any{"ISS": "other", "scope": "admin:write",
			"nested": map[string]any{"exp": 1}})),
		"spaces": sign(key, hs256, " "+string(asJSON(o.claims(nil)))+"\n"),
	} {
		v, err := o.Verify(o.ctx, token)
		if err != nil || v.Issuer != "shop" || v.Subject != "u-77" || v.ID != "j-1" || v.App.Code != "shop" ||
			v.App.Status != apps.Active ||
			len(v.App.Scopes) != 2 {
			t.Errorf("%s: %+v %v", name, v, err)
		}
	}
	wide := map[string]any{"sub": strings.Repeat("가", 200), "jti": strings.Repeat("j", 128)}
	if v, err := o.Verify(o.ctx, sign(key, hs256, o.claims(wide))); err != nil || v.Subject != wide["sub"] {
		t.Errorf("the longest: %v", err)
	}
	if n := o.used(t); n != 0 {
		t.Errorf("to verify is to use up: %d", n)
	}
}

// TestAnUnknownAppCostsWhatAKnownOneDoes counts secrets that are opened and tried: whoever watches the clock does not learn
// which codes there are.
func TestAnUnknownAppCostsWhatAKnownOneDoes(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.open(t, "two")
	if _, err := o.apps.RotateSecret(o.ctx, "two", time.Hour); err != nil {
		t.Fatal(err)
	}
	if _, err := o.apps.Create(o.ctx, "bare", apps.Settings{Name: "x"}); err != nil {
		t.Fatal(err)
	}
	bad := func(iss, kid string) string {
		h := map[string]any{"alg": "HS256"}
		if kid != "" {
			h["kid"] = kid
		}
		return sign("no secret", h, o.claims(map[string]any{"iss": iss}))
	}
	for name, token := range map[string]string{
		"unknown": bad("nobody", ""), "unknown with a kid": bad("nobody", o.secret.ID), "one secret": bad("shop", ""),
		"its kid":     bad("shop", o.secret.ID),
		"a wrong kid": bad("shop", "s_x"), "two secrets": bad("two", ""), "no secret": bad("bare", ""),
	} {
		before := o.box.opened.Load()
		if _, err := o.Verify(o.ctx, token); code(err) != fault.AuthInvalid || fault.From(err).Message != generic {
			t.Errorf("%s: %v", name, err)
		}
		if n := o.box.opened.Load() - before; n != 2 {
			t.Errorf("%s: %d secrets were tried", name, n)
		}
	}
}

// TestSecretsTakeTurns: a secret that was replaced verifies until its overlap ends, and one that is revoked no more.
func TestSecretsTakeTurns(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	old := o.secret
	next, err := o.apps.RotateSecret(o.ctx, "shop", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	verify := func(s apps.Issued, kid bool) fault.Code {
		h := maps.Clone(hs256)
		if kid {
			h["kid"] = s.ID
		}
		_, err := o.Verify(o.ctx, sign(s.Token.Reveal(), h, o.claims(nil)))
		return code(err)
	}
	expect := func(when string, s apps.Issued, want fault.Code) {
		t.Helper()
		for _, kid := range []bool{false, true} {
			if got := verify(s, kid); got != want {
				t.Errorf("%s, kid %t: %q, want %q", when, kid, got, want)
			}
		}
	}
	expect("in the overlap, the old one", old, "")
	expect("in the overlap, the new one", next, "")
	crossed := sign(old.Token.Reveal(), map[string]any{"alg": "HS256", "kid": next.ID}, o.claims(nil))
	if _, err := o.Verify(o.ctx, crossed); code(err) != fault.AuthInvalid {
		t.Errorf("the kid of the other: %v", err)
	}
	o.clock.Advance(time.Hour - time.Millisecond)
	expect("a moment before its end", old, "")
	o.clock.Advance(time.Millisecond)
	expect("at its end", old, fault.AuthInvalid)
	expect("at its end, the new one", next, "")
	if _, err := o.apps.RevokeSecret(o.ctx, "shop", next.ID); err != nil {
		t.Fatal(err)
	}
	expect("revoked", next, fault.AuthInvalid)
}

func TestAppsThatAreNotActive(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	key := o.secret.Token.Reveal()
	token := sign(key, hs256, o.claims(nil))
	v, err := o.Verify(o.ctx, token)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.apps.Suspend(o.ctx, "shop", "complaints"); err != nil {
		t.Fatal(err)
	}
	if s, err := o.Verify(o.ctx, token); err != nil || s.App.Status != apps.Suspended || s.Issuer != "shop" {
		t.Errorf("suspended: %+v %v", s, err)
	}
	if _, err := o.Verify(o.ctx, sign("x", hs256, o.claims(nil))); code(err) != fault.AuthInvalid {
		t.Errorf("suspended, by somebody else: %v", err)
	}
	if _, err := o.Admit(o.ctx, v.Claims, true); code(err) != fault.AuthRevoked {
		t.Errorf("suspended between the two: %v", err)
	}
	if _, err := o.apps.Revoke(o.ctx, "shop", "shop", "over"); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Verify(o.ctx, token); code(err) != fault.AuthRevoked {
		t.Errorf("revoked: %v", err)
	}
	if _, err := o.Admit(o.ctx, v.Claims, true); code(err) != fault.AuthRevoked {
		t.Errorf("revoked between the two: %v", err)
	}
	if n := o.used(t); n != 0 {
		t.Errorf("%d tokens are used up", n)
	}
}

// link links a user of an app to somebody at Hub.
func (o *office) link(t *testing.T, app, external, status string, scopes ...string) {
	t.Helper()
	_, err := o.owner.Exec(t.Context(), `INSERT INTO auth.users (id, email, name, roles, password_hash, created_by, created_at)
		VALUES ('usr_1', 'ada@example.com', 'Ada', '{}', '', 'test', now()) ON CONFLICT DO NOTHING`)
	if err == nil {
		_, err = o.owner.Exec(
			t.Context(),
			`INSERT INTO auth.identity_links (id, service_code, external_user_id, hub_user_id, scopes, consent_version, status, linked_at, ip, ua)
			VALUES ($1, $2, $3, 'usr_1', $4, 1, $5, now(), '', '')`,
			"lnk_"+app+external,
			app,
			external,
			scopes,
			status,
		)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestAdmissionTellsForWhom(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.open(t, "other", "pay:read")
	o.link(t, "shop", "all", "ACTIVE", "pay:read", "pay:write")
	o.link(t, "shop", "some", "ACTIVE", "pay:read")
	o.link(t, "shop", "waiting", "PENDING", "pay:read", "pay:write")
	o.link(t, "shop", "gone", "REVOKED", "pay:read", "pay:write")
	o.link(t, "other", "theirs", "ACTIVE", "pay:read")
	n := 0
	for sub, want := range map[string]servicejwt.Admission{
		"all":     {HubUser: "usr_1", Scopes: []string{"pay:read", "pay:write"}},
		"some":    {HubUser: "usr_1", Scopes: []string{"pay:read"}, Reason: servicejwt.ScopeIncreased},
		"waiting": {Reason: servicejwt.Pending}, "gone": {Reason: servicejwt.NotLinked}, "theirs": {Reason: servicejwt.NotLinked},
		"ALL": {Reason: servicejwt.NotLinked},
	} {
		n++
		c := servicejwt.Claims{Issuer: "shop", Subject: sub, ID: fmt.Sprint(n), ExpiresAt: o.clock.Now().Add(time.Minute)}
		got, err := o.Admit(o.ctx, c, true)
		url := got.URL
		got.URL, got.ExpiresAt = "", time.Time{}
		if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) || err != nil || (url == "") != (want.Reason == "") ||
			url != "" && !strings.Contains(url, "t=shop."+sub+".2") {
			t.Errorf("%s: %+v at %q, %v", sub, got, url, err)
		}
		c.ID += "-unlinked"
		if got, err := o.Admit(o.ctx, c, false); err != nil || got.HubUser != "" || got.Reason != "" {
			t.Errorf("%s, no link needed: %+v %v", sub, got, err)
		}
	}
	for name, c := range map[string]servicejwt.Claims{
		"over":       {Issuer: "shop", Subject: "all", ID: "x", ExpiresAt: o.clock.Now()},
		"no id":      {Issuer: "shop", Subject: "all", ExpiresAt: o.clock.Now().Add(time.Minute)},
		"in a year":  {Issuer: "shop", Subject: "all", ID: "x", ExpiresAt: o.clock.Now().Add(365 * 24 * time.Hour)},
		"of nobody":  {Issuer: "nobody", Subject: "all", ID: "x", ExpiresAt: o.clock.Now().Add(time.Minute)},
		"of no user": {Issuer: "shop", ID: "x", ExpiresAt: o.clock.Now().Add(time.Minute)},
	} {
		if _, err := o.Admit(o.ctx, c, true); err == nil {
			t.Errorf("%s is admitted", name)
		}
	}
	if got := o.used(t); got != 2*n {
		t.Errorf("%d tokens are used up of %d", got, 2*n)
	}
}

// TestOneOfManyUsesATokenUp: two replicas are asked 64 times at once.
func TestOneOfManyUsesATokenUp(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.open(t, "other")
	second := o.verifier(t, postgres.New(hubtest.Pool(t, o.db.URL("auth"))))
	claims := func(app string) servicejwt.Claims {
		return servicejwt.Claims{Issuer: app, Subject: "u", ID: "j", ExpiresAt: o.clock.Now().Add(time.Minute)}
	}
	for _, app := range []string{"shop", "other"} { // the same jti of another app is another one
		var admitted, refused atomic.Int64
		var all sync.WaitGroup
		begin := make(chan struct{})
		for i := range 64 {
			v := []*servicejwt.Verifier{o.Verifier, second}[i%2]
			all.Go(func() {
				<-begin
				switch _, err := v.Admit(o.ctx, claims(app), true); code(err) {
				case "":
					admitted.Add(1)
				case fault.AuthInvalid:
					refused.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		close(begin)
		all.Wait()
		if admitted.Load() != 1 || refused.Load() != 63 {
			t.Errorf("%s: %d admitted, %d refused", app, admitted.Load(), refused.Load())
		}
	}
	o.clock.Advance(121 * time.Second)
	if err := o.store.Sweep(o.ctx, o.clock.Now().Add(-60*time.Second)); err != nil || o.used(t) != 0 {
		t.Errorf("%d are remembered after their end, %v", o.used(t), err)
	}
	if _, err := o.Admit(o.ctx, claims("shop"), true); err != nil {
		t.Errorf("another token with an old jti: %v", err)
	}
	if err := o.store.Sweep(o.ctx, o.clock.Now().Add(-60*time.Second)); err != nil || o.used(t) != 1 {
		t.Errorf("%d are remembered before their end, %v", o.used(t), err)
	}
}

// TestAStoreThatIsAwayAdmitsNobody, and neither does one that cannot remember.
func TestAStoreThatIsAwayAdmitsNobody(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	token := sign(o.secret.Token.Reveal(), hs256, o.claims(nil))
	v, err := o.Verify(o.ctx, token)
	if err != nil {
		t.Fatal(err)
	}
	port, err := localserver.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	away := o.verifier(t, postgres.New(hubtest.Pool(t, fmt.Sprintf("postgres://hub_auth:x@127.0.0.1:%d/hub", port))))
	if _, err := away.Verify(o.ctx, token); code(err) != fault.DB {
		t.Errorf("to verify: %v", err)
	}
	if _, err := away.Admit(o.ctx, v.Claims, true); code(err) != fault.DB {
		t.Errorf("to admit: %v", err)
	}
	// Only the table of what was used is away.
	if _, err := o.owner.Exec(t.Context(), `REVOKE INSERT ON auth.jwt_replay FROM hub_auth`); err != nil {
		t.Fatal(err)
	}
	if a, err := o.Admit(o.ctx, v.Claims, true); err == nil || a.HubUser != "" {
		t.Errorf("nothing can be remembered: %+v %v", a, err)
	}
	if o.used(t) != 0 {
		t.Error("it had an effect")
	}
	bare, err := servicejwt.New(servicejwt.Config{Store: o.store, Now: o.clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bare.Verify(o.ctx, token); err == nil || !strings.Contains(err.Error(), "HUB_SECRETS_KEYSET") {
		t.Errorf("without a keyset: %v", err)
	}
}

// nobody is a store without apps.
type nobody struct{ servicejwt.Store }

func (nobody) Keyring(context.Context, string, apps.Kind, time.Time) (apps.App, []apps.SealedSecret, error) {
	return apps.App{}, nil, fault.New(fault.NotFound, "There is no app.")
}

// FuzzVerify: whatever a token is, nobody is let in without a secret, and nothing breaks.
func FuzzVerify(f *testing.F) {
	keyset, err := seal.NewKeyset()
	if err != nil {
		f.Fatal(err)
	}
	box, err := seal.Open(keyset)
	if err != nil {
		f.Fatal(err)
	}
	v, err := servicejwt.New(servicejwt.Config{Store: nobody{}, Sealer: box, Audience: "hub", Now: time.Now})
	if err != nil {
		f.Fatal(err)
	}
	claims := `{"iss":"shop","sub":"u","aud":"hub","iat":1,"exp":2,"jti":"j"}`
	for _, seed := range []string{"", "..", "a.b.c", sign("k", hs256, claims), sign("k", `{"alg":"none"}`, claims),
		sign("k", hs256, `{"iss":1}`), sign("k", `{"alg":"HS256","alg":"HS256"}`, claims)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, token string) {
		_, err := v.Verify(t.Context(), token)
		if f := (*fault.Error)(nil); !errors.As(err, &f) || f.Code != fault.AuthInvalid || f.Message != generic {
			t.Errorf("%q: %v", token, err)
		}
	})
}

// FuzzJudge gives claims that are signed: none is taken that breaks a rule, by a reader of its own.
func FuzzJudge(f *testing.F) {
	for _, seed := range []string{`{"iss":"shop","sub":"u","aud":"hub","iat":1768467600,"exp":1768467700,"jti":"j"}`, `{"exp":1e9}`,
		`{"aud":["hub"]}`, `{`, `[]`, `{"sub":"\ud800"}`} {
		f.Add(seed)
	}
	now := time.Unix(1768467650, 0)
	f.Fuzz(func(t *testing.T, text string) {
		c, err := servicejwt.Judge([]byte(text), "hub", now)
		if err != nil {
			return
		}
		if c.Subject == "" || len([]rune(c.Subject)) > 200 || c.ID == "" || !now.Before(c.ExpiresAt) ||
			c.ExpiresAt.After(now.Add(330*time.Second)) {
			t.Errorf("%q: %+v", text, c)
		}
	})
}

// TestTrips: a store may be far away, and each round trip to it is waited for.
func TestTrips(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	far, distance := o.db.Far(t)
	v := o.verifier(t, postgres.New(hubtest.Pool(t, far.URL("auth"))))
	n := 0
	distance.AtMost(t, 1, "to verify a token", func() {
		if _, err := v.Verify(t.Context(), sign(o.secret.Token.Reveal(), `{"alg":"HS256"}`, o.claims(nil))); err != nil {
			t.Fatal(err)
		}
	})
	distance.AtMost(t, 1, "to use a token up", func() {
		n++
		claims := servicejwt.Claims{Issuer: "shop", Subject: "u-77", ID: fmt.Sprint("far-", n), ExpiresAt: o.clock.Now().Add(time.Minute)}
		if _, err := v.Admit(t.Context(), claims, true); err != nil {
			t.Fatal(err)
		}
	})
}
