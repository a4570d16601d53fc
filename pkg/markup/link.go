package markup

import (
	"net/netip"
	"path"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

var (
	languageTag = regexp.MustCompile(`^[A-Za-z0-9-]{1,35}$`)
	// One address in front of the query: no comma, and no escapes, in which a second one could be hidden.
	mailAddress = regexp.MustCompile(`^(?i:mailto):([^\s"'<>\\?%,@]+@[^\s"'<>\\?%,@]+)(\?[^\s"'<>\\]*)?$`)
	telephone   = regexp.MustCompile(`^(?i:tel):\+?[0-9][0-9().-]{1,40}$`)
	hostLabel   = regexp.MustCompile(`^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$`)
)

// maxAddress bounds an address in bytes: programs cut longer ones at different places.
const maxAddress = 4096

// Address judges where a link leads: to a host of the web, a mailbox or a telephone, in a form
// that is read only one way. The host comes back in ASCII and lower case.
// Refused are javascript:, data: and any other scheme, relative addresses, and https://bank.example@evil.example, which names another
// host than it shows.
func Address(href string) (string, bool) {
	switch {
	case mailAddress.MatchString(href):
		return "mailto:" + href[len("mailto:"):], !strings.ContainsFunc(href, isStrange)
	case telephone.MatchString(href):
		return "tel:" + href[len("tel:"):], true
	}
	return webAddress(href)
}

// LocalAddress judges a link within the site that shows it: a path from its root, written as browsers and
// servers read it alike. What begins with two slashes is somebody else's host.
// An example: /orders/7?show=all#top. /a/../b and //evil.example are refused.
func LocalAddress(href string) (string, bool) {
	end := strings.IndexAny(href, "?#")
	if end < 0 {
		end = len(href)
	}
	p := href[:end]
	plain := p == "/" || path.Clean(p) == strings.TrimSuffix(p, "/")
	return href, strings.HasPrefix(p, "/") && plain && len(href) <= maxAddress && utf8.ValidString(href) &&
		!strings.ContainsFunc(href, func(r rune) bool { return isStrange(r) || unicode.IsSpace(r) })
}

// webAddress judges an address of http or https. Whatever programs repair, each in its way, is
// refused: missing or turned slashes, white space, a name before the host, escapes in the host
// and numbers for it.
func webAddress(href string) (string, bool) {
	scheme, rest, ok := strings.Cut(href, "://")
	scheme = strings.ToLower(scheme)
	if !ok || scheme != "http" && scheme != "https" || len(href) > maxAddress || strings.ContainsFunc(href, isStrange) {
		return "", false
	}
	host, below := rest, ""
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		host, below = rest[:end], rest[end:]
	}
	// A name before the host (user@host) is refused by canonicalHost, as no label has an @.
	host, port, hasPort := strings.Cut(host, ":")
	if host, ok = canonicalHost(host); !ok {
		return "", false
	}
	if hasPort {
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 || strconv.Itoa(n) != port {
			return "", false
		}
		host += ":" + port
	}
	return scheme + "://" + host + strings.ReplaceAll(below, " ", "%20"), true
}

// isStrange tells characters that have no place in an address.
func isStrange(r rune) bool {
	return r < ' ' || r >= 0x7f && r <= 0xa0 || strings.ContainsRune("\"'<>\\^`{|}\ufffd", r) || markOf(r) != 0
}

// canonicalHost is the name of a host in ASCII, or an IPv4 address with its four numbers.
// Numbers are refused in any other form than four decimal ones: browsers read 0x7f.1 and 2130706433 as 127.0.0.1.
func canonicalHost(host string) (string, bool) {
	ascii, err := lookup.ToASCII(host)
	if err != nil || len(ascii) > 253 {
		return "", false
	}
	labels := strings.Split(strings.TrimSuffix(ascii, "."), ".")
	for _, label := range labels {
		if !hostLabel.MatchString(label) {
			return "", false
		}
	}
	last := labels[len(labels)-1]
	if last[0] >= '0' && last[0] <= '9' {
		ip, err := netip.ParseAddr(ascii)
		return ascii, err == nil && ip.Is4()
	}
	return strings.Join(labels, "."), true
}

// lookup maps names as browsers do (UTS 46, non-transitional): ß stays itself and is not made ss.
var lookup = idna.New(idna.MapForLookup(), idna.Transitional(false), idna.StrictDomainName(false))
