package main

// The order of up: check what the caller asked for, install and build, then take the lock of this machine, choose
// ports, start servers, migrate and load, start services, issue keys and users. Only then is dev.env written: who
// reads it finds everything there.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"hub.internal/pkg/inventory"
	"hub.internal/pkg/localserver"
	"hub.internal/scripts/program"
)

// upOptions are what variables of the caller choose.
type upOptions struct {
	source    string // SOURCE: the server that the sample lies on, mariadb or mysql
	sourceDSN string // SOURCE_DSN: a MySQL of one's own instead of the sample, as user:password@tcp(host:port)/database
	discovery string // DISCOVERY: how services find one another, static or consul
	observe   bool   // OBSERVE=1: a collector, Jaeger and Prometheus beside it
}

// optionsOf reads the variables of the caller.
func optionsOf(variable func(string) string) upOptions {
	return upOptions{source: cmp.Or(variable("SOURCE"), sampleMariaDB), sourceDSN: variable("SOURCE_DSN"),
		discovery: cmp.Or(variable("DISCOVERY"), "static"),
		observe:   variable("OBSERVE") == "1"}
}

// up brings everything up, step by step. Each step looks at what is there already, so that
// a second run finds little to do and a failed one can be repeated. HUB_*, OTEL_* and MCP_* variables of the caller reach the services
// for as long as the stack runs; services whose settings or programs have changed are restarted.
func up(ctx context.Context, l layout, o upOptions, p progress) error {
	if o.discovery != "static" && o.discovery != "consul" {
		return fmt.Errorf("DISCOVERY=%s: want static or consul", o.discovery)
	}
	if o.discovery == "consul" {
		if _, err := localserver.ConsulPath(); err != nil {
			return fmt.Errorf("DISCOVERY=consul: %w", err)
		}
	}
	if err := checkSource(ctx, o); err != nil {
		return err
	}
	if err := l.make(); err != nil {
		return err
	}
	lock, err := waitForLock(ctx, l.upLock(), "waiting for another `make up`", p)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := installServers(ctx, l, p); err != nil {
		return err
	}
	if o.sourceDSN == "" && o.source == sampleMySQL {
		if err := fetchServers(ctx, l, p, "for SOURCE=mysql", localserver.SideBySideMySQL); err != nil {
			return fmt.Errorf("SOURCE=mysql: %w", err)
		}
	}
	services, err := inventory.Load(l.root)
	if err != nil {
		return err
	}
	if err := p.step("building programs", func() error { return build(ctx, l, services) }); err != nil {
		return err
	}
	var watching map[string]string
	if o.observe {
		if watching, err = installObservers(ctx, l, p); err != nil {
			return err
		}
	}
	st, err := loadState(l)
	if err != nil {
		return err
	}
	e := environment{layout: l, state: st, options: o, services: services, caller: environMap(os.Environ()), observers: watching}
	if err := bringUp(ctx, e, p); err != nil {
		return err
	}
	summary(p.out, e)
	return nil
}

// bringUp is up once the programs are built.
func bringUp(ctx context.Context, e environment, p progress) error {
	// A port is free until somebody listens on it, so that two stacks that start at the same
	// moment would choose the same ones.
	turn, err := waitForLock(ctx, startLock(), "waiting for another stack on this machine to start", p)
	if err != nil {
		return err
	}
	defer turn.Close()
	c := control{e.layout}
	if err := prepareSupervisor(ctx, c, e, p); err != nil {
		return err
	}
	if err := drawKeysets(ctx, e); err != nil {
		return err
	}
	if err := startServers(ctx, c, e, p); err != nil {
		return err
	}
	if err := startServices(ctx, c, e, p); err != nil {
		return err
	}
	// The service with the pepper of keys is the one that issues them.
	auth := slices.IndexFunc(e.services, func(s service) bool { return s.Has(inventory.Pepper) })
	if auth >= 0 {
		if err := errors.Join(issueKeys(ctx, e), addUsers(ctx, e, e.services[auth])); err != nil {
			return err
		}
	}
	if s, ok := e.withProvider(); ok && auth >= 0 {
		if err := seedPayments(ctx, e, e.services[auth], s); err != nil {
			return err
		}
	}
	return writeFile(e.layout.env(), shellFile(devEnv(e)), 0o600)
}

// waitForLock takes a lock, and tells what it waits for while another process has it.
func waitForLock(ctx context.Context, path, waiting string, p progress) (*os.File, error) {
	lock, err := lockFile(path)
	if !errors.Is(err, errLocked) {
		return lock, err
	}
	err = p.step(waiting, func() error {
		return poll(ctx, nil, func() (bool, error) {
			lock, err = lockFile(path)
			if errors.Is(err, errLocked) {
				return false, nil
			}
			return err == nil, err
		})
	})
	return lock, err
}

// prepareSupervisor makes sure that no supervisor of an older build or one that has hung stands in the
// way, and that every name has a port.
func prepareSupervisor(ctx context.Context, c control, e environment, p progress) error {
	pid, err := c.pid()
	if err != nil {
		return err
	}
	if pid != 0 {
		digest, err := program.Digest(e.layout.bin("stack"))
		if err != nil {
			return err
		}
		now, err := c.status()
		if err != nil {
			return err
		}
		// A supervisor of another build may not understand the plan.
		if now.Digest != digest {
			if err := p.step("stopping everything: the supervisor itself has changed", func() error { return c.stop(ctx) }); err != nil {
				return err
			}
			pid = 0
		}
	}
	names := portNames(e)
	if pid != 0 {
		if err := e.state.addPorts(names); err != nil {
			return err
		}
		return e.state.save()
	}
	// Servers of a supervisor that was killed may still be about to end.
	for _, s := range serverNames(e.options) {
		if err := localserver.Reclaim(ctx, e.layout.data(s)); err != nil {
			return err
		}
	}
	if err := e.state.choosePorts(names, localserver.PortFree); err != nil {
		return err
	}
	return e.state.save()
}

// startServers brings the servers up and what has to be in them before a service starts.
func startServers(ctx context.Context, c control, e environment, p progress) error {
	list, err := serverSpecs(e)
	if err != nil {
		return err
	}
	next := plan{Servers: list}
	// Services that run go on meanwhile, as they are: their old version may run on the new
	// schema (migrations expand first).
	if pid, err := c.pid(); err != nil {
		return err
	} else if pid != 0 {
		var current plan
		if err := readJSON(e.layout.plan(), &current); err != nil {
			return err
		}
		next.Services = current.Services
	}
	var now status
	err = p.step("starting "+strings.Join(serverNames(e.options), ", "), func() (err error) {
		now, err = execute(ctx, c, e, next)
		if err != nil {
			return err
		}
		for _, name := range serverNames(e.options) {
			if s := now.Programs[name]; s.PID == 0 {
				return withLog(fmt.Errorf("%s did not start: %s", name, s.Error), e.layout.log(name))
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	err = p.step("migrating the write store", func() error {
		if err := bootstrapStore(ctx, e, now.Programs["postgres"].Admin); err != nil {
			return err
		}
		return e.stack().Migrate(ctx)
	})
	if err != nil || e.options.sourceDSN != "" {
		return err
	}
	if err := createSample(ctx, e, now.Programs[e.options.source].Admin); err != nil {
		return fmt.Errorf("source database: %w", err)
	}
	if e.state.Samples[e.options.source] {
		return nil
	}
	p.say("loading sample data")
	return loadSample(ctx, e, p)
}

// startServices starts the services, or restarts those that have changed.
func startServices(ctx context.Context, c control, e environment, p progress) error {
	specs, err := serviceSpecs(e)
	if err != nil {
		return err
	}
	names := make([]string, len(specs))
	for i, s := range specs {
		names[i] = s.Name
	}
	list, err := serverSpecs(e)
	if err != nil {
		return err
	}
	return p.step("starting "+strings.Join(names, ", "), func() error {
		if _, err := execute(ctx, c, e, plan{Servers: list, Services: specs}); err != nil {
			return err
		}
		return awaitReady(ctx, c, e)
	})
}

// execute gives the supervisor a new plan. One that hangs is replaced.
func execute(ctx context.Context, c control, e environment, next plan) (status, error) {
	// Saved first: a generation is never used twice, also when this program is killed.
	e.state.Generation++
	next.Generation = e.state.Generation
	if err := e.state.save(); err != nil {
		return status{}, err
	}
	now, err := c.run(ctx, next)
	if errors.Is(err, errUnresponsive) {
		if err := c.kill(ctx); err != nil {
			return status{}, err
		}
		now, err = c.run(ctx, next)
	}
	if err != nil && ctx.Err() == nil {
		return status{}, withLog(err, e.layout.log("supervisor"))
	}
	return now, err
}
