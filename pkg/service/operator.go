package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/user"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/spf13/cobra"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/config"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/postgres"
	"hub.internal/pkg/schema"
	"hub.internal/pkg/text"
)

// Exit codes of a program with commands for operators.
const (
	ExitOK = iota
	// ExitFailed tells that what was asked for did not work.
	ExitFailed
	// ExitUsage tells that it was asked for wrongly.
	ExitUsage
)

// commandTimeout bounds a command: a store that hangs must not hang the terminal.
const commandTimeout = 30 * time.Second

// Runner is what a command does.
type Runner = func(*cobra.Command, []string) error

// Operated is the command line with commands for operators, of which Execute tells a wrong call from one that failed.
func (p Program[S]) Operated(environ []string, commands ...*cobra.Command) *cobra.Command {
	c := p.Command(environ)
	for _, sub := range c.Commands() {
		sub.RunE = Ran(sub.RunE)
	}
	c.AddCommand(commands...)
	return c
}

// Execute runs a command line, prints its error in one line and returns its exit code.
func Execute(c *cobra.Command) int {
	err := c.ExecuteContext(context.Background())
	if err == nil {
		return ExitOK
	}
	var ran *failed
	message := err.Error()
	code := ExitUsage
	if errors.As(err, &ran) {
		message = explain(ran.error)
		if !fault.Is(err, fault.Validation) {
			code = ExitFailed
		}
	} else {
		message += "; `" + c.Name() + " --help` says more"
	}
	fmt.Fprintln(c.ErrOrStderr(), c.Name()+": "+text.OneLine(message))
	return code
}

// failed is the error of a command that did run, in contrast to one that was typed wrongly.
type failed struct{ error }

func (f *failed) Unwrap() error { return f.error }

// Ran marks the errors of do as those of a command that did run.
func Ran(do Runner) Runner {
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

// Operator is what a group of commands knows of who uses it.
type Operator struct {
	// Environ has the form of os.Environ.
	Environ []string
	// Actor is who does it, for the audit log; empty for the operating system's user.
	Actor string
	// JSON asks for JSON.
	JSON bool

	program string
}

// OperatorGroup is a group of commands of a program; environment tells what they read of it.
func OperatorGroup(program string, environ []string, name, short, environment string) (*Operator, *cobra.Command) {
	o := &Operator{Environ: environ, program: program}
	cmd := &cobra.Command{Use: name, Short: short, Long: short + ".\n\n" + environment,
		// Without these two, cobra answers an unknown command with the help and no error.
		Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.PersistentFlags().StringVar(&o.Actor, "actor", "", "who does this, for the audit log (default: the operating system's user)")
	cmd.PersistentFlags().BoolVar(&o.JSON, "json", false, "print JSON")
	return o, cmd
}

// Need marks flags of a command as required. It panics for a flag that the command does not declare: that is a defect of the
// program.
func Need(cmd *cobra.Command, flags ...string) {
	for _, name := range flags {
		if err := cmd.MarkFlagRequired(name); err != nil {
			panic(err)
		}
	}
}

// Print writes a record to the command's output, as indented JSON where --json asks for that, and otherwise as the line for people
// that format and args make.
func (o *Operator) Print(cmd *cobra.Command, record any, format string, args ...any) error {
	if !o.JSON {
		_, err := fmt.Fprintf(cmd.OutOrStdout(), format, args...)
		return err
	}
	e := json.NewEncoder(cmd.OutOrStdout())
	e.SetIndent("", "  ")
	return e.Encode(record)
}

// PrintList writes a list to the command's output: as JSON, an object whose one member name holds what record returns of each
// entry, or as a table with the columns of head, separated by tabs, and a row of the cells that row returns of each.
func PrintList[T, R any](o *Operator, cmd *cobra.Command, name string, all []T, record func(T) R, head string, row func(T) []string) error {
	if o.JSON {
		records := make([]R, len(all))
		for i, one := range all {
			records[i] = record(one)
		}
		return o.Print(cmd, map[string]any{name: records}, "")
	}
	w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, head)
	for _, one := range all {
		fmt.Fprintln(w, strings.Join(row(one), "\t"))
	}
	return w.Flush()
}

// OnStore is a command on the write store, as the service's role: it reads the settings S, acts as the actor within 30
// seconds, and closes the store.
func OnStore[S any](o *Operator, do func(context.Context, *cobra.Command, S, *postgres.Pool, []string) error) Runner {
	return Ran(func(cmd *cobra.Command, args []string) error {
		ctx, cancel := context.WithTimeout(cmd.Context(), commandTimeout)
		defer cancel()
		ctx, err := o.as(ctx)
		if err != nil {
			return err
		}
		s, err := config.Load[S](o.Environ)
		if err != nil {
			return err
		}
		store, err := config.Load[struct {
			URL config.Secret `env:"HUB_WRITE_STORE_URL,required,notEmpty"`
		}](o.Environ)
		if err != nil {
			return err
		}
		pool, err := postgres.Open(postgres.Config{URL: store.URL.Reveal()})
		if err != nil {
			return err
		}
		defer pool.Close()
		return do(ctx, cmd, s, pool, args)
	})
}

// as puts the actor into the context.
func (o *Operator) as(ctx context.Context) (context.Context, error) {
	if o.Actor == "" {
		u, err := user.Current()
		if err != nil {
			return nil, errors.New("the operating system does not say who you are; use --actor")
		}
		o.Actor = u.Username
	}
	who := caller.Caller{Kind: caller.User, Service: o.program + "-cli", ExternalUserID: o.Actor, RequestID: "req_" + ulid.Make().String()}
	return caller.With(ctx, who), nil
}
