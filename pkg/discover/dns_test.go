package discover_test

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"hub.internal/pkg/discover"
	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/localserver"
)

// zone answers SRV questions for one name over UDP, as a cluster's DNS does for a headless service.
type zone struct {
	name    string
	records atomic.Pointer[[]dnsmessage.SRVResource]
	fails   atomic.Bool
	asked   atomic.Int64
}

func serveZone(t testing.TB, name string) (*zone, *net.Resolver) {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	z := &zone{name: name}
	z.say()
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return // closed
			}
			if answer := z.answer(buf[:n]); answer != nil {
				_, _ = conn.WriteTo(answer, from)
			}
		}
	}()
	t.Cleanup(func() { conn.Close(); <-done })
	return z, &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

func (z *zone) say(records ...dnsmessage.SRVResource) { z.records.Store(&records) }

func (z *zone) answer(question []byte) []byte {
	var m dnsmessage.Message
	if err := m.Unpack(question); err != nil || len(m.Questions) != 1 {
		return nil
	}
	z.asked.Add(1)
	q := m.Questions[0]
	m.Response, m.Authoritative, m.Additionals = true, true, nil
	switch {
	case z.fails.Load():
		m.RCode = dnsmessage.RCodeServerFailure
	case q.Name.String() != z.name || q.Type != dnsmessage.TypeSRV:
		m.RCode = dnsmessage.RCodeNameError
	default:
		for _, r := range *z.records.Load() {
			m.Answers = append(m.Answers, dnsmessage.Resource{
				Header: dnsmessage.ResourceHeader{Name: q.Name, Type: dnsmessage.TypeSRV, Class: dnsmessage.ClassINET, TTL: 5}, Body: &r})
		}
	}
	b, err := m.Pack()
	if err != nil {
		return nil
	}
	return b
}

func srv(target string, port uint16) dnsmessage.SRVResource {
	return dnsmessage.SRVResource{Priority: 10, Weight: 10, Port: port, Target: dnsmessage.MustNewName(target)}
}

func TestDNSFollowsTheRecords(t *testing.T) {
	t.Parallel()
	z, resolver := serveZone(t, "_http._tcp.query.hub.test.")
	z.say(srv("query-1.query.hub.test.", 7000), srv("query-0.query.hub.test.", 7000))
	d := open(t, discover.Config{Mode: discover.DNS, DNSDomain: "hub.test", Resolver: resolver, DNSRefresh: 5 * time.Millisecond})
	f := follow(t, d.Instancer("query"))
	both := f.knows("query-0.query.hub.test.:7000", "query-1.query.hub.test.:7000")
	hubtest.Eventually(t, "both are found", both)
	z.fails.Store(true)
	asked := z.asked.Load()
	hubtest.Eventually(t, "it was asked while it fails", func() bool { return z.asked.Load() > asked+4 })
	if !both() {
		t.Error("a failing DNS has cost us the last known instances")
	}
	z.say(srv("query-0.query.hub.test.", 7001))
	z.fails.Store(false)
	hubtest.Eventually(t, "the change is seen", f.knows("query-0.query.hub.test.:7001"))
	if other := follow(t, d.Instancer("auth")); !other.knows()() {
		t.Error("a name without records has instances")
	}
	if err := d.Announce(t.Context(), "query", "10.0.0.1:7000"); err != nil {
		t.Error(err)
	}
}

// TestDNSServer follows a real server: its records, more of them than fit a datagram, none, and its absence.
func TestDNSServer(t *testing.T) {
	t.Parallel()
	of := func(n int) (records []localserver.SRV, addrs []string) {
		for i := range n {
			target := fmt.Sprintf("query-%d.query.hub.test", i)
			records = append(records, localserver.SRV{Name: "_http._tcp.query.hub.test", Target: target, Port: 7000})
			addrs = append(addrs, target+".:7000")
		}
		return records, addrs
	}
	two, both := of(2)
	dns := hubtest.NewDNS(t, two...)
	d := open(t, discover.Config{Mode: discover.DNS, DNSDomain: "hub.test", Resolver: dns.Resolver(), DNSRefresh: 5 * time.Millisecond})
	f := follow(t, d.Instancer("query"))
	hubtest.Eventually(t, "both are found", f.knows(both...))
	many, hundred := of(100)
	if err := dns.Say(t.Context(), many...); err != nil {
		t.Fatal(err)
	}
	hubtest.Eventually(t, "a hundred are found, over TCP", f.knows(hundred...))
	dns.Kill()
	if !f.knows(hundred...)() {
		t.Error("a DNS server that is away has cost us the last known instances")
	}
	if err := dns.Say(t.Context(), two[0]); err != nil {
		t.Fatal(err)
	}
	hubtest.Eventually(t, "one is left", f.knows(both[0]))
}
