package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"text/tabwriter"
	"time"

	"hub.internal/pkg/service"

	"github.com/spf13/cobra"

	"hub.internal/services/auth"
	"hub.internal/services/auth/postgres"
	"hub.internal/services/auth/redis"
)

func apikeys(environ []string) *cobra.Command {
	c, cmd := group(environ, "apikey", "Manage API keys; every command is recorded in the audit log", `Environment:
  HUB_WRITE_STORE_URL      PostgreSQL, as the role hub_auth
  HUB_KEY_PEPPER           the pepper of the auth service (issue, rotate)
  HUB_KEY_PEPPER_PREVIOUS  the pepper before that, while it is being replaced
  HUB_REDIS_URL            optional: tells the gateways at once (revoke, rotate)`)
	cmd.AddCommand(c.issue(), c.list(), c.revoke(), c.rotate())
	return cmd
}

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
	need(cmd, "name", "scopes")
	cmd.RunE = c.run(withPepper, "", func(ctx context.Context, s *auth.Service, _ []string) error {
		if f.Changed("expires") && lifetime == 0 {
			lifetime = -1 // refused, in contrast to no lifetime
		}
		in.Lifetime = time.Duration(lifetime)
		k, secret, err := s.Issue(ctx, in)
		if err != nil {
			return err
		}
		if c.JSON {
			r := newRecord(k)
			r.Key = secret.Reveal()
			return printJSON(cmd, r)
		}
		printKey(cmd.OutOrStdout(), k, []string{k.ID})
		printSecret(cmd.OutOrStdout(), secret)
		return nil
	})
	return cmd
}

func (c *commands) list() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List all keys, newest first", Args: cobra.NoArgs}
	cmd.RunE = c.run(noPepper, "", func(ctx context.Context, s *auth.Service, _ []string) error {
		all, after := []auth.Key{}, ""
		for {
			page, next, err := s.List(ctx, auth.KeyFilter{After: after})
			if err != nil {
				return err
			}
			all = append(all, page...)
			if after = next; next == "" {
				break
			}
		}
		if c.JSON {
			records := make([]record, len(all))
			for i, k := range all {
				records[i] = newRecord(k)
			}
			return printJSON(cmd, map[string]any{"keys": records})
		}
		w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "ID\tNAME\tKEY\tSTATUS\tSCOPES\tEXPIRES\tLAST USED")
		for _, k := range all {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", k.ID, k.Name, hint(k), k.Status(time.Now()), strings.Join(k.Scopes, ","),
				moment(k.ExpiresAt), moment(k.LastUsedAt))
		}
		return w.Flush()
	})
	return cmd
}

func (c *commands) revoke() *cobra.Command {
	var reason string
	cmd := &cobra.Command{Use: "revoke ID --reason REASON", Short: "End a key at once, for good", Args: cobra.ExactArgs(1)}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the audit log")
	need(cmd, "reason")
	cmd.RunE = c.run(noPepper, "the key stops", func(ctx context.Context, s *auth.Service, args []string) error {
		k, err := s.Revoke(ctx, args[0], reason)
		if err != nil {
			return err
		}
		if c.JSON {
			return printJSON(cmd, newRecord(k))
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%s is revoked since %s: %s\n", k.ID, moment(k.RevokedAt), k.RevokeReason)
		if k.RotatedTo != "" {
			fmt.Fprintf(cmd.OutOrStdout(), "Its successor %s is another key and was left as it is.\n", k.RotatedTo)
		}
		return nil
	})
	return cmd
}

func (c *commands) rotate() *cobra.Command {
	overlap := span(24 * time.Hour)
	cmd := &cobra.Command{Use: "rotate ID --overlap 24h", Args: cobra.ExactArgs(1),
		Short: "Issue a successor with the same scopes, limits and service, and let the key expire"}
	cmd.Flags().Var(&overlap, "overlap", "how long both keys are good, such as 24h, 7d or 0")
	cmd.RunE = c.run(withPepper, "the old key stops", func(ctx context.Context, s *auth.Service, args []string) error {
		r, err := s.Rotate(ctx, args[0], time.Duration(overlap))
		if err != nil {
			return err
		}
		if c.JSON {
			out := newRecord(r.Successor)
			out.Key, out.Chain = r.Secret.Reveal(), r.Chain
			return printJSON(cmd, struct {
				record
				Old record `json:"old"`
			}{out, newRecord(r.Old)})
		}
		printKey(cmd.OutOrStdout(), r.Successor, r.Chain)
		fmt.Fprintf(cmd.OutOrStdout(), "\n%s expires at %s.\n", r.Old.ID, moment(r.Old.ExpiresAt))
		printSecret(cmd.OutOrStdout(), r.Secret)
		return nil
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
func (c *commands) run(pepper bool, effect string, do func(context.Context, *auth.Service, []string) error) service.Runner {
	return c.onStore(func(ctx context.Context, cmd *cobra.Command, s commandSettings, store *postgres.Store, args []string) (err error) {
		parts := auth.Config{Store: store, Now: time.Now, Logger: slog.New(slog.DiscardHandler)}
		if pepper {
			if parts.Peppers, err = auth.NewPeppers(s.Pepper.Reveal(), s.PepperPrevious.Reveal()); err != nil {
				return err
			}
		}
		if effect != "" {
			notices := &notices{warn: cmd.ErrOrStderr(), effect: effect}
			if url := s.RedisURL.Reveal(); url != "" {
				if notices.publisher, err = redis.Open(url); err != nil {
					return err
				}
				defer notices.publisher.Close()
			}
			parts.Notices = notices
		}
		service := auth.New(parts)
		if pepper {
			if n, _, err := service.UnverifiableKeys(ctx); err == nil && n > 0 {
				fmt.Fprintf(cmd.ErrOrStderr(), "warning: %d active keys were issued under another pepper; "+
					"check that HUB_KEY_PEPPER is the one that the auth service has\n", n)
			}
		}
		return do(ctx, service, args)
	})
}
