package notify_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"hub.internal/services/payments/notify"
)

func TestGuardAdmitsTheInternetAlone(t *testing.T) {
	t.Parallel()
	admits := func(g notify.Guard, addr string, port uint16) bool {
		t.Helper()
		return g.Admits(netip.AddrPortFrom(netip.MustParseAddr(addr), port), false)
	}
	for _, addr := range []string{
		"0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.100.100.200", "100.127.255.255", "127.0.0.1", "127.255.255.254",
		"168.63.129.16", "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.192", "192.0.2.1", "192.88.99.1", "192.168.0.1",
		"198.18.0.1", "198.19.255.255",
		"198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255",
		"::", "::1", "::7f00:1", "::ffff:127.0.0.1", "::ffff:8.8.8.8", "::ffff:0:808:808", "64:ff9b::808:808", "64:ff9b::7f00:1",
		"64:ff9b:1::1", "100::1", "fc00::1", "fd00:ec2::254", "fe80::1",
		"fe80::1%lo", "fec0::1", "ff02::1", "2001::1", "2001:0:7f00:1::", "2001:10::1", "2001:db8::1", "2002:7f00:1::1", "2002:808:808::1",
		"2620:4f:8000::1", "3fff::1", "5f00::1", "4000::1",
	} {
		if admits(notify.Guard{}, addr, 443) {
			t.Errorf("%s is let through", addr)
		}
		if plain := netip.MustParseAddr(addr); plain.Zone() == "" &&
			!admits(notify.Guard{Allow: []netip.Prefix{netip.PrefixFrom(plain, plain.BitLen())}}, addr, 443) {
			t.Errorf("%s is not let through where it is allowed", addr)
		}
	}
	for _, addr := range []string{"8.8.8.8", "1.1.1.1", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.1", "168.63.129.17",
		"169.253.255.255", "172.15.255.255", "172.32.0.0", "192.0.1.0",
		"192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0", "223.255.255.255", "2001:4860:4860::8888", "2606:4700:4700::1111",
		"2a00:1450::1"} {
		if !admits(notify.Guard{}, addr, 443) {
			t.Errorf("%s is not let through", addr)
		}
	}
	for port, want := range map[uint16]bool{443: true, 8443: true, 1024: true, 65535: true, 0: false, 22: false, 25: false, 80: false,
		1023: false} {
		if admits(notify.Guard{}, "8.8.8.8", port) != want {
			t.Errorf("port %d", port)
		}
	}
	if !(notify.Guard{}).Admits(netip.MustParseAddrPort("8.8.8.8:80"), true) {
		t.Error("port 80 where http is spoken")
	}
}

// TestNothingGoesInside: SPEC.md 12, row 32.
func TestNothingGoesInside(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, nil)
	if o := send(t, local(), r.URL); !o.Delivered || r.count() != 1 {
		t.Fatalf("the receiver itself: %+v", o)
	}
	for _, host := range []string{"127.0.0.1", "[::1]", "[::]", "0.0.0.0", "0", "localhost", "localhost.", "0x7f000001", "0x7f.1",
		"2130706433", "017700000001", "0177.0.0.1", "127.1",
		"[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]", "127.0.0.1.", "①②⑦.⓪.⓪.①", "[fe80::1%25lo]"} {
		for _, c := range []notify.Config{{AllowHTTP: true}, {}} {
			for _, scheme := range []string{"http", "https"} {
				o := send(t, c, scheme+"://"+host+r.port()+"/hook")
				if o.Delivered || o.Status != 0 || o.Error == "" || strings.Contains(o.Error, "127") {
					t.Errorf("%s %s: %+v", scheme, host, o)
				}
			}
		}
	}
	if r.count() != 1 {
		t.Errorf("%d were received", r.count()-1)
	}
}

// TestTheAddressCountsAndNotTheName: a name can have another address by the time that a connection is made.
func TestTheAddressCountsAndNotTheName(t *testing.T) {
	t.Parallel()
	inside, outside := netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.0.0.2")
	r := newReceiver(t, nil)
	other, err := net.Listen("tcp4", outside.String()+r.port())
	if err != nil {
		t.Skipf("no second address on this machine: %v", err)
	}
	public := &receiver{Server: &httptest.Server{Listener: other, Config: &http.Server{}}}
	public.Config.Handler = public.handler(nil)
	public.Start()
	t.Cleanup(public.Close)

	c := notify.Config{AllowHTTP: true, Allow: []netip.Prefix{netip.PrefixFrom(outside, 32)}}
	for name, answers := range map[string]func(n int) []netip.Addr{
		"rebinding": func(n int) []netip.Addr {
			if n%2 == 1 {
				return []netip.Addr{outside}
			}
			return []netip.Addr{inside}
		},
		"both": func(int) []netip.Addr { return []netip.Addr{inside, outside} },
	} {
		c.Resolver = resolver(t, answers)
		for range 4 {
			o := send(t, c, "http://receiver.example"+r.port()+"/hook")
			if !o.Delivered && o.Error != "the host has no address that notifications are sent to" {
				t.Errorf("%s: %+v", name, o)
			}
		}
	}
	if r.count() != 0 || public.count() != 2+4 {
		t.Errorf("%d went inside, %d outside", r.count(), public.count())
	}
}

// TestNamesOfInsideSoundLikeNone: the error does not tell which names are known inside.
func TestNamesOfInsideSoundLikeNone(t *testing.T) {
	t.Parallel()
	known := notify.Config{Resolver: resolver(t, func(int) []netip.Addr { return []netip.Addr{netip.MustParseAddr("10.0.0.7")} })}
	unknown := notify.Config{Resolver: resolver(t, func(int) []netip.Addr { return nil })}
	a, b := send(t, known, "https://db.example/"), send(t, unknown, "https://db.example/")
	if a.Error != b.Error || a.Error == "" {
		t.Errorf("%q and %q", a.Error, b.Error)
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	for _, status := range []int{301, 302, 303, 307, 308} {
		target := newReceiver(t, nil)
		for _, to := range []string{"http://169.254.169.254/latest/meta-data/", target.URL} {
			r := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", to)
				w.WriteHeader(status)
			})
			if o := send(t, local(), r.URL); o.Delivered || o.Status != status || o.Error == "" || r.count() != 1 {
				t.Errorf("%d to %s: %+v", status, to, o)
			}
		}
		if target.count() != 0 {
			t.Errorf("%d was followed", status)
		}
	}
}

func TestNoProxyIsUsed(t *testing.T) {
	proxy, r := newReceiver(t, nil), newReceiver(t, nil)
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"} {
		t.Setenv(name, proxy.URL)
	}
	c := local()
	c.Resolver = resolver(t, func(int) []netip.Addr { return onThisMachineAddr })
	if o := send(t, c, "http://receiver.example"+r.port()); !o.Delivered || proxy.count() != 0 || r.count() != 1 {
		t.Errorf("%+v; %d by the proxy", o, proxy.count())
	}
}

var onThisMachineAddr = []netip.Addr{netip.MustParseAddr("127.0.0.1")}
