package main

import (
	"context"

	"github.com/spf13/cobra"

	"hub.internal/pkg/config"
	pgstore "hub.internal/pkg/postgres"
	"hub.internal/pkg/service"
	"hub.internal/services/auth/postgres"
)

// root is the command line; environ is its environment.
// Tests give it an environment of their own.
func root(environ []string) *cobra.Command {
	return program.Operated(environ, apikeys(environ), users(environ), connectedApps(environ), accountLinks(environ), keysets(environ))
}

// commands is what the commands of a group have in common.
type commands struct{ *service.Operator }

// group is a group of commands with the flags that all of them have.
func group(environ []string, name, short, environment string) (*commands, *cobra.Command) {
	o, cmd := service.OperatorGroup("auth", environ, name, short, environment)
	return &commands{o}, cmd
}

// commandSettings is what commands read of the environment beside the store: each what it needs.
type commandSettings struct {
	// None is required here: a command that needs one says so itself.
	Pepper         config.Secret `env:"HUB_KEY_PEPPER"`
	PepperPrevious config.Secret `env:"HUB_KEY_PEPPER_PREVIOUS"`
	RedisURL       config.Secret `env:"HUB_REDIS_URL"`
	SecretsKeyset  config.Secret `env:"HUB_SECRETS_KEYSET"`
}

// onStore is a command on auth's store.
func (c *commands) onStore(do func(context.Context, *cobra.Command, commandSettings, *postgres.Store, []string) error) service.Runner {
	return service.OnStore(c.Operator, func(ctx context.Context, cmd *cobra.Command, s commandSettings, pool *pgstore.Pool,
		args []string) error {
		return do(ctx, cmd, s, postgres.New(pool), args)
	})
}
