package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/localserver"
)

// TestTLS connects to a MySQL, which makes itself an authority and keys, as accounts that require TLS and a certificate, and with
// a password that its own public key encrypts. What is missing is told.
func TestTLS(t *testing.T) {
	hubtest.SourceServers(t, func(t *testing.T, on *localserver.SourceServer) {
		data := filepath.Join(on.Dir(), "data")
		if _, err := os.Stat(filepath.Join(data, "public_key.pem")); err != nil {
			t.Skip("this server makes itself no keys")
		}
		file := func(name string) string {
			text, err := os.ReadFile(filepath.Join(data, name))
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		}
		_, dsn := hubtest.SourceDBOn(t, on)
		admin, err := on.Admin()
		if err != nil {
			t.Fatal(err)
		}
		defer admin.Close()
		user, _, _ := strings.Cut(dsn, ":")
		account := func(requires string) {
			t.Helper()
			// The server caches who has logged in: the next password has to come encrypted again.
			for _, q := range []string{"ALTER USER " + user + "@'%' REQUIRE " + requires, "FLUSH PRIVILEGES"} {
				if _, err := admin.ExecContext(t.Context(), q); err != nil {
					t.Fatal(err)
				}
			}
		}
		client := TLS{CA: file("ca.pem"), Cert: file("client-cert.pem"), Key: file("client-key.pem")}
		for _, c := range []struct {
			requires, dsn string
			with          TLS
			want          string // of the error; empty when it connects
		}{
			{"NONE", "", TLS{ServerKey: file("public_key.pem")}, ""},
			{"SSL", "", TLS{}, "?tls=true"},
			{"SSL", "?tls=skip-verify", TLS{}, ""},
			{"SSL", "?tls=true", TLS{}, "HUB_SOURCE_CA"},
			// Its certificate names no host.
			{"SSL", "", TLS{CA: client.CA}, "tls=skip-verify"},
			{"SSL", "?tls=skip-verify", TLS{CA: client.CA}, ""},
			{"SSL", "?tls=skip-verify", TLS{CA: file("client-cert.pem")}, "HUB_SOURCE_CA"},
			{"X509", "?tls=skip-verify", TLS{}, "HUB_SOURCE_CERT"},
			{"X509", "?tls=skip-verify", client, ""},
			{"NONE", "?tls=preferred", TLS{}, ""},
		} {
			account(c.requires)
			s, err := Open(dsn+c.dsn, Options{TLS: c.with})
			if err != nil {
				t.Fatal(err)
			}
			_, err = s.Identify(t.Context())
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("REQUIRE %s, %q: %v, want %q", c.requires, c.dsn, err, c.want)
			}
			if c.want == "" && err == nil {
				if err := s.Ping(t.Context()); err != nil {
					t.Errorf("REQUIRE %s, %q: %v", c.requires, c.dsn, err)
				}
			}
			s.Close()
		}
		other := "-----BEGIN PUBLIC KEY-----\n" +
			"MFwwDQYJKoZIhvcNAQEBBQADSwAwSAJBALqbHeRLCyOdykC5SDLqI49ArYGYG1mq\naH9/GnWjGavZM02fos4lc2w6tCchcUBNtJvG" +
			"KwC0E7QpGuDr9DkcBZsCAwEAAQ==\n-----END PUBLIC KEY-----\n"
		account("NONE")
		s, err := Open(dsn, Options{TLS: TLS{ServerKey: other}})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if err := s.Prove(t.Context()); err == nil {
			t.Error("a password that another server's key encrypts is taken")
		}
		for _, wrong := range []TLS{{CA: "x"}, {Cert: client.Cert}, {ServerKey: "x"}, {ServerKey: client.CA}} {
			if _, err := Open(dsn, Options{TLS: wrong}); err == nil || !strings.Contains(err.Error(), "HUB_SOURCE_") {
				t.Errorf("%.20v: %v", wrong, err)
			}
		}
	})
}
