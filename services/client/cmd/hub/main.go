// Command hub is the client of a gateway for people and scripts: it lists the tools, explains them and calls them.
// The parts: hub.go has the root command and what all commands share; each command is in a file of its name;
// terminal.go is the only place that knows the operating system's terminal; exit.go turns errors into exit codes and
// hints. Commands return errors and never print them or end the process: run does, once.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// grace is how long a command that was interrupted may still take to leave the terminal as it was.
const grace = 300 * time.Millisecond

// main runs the command in a goroutine of its own, because a read of a terminal cannot be interrupted: a signal ends the program even
// while the command reads.
func main() {
	// The context is cancelled by hand and not by signal.NotifyContext, because the signal itself decides on the exit
	// code.
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	done := make(chan int, 1)
	go func() { done <- run(ctx, os.Args[1:], standardTerminal()) }() // it ends with the program
	var code int
	select {
	case code = <-done:
		cancel()
	case s := <-signals:
		cancel()
		code = interrupted(s, done)
	}
	// Deferred functions do not run from here on: whatever has to be left in order, the command has done.
	os.Exit(code)
}

// interrupted waits for the end of a command a moment, and no longer: it may be reading what nobody will write.
// 130 is SIGINT's code and 143 SIGTERM's, as shells and supervisors read them.
func interrupted(s os.Signal, done <-chan int) int {
	// A second signal is not waited for: the time is short anyway.
	code := exitInterrupted
	if s == syscall.SIGTERM {
		code = exitTerminated
	}
	select {
	case ended := <-done:
		if ended != exitInterrupted {
			return ended // it was done before it heard of the signal, or ends like this, as mcp does
		}
	case <-time.After(grace):
	}
	return code
}

// run runs a command line, prints its error and returns its exit code.
func run(ctx context.Context, args []string, t terminal) int {
	h := &hub{terminal: t}
	c := command(h)
	c.SetArgs(args)
	return h.report(c.ExecuteContext(ctx))
}
