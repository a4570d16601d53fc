// Command auth is the service that owns API keys, and the commands to manage them.
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"time"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/config"
	"hub.internal/pkg/process"
	"hub.internal/services/auth"
	"hub.internal/services/auth/postgres"
)

func main() { os.Exit(execute(root(os.Environ()))) }

type settings struct {
	process.Settings
	WriteStoreURL  config.Secret `env:"HUB_WRITE_STORE_URL,required,notEmpty"`
	Pepper         config.Secret `env:"HUB_KEY_PEPPER,required,notEmpty"`
	PepperPrevious config.Secret `env:"HUB_KEY_PEPPER_PREVIOUS"`
}

func serve(ctx context.Context, environ []string) error {
	s, err := config.Load[settings](environ)
	if err != nil {
		return err
	}
	peppers, err := auth.NewPeppers(s.Pepper.Reveal(), s.PepperPrevious.Reveal())
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	keys, err := caller.NewKeys(s.Secrets(), time.Now)
	if err != nil {
		return fmt.Errorf("configuration: HUB_INTERNAL_KEYS: %w", err)
	}
	store, err := postgres.Open(s.WriteStoreURL.Reveal())
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	p, err := process.Start(ctx, "auth", s.Settings, s)
	if err != nil {
		return err
	}
	p.OnStop("write store", func(context.Context) error { store.Close(); return nil })
	p.Ready("write store", store.Ready)
	service := auth.New(auth.Config{Store: store, Peppers: peppers, Now: time.Now, Logger: p.Logger})
	mux := http.NewServeMux()
	p.Health(mux)
	p.Operations(mux)
	auth.Mount(mux, service, keys, p.Logger)
	addr, err := p.Serve("internal", s.Addr, mux)
	if err != nil {
		return err
	}
	if err := p.Announce("auth", addr); err != nil {
		return err
	}
	p.Go(p.Background(), "peppers", service.CheckPeppers)
	return p.Run(ctx)
}
