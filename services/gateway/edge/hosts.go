package edge

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"hub.internal/pkg/fault"
	"hub.internal/services/gateway/catalog"
)

// Hosts are the names that the gateway answers to. A page of another site whose name its owner has pointed here (DNS
// rebinding) is of that name's origin: the browser would let it read what it is answered.
type Hosts struct {
	public string // the base of the public address, for whoever used another
	// names are hosts in small letters; with a port, which may be empty, where only that one is meant.
	names map[string]bool
	// local takes every name of the machine itself, because the public address is one: people type each.
	local bool
}

// NewHosts returns the names of a gateway at publicURL, and further ones, as host or host:port. Without publicURL every name is
// taken, and it returns nil.
func NewHosts(publicURL string, further []string) (*Hosts, error) {
	if publicURL == "" {
		return nil, nil
	}
	u, err := url.Parse(publicURL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("HUB_PUBLIC_URL has to be where browsers reach Hub, such as https://hub.example.com")
	}
	h := &Hosts{public: strings.TrimRight(publicURL, "/"), names: map[string]bool{}, local: ofThisMachine(u.Hostname())}
	standard := map[string]string{"http": "80", "https": "443"}[u.Scheme]
	h.names[net.JoinHostPort(strings.ToLower(u.Hostname()), u.Port())] = true
	if u.Port() == "" || u.Port() == standard { // clients write that port or leave it out
		h.names[net.JoinHostPort(strings.ToLower(u.Hostname()), "")] = true
		h.names[net.JoinHostPort(strings.ToLower(u.Hostname()), standard)] = true
	}
	for _, host := range further {
		name, port, both := splitHost(host)
		switch {
		case name == "" || strings.ContainsAny(host, "/@* "):
			return nil, fmt.Errorf("HUB_HOSTS: %q is no host or host:port", host)
		case both:
			name = net.JoinHostPort(name, port)
		}
		h.names[name] = true
	}
	return h, nil
}

// splitHost returns the name of a host in small letters, and its port where it has one.
func splitHost(host string) (name, port string, both bool) {
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	}
	return strings.ToLower(strings.TrimSuffix(name, ".")), port, err == nil
}

// accept tells whether the request is for one of them, or for the very address that it has reached the gateway at.
func (h *Hosts) accept(r *http.Request) bool {
	name, port, _ := splitHost(r.Host)
	if h.names[net.JoinHostPort(name, port)] || h.names[name] || h.local && ofThisMachine(name) {
		return true
	}
	return IsOwnAddress(r)
}

// IsOwnAddress tells that the request is for the very address that it has reached the gateway at, or for this machine: no name of
// somebody else's.
func IsOwnAddress(r *http.Request) bool {
	name, _, _ := splitHost(r.Host)
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return false
	}
	at, err := netip.ParseAddrPort(local.String())
	if err != nil {
		return false
	}
	asked, err := netip.ParseAddr(name)
	return err == nil && asked.Unmap() == at.Addr().Unmap() || name == "localhost" && at.Addr().IsLoopback()
}

// ofThisMachine tells that a name never leaves the machine.
func ofThisMachine(name string) bool {
	addr, err := netip.ParseAddr(name)
	return name == "localhost" || err == nil && addr.IsLoopback()
}

// RestrictHosts serves what is meant for one of the hosts; nil serves all. What asks whether the process lives does so by address, and does
// not come here.
func (g *Gateway) RestrictHosts(hosts *Hosts, next http.Handler) http.Handler {
	if hosts == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !hosts.accept(r) {
			f := fault.New(fault.Validation, "Hub is not called %s: use %s. HUB_HOSTS of the gateway names what else it is called.",
				catalog.Shown(r.Host), hosts.public)
			g.NewCall(r).WriteFailure(w, f, http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}
