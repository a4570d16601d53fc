package caller_test

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/caller/callertest"
)

// What openssl 3.0 wrote.
const (
	secret  = "MC4CAQAwBQYDK2VwBCIEIIiuCSAUHxC9sWKqyoLJvB0LpOwPSdJazw58d6xMnvmn"
	public  = "MCowBQYDK2VwAyEAGGulXpqsU2UYjboEiuw7BrsCWaO3QGZPsppALlm5g68="
	keyID   = "54ffe4c6752d6c74d857df654e438390" // the first half of sha256sum of the last 32 bytes of -outform DER
	another = "MC4CAQAwBQYDK2VuBCIEIBDlfNFtuRWI0MAwm5AlFYz8v6XUbHNTCy4023cAbUF7"
)

func TestKeysOfOpenSSL(t *testing.T) {
	var signing caller.SigningKey
	for name, text := range map[string]string{
		"PEM": "-----BEGIN PRIVATE KEY-----\n" + secret + "\n-----END PRIVATE KEY-----\n", "its middle line": secret,
		"Windows":     "-----BEGIN PRIVATE KEY-----\r\n" + secret + "\r\n-----END PRIVATE KEY-----\r\n",
		"on one line": "-----BEGIN PRIVATE KEY----- " + secret + " -----END PRIVATE KEY-----",
	} {
		if err := signing.UnmarshalText(
			[]byte(text),
		); err != nil || signing.Reveal() != secret || signing.Trusted("auth") != "auth="+public ||
			signing.String() != "kid "+keyID {
			t.Errorf("%s: %v, %v", name, signing, err)
		}
	}
	for name, text := range map[string]string{
		"empty": "", "nonsense": "hunter2 hunter2 hunter2", "the public key": public, "X25519": another, "cut": secret[:len(secret)-4],
		"too long": secret + secret, "the seed": "iK4JIBQfEL2xYqrKgsm8HQuk7A9J0lrPDnx3rEye+ac=",
		"encrypted": "-----BEGIN ENCRYPTED PRIVATE KEY-----\n" + secret + "\n-----END ENCRYPTED PRIVATE KEY-----",
	} {
		err := signing.UnmarshalText([]byte(text))
		if err == nil || strings.Contains(err.Error(), "\n") || text != "" && strings.Contains(err.Error(), text[:min(8, len(text))]) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTrustedKeys(t *testing.T) {
	list := callertest.Trusted("gateway", "review-control")
	spare := caller.NewSigningKey().Trusted("gateway")
	var trusted caller.TrustedKeys
	if err := trusted.UnmarshalText(
		[]byte("\n" + list + "\n" + spare + "\t"),
	); err != nil || strings.Count(trusted.String(), "gateway ") != 2 ||
		strings.Count(trusted.String(), "review-control ") != 1 {
		t.Errorf("%v, %v", trusted, err)
	}
	for name, text := range map[string]string{
		"no name": public, "empty name": "=" + public, "bad name": "Gateway=" + public, "private key": "gateway=" + secret,
		"no key": "gateway=", "three keys": list + " " + spare + " " + caller.NewSigningKey().Trusted("gateway"),
		"twice": list + " " + callertest.Trusted("gateway"), "one key of two": callertest.Trusted("gateway") + " " +
			callertest.Signing("gateway").Trusted("auth"), "private key, no name": secret,
		"commas": strings.ReplaceAll(list, " ", ","),
	} {
		if err := trusted.UnmarshalText(
			[]byte(text),
		); err == nil || strings.Contains(err.Error(), secret[:8]) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestASigningKeyNobodyTrusts stops the start: all processes may have the same list.
func TestASigningKeyNobodyTrusts(t *testing.T) {
	for list, ok := range map[string]bool{
		callertest.Trusted("gateway", "auth"): true, callertest.Trusted("gateway"): true, "": true,
		caller.NewSigningKey().Trusted("auth"):                                                     false,
		caller.NewSigningKey().Trusted("auth") + " " + callertest.Trusted("auth"):                  true,
		callertest.Signing("auth").Trusted("query"):                                                true, // it says nothing of auth
		callertest.Signing("auth").Trusted("query") + " " + caller.NewSigningKey().Trusted("auth"): false,
	} {
		var trusted caller.TrustedKeys
		if err := trusted.UnmarshalText([]byte(list)); err != nil {
			t.Fatal(err)
		}
		if _, err := caller.NewKeys("auth", callertest.Signing("auth"), trusted, time.Now); (err == nil) != ok {
			t.Errorf("%s: %v", list, err)
		}
	}
}

func TestASigningKeyDoesNotShow(t *testing.T) {
	key := callertest.Signing("gateway")
	der, err := base64.StdEncoding.DecodeString(key.Reveal())
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	slog.New(
		slog.NewJSONHandler(&log, nil),
	).Info(
		"configuration",
		"key",
		key,
		"within",
		struct{ Key caller.SigningKey }{key},
		"list",
		[]caller.SigningKey{key},
	)
	slog.New(slog.NewTextHandler(&log, nil)).Info("configuration", "key", key)
	b, err := json.Marshal(map[string]any{"key": key})
	if err != nil {
		t.Fatal(err)
	}
	shown := log.String() + string(
		b,
	) + fmt.Sprint(
		key,
		[]caller.SigningKey{key},
	) + fmt.Sprintf(
		"%v %+v %#v %s %q %x",
		key,
		key,
		key,
		key,
		key,
		key,
	)
	for _, form := range []string{key.Reveal(), key.Reveal()[24:], fmt.Sprintf("%x", der[16:]), fmt.Sprintf("%d", der[16:20])[1:12],
		hex.EncodeToString(der[16:])} {
		if strings.Contains(shown, form) {
			t.Errorf("%q shows in %s", form, shown)
		}
	}
	if !strings.Contains(shown, "kid ") {
		t.Errorf("nothing tells which key it is: %s", shown)
	}
}

// TestAKeyRotates without a refused call: the new key is trusted before it signs, and the old
// one until its last token has ended.
func TestAKeyRotates(t *testing.T) {
	fresh, old := caller.NewSigningKey(), callertest.Signing(caller.Gateway)
	keys := func(process string, signing caller.SigningKey, list ...string) *caller.Keys {
		var trusted caller.TrustedKeys
		if err := trusted.UnmarshalText([]byte(strings.Join(list, " "))); err != nil {
			t.Fatal(err)
		}
		k, err := caller.NewKeys(process, signing, trusted, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	before, after := old.Trusted(caller.Gateway), fresh.Trusted(caller.Gateway)
	for name, c := range map[string]struct {
		signs caller.SigningKey
		list  []string
		taken bool
	}{
		"at first": {old, []string{before}, true}, "both are trusted": {old, []string{before, after}, true},
		"the new one signs":      {fresh, []string{before, after}, true},
		"the old one is dropped": {fresh, []string{after}, true}, "in the wrong order": {fresh, []string{before}, false},
		"a stolen old one": {old, []string{after}, false},
	} {
		gateway, review := keys(caller.Gateway, c.signs), keys("review", callertest.Signing("review"), c.list...)
		if _, err := pass(
			caller.With(context.Background(), ada),
			gateway,
			review,
			"review",
			false,
			caller.Browsers(),
		); (err == nil) != c.taken {
			t.Errorf("%s: %v", name, err)
		}
	}
}
