package main

import (
	"context"
	"fmt"

	"hub.internal/pkg/service/keyset"

	"github.com/spf13/cobra"

	"hub.internal/services/payments/credentials"
)

// keyringCommand is the command group that makes the keyset which seals what providers know Hub by.
func keyringCommand(environ []string) *cobra.Command {
	c, cmd := group(environ, "keyring", "Make the keyset that seals what is secret, and seal again with another", `Environment:
  HUB_WRITE_STORE_URL      PostgreSQL, as the role hub_payments (reseal)
  HUB_SECRETS_KEYSET       the keyset of the payments service (add, promote, reseal)

To change the key: set what add prints as HUB_SECRETS_KEYSET in every replica; then what promote prints; then run reseal. Keys that
were there before stay: accounts of refunds are sealed with them.`)
	cmd.AddCommand(keyset.Commands(environ, "payments keyring")...)
	cmd.AddCommand(c.reseal())
	return cmd
}

// reseal is the last step of a change of keys: what older keys have sealed is sealed again with the current one.
func (c *commands) reseal() *cobra.Command {
	cmd := &cobra.Command{Use: "reseal", Short: "Seal all credentials again with the key of HUB_SECRETS_KEYSET that seals", Args: cobra.NoArgs}
	cmd.RunE = c.onCredentials(func(ctx context.Context, s *credentials.Service, _ []string) error {
		n, left, err := s.Rekey(ctx)
		if err != nil {
			return err
		}
		said := fmt.Sprintf("%d credentials are sealed again.", n)
		if left > 0 {
			said += fmt.Sprintf(" %d inactive ones do not open with HUB_SECRETS_KEYSET, and are left as they are.", left)
		}
		_, err = fmt.Fprintln(cmd.OutOrStdout(), said)
		return err
	})
	return cmd
}
