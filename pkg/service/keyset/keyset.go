// Package keyset is what a service that seals secrets of its own has on its command line. It stands apart from pkg/service so that
// a service that seals nothing is built without the library for it.
package keyset

import (
	"fmt"

	"github.com/spf13/cobra"

	"hub.internal/pkg/config"
	"hub.internal/pkg/seal"
	"hub.internal/pkg/service"
)

// Commands make HUB_SECRETS_KEYSET and change its key in two steps, below a command such as "auth keyset": each prints the
// keyset that all replicas are given next. A key that none but some replicas have must not seal: the others could not open it.
func Commands(environ []string, parent string) []*cobra.Command {
	printed := func(use, short string, next func() (string, error)) *cobra.Command {
		return &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs, RunE: service.Ran(func(cmd *cobra.Command, _ []string) error {
			keyset, err := next()
			if err == nil {
				fmt.Fprintln(cmd.OutOrStdout(), keyset)
			}
			return err
		})}
	}
	changed := func(change func(string) (string, error)) func() (string, error) {
		return func() (string, error) {
			s, err := config.Load[struct {
				Keyset config.Secret `env:"HUB_SECRETS_KEYSET,required,notEmpty"`
			}](environ)
			if err != nil {
				return "", err
			}
			keyset, err := change(s.Keyset.Reveal())
			if err != nil {
				return "", fmt.Errorf("HUB_SECRETS_KEYSET: %w (`%s new` makes one)", err, parent)
			}
			return keyset, nil
		}
	}
	return []*cobra.Command{
		printed("new", "Draw a keyset and print it, for HUB_SECRETS_KEYSET", seal.NewKeyset),
		printed("add",
			"Print HUB_SECRETS_KEYSET with another key, which opens; the one before still seals. Give it to every replica, then promote",
			changed(seal.Added)),
		printed("promote", "Print HUB_SECRETS_KEYSET with the key that was added as the one that seals; the others still open",
			changed(seal.Promoted)),
	}
}
