package notify

import (
	"errors"
	"net/netip"
	"slices"
	"syscall"
)

// errRefused is an address that Hub sends nothing to.
var errRefused = errors.New("not an address that notifications go to")

// Guard decides which addresses a connection may be made to, by the address itself and after names were resolved: whatever a
// name said a moment ago, this is where the bytes would go. IPv6 is let through where it is global unicast alone, IPv4 where it is
// not for special use.
type Guard struct {
	// Allow are let through all the same: for receivers on one's own machine.
	Allow []netip.Prefix
}

// special are the addresses of IPv4 that are not on the Internet (IANA's registry of special purpose addresses), and those of
// 2000::/3 that stand for such, or for an address of IPv4 that is written within.
var special = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),         // this network
	netip.MustParsePrefix("10.0.0.0/8"),        // private
	netip.MustParsePrefix("100.64.0.0/10"),     // shared by a carrier's customers
	netip.MustParsePrefix("127.0.0.0/8"),       // loopback
	netip.MustParsePrefix("168.63.129.16/32"),  // a cloud's own service to its machines
	netip.MustParsePrefix("169.254.0.0/16"),    // link-local, and clouds' metadata
	netip.MustParsePrefix("172.16.0.0/12"),     // private
	netip.MustParsePrefix("192.0.0.0/24"),      // protocols
	netip.MustParsePrefix("192.0.2.0/24"),      // documentation
	netip.MustParsePrefix("192.88.99.0/24"),    // relays of 6to4
	netip.MustParsePrefix("192.168.0.0/16"),    // private
	netip.MustParsePrefix("198.18.0.0/15"),     // benchmarks
	netip.MustParsePrefix("198.51.100.0/24"),   // documentation
	netip.MustParsePrefix("203.0.113.0/24"),    // documentation
	netip.MustParsePrefix("224.0.0.0/4"),       // multicast
	netip.MustParsePrefix("240.0.0.0/4"),       // reserved, broadcast
	netip.MustParsePrefix("2001::/23"),         // protocols, and Teredo
	netip.MustParsePrefix("2001:db8::/32"),     // documentation
	netip.MustParsePrefix("2002::/16"),         // 6to4
	netip.MustParsePrefix("2620:4f:8000::/48"), // AS112
	netip.MustParsePrefix("3fff::/20"),         // documentation
}

var globalUnicast = netip.MustParsePrefix("2000::/3")

// Admits tells whether a connection may be made to this address and port: 443, those from 1024 on, and 80 where open tells that
// http is spoken.
func (g Guard) Admits(to netip.AddrPort, open bool) bool {
	addr := to.Addr()
	if !addr.IsValid() || addr.Zone() != "" || to.Port() == 0 {
		return false
	}
	inside := func(p netip.Prefix) bool { return p.Contains(addr) }
	if slices.ContainsFunc(g.Allow, inside) {
		return true
	}
	// One that is mapped into IPv6 is none of 2000::/3.
	return (addr.Is4() || globalUnicast.Contains(addr)) && !slices.ContainsFunc(special, inside) && portAllowed(int(to.Port()), open)
}

func portAllowed(port int, open bool) bool {
	return port == 443 || port == 80 && open || port >= 1024 && port < 1<<16
}

// control is for net.Dialer.Control, which is asked between the resolving of a name and the connection, for each address.
func (g Guard) control(open bool) func(network, address string, _ syscall.RawConn) error {
	return func(network, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil || network != "tcp4" && network != "tcp6" || !g.Admits(to, open) {
			return errRefused
		}
		return nil
	}
}
