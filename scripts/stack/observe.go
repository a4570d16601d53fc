package main

// With OBSERVE=1 a collector, Jaeger and Prometheus run beside the services, from modules of their own, so that their
// dependencies are in nobody's go.mod. All is optional: the stack works without any.

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"hub.internal/pkg/localstack"
)

// The programs that watch the local stack with OBSERVE=1.
const (
	otelcol    = "otelcol"    // takes traces from services
	jaeger     = "jaeger"     // keeps traces
	prometheus = "prometheus" // scrapes metrics and evaluates rules
)

// observer is one of them: a module of its own below scripts/, built once a machine.
type observer struct {
	// The module's folder below scripts/, the version that its go.mod has, and the package of the program.
	name, version, pkg string
	args               []string // of go build
}

var observers = []observer{
	{name: otelcol, version: "0.155.0", pkg: "."},
	{name: jaeger, version: "1.62.0", pkg: "github.com/jaegertracing/jaeger/cmd/all-in-one"},
	{name: prometheus, version: "3.15.0", pkg: "github.com/prometheus/prometheus/cmd/prometheus", args: []string{"-tags", "remove_all_sd"}},
}

// path is where it is built to, in the user's cache, beside the Consul agent.
func (o observer) path() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(cache, "hub", "bin", o.name+"-"+o.version), nil
}

// installObservers builds what is missing and returns the paths of what there is: one that cannot be built here is left out, with a line
// that says so, and so is a half of the way of traces.
func installObservers(ctx context.Context, l layout, p progress) (map[string]string, error) {
	there := map[string]string{}
	for _, o := range observers {
		path, err := o.path()
		if err != nil {
			return nil, err
		}
		if _, err := os.Stat(path); err != nil {
			err := p.step("building "+o.name+" "+o.version+" (minutes, once a machine)", func() error { return o.build(ctx, l, path) })
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			if err != nil {
				p.say("going on without %s, which cannot be built here: see %s", o.name, l.log("build-"+o.name))
				continue
			}
		}
		there[o.name] = path
	}
	if there[jaeger] == "" || there[otelcol] == "" {
		delete(there, jaeger)
		delete(there, otelcol)
	}
	return there, nil
}

// build builds into a file beside path first: one that was interrupted is no program.
func (o observer) build(ctx context.Context, l layout, path string) error {
	log, err := newLog(l, "build-"+o.name)
	if err != nil {
		return err
	}
	defer log.Close()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	partly := path + ".part-" + strconv.Itoa(os.Getpid())
	defer os.Remove(partly) // fails after the rename, as it should
	args := slices.Concat([]string{"build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w"}, o.args, []string{"-o", partly, o.pkg})
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = l.path("scripts", o.name), log, log
	// The workspace would mix its versions with Hub's.
	cmd.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("go build: %w", err)
	}
	return os.Rename(partly, path)
}

// observerPorts names what the observers listen on.
func (e environment) observerPorts() (names []string) {
	if e.observers[otelcol] != "" {
		names = append(names, otelcol+"-grpc", otelcol+"-http", otelcol+"-metrics", jaeger, jaeger+"-grpc", jaeger+"-http", jaeger+"-admin")
	}
	if e.observers[prometheus] != "" {
		names = append(names, prometheus)
	}
	return names
}

// observerSpecs are the observers as the supervisor runs them, on this machine's own address. They stop last.
// One that is not there is left out.
func observerSpecs(e environment) []serviceSpec {
	var specs []serviceSpec
	run := func(name string, env map[string]string, args ...string) {
		if path := e.observers[name]; path != "" {
			specs = append(specs, serviceSpec{Name: name, Path: path, Args: args, Env: localstack.Environ(env), Layer: layerServers})
		}
	}
	host, port, _ := strings.Cut(e.state.addr(otelcol+"-metrics"), ":")
	run(otelcol, map[string]string{
		"OTELCOL_GRPC_ADDR": e.state.addr(otelcol + "-grpc"), "OTELCOL_HTTP_ADDR": e.state.addr(otelcol + "-http"),
		"OTELCOL_METRICS_HOST": host, "OTELCOL_METRICS_PORT": port, "OTELCOL_JAEGER_ADDR": e.state.addr(jaeger + "-grpc"),
	}, "--config", e.layout.path("deploy", "otel", "collector.yaml"))
	const any = "127.0.0.1:0" // what nobody asks
	run(jaeger, map[string]string{"SPAN_STORAGE_TYPE": "memory", "COLLECTOR_OTLP_ENABLED": "true", "HOME": e.layout.hub()},
		"--memory.max-traces=20000", "--log-level=warn",
		"--collector.otlp.grpc.host-port="+e.state.addr(jaeger+"-grpc"), "--collector.otlp.http.host-port="+e.state.addr(jaeger+"-http"),
		"--query.http-server.host-port="+e.state.addr(jaeger), "--admin.http.host-port="+e.state.addr(jaeger+"-admin"),
		"--query.grpc-server.host-port="+any, "--collector.http-server.host-port="+any, "--collector.grpc-server.host-port="+any,
		"--http-server.host-port="+any, "--processor.jaeger-compact.server-host-port="+any, "--processor.jaeger-binary.server-host-port="+any,
		"--processor.zipkin-compact.server-host-port="+any)
	run(prometheus, map[string]string{"HOME": e.layout.hub()},
		"--config.file="+e.layout.scrapes(), "--storage.tsdb.path="+e.layout.data(prometheus), "--storage.tsdb.retention.time=3d",
		"--web.listen-address="+e.state.addr(prometheus), "--enable-feature=exemplar-storage", "--log.level=warn")
	return specs
}

// writeScrapes writes Prometheus' configuration: deploy/prometheus/prometheus.yml, with the ports of this stack for the addresses there.
func writeScrapes(e environment) error {
	if e.observers[prometheus] == "" {
		return nil
	}
	b, err := os.ReadFile(e.layout.path("deploy", "prometheus", "prometheus.yml"))
	if err != nil {
		return err
	}
	local, err := localScrapes(e, string(b))
	if err != nil {
		return err
	}
	return writeFile(e.layout.scrapes(), []byte(local), 0o644)
}

// localScrapes is the configuration for this stack. Its targets are the addresses of services, whose names nobody can look up here.
func localScrapes(e environment, text string) (string, error) {
	var list []string
	for _, s := range e.services {
		list = append(list, s.Name)
	}
	// The text is replaced and not decoded, so that comments and all other settings stay as they are.
	targets := "    dns_sd_configs:\n      - { type: A, port: 9090, refresh_interval: 15s, names: [" + strings.Join(list, ", ") + "] }\n"
	rules := "rule_files: [rules/*.yml]"
	if strings.Count(text, targets) != 1 || strings.Count(text, rules) != 1 {
		return "", errors.New("deploy/prometheus/prometheus.yml: its targets are not those of deploy/services.json, or its rules are elsewhere")
	}
	var static strings.Builder
	static.WriteString("    static_configs:\n")
	for _, s := range e.services {
		fmt.Fprintf(&static, "      - { targets: [%q], labels: { service: %s } }\n", e.state.addr(operations(s.Name)), s.Name)
	}
	text = strings.Replace(text, targets, static.String(), 1)
	// The name of a service is told above: an address has none.
	if from := strings.Index(text, "    relabel_configs:\n"); from >= 0 {
		text = text[:from]
	}
	return strings.Replace(text, rules, "rule_files: ["+strconv.Quote(e.layout.path("deploy", "prometheus", "rules", "*.yml"))+"]", 1), nil
}

// observerURLs answer once the observers work.
func (e environment) observerURLs() (urls []string) {
	if e.observers[otelcol] != "" {
		urls = append(urls, "http://"+e.state.addr(otelcol+"-metrics")+"/metrics", "http://"+e.state.addr(jaeger)+"/api/services")
	}
	if e.observers[prometheus] != "" {
		urls = append(urls, "http://"+e.state.addr(prometheus)+"/-/ready")
	}
	return urls
}
