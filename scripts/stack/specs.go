package main

// The plan is made here, from the state and the options alone: the same ones make the same plan, and then nothing is
// restarted.

import (
	"os"

	"hub.internal/pkg/inventory"
	"hub.internal/pkg/localserver"
	"hub.internal/pkg/localstack"
	"hub.internal/scripts/program"
)

// portNames is everything that listens, in the order of deploy/services.json.
func portNames(e environment) []string {
	names := []string{}
	for _, s := range e.services {
		for _, name := range e.instances(s) {
			names = append(names, name, operations(name))
		}
	}
	names = append(names, mailSink+"-smtp", mailSink+"-web")
	if _, ok := e.withProvider(); ok {
		names = append(names, pgSim, echo)
	}
	names = append(names, e.observerPorts()...)
	return append(names, serverNames(e.options)...)
}

// operations names the listener of a service for metrics and profiles.
func operations(service string) string { return service + "-ops" }

// serverNames are the servers that this start needs.
// A source of one's own needs none for the sample.
func serverNames(o upOptions) []string {
	names := []string{"postgres", "redis"}
	if o.sourceDSN == "" {
		names = append(names, o.source)
	}
	if o.discovery == "consul" {
		names = append(names, "consul")
	}
	return names
}

// serverSpecs are the servers of the plan, with the ports and passwords of the state.
func serverSpecs(e environment) (specs []serverSpec, err error) {
	users, err := os.ReadFile(e.layout.path("deploy", "redis", "users.acl"))
	if err != nil {
		return nil, err
	}
	for _, name := range serverNames(e.options) {
		spec := serverSpec{Name: name, Port: e.state.Ports[name]}
		if name == "redis" {
			spec.Password, spec.Users = e.state.secret("redis"), localserver.RedisUsers(users, e.redisPassword)
		}
		specs = append(specs, spec)
	}
	return specs, nil
}

// serviceSpecs are the processes of the plan: observers, simulators and Hub's services, each with the digest of
// its program, so that another build restarts it.
func serviceSpecs(e environment) (specs []serviceSpec, err error) {
	if err := writeScrapes(e); err != nil {
		return nil, err
	}
	for _, s := range append(observerSpecs(e), simulators(e)...) {
		if s.Digest, err = program.Digest(s.Path); err != nil {
			return nil, err
		}
		specs = append(specs, s)
	}
	stack := e.stack()
	for _, s := range e.services {
		digest, err := program.Digest(e.layout.bin(s.Name))
		if err != nil {
			return nil, err
		}
		for _, name := range e.instances(s) {
			specs = append(specs, serviceSpec{
				Name: name, Path: e.layout.bin(s.Name), Digest: digest, Args: []string{"serve"},
				Env: localstack.Environ(stack.Settings(s, name)), Layer: layerOf(s),
			})
		}
	}
	return specs, nil
}

// instances are the names of a service's processes. Where Consul knows what runs, the source's reader runs twice, to show
// that one may go.
func (e environment) instances(s service) []string {
	if e.options.discovery == "consul" && s.Has(inventory.Source) {
		return []string{s.Name, s.Name + "-2"}
	}
	return []string{s.Name}
}

// simulators are the programs that stand in for the world. They stop after those who may be calling them.
func simulators(e environment) []serviceSpec {
	of := func(name string, env map[string]string, args ...string) serviceSpec {
		return serviceSpec{Name: name, Path: e.layout.bin(name), Layer: layerServers, Env: localstack.Environ(env), Args: args}
	}
	// The sink is always there; the provider and the receiver only with a service that takes payments.
	list := []serviceSpec{of(mailSink, nil, "--smtp", e.state.addr(mailSink+"-smtp"), "--web", e.state.addr(mailSink+"-web"),
		"--dir", e.layout.mail())}
	if _, ok := e.withProvider(); !ok {
		return list
	}
	return append(list, of(pgSim, e.providerSettings()),
		of(echo, nil, "--addr", e.state.addr(echo), "--secret-file", e.layout.webhookSecret()))
}
