package main

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/schema"
	"hub.internal/pkg/service"
	"hub.internal/services/auth/apps"
	"hub.internal/services/auth/postgres"
)

// connectedApps is the command group that registers Connected Apps, hands out their secrets, and stops them.
// The keyset is needed by the commands that issue a secret, and by no other: an app can be stopped without it.
func connectedApps(environ []string) *cobra.Command {
	c, cmd := group(environ, "app", "Register Connected Apps, and stop them; every change is recorded in the audit log", `Environment:
  HUB_WRITE_STORE_URL      PostgreSQL, as the role hub_auth
  HUB_SECRETS_KEYSET       the keyset of the auth service (issue-secret, rotate-secret, rotate-webhook-secret)`)
	overlap := span(24 * time.Hour)
	rotate := c.newSecret("rotate-secret CODE --overlap 24h", "Issue another secret, and let the one before expire",
		func(s *apps.Service, ctx context.Context, code string) (apps.Issued, error) {
			return s.RotateSecret(ctx, code, time.Duration(overlap))
		})
	rotate.Flags().Var(&overlap, "overlap", "how long both secrets are good, such as 24h, 7d or 0")
	cmd.AddCommand(c.putApp(), c.listApps(), c.suspendApp(), c.resumeApp(), rotate, c.revokeSecret(),
		c.newSecret("issue-secret CODE",
			"Issue the secret of an app, and the one that notifications to it are signed with, and print them, this once",
			(*apps.Service).IssueSecret),
		c.newSecret("rotate-webhook-secret CODE",
			"Issue another secret to sign notifications with; the one before is signed with beside it for 24 hours",
			(*apps.Service).RotateWebhookSecret))
	return cmd
}

// onApps is a command on apps.
// It opens the store as the role hub_auth and does the work itself: the service need not run.
func (c *commands) onApps(do func(context.Context, *apps.Service, []string) error) service.Runner {
	return c.onStore(func(ctx context.Context, _ *cobra.Command, s commandSettings, store *postgres.Store, args []string) error {
		sealer, err := sealerOf(s.SecretsKeyset)
		if err != nil {
			return err
		}
		return do(ctx, apps.New(apps.Config{Store: store, Sealer: sealer, Now: time.Now}), args)
	})
}

// settingsFlags are the flags of what an app can be given; what they do not name stays as it is in in.
// It is called with two targets: defaults, for a new app, and the settings of one that is there (copyFlags).
func settingsFlags(f *pflag.FlagSet, in *apps.Settings) {
	f.StringVar(&in.Name, "name", in.Name, "its name, for the users who link their account")
	f.StringArrayVar(&in.RedirectURLs, "redirect-url", in.RedirectURLs, "where browsers may be sent back to; may be repeated")
	f.StringArrayVar(&in.Origins, "origin", in.Origins, "whom messages may be sent to (default: any); may be repeated")
	f.StringSliceVar(&in.Scopes, "scopes", in.Scopes, "what it may do: "+strings.Join(apps.Scopes(), ", "))
	f.StringVar((*string)(&in.LinkMode), "link-mode", string(in.LinkMode), "when a link holds: "+strings.Join(apps.LinkModes(), " or "))
	f.IntVar(&in.Limits.UserPerMinute, "user-per-minute", in.Limits.UserPerMinute, "calls a minute of one user")
	f.IntVar(&in.Limits.UserBurst, "user-burst", in.Limits.UserBurst, "calls of one user at once")
	f.IntVar(&in.Limits.ServicePerMinute, "service-per-minute", in.Limits.ServicePerMinute, "calls a minute of the app")
	f.IntVar(&in.Limits.ServiceBurst, "service-burst", in.Limits.ServiceBurst, "calls of the app at once")
}

// putApp creates an app, or changes what the flags name of one that is there. Called as create it refuses one that is there, and as
// edit one that is not: whoever types these means one of the two.
// put can be repeated, by a script that describes what there should be.
func (c *commands) putApp() *cobra.Command {
	in := apps.Settings{LinkMode: apps.Consent, Limits: apps.DefaultLimits()}
	cmd := &cobra.Command{Use: "put CODE --name NAME", Aliases: []string{"create", "edit"}, Args: cobra.ExactArgs(1),
		Short: "Create an app, which has no secret yet; of one that is there, change what the flags name and nothing else"}
	settingsFlags(cmd.Flags(), &in)
	cmd.RunE = c.onApps(func(ctx context.Context, s *apps.Service, args []string) error {
		a, err := s.Inspect(ctx, args[0])
		name := cmd.CalledAs()
		switch {
		// A create of an app that is there is E_CONFLICT by the store, which two that run at once meet as well.
		case name == "create", name != "edit" && fault.Is(err, fault.NotFound):
			_, err = s.Create(ctx, args[0], in)
		case err == nil:
			next := a.Settings
			if err = copyFlags(cmd.Flags(), &next); err == nil {
				// With the version that was read (optimistic locking): E_CONFLICT when somebody else has changed the app meanwhile.
				_, err = s.Edit(ctx, args[0], a.Version, next)
			}
		}
		if err != nil {
			return err
		}
		return c.printApp(ctx, cmd, s, args[0])
	})
	return cmd
}

// copyFlags sets in next what was given on the command line. A list is replaced; --origin= takes all of them away.
// Visit sees the flags that were typed, not those that have their default. Flags that are no settings, such as --json, are passed over.
func copyFlags(given *pflag.FlagSet, next *apps.Settings) (err error) {
	settings := pflag.NewFlagSet("", pflag.ContinueOnError)
	settingsFlags(settings, next)
	given.Visit(func(f *pflag.Flag) {
		to := settings.Lookup(f.Name)
		switch {
		case err != nil || to == nil:
		default:
			// A list is not set by its text: the first Set of a pflag list replaces what is there, and each later one appends.
			if list, ok := f.Value.(pflag.SliceValue); ok {
				err = to.Value.(pflag.SliceValue).Replace(withoutEmpty(list.GetSlice()))
				return
			}
			err = to.Value.Set(f.Value.String())
		}
	})
	return err
}

// withoutEmpty is a list without its empty strings, never nil.
// The columns of lists are NOT NULL, and nil would be NULL.
func withoutEmpty(list []string) []string {
	return slices.DeleteFunc(append([]string{}, list...), func(s string) bool { return s == "" })
}

// listApps prints all apps.
func (c *commands) listApps() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List all apps by code", Args: cobra.NoArgs}
	cmd.RunE = c.onApps(func(ctx context.Context, s *apps.Service, _ []string) error {
		all, err := everyPage(func(after string) ([]apps.Listed, string, error) { return s.List(ctx, apps.Filter{After: after}) })
		if err != nil {
			return err
		}
		return service.PrintList(c.Operator, cmd, "apps", all, func(a apps.Listed) appRecord { return newAppRecord(a.App, a.HasSecret) },
			"CODE\tNAME\tSTATUS\tSCOPES\tCREATED", func(a apps.Listed) []string {
				return []string{a.Code, a.Name, string(a.Status), cmp.Or(strings.Join(a.Scopes, ","), "-"), moment(&a.CreatedAt)}
			})
	})
	return cmd
}

// suspendApp refuses the calls of an app until it is resumed.
// Its secrets and links stay. Revoking an app for good is left to the console, which wants its code typed once more.
func (c *commands) suspendApp() *cobra.Command {
	var reason string
	cmd := &cobra.Command{Use: "suspend CODE --reason REASON", Short: "Refuse an app's calls until it is resumed", Args: cobra.ExactArgs(1)}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the audit log")
	service.Need(cmd, "reason")
	cmd.RunE = c.onApps(func(ctx context.Context, s *apps.Service, args []string) error {
		if _, err := s.Suspend(ctx, args[0], reason); err != nil {
			return err
		}
		return c.printApp(ctx, cmd, s, args[0])
	})
	return cmd
}

// resumeApp lets a suspended app call again.
func (c *commands) resumeApp() *cobra.Command {
	cmd := &cobra.Command{Use: "resume CODE", Short: "Let a suspended app call again", Args: cobra.ExactArgs(1)}
	cmd.RunE = c.onApps(func(ctx context.Context, s *apps.Service, args []string) error {
		if _, err := s.Resume(ctx, args[0]); err != nil {
			return err
		}
		return c.printApp(ctx, cmd, s, args[0])
	})
	return cmd
}

// newSecret is a command that issues a secret of an app and prints it, this once.
func (c *commands) newSecret(use, short string, issue func(*apps.Service, context.Context, string) (apps.Issued, error)) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: cobra.ExactArgs(1)}
	cmd.RunE = c.onApps(func(ctx context.Context, s *apps.Service, args []string) error {
		issued, err := issue(s, ctx, args[0])
		if err != nil {
			return err
		}
		text := ""
		// The first secret of an app brings the first webhook secret with it; any other is alone.
		for i := &issued; i != nil; i = i.Webhook {
			use := "secret (HS256, kid)"
			if i.Kind() == apps.Webhook {
				use = "secret of notifications (Standard Webhooks)"
			}
			text += i.ID + " is the " + use + " of " + i.Code + ".\n\n" + i.Token.Reveal() + "\n\n"
			if i.Replaced != nil {
				text += i.Replaced.ID + " expires at " + moment(i.Replaced.ExpiresAt) + ".\n"
			}
		}
		return c.Print(cmd, newIssuedRecord(issued), "%s%s\n", text, shownOnce)
	})
	return cmd
}

// revokeSecret destroys a secret that was leaked.
// Tokens that are signed with it are refused from then on. E_NOT_FOUND for an id that the app does not have.
func (c *commands) revokeSecret() *cobra.Command {
	cmd := &cobra.Command{Use: "revoke-secret CODE ID", Short: "Destroy a secret of an app, at once", Args: cobra.ExactArgs(2)}
	cmd.RunE = c.onApps(func(ctx context.Context, s *apps.Service, args []string) error {
		secret, err := s.RevokeSecret(ctx, args[0], args[1])
		if err != nil {
			return err
		}
		return c.Print(cmd, newSecretRecord(secret), "%s is destroyed.\n", secret.ID)
	})
	return cmd
}

// appRecord is an app as --json prints it.
type appRecord struct {
	Code         string         `json:"service_code"`
	Name         string         `json:"name"`
	Status       apps.Status    `json:"status"`
	Reason       string         `json:"reason,omitempty"`
	RedirectURLs []string       `json:"redirect_urls"`
	Origins      []string       `json:"origins"`
	Scopes       []string       `json:"scopes"`
	LinkMode     apps.LinkMode  `json:"link_mode"`
	Limits       apps.Limits    `json:"limits"`
	HasSecret    bool           `json:"has_secret"`
	CreatedBy    string         `json:"created_by"`
	CreatedAt    string         `json:"created_at"`
	Secrets      []secretRecord `json:"secrets,omitempty"`
	Webhooks     []secretRecord `json:"webhook_secrets,omitempty"`
	// Links is nil in lists, which do not count them; 0 is an app without links.
	Links *int `json:"identity_links,omitempty"`
}

// newAppRecord is an app without its secrets, as lists have it.
func newAppRecord(a apps.App, hasSecret bool) appRecord {
	return appRecord{Code: a.Code, Name: a.Name, Status: a.Status, Reason: a.Reason, RedirectURLs: a.RedirectURLs, Origins: a.Origins,
		Scopes: a.Scopes, LinkMode: a.LinkMode, Limits: a.Limits, HasSecret: hasSecret, CreatedBy: a.CreatedBy,
		CreatedAt: schema.Moment(a.CreatedAt)}
}

// secretRecord is a secret as --json prints it.
type secretRecord struct {
	// Secret is what it is, where it has just been issued.
	Secret    string  `json:"secret,omitempty"`
	ID        string  `json:"id"`
	Code      string  `json:"service_code"`
	CreatedAt string  `json:"created_at"`
	ExpiresAt *string `json:"expires_at"`
	// Old is the secret that a rotation has replaced, with its end.
	Old *secretRecord `json:"old,omitempty"`
	// Webhook is what notifications are signed with, where it was issued as well.
	Webhook *secretRecord `json:"webhook,omitempty"`
}

// newSecretRecord is what may be known of a secret.
func newSecretRecord(s apps.Secret) secretRecord {
	return secretRecord{ID: s.ID, Code: s.Code, CreatedAt: schema.Moment(s.CreatedAt), ExpiresAt: stamp(s.ExpiresAt)}
}

// newIssuedRecord is a secret that has just been issued.
// This is the one place that prints a secret of an app as JSON; the store has it sealed.
func newIssuedRecord(issued apps.Issued) secretRecord {
	r := newSecretRecord(issued.Secret)
	r.Secret = issued.Token.Reveal()
	if issued.Replaced != nil {
		r.Old = new(newSecretRecord(*issued.Replaced))
	}
	if issued.Webhook != nil {
		r.Webhook = new(newIssuedRecord(*issued.Webhook))
	}
	return r
}

// printApp prints an app: in full as JSON, else its state and the ids of its secrets, which revoke-secret takes.
func (c *commands) printApp(ctx context.Context, cmd *cobra.Command, s *apps.Service, code string) error {
	a, err := s.Inspect(ctx, code)
	if err != nil {
		return err
	}
	r := newAppRecord(a.App, a.HasSecret(s.Now()))
	r.Links = &a.Links
	status, ids := string(a.Status), ""
	if a.Reason != "" {
		status += ": " + a.Reason
	}
	for _, secret := range a.Secrets {
		r.Secrets, ids = append(r.Secrets, newSecretRecord(secret)), ids+"secret "+secret.ID+"\n"
	}
	for _, secret := range a.Webhooks {
		r.Webhooks, ids = append(r.Webhooks, newSecretRecord(secret)), ids+"webhook secret "+secret.ID+"\n"
	}
	return c.Print(cmd, r, "%s (%s) is %s\n%s", a.Code, a.Name, status, ids)
}
