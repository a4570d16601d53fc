package nicepay

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"hub.internal/pkg/netguard"
)

// CheckHost refuses a base URL that is none, and, for production, one that is not https or leads to this machine or a
// private network by its name or address. An empty one stands for the hosts of NICEPAY. What a name resolves to is seen
// when it is dialled.
func CheckHost(production bool, baseURL string) error {
	if baseURL == "" {
		return nil
	}
	u, err := url.Parse(baseURL)
	switch {
	case err != nil || u.Host == "" || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https":
		return errors.New("the base URL of the provider must be http:// or https:// and a host")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return errors.New("the base URL of the provider must not hold a user, a query or a fragment")
	case production && u.Scheme != "https":
		return errors.New("the base URL of the provider must be https in production")
	case production && private(u.Hostname()):
		return fmt.Errorf("the provider's host %q is private: production does not take payments from a simulator", u.Hostname())
	}
	return nil
}

// private tells whether a host is this machine or within a private network, as far as it can be told by its looks.
func private(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if addr, err := netip.ParseAddr(host); err == nil {
		return !netguard.Public(addr)
	}
	if last := host[strings.LastIndexByte(host, '.')+1:]; numeric(last) {
		return true // 127.1, 2130706433 and 0x7f000001 are addresses for some resolvers, and names of nobody
	}
	for _, local := range []string{"localhost", "localdomain", "local", "internal", "intranet", "lan", "home.arpa", "test", "svc"} {
		if host == local || strings.HasSuffix(host, "."+local) {
			return true
		}
	}
	return !strings.Contains(host, ".") // a name without a dot is one of a container or a neighbour
}

// numeric tells whether a resolver may read a label as a number.
func numeric(label string) bool {
	_, err := strconv.ParseUint(label, 0, 64)
	_, decimal := strconv.ParseUint(label, 10, 64)
	return err == nil || decimal == nil
}

// refusePrivate refuses a connection to a private address, after the name was resolved and before a byte is sent.
func refusePrivate(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil || !netguard.Public(to.Addr()) {
		return errors.New("the provider's name leads to a private address")
	}
	return nil
}

// newClient is a client that uses no proxy and follows no redirect: either would show the credential to somebody else.
// In production it dials public addresses alone.
func newClient(dial time.Duration, production bool) *http.Client {
	dialer := &net.Dialer{Timeout: dial, KeepAlive: 15 * time.Second}
	if production {
		dialer.Control = refusePrivate
	}
	return &http.Client{
		Transport: &http.Transport{DialContext: dialer.DialContext, TLSHandshakeTimeout: dial, IdleConnTimeout: 30 * time.Second,
			MaxIdleConnsPerHost: 16, ForceAttemptHTTP2: true, DisableCompression: true, MaxResponseHeaderBytes: 64 << 10,
			TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
