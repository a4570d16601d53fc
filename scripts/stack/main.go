// Command stack runs the whole suite on this machine without containers: private MariaDB,
// PostgreSQL and Redis servers and Hub's services, each a process of its own, under one
// supervisor. It is what `make up` and its sisters call.
//
// Everything it writes is below .hub/ in the repository: data, logs, secrets and the file
// dev.env for people and tests. It is for development; production runs on Kubernetes
// (k8s/) or Compose.
//
// There are two processes of this program. `stack up` is the one that a person waits for:
// it installs and builds what is missing, chooses ports, makes a plan of what is to run,
// seeds keys, users and sample data, and ends (up.go). `stack supervise` lives on in a
// session of its own: it starts what the plan names, starts what ends again, with an
// exponential backoff, and stops everything in order (supervise.go, unit.go).
//
// They speak by files below .hub/state and by signals (control.go):
//
//	plan.json        what is to run; `up` writes it and sends SIGHUP
//	status.json      what runs, restarts and last errors; the supervisor writes it at each change
//	supervisor.lock  held by the supervisor while it lives, with its process id
//	state.json       secrets, ports and issued keys, which stay the same from start to start
//
// A plan has a generation. The supervisor compares it with what runs, by the digest of each
// program and by all its settings, and restarts only what differs. `up` waits until the
// status names its generation as applied, and then for every readiness check.
//
// What a service is told is not decided here but in package localstack, which the benchmark
// and the suite of processes use too; this program adds the caller's own HUB_* variables.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"hub.internal/pkg/localserver"
	"hub.internal/scripts/program"
)

func main() { program.Main(root()) }

// root is the command with all its sub-commands: one for each target of the Makefile that is about the stack.
func root() *cobra.Command {
	c := &cobra.Command{Use: "stack", Short: "Run the whole suite on this machine"}
	c.AddCommand(
		command("up", "Start everything that does not run yet and wait until it is ready",
			func(ctx context.Context, l layout, out io.Writer) error {
				if os.Getenv("DOCKER") == "1" {
					return composeUp(l)
				}
				return up(ctx, l, optionsOf(os.Getenv), progress{out})
			}),
		command("down", "Stop everything; data stay", func(ctx context.Context, l layout, out io.Writer) error {
			return down(ctx, l, progress{out})
		}),
		command("reset", "Stop everything and remove all data, keys and logs", func(ctx context.Context, l layout, out io.Writer) error {
			return reset(ctx, l, progress{out})
		}),
		command("status", "Show what runs", func(_ context.Context, l layout, out io.Writer) error { return printStatus(out, l) }),
		command("doctor", "Check the settings of every service against what they name, a line each", doctor),
		logsCommand(), installCommand(), superviseCommand())
	return c
}

// command is a command without arguments, in the repository that the working directory is in.
func command(name, short string, run func(context.Context, layout, io.Writer) error) *cobra.Command {
	return &cobra.Command{Use: name, Short: short, Args: cobra.NoArgs, RunE: func(c *cobra.Command, _ []string) error {
		root, err := program.Root()
		if err != nil {
			return err
		}
		return run(c.Context(), layout{root}, c.OutOrStdout())
	}}
}

// logsCommand takes the name of one log, or none.
func logsCommand() *cobra.Command {
	var names []string
	c := command("logs [name]", "Show the last log lines of a service or server, or of all",
		func(_ context.Context, l layout, _ io.Writer) error { return logs(l, names) })
	c.Args = cobra.MaximumNArgs(1)
	c.PreRun = func(_ *cobra.Command, args []string) { names = args }
	return c
}

// installCommand is behind make servers and make browser.
func installCommand() *cobra.Command {
	browser, images := false, false
	c := command("install", "Install the servers that this machine lacks (apt), with what tests run on beside them, and no more",
		func(ctx context.Context, l layout, out io.Writer) error {
			var also []string
			if browser {
				also = append(also, localserver.Chromium, localserver.PgBouncer, localserver.DNSServer)
			}
			if images {
				also = append(also, localserver.Buildah)
			}
			p := progress{out}
			if err := installServers(ctx, l, p, also...); err != nil {
				return err
			}
			return fetchBeside(ctx, l, p)
		})
	c.Flags().BoolVar(&browser, "browser", false, "and what tests alone need: the browser that they look at pages with, a pooler, DNS")
	c.Flags().BoolVar(&images, "images", false, "and what makes images without a Docker engine")
	return c
}

// superviseCommand is the supervisor itself, which `up` starts in a session of its own. SIGHUP makes it read its
// plan again.
func superviseCommand() *cobra.Command {
	c := command("supervise", "", func(ctx context.Context, l layout, _ io.Writer) error {
		hangup := make(chan os.Signal, 1)
		signal.Notify(hangup, syscall.SIGHUP)
		defer signal.Stop(hangup)
		return supervise(ctx, l, hangup, os.Stderr)
	})
	c.Hidden = true // `up` starts it
	return c
}
