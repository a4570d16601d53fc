// Command query is the service that answers the query tools from the source database.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/config"
	"hub.internal/pkg/tool"
	"hub.internal/services/query"
)

func main() {
	if err := root(os.Environ()).ExecuteContext(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "query: "+strings.Join(strings.Fields(err.Error()), " "))
		os.Exit(1)
	}
}

// root is the command line; environ is its environment.
func root(environ []string) *cobra.Command {
	c := &cobra.Command{
		Use: "query", Short: "The service that answers the query tools from the source database",
		SilenceErrors: true, SilenceUsage: true, CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	c.AddCommand(
		&cobra.Command{Use: "serve", Short: "Run the service until SIGTERM", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
			return serve(cmd.Context(), environ)
		}},
		&cobra.Command{Use: "migrate", Short: "Bring the audit log's tables up to date, as HUB_MIGRATE_URL says; query has no others", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
			return migrate(cmd.Context(), environ)
		}},
		&cobra.Command{Use: "manifest", Short: "Print the tools that the service owns, as JSON", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
			return manifest(cmd.OutOrStdout())
		}},
	)
	return c
}

func migrate(ctx context.Context, environ []string) error {
	s, err := config.Load[struct {
		URL config.Secret `env:"HUB_MIGRATE_URL,required,notEmpty"`
	}](environ)
	if err != nil {
		return err
	}
	if err := audit.Migrate(ctx, s.URL.Reveal()); err != nil {
		return fmt.Errorf("with HUB_MIGRATE_URL: %w", err)
	}
	return nil
}

// manifest prints the tools with the default limits; it needs no database.
func manifest(out io.Writer) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(tool.ManifestOf(name, query.Tools(query.New(query.Config{}))))
}
