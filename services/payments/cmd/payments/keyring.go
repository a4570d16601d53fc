package main

import (
	"context"
	"encoding/json"
	"fmt"

	"hub.internal/pkg/service"

	"github.com/spf13/cobra"

	"hub.internal/pkg/config"
	"hub.internal/pkg/seal"
	"hub.internal/services/payments/credentials"
)

// keyringCommand is the command group that makes the keyset which seals what providers know Hub by.
func keyringCommand(environ []string) *cobra.Command {
	c, cmd := group(environ, "keyring", "Make the keyset that seals what is secret, and seal again with another", `Environment:
  HUB_WRITE_STORE_URL      PostgreSQL, as the role hub_payments (reseal)
  HUB_SECRETS_KEYSET       the keyset of the payments service (rotate, reseal)

To rotate: set what rotate prints as HUB_SECRETS_KEYSET in every replica, then run reseal.`)
	cmd.AddCommand(
		&cobra.Command{Use: "new", Short: "Draw a keyset and print it, for HUB_SECRETS_KEYSET", Args: cobra.NoArgs,
			RunE: service.Ran(func(cmd *cobra.Command, _ []string) error {
				keyset, err := seal.NewKeyset()
				if err == nil {
					fmt.Fprintln(cmd.OutOrStdout(), keyset)
				}
				return err
			})},
		&cobra.Command{Use: "rotate", Short: "Print HUB_SECRETS_KEYSET with another key that seals from now on; the others still open",
			Args: cobra.NoArgs, RunE: service.Ran(func(cmd *cobra.Command, _ []string) error { return rotateKeyring(cmd, environ) })},
		c.reseal(),
	)
	return cmd
}

func rotateKeyring(cmd *cobra.Command, environ []string) error {
	s, err := config.Load[struct {
		Keyset config.Secret `env:"HUB_SECRETS_KEYSET,required,notEmpty"`
	}](environ)
	if err != nil {
		return err
	}
	keyset, err := seal.Rotated(s.Keyset.Reveal())
	if err != nil {
		return fmt.Errorf("HUB_SECRETS_KEYSET: %w; `payments keyring new` makes one", err)
	}
	fmt.Fprintln(cmd.OutOrStdout(), keyset)
	return nil
}

func (c *commands) reseal() *cobra.Command {
	cmd := &cobra.Command{Use: "reseal", Short: "Seal all credentials again with the key of HUB_SECRETS_KEYSET that seals", Args: cobra.NoArgs}
	cmd.RunE = c.onCredentials(func(ctx context.Context, s *credentials.Service, _ []string) error {
		n, err := s.Rekey(ctx)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "%d credentials are sealed again.\n", n)
		return err
	})
	return cmd
}

func printJSON(cmd *cobra.Command, v any) error {
	e := json.NewEncoder(cmd.OutOrStdout())
	e.SetIndent("", "  ")
	return e.Encode(v)
}

func need(cmd *cobra.Command, flags ...string) {
	for _, name := range flags {
		if err := cmd.MarkFlagRequired(name); err != nil {
			panic(err)
		}
	}
}
