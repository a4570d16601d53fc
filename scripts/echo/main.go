// Command echo is the receiver of notifications in the local stack: it takes what Hub tells a Connected App, verifies
// the signature as Standard Webhooks says, and shows it on a page and as JSON. Browsers that come back from a payment
// arrive there, too. It keeps the newest 200 in memory, and listens on this machine alone.
package main

import (
	"context"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hub.internal/scripts/program"
	"hub.internal/scripts/standin"
)

func main() { program.Main(command()) }

// command is the program's command line.
func command() *cobra.Command {
	// The secret is in a file: an argument could be read by every user of the machine.
	var addr, secretFile string
	c := &cobra.Command{
		Use: "echo", Short: "Take notifications, verify their signature, and show them", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return run(c.Context(), c.OutOrStdout(), addr, fileSecret(secretFile))
		},
	}
	c.Flags().StringVar(&addr, "addr", "127.0.0.1:8091", "where to listen")
	c.Flags().StringVar(&secretFile, "secret-file", "", "a file with the app's notification secret, whsec_…, which may come later")
	return c
}

// fileSecret reads the secret anew for each notification: it may be issued, or rotated, while the echo runs.
func fileSecret(path string) func() string {
	return func() string {
		if path == "" {
			return ""
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return ""
		}
		return strings.TrimSpace(string(b))
	}
}

// run serves at addr, of this machine alone, until ctx ends: what arrives is shown to all who ask.
func run(ctx context.Context, out io.Writer, addr string, secret func() string) error {
	logger := slog.New(slog.NewTextHandler(out, nil))
	handler, err := newPages(&inbox{secret: secret, now: time.Now}, logger)
	if err != nil {
		return err
	}
	return standin.Serve(ctx, addr, handler, logger)
}
