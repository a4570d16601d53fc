package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os/user"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/spf13/cobra"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/schema"
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
	c := program.Command(environ)
	for _, sub := range c.Commands() {
		sub.RunE = run(sub.RunE)
	}
	c.AddCommand(apikeys(environ), users(environ))
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
	if violations := schema.ViolationsOf(err); len(violations) > 0 {
		lines := make([]string, len(violations))
		for i, v := range violations {
			lines[i] = strings.TrimPrefix(v.Path, "/") + " " + v.Message
		}
		return strings.Join(lines, "; ")
	}
	return f.Message
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// commandTimeout bounds a command: a store that hangs must not hang the terminal.
const commandTimeout = 30 * time.Second

// commands is what the commands of a group have in common.
type commands struct {
	environ []string
	actor   string
	json    bool
}

// as puts the actor into the context.
func (c *commands) as(ctx context.Context) (context.Context, error) {
	if c.actor == "" {
		u, err := user.Current()
		if err != nil {
			return nil, errors.New("the operating system does not say who you are; use --actor")
		}
		c.actor = u.Username
	}
	id, err := ulid.New(ulid.Now(), rand.Reader)
	if err != nil {
		return nil, err
	}
	return caller.With(ctx, caller.Caller{Kind: caller.User, Service: "auth-cli", ExternalUserID: c.actor, RequestID: "req_" + id.String()}), nil
}
