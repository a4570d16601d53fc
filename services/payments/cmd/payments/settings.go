package main

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"hub.internal/pkg/config"
	"hub.internal/pkg/seal"
	"hub.internal/pkg/service"
	"hub.internal/services/payments/credentials"
	"hub.internal/services/payments/nicepay"
	"hub.internal/services/payments/notify"
)

// settings are read from the environment; OPERATING.md tells them.
type settings struct {
	service.Settings
	// SecretsKeyset seals what providers know Hub by and the accounts of refunds (`payments keyring new` makes one).
	SecretsKeyset config.Secret `env:"HUB_SECRETS_KEYSET,required,notEmpty"`
	// PublicURL is where browsers and providers reach the gateway.
	PublicURL string `env:"HUB_PUBLIC_URL,required,notEmpty"`
	// Env is that of new orders: sandbox or production.
	Env credentials.Env `env:"HUB_PAY_ENV" envDefault:"sandbox"`
	// ProviderURL stands in for the provider's hosts, such as a simulator's; in production only a public one.
	ProviderURL string `env:"HUB_PG_BASE_URL"`
	// NotifyAllow are networks that apps may be told in although they are not on the Internet.
	NotifyAllow []netip.Prefix `env:"HUB_NOTIFY_ALLOW_CIDRS"`
	// NotifyHTTP lets apps be told without TLS; not in production.
	NotifyHTTP bool            `env:"HUB_NOTIFY_ALLOW_HTTP"`
	Schedule   notify.Schedule `env:"HUB_NOTIFY_SCHEDULE" envDefault:"0s,5s,5m,30m,2h,5h,10h,14h,20h,24h"`
}

// parts is what the settings make, before anything is opened.
type parts struct {
	sealer   credentials.Sealer
	provider *nicepay.Provider
	notifier *notify.Sender
}

// parts judges the settings that depend on each other and makes what they are for. In production notifications go to
// public addresses over TLS alone, and the provider is no private host.
func (s settings) parts() (p parts, err error) {
	production := s.Env == credentials.Production
	switch {
	case !production && s.Env != credentials.Sandbox:
		err = fmt.Errorf("HUB_PAY_ENV is sandbox or production, not %q", s.Env)
	case production && (s.NotifyHTTP || len(s.NotifyAllow) > 0):
		err = errors.New("HUB_NOTIFY_ALLOW_HTTP and HUB_NOTIFY_ALLOW_CIDRS are not for HUB_PAY_ENV=production")
	}
	if err == nil {
		p.sealer, err = sealerOf(s.SecretsKeyset)
	}
	if err == nil {
		if p.provider, err = nicepay.New(nicepay.Config{BaseURL: s.ProviderURL, Production: production, Now: time.Now}); err != nil {
			err = fmt.Errorf("HUB_PG_BASE_URL: %w", err)
		}
	}
	if err != nil {
		return p, fmt.Errorf("configuration: %w", err)
	}
	p.notifier = notify.New(notify.Config{Allow: s.NotifyAllow, AllowHTTP: s.NotifyHTTP, Schedule: s.Schedule, Now: time.Now})
	return p, nil
}

// sealerOf seals with a keyset; without one nothing is sealed, and nothing opens.
func sealerOf(keyset config.Secret) (credentials.Sealer, error) {
	if keyset.Reveal() == "" {
		return nil, nil
	}
	box, err := seal.Open(keyset.Reveal())
	if err != nil {
		return nil, fmt.Errorf("HUB_SECRETS_KEYSET: %w; `payments keyring new` makes one", err)
	}
	return box, nil
}
