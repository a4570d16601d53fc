// Package discover finds a neighbour's instances by the name of its folder under
// services/, and announces this process where that is needed: Consul, a headless
// Kubernetes service through DNS, or a static list, chosen by one setting, all behind
// go-kit's sd.Instancer. It refuses to balance or call.
package discover

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
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

// What an instance answers at its address, to whoever is about to choose it.
const (
	// AlivePath answers 200 while the process lives.
	AlivePath = "/healthz"
	// ReadyPath answers 200 while it may get calls.
	ReadyPath = "/readyz"
	// LeavingHeader is in the answer of AlivePath once the process has begun to stop: it still takes calls for a
	// moment (HUB_DRAIN_DELAY), so that whoever chooses another one by then loses none.
	LeavingHeader = "Hub-Leaving"
	// ServiceHeader is in the answer of AlivePath and names the service: where a process was killed another one may answer by now, and
	// discovery still lists the address. A release before it has none.
	ServiceHeader = "Hub-Service"
)

const (
	// dnsRefresh is how long a list of instances from DNS is used.
	dnsRefresh = 5 * time.Second
	// announceEvery is how often Announce looks whether the agent still knows this process.
	announceEvery = 2 * time.Second
	// forgetAfter is how long a process that does not live stays in the agent's list, where nobody chooses it.
	forgetAfter = time.Minute
	// agentTimeout bounds a question to the agent: a hung one must not keep a process from starting or stopping.
	agentTimeout = 2 * time.Second
	// watchWait is how long a question to the agent waits for a change. An agent that was made anew counts from a lower index, and
	// shows so only at the end of a wait.
	watchWait = 15 * time.Second
	// consulTag marks Hub's services among all that a Consul agent knows.
	consulTag = "hub"
)

// Config chooses a mode.
type Config struct {
	// Mode is static, consul or dns.
	Mode string
	// Instances is static's list: "auth=10.0.0.1:7000,query=10.0.0.2:7000"; a name may
	// be given more than once.
	Instances string
	// ConsulAddr is the agent's host:port.
	ConsulAddr string
	// ConsulWait is how long a question to the agent waits for a change; 0 means 15 s.
	ConsulWait time.Duration
	// DNSDomain is what follows the service's name: SRV _http._tcp.query.DOMAIN.
	DNSDomain string
	// DNSServices are names of services, because DNS lists none.
	DNSServices []string
	// Resolver asks DNS; nil is the system's.
	Resolver *net.Resolver
	// DNSRefresh is how long an answer of DNS is used; 0 means 5 s.
	DNSRefresh time.Duration
}

// Directory looks services up.
type Directory struct {
	config  Config
	static  map[string][]string
	consul  kitconsul.Client
	agent   *api.Agent
	catalog *api.Catalog
	logger  *slog.Logger
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
		d.config.ConsulWait = cmp.Or(c.ConsulWait, watchWait)
		d.consul, d.agent, d.catalog = bounded{kitconsul.NewClient(client), d.config.ConsulWait}, client.Agent(), client.Catalog()
	case DNS:
		if c.DNSDomain == "" {
			return nil, errors.New("HUB_DNS_DOMAIN is empty")
		}
		if d.config.Resolver == nil {
			d.config.Resolver = net.DefaultResolver
		}
		d.config.DNSRefresh = cmp.Or(c.DNSRefresh, dnsRefresh)
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
		if _, _, err := splitHostPort(addr); !found || service == "" || err != nil {
			return nil, fmt.Errorf("HUB_STATIC: %q is not service=host:port", entry)
		}
		out[service] = append(out[service], addr)
	}
	return out, nil
}

// splitHostPort reads host:port; both are needed.
func splitHostPort(addr string) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(addr)
	if err != nil {
		return "", 0, err
	}
	number, err := strconv.ParseUint(text, 10, 16)
	if err != nil || number == 0 || host == "" {
		return "", 0, fmt.Errorf("%q is not host:port", addr)
	}
	return host, int(number), nil
}

// Watch tells the names of the services that discovery lists, sorted: at once, and in Consul whenever
// they change, until ctx ends. Of Consul's those count that announced themselves as Hub's; static
// discovery and DNS have a list that does not change, and a service on it may come up later.
func (d *Directory) Watch(ctx context.Context, tell func(names []string)) error {
	if d.config.Mode != Consul {
		tell(slices.Sorted(slices.Values(append(slices.Collect(maps.Keys(d.static)), d.config.DNSServices...))))
		<-ctx.Done()
		return nil
	}
	var seen uint64
	var told []string
	for known, first := true, true; ctx.Err() == nil; {
		question, answered := waiting(ctx, &api.QueryOptions{WaitIndex: seen}, d.config.ConsulWait)
		services, meta, err := d.catalog.Services(question)
		answered()
		if ctx.Err() == nil && (err == nil) != known {
			known = err == nil
			d.logger.Warn("list of services", "known", known, "error", err)
		}
		if err != nil {
			select {
			case <-ctx.Done():
			case <-time.After(announceEvery):
			}
			seen = 0
			continue
		}
		if meta.LastIndex < seen {
			seen = 0 // the index went back: an agent that was made anew
			continue
		}
		seen = meta.LastIndex
		maps.DeleteFunc(services, func(_ string, tags []string) bool { return !slices.Contains(tags, consulTag) })
		if names := slices.Sorted(maps.Keys(services)); first || !slices.Equal(names, told) {
			first, told = false, names
			tell(slices.Clone(names))
		}
	}
	return nil
}

// Instancer follows the instances of a service; the caller stops it.
func (d *Directory) Instancer(service string) sd.Instancer {
	logger := kitLogger{d.logger.With("discover", service)}
	switch d.config.Mode {
	case Consul:
		return kitconsul.NewInstancer(d.consul, logger, service, nil, true)
	case DNS:
		return dnssrv.NewInstancerDetailed("_http._tcp."+service+"."+d.config.DNSDomain, time.NewTicker(d.config.DNSRefresh), d.lookup, logger)
	default:
		return sd.FixedInstancer(slices.Clone(d.static[service])) // followers sort it in place
	}
}

// bounded is go-kit's client, whose own questions have no end: the first is awaited by whoever asks for an Instancer.
type bounded struct {
	kitconsul.Client
	wait time.Duration
}

func (c bounded) Service(service, tag string, passingOnly bool, o *api.QueryOptions) ([]*api.ServiceEntry, *api.QueryMeta, error) {
	question, answered := waiting(context.Background(), o, c.wait)
	defer answered()
	return c.Client.Service(service, tag, passingOnly, question)
}

// waiting is a question that waits for a change, and how long its answer is awaited: the agent waits a sixteenth longer at random, and
// does not wait for a change after the index 0.
func waiting(ctx context.Context, o *api.QueryOptions, wait time.Duration) (*api.QueryOptions, context.CancelFunc) {
	within := agentTimeout
	if o.WaitIndex != 0 {
		within += wait + wait/16
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	o.WaitTime = wait
	return o.WithContext(ctx), cancel
}

// lookup is net.LookupSRV with a deadline: the first answer is awaited by whoever asks for an Instancer.
func (d *Directory) lookup(service, proto, name string) (string, []*net.SRV, error) {
	ctx, cancel := context.WithTimeout(context.Background(), dnsRefresh)
	defer cancel()
	return d.config.Resolver.LookupSRV(ctx, service, proto, name)
}

// kitLogger hands go-kit's key-value lines to slog.
type kitLogger struct{ *slog.Logger }

func (l kitLogger) Log(keyvals ...any) error {
	l.Debug("discover", keyvals...)
	return nil
}
