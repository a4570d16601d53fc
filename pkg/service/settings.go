// Package service is the shell of every service's program: its command line (serve, migrate, doctor, health,
// manifest), the settings that each has, and a Host that owns keys, the write store, the audit log,
// neighbours, listeners, slow clients, memory, health, readiness, metrics and the ordered stop (graceful shutdown). A
// service adds its domain in one build function. It refuses to be a container: parts are built in a
// straight line and handed over.
package service

import (
	"cmp"
	"fmt"
	"log/slog"
	"time"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/config"
	"hub.internal/pkg/discover"
)

// Settings are those that every service has.
type Settings struct {
	Addr string `env:"HUB_ADDR" envDefault:"127.0.0.1:0"`
	// OpsAddr is where /metrics and /debug/pprof answer, and nothing else: they ask nobody who
	// they are. By default only this machine reaches them, at a port that the log names; "off"
	// serves none.
	OpsAddr      string        `env:"HUB_OPS_ADDR" envDefault:"127.0.0.1:0"`
	LogLevel     slog.Level    `env:"HUB_LOG_LEVEL" envDefault:"info"`
	DrainTimeout time.Duration `env:"HUB_DRAIN_TIMEOUT" envDefault:"25s"`
	// DrainDelay is how long a process that stops still takes calls, while it says that it leaves: neighbours look four
	// times a second (pkg/remote), load balancers less often.
	DrainDelay time.Duration `env:"HUB_DRAIN_DELAY" envDefault:"1s"`
	// SigningKey is what this process signs with, TrustedKeys whom it believes.
	SigningKey      caller.SigningKey  `env:"HUB_SIGNING_KEY,required,notEmpty"`
	TrustedKeys     caller.TrustedKeys `env:"HUB_TRUSTED_KEYS,required,notEmpty"`
	OTLPEndpoint    string             `env:"OTEL_EXPORTER_OTLP_ENDPOINT"`
	TraceRatio      float64            `env:"HUB_TRACE_RATIO" envDefault:"1"`
	Discovery       string             `env:"HUB_DISCOVERY" envDefault:"static"`
	StaticInstances string             `env:"HUB_STATIC"`
	ConsulAddr      string             `env:"HUB_CONSUL_ADDR" envDefault:"127.0.0.1:8500"`
	DNSDomain       string             `env:"HUB_DNS_DOMAIN" envDefault:"hub.svc.cluster.local"`
	// DNSServices are names for the edge, because DNS lists none: services beside those of its catalog.
	DNSServices []string `env:"HUB_DNS_SERVICES"`
	// StallTimeout is how long a peer may keep an answer, or its own request's body, waiting
	// beyond what LeastRate takes; LeastRate is in a second.
	StallTimeout time.Duration `env:"HUB_STALL_TIMEOUT" envDefault:"20s"`
	LeastRate    config.Bytes  `env:"HUB_LEAST_RATE" envDefault:"16KiB"`
	// MemoryLimit is what the process may have in all; 0 is what its container may.
	MemoryLimit config.Bytes `env:"HUB_MEMORY_LIMIT"`
	// BodyBytes is what the bodies of requests may take at once, and half of it those of one
	// caller; 0 is a quarter of the memory limit, 256 MiB where there is none.
	BodyBytes config.Bytes `env:"HUB_BODY_BYTES"`
	// Connections bounds those to Addr, and NetworkConnections those of one client network; 0 is what memory and descriptors
	// allow (pkg/service/README.md says how much), and a share of that.
	Connections        int `env:"HUB_CONNECTIONS"`
	NetworkConnections int `env:"HUB_NETWORK_CONNECTIONS"`
	// Advertise is the host:port that neighbours reach this process at; empty means Addr.
	Advertise string `env:"HUB_ADVERTISE"`
	// WriteStoreURL names the service's own role, never the owner.
	WriteStoreURL config.Secret `env:"HUB_WRITE_STORE_URL,required,notEmpty"`
}

func (s Settings) pace() pace { return pace{stall: s.StallTimeout, rate: int64(s.LeastRate)} }

// StopsWithin is how long the process takes at most from SIGTERM to its end: whoever runs it kills it no sooner.
func (s Settings) StopsWithin() time.Duration {
	return s.DrainDelay + s.DrainTimeout + min(closeTimeout, s.DrainTimeout) + closeTimeout
}

// network is how many connections one network may have: what the settings say, else this part of all.
func (s Settings) network(all, part int) int { return cmp.Or(s.NetworkConnections, all/part) }

// check judges what the types of the settings do not.
func (s Settings) check() error {
	if s.StallTimeout <= 0 || s.LeastRate <= 0 {
		return fmt.Errorf("configuration: HUB_STALL_TIMEOUT and HUB_LEAST_RATE have to be positive, not %s and %s", s.StallTimeout, s.LeastRate)
	}
	if s.Connections < 0 || s.NetworkConnections < 0 {
		return fmt.Errorf("configuration: HUB_CONNECTIONS and HUB_NETWORK_CONNECTIONS have to be positive, or 0 for what fits, not %d and %d",
			s.Connections, s.NetworkConnections)
	}
	return nil
}

// directory is the discovery part of the settings.
func (s Settings) directory() discover.Config {
	return discover.Config{Mode: s.Discovery, Instances: s.StaticInstances, ConsulAddr: s.ConsulAddr,
		DNSDomain: s.DNSDomain, DNSServices: s.DNSServices}
}

// common is a struct that embeds Settings.
type common interface{ settings() Settings }

func (s Settings) settings() Settings { return s }
