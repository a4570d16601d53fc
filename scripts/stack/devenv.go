package main

// dev.env is the contract between the stack and everything that talks to it: people's shells, examples in documents,
// tests.

import (
	"slices"
	"strings"

	"hub.internal/pkg/localserver"
)

// outputs are the variables of dev.env. They are never taken from the caller: a shell that
// has read an older dev.env would otherwise point new services at old servers.
var outputs = []string{
	"HUB_URL", "HUB_API_KEY", "HUB_API_KEY_READONLY",
	"HUB_SERVICE_CODE", "HUB_SERVICE_SECRET", "HUB_WEBHOOK_SECRET", "HUB_LINKED_USER",
	"HUB_REVIEWER_EMAIL", "HUB_REVIEWER_PASSWORD", "HUB_ADMIN_EMAIL", "HUB_ADMIN_PASSWORD",
	"HUB_SOURCE_DSN", "HUB_SOURCE_ADMIN_DSN", "HUB_WRITE_STORE_URL", "HUB_REDIS_URL",
	"HUB_MAIL_DIR", "HUB_PGSIM_URL", "HUB_ECHO_URL", "HUB_PIDS",
}

// isOutput tells whether dev.env holds the variable.
func isOutput(name string) bool { return slices.Contains(outputs, name) }

// devEnv are the values of dev.env that this checkout has; what belongs to services that
// are not there is left out.
func devEnv(e environment) map[string]string {
	values := map[string]string{
		"HUB_URL":             e.gatewayURL(),
		"HUB_SOURCE_DSN":      e.sourceDSN(),
		"HUB_WRITE_STORE_URL": e.storeURL("hub"),
		"HUB_REDIS_URL":       e.redisURL(localserver.RedisOperator, e.state.secret("redis")),
		"HUB_MAIL_DIR":        e.layout.mail(),
		"HUB_PIDS":            e.layout.pids(),
	}
	if e.options.sourceDSN == "" {
		values["HUB_SOURCE_ADMIN_DSN"] = e.sampleDSN(ownerOfSample)
	}
	for _, k := range devKeys() {
		if issued, ok := e.state.Keys[k.name]; ok {
			values[k.variable] = issued.Key
		}
	}
	for _, u := range devUsers {
		values[u.variable+"_EMAIL"], values[u.variable+"_PASSWORD"] = u.email, userPassword(e, u.name)
	}
	if _, ok := e.withProvider(); ok {
		values["HUB_SERVICE_CODE"], values["HUB_LINKED_USER"] = devApp, linkedUser
		values["HUB_SERVICE_SECRET"], values["HUB_WEBHOOK_SECRET"] = e.state.App.Secret, e.state.App.WebhookSecret
		values["HUB_PGSIM_URL"], values["HUB_ECHO_URL"] = e.providerURL(), e.echoURL()
	}
	return values
}

// shellFile is the values as assignments that a POSIX shell reads. They are exported, so
// that `. .hub/dev.env` is enough for the programs started from that shell.
// Values are in single quotes, in which a shell reads nothing: a password may have any character.
func shellFile(values map[string]string) []byte {
	var b strings.Builder
	b.WriteString("# Written by `make up`; for development only. Use: . .hub/dev.env\n")
	for _, name := range outputs {
		if v, ok := values[name]; ok {
			b.WriteString("export " + name + "='" + strings.ReplaceAll(v, "'", `'\''`) + "'\n")
		}
	}
	return []byte(b.String())
}
