package discover

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/consul/api"
)

// Announce keeps this process registered at addr (host:port) until ctx ends, and withdraws
// it then: an agent that starts later, or forgets, is told again. Only Consul needs that. The
// process gets calls from when it first answers that it is ready, and while it does.
//
// An addr of all interfaces, such as 0.0.0.0:8080, is no place to reach anybody at: announced is
// then the address that this machine has towards the agent, so that a container needs no setting.
func (d *Directory) Announce(ctx context.Context, service, addr string) error {
	if d.config.Mode != Consul {
		return nil
	}
	host, port, err := splitHostPort(addr)
	if err != nil {
		return fmt.Errorf("HUB_ADVERTISE: %w", err)
	}
	logger := d.logger.With("discover", service, "addr", addr)
	tick := time.NewTicker(announceEvery)
	defer tick.Stop()
	var r *api.AgentServiceRegistration // nil while it is not known where we are
	for known := true; ; {
		if r == nil {
			var here string
			if here, err = d.reached(ctx, host); err == nil {
				r = registration(service, here, port)
			}
		}
		if r != nil {
			err = d.register(ctx, r)
		}
		if ctx.Err() == nil && (err == nil) != known { // told once, not every two seconds
			known = err == nil
			logger.Warn("announce", "known", known, "error", err)
		}
		select {
		case <-tick.C:
			continue
		case <-ctx.Done():
		}
		if r != nil {
			d.withdraw(ctx, r, func(err error) { logger.Warn("withdraw", "error", err) })
		}
		return nil
	}
}

// registration has two checks, because an agent takes from its list what has failed one for long:
// a process that waits for its store is not ready, and yet has not gone. Until it has answered that it
// is ready, the first check being for that, it counts as not ready, so that no call reaches it before its time.
// An agent's check compares no header: where a process was killed and one of another service answers, the address stays
// on the list, and whoever calls (pkg/remote) passes over it.
func registration(service, host string, port int) *api.AgentServiceRegistration {
	addr := net.JoinHostPort(host, strconv.Itoa(port))
	return &api.AgentServiceRegistration{
		ID:   service + "-" + strings.NewReplacer(":", "-", ".", "-").Replace(addr),
		Name: service, Tags: []string{consulTag}, Address: host, Port: port,
		Checks: api.AgentServiceChecks{
			{Name: "ready", HTTP: "http://" + addr + ReadyPath, Interval: "1s", Timeout: "3s"},
			{Name: "alive", HTTP: "http://" + addr + AlivePath, Interval: "5s", Timeout: "2s", Status: api.HealthPassing,
				DeregisterCriticalServiceAfter: forgetAfter.String()},
		},
	}
}

// reached is where others reach this machine when it listens at host.
func (d *Directory) reached(ctx context.Context, host string) (string, error) {
	if ip, err := netip.ParseAddr(host); err != nil || !ip.IsUnspecified() {
		return host, nil
	}
	ctx, cancel := context.WithTimeout(ctx, agentTimeout)
	defer cancel()
	// UDP: the system chooses a route and an address, and nothing is sent.
	conn, err := new(net.Dialer).DialContext(ctx, "udp", d.config.ConsulAddr)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	here, _, err := net.SplitHostPort(conn.LocalAddr().String())
	return here, err
}

// register tells the agent of a process that it does not know.
func (d *Directory) register(ctx context.Context, r *api.AgentServiceRegistration) error {
	ctx, cancel := context.WithTimeout(ctx, agentTimeout)
	defer cancel()
	if _, _, err := d.agent.Service(r.ID, (&api.QueryOptions{}).WithContext(ctx)); err == nil {
		return nil
	}
	// What the agent will find out within a second is told at once, so that an agent that forgets costs no calls.
	if r.Checks[0].Status = api.HealthCritical; isReady(ctx, r.Checks[0].HTTP) {
		r.Checks[0].Status = api.HealthPassing
	}
	return d.agent.ServiceRegisterOpts(r, api.ServiceRegisterOpts{}.WithContext(ctx))
}

// isReady asks this process as the agent will.
func isReady(ctx context.Context, url string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	_ = response.Body.Close() // nothing of it is wanted
	return response.StatusCode == http.StatusOK
}

// withdraw takes a process from the agent's list, although ctx has ended.
func (d *Directory) withdraw(ctx context.Context, r *api.AgentServiceRegistration, failed func(error)) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), agentTimeout)
	defer cancel()
	if err := d.agent.ServiceDeregisterOpts(r.ID, (&api.QueryOptions{}).WithContext(ctx)); err != nil {
		failed(err)
	}
}
