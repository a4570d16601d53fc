package main

// What a service is told comes from three places, the later one winning: localstack.Settings by deploy/services.json,
// adjust for what only a local stack needs, and the variables of whoever ran make up.

import (
	"cmp"
	"net"
	"slices"
	"strings"

	"hub.internal/pkg/inventory"
	"hub.internal/pkg/localserver"
	"hub.internal/pkg/localstack"
)

// Names of the two databases.
const (
	storeDatabase  = "hub"
	sourceDatabase = "marketplace"
)

// environment makes the variables of every service from the state and the options.
type environment struct {
	// state holds what was drawn and chosen, options what the caller asked for.
	layout   layout
	state    *state
	options  upOptions
	services inventory.Inventory
	caller   map[string]string // the variables of whoever ran `make up`
	// observers are the paths of those that run, by name; none without OBSERVE=1.
	observers map[string]string
}

// stack is what package localstack starts the services with.
func (e environment) stack() localstack.Stack {
	s := localstack.Stack{
		Root: e.layout.root, Bin: e.layout.path("bin"), Services: e.services, Processes: e.services.Names(),
		Addr: e.state.addr, OpsAddr: func(process string) string { return e.state.addr(operations(process)) },
		Signing: func(service string) (key, trusted string) {
			k := e.state.signing(service)
			return k.Key, k.Trusted
		},
		Keyset: func(s service) string { return e.state.Secrets[keysetOf(s)] },
		Pepper: e.state.secret("pepper"), StoreURL: e.storeURL, SourceDSN: e.sourceDSN(),
		RedisURL: func(user string) string { return e.redisURL(user, e.redisPassword(user)) },
		MailFrom: "hub@hub.example", ProviderURL: e.providerURL(), PublicURL: e.gatewayURL(), Adjust: e.adjust,
	}
	if e.options.discovery == "consul" {
		s.ConsulAddr = e.state.addr("consul")
	}
	// Whoever names a server of their own also says how to speak to it.
	if e.caller["HUB_SMTP_ADDR"] == "" {
		s.SMTPAddr = e.state.addr(mailSink + "-smtp")
	}
	return s
}

// settings are the variables of one service. What the caller has set wins.
func (e environment) settings(s service) map[string]string { return e.stack().Settings(s, s.Name) }

// adjust adds what only the local stack tells a service, and the caller's own variables.
func (e environment) adjust(s service, env map[string]string) {
	if s.Edge {
		env["HUB_INSECURE_COOKIES"] = "1" // plain HTTP on this machine
	}
	if s.Has(inventory.Mail) {
		// Nobody gets these mails: they may leave at once, after time enough to take a decision back.
		env["HUB_MAIL_FROM_NAME"], env["HUB_SEND_PER_MINUTE"], env["HUB_SEND_DELAY"] = "Hub", "6000", "5s"
		if env["HUB_SMTP_ADDR"] != "" {
			env["HUB_SEND_TIMEOUT"], env["HUB_SEND_RETRY"] = "5s", "1s" // the sink is near, and back within a second
		}
	}
	if e.observers[otelcol] != "" {
		env["OTEL_EXPORTER_OTLP_ENDPOINT"] = "http://" + e.state.addr(otelcol+"-http")
	}
	for name, value := range e.overrides(s) {
		env[name] = value
		if strings.TrimSuffix(name, "_FILE") == "HUB_SOURCE_DSNS" { // in place of the one
			delete(env, "HUB_SOURCE_DSN")
		}
		// Services refuse to be told a setting and a file that holds it.
		if setting, isFile := strings.CutSuffix(name, "_FILE"); isFile {
			delete(env, setting)
		}
	}
}

// overrides are the caller's variables that reach the service.
func (e environment) overrides(s service) map[string]string {
	env := map[string]string{}
	for name, value := range e.caller {
		switch {
		// These are Go's, OpenTelemetry's and the system's own names, which every service knows.
		case strings.HasPrefix(name, "OTEL_"), strings.HasPrefix(name, "MCP_"),
			slices.Contains([]string{"GOMAXPROCS", "GOGC", "GOMEMLIMIT", "GODEBUG", "SSL_CERT_FILE", "SSL_CERT_DIR"}, name):
		case name == "HUB_ADDR", name == "HUB_OPS_ADDR":
			// One address cannot serve all; the one that people mean is the gateway's.
			if !s.Edge {
				continue
			}
		case !strings.HasPrefix(name, "HUB_") || isOutput(name) || isOwn(strings.TrimSuffix(name, "_FILE")):
			continue
		}
		env[name] = value
	}
	return env
}

// isOwn names variables that differ from service to service, or speak to this program.
func isOwn(name string) bool {
	return slices.Contains([]string{"HUB_WRITE_STORE_URL", "HUB_AUDIT_URL", "HUB_MIGRATE_URL", "HUB_ADVERTISE", "HUB_CONSUL",
		"HUB_SIGNING_KEY", "HUB_TRUSTED_KEYS", "HUB_SECRETS_KEYSET"}, name)
}

// storeURL is the write store as a role sees it.
func (e environment) storeURL(role string) string {
	return "postgres://" + role + ":" + e.state.secret(role) + "@" + e.state.addr("postgres") + "/" + storeDatabase + "?sslmode=disable"
}

// redisPassword is that of a service's user of Redis.
func (e environment) redisPassword(user string) string { return e.state.secret("redis " + user) }

// redisURL is Redis as one of its users sees it.
func (e environment) redisURL(user, password string) string {
	return "redis://" + user + ":" + password + "@" + e.state.addr("redis") + "/0"
}

// sourceDSN is the source database as the query service sees it: the caller's own, or the sample.
func (e environment) sourceDSN() string {
	if e.options.sourceDSN != "" {
		return e.options.sourceDSN
	}
	return e.sampleDSN(localserver.SourceReadOnly)
}

// sampleDSN is the sample as one of its two users sees it.
func (e environment) sampleDSN(user string) string {
	return user + ":" + e.state.secret(user) + "@tcp(" + e.state.addr(e.options.source) + ")/" + sourceDatabase
}

// gatewayURL is where a client on this machine reaches the gateway.
func (e environment) gatewayURL() string {
	edge := e.services.Edge()
	addr := cmp.Or(e.overrides(edge)["HUB_ADDR"], e.state.addr(edge.Name))
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "http://" + addr
	}
	// A server that listens everywhere is reached here.
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port)
}

// mailURL is the page of the mail sink.
func (e environment) mailURL() string { return "http://" + e.state.addr(mailSink+"-web") }

// environMap is os.Environ as a map: of a name that is there twice, the last value counts, as for a program.
func environMap(list []string) map[string]string {
	m := map[string]string{}
	for _, v := range list {
		name, value, _ := strings.Cut(v, "=")
		m[name] = value
	}
	return m
}
