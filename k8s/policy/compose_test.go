package policy

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	"sigs.k8s.io/yaml"

	"hub.internal/pkg/discover"
	"hub.internal/pkg/inventory"
	"hub.internal/pkg/service"
)

// compose loads docker-compose.yml as Docker Compose does: its schema, its interpolation, its references.
func compose(t *testing.T) *types.Project {
	t.Helper()
	o, err := cli.NewProjectOptions([]string{at(t, "docker-compose.yml")}, cli.WithWorkingDirectory(at(t)), cli.WithInterpolation(true),
		cli.WithConsistency(true))
	if err != nil {
		t.Fatal(err)
	}
	project, err := o.LoadProject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return project
}

// healthCheck is what a container without a shell can ask itself.
var healthCheck = types.HealthCheckTest{"CMD", "/service", "health"}

// composed lists what is wrong with the containers of Hub's services.
func composed(project *types.Project, p Programs) (problems []string) {
	require := func(so bool, format string, args ...any) {
		if !so {
			problems = append(problems, fmt.Sprintf(format, args...))
		}
	}
	health, _, err := service.Program[service.Settings]{Name: "x"}.Command(nil).Find([]string{"health"})
	require(err == nil && health.Name() == "health", "programs have no command health: %v", err)
	told := func(s inventory.Service, name string) string {
		setting, _ := inventory.Find(p.Settings[s.Name].Serve, name)
		return cmp.Or(value(project.Services[s.Name], name), setting.Default)
	}
	duration := func(s inventory.Service, name, unit string) time.Duration {
		d, err := time.ParseDuration(told(s, name) + unit)
		require(err == nil, "%s: %s: %v", s.Name, name, err)
		return d
	}
	var statement time.Duration
	for _, s := range p.Services {
		if s.Has(inventory.Source) {
			statement = max(statement, duration(s, "MCP_QUERY_TIMEOUT_MS", "ms")+duration(s, "HUB_SQL_WAIT", ""))
		}
	}
	for _, s := range p.Services {
		c := project.Services[s.Name]
		problems = append(problems, variables(s.Name, c, p.Settings[s.Name].Serve, p)...)
		problems = append(problems, variables("migrate-"+s.Name, project.Services["migrate-"+s.Name], p.Settings[s.Name].Migrate, p)...)
		require(
			c.ReadOnly && slices.Equal(c.CapDrop, []string{"ALL"}) && slices.Contains(c.SecurityOpt, "no-new-privileges:true") && !c.Privileged &&
				c.User == "" &&
				len(c.CapAdd) == 0,
			"%s is less than restricted",
			s.Name,
		)
		require(c.HealthCheck != nil && slices.Equal(c.HealthCheck.Test, healthCheck), "%s is asked by %+v", s.Name, c.HealthCheck)
		require(len(c.Command) == 0 && len(c.Entrypoint) == 0, "%s runs %v %v", s.Name, c.Entrypoint, c.Command)
		drain := duration(s, "HUB_DRAIN_TIMEOUT", "")
		require(!s.Edge && !s.Has(inventory.Source) || drain >= statement+time.Second, "%s gives calls in flight %s", s.Name, drain)
		stops := service.Settings{DrainDelay: duration(s, "HUB_DRAIN_DELAY", ""), DrainTimeout: drain}.StopsWithin()
		require(c.StopGracePeriod != nil && time.Duration(*c.StopGracePeriod) > stops, "%s may take %s to stop", s.Name, stops)
		require((len(c.Ports) > 0) == s.Edge, "%s publishes %v", s.Name, c.Ports)
		for _, e := range []struct{ variable, port string }{{"HUB_ADDR", "8080"}, {"HUB_OPS_ADDR", "9090"}} {
			require(
				value(c, e.variable) == p.Image.Environment[e.variable] && strings.HasSuffix(value(c, e.variable), ":"+e.port),
				"%s: %s",
				s.Name,
				e.variable,
			)
		}
		require(value(c, "HUB_DISCOVERY") == discover.Consul, "%s finds its neighbours by %s", s.Name, value(c, "HUB_DISCOVERY"))
		waits := map[string]string{
			"migrate-" + s.Name: types.ServiceConditionCompletedSuccessfully,
			"consul":            types.ServiceConditionHealthy,
		}
		if s.Has(inventory.Redis) {
			waits["redis"] = types.ServiceConditionHealthy
		}
		if s.Has(inventory.Source) {
			waits["mysql"] = types.ServiceConditionHealthy
		}
		if s.Has(inventory.Mail) {
			waits["mail"] = types.ServiceConditionStarted
		}
		if s.Edge {
			for _, o := range p.Services.Inner() {
				waits[o.Name] = types.ServiceConditionHealthy
			}
		}
		require(len(c.DependsOn) == len(waits), "%s waits for %v", s.Name, c.DependsOn)
		for on, condition := range waits {
			require(c.DependsOn[on].Condition == condition, "%s does not wait until %s is %s", s.Name, on, condition)
		}
	}
	for name, c := range project.Services {
		for _, port := range c.Ports {
			require(port.HostIP == "127.0.0.1", "%s publishes %s to the network", name, port.Published)
		}
		for _, v := range c.Volumes {
			if v.Type == types.VolumeTypeBind {
				_, err := os.Stat(v.Source)
				require(err == nil, "%s mounts %v", name, err)
			}
		}
		for on, d := range c.DependsOn {
			other := project.Services[on]
			require(
				d.Condition != types.ServiceConditionHealthy || other.HealthCheck != nil && len(other.HealthCheck.Test) > 0,
				"%s waits for the health of %s, which has none",
				name,
				on,
			)
		}
		if c.Build == nil {
			_, version := split(c.Image)
			require(version != "" && version != "latest", "%s runs %s", name, c.Image)
		}
	}
	return problems
}

func value(c types.ServiceConfig, name string) string {
	if v := c.Environment[name]; v != nil {
		return *v
	}
	return ""
}

// variables holds a container's variables to what its program reads, and its files to the secrets that are mounted.
func variables(name string, c types.ServiceConfig, reads []inventory.Setting, p Programs) (problems []string) {
	for _, s := range reads {
		if s.Required && value(c, s.Name) == "" && value(c, s.Name+"_FILE") == "" {
			problems = append(problems, name+" is not told "+s.Name)
		}
	}
	for variable := range c.Environment {
		s, ok := inventory.Find(reads, setting(variable))
		_, shared := inventory.Find(p.Settings["gateway"].Serve, setting(variable)) // HUB_REDIS_URL is all services'
		if !ok && !shared {
			problems = append(problems, name+" does not read "+variable)
		}
		if strings.HasSuffix(variable, "_FILE") {
			mounted := slices.ContainsFunc(c.Secrets, func(m types.ServiceSecretConfig) bool {
				target := m.Target
				if target == "" {
					target = m.Source
				}
				return value(c, variable) == "/run/secrets/"+strings.TrimPrefix(target, "/run/secrets/")
			})
			if !mounted {
				problems = append(problems, name+" has no file for "+s.Name)
			}
		}
	}
	return problems
}

// TestCompose: what cannot run on every machine is held to the programs, and each thing that may be wrong is found.
func TestCompose(t *testing.T) {
	t.Parallel()
	whole := compose(t)
	for _, problem := range composed(whole, loaded(t)) {
		t.Error(problem)
	}
	for _, name := range []string{"consul", "mysql", "postgres", "redis", "mail", "otel-collector", "jaeger", "prometheus", "grafana"} {
		if _, there := whole.Services[name]; !there {
			t.Errorf("there is no %s", name)
		}
	}
	set := func(service string, change func(*types.ServiceConfig)) func(*types.Project) {
		return func(p *types.Project) { c := p.Services[service]; change(&c); p.Services[service] = c }
	}
	variable := func(name, value string) func(*types.Project) {
		return set("query", func(c *types.ServiceConfig) { c.Environment[name] = &value })
	}
	for says, broken := range map[string]func(*types.Project){
		"query is less than restricted": set("query", func(c *types.ServiceConfig) { c.ReadOnly = false }),
		"query is asked": set("query",
			func(c *types.ServiceConfig) { c.HealthCheck.Test = types.HealthCheckTest{"CMD-SHELL", "true"} }),
		"query runs":                    set("query", func(c *types.ServiceConfig) { c.Command = []string{"migrate"} }),
		"query may take":                set("query", func(c *types.ServiceConfig) { c.StopGracePeriod = nil }),
		"gateway gives calls in flight": variable("MCP_QUERY_TIMEOUT_MS", "40000"),
		"query gives calls in flight":   variable("HUB_DRAIN_TIMEOUT", "25s"),
		"query publishes": set("query",
			func(c *types.ServiceConfig) { c.Ports = []types.ServicePortConfig{{HostIP: "127.0.0.1"}} }),
		"query: HUB_ADDR":                  variable("HUB_ADDR", "127.0.0.1:8080"),
		"query finds its":                  variable("HUB_DISCOVERY", "static"),
		"query does not wait until consul": set("query", func(c *types.ServiceConfig) { delete(c.DependsOn, "consul") }),
		"query is not told HUB_WRITE":      set("query", func(c *types.ServiceConfig) { delete(c.Environment, "HUB_WRITE_STORE_URL") }),
		"query does not read HUB_MADE_UP":  variable("HUB_MADE_UP_DSN", "x"),
		"query has no file":                set("query", func(c *types.ServiceConfig) { c.Secrets = nil }),
		"migrate-query is not told":        set("migrate-query", func(c *types.ServiceConfig) { c.Environment = nil }),
		"mail publishes":                   set("mail", func(c *types.ServiceConfig) { c.Ports[0].HostIP = "" }),
		"mysql mounts":                     set("mysql", func(c *types.ServiceConfig) { c.Volumes[1].Source = "/nowhere" }),
		"waits for the health of redis":    set("redis", func(c *types.ServiceConfig) { c.HealthCheck = nil }),
		"redis runs":                       set("redis", func(c *types.ServiceConfig) { c.Image = "redis" }),
	} {
		project, err := whole.WithProfiles(nil) // a copy
		if err != nil {
			t.Fatal(err)
		}
		broken(project)
		if problems := composed(
			project,
			loaded(t),
		); !slices.ContainsFunc(
			problems,
			func(p string) bool { return strings.Contains(p, says) },
		) {
			t.Errorf("%q is not found, but %v", says, problems)
		}
	}
}

// byDefault is a variable of a collector's configuration.
var byDefault = regexp.MustCompile(`\$\{env:[A-Z_]+:-([^}]*)\}`)

// TestComposeIsWatched: the collector, Prometheus and Grafana look for each other where they are.
func TestComposeIsWatched(t *testing.T) {
	t.Parallel()
	project := compose(t)
	read := func(into any, path ...string) {
		t.Helper()
		b, err := os.ReadFile(at(t, path...))
		if err != nil {
			t.Fatal(err)
		}
		// A variable of the collector's with a default is that: nothing sets it here.
		if err := yaml.UnmarshalStrict(byDefault.ReplaceAll(b, []byte("$1")), into); err != nil {
			t.Fatal(err)
		}
	}
	there := func(what, host string) {
		t.Helper()
		if _, ok := project.Services[host]; !ok {
			t.Errorf("%s is looked for at %q", what, host)
		}
	}
	var collector struct {
		Receivers struct {
			OTLP struct {
				Protocols struct {
					GRPC struct{ Endpoint string } `json:"grpc"`
					HTTP struct{ Endpoint string } `json:"http"`
				} `json:"protocols"`
			} `json:"otlp"`
		} `json:"receivers"`
		Processors, Exporters map[string]map[string]any
		Service               map[string]any
	}
	read(&collector, "deploy", "otel", "collector.yaml")
	gateway := project.Services["gateway"]
	endpoint, err := url.Parse(value(gateway, "OTEL_EXPORTER_OTLP_ENDPOINT"))
	if err != nil {
		t.Fatal(err)
	}
	there("the collector", endpoint.Hostname())
	if _, port, err := net.SplitHostPort(
		collector.Receivers.OTLP.Protocols.HTTP.Endpoint,
	); err != nil || port != endpoint.Port() ||
		port != fmt.Sprint(otlp) {
		t.Errorf("the collector listens at %s, and services send to %s", collector.Receivers.OTLP.Protocols.HTTP.Endpoint, endpoint)
	}
	host, _, err := net.SplitHostPort(fmt.Sprint(collector.Exporters["otlp/jaeger"]["endpoint"]))
	if err != nil {
		t.Fatal(err)
	}
	there("Jaeger", host)

	var sources struct {
		APIVersion  int `json:"apiVersion"`
		Datasources []struct {
			Name, UID, Type, Access, URL string
			IsDefault                    bool
			JSONData                     map[string]any
		}
	}
	read(&sources, "deploy", "grafana", "provisioning", "datasources", "hub.yaml")
	for _, s := range sources.Datasources {
		u, err := url.Parse(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		there(s.Name, u.Hostname())
	}
	var dashboards struct {
		APIVersion int `json:"apiVersion"`
		Providers  []struct {
			Name, Folder, Type string
			DisableDeletion    bool
			AllowUIUpdates     bool
			Interval           int `json:"updateIntervalSeconds"`
			Options            struct{ Path string }
		}
	}
	read(&dashboards, "deploy", "grafana", "provisioning", "dashboards", "hub.yaml")
	mounts := func(service, source, target string) {
		t.Helper()
		if !slices.ContainsFunc(project.Services[service].Volumes, func(v types.ServiceVolumeConfig) bool {
			return v.Target == target && v.Source == filepath.Join(at(t), filepath.FromSlash(source)) && v.ReadOnly
		}) {
			t.Errorf("%s does not mount %s at %s", service, source, target)
		}
	}
	mounts("grafana", "deploy/grafana/dashboards", dashboards.Providers[0].Options.Path)
	mounts("grafana", "deploy/grafana/provisioning", "/etc/grafana/provisioning")
	mounts("prometheus", "deploy/prometheus", "/etc/prometheus")
}
