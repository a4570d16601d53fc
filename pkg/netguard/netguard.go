// Package netguard says which addresses are on the public Internet, for a program that calls hosts that somebody else has
// named: a server-side request forgery (SSRF) makes such a program call what only it can reach, and the address that a
// connection is made to is the one place where that shows, after names were resolved.
package netguard

import (
	"net/netip"
	"slices"
)

// special are the networks of IPv4, and those within 2000::/3, that are not on the Internet, or whose addresses stand for others.
// Without another source, they are of IANA's registries of special-purpose addresses (RFC 6890).
var special = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),         // this network, RFC 791
	netip.MustParsePrefix("10.0.0.0/8"),        // private, RFC 1918
	netip.MustParsePrefix("100.64.0.0/10"),     // shared by a carrier's customers, RFC 6598
	netip.MustParsePrefix("127.0.0.0/8"),       // loopback, RFC 1122
	netip.MustParsePrefix("168.63.129.16/32"),  // Azure's own service to its machines: in no registry, told by Azure's documents
	netip.MustParsePrefix("169.254.0.0/16"),    // link-local, RFC 3927; clouds' metadata are there
	netip.MustParsePrefix("172.16.0.0/12"),     // private, RFC 1918
	netip.MustParsePrefix("192.0.0.0/24"),      // protocol assignments, RFC 6890
	netip.MustParsePrefix("192.0.2.0/24"),      // documentation, RFC 5737
	netip.MustParsePrefix("192.88.99.0/24"),    // relays of 6to4, RFC 7526
	netip.MustParsePrefix("192.168.0.0/16"),    // private, RFC 1918
	netip.MustParsePrefix("198.18.0.0/15"),     // benchmarks, RFC 2544
	netip.MustParsePrefix("198.51.100.0/24"),   // documentation, RFC 5737
	netip.MustParsePrefix("203.0.113.0/24"),    // documentation, RFC 5737
	netip.MustParsePrefix("224.0.0.0/4"),       // multicast, RFC 5771
	netip.MustParsePrefix("240.0.0.0/4"),       // reserved, RFC 1112, and broadcast, RFC 919
	netip.MustParsePrefix("2001::/23"),         // protocol assignments, RFC 2928, Teredo among them
	netip.MustParsePrefix("2001:db8::/32"),     // documentation, RFC 3849
	netip.MustParsePrefix("2002::/16"),         // 6to4, RFC 3056: it holds an address of IPv4
	netip.MustParsePrefix("2620:4f:8000::/48"), // AS112, RFC 7534
	netip.MustParsePrefix("3fff::/20"),         // documentation, RFC 9637
}

// globalUnicast is all of IPv6 that is given out (RFC 4291, IANA's registry of IPv6 unicast addresses). What stands for an address
// of IPv4 elsewhere is not in it: ::ffff:0:0/96 (mapped), 64:ff9b::/96 (NAT64).
var globalUnicast = netip.MustParsePrefix("2000::/3")

// Public reports whether an address is one of the public Internet. It is false for an address with a zone, for an address of IPv4
// that is written as one of IPv6, and for the zero Addr.
func Public(addr netip.Addr) bool {
	if addr.Zone() != "" || !addr.Is4() && !globalUnicast.Contains(addr) {
		return false
	}
	return !slices.ContainsFunc(special, func(p netip.Prefix) bool { return p.Contains(addr) })
}
