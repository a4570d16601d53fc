package caller_test

import (
	"slices"
	"testing"

	"hub.internal/pkg/caller"
)

func TestNetwork(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"192.0.2.7": "192.0.2.7", "::ffff:192.0.2.7": "192.0.2.7", "::ffff:c000:207": "192.0.2.7",
		"2001:db8::1": "2001:db8::/64", "2001:db8:0:0:ffff:ffff:ffff:ffff": "2001:db8::/64", "2001:DB8:0:0::2": "2001:db8::/64",
		"2001:db8:0:1::": "2001:db8:0:1::/64",
		"fe80::1%eth0":   "fe80::/64", "::1": "::/64",
		"": "", "somewhere": "somewhere", "192.0.2": "192.0.2",
	} {
		if got := caller.Network(address); got != want {
			t.Errorf("%q is of %q, want %q", address, got, want)
		}
	}
}

func TestNetworks(t *testing.T) {
	t.Parallel()
	for address, want := range map[string][]string{
		"192.0.2.7": {"192.0.2.7", "192.0.2.0/24"}, "::ffff:192.0.2.7": {"192.0.2.7", "192.0.2.0/24"},
		"2001:db8:12:3456::7": {"2001:db8:12:3456::/64", "2001:db8:12:3400::/56", "2001:db8:12::/48"},
		"fe80::1%eth0":        {"fe80::/64", "fe80::/56", "fe80::/48"},
		"":                    {""}, "somewhere": {"somewhere"}, "192.0.2": {"192.0.2"},
	} {
		if got := caller.Networks(address); !slices.Equal(got, want) || caller.Network(address) != want[0] {
			t.Errorf("%q is of %q and %q, want %q", address, got, caller.Network(address), want)
		}
	}
}

func TestParseAddress(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"192.0.2.7": "192.0.2.7", " 192.0.2.7 ": "192.0.2.7", "192.0.2.7:443": "192.0.2.7", "::ffff:192.0.2.7": "192.0.2.7",
		"2001:db8::1": "2001:db8::1", "[2001:db8::1]": "2001:db8::1", "[2001:db8::1]:443": "2001:db8::1",
		"": "", "unknown": "", "_hidden": "", "192.0.2.7, 192.0.2.8": "", "192.0.2.300": "", "192.0.2.7:99999": "", "a:1": "",
	} {
		addr, ok := caller.ParseAddress(text)
		if ok != (want != "") || ok && addr.String() != want {
			t.Errorf("%q: %v, %t", text, addr, ok)
		}
	}
}
