// Command auth is the service that owns API keys and the console's users, and the commands to manage them.
package main

import (
	"fmt"
	"log/slog"
	"os"
	"time"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/caller"
	"hub.internal/pkg/config"
	"hub.internal/pkg/hop"
	"hub.internal/pkg/service"
	"hub.internal/pkg/tool"
	"hub.internal/services/auth"
	"hub.internal/services/auth/console"
	"hub.internal/services/auth/oidc"
	"hub.internal/services/auth/postgres"
)

var program = service.Program[settings]{Name: "auth",
	Short:   "The service that owns API keys and the console's users, and the commands to manage them",
	Migrate: postgres.Migrate, Manifest: manifest, Build: build}

func manifest() tool.Manifest {
	return hop.Manifest("auth", auth.Tools(nil), auth.Operations(nil, nil), console.Routes()...)
}

func main() { os.Exit(execute(root(os.Environ()))) }

type settings struct {
	service.Settings
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

// pages makes the pages, with single sign-on where it is configured.
func (s settings) pages(people *auth.People, keys *caller.Keys, logger *slog.Logger) (*console.Console, error) {
	if s.OIDCIssuer == "" {
		return console.New(people, nil, keys, logger)
	}
	provider, err := oidc.New(oidc.Config{Issuer: s.OIDCIssuer, ClientID: s.OIDCClientID, ClientSecret: s.OIDCClientSecret.Reveal(),
		PublicURL: s.PublicURL, RolesClaim: s.OIDCRolesClaim, Roles: s.OIDCRoles})
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	return console.New(people, provider, keys, logger)
}

func build(h *service.Host, s settings) error {
	peppers, err := auth.NewPeppers(s.Pepper.Reveal(), s.PepperPrevious.Reveal())
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	store := postgres.New(h.Store())
	refused := audit.NewTally(h.Audit(), "session.refused")
	people, err := auth.NewPeople(auth.PeopleConfig{Store: store, Refused: refused, Now: time.Now, Logger: h.Logger()})
	if err != nil {
		return err
	}
	pages, err := s.pages(people, h.Keys(), h.Logger())
	if err != nil {
		return err
	}
	svc := auth.New(auth.Config{Store: store, Peppers: peppers, Now: time.Now, Logger: h.Logger()})
	h.Ready("write store", store.Ready)
	h.Tools(auth.Tools(svc)...)
	h.Operations(auth.Operations(svc, people)...)
	h.Pages(pages)
	h.Go("peppers", svc.CheckPeppers)
	h.Go("old sessions", people.Reap)
	h.Go("refused log-ins", refused.Run)
	return nil
}
