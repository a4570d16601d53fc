package main

import (
	"github.com/spf13/cobra"

	"hub.internal/pkg/config"
	"hub.internal/pkg/service"
)

// root is the command line; environ is its environment.
func root(environ []string) *cobra.Command {
	return program.Operated(environ, credentialCommand(environ), keyringCommand(environ))
}

// commands is what the commands of a group have in common.
type commands struct{ *service.Operator }

// group is a command with sub-commands of operators, whose changes are recorded under --actor.
func group(environ []string, name, short, environment string) (*commands, *cobra.Command) {
	o, cmd := service.OperatorGroup("payments", environ, name, short, environment)
	return &commands{o}, cmd
}

// commandSettings are those that the commands read beside the store's URL.
type commandSettings struct {
	SecretsKeyset config.Secret `env:"HUB_SECRETS_KEYSET"`
}
