package main

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hub.internal/pkg/schema"
	"hub.internal/pkg/service"
	"hub.internal/services/auth/links"
	"hub.internal/services/auth/postgres"
)

// accountLinks is the command group for the links of users to apps. In the console each user sees and ends their own alone.
// So the link of a user who is disabled is ended here.
func accountLinks(environ []string) *cobra.Command {
	c, cmd := group(environ, "link", "Manage the links of users to Connected Apps; every change is recorded in the audit log", `Environment:
  HUB_WRITE_STORE_URL      PostgreSQL, as the role hub_auth`)
	cmd.AddCommand(c.addLink(), c.listLinks(), c.revokeLink())
	return cmd
}

// addLink links a user of an app to an account that nobody asks. Repeating it with the same scopes changes nothing.
// There is no ticket and no confirmation, whatever the app's link mode is. E_NOT_FOUND for an app or an account that is not there.
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
	service.Need(cmd, "app", "external-user", "user")
	cmd.RunE = c.onStore(func(ctx context.Context, cmd *cobra.Command, _ commandSettings, store *postgres.Store, _ []string) error {
		l, err := links.New(links.Config{Store: store, Now: time.Now}).Add(ctx, app, externalUser, email, withoutEmpty(scopes))
		if err != nil {
			return err
		}
		return c.Print(cmd, newLinkRecord(links.Listed{Link: l, Email: email}), "%s links %s of %s to %s.\n", l.ID, l.ExternalUser, l.Service,
			email)
	})
	return cmd
}

// listLinks prints the links that hold, of an app or of an account where one is named.
// E_NOT_FOUND for an address that nobody has, so that a typing error is told from an account without links.
func (c *commands) listLinks() *cobra.Command {
	var f links.Filter
	var email string
	cmd := &cobra.Command{Use: "list [--app CODE] [--user EMAIL]", Short: "List the links that hold, newest first", Args: cobra.NoArgs}
	cmd.Flags().StringVar(&f.Service, "app", "", "of this app alone")
	cmd.Flags().StringVar(&email, "user", "", "of this account alone")
	cmd.RunE = c.onStore(func(ctx context.Context, cmd *cobra.Command, _ commandSettings, store *postgres.Store, _ []string) (err error) {
		if email != "" {
			if f.HubUser, err = store.UserID(ctx, email); err != nil {
				return err
			}
		}
		s := links.New(links.Config{Store: store, Now: time.Now})
		all, err := everyPage(func(after string) ([]links.Listed, string, error) {
			f.After = after
			return s.List(ctx, f)
		})
		if err != nil {
			return err
		}
		return service.PrintList(c.Operator, cmd, "links", all, newLinkRecord,
			"ID\tAPP\tEXTERNAL USER\tACCOUNT\tSCOPES\tLINKED", func(l links.Listed) []string {
				return []string{l.ID, l.Service, l.ExternalUser, l.Email, cmp.Or(strings.Join(l.Scopes, ","), "-"), moment(&l.LinkedAt)}
			})
	})
	return cmd
}

// revokeLink ends the link of anybody.
// E_NOT_FOUND for an id that no link has.
func (c *commands) revokeLink() *cobra.Command {
	cmd := &cobra.Command{Use: "revoke ID", Short: "End a link, at once; the user can link again", Args: cobra.ExactArgs(1)}
	cmd.RunE = c.onStore(func(ctx context.Context, cmd *cobra.Command, _ commandSettings, store *postgres.Store, args []string) error {
		l, err := links.New(links.Config{Store: store, Now: time.Now}).Revoke(ctx, args[0])
		if err != nil {
			return err
		}
		return c.Print(cmd, newLinkRecord(links.Listed{Link: l}), "%s has ended.\n", l.ID)
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

// newLinkRecord is a link; its address is empty where that was not read.
func newLinkRecord(l links.Listed) linkRecord {
	return linkRecord{ID: l.ID, Service: l.Service, ExternalUser: l.ExternalUser, HubUser: l.HubUser, Email: l.Email, Status: l.Status,
		Scopes: l.Scopes, Version: l.Version, LinkedAt: schema.Moment(l.LinkedAt)}
}
