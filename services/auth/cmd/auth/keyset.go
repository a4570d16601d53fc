package main

import (
	"github.com/spf13/cobra"

	"hub.internal/pkg/service/keyset"
)

// keysets is the command group that makes the keyset which seals the secrets of apps.
// It needs no store: a keyset is printed, and whoever operates Hub puts it into HUB_SECRETS_KEYSET.
func keysets(environ []string) *cobra.Command {
	cmd := &cobra.Command{Use: "keyset", Short: "Make the keyset that seals the secrets of apps, and change its key",
		Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(keyset.Commands(environ, "auth keyset")...)
	return cmd
}
