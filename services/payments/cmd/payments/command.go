package main

import (
	"context"

	"github.com/spf13/cobra"

	"hub.internal/pkg/config"
	pgstore "hub.internal/pkg/postgres"
	"hub.internal/pkg/service"
	"hub.internal/services/payments/postgres"
)

// root is the command line; environ is its environment.
func root(environ []string) *cobra.Command {
	return program.Operated(environ, credentialCommand(environ), keyringCommand(environ))
}

// commands is what the commands of a group have in common.
type commands struct{ *service.Operator }

func group(environ []string, name, short, environment string) (*commands, *cobra.Command) {
	o, cmd := service.OperatorGroup("payments", environ, name, short, environment)
	return &commands{o}, cmd
}

type commandSettings struct {
	SecretsKeyset config.Secret `env:"HUB_SECRETS_KEYSET"`
}

// onStore is a command on payments' store.
func (c *commands) onStore(do func(context.Context, *cobra.Command, commandSettings, *postgres.Store, []string) error) service.Runner {
	return service.OnStore(c.Operator, func(ctx context.Context, cmd *cobra.Command, s commandSettings, pool *pgstore.Pool,
		args []string) error {
		return do(ctx, cmd, s, postgres.New(pool), args)
	})
}
