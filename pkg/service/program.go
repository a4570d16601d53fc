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
	"hub.internal/pkg/text"
	"hub.internal/pkg/tool"
)

// Program is a service's command line: serve, migrate, doctor, health and manifest, and what it adds to them. S are
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
	// Commands are the service's own, beside these.
	Commands func(environ []string) []*cobra.Command
}

// Main runs the command line and returns the exit code: 0, or 1 after one line that
// names the thing to mend.
func (p Program[S]) Main() int {
	if err := p.Command(os.Environ()).ExecuteContext(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, p.Name+": "+text.OneLine(err.Error()))
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
			}},
		&cobra.Command{Use: "doctor", Short: "Check the settings against all that they name, a line each", Args: cobra.NoArgs,
			Long: "Check the settings against all that they name, a line each: what is ok, and what is wrong with what to mend. It takes no\n" +
				"calls and changes nothing, so that it may run beside the service. It exits with 1 when something is wrong.",
			RunE: func(cmd *cobra.Command, _ []string) error {
				return p.doctor(cmd.Context(), cmd.OutOrStdout(), environ)
			}},
		healthCommand(environ))
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
	h, err := p.make(ctx, environ, nil)
	if err != nil {
		return err
	}
	if err := h.prove(ctx); err != nil {
		return err
	}
	return h.run(ctx)
}

// make makes the service of its settings; examined, where it is not nil, are the changes for one that is only looked at.
func (p Program[S]) make(ctx context.Context, environ []string, examined func(Settings) Settings) (*Host, error) {
	s, err := loadSettings[S](environ)
	if err != nil {
		return nil, err
	}
	if p.GCPercent > 0 && !slices.ContainsFunc(environ, func(v string) bool { return strings.HasPrefix(v, "GOGC=") }) {
		debug.SetGCPercent(p.GCPercent)
	}
	connections := 0
	if p.Connections != nil {
		connections = p.Connections(s)
	}
	settings := s.settings()
	if examined != nil {
		settings = examined(settings)
	}
	h, err := newHost(ctx, p.Name, settings, s, connections)
	if err != nil {
		return nil, err
	}
	h.process.idle = examined != nil
	return h, p.Build(h, s)
}

// loadSettings loads the settings and judges them.
func loadSettings[S common](environ []string) (S, error) {
	s, err := config.Load[S](environ)
	if err != nil {
		return s, err
	}
	if c, ok := any(s).(interface{ Check() error }); ok {
		if err := c.Check(); err != nil {
			return s, fmt.Errorf("configuration: %w", err)
		}
	}
	return s, nil
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
