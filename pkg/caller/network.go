package caller

import (
	"math"
	"net/netip"
	"strings"
)

// How wide the networks of an address are, narrowest first. A host or a household is given a /64 of IPv6 addresses and
// chooses the rest as it likes (RFC 7421), a household or a site often a /56 or a /48 (RFC 6177); an IPv4 address is
// somebody's by itself, and the /24 is the smallest part of the Internet that has a route of its own.
var (
	networksOf4 = [...]int{32, 24}
	networksOf6 = [...]int{64, 56, 48}
)

// Networks are the networks that a client's address belongs to, as limits see them, narrowest first: an IPv4 address as
// it is, also one that is written as IPv6, and its /24; the /64, /56 and /48 of any other IPv6 address. A text that is no
// address is the one network of itself. Whoever has a wide network has all of its narrow ones, so that a limit for each
// of the latter needs one for the former too.
func Networks(address string) []string { return networks(address, math.MaxInt) }

// Network is the narrowest of a client's Networks.
func Network(address string) string { return networks(address, 1)[0] }

// networks are as many of the Networks, the narrowest ones.
func networks(address string, most int) []string {
	addr, err := netip.ParseAddr(address)
	if err != nil {
		return []string{address}
	}
	addr = addr.Unmap().WithZone("")
	widths := networksOf6[:]
	if addr.Is4() {
		widths = networksOf4[:]
	}
	list := make([]string, min(len(widths), most))
	for i := range list {
		if addr.Is4() && i == 0 {
			list[i] = addr.String()
		} else {
			list[i] = netip.PrefixFrom(addr, widths[i]).Masked().String()
		}
	}
	return list
}

// ParseAddress reads an address as a proxy writes it in X-Forwarded-For: with or without a port, in brackets or not.
// It is false for anything else.
func ParseAddress(text string) (netip.Addr, bool) {
	text = strings.TrimSpace(text)
	if withPort, err := netip.ParseAddrPort(text); err == nil {
		return withPort.Addr().Unmap(), true
	}
	addr, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(text, "["), "]"))
	return addr.Unmap(), err == nil
}
