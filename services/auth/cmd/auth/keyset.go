package main

import (
	"fmt"

	"hub.internal/pkg/service"

	"github.com/spf13/cobra"

	"hub.internal/pkg/config"
	"hub.internal/pkg/seal"
)

// keysets is the command group that makes the keyset which seals the secrets of apps.
func keysets(environ []string) *cobra.Command {
	cmd := &cobra.Command{Use: "keyset", Short: "Make the keyset that seals the secrets of apps",
		Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	print := func(cmd *cobra.Command, keyset string, err error) error {
		if err == nil {
			fmt.Fprintln(cmd.OutOrStdout(), keyset)
		}
		return err
	}
	cmd.AddCommand(
		&cobra.Command{Use: "new", Short: "Draw a keyset and print it, for HUB_SECRETS_KEYSET", Args: cobra.NoArgs,
			RunE: service.Ran(func(cmd *cobra.Command, _ []string) error {
				keyset, err := seal.NewKeyset()
				return print(cmd, keyset, err)
			})},
		&cobra.Command{Use: "rotate", Short: "Print HUB_SECRETS_KEYSET with another key that seals from now on; the others still open",
			Args: cobra.NoArgs, RunE: service.Ran(func(cmd *cobra.Command, _ []string) error {
				s, err := config.Load[struct {
					Keyset config.Secret `env:"HUB_SECRETS_KEYSET,required,notEmpty"`
				}](environ)
				if err != nil {
					return err
				}
				keyset, err := seal.Rotated(s.Keyset.Reveal())
				if err != nil {
					return fmt.Errorf("HUB_SECRETS_KEYSET: %w; `auth keyset new` makes one", err)
				}
				return print(cmd, keyset, nil)
			})},
	)
	return cmd
}
