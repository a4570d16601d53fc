// Command auth is the service that owns API keys, Connected Apps and the console's users, and the commands to manage them.
package main

import (
	"fmt"
	"os"
	"slices"
	"time"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/config"
	"hub.internal/pkg/rpc"
	"hub.internal/pkg/seal"
	"hub.internal/pkg/service"
	"hub.internal/pkg/tool"
	"hub.internal/services/auth"
	"hub.internal/services/auth/apps"
	"hub.internal/services/auth/console"
	"hub.internal/services/auth/console/connect"
	"hub.internal/services/auth/links"
	"hub.internal/services/auth/oidc"
	"hub.internal/services/auth/postgres"
	"hub.internal/services/auth/servicejwt"
)

// program is what `auth serve`, `auth migrate` and the other commands of each service are made of.
var program = service.Program[settings]{Name: "auth",
	Short:   "The service that owns API keys, Connected Apps and the console's users, and the commands to manage them",
	Migrate: postgres.Migrate, Manifest: manifest, Build: build}

// manifest is what the service tells the gateway; it opens nothing.
// The services in it are empty: a manifest has what is declared, and calls nothing.
func manifest() tool.Manifest {
	pages := slices.Concat(console.Routes(), connect.Routes())
	asked := append(operations(nil, nil, nil, nil), console.Operations(nil)...)
	return rpc.Manifest("auth", auth.Tools(apps.New(apps.Config{})), asked, pages...).WithRoutes(auth.Routes(nil)...)
}

// operations are what neighbours can ask for.
// Build mounts them with services; manifest names them with none.
func operations(s *auth.Service, p *auth.People, a *apps.Service, t *servicejwt.Verifier) []rpc.Operation {
	return slices.Concat(auth.Operations(s, p), apps.Operations(a), servicejwt.Operations(t))
}

func main() { os.Exit(service.Execute(root(os.Environ()))) }

// settings is the environment of auth serve.
// A secret is a config.Secret, which prints itself masked.
type settings struct {
	service.Settings
	// Pepper hashes new keys (HMAC-SHA256). PepperPrevious is tried as well, while keys that it has hashed are being replaced.
	Pepper         config.Secret `env:"HUB_KEY_PEPPER,required,notEmpty"`
	PepperPrevious config.Secret `env:"HUB_KEY_PEPPER_PREVIOUS"`
	// SecretsKeyset seals the secrets of apps and the tickets of links; without one neither can be issued.
	SecretsKeyset config.Secret `env:"HUB_SECRETS_KEYSET"`
	// Audience is what tokens of apps have to name.
	Audience string `env:"HUB_JWT_AUDIENCE" envDefault:"hub"`
	// RedisURL is where gateways are told of keys that were changed in the console.
	RedisURL config.Secret `env:"HUB_REDIS_URL"`
	// PublicURL is where browsers reach the gateway; OIDC needs it, and links to pages name it.
	PublicURL string `env:"HUB_PUBLIC_URL"`
	// OIDCIssuer is empty without a log-in provider; the settings after it count only with one.
	OIDCIssuer       string        `env:"HUB_OIDC_ISSUER"`
	OIDCClientID     string        `env:"HUB_OIDC_CLIENT_ID"`
	OIDCClientSecret config.Secret `env:"HUB_OIDC_CLIENT_SECRET"`
	// OIDCRolesClaim names the claim with a user's groups, which OIDCRoles maps to roles. Without it Hub's administrators give roles.
	OIDCRolesClaim string            `env:"HUB_OIDC_ROLES_CLAIM"`
	OIDCRoles      map[string]string `env:"HUB_OIDC_ROLES"`
}

// singleSignOn is the log-in provider, where one is configured.
// nil is no provider. Nothing is asked of one when the process starts, but the doctor looks whether it answers.
func (s settings) singleSignOn(h *service.Host) (auth.SingleSignOn, error) {
	if s.OIDCIssuer == "" {
		return nil, nil
	}
	provider, err := oidc.New(oidc.Config{Issuer: s.OIDCIssuer, ClientID: s.OIDCClientID, ClientSecret: s.OIDCClientSecret.Reveal(),
		PublicURL: s.PublicURL, RolesClaim: s.OIDCRolesClaim, Roles: s.OIDCRoles})
	if err != nil {
		return nil, err
	}
	h.Check("log-in provider", "HUB_OIDC_ISSUER", provider.Reach)
	return provider, nil
}

// sealerOf seals with a keyset; without one nothing is sealed.
// What needs a seal is refused then; all else works. The commands use it as well.
func sealerOf(keyset config.Secret) (links.Sealer, error) {
	if keyset.Reveal() == "" {
		return nil, nil
	}
	box, err := seal.Open(keyset.Reveal())
	if err != nil {
		return nil, fmt.Errorf("HUB_SECRETS_KEYSET: %w; `auth keyset new` makes one", err)
	}
	return box, nil
}

// parts is what the settings make, before anything is opened.
// A sealer or a provider that is nil is one that is not configured.
type parts struct {
	peppers  auth.Peppers
	notices  notices
	sealer   links.Sealer
	provider auth.SingleSignOn
}

// parts makes what the settings describe. Its error names the setting that is wrong.
// They are made in the order of the settings above, and the first that is wrong is told.
func (s settings) parts(h *service.Host) (p parts, err error) {
	if p.peppers, err = auth.NewPeppers(s.Pepper.Reveal(), s.PepperPrevious.Reveal()); err == nil {
		p.sealer, err = sealerOf(s.SecretsKeyset)
	}
	if err == nil {
		p.provider, err = s.singleSignOn(h)
	}
	if err == nil {
		p.notices, err = noticesOf(h, s.RedisURL.Reveal())
	}
	if err != nil {
		return p, fmt.Errorf("configuration: %w", err)
	}
	return p, nil
}

// pages serves those of the console, and those on which users link their account.
// c holds the services; what is the same for each process is filled in here.
func (s settings) pages(h *service.Host, c console.Config, linked *links.Service) error {
	c.PublicURL, c.RolesFromProvider = s.PublicURL, c.SingleSignOn != nil && s.OIDCRolesClaim != ""
	c.Trusted, c.Now, c.Logger = h.Keys(), time.Now, h.Logger()
	own, err := console.New(c)
	if err != nil {
		return err
	}
	consent, err := connect.New(connect.Config{Links: linked, PublicURL: s.PublicURL, Trusted: h.Keys(), Logger: h.Logger()})
	if err != nil {
		return err
	}
	h.Pages(own)
	h.Operations(console.Operations(own)...)
	h.Pages(consent)
	return nil
}

// build puts the rooms together. What it makes is passed on and kept nowhere else: each process has one of each. Nothing has been asked
// of the store when it returns: Host does so, for readiness and for the proofs.
func build(h *service.Host, s settings) error {
	p, err := s.parts(h)
	if err != nil {
		return err
	}
	store := postgres.New(h.Store())
	refused := audit.NewTally(h.Audit(), "session.refused")
	people, err := auth.NewPeople(auth.PeopleConfig{Store: store, Refused: refused, Now: time.Now, Logger: h.Logger()})
	if err != nil {
		return err
	}
	svc := auth.New(auth.Config{Store: store, Peppers: p.peppers, Notices: p.notices, Now: time.Now, Logger: h.Logger()})
	connected := apps.New(apps.Config{Store: store, Sealer: p.sealer, Now: time.Now})
	linked := links.New(links.Config{Store: store, Sealer: p.sealer, PublicURL: s.PublicURL, Now: time.Now, Logger: h.Logger()})
	tokens, err := servicejwt.New(servicejwt.Config{Store: store, Sealer: p.sealer, Links: linked, Audience: s.Audience,
		Now: time.Now, Logger: h.Logger()})
	if err != nil {
		return err
	}
	if err := s.pages(h, console.Config{People: people, Service: svc, Apps: connected, SingleSignOn: p.provider}, linked); err != nil {
		return err
	}
	h.Ready("write store", store.Ready)
	// A wrong pepper or keyset would refuse every key or every app, one call at a time. The proofs stop the rollout instead.
	h.Prove("API keys", "HUB_KEY_PEPPER", pepperProof(svc))
	h.Prove("secrets of apps", "HUB_SECRETS_KEYSET", keysetProof(connected))
	h.Check("page for links", "HUB_PUBLIC_URL", linkPage(connected, s.PublicURL))
	h.Tools(auth.Tools(connected)...)
	h.Routes(auth.Routes(linked)...)
	h.Operations(operations(svc, people, connected, tokens)...)
	// Every replica runs these; what one has deleted the others do not find.
	h.Go("old sessions", people.Reap)
	h.Go("old links", linked.Reap)
	h.Go("used tokens", tokens.Sweep)
	h.Go("refused log-ins", refused.Run)
	return nil
}
