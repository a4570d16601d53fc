// Package discover finds a neighbour's instances by the name of its folder under
// services/, and registers this process where that is needed: Consul, a headless
// Kubernetes service through DNS, or a static list, chosen by one setting, all behind
// go-kit's sd.Instancer and sd.Registrar. It refuses to balance or call.
package discover

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/go-kit/kit/sd"
	kitconsul "github.com/go-kit/kit/sd/consul"
	"github.com/go-kit/kit/sd/dnssrv"
	"github.com/hashicorp/consul/api"
)

// Modes of discovery.
const (
	Static = "static"
	Consul = "consul"
	DNS    = "dns"
)

// dnsRefresh is how long a list of instances from DNS is used.
const dnsRefresh = 5 * time.Second

// Config chooses a mode.
type Config struct {
	// Mode is static, consul or dns.
	Mode string
	// Instances is static's list: "auth=10.0.0.1:7000,query=10.0.0.2:7000"; a name may
	// be given more than once.
	Instances string
	// ConsulAddr is the agent's host:port.
	ConsulAddr string
	// DNSDomain is what follows the service's name: SRV _http._tcp.query.DOMAIN.
	DNSDomain string
}

// Directory looks services up.
type Directory struct {
	config Config
	static map[string][]string
	consul kitconsul.Client
	agent  *api.Agent
	logger *slog.Logger
}

// Open checks the configuration; it reaches for no server yet.
func Open(c Config, logger *slog.Logger) (*Directory, error) {
	d := &Directory{config: c, logger: logger}
	switch c.Mode {
	case Static:
		static, err := parse(c.Instances)
		if err != nil {
			return nil, err
		}
		d.static = static
	case Consul:
		client, err := api.NewClient(&api.Config{Address: c.ConsulAddr})
		if err != nil {
			return nil, fmt.Errorf("HUB_CONSUL_ADDR: %w", err)
		}
		d.consul, d.agent = kitconsul.NewClient(client), client.Agent()
	case DNS:
		if c.DNSDomain == "" {
			return nil, fmt.Errorf("HUB_DNS_DOMAIN is empty")
		}
	default:
		return nil, fmt.Errorf("HUB_DISCOVERY is %q; it must be static, consul or dns", c.Mode)
	}
	return d, nil
}

func parse(list string) (map[string][]string, error) {
	out := map[string][]string{}
	for _, entry := range strings.Split(list, ",") {
		if entry = strings.TrimSpace(entry); entry == "" {
			continue
		}
		service, addr, found := strings.Cut(entry, "=")
		if _, _, err := net.SplitHostPort(addr); !found || err != nil {
			return nil, fmt.Errorf("HUB_STATIC: %q is not service=host:port", entry)
		}
		out[service] = append(out[service], addr)
	}
	return out, nil
}

// Services lists the names that static discovery knows; the other modes answer nil.
func (d *Directory) Services() []string {
	names := make([]string, 0, len(d.static))
	for name := range d.static {
		names = append(names, name)
	}
	return names
}

// Instancer follows the instances of a service; the caller stops it.
func (d *Directory) Instancer(service string) sd.Instancer {
	logger := kitLogger{d.logger.With("discover", service)}
	switch d.config.Mode {
	case Consul:
		return kitconsul.NewInstancer(d.consul, logger, service, nil, true)
	case DNS:
		return dnssrv.NewInstancer("_http._tcp."+service+"."+d.config.DNSDomain, dnsRefresh, logger)
	default:
		return sd.FixedInstancer(d.static[service])
	}
}

// Registrar announces this process at addr (host:port). Only Consul needs that; the
// other modes answer one that does nothing.
func (d *Directory) Registrar(service, addr string) (sd.Registrar, error) {
	if d.config.Mode != Consul {
		return silent{}, nil
	}
	host, portText, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("HUB_ADVERTISE: %w", err)
	}
	port, err := strconv.Atoi(portText)
	if err != nil {
		return nil, fmt.Errorf("HUB_ADVERTISE: port %q: %w", portText, err)
	}
	return kitconsul.NewRegistrar(d.consul, &api.AgentServiceRegistration{
		ID: instanceID(service, addr), Name: service, Address: host, Port: port,
		Check: &api.AgentServiceCheck{HTTP: "http://" + addr + "/healthz", Interval: "1s", Timeout: "2s", DeregisterCriticalServiceAfter: "1m", Status: "passing"},
	}, kitLogger{d.logger}), nil
}

// announceEvery is how often Announce looks whether the agent still knows this process.
const announceEvery = 2 * time.Second

// Announce keeps this process registered at addr (host:port) until ctx ends, and withdraws
// it then: an agent that starts later, or forgets, is told again. Only Consul needs that.
func (d *Directory) Announce(ctx context.Context, service, addr string) error {
	if d.config.Mode != Consul {
		return nil
	}
	registrar, err := d.Registrar(service, addr)
	if err != nil {
		return err
	}
	tick := time.NewTicker(announceEvery)
	defer tick.Stop()
	for {
		if _, _, err := d.agent.Service(instanceID(service, addr), (&api.QueryOptions{}).WithContext(ctx)); err != nil && ctx.Err() == nil {
			registrar.Register()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			registrar.Deregister()
			return nil
		}
	}
}

// instanceID names one instance of a service to the agent.
func instanceID(service, addr string) string {
	return service + "-" + strings.NewReplacer(":", "-", ".", "-").Replace(addr)
}

type silent struct{}

func (silent) Register()   {}
func (silent) Deregister() {}

// kitLogger hands go-kit's key-value lines to slog.
type kitLogger struct{ *slog.Logger }

func (l kitLogger) Log(keyvals ...any) error {
	l.Debug("discover", keyvals...)
	return nil
}
