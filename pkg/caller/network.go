package caller

import (
	"net/netip"
	"strings"
)

// networkBits is how much of an IPv6 address says whose it is: a host or a household is given a /64 and chooses the
// rest as it likes (RFC 7421).
const networkBits = 64

// Network is a client's address as limits see it: an IPv4 address as it is, also one that is written as IPv6, and the
// /64 of any other IPv6 address. A text that is no address is returned as it is.
func Network(address string) string {
	addr, err := netip.ParseAddr(address)
	if err != nil {
		return address
	}
	addr = addr.Unmap().WithZone("")
	if addr.Is4() {
		return addr.String()
	}
	return netip.PrefixFrom(addr, networkBits).Masked().String()
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
