package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"time"

	"hub.internal/pkg/service"

	"github.com/spf13/cobra"

	"hub.internal/services/auth"
	"hub.internal/services/auth/postgres"
)

// users is the command group that manages the console's users.
// The first administrator is made here: nobody can sign in to the console before.
func users(environ []string) *cobra.Command {
	c, cmd := group(environ, "user", "Manage the users of the console; every change is recorded in the audit log", `Environment:
  HUB_WRITE_STORE_URL      PostgreSQL, as the role hub_auth`)
	cmd.AddCommand(c.addUser(), c.listUsers(), c.passwd(),
		c.onUser("disable EMAIL", "Sign a user out everywhere and keep them out", "is disabled and signed out", (*auth.People).Disable),
		c.onUser("enable EMAIL", "Let a disabled user in again", "may sign in again", (*auth.People).Enable))
	return cmd
}

// asPeople is a command on users.
// Nothing is told to a log: what a command has to say is on the terminal.
func (c *commands) asPeople(do func(context.Context, *auth.People, []string) error) service.Runner {
	return c.onStore(func(ctx context.Context, _ *cobra.Command, _ commandSettings, store *postgres.Store, args []string) error {
		people, err := auth.NewPeople(auth.PeopleConfig{Store: store, Now: time.Now, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			return err
		}
		return do(ctx, people, args)
	})
}

// passwordFlag says where a password comes from: never the command line, which others can read.
type passwordFlag struct{ stdin, none bool }

// register adds the flag to a command.
func (p *passwordFlag) register(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&p.stdin, "password-stdin", false,
		"read the password from the first line of standard input (default: draw one and print it, this once)")
}

// read returns the password, and whether it was drawn and has to be shown.
// At most 4 KiB are read, up to the first line break. The service judges how long a password has to be.
func (p *passwordFlag) read(cmd *cobra.Command) (password string, drawn bool, err error) {
	switch {
	case p.none:
		return "", false, nil
	case !p.stdin:
		return auth.Passphrase(), true, nil
	}
	text, err := bufio.NewReader(io.LimitReader(cmd.InOrStdin(), 4096)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", false, err
	}
	if text = strings.TrimRight(text, "\r\n"); text == "" {
		return "", false, errors.New("standard input holds no password")
	}
	return text, false, nil
}

// addUser adds a user, the first administrator among them.
// With --no-password and without OIDC the user has no way in until they are invited or get a password.
func (c *commands) addUser() *cobra.Command {
	var in auth.NewUser
	var from passwordFlag
	cmd := &cobra.Command{Use: "add EMAIL --name NAME --roles reviewer,admin", Short: "Add a user", Args: cobra.ExactArgs(1)}
	cmd.Flags().StringVar(&in.Name, "name", "", "the user's name")
	cmd.Flags().StringSliceVar(&in.Roles, "roles", nil, "what the user may do: "+strings.Join(auth.Roles(), ", "))
	cmd.Flags().BoolVar(&from.none, "no-password", false, "the user signs in through OIDC alone")
	from.register(cmd)
	cmd.MarkFlagsMutuallyExclusive("no-password", "password-stdin")
	service.Need(cmd, "name")
	cmd.RunE = c.asPeople(func(ctx context.Context, p *auth.People, args []string) error {
		password, drawn, err := from.read(cmd)
		if err != nil {
			return err
		}
		in.Email = args[0]
		u, err := p.Add(ctx, in, password)
		if err != nil {
			return err
		}
		return c.printUser(cmd, u, password, drawn)
	})
	return cmd
}

// passwd gives a user another password: the way back in when the console cannot be entered.
// Invitations and known browsers of the user end, too, and failed log-ins are forgotten.
func (c *commands) passwd() *cobra.Command {
	var from passwordFlag
	cmd := &cobra.Command{Use: "passwd EMAIL", Short: "Give a user another password, and sign them out everywhere", Args: cobra.ExactArgs(1)}
	from.register(cmd)
	cmd.RunE = c.asPeople(func(ctx context.Context, p *auth.People, args []string) error {
		password, drawn, err := from.read(cmd)
		if err != nil {
			return err
		}
		u, err := p.SetPassword(ctx, args[0], password)
		if err != nil {
			return err
		}
		return c.printUser(cmd, u, password, drawn)
	})
	return cmd
}

// listUsers prints all users.
func (c *commands) listUsers() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List all users by address", Args: cobra.NoArgs}
	cmd.RunE = c.asPeople(func(ctx context.Context, p *auth.People, _ []string) error {
		all, err := everyPage(func(after string) ([]auth.User, string, error) { return p.Users(ctx, auth.UserFilter{After: after}) })
		if err != nil {
			return err
		}
		return service.PrintList(c.Operator, cmd, "users", all, newUserRecord,
			"EMAIL\tNAME\tROLES\tSTATUS\tLAST LOG-IN\tID", func(u auth.User) []string {
				return []string{u.Email, u.Name, strings.Join(u.Roles, ","), string(u.State()), moment(u.LastLogin), u.ID}
			})
	})
	return cmd
}

// onUser is a command that takes the address of a user and does one thing.
// done follows the address in the line for people, such as "ada@example.com may sign in again."
func (c *commands) onUser(use, short, done string, do func(*auth.People, context.Context, string) (auth.User, error)) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: cobra.ExactArgs(1)}
	cmd.RunE = c.asPeople(func(ctx context.Context, p *auth.People, args []string) error {
		u, err := do(p, ctx, args[0])
		if err != nil {
			return err
		}
		return c.Print(cmd, newUserRecord(u), "%s %s.\n", u.Email, done)
	})
	return cmd
}

// userRecord is a user as --json prints it.
type userRecord struct {
	ID     string   `json:"id"`
	Email  string   `json:"email"`
	Name   string   `json:"name"`
	Roles  []string `json:"roles"`
	Status string   `json:"status"`
	// HasPassword is false for who signs in through OIDC alone, or was invited and has not come yet.
	HasPassword bool   `json:"has_password"`
	CreatedBy   string `json:"created_by"`
	// Password is there when it has just been drawn.
	Password string `json:"password,omitempty"`
}

// newUserRecord is a user without the hash of the password.
func newUserRecord(u auth.User) userRecord {
	return userRecord{
		ID: u.ID, Email: u.Email, Name: u.Name, Roles: u.Roles, Status: string(u.State()),
		HasPassword: u.PasswordHash != "", CreatedBy: u.CreatedBy,
	}
}

// printUser prints a user, with a password that was drawn.
func (c *commands) printUser(cmd *cobra.Command, u auth.User, password string, drawn bool) error {
	r, secret := newUserRecord(u), ""
	if drawn {
		r.Password, secret = password, "\n"+password+"\n\nTell it to the user now: it is not shown again.\n"
	}
	return c.Print(cmd, r, "%s (%s) is %s, with the roles: %s\n%s", u.Email, u.Name, r.Status, strings.Join(u.Roles, ", "), secret)
}
