package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"hub.internal/pkg/service"

	"github.com/spf13/cobra"

	"hub.internal/pkg/fault"
	pgstore "hub.internal/pkg/postgres"
	"hub.internal/pkg/schema"
	"hub.internal/services/payments/credentials"
	"hub.internal/services/payments/postgres"
)

// credentialCommand is the command group that manages what providers know Hub by. Each command is a page of the console, too; it is
// for the first credential of a system and for when the console cannot be used.
func credentialCommand(environ []string) *cobra.Command {
	c, cmd := group(environ, "credential", "Manage what payment providers know Hub by; every change is recorded in the audit log",
		`Environment:
  HUB_WRITE_STORE_URL      PostgreSQL, as the role hub_payments
  HUB_SECRETS_KEYSET       the keyset of the payments service (add, rotate)`)
	cmd.AddCommand(c.addCredential(), c.rotateCredential(), c.activateCredential(), c.deactivateCredential(), c.listCredentials())
	return cmd
}

// onCredentials is a command on the credentials in payments' store.
func (c *commands) onCredentials(do func(context.Context, *credentials.Service, []string) error) service.Runner {
	return service.OnStore(c.Operator, func(ctx context.Context, _ *cobra.Command, s commandSettings, pool *pgstore.Pool,
		args []string) error {
		sealer, err := sealerOf(s.SecretsKeyset)
		if err != nil {
			return err
		}
		return do(ctx, credentials.New(credentials.Config{Store: postgres.New(pool), Sealer: sealer, Now: time.Now}), args)
	})
}

// given are the flags of what a provider gives. Its secret is no argument: others on the machine can read those.
type given struct{ clientID, secretFile string }

// flags declares what add and rotate have in common.
func (g *given) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&g.clientID, "client-id", "", "the client id that the provider gave")
	cmd.Flags().StringVar(&g.secretFile, "secret-file", "", "a file that holds the secret (default: standard input)")
	service.Need(cmd, "client-id")
}

// maxSecretFile bounds what is read of a secret, in bytes: more is none.
const maxSecretFile = 4096

// values reads the secret from the file or from standard input. A line break at its end, as echo leaves one, is no
// part of it.
func (g *given) values(cmd *cobra.Command) (credentials.Values, error) {
	from := cmd.InOrStdin()
	if g.secretFile != "" {
		file, err := os.Open(g.secretFile)
		if err != nil {
			return credentials.Values{}, fmt.Errorf("--secret-file: %w", err)
		}
		defer file.Close()
		from = file
	}
	secret, err := io.ReadAll(io.LimitReader(from, maxSecretFile))
	if err != nil {
		return credentials.Values{}, fmt.Errorf("the secret cannot be read: %w", err)
	}
	return credentials.Values{ClientID: strings.TrimSpace(g.clientID), Secret: strings.TrimRight(string(secret), "\r\n")}, nil
}

// addCredential adds the active credential of an environment that has none.
func (c *commands) addCredential() *cobra.Command {
	var g given
	var provider, env string
	cmd := &cobra.Command{Use: "add --env ENV --client-id ID < SECRET", Args: cobra.NoArgs,
		Short: "Add the credential that new orders use; the secret is read from standard input or a file"}
	cmd.Flags().StringVar(&provider, "provider", credentials.NicePay, "the provider: "+strings.Join(credentials.Providers(), ", "))
	cmd.Flags().StringVar(&env, "env", "", "the environment: "+strings.Join(credentials.Envs(), " or "))
	g.flags(cmd)
	service.Need(cmd, "env")
	cmd.RunE = c.onCredentials(func(ctx context.Context, s *credentials.Service, _ []string) error {
		v, err := g.values(cmd)
		if err != nil {
			return err
		}
		added, err := s.Add(ctx, provider, credentials.Env(env), v)
		if err != nil {
			return err
		}
		return c.printCredential(cmd, added, "is added")
	})
	return cmd
}

// rotateCredential replaces an active credential. Orders keep the one that they were made with.
func (c *commands) rotateCredential() *cobra.Command {
	var g given
	cmd := &cobra.Command{Use: "rotate ID --client-id ID < SECRET", Args: cobra.ExactArgs(1),
		Short: "Put another credential into the place of an active one, which its orders keep"}
	g.flags(cmd)
	cmd.RunE = c.onCredentials(func(ctx context.Context, s *credentials.Service, args []string) error {
		id, err := credentialID(args[0])
		if err != nil {
			return err
		}
		v, err := g.values(cmd)
		if err != nil {
			return err
		}
		next, err := s.Rotate(ctx, id, v)
		if err != nil {
			return err
		}
		return c.printCredential(cmd, next, "replaces "+args[0])
	})
	return cmd
}

// activateCredential takes back a deactivation or a rotation.
func (c *commands) activateCredential() *cobra.Command {
	cmd := &cobra.Command{Use: "activate ID", Short: "Let new orders use a credential of before", Args: cobra.ExactArgs(1)}
	cmd.RunE = c.onCredentials(func(ctx context.Context, s *credentials.Service, args []string) error {
		id, err := credentialID(args[0])
		if err != nil {
			return err
		}
		changed, err := s.Activate(ctx, id)
		if err != nil {
			return err
		}
		return c.printCredential(cmd, changed, "is active")
	})
	return cmd
}

// deactivateCredential has to be confirmed, because an environment without an active credential makes no order.
func (c *commands) deactivateCredential() *cobra.Command {
	var typed string
	cmd := &cobra.Command{Use: `deactivate ID --confirm "PROVIDER ENV"`, Args: cobra.ExactArgs(1),
		Short: "Leave new orders without this credential; the orders that were made with it keep it"}
	cmd.Flags().StringVar(&typed, "confirm", "", `what it is for, such as "nicepay sandbox": no order can be made then`)
	service.Need(cmd, "confirm")
	cmd.RunE = c.onCredentials(func(ctx context.Context, s *credentials.Service, args []string) error {
		id, err := credentialID(args[0])
		if err != nil {
			return err
		}
		changed, err := s.Deactivate(ctx, id, typed)
		if err != nil {
			return err
		}
		return c.printCredential(cmd, changed, "is not active any more")
	})
	return cmd
}

// listCredentials prints a table, or JSON with --json.
func (c *commands) listCredentials() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List all credentials, newest first; their secrets are not shown", Args: cobra.NoArgs}
	cmd.RunE = c.onCredentials(func(ctx context.Context, s *credentials.Service, _ []string) error {
		list, err := s.List(ctx, credentials.Filter{})
		if err != nil {
			return err
		}
		return service.PrintList(c.Operator, cmd, "credentials", list, newCredentialRecord, "ID\tPROVIDER\tENV\tCLIENT ID\tSTATE\tCREATED\tBY",
			func(one credentials.Credential) []string {
				state := map[bool]string{true: "active", false: "-"}[one.Active]
				return []string{one.ID.String(), one.Provider, string(one.Env), one.ClientIDMask, state, schema.Moment(one.CreatedAt), one.CreatedBy}
			})
	})
	return cmd
}

// credentialID reads the id of a command; E_NOT_FOUND for what is none.
func credentialID(text string) (credentials.ID, error) {
	id, ok := schema.ParseID(text)
	if !ok {
		return 0, fault.New(fault.NotFound, "There is no credential %.20q; `payments credential list` lists them.", text)
	}
	return id, nil
}

// credentialRecord is a credential as --json prints it.
type credentialRecord struct {
	ID        string          `json:"id"`
	Provider  string          `json:"provider"`
	Env       credentials.Env `json:"env"`
	ClientID  string          `json:"client_id"`
	Active    bool            `json:"active"`
	CreatedBy string          `json:"created_by"`
	CreatedAt string          `json:"created_at"`
	UpdatedAt string          `json:"updated_at"`
}

// newCredentialRecord is a credential for --json. It has the masked client id and never the secret.
func newCredentialRecord(c credentials.Credential) credentialRecord {
	return credentialRecord{ID: c.ID.String(), Provider: c.Provider, Env: c.Env, ClientID: c.ClientIDMask, Active: c.Active,
		CreatedBy: c.CreatedBy, CreatedAt: schema.Moment(c.CreatedAt), UpdatedAt: schema.Moment(c.UpdatedAt)}
}

// printCredential says in a sentence, or in JSON, what was done to a credential.
func (c *commands) printCredential(cmd *cobra.Command, changed credentials.Credential, what string) error {
	return c.Print(cmd, newCredentialRecord(changed), "%s (%s, client id %s) %s.\n", changed.ID, changed.Name(), changed.ClientIDMask, what)
}
