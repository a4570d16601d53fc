package server

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"database/sql"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

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
		client := TLS{CA: file("ca.pem"), Cert: file("client-cert.pem"), Key: file("client-key.pem")}
		c := newTLSAccount(t, on)
		c.connects("NONE", "", TLS{ServerKey: file("public_key.pem")}, "")
		c.encrypts(client, file("client-cert.pem"))
		// Its certificate names no host.
		c.connects("SSL", "", TLS{CA: client.CA}, "tls=skip-verify")

		other := "-----BEGIN PUBLIC KEY-----\n" +
			"MFwwDQYJKoZIhvcNAQEBBQADSwAwSAJBALqbHeRLCyOdykC5SDLqI49ArYGYG1mq\naH9/GnWjGavZM02fos4lc2w6tCchcUBNtJvG" +
			"KwC0E7QpGuDr9DkcBZsCAwEAAQ==\n-----END PUBLIC KEY-----\n"
		c.requires("NONE")
		s, err := Open(c.dsn, Options{TLS: TLS{ServerKey: other}})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if err := s.Prove(t.Context()); err == nil {
			t.Error("a password that another server's key encrypts is taken")
		}
		for _, wrong := range []TLS{{CA: "x"}, {Cert: client.Cert}, {ServerKey: "x"}, {ServerKey: client.CA}} {
			if _, err := Open(c.dsn, Options{TLS: wrong}); err == nil || !strings.Contains(err.Error(), "HUB_SOURCE_") {
				t.Errorf("%.20v: %v", wrong, err)
			}
		}
	})
}

// TestTLSOfAnAuthority connects to a MariaDB and a MySQL with certificates of a company's own authority, which name the host.
func TestTLSOfAnAuthority(t *testing.T) {
	p := newAuthority(t)
	config := fmt.Sprintf("ssl_ca = %s/ca.pem\nssl_cert = %[1]s/server.pem\nssl_key = %[1]s/server-key.pem\n", p.dir)
	hubtest.NewSourceServers(t, config, func(t *testing.T, on *localserver.SourceServer) {
		c := newTLSAccount(t, on)
		client := TLS{CA: p.ca, Cert: p.client, Key: p.clientKey}
		c.encrypts(client, p.client)
		c.connects("SSL", "", TLS{CA: p.ca}, "")
		c.connects("SSL", "?tls=true", TLS{CA: p.ca}, "")
		c.connects("X509", "", client, "")
	})
}

// tlsAccount connects to a server as an account of which something is required.
type tlsAccount struct {
	t     *testing.T
	admin *sql.DB
	dsn   string
}

func newTLSAccount(t *testing.T, on *localserver.SourceServer) tlsAccount {
	t.Helper()
	_, dsn := hubtest.SourceDBOn(t, on)
	admin, err := on.Admin()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { admin.Close() })
	return tlsAccount{t, admin, dsn}
}

// requires has the account connect in no other way. The server caches who has logged in: the next password has to come encrypted again.
func (c tlsAccount) requires(what string) {
	c.t.Helper()
	user, _, _ := strings.Cut(c.dsn, ":")
	for _, q := range []string{"ALTER USER " + user + "@'%' REQUIRE " + what, "FLUSH PRIVILEGES"} {
		if _, err := c.admin.ExecContext(c.t.Context(), q); err != nil {
			c.t.Fatal(err)
		}
	}
}

// connects holds a connection to what it ends with: a part of its error, or none.
func (c tlsAccount) connects(requires, parameters string, with TLS, want string) {
	c.t.Helper()
	c.requires(requires)
	s, err := Open(c.dsn+parameters, Options{TLS: with})
	if err != nil {
		c.t.Fatal(err)
	}
	defer s.Close()
	if _, err = s.Identify(c.t.Context()); err == nil {
		err = s.Ping(c.t.Context())
	}
	if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
		c.t.Errorf("REQUIRE %s, %q: %v, want %q", requires, parameters, err, want)
	}
}

// encrypts is what holds of each server that encrypts, whatever its certificate names. stranger is no authority.
func (c tlsAccount) encrypts(client TLS, stranger string) {
	c.t.Helper()
	for _, x := range []struct {
		requires, parameters string
		with                 TLS
		want                 string
	}{
		{"SSL", "", TLS{}, "?tls=true"},
		{"SSL", "?tls=skip-verify", TLS{}, ""},
		{"SSL", "?tls=true", TLS{}, "HUB_SOURCE_CA"},
		{"SSL", "?tls=skip-verify", TLS{CA: client.CA}, ""},
		{"SSL", "?tls=skip-verify", TLS{CA: stranger}, "HUB_SOURCE_CA"},
		{"X509", "?tls=skip-verify", TLS{}, "HUB_SOURCE_CERT"},
		{"X509", "?tls=skip-verify", client, ""},
		{"NONE", "?tls=preferred", TLS{}, ""},
	} {
		c.connects(x.requires, x.parameters, x.with, x.want)
	}
}

// authority is who signs a server's certificate and a client's.
type authority struct{ dir, ca, client, clientKey string }

func newAuthority(t *testing.T) authority {
	t.Helper()
	key := newKey(t)
	ca := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Company"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	sign := func(c *x509.Certificate, public any) string {
		c.NotBefore, c.NotAfter = ca.NotBefore, ca.NotAfter
		der, err := x509.CreateCertificate(rand.Reader, c, ca, public, key)
		if err != nil {
			t.Fatal(err)
		}
		return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	}
	server, client := newKey(t), newKey(t)
	p := authority{dir: t.TempDir(), ca: sign(ca, key.Public()), clientKey: private(t, client), client: sign(&x509.Certificate{
		SerialNumber: big.NewInt(3), Subject: pkix.Name{CommonName: "hub"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, client.Public())}
	// The servers run as somebody else.
	if err := os.Chmod(filepath.Dir(p.dir), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"ca.pem": p.ca, "server-key.pem": private(t, server), "server.pem": sign(&x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "source"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, server.Public())} {
		if err := os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

func newKey(t *testing.T) *rsa.PrivateKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func private(t *testing.T, key *rsa.PrivateKey) string {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}
