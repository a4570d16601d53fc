package server

import (
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	mysqldriver "github.com/go-sql-driver/mysql"

	"hub.internal/services/query/mysql/errno"
)

// TLS is what proves the server to Hub and Hub to the server, each as PEM; empty where a data source name says enough.
type TLS struct {
	// CA (HUB_SOURCE_CA) is whom the server's certificate has to be signed by, in place of the system's authorities.
	CA string
	// Cert and Key (HUB_SOURCE_CERT, HUB_SOURCE_KEY) are a client certificate, for an account that has REQUIRE X509.
	Cert, Key string
	// ServerKey (HUB_SOURCE_SERVER_KEY) is the server's public RSA key: without TLS, caching_sha2_password encrypts the password
	// with it, and not with whatever key the other end offers.
	ServerKey string
}

// apply adds it to a configuration. An authority and a certificate mean TLS, whose other end is verified. With tls=skip-verify in
// the data source name only the authority is, where one is given, and not the name: the certificates that MySQL makes itself have
// none. Its error is one line that names the setting.
func (t TLS) apply(config *mysqldriver.Config) error {
	if t.ServerKey != "" {
		block, _ := pem.Decode([]byte(t.ServerKey))
		if block == nil {
			return errors.New("HUB_SOURCE_SERVER_KEY is no PEM")
		}
		key, err := x509.ParsePKIXPublicKey(block.Bytes)
		public, isRSA := key.(*rsa.PublicKey)
		if err != nil || !isRSA {
			return errors.New("HUB_SOURCE_SERVER_KEY is no RSA public key, such as the server's public_key.pem")
		}
		config.ServerPubKey = "hub.internal/" + t.ServerKey // the driver keeps keys by names
		mysqldriver.RegisterServerPubKey(config.ServerPubKey, public)
	}
	if t.CA == "" && t.Cert == "" && t.Key == "" {
		return nil
	}
	if config.TLS == nil || config.AllowFallbackToPlaintext {
		config.TLS, config.AllowFallbackToPlaintext = &tls.Config{}, false
	}
	if t.CA != "" {
		config.TLS.RootCAs = x509.NewCertPool()
		if !config.TLS.RootCAs.AppendCertsFromPEM([]byte(t.CA)) {
			return errors.New("HUB_SOURCE_CA holds no certificate")
		}
		if config.TLS.InsecureSkipVerify {
			config.TLS.VerifyConnection = signedBy(config.TLS.RootCAs)
		}
	}
	if t.Cert != "" || t.Key != "" {
		pair, err := tls.X509KeyPair([]byte(t.Cert), []byte(t.Key))
		if err != nil {
			return errors.New("HUB_SOURCE_CERT and HUB_SOURCE_KEY are no certificate with its key")
		}
		config.TLS.Certificates = []tls.Certificate{pair}
	}
	return nil
}

// signedBy verifies who signed the other end's certificate, and not its name.
func signedBy(authorities *x509.CertPool) func(tls.ConnectionState) error {
	return func(state tls.ConnectionState) error {
		between := x509.NewCertPool()
		for _, c := range state.PeerCertificates[1:] {
			between.AddCert(c)
		}
		_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: authorities, Intermediates: between})
		return err
	}
}

// explain adds to what refused a connection the setting that is probably missing.
func explain(err error, config *mysqldriver.Config) error {
	var answered *mysqldriver.MySQLError
	var unknown x509.UnknownAuthorityError
	var other x509.HostnameError
	switch {
	case errors.As(err, &unknown):
		return fmt.Errorf("%w: HUB_SOURCE_CA names the authority that signed it, such as the server's ca.pem", err)
	case errors.As(err, &other), err != nil && strings.Contains(err.Error(), "cannot validate certificate"),
		err != nil && strings.Contains(err.Error(), "legacy Common Name"):
		return fmt.Errorf("%w: name the host as the certificate does; tls=skip-verify with HUB_SOURCE_CA verifies who signed it, and "+
			"not the name", err)
	case errors.As(err, &answered) && answered.Number == errno.AccessDenied && config.TLS == nil:
		return fmt.Errorf("%w (or the account has REQUIRE SSL: add ?tls=true to the data source name)", err)
	case errors.As(err, &answered) && answered.Number == errno.AccessDenied && len(config.TLS.Certificates) == 0:
		return fmt.Errorf("%w (or the account has REQUIRE X509: HUB_SOURCE_CERT and HUB_SOURCE_KEY are its certificate)", err)
	}
	return err
}
