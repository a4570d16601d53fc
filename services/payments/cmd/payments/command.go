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
	"hub.internal/pkg/config"
	"hub.internal/pkg/fault"
	pgstore "hub.internal/pkg/postgres"
	"hub.internal/pkg/schema"
	"hub.internal/services/payments/postgres"
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
	c.AddCommand(credentialCommand(environ), keyringCommand(environ))
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
		message += "; `payments --help` says more"
	}
	fmt.Fprintln(c.ErrOrStderr(), "payments: "+oneLine(message))
	return code
}

// failed is the error of a command that did run, in contrast to one that was typed wrongly.
type failed struct{ error }

func (f *failed) Unwrap() error { return f.error }

// runner is what a command does.
type runner = func(*cobra.Command, []string) error

func run(do runner) runner {
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

// group is a group of commands; environment tells what they read of it.
func group(environ []string, name, short, environment string) (*commands, *cobra.Command) {
	c := &commands{environ: environ}
	cmd := &cobra.Command{Use: name, Short: short, Long: short + ".\n\n" + environment,
		// Without these two, cobra answers an unknown command with the help and no error.
		Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.PersistentFlags().StringVar(&c.actor, "actor", "", "who does this, for the audit log (default: the operating system's user)")
	cmd.PersistentFlags().BoolVar(&c.json, "json", false, "print JSON")
	return c, cmd
}

type commandSettings struct {
	WriteStoreURL config.Secret `env:"HUB_WRITE_STORE_URL,required,notEmpty"`
	SecretsKeyset config.Secret `env:"HUB_SECRETS_KEYSET"`
}

// onStore opens the store, acts as the actor, and closes the store.
func (c *commands) onStore(do func(context.Context, *cobra.Command, commandSettings, *postgres.Store, []string) error) runner {
	return run(func(cmd *cobra.Command, args []string) error {
		ctx, cancel := context.WithTimeout(cmd.Context(), commandTimeout)
		defer cancel()
		ctx, err := c.as(ctx)
		if err != nil {
			return err
		}
		s, err := config.Load[commandSettings](c.environ)
		if err != nil {
			return err
		}
		pool, err := pgstore.Open(pgstore.Config{URL: s.WriteStoreURL.Reveal()})
		if err != nil {
			return err
		}
		defer pool.Close()
		return do(ctx, cmd, s, postgres.New(pool), args)
	})
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
	who := caller.Caller{Kind: caller.User, Service: "payments-cli", ExternalUserID: c.actor, RequestID: "req_" + id.String()}
	return caller.With(ctx, who), nil
}
