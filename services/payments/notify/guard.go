package notify

import (
	"errors"
	"net/netip"
	"slices"
	"syscall"

	"hub.internal/pkg/netguard"
)

// errRefused is an address that Hub sends nothing to.
var errRefused = errors.New("not an address that notifications go to")

// Guard decides which addresses a connection may be made to, by the address itself and after names were resolved: whatever a
// name said a moment ago, this is where the bytes would go. Addresses of the public Internet alone are let through
// (netguard.Public).
type Guard struct {
	// Allow are let through all the same: for receivers on one's own machine.
	Allow []netip.Prefix
}

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
	return netguard.Public(addr) && portAllowed(int(to.Port()), open)
}

// portAllowed tells whether a receiver may be on a port. Those below 1024 are of other protocols, which a forged
// request could be spoken with.
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
