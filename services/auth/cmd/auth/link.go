package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"hub.internal/pkg/service"

	"github.com/spf13/cobra"

	"hub.internal/pkg/schema"
	"hub.internal/services/auth/links"
	"hub.internal/services/auth/postgres"
)

// accountLinks is the command group that manages the links of users to apps.
func accountLinks(environ []string) *cobra.Command {
	c, cmd := group(environ, "link", "Manage the links of users to Connected Apps; every change is recorded in the audit log", `Environment:
  HUB_WRITE_STORE_URL      PostgreSQL, as the role hub_auth`)
	cmd.AddCommand(c.addLink(), c.listLinks(), c.revokeLink())
	return cmd
}

// onLinks is a command on links.
func (c *commands) onLinks(do func(context.Context, *links.Service, *postgres.Store, []string) error) service.Runner {
	return c.onStore(func(ctx context.Context, _ *cobra.Command, _ commandSettings, store *postgres.Store, args []string) error {
		return do(ctx, links.New(links.Config{Store: store, Now: time.Now}), store, args)
	})
}

func (c *commands) addLink() *cobra.Command {
	var app, externalUser, email string
	var scopes []string
	cmd := &cobra.Command{Use: "add --app CODE --external-user USER --user EMAIL --scopes pay:read", Args: cobra.NoArgs,
		Short: "Link a user of an app to an account without asking them; for development, and where they have agreed otherwise"}
	f := cmd.Flags()
	f.StringVar(&app, "app", "", "the app's code")
	f.StringVar(&externalUser, "external-user", "", "the app's own name for its user: the sub of its tokens")
	f.StringVar(&email, "user", "", "the address of the account")
	f.StringSliceVar(&scopes, "scopes", nil, "what the app may do for them: of the app's scopes")
	need(cmd, "app", "external-user", "user")
	cmd.RunE = c.onLinks(func(ctx context.Context, s *links.Service, _ *postgres.Store, _ []string) error {
		l, err := s.Add(ctx, app, externalUser, email, some(scopes))
		if err != nil {
			return err
		}
		if c.JSON {
			return printJSON(cmd, newLinkRecord(links.Listed{Link: l, Email: email}))
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s links %s of %s to %s.\n", l.ID, l.ExternalUser, l.Service, email)
		return err
	})
	return cmd
}

func (c *commands) listLinks() *cobra.Command {
	var f links.Filter
	var email string
	cmd := &cobra.Command{Use: "list [--app CODE] [--user EMAIL]", Short: "List the links that hold, newest first", Args: cobra.NoArgs}
	cmd.Flags().StringVar(&f.Service, "app", "", "of this app alone")
	cmd.Flags().StringVar(&email, "user", "", "of this account alone")
	cmd.RunE = c.onLinks(func(ctx context.Context, s *links.Service, store *postgres.Store, _ []string) error {
		if email != "" {
			id, err := store.UserID(ctx, email)
			if err != nil {
				return err
			}
			f.HubUser = id
		}
		all := []links.Listed{}
		for {
			page, next, err := s.List(ctx, f)
			if err != nil {
				return err
			}
			if all, f.After = append(all, page...), next; next == "" {
				break
			}
		}
		if c.JSON {
			records := make([]linkRecord, len(all))
			for i, l := range all {
				records[i] = newLinkRecord(l)
			}
			return printJSON(cmd, map[string]any{"links": records})
		}
		w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "ID\tAPP\tEXTERNAL USER\tACCOUNT\tSCOPES\tLINKED")
		for _, l := range all {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", l.ID, l.Service, l.ExternalUser, l.Email, cmp.Or(strings.Join(l.Scopes, ","), "-"),
				moment(&l.LinkedAt))
		}
		return w.Flush()
	})
	return cmd
}

func (c *commands) revokeLink() *cobra.Command {
	cmd := &cobra.Command{Use: "revoke ID", Short: "End a link, at once; the user can link again", Args: cobra.ExactArgs(1)}
	cmd.RunE = c.onLinks(func(ctx context.Context, s *links.Service, _ *postgres.Store, args []string) error {
		l, err := s.Revoke(ctx, args[0])
		if err != nil {
			return err
		}
		if c.JSON {
			return printJSON(cmd, newLinkRecord(links.Listed{Link: l}))
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s has ended.\n", l.ID)
		return err
	})
	return cmd
}

// linkRecord is a link as --json prints it.
type linkRecord struct {
	ID           string       `json:"id"`
	Service      string       `json:"service_code"`
	ExternalUser string       `json:"external_user_id"`
	HubUser      string       `json:"hub_user_id"`
	Email        string       `json:"email,omitempty"`
	Status       links.Status `json:"status"`
	Scopes       []string     `json:"scopes"`
	Version      int          `json:"consent_version"`
	LinkedAt     string       `json:"linked_at"`
}

func newLinkRecord(l links.Listed) linkRecord {
	return linkRecord{ID: l.ID, Service: l.Service, ExternalUser: l.ExternalUser, HubUser: l.HubUser, Email: l.Email, Status: l.Status,
		Scopes: l.Scopes, Version: l.Version, LinkedAt: schema.Moment(l.LinkedAt)}
}
