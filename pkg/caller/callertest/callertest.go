// Package callertest gives tests the keys of processes, and all that an attacker may try in
// place of them. A process's key follows from its name, so that tests and the programs that
// they start agree on it without a word. It has no place in a program.
package callertest

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
	"time"

	"hub.internal/pkg/caller"
)

// private is the key of the named process.
func private(process string) ed25519.PrivateKey {
	seed := sha256.Sum256([]byte("a key that only tests have: " + process))
	return ed25519.NewKeyFromSeed(seed[:])
}

// Signing is the signing key of the named process.
func Signing(process string) (key caller.SigningKey) {
	der, err := x509.MarshalPKCS8PrivateKey(private(process))
	if err == nil {
		err = key.UnmarshalText([]byte(base64.StdEncoding.EncodeToString(der)))
	}
	if err != nil {
		panic(err)
	}
	return key
}

// Trusted is the list of the public keys of the named processes.
func Trusted(processes ...string) string {
	entries := make([]string, len(processes))
	for i, process := range processes {
		entries[i] = Signing(process).Trusted(process)
	}
	return strings.Join(entries, " ")
}

// Keys are the keys of a process that trusts the others.
func Keys(t testing.TB, process string, trusts ...string) *caller.Keys {
	t.Helper()
	return KeysAt(t, time.Now, process, trusts...)
}

// KeysAt is Keys with a clock.
func KeysAt(t testing.TB, now func() time.Time, process string, trusts ...string) *caller.Keys {
	t.Helper()
	var trusted caller.TrustedKeys
	if err := trusted.UnmarshalText([]byte(Trusted(trusts...))); err != nil {
		t.Fatal(err)
	}
	keys, err := caller.NewKeys(process, Signing(process), trusted, now)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// Environ are the settings of the keys of a process that trusts the others, in the form of
// os.Environ.
func Environ(process string, trusts ...string) []string {
	return []string{"HUB_SIGNING_KEY=" + Signing(process).Reveal(), "HUB_TRUSTED_KEYS=" + Trusted(trusts...)}
}

// Header is what the gateway sends to the audience in a call of c.
func Header(t testing.TB, audience string, c caller.Caller) http.Header {
	t.Helper()
	h := http.Header{}
	if err := Keys(t, caller.Gateway).Present(caller.With(context.Background(), c), h, audience, false); err != nil {
		t.Fatal(err)
	}
	return h
}

// HeaderOf is what a service sends to the audience in a call of its own.
func HeaderOf(t testing.TB, process, audience string) http.Header {
	t.Helper()
	h := http.Header{}
	if err := Keys(t, process).Present(context.Background(), h, audience, false); err != nil {
		t.Fatal(err)
	}
	return h
}

// Called is a context in which a process has been called, through the gateway, by c.
func Called(t testing.TB, process string, c caller.Caller) context.Context {
	t.Helper()
	ctx, err := Keys(t, process, caller.Gateway).Accept(t.Context(), Header(t, process, c), caller.Rule{caller.Gateway: {c.Kind}})
	if err != nil {
		t.Fatal(err)
	}
	return ctx
}
