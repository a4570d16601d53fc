package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"hub.internal/pkg/service"
	"hub.internal/pkg/text"

	"github.com/spf13/cobra"

	"hub.internal/services/auth"
	"hub.internal/services/auth/postgres"
	"hub.internal/services/auth/redis"
)

// apikeys is the command group for API keys.
// The commands work on the store, so they are there when no service runs.
func apikeys(environ []string) *cobra.Command {
	c, cmd := group(environ, "apikey", "Manage API keys; every command is recorded in the audit log", `Environment:
  HUB_WRITE_STORE_URL      PostgreSQL, as the role hub_auth
  HUB_KEY_PEPPER           the pepper of the auth service (issue, rotate)
  HUB_KEY_PEPPER_PREVIOUS  the pepper before that, while it is being replaced
  HUB_REDIS_URL            optional: tells the gateways at once (revoke, rotate)`)
	cmd.AddCommand(c.issue(), c.list(), c.revoke(), c.rotate())
	return cmd
}

// issue issues a key. Its secret is printed this once.
// Without --service the key stands for itself: its id is the identity that limits and the audit log know.
func (c *commands) issue() *cobra.Command {
	in := auth.Issue{Limits: auth.DefaultLimits()}
	var lifetime span
	cmd := &cobra.Command{Use: "issue --name NAME --scopes a,b", Short: "Issue a key and print it, this once", Args: cobra.NoArgs}
	f := cmd.Flags()
	f.StringVar(&in.Name, "name", "", "what the key is for")
	f.StringSliceVar(&in.Scopes, "scopes", nil, "what it may do: "+strings.Join(auth.Scopes(), ", "))
	f.StringVar(&in.Service, "service", "", "rate-limit and audit identity (default: the key's id)")
	f.Var(&lifetime, "expires", "how long it is good for, such as 90d or 36h (default: for ever)")
	f.IntVar(&in.Limits.UserPerMinute, "user-per-minute", in.Limits.UserPerMinute, "calls a minute of one user")
	f.IntVar(&in.Limits.UserBurst, "user-burst", in.Limits.UserBurst, "calls of one user at once")
	f.IntVar(&in.Limits.ServicePerMinute, "service-per-minute", in.Limits.ServicePerMinute, "calls a minute of the service")
	f.IntVar(&in.Limits.ServiceBurst, "service-burst", in.Limits.ServiceBurst, "calls of the service at once")
	service.Need(cmd, "name", "scopes")
	cmd.RunE = c.run(withPepper, "", func(ctx context.Context, s *auth.Service, _ []string) error {
		if f.Changed("expires") && lifetime == 0 {
			// Zero means for ever in auth.Issue, and whoever types --expires 0 does not mean that.
			lifetime = -1 // refused, in contrast to no lifetime
		}
		in.Lifetime = time.Duration(lifetime)
		k, secret, err := s.Issue(ctx, in)
		if err != nil {
			return err
		}
		r := newRecord(k)
		r.Key = secret.Reveal()
		return c.Print(cmd, r, "%s (%s) may %s and expires at %s.\n\n%s\n\n%s\n", k.ID, k.Name, strings.Join(k.Scopes, ", "),
			moment(k.ExpiresAt), r.Key, shownOnce)
	})
	return cmd
}

// list prints all keys, page by page of the store.
// Each page is recorded in the audit log as a list that was looked at.
func (c *commands) list() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List all keys, newest first", Args: cobra.NoArgs}
	cmd.RunE = c.run(noPepper, "", func(ctx context.Context, s *auth.Service, _ []string) error {
		all, err := everyPage(func(after string) ([]auth.Key, string, error) { return s.List(ctx, auth.KeyFilter{After: after}) })
		if err != nil {
			return err
		}
		return service.PrintList(c.Operator, cmd, "keys", all, newRecord,
			"ID\tNAME\tKEY\tSTATUS\tSCOPES\tEXPIRES\tLAST USED", func(k auth.Key) []string {
				return []string{k.ID, k.Name, hint(k), string(k.Status(time.Now())), strings.Join(k.Scopes, ","), moment(k.ExpiresAt),
					moment(k.LastUsedAt)}
			})
	})
	return cmd
}

// revoke ends a key. It needs no pepper, and tells the gateways at once.
// Repeating it is harmless: the first reason stays, and the gateways are told again.
func (c *commands) revoke() *cobra.Command {
	var reason string
	cmd := &cobra.Command{Use: "revoke ID --reason REASON", Short: "End a key at once, for good", Args: cobra.ExactArgs(1)}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the audit log")
	service.Need(cmd, "reason")
	cmd.RunE = c.run(noPepper, "the key stops", func(ctx context.Context, s *auth.Service, args []string) error {
		k, err := s.Revoke(ctx, args[0], reason)
		if err != nil {
			return err
		}
		successor := ""
		if k.RotatedTo != "" {
			successor = "Its successor " + k.RotatedTo + " is another key and was left as it is.\n"
		}
		return c.Print(cmd, newRecord(k), "%s is revoked since %s: %s\n%s", k.ID, moment(k.RevokedAt), k.RevokeReason, successor)
	})
	return cmd
}

// rotate issues the successor of a key.
// --overlap 0 stops the old key at once. E_CONFLICT for a key that is not active, or has a successor already.
func (c *commands) rotate() *cobra.Command {
	overlap := span(24 * time.Hour)
	cmd := &cobra.Command{Use: "rotate ID --overlap 24h", Args: cobra.ExactArgs(1),
		Short: "Issue a successor with the same scopes, limits and service, and let the key expire"}
	cmd.Flags().Var(&overlap, "overlap", "how long both keys are good, such as 24h, 7d or 0")
	cmd.RunE = c.run(withPepper, "the end of the old key holds", func(ctx context.Context, s *auth.Service, args []string) error {
		r, err := s.Rotate(ctx, args[0], time.Duration(overlap))
		if err != nil {
			return err
		}
		out := newRecord(r.Successor)
		out.Key, out.Chain = r.Secret.Reveal(), r.Chain
		return c.Print(cmd, struct {
			record
			Old record `json:"old"`
		}{out, newRecord(r.Old)}, "%s\n%s expires at %s.\n\n%s\n\n%s\n", strings.Join(r.Chain, " → "), r.Old.ID, moment(r.Old.ExpiresAt),
			out.Key, shownOnce)
	})
	return cmd
}

// Whether a command hashes a key. One that does not works without the pepper, so that a
// key can be revoked in a hurry.
const (
	withPepper = true
	noPepper   = false
)

// run is a command on keys. effect is what takes two seconds when the gateways cannot be told at once.
// An empty effect is a command that changes no key which a gateway may have cached.
func (c *commands) run(pepper bool, effect string, do func(context.Context, *auth.Service, []string) error) service.Runner {
	return c.onStore(func(ctx context.Context, cmd *cobra.Command, s commandSettings, store *postgres.Store, args []string) (err error) {
		parts := auth.Config{Store: store, Now: time.Now, Logger: slog.New(slog.DiscardHandler)}
		if pepper {
			if parts.Peppers, err = auth.NewPeppers(s.Pepper.Reveal(), s.PepperPrevious.Reveal()); err != nil {
				return err
			}
		}
		if effect != "" {
			told := notices{failed: func(_ string, err error) {
				fmt.Fprintf(cmd.ErrOrStderr(), "warning: the gateways could not be told at once (%s); %s within 2 s anyway\n",
					text.OneLine(err.Error()), effect)
			}}
			if url := s.RedisURL.Reveal(); url != "" {
				if told.publisher, err = redis.Open(url); err != nil {
					return err
				}
				defer told.publisher.Close()
			}
			parts.Notices = told
		}
		service := auth.New(parts)
		if pepper {
			// A wrong pepper makes a key that no gateway takes. It is a warning only: keys of an old pepper are no reason not to issue.
			if n, _, err := service.UnverifiableKeys(ctx); err == nil && n > 0 {
				fmt.Fprintf(cmd.ErrOrStderr(), "warning: %d active keys were issued under another pepper; "+
					"check that HUB_KEY_PEPPER is the one that the auth service has\n", n)
			}
		}
		return do(ctx, service, args)
	})
}
