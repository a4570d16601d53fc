package apps

import (
	"net"
	"net/url"
	"slices"
	"strings"

	"hub.internal/pkg/schema"
	"hub.internal/pkg/text"
)

// maxShown is how much of an address a message repeats, in characters.
const maxShown = 60

// list judges each address of a list and returns them once each, in the order given.
func list(v *schema.Violations, name string, addresses []string, judge func(string) string) []string {
	once := []string{}
	for _, a := range addresses {
		switch problem := judge(a); {
		case problem != "":
			v.Add("/"+name, "url", "has %q, which %s", text.Shown(a, maxShown), problem)
		case !slices.Contains(once, a):
			once = append(once, a)
		}
	}
	if len(once) > MaxURLs {
		v.Add("/"+name, "maxItems", "must be at most %d", MaxURLs)
	}
	return once
}

// redirectURL tells what is wrong with where browsers may be sent back to; empty is nothing. What is compared byte by
// byte has to have one form only: the one that browsers make of it.
func redirectURL(written string) string {
	u, problem := address(written)
	switch {
	case problem != "":
		return problem
	case u.Path == "":
		return "has no path: end it with /"
	case u.String() != written || strings.Contains(u.Path+"/", "/./") || strings.Contains(u.Path+"/", "/../"):
		return "is not in its plain form: write " + text.Shown(u.JoinPath().String(), maxShown)
	}
	return ""
}

// origin tells what is wrong with whom messages may be sent to; empty is nothing.
func origin(text string) string {
	u, problem := address(text)
	switch {
	case problem != "":
		return problem
	case u.Path != "" || u.RawQuery != "" || u.ForceQuery:
		return "is more than an origin: write " + u.Scheme + "://" + u.Host
	case u.Scheme == "https" && u.Port() == "443", u.Scheme == "http" && u.Port() == "80":
		return "names the port that it has anyway: leave it out"
	}
	return ""
}

// address tells what is wrong with a URL of another service. Plain http is for development on one machine.
func address(text string) (*url.URL, string) {
	if len(text) > MaxURL {
		return nil, "is longer than 500 bytes"
	}
	if strings.ContainsFunc(text, func(r rune) bool { return r <= 0x20 || r >= 0x7f || strings.ContainsRune(`\*"<>`, r) }) {
		return nil, "has a character that no such address has; hosts of other scripts are written as xn--…"
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Opaque != "" || u.Host == "":
		return nil, "is no URL such as https://shop.example/back"
	case u.User != nil || strings.Contains(u.Host, "@"):
		return nil, "has a user in it"
	case u.Fragment != "" || strings.Contains(text, "#"):
		return nil, "has a fragment"
	}
	host, port := u.Hostname(), u.Port()
	switch {
	case u.Host != strings.ToLower(u.Host) || !strings.HasPrefix(text, u.Scheme+"://"):
		return nil, "is not in small letters up to its path"
	case strings.HasSuffix(u.Host, ":") || port != "" && (strings.HasPrefix(port, "0") || len(port) > 5):
		return nil, "has no such port"
	case u.Scheme == "http" && (host == "localhost" || host == "127.0.0.1"):
		return u, ""
	case u.Scheme != "https":
		return nil, "must begin with https:// (http:// is for localhost alone)"
	case net.ParseIP(host) != nil:
		return nil, "names an address and not a host"
	case !strings.Contains(strings.Trim(host, "."), ".") && host != "localhost", strings.HasSuffix(host, "."), strings.Contains(host, ".."):
		return nil, "names no host with a dot"
	}
	return u, ""
}
