package main

import (
	"net/netip"
	"strings"
	"testing"

	"hub.internal/pkg/config"
	"hub.internal/pkg/seal"
	"hub.internal/services/payments/credentials"
)

// TestWhatProductionRefuses: where money moves, no process starts that would believe a machine of its own network, or send
// to one.
func TestWhatProductionRefuses(t *testing.T) {
	t.Parallel()
	keyset, err := seal.NewKeyset()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*settings)
		says   string
	}{
		"the vendor's hosts":        {func(*settings) {}, ""},
		"a public stand-in":         {func(s *settings) { s.ProviderURL = "https://api.example.com" }, ""},
		"a simulator":               {func(s *settings) { s.ProviderURL = "http://127.0.0.1:8090" }, "HUB_PG_BASE_URL"},
		"a simulator by name":       {func(s *settings) { s.ProviderURL = "https://localhost:8090" }, "HUB_PG_BASE_URL"},
		"a private network":         {func(s *settings) { s.ProviderURL = "https://10.0.0.7" }, "HUB_PG_BASE_URL"},
		"no TLS":                    {func(s *settings) { s.ProviderURL = "http://api.example.com" }, "HUB_PG_BASE_URL"},
		"notifications without TLS": {func(s *settings) { s.NotifyHTTP = true }, "HUB_NOTIFY_ALLOW_HTTP"},
		"notifications within": {func(s *settings) { s.NotifyAllow = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")} },
			"HUB_NOTIFY_ALLOW_CIDRS"},
		"another word": {func(s *settings) { s.Env = "prod" }, "HUB_PAY_ENV"},
	} {
		s := settings{Env: credentials.Production, SecretsKeyset: config.Secret(keyset)}
		c.change(&s)
		p, err := s.parts()
		if err == nil {
			p.provider.Close()
		}
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
