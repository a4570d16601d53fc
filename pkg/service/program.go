package service

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"hub.internal/pkg/config"
	"hub.internal/pkg/tool"
)

// Program is a service's command line: serve, migrate and manifest, and what it adds to them. S are
// its settings, a struct that embeds Settings; a method Check() error judges what their types do
// not.
type Program[S common] struct {
	// Name is the discovery name, Short a line about the service.
	Name, Short string
	// Migrate brings the service's tables up to date as the owner role.
	Migrate func(ctx context.Context, ownerURL string) error
	// Manifest is what manifest prints, with the defaults of all settings; nil for a program that owns
	// neither tools nor pages.
	Manifest func() tool.Manifest
	// Build makes the service's parts of its settings and hands them to the host.
	Build func(*Host, S) error
	// Connections bounds those to the write store; nil means 10.
	Connections func(S) int
	// GCPercent is the garbage collector's target unless GOGC is set; 0 leaves Go's own.
	GCPercent int
	// Commands are the service's own, beside the three.
	Commands func(environ []string) []*cobra.Command
}

// Main runs the command line and returns the exit code: 0, or 1 after one line that
// names the thing to mend.
func (p Program[S]) Main() int {
	if err := p.Command(os.Environ()).ExecuteContext(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, p.Name+": "+strings.Join(strings.Fields(err.Error()), " "))
		return 1
	}
	return 0
}

// Command returns the command line; environ has the form of os.Environ.
func (p Program[S]) Command(environ []string) *cobra.Command {
	root := &cobra.Command{Use: p.Name, Short: p.Short, Version: Release(), SilenceErrors: true, SilenceUsage: true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true}}
	root.AddCommand(
		&cobra.Command{Use: "serve", Short: "Run the service until SIGTERM", Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				return p.serve(cmd.Context(), environ)
			}},
		&cobra.Command{Use: "migrate", Short: "Bring the tables up to date, as HUB_MIGRATE_URL says", Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				return p.migrate(cmd.Context(), environ)
			}})
	if p.Manifest != nil {
		root.AddCommand(&cobra.Command{Use: "manifest", Short: "Print what the service owns, as JSON", Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				e := json.NewEncoder(cmd.OutOrStdout())
				e.SetIndent("", "  ")
				return e.Encode(p.Manifest())
			}})
	}
	if p.Commands != nil {
		root.AddCommand(p.Commands(environ)...)
	}
	return root
}

func (p Program[S]) serve(ctx context.Context, environ []string) error {
	s, err := config.Load[S](environ)
	if err != nil {
		return err
	}
	if c, ok := any(s).(interface{ Check() error }); ok {
		if err := c.Check(); err != nil {
			return fmt.Errorf("configuration: %w", err)
		}
	}
	if p.GCPercent > 0 && !slices.ContainsFunc(environ, func(v string) bool { return strings.HasPrefix(v, "GOGC=") }) {
		debug.SetGCPercent(p.GCPercent)
	}
	connections := 0
	if p.Connections != nil {
		connections = p.Connections(s)
	}
	h, err := newHost(ctx, p.Name, s.settings(), s, connections)
	if err != nil {
		return err
	}
	if err := p.Build(h, s); err != nil {
		return err
	}
	return h.run(ctx)
}

func (p Program[S]) migrate(ctx context.Context, environ []string) error {
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
