package process

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"hub.internal/pkg/config"
)

// Program is the command line that every service has: serve, migrate and manifest.
type Program struct {
	Name, Short string
	// Serve runs the service until SIGTERM; environ has the form of os.Environ.
	Serve func(ctx context.Context, environ []string) error
	// Migrate brings the service's tables up to date as the owner role.
	Migrate func(ctx context.Context, ownerURL string) error
	// Manifest is what manifest prints as JSON; nil for a program that owns no tools.
	Manifest func() any
}

// Command returns the command line; a service may add commands of its own to it.
func (p Program) Command(environ []string) *cobra.Command {
	root := &cobra.Command{Use: p.Name, Short: p.Short, SilenceErrors: true, SilenceUsage: true, CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true}}
	root.AddCommand(
		&cobra.Command{Use: "serve", Short: "Run the service until SIGTERM", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
			return p.Serve(cmd.Context(), environ)
		}},
		&cobra.Command{Use: "migrate", Short: "Bring the tables up to date, as HUB_MIGRATE_URL says", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
			return p.migrate(cmd.Context(), environ)
		}})
	if p.Manifest != nil {
		root.AddCommand(&cobra.Command{Use: "manifest", Short: "Print the tools that the service owns, as JSON", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
			e := json.NewEncoder(cmd.OutOrStdout())
			e.SetIndent("", "  ")
			return e.Encode(p.Manifest())
		}})
	}
	return root
}

func (p Program) migrate(ctx context.Context, environ []string) error {
	s, err := config.Load[struct {
		URL config.Secret `env:"HUB_MIGRATE_URL,required,notEmpty"`
	}](environ)
	if err != nil {
		return err
	}
	if err := p.Migrate(ctx, s.URL.Reveal()); err != nil {
		return fmt.Errorf("with HUB_MIGRATE_URL: %w", err)
	}
	return nil
}

// Main runs the command line and returns the exit code: 0, or 1 after one line that
// names the thing to mend.
func (p Program) Main() int {
	if err := p.Command(os.Environ()).ExecuteContext(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, p.Name+": "+strings.Join(strings.Fields(err.Error()), " "))
		return 1
	}
	return 0
}
