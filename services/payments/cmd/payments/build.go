package main

import (
	"fmt"
	"time"

	"hub.internal/pkg/config"
	"hub.internal/pkg/seal"
	"hub.internal/pkg/service"
	"hub.internal/services/payments/console"
	"hub.internal/services/payments/credentials"
	"hub.internal/services/payments/postgres"
)

type settings struct {
	service.Settings
	// SecretsKeyset seals what providers know Hub by; without one none can be added or used.
	SecretsKeyset config.Secret `env:"HUB_SECRETS_KEYSET"`
}

// sealerOf seals with a keyset; without one nothing is sealed.
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

func build(h *service.Host, s settings) error {
	sealer, err := sealerOf(s.SecretsKeyset)
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	store := postgres.New(h.Store())
	safe := credentials.New(credentials.Config{Store: store, Sealer: sealer, Now: time.Now})
	pages, err := console.New(console.Config{Credentials: safe, Trusted: h.Keys(), Logger: h.Logger()})
	if err != nil {
		return err
	}
	h.Ready("write store", store.Ready)
	h.Tools(credentials.Tools(safe)...)
	h.Pages(pages)
	return nil
}
