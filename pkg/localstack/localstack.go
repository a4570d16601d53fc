// Package localstack starts Hub's services as processes of this machine. It is the one place that knows what a service of
// deploy/services.json is told: keys, addresses, stores and neighbours. The local stack (scripts/stack) adds supervision, fixed
// ports and state that outlives a start; the benchmark (scripts/bench) adds peers; the suite of processes (services/e2e) adds
// replicas and faults.
//
// It starts no database server: that is package localserver's, whose addresses a Stack is given. A starter goes this way:
//
//	Build(ctx, root, bin, Programs(services))     // compile
//	s := Stack{Services: services, …}             // where the stores are, who listens where, which keys
//	s.Migrate(ctx)                                // each service its own schema, as the owner
//	Serve(s.Program(name), Environ(s.Settings(service, name)), dir, log)
//	Await(ctx, process, "http://"+addr+"/readyz", pause)
//	s.IssueKey(ctx, "load", "bench", Unlimited()...)
//
// A setting that a service requires is added in meet, beside the need that it stands for, or in Settings where every service has it.
package localstack

import (
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"hub.internal/pkg/inventory"
	"hub.internal/pkg/postgres"
)

// Stack is what services are started with. A service is told only what it needs by deploy/services.json, and of only those
// neighbours that it calls; what is empty or nil here, none is told.
type Stack struct {
	Root     string              // of the repository; commands run in it
	Bin      string              // the folder of the built programs, each named after its service
	Services inventory.Inventory // those that exist: each believes the signing keys of all

	// Processes are the names of what runs. A service with one process lends it its name; the others are called query-2, query-3.
	Processes []string
	// Addr is the host:port at which a process takes calls, and OpsAddr that of its metrics and profiles.
	Addr, OpsAddr func(process string) string

	// Signing is the key that a service signs with, and the entry by which the others come to believe it.
	Signing func(service string) (key, trusted string)
	// Keyset seals what a service keeps and has to read again.
	Keyset func(inventory.Service) string
	Pepper string

	StoreURL    func(role string) string // of the write store
	RedisURL    func(user string) string
	SourceDSN   string
	SMTPAddr    string // a server without TLS, such as the mail sink
	MailFrom    string
	ProviderURL string // of a simulated payment provider
	PublicURL   string // where people and apps reach the edge
	ConsulAddr  string // of the agent that services register with, in place of the static list of their neighbours

	// Adjust has the last word about what a service is told.
	Adjust func(service inventory.Service, settings map[string]string)
}

// replica is how the name of a second or later process of a service ends.
var replica = regexp.MustCompile(`-\d+$`)

// ServiceOf is the name of the service that a process is of: gateway-2 is one of gateway's.
func ServiceOf(process string) string { return replica.ReplaceAllString(process, "") }

// Program is the path of a built program.
func (s Stack) Program(name string) string { return filepath.Join(s.Bin, name) }

// Settings are the variables of one process of a service: all of them, for it inherits none.
func (s Stack) Settings(service inventory.Service, process string) map[string]string {
	// Every process of a service signs with the same key.
	key, _ := s.Signing(service.Name)
	env := map[string]string{
		"PATH": "/usr/local/bin:/usr/bin:/bin", "HUB_ADDR": s.Addr(process), "HUB_DISCOVERY": "static", "HUB_STATIC": s.static(service),
		"HUB_SIGNING_KEY": key, "HUB_TRUSTED_KEYS": s.Trusted(),
	}
	if s.OpsAddr != nil {
		env["HUB_OPS_ADDR"] = s.OpsAddr(process)
	}
	if s.ConsulAddr != "" {
		env["HUB_DISCOVERY"], env["HUB_CONSUL_ADDR"] = "consul", s.ConsulAddr
	}
	for _, need := range service.Needs {
		s.meet(need, service, env)
	}
	// A setting that is empty would count as told.
	maps.DeleteFunc(env, func(_, value string) bool { return value == "" })
	if s.Adjust != nil {
		s.Adjust(service, env)
	}
	return env
}

// meet tells a service what one of its needs takes.
func (s Stack) meet(need string, service inventory.Service, env map[string]string) {
	switch need {
	case inventory.Store:
		env["HUB_WRITE_STORE_URL"] = s.StoreURL(service.Role())
	case inventory.Audit:
		env["HUB_AUDIT_URL"] = s.StoreURL(postgres.AuditReader)
	case inventory.Redis:
		env["HUB_REDIS_URL"] = s.RedisURL(service.Role())
	case inventory.Source:
		env["HUB_SOURCE_DSN"] = s.SourceDSN
	case inventory.Pepper:
		env["HUB_KEY_PEPPER"] = s.Pepper
	case inventory.Keyset:
		if s.Keyset != nil {
			env["HUB_SECRETS_KEYSET"] = s.Keyset(service)
		}
	case inventory.Links:
		env["HUB_PUBLIC_URL"] = s.PublicURL
	case inventory.Catalog:
		env["HUB_CATALOG"] = filepath.Join(s.Root, "deploy", "catalog.json")
	case inventory.Mail:
		env["HUB_MAIL_FROM"] = s.MailFrom
		if s.SMTPAddr != "" {
			env["HUB_SMTP_ADDR"], env["HUB_SMTP_TLS"] = s.SMTPAddr, "none"
		}
	case inventory.Provider:
		if s.ProviderURL != "" {
			env["HUB_PAY_ENV"], env["HUB_PG_BASE_URL"] = "sandbox", s.ProviderURL
			// The receivers of this machine's apps are on this machine.
			env["HUB_NOTIFY_ALLOW_CIDRS"], env["HUB_NOTIFY_ALLOW_HTTP"] = "127.0.0.0/8,::1/128", "true"
		}
	}
}

// Trusted lists the public keys of all services, as HUB_TRUSTED_KEYS wants them.
func (s Stack) Trusted() string {
	entries := make([]string, len(s.Services))
	for i, service := range s.Services {
		_, entries[i] = s.Signing(service.Name)
	}
	return strings.Join(entries, " ")
}

// static lists the processes of the neighbours that a service calls, and of no others: what it calls beside them it does not find.
func (s Stack) static(service inventory.Service) string {
	var list []string
	for _, process := range s.Processes {
		if neighbour := ServiceOf(process); slices.Contains(service.Calls, neighbour) {
			list = append(list, neighbour+"="+s.Addr(process))
		}
	}
	return strings.Join(list, ",")
}

// Environ is a map of settings in the form of os.Environ, in a fixed order.
func Environ(settings map[string]string) []string {
	list := make([]string, 0, len(settings))
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		list = append(list, name+"="+settings[name])
	}
	return list
}
