package caller_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
)

const (
	first  = "0123456789abcdef0123456789abcdef"
	second = "fedcba9876543210fedcba9876543210"
)

func keys(t *testing.T, now *time.Time, secrets ...string) *caller.Keys {
	t.Helper()
	k, err := caller.NewKeys(secrets, func() time.Time { return *now })
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestTokenSpeaksForItsCaller(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	k := keys(t, &now, first)
	want := caller.Caller{Kind: caller.Key, Service: "svc", ExternalUserID: "ext", CredentialID: "ak_1", Scopes: []string{"query"}, HubUser: "u", Roles: []string{"reviewer"}, RequestID: "req_1"}
	token, err := k.Mint(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := k.Verify(token)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("got %+v, %v", got, err)
	}
	now = now.Add(66 * time.Second)
	if _, err := k.Verify(token); !fault.Is(err, fault.AuthInvalid) {
		t.Errorf("expired token: %v", err)
	}
}

func TestSecretsRotate(t *testing.T) {
	now := time.Now()
	old, both, fresh := keys(t, &now, first), keys(t, &now, second, first), keys(t, &now, second)
	fromOld, _ := old.Mint(caller.Caller{Kind: caller.Key})
	fromBoth, _ := both.Mint(caller.Caller{Kind: caller.Key})
	for name, c := range map[string]struct {
		k     *caller.Keys
		token string
		ok    bool
	}{
		"old token, both keys": {both, fromOld, true}, "new token, new key": {fresh, fromBoth, true},
		"old token, new key": {fresh, fromOld, false}, "new token, old key": {old, fromBoth, false},
	} {
		if _, err := c.k.Verify(c.token); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestForgedTokensAreRefused(t *testing.T) {
	now := time.Now()
	k := keys(t, &now, first)
	good, _ := k.Mint(caller.Caller{Kind: caller.Key})
	parts := strings.Split(good, ".")
	long := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{"iss": "hub", "iat": now.Unix(), "exp": now.Add(time.Hour).Unix()})
	long.Header["kid"] = "00000000"
	longSigned, _ := long.SignedString([]byte(first))
	none := jwt.NewWithClaims(jwt.SigningMethodNone, jwt.MapClaims{"iss": "hub", "iat": now.Unix(), "exp": now.Unix() + 30})
	noneSigned, _ := none.SignedString(jwt.UnsafeAllowNoneSignatureType)
	for name, token := range map[string]string{
		"garbage": "x", "three dots": "..", "none": noneSigned, "an hour": longSigned, "cut": good[:len(good)-2],
		"other payload": parts[0] + "." + parts[1] + "A." + parts[2], "dots": strings.Repeat(".", 100_000),
	} {
		if _, err := k.Verify(token); !fault.Is(err, fault.AuthInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := k.Verify(""); !fault.Is(err, fault.AuthMissing) {
		t.Errorf("no token: %v", err)
	}
	if _, err := caller.NewKeys([]string{"short"}, time.Now); err == nil {
		t.Error("a short secret passed")
	}
}
