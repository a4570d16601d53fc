// Command stack runs the whole suite on this machine without containers: private MariaDB,
// PostgreSQL and Redis servers and Hub's services, each a process of its own, under one
// supervisor. It is what `make up` and its sisters call.
//
// Everything it writes is below .hub/ in the repository: data, logs, secrets and the file
// dev.env for people and tests. It is for development; production runs on Kubernetes
// (k8s/) or Compose.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"hub.internal/pkg/localserver"
)

func main() {
	ctx, restore := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := root().ExecuteContext(ctx)
	restore()
	if err != nil {
		fmt.Fprintln(os.Stderr, "stack:", err)
		os.Exit(1)
	}
}

func root() *cobra.Command {
	c := &cobra.Command{
		Use:           "stack",
		Short:         "Run the whole suite on this machine",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	c.CompletionOptions.DisableDefaultCmd = true
	c.AddCommand(upCommand(), downCommand(), resetCommand(), statusCommand(), logsCommand(), doctorCommand(), installCommand(),
		superviseCommand())
	return c
}

func upCommand() *cobra.Command {
	o := upOptions{}
	c := &cobra.Command{
		Use:   "up",
		Short: "Start everything that does not run yet and wait until it is ready",
		Long: "Start everything that does not run yet and wait until it is ready.\n\n" +
			"HUB_*, OTEL_* and MCP_* variables of the caller reach the services for as long as the stack runs;\n" +
			"services whose settings or programs have changed are restarted.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			l, err := findLayout()
			if err != nil {
				return err
			}
			if o.docker {
				return composeUp(l)
			}
			return up(c.Context(), l, o, newProgress(c.OutOrStdout()))
		},
	}
	f := c.Flags()
	f.StringVar(&o.sourceDSN, "source-dsn", os.Getenv("SOURCE_DSN"),
		"a MySQL of your own instead of the sample: user:password@tcp(host:port)/database (env SOURCE_DSN)")
	f.StringVar(&o.discovery, "discovery", envOr("DISCOVERY", "static"), "how services find one another: static or consul (env DISCOVERY)")
	f.BoolVar(&o.observe, "observe", os.Getenv("OBSERVE") == "1", "a collector, Jaeger and Prometheus beside it (env OBSERVE=1)")
	f.BoolVar(&o.docker, "docker", os.Getenv("DOCKER") == "1", "use Docker Compose instead (env DOCKER=1)")
	return c
}

func downCommand() *cobra.Command {
	return &cobra.Command{
		Use: "down", Short: "Stop everything; data stay", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			l, err := findLayout()
			if err != nil {
				return err
			}
			return down(c.Context(), l, newProgress(c.OutOrStdout()))
		},
	}
}

func resetCommand() *cobra.Command {
	return &cobra.Command{
		Use: "reset", Short: "Stop everything and remove all data, keys and logs", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			l, err := findLayout()
			if err != nil {
				return err
			}
			return reset(c.Context(), l, newProgress(c.OutOrStdout()))
		},
	}
}

func statusCommand() *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "Show what runs", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			l, err := findLayout()
			if err != nil {
				return err
			}
			return printStatus(c.OutOrStdout(), l)
		},
	}
}

func logsCommand() *cobra.Command {
	follow, lines := false, 40
	c := &cobra.Command{
		Use: "logs [name]", Short: "Show the last log lines of a service or server, or of all", Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			l, err := findLayout()
			if err != nil {
				return err
			}
			return logs(l, args, lines, follow)
		},
	}
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on as lines come")
	c.Flags().IntVarP(&lines, "lines", "n", lines, "lines per file")
	return c
}

func installCommand() *cobra.Command {
	browser, images := false, false
	c := &cobra.Command{
		Use: "install", Args: cobra.NoArgs,
		Short: "Install the servers that this machine lacks (apt), with what tests run on beside them, and no more",
		RunE: func(c *cobra.Command, _ []string) error {
			l, err := findLayout()
			if err != nil {
				return err
			}
			var also []string
			if browser {
				also = append(also, localserver.Chromium, localserver.PgBouncer, localserver.DNSServer)
			}
			if images {
				also = append(also, localserver.Buildah)
			}
			p := newProgress(c.OutOrStdout())
			if err := installServers(c.Context(), l, p, also...); err != nil {
				return err
			}
			return fetchBeside(c.Context(), l, p)
		},
	}
	c.Flags().BoolVar(&browser, "browser", false, "and what tests alone need: the browser that they look at pages with, a pooler, DNS")
	c.Flags().BoolVar(&images, "images", false, "and what makes images without a Docker engine")
	return c
}

func superviseCommand() *cobra.Command {
	return &cobra.Command{
		Use: "supervise", Hidden: true, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			l, err := findLayout()
			if err != nil {
				return err
			}
			hangup := make(chan os.Signal, 1)
			signal.Notify(hangup, syscall.SIGHUP)
			defer signal.Stop(hangup)
			return supervise(c.Context(), l, hangup, os.Stderr)
		},
	}
}

// findLayout finds the repository that the working directory is in.
func findLayout() (layout, error) {
	start, err := os.Getwd()
	if err != nil {
		return layout{}, err
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.work")); err == nil {
			return layout{root: dir}, nil
		}
		if dir == filepath.Dir(dir) {
			return layout{}, fmt.Errorf("no go.work in %s or above: run this inside the repository", start)
		}
	}
}

func envOr(name, otherwise string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return otherwise
}
