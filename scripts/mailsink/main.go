// Command mailsink is where the mails of the local stack end: it takes every mail, delivers
// none, keeps each as a file, and shows them on a page. It listens on this machine alone.
package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"

	"hub.internal/pkg/localserver"
	"hub.internal/scripts/program"
	"hub.internal/scripts/standin"
)

func main() { program.Main(command()) }

// command is the program's command line.
func command() *cobra.Command {
	var smtpAddr, webAddr, dir string
	c := &cobra.Command{
		Use: "mailsink", Short: "Take mails, keep each as a file, and show them", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return run(c.Context(), c.OutOrStdout(), smtpAddr, webAddr, dir)
		},
	}
	f := c.Flags()
	f.StringVar(&smtpAddr, "smtp", "127.0.0.1:1025", "where to take mails")
	f.StringVar(&webAddr, "web", "127.0.0.1:8025", "where to show them")
	f.StringVar(&dir, "dir", ".hub/mail", "where to keep them")
	return c
}

// stopLimit bounds the end of what is being taken.
const stopLimit = 5 * time.Second

// run takes mails and serves their pages until ctx ends.
func run(ctx context.Context, out io.Writer, smtpAddr, webAddr, dir string) error {
	if err := errors.Join(standin.Loopback(smtpAddr), os.MkdirAll(dir, 0o700)); err != nil {
		return err
	}
	logger := slog.New(slog.NewTextHandler(out, nil))
	handler, err := newPages(dir, logger)
	if err != nil {
		return err
	}
	// The sink stops after the pages, and lets the mails that are being taken end.
	mails, err := localserver.StartSMTP(localserver.SMTPOptions{Addr: smtpAddr, Dir: dir})
	if err != nil {
		return err
	}
	logger.Info("taking mails", "smtp", mails.Addr(), "dir", dir)
	err = standin.Serve(ctx, webAddr, handler, logger)
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopLimit)
	defer cancel()
	return errors.Join(err, mails.Stop(ending))
}
