package notify

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// MaxURL bounds the URL of a receiver, in bytes.
const MaxURL = 500

// numberLike is a host's last label that some resolvers read as a number, so as an address of IPv4.
var numberLike = regexp.MustCompile(`^([0-9]+|0[xX][0-9A-Fa-f]*)$`)

// CheckURL tells what is wrong with the URL of a receiver: https (with allowHTTP http, too), at most MaxURL bytes of printable
// ASCII, a host, port 443 or from 1024 on, neither user nor fragment. Where origins is not empty, its origin has to be one of
// them, byte for byte. It resolves no name: whether the address behind it is one that Hub sends to is decided when it is sent.
// The error is made for who has sent the URL.
func CheckURL(text string, origins []string, allowHTTP bool) error {
	u, err := parseURL(text, allowHTTP)
	if err != nil {
		return err
	}
	if len(origins) > 0 && !slices.Contains(origins, origin(text, u)) {
		return errors.New("its origin is none of those that the app has registered")
	}
	return nil
}

// parseURL reads a URL of a receiver, and refuses every form that two programs may read in two ways.
func parseURL(text string, allowHTTP bool) (*url.URL, error) {
	if len(text) > MaxURL {
		return nil, fmt.Errorf("it is longer than %d bytes", MaxURL)
	}
	if strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' || r == '\\' }) {
		return nil, errors.New("it has other characters than a URL can have")
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Opaque != "" || u.Hostname() == "":
		return nil, errors.New("it is no URL with a host")
	case u.Scheme != "https" && !allowHTTP:
		return nil, errors.New("it has to begin with https://")
	case u.Scheme != "https" && u.Scheme != "http":
		return nil, errors.New("it has to begin with https:// or http://")
	case u.User != nil:
		return nil, errors.New("it must not hold a user or a password")
	case strings.Contains(text, "#"):
		return nil, errors.New("it must not have a fragment")
	}
	if err := checkHost(u.Hostname()); err != nil {
		return nil, err
	}
	return u, checkPort(u)
}

// checkHost takes a name or a plain address. An address that is written in another way, as 0x7f000001, is refused:
// what it stands for depends on the resolver.
func checkHost(host string) error {
	if addr, err := netip.ParseAddr(host); err == nil {
		if addr.Zone() != "" || addr.Is4In6() {
			return errors.New("its host is no plain address")
		}
		return nil
	}
	labels := strings.Split(strings.TrimSuffix(host, "."), ".")
	if numberLike.MatchString(labels[len(labels)-1]) || strings.ContainsAny(host, "%:") {
		return errors.New("its host is neither a name nor a plain address")
	}
	return nil
}

// checkPort takes the port of the scheme, or one that portAllowed lets through, without leading zeros.
func checkPort(u *url.URL) error {
	_, text, given := strings.Cut(u.Host[strings.LastIndexByte(u.Host, ']')+1:], ":")
	if !given {
		return nil
	}
	port, err := strconv.Atoi(text)
	if err != nil || strconv.Itoa(port) != text || !portAllowed(port, u.Scheme == "http") {
		return errors.New("its port has to be 443 or one from 1024 to 65535")
	}
	return nil
}

// origin is scheme, host and port as text has them.
func origin(text string, u *url.URL) string {
	return text[:len(u.Scheme)+len("://")+len(u.Host)]
}
