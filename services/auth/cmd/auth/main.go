// Command auth is the service that owns API keys and the console's users, and the commands to manage them.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"time"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/caller"
	"hub.internal/pkg/config"
	"hub.internal/pkg/process"
	"hub.internal/services/auth"
	"hub.internal/services/auth/oidc"
	"hub.internal/services/auth/postgres"
)

func main() { os.Exit(execute(root(os.Environ()))) }

type settings struct {
	process.Settings
	WriteStoreURL  config.Secret `env:"HUB_WRITE_STORE_URL,required,notEmpty"`
	Pepper         config.Secret `env:"HUB_KEY_PEPPER,required,notEmpty"`
	PepperPrevious config.Secret `env:"HUB_KEY_PEPPER_PREVIOUS"`
	// PublicURL is where browsers reach the gateway; OIDC needs it.
	PublicURL        string            `env:"HUB_PUBLIC_URL"`
	OIDCIssuer       string            `env:"HUB_OIDC_ISSUER"`
	OIDCClientID     string            `env:"HUB_OIDC_CLIENT_ID"`
	OIDCClientSecret config.Secret     `env:"HUB_OIDC_CLIENT_SECRET"`
	OIDCRolesClaim   string            `env:"HUB_OIDC_ROLES_CLAIM"`
	OIDCRoles        map[string]string `env:"HUB_OIDC_ROLES"`
}

// console makes the pages, with single sign-on where it is configured.
func (s settings) console(people *auth.People, keys *caller.Keys, logger *slog.Logger) (*auth.Console, error) {
	if s.OIDCIssuer == "" {
		return auth.NewConsole(people, nil, keys, logger)
	}
	provider, err := oidc.New(oidc.Config{Issuer: s.OIDCIssuer, ClientID: s.OIDCClientID, ClientSecret: s.OIDCClientSecret.Reveal(),
		PublicURL: s.PublicURL, RolesClaim: s.OIDCRolesClaim, Roles: s.OIDCRoles})
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	return auth.NewConsole(people, provider, keys, logger)
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
	store, err := postgres.Open(s.WriteStoreURL.Reveal())
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	p, err := process.Start(ctx, "auth", s.Settings, s)
	if err != nil {
		return err
	}
	p.OnStop("write store", func(context.Context) error { store.Close(); return nil })
	log := store.AuditLog(p.Logger)
	p.OnStop("audit log", log.Close)
	p.Ready("write store", store.Ready)
	refused := audit.NewTally(log, "session.refused")
	people, err := auth.NewPeople(auth.PeopleConfig{Store: store, Refused: refused, Now: time.Now, Logger: p.Logger})
	if err != nil {
		return err
	}
	console, err := s.console(people, p.Keys, p.Logger)
	if err != nil {
		return err
	}
	service := auth.New(auth.Config{Store: store, Peppers: peppers, Now: time.Now, Logger: p.Logger})
	mux := http.NewServeMux()
	p.Health(mux)
	auth.Mount(mux, service, p.Keys, p.Logger)
	auth.MountPeople(mux, people, p.Keys, p.Logger)
	console.Mount(mux)
	addr, err := p.Serve("internal", s.Addr, mux)
	if err != nil {
		return err
	}
	if err := p.Announce("auth", addr); err != nil {
		return err
	}
	background := p.Background()
	p.Go(background, "peppers", service.CheckPeppers)
	p.Go(background, "old sessions", people.Reap)
	p.Go(background, "refused log-ins", refused.Run)
	return p.Run(ctx)
}
