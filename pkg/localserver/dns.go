package localserver

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"syscall"
)

// DNS is a running dnsmasq that answers for a zone of its own and asks nobody else.
type DNS struct{ *Server }

// SRV is a service record: who serves a name.
type SRV struct {
	Name, Target string
	Port         int
}

// StartDNS starts a DNS server with these records, over UDP and TCP. Other records take another start: see Say.
func StartDNS(ctx context.Context, o Options, records ...SRV) (*DNS, error) {
	s, err := newServer(ctx, "dns", o, flavor{
		users:   []string{"nobody"},
		prepare: func(_ context.Context, s *Server) error { return writeFile(dnsConfig(s), zoneOf(records), s.who) },
		command: func(s *Server) ([]string, error) {
			program, err := find("dnsmasq")
			return []string{program, "--keep-in-foreground", "--conf-file=" + dnsConfig(s), "--pid-file=", "--no-resolv", "--no-hosts",
				"--listen-address=127.0.0.1", "--bind-interfaces", "--log-facility=-", "--user=", fmt.Sprint("--port=", s.port)}, err
		},
		ready: func(ctx context.Context, s *Server) error {
			_, err := (&DNS{s}).Resolver().LookupTXT(ctx, "ready.hub.test.")
			return err
		},
		stop: syscall.SIGTERM,
	})
	return &DNS{s}, err
}

// dnsConfig is the path of the configuration.
func dnsConfig(s *Server) string { return filepath.Join(s.dir, "dnsmasq.conf") }

// zoneOf is the configuration of the records. The TXT record tells that the server answers.
func zoneOf(records []SRV) string {
	var b strings.Builder
	b.WriteString("local=/hub.test/\ntxt-record=ready.hub.test,yes\n")
	for _, r := range records {
		fmt.Fprintf(&b, "srv-host=%s,%s,%d,10,10\n", r.Name, r.Target, r.Port)
	}
	return b.String()
}

// Say replaces the records, by another start.
// The port stays the same. Whoever asks meanwhile gets no answer.
func (d *DNS) Say(ctx context.Context, records ...SRV) error {
	d.Kill()
	d.flavor.prepare = func(_ context.Context, s *Server) error { return writeFile(dnsConfig(s), zoneOf(records), s.who) }
	return d.Start(ctx)
}

// Resolver asks this server alone.
func (d *DNS) Resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, d.Addr())
	}}
}
