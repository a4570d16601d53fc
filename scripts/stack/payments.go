package main

// Payments need four things from outside: a provider, an app with secrets, a user who has linked an account, and a
// receiver of notifications. All four are simulated or made here, through the commands that an operator would use.

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"hub.internal/pkg/inventory"
	"hub.internal/pkg/localstack"
)

const (
	// devApp is the code of the local stack's Connected App, linkedUser its user who has linked an account.
	devApp     = "hub-dev"
	linkedUser = "customer-1"
	appScopes  = "pay:read,pay:write,pay:refund"
	// simClient is what the simulated provider knows Hub by.
	simClient = "pgsim-local"
)

// withProvider is the service that takes payments, if there is one.
func (e environment) withProvider() (service, bool) {
	i := slices.IndexFunc(e.services, func(s service) bool { return s.Has(inventory.Provider) })
	if i < 0 {
		return service{}, false
	}
	return e.services[i], true
}

// providerURL is where the simulated provider answers, echoURL where the app's receiver does.
func (e environment) providerURL() string { return "http://" + e.state.addr(pgSim) }
func (e environment) echoURL() string     { return "http://" + e.state.addr(echo) }

// providerSettings are the variables of the simulated provider.
func (e environment) providerSettings() map[string]string {
	return map[string]string{
		"HUB_PGSIM_ADDR": e.state.addr(pgSim), "HUB_PGSIM_PUBLIC_URL": e.providerURL(), "HUB_PGSIM_STATE": e.layout.provider(),
		"HUB_PGSIM_CLIENT_ID": simClient, "HUB_PGSIM_SECRET": e.state.secret(pgSim),
		"HUB_PGSIM_WEBHOOK_URL": e.gatewayURL() + "/v1/pay/webhooks/nicepay",
		// Whoever is at this machine plays payer and bank.
		"HUB_PGSIM_OPEN_CONTROL": "true",
	}
}

// standInURLs answer once the programs are there that payments needs.
func (e environment) standInURLs() []string {
	if _, ok := e.withProvider(); !ok {
		return nil
	}
	return []string{e.providerURL() + "/_health", e.echoURL() + "/healthz"}
}

// seedPayments makes what a first payment needs and is missing, through the services' own commands: the provider's
// credential, an app with secrets, and a user of it who has linked an account.
// Each step finds out what is there already: a second run changes nothing.
func seedPayments(ctx context.Context, e environment, auth, payments service) error {
	if err := addCredential(ctx, e, payments); err != nil {
		return err
	}
	if err := addApp(ctx, e, auth); err != nil {
		return err
	}
	if err := writeFile(e.layout.webhookSecret(), []byte(e.state.App.WebhookSecret+"\n"), 0o600); err != nil {
		return err
	}
	_, err := run(ctx, e, auth, "", "link", "add", "--app", devApp, "--external-user", linkedUser, "--user", adminEmail, "--scopes", appScopes)
	return err
}

// ask reads what a command prints as JSON.
func ask(ctx context.Context, e environment, s service, into any, args ...string) error {
	out, err := run(ctx, e, s, "", args...)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(out, into); err != nil {
		return fmt.Errorf("%s %s answered no JSON: %w", s.Name, strings.Join(args, " "), err)
	}
	return nil
}

// addCredential gives payments what the simulated provider knows it by, unless the caller has named another provider.
func addCredential(ctx context.Context, e environment, payments service) error {
	if e.settings(payments)["HUB_PG_BASE_URL"] != e.providerURL() {
		return nil
	}
	var listed struct {
		Credentials []struct {
			Env    string
			Active bool
		}
	}
	if err := ask(ctx, e, payments, &listed, "credential", "list", "--json"); err != nil {
		return err
	}
	for _, c := range listed.Credentials {
		if c.Active && c.Env == "sandbox" {
			return nil
		}
	}
	_, err := run(ctx, e, payments, e.state.secret(pgSim)+"\n", "credential", "add", "--env", "sandbox", "--client-id", simClient)
	return err
}

// addApp creates the app, lets browsers be sent back to where the echo is now, and issues its secrets. An app whose
// secrets are lost gets others.
func addApp(ctx context.Context, e environment, auth service) error {
	var listed struct {
		Apps []struct {
			Code         string   `json:"service_code"`
			RedirectURLs []string `json:"redirect_urls"`
			HasSecret    bool     `json:"has_secret"`
		}
	}
	if err := ask(ctx, e, auth, &listed, "app", "list", "--json"); err != nil {
		return err
	}
	back, hasSecret := e.echoURL()+"/return", false
	// nil is an app that is as it should be.
	change := append([]string{"--name", "Local shop", "--scopes", appScopes, "--redirect-url", back}, localstack.Unlimited()...)
	for _, a := range listed.Apps {
		if a.Code != devApp {
			continue
		}
		if change, hasSecret = nil, a.HasSecret; !slices.Contains(a.RedirectURLs, back) {
			change = []string{"--redirect-url", back}
		}
	}
	if change != nil {
		if _, err := run(ctx, e, auth, "", append([]string{"app", "put", devApp}, change...)...); err != nil {
			return err
		}
	}
	if e.state.App.Secret != "" {
		return nil
	}
	return issueSecrets(ctx, e, auth, hasSecret)
}

// issuedSecret is what auth answers when it issues an app's secrets; the second one signs notifications.
type issuedSecret struct {
	Secret  string
	Webhook *issuedSecret
}

// issueSecrets issues the app's secrets, or others where it has some whose values are lost, and keeps them in the
// state.
func issueSecrets(ctx context.Context, e environment, auth service, again bool) error {
	var issued issuedSecret
	if again {
		issued.Webhook = &issuedSecret{}
		if err := ask(ctx, e, auth, &issued, "app", "rotate-secret", devApp, "--overlap", "0", "--json"); err != nil {
			return err
		}
		if err := ask(ctx, e, auth, &issued.Webhook, "app", "rotate-webhook-secret", devApp, "--json"); err != nil {
			return err
		}
	} else if err := ask(ctx, e, auth, &issued, "app", "issue-secret", devApp, "--json"); err != nil {
		return err
	}
	if issued.Secret == "" || issued.Webhook == nil || issued.Webhook.Secret == "" {
		return fmt.Errorf("auth app issue-secret %s answered no secrets", devApp)
	}
	e.state.App = appSecrets{Secret: issued.Secret, WebhookSecret: issued.Webhook.Secret}
	return e.state.save()
}
