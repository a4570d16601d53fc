package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"hub.internal/pkg/config"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/tool"
	"hub.internal/services/auth"
	"hub.internal/services/auth/postgres"
)

// Exit codes.
const (
	exitOK = iota
	// exitFailed tells that what was asked for did not work.
	exitFailed
	// exitUsage tells that it was asked for wrongly.
	exitUsage
)

// root is the command line; environ is its environment.
func root(environ []string) *cobra.Command {
	c := &cobra.Command{
		Use: "auth", Short: "The service that owns API keys, and the commands to manage them",
		SilenceErrors: true, SilenceUsage: true, CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	c.AddCommand(
		&cobra.Command{Use: "serve", Short: "Run the service until SIGTERM", Args: cobra.NoArgs, RunE: run(func(cmd *cobra.Command, _ []string) error {
			return serve(cmd.Context(), environ)
		})},
		&cobra.Command{Use: "migrate", Short: "Bring the audit log's and auth's tables up to date, as HUB_MIGRATE_URL says", Args: cobra.NoArgs, RunE: run(func(cmd *cobra.Command, _ []string) error {
			return migrate(cmd.Context(), environ)
		})},
		&cobra.Command{Use: "manifest", Short: "Print the tools that the service owns, as JSON", Args: cobra.NoArgs, RunE: run(func(cmd *cobra.Command, _ []string) error {
			return manifest(cmd.OutOrStdout())
		})},
		apikeys(environ),
	)
	return c
}

// execute runs a command, prints its error in one line and returns its exit code.
func execute(c *cobra.Command) int {
	err := c.ExecuteContext(context.Background())
	if err == nil {
		return exitOK
	}
	var ran *failed
	message := err.Error()
	code := exitUsage
	if errors.As(err, &ran) {
		message = explain(ran.error)
		if !fault.Is(err, fault.Validation) {
			code = exitFailed
		}
	} else {
		message += "; `auth --help` says more"
	}
	fmt.Fprintln(c.ErrOrStderr(), "auth: "+oneLine(message))
	return code
}

// failed is the error of a command that did run, in contrast to one that was typed wrongly.
type failed struct{ error }

func (f *failed) Unwrap() error { return f.error }

func run(do func(*cobra.Command, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if err := do(cmd, args); err != nil {
			return &failed{err}
		}
		return nil
	}
}

// explain says what a person at the terminal can do something about.
func explain(err error) string {
	var f *fault.Error
	switch {
	case !errors.As(err, &f):
		return err.Error()
	case f.Code == fault.DB:
		return "the store that HUB_WRITE_STORE_URL names cannot be used: " + fmt.Sprint(errors.Unwrap(f))
	}
	return f.Message
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

func migrate(ctx context.Context, environ []string) error {
	s, err := config.Load[struct {
		URL config.Secret `env:"HUB_MIGRATE_URL,required,notEmpty"`
	}](environ)
	if err != nil {
		return err
	}
	if err := postgres.Migrate(ctx, s.URL.Reveal()); err != nil {
		return fmt.Errorf("with HUB_MIGRATE_URL: %w", err)
	}
	return nil
}

func manifest(out io.Writer) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(tool.ManifestOf("auth", auth.Tools(nil)))
}
