package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"hub.internal/pkg/service"

	"github.com/spf13/cobra"

	"hub.internal/pkg/schema"
	"hub.internal/services/auth/apps"
	"hub.internal/services/auth/postgres"
)

// connectedApps is the command group that manages Connected Apps.
func connectedApps(environ []string) *cobra.Command {
	c, cmd := group(environ, "app", "Manage Connected Apps; every change is recorded in the audit log", `Environment:
  HUB_WRITE_STORE_URL      PostgreSQL, as the role hub_auth
  HUB_SECRETS_KEYSET       the keyset of the auth service (issue-secret, rotate-secret, rotate-webhook-secret)`)
	cmd.AddCommand(c.createApp(), c.editApp(), c.listApps(), c.suspendApp(), c.resumeApp(),
		c.issueSecret(), c.rotateSecret(), c.revokeSecret(), c.rotateWebhookSecret())
	return cmd
}

// onApps is a command on apps.
func (c *commands) onApps(do func(context.Context, *apps.Service, []string) error) service.Runner {
	return c.onStore(func(ctx context.Context, _ *cobra.Command, s commandSettings, store *postgres.Store, args []string) error {
		sealer, err := sealerOf(s.SecretsKeyset)
		if err != nil {
			return err
		}
		return do(ctx, apps.New(apps.Config{Store: store, Sealer: sealer, Now: time.Now}), args)
	})
}

// settingsFlags are the flags of what an app can be given.
func settingsFlags(cmd *cobra.Command, in *apps.Settings) {
	f := cmd.Flags()
	f.StringVar(&in.Name, "name", in.Name, "its name, for the users who link their account")
	f.StringArrayVar(&in.RedirectURLs, "redirect-url", nil, "where browsers may be sent back to; may be repeated")
	f.StringArrayVar(&in.Origins, "origin", nil, "whom messages may be sent to (default: any); may be repeated")
	f.StringSliceVar(&in.Scopes, "scopes", nil, "what it may do: "+strings.Join(apps.Scopes(), ", "))
	f.StringVar((*string)(&in.LinkMode), "link-mode", string(apps.Consent), "when a link holds: "+strings.Join(apps.LinkModes(), " or "))
	f.IntVar(&in.Limits.UserPerMinute, "user-per-minute", in.Limits.UserPerMinute, "calls a minute of one user")
	f.IntVar(&in.Limits.UserBurst, "user-burst", in.Limits.UserBurst, "calls of one user at once")
	f.IntVar(&in.Limits.ServicePerMinute, "service-per-minute", in.Limits.ServicePerMinute, "calls a minute of the app")
	f.IntVar(&in.Limits.ServiceBurst, "service-burst", in.Limits.ServiceBurst, "calls of the app at once")
}

func (c *commands) createApp() *cobra.Command {
	in := apps.Settings{Limits: apps.DefaultLimits()}
	cmd := &cobra.Command{Use: "create CODE --name NAME", Short: "Create an app, which has no secret yet", Args: cobra.ExactArgs(1)}
	settingsFlags(cmd, &in)
	need(cmd, "name")
	cmd.RunE = c.onApps(func(ctx context.Context, s *apps.Service, args []string) error {
		if _, err := s.Create(ctx, args[0], in); err != nil {
			return err
		}
		return c.printApp(ctx, cmd, s, args[0])
	})
	return cmd
}

func (c *commands) editApp() *cobra.Command {
	in := apps.Settings{Limits: apps.DefaultLimits()}
	cmd := &cobra.Command{Use: "edit CODE", Args: cobra.ExactArgs(1),
		Short: "Change what the flags name, and nothing else; a list is replaced"}
	settingsFlags(cmd, &in)
	cmd.RunE = c.onApps(func(ctx context.Context, s *apps.Service, args []string) error {
		a, err := s.Inspect(ctx, args[0])
		if err != nil {
			return err
		}
		next := a.Settings
		for flag, take := range map[string]func(){
			"name": func() { next.Name = in.Name }, "redirect-url": func() { next.RedirectURLs = some(in.RedirectURLs) },
			"origin": func() { next.Origins = some(in.Origins) }, "scopes": func() { next.Scopes = some(in.Scopes) },
			"link-mode":          func() { next.LinkMode = in.LinkMode },
			"user-per-minute":    func() { next.Limits.UserPerMinute = in.Limits.UserPerMinute },
			"user-burst":         func() { next.Limits.UserBurst = in.Limits.UserBurst },
			"service-per-minute": func() { next.Limits.ServicePerMinute = in.Limits.ServicePerMinute },
			"service-burst":      func() { next.Limits.ServiceBurst = in.Limits.ServiceBurst },
		} {
			if cmd.Flags().Changed(flag) {
				take()
			}
		}
		if _, err := s.Edit(ctx, args[0], a.Version, next); err != nil {
			return err
		}
		return c.printApp(ctx, cmd, s, args[0])
	})
	return cmd
}

// some is a list without what is empty: --origin= takes all of them away.
func some(list []string) []string {
	out := []string{}
	for _, s := range list {
		if s != "" {
			out = append(out, s)
		}
	}
	return out
}

func (c *commands) listApps() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List all apps by code", Args: cobra.NoArgs}
	cmd.RunE = c.onApps(func(ctx context.Context, s *apps.Service, _ []string) error {
		all := []apps.Listed{}
		for after := ""; ; {
			page, next, err := s.List(ctx, apps.Filter{After: after})
			if err != nil {
				return err
			}
			if all, after = append(all, page...), next; next == "" {
				break
			}
		}
		if c.JSON {
			records := make([]appRecord, len(all))
			for i, a := range all {
				records[i] = newAppRecord(a.App, a.HasSecret)
			}
			return printJSON(cmd, map[string]any{"apps": records})
		}
		w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "CODE\tNAME\tSTATUS\tSCOPES\tSECRET\tCREATED")
		for _, a := range all {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", a.Code, a.Name, a.Status, cmp.Or(strings.Join(a.Scopes, ","), "-"),
				map[bool]string{true: "issued", false: "-"}[a.HasSecret], moment(&a.CreatedAt))
		}
		return w.Flush()
	})
	return cmd
}

func (c *commands) suspendApp() *cobra.Command {
	var reason string
	cmd := &cobra.Command{Use: "suspend CODE --reason REASON", Short: "Refuse an app's calls until it is resumed", Args: cobra.ExactArgs(1)}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the audit log")
	need(cmd, "reason")
	cmd.RunE = c.onApps(func(ctx context.Context, s *apps.Service, args []string) error {
		if _, err := s.Suspend(ctx, args[0], reason); err != nil {
			return err
		}
		return c.printApp(ctx, cmd, s, args[0])
	})
	return cmd
}

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

func (c *commands) issueSecret() *cobra.Command {
	cmd := &cobra.Command{Use: "issue-secret CODE", Args: cobra.ExactArgs(1),
		Short: "Issue the secret of an app, and the one that notifications to it are signed with, and print them, this once"}
	cmd.RunE = c.onApps(func(ctx context.Context, s *apps.Service, args []string) error {
		issued, err := s.IssueSecret(ctx, args[0])
		if err != nil {
			return err
		}
		return c.printAppSecret(cmd, issued)
	})
	return cmd
}

func (c *commands) rotateSecret() *cobra.Command {
	overlap := span(24 * time.Hour)
	cmd := &cobra.Command{Use: "rotate-secret CODE --overlap 24h", Short: "Issue another secret, and let the one before expire",
		Args: cobra.ExactArgs(1)}
	cmd.Flags().Var(&overlap, "overlap", "how long both secrets are good, such as 24h, 7d or 0")
	cmd.RunE = c.onApps(func(ctx context.Context, s *apps.Service, args []string) error {
		issued, err := s.RotateSecret(ctx, args[0], time.Duration(overlap))
		if err != nil {
			return err
		}
		return c.printAppSecret(cmd, issued)
	})
	return cmd
}

func (c *commands) rotateWebhookSecret() *cobra.Command {
	cmd := &cobra.Command{Use: "rotate-webhook-secret CODE", Args: cobra.ExactArgs(1),
		Short: "Issue another secret to sign notifications with; the one before is signed with beside it for 24 hours"}
	cmd.RunE = c.onApps(func(ctx context.Context, s *apps.Service, args []string) error {
		issued, err := s.RotateWebhookSecret(ctx, args[0])
		if err != nil {
			return err
		}
		return c.printAppSecret(cmd, issued)
	})
	return cmd
}

func (c *commands) revokeSecret() *cobra.Command {
	cmd := &cobra.Command{Use: "revoke-secret CODE ID", Short: "Destroy a secret of an app, at once", Args: cobra.ExactArgs(2)}
	cmd.RunE = c.onApps(func(ctx context.Context, s *apps.Service, args []string) error {
		secret, err := s.RevokeSecret(ctx, args[0], args[1])
		if err != nil {
			return err
		}
		if c.JSON {
			return printJSON(cmd, newSecretRecord(secret))
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%s is destroyed.\n", secret.ID)
		return nil
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
	Links        *int           `json:"identity_links,omitempty"`
}

func newAppRecord(a apps.App, hasSecret bool) appRecord {
	return appRecord{Code: a.Code, Name: a.Name, Status: a.Status, Reason: a.Reason, RedirectURLs: a.RedirectURLs, Origins: a.Origins,
		Scopes: a.Scopes, LinkMode: a.LinkMode, Limits: a.Limits, HasSecret: hasSecret, CreatedBy: a.CreatedBy,
		CreatedAt: schema.Moment(a.CreatedAt)}
}

// secretRecord is a secret as --json prints it.
type secretRecord struct {
	// Secret is what it is, where it has just been issued.
	Secret    string        `json:"secret,omitempty"`
	ID        string        `json:"id"`
	Code      string        `json:"service_code"`
	CreatedAt string        `json:"created_at"`
	ExpiresAt *string       `json:"expires_at"`
	Old       *secretRecord `json:"old,omitempty"`
	// Webhook is what notifications are signed with, where it was issued as well.
	Webhook *secretRecord `json:"webhook,omitempty"`
}

func newSecretRecord(s apps.Secret) secretRecord {
	r := secretRecord{ID: s.ID, Code: s.Code, CreatedAt: schema.Moment(s.CreatedAt)}
	if s.ExpiresAt != nil {
		r.ExpiresAt = new(schema.Moment(*s.ExpiresAt))
	}
	return r
}

func (c *commands) printApp(ctx context.Context, cmd *cobra.Command, s *apps.Service, code string) error {
	a, err := s.Inspect(ctx, code)
	if err != nil {
		return err
	}
	if c.JSON {
		r := newAppRecord(a.App, a.HasSecret(s.Now()))
		for _, secret := range a.Secrets {
			r.Secrets = append(r.Secrets, newSecretRecord(secret))
		}
		for _, secret := range a.Webhooks {
			r.Webhooks = append(r.Webhooks, newSecretRecord(secret))
		}
		r.Links = &a.Links
		return printJSON(cmd, r)
	}
	w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	status := string(a.Status)
	if a.Reason != "" {
		status += ": " + a.Reason
	}
	for _, f := range [][2]string{
		{"code", a.Code}, {"name", a.Name}, {"status", status}, {"redirect URLs", cmp.Or(strings.Join(a.RedirectURLs, " "), "-")},
		{"origins", cmp.Or(strings.Join(a.Origins, " "), "any")}, {"scopes", cmp.Or(strings.Join(a.Scopes, ", "), "-")},
		{"link mode", string(a.LinkMode)}, {"linked accounts", fmt.Sprint(a.Links)},
		{"limits", fmt.Sprintf("user %d a minute, burst %d; service %d a minute, burst %d",
			a.Limits.UserPerMinute, a.Limits.UserBurst, a.Limits.ServicePerMinute, a.Limits.ServiceBurst)},
		{"created", moment(&a.CreatedAt) + " by " + a.CreatedBy},
	} {
		fmt.Fprintf(w, "%s\t%s\n", f[0], f[1])
	}
	for _, secret := range a.Secrets {
		fmt.Fprintf(w, "secret\t%s, expires %s\n", secret.ID, moment(secret.ExpiresAt))
	}
	for _, secret := range a.Webhooks {
		fmt.Fprintf(w, "webhook secret\t%s, expires %s\n", secret.ID, moment(secret.ExpiresAt))
	}
	return w.Flush()
}

// newIssuedRecord is a secret that has just been issued.
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

func (c *commands) printAppSecret(cmd *cobra.Command, issued apps.Issued) error {
	if c.JSON {
		return printJSON(cmd, newIssuedRecord(issued))
	}
	out := cmd.OutOrStdout()
	for i := &issued; i != nil; i = i.Webhook {
		if i.Kind() == apps.Webhook {
			fmt.Fprintf(out, "%s is what notifications to %s are signed with (Standard Webhooks).\n", i.ID, i.Code)
		} else {
			fmt.Fprintf(out, "%s is the secret of %s (HS256, kid %s).\n", i.ID, i.Code, i.ID)
		}
		if i.Replaced != nil {
			fmt.Fprintf(out, "%s expires at %s.\n", i.Replaced.ID, moment(i.Replaced.ExpiresAt))
		}
		fmt.Fprintf(out, "\n%s\n\n", i.Token.Reveal())
	}
	_, err := io.WriteString(out, "Keep it now: it is not shown again.\n")
	return err
}
