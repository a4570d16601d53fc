// Command echo is the receiver of notifications in the local stack: it takes what Hub tells a Connected App, verifies
// the signature as Standard Webhooks says, and shows it on a page and as JSON. Browsers that come back from a payment
// arrive there, too. It keeps the newest 200 in memory, and listens on this machine alone.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

func main() {
	if err := command().Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "echo: "+err.Error())
		os.Exit(1)
	}
}

// command is the program's command line.
func command() *cobra.Command {
	var addr, secretFile string
	c := &cobra.Command{
		Use: "echo", Short: "Take notifications, verify their signature, and show them", Args: cobra.NoArgs,
		SilenceErrors: true, SilenceUsage: true,
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

// stopLimit bounds the end of what is being taken or shown.
const stopLimit = 5 * time.Second

// run serves until ctx ends or a signal comes. It refuses an address that other machines reach: what arrives is
// shown to all who ask.
func run(ctx context.Context, out io.Writer, addr string, secret func() string) error {
	host, _, err := net.SplitHostPort(addr)
	if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsLoopback() {
		return fmt.Errorf("%q is not an address of this machine alone, such as 127.0.0.1:8091", addr)
	}
	ctx, restore := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer restore()
	logger := slog.New(slog.NewTextHandler(out, nil))
	pages, err := newPages(&inbox{secret: secret, now: time.Now}, logger)
	if err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: pages, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 15 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	logger.Info("taking notifications", "url", "http://"+listener.Addr().String())
	select {
	case err = <-failed:
	case <-ctx.Done():
		err = nil
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopLimit)
	defer cancel()
	return errors.Join(err, server.Shutdown(ending))
}
