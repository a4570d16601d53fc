// Command mailsink is where the mails of the local stack end: it takes every mail, delivers
// none, keeps each as a file, and shows them on a page. It listens on this machine alone.
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
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"hub.internal/pkg/localserver"
)

func main() {
	if err := command().Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "mailsink: "+err.Error())
		os.Exit(1)
	}
}

// command is the program's command line.
func command() *cobra.Command {
	var smtpAddr, webAddr, dir string
	c := &cobra.Command{
		Use: "mailsink", Short: "Take mails, keep each as a file, and show them", Args: cobra.NoArgs, SilenceErrors: true, SilenceUsage: true,
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

// stopLimit bounds the end of what is being taken or shown.
const stopLimit = 5 * time.Second

// run takes mails and serves their pages until ctx ends or a signal comes.
func run(ctx context.Context, out io.Writer, smtpAddr, webAddr, dir string) error {
	for _, addr := range []string{smtpAddr, webAddr} {
		host, _, err := net.SplitHostPort(addr)
		if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsLoopback() {
			return fmt.Errorf("%q is not an address of this machine alone, such as 127.0.0.1:1025", addr)
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	ctx, restore := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer restore()
	logger := slog.New(slog.NewTextHandler(out, nil))
	pages, err := newPages(dir, logger)
	if err != nil {
		return err
	}
	mails, err := localserver.StartSMTP(localserver.SMTPOptions{Addr: smtpAddr, Dir: dir})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", webAddr)
	if err != nil {
		mails.Kill()
		return err
	}
	server := &http.Server{Handler: pages, ReadHeaderTimeout: 5 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	logger.Info("taking mails", "smtp", mails.Addr(), "web", "http://"+listener.Addr().String(), "dir", dir)
	select {
	case err = <-failed:
	case <-ctx.Done():
		err = nil
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopLimit)
	defer cancel()
	return errors.Join(err, mails.Stop(ending), server.Shutdown(ending))
}
