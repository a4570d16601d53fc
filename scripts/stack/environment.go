package main

import (
	"cmp"
	"maps"
	"net"
	"slices"
	"strings"

	"hub.internal/pkg/inventory"
	"hub.internal/pkg/localserver"
	"hub.internal/pkg/postgres"
)

// Names of the two databases.
const (
	storeDatabase  = "hub"
	sourceDatabase = "marketplace"
)

// environment makes the variables of every service from the state and the options.
type environment struct {
	layout   layout
	state    *state
	options  upOptions
	services inventory.Inventory
	caller   map[string]string // the variables of whoever ran `make up`
	// observers are the paths of those that run, by name; none without OBSERVE=1.
	observers map[string]string
}

// settings are the variables of one service. What the caller has set wins.
func (e environment) settings(s service) map[string]string {
	env := map[string]string{
		"HUB_ADDR":         e.state.addr(s.Name),
		"HUB_OPS_ADDR":     e.state.addr(operations(s.Name)),
		"HUB_DISCOVERY":    e.options.discovery,
		"HUB_STATIC":       e.static(s),
		"HUB_SIGNING_KEY":  e.state.signing(s.Name).Key,
		"HUB_TRUSTED_KEYS": e.trusted(),
		"PATH":             "/usr/local/bin:/usr/bin:/bin",
	}
	if e.options.discovery == "consul" {
		env["HUB_CONSUL_ADDR"] = e.state.addr("consul")
	}
	if s.Has(inventory.Store) {
		env["HUB_WRITE_STORE_URL"] = e.storeURL(s.Role())
	}
	if s.Has(inventory.Redis) {
		env["HUB_REDIS_URL"] = e.redisURL(s.Role(), e.redisPassword(s.Role()))
	}
	if s.Has(inventory.Source) {
		env["HUB_SOURCE_DSN"] = e.sourceDSN()
	}
	if s.Has(inventory.Audit) {
		env["HUB_AUDIT_URL"] = e.storeURL(postgres.AuditReader)
	}
	if s.Has(inventory.Pepper) {
		env["HUB_KEY_PEPPER"] = e.state.secret("pepper")
	}
	if s.Has(inventory.Keyset) {
		env["HUB_SECRETS_KEYSET"] = e.state.Secrets[keysetOf(s)]
	}
	if s.Has(inventory.Provider) {
		env["HUB_PAY_ENV"], env["HUB_PG_BASE_URL"] = "sandbox", e.providerURL()
		// The receivers of this machine's apps are on this machine.
		env["HUB_NOTIFY_ALLOW_CIDRS"], env["HUB_NOTIFY_ALLOW_HTTP"] = "127.0.0.0/8,::1/128", "true"
	}
	if s.Has(inventory.Links) {
		env["HUB_PUBLIC_URL"] = e.gatewayURL()
	}
	if s.Has(inventory.Catalog) {
		env["HUB_CATALOG"] = e.layout.path("deploy", "catalog.json")
	}
	if s.Edge {
		env["HUB_INSECURE_COOKIES"] = "1" // plain HTTP on this machine
	}
	if s.Has(inventory.Mail) {
		env["HUB_MAIL_FROM"], env["HUB_MAIL_FROM_NAME"] = "hub@hub.example", "Hub"
		env["HUB_SEND_PER_MINUTE"], env["HUB_SEND_DELAY"] = "6000", "5s"
		// Whoever names a server of their own also says how to speak to it.
		if e.caller["HUB_SMTP_ADDR"] == "" {
			env["HUB_SMTP_ADDR"], env["HUB_SMTP_TLS"] = e.state.addr(mailSink+"-smtp"), "none"
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
	return env
}

// overrides are the caller's variables that reach the service.
func (e environment) overrides(s service) map[string]string {
	env := map[string]string{}
	for name, value := range e.caller {
		switch {
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

// trusted lists the public keys of all services.
func (e environment) trusted() string {
	var list []string
	for _, s := range e.services {
		list = append(list, e.state.signing(s.Name).Trusted)
	}
	return strings.Join(list, " ")
}

// static lists the neighbours that a service calls, and no others: what it calls beside them it
// does not find.
func (e environment) static(s service) string {
	var list []string
	for _, other := range e.services {
		if slices.Contains(s.Calls, other.Name) {
			list = append(list, other.Name+"="+e.state.addr(other.Name))
		}
	}
	return strings.Join(list, ",")
}

func (e environment) storeURL(role string) string {
	return "postgres://" + role + ":" + e.state.secret(role) + "@" + e.state.addr("postgres") + "/" + storeDatabase + "?sslmode=disable"
}

// redisPassword is that of a service's user of Redis.
func (e environment) redisPassword(user string) string { return e.state.secret("redis " + user) }

func (e environment) redisURL(user, password string) string {
	return "redis://" + user + ":" + password + "@" + e.state.addr("redis") + "/0"
}

func (e environment) sourceDSN() string {
	if e.options.sourceDSN != "" {
		return e.options.sourceDSN
	}
	return e.sampleDSN(localserver.SourceReadOnly)
}

func (e environment) sampleDSN(user string) string {
	return user + ":" + e.state.secret(user) + "@tcp(" + e.state.addr("mariadb") + ")/" + sourceDatabase
}

// gatewayURL is where a client on this machine reaches the gateway.
func (e environment) gatewayURL() string {
	edge := e.services.Edge()
	addr := cmp.Or(e.overrides(edge)["HUB_ADDR"], e.state.addr(edge.Name))
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "http://" + addr
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port)
}

// mailURL is the page of the mail sink.
func (e environment) mailURL() string { return "http://" + e.state.addr(mailSink+"-web") }

// environ is the settings in the form of os.Environ, in a fixed order.
func environ(settings map[string]string) []string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		list = append(list, name+"="+settings[name])
	}
	return list
}

// environMap is the opposite.
func environMap(list []string) map[string]string {
	m := map[string]string{}
	for _, v := range list {
		name, value, _ := strings.Cut(v, "=")
		m[name] = value
	}
	return m
}
