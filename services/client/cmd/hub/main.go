// Command hub is the client of a gateway for people and scripts: it lists the tools, explains them and calls them.
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
	os.Exit(code)
}

// interrupted waits for the end of a command a moment, and no longer: it may be reading what nobody will write.
func interrupted(s os.Signal, done <-chan int) int {
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
