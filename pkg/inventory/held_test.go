package inventory_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/inventory"
)

// The tests below hold what cannot be derived from the list of services to it.

func load(t *testing.T) inventory.Inventory {
	t.Helper()
	list, err := inventory.Load(hubtest.Root(t))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(append([]string{hubtest.Root(t)}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// same tells whether two lists have the same members.
func same(t *testing.T, what string, got, want []string) {
	t.Helper()
	got, want = slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))
	if !slices.Equal(got, want) {
		t.Errorf("%s: %v; by %s it should be %v", what, got, inventory.File, want)
	}
}

func TestFoldersAndModules(t *testing.T) {
	root := hubtest.Root(t)
	var folders, modules []string
	programs, err := filepath.Glob(filepath.Join(root, "services", "*", "cmd", "*", "main.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range programs {
		service := filepath.Base(filepath.Dir(filepath.Dir(filepath.Dir(path))))
		if filepath.Base(filepath.Dir(path)) == service { // others are for people
			folders = append(folders, service)
		}
	}
	same(t, "programs of services", folders, load(t).Names())
	for _, m := range regexp.MustCompile(`(?m)^\t(\./services/\S+)$`).FindAllStringSubmatch(read(t, "go.work"), -1) {
		modules = append(modules, m[1])
	}
	// The suite of processes and the client are modules beside the services; nothing deploys them.
	want := []string{"./services/e2e", "./services/" + inventory.Client}
	names := []string{inventory.Client}
	for _, s := range load(t) {
		want = append(want, s.Module())
		names = append(names, s.Name)
	}
	for _, name := range names {
		if readme := read(t, "services", name, "README.md"); !strings.HasPrefix(readme, "# "+name+"\n") {
			t.Errorf("services/%s/README.md has another title", name)
		}
		if !strings.Contains(read(t, "README.md"), "(services/"+name+"/README.md)") {
			t.Errorf("README.md does not lead to services/%s", name)
		}
	}
	same(t, "modules of services in go.work", modules, want)
}

// compose is the part of docker-compose.yml that is about services.
type compose struct {
	Services map[string]struct {
		Build struct {
			Args struct {
				Service string `yaml:"SERVICE"`
			}
		}
		Command     []string
		Environment map[string]string
		Ports       []string
		Secrets     []any
		DependsOn   map[string]any `yaml:"depends_on"`
	}
	Secrets map[string]struct{ File string }
}

func TestCompose(t *testing.T) {
	var c compose
	if err := yaml.Unmarshal([]byte(read(t, "docker-compose.yml")), &c); err != nil {
		t.Fatal(err)
	}
	list := load(t)
	var built, secrets []string
	for name, s := range c.Services {
		if s.Build.Args.Service != "" {
			built = append(built, name)
		}
	}
	var wantBuilt []string
	wantSecrets := []string{"trusted-keys"}
	for _, s := range list {
		wantBuilt = append(wantBuilt, s.Name, "migrate-"+s.Name)
		wantSecrets = append(wantSecrets, s.Name+"-key")
	}
	same(t, "images of docker-compose.yml", built, wantBuilt)
	secrets = slices.Collect(maps.Keys(c.Secrets))
	same(t, "secrets of docker-compose.yml", secrets, wantSecrets)
	settings := inventory.SettingsOfNeeds()
	delete(settings, inventory.Catalog) // which every image has
	for _, s := range list {
		service, migrate := c.Services[s.Name], c.Services["migrate-"+s.Name]
		env := service.Environment
		if service.Build.Args.Service != s.Name || migrate.Build.Args.Service != s.Name ||
			!slices.Equal(migrate.Command, []string{"migrate"}) ||
			migrate.Environment["HUB_MIGRATE_URL"] == "" {
			t.Errorf(
				"%s: built from %q, migrated by %q %v",
				s.Name,
				service.Build.Args.Service,
				migrate.Build.Args.Service,
				migrate.Command,
			)
		}
		if service.DependsOn["migrate-"+s.Name] == nil {
			t.Errorf("%s does not wait for its migrations", s.Name)
		}
		if env["HUB_ADDR"] != "0.0.0.0:8080" || env["HUB_OPS_ADDR"] != "0.0.0.0:9090" {
			t.Errorf("%s listens at %s and %s", s.Name, env["HUB_ADDR"], env["HUB_OPS_ADDR"])
		}
		if published := strings.Join(
			service.Ports,
			" ",
		); (published != "") != s.Edge || strings.Contains(published, "9090") ||
			s.Edge && !strings.HasPrefix(published, "127.0.0.1:") {
			t.Errorf("%s publishes %v", s.Name, service.Ports)
		}
		if env["HUB_DISCOVERY"] != "consul" || env["HUB_CONSUL_ADDR"] != "consul:8500" || env["HUB_ADVERTISE"] != "" {
			t.Errorf("%s finds its neighbours by %s, and is found at %q", s.Name, env["HUB_DISCOVERY"], env["HUB_ADVERTISE"])
		}
		if url := env["HUB_WRITE_STORE_URL"]; s.Has(inventory.Store) && !strings.HasPrefix(url, "postgres://"+s.Role()+":") {
			t.Errorf("%s logs in with %s", s.Name, url)
		}
		if env["HUB_MIGRATE_URL"] != "" {
			t.Errorf("%s holds the owner's password", s.Name)
		}
		for need, names := range settings {
			for _, name := range names {
				if told := env[name] != ""; told != s.Has(need) && need != inventory.Redis { // which all are told
					t.Errorf("%s is told %s: %t; it needs %v", s.Name, name, told, s.Needs)
				}
			}
		}
		if key := c.Secrets[s.Name+"-key"].File; !strings.HasSuffix(key, "/"+s.Name) ||
			!strings.Contains(fmt.Sprint(service.Secrets...), "source:"+s.Name+"-key") {
			t.Errorf("%s signs with %s, mounted as %v", s.Name, key, service.Secrets)
		}
	}
	var logins string
	if m := regexp.MustCompile(`(?m)^for login in (.*); do$`).FindStringSubmatch(read(t, "deploy", "compose", "postgres.sh")); m != nil {
		logins = m[1]
	}
	var want []string
	for role, connections := range list.Connections() {
		want = append(want, fmt.Sprint(role, ":", connections))
	}
	same(t, "log-ins of deploy/compose/postgres.sh", strings.Fields(logins), want)
}

// TestNoServiceTakesTheConnectionsOfOthers: what all roles may have, as many processes as there are at most, is what the server has but for
// the superuser's three.
func TestNoServiceTakesTheConnectionsOfOthers(t *testing.T) {
	one := 0
	for _, connections := range load(t).Connections() {
		one += connections
	}
	number := func(pattern string, path ...string) int {
		t.Helper()
		m := regexp.MustCompile(pattern).FindStringSubmatch(read(t, path...))
		if m == nil {
			t.Fatalf("%v has no %s", path, pattern)
		}
		n, err := strconv.Atoi(m[1])
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	local := []string{"k8s", "overlays", "local", "postgres.yaml"}
	for what, tt := range map[string]struct{ processes, most int }{
		"the stack": {number(`storeProcesses = (\d+)`, "scripts", "stack", "store.go"),
			number(`max_connections=(\d+)`, "pkg", "localserver", "postgres.go")},
		"Compose":    {number(`HUB_DB_PODS: (\d+)`, "docker-compose.yml"), number(`max_connections=(\d+)`, "docker-compose.yml")},
		"k8s, local": {number(`HUB_DB_PODS, value: "(\d+)"`, local...), number(`max_connections=(\d+)`, local...)},
		"k8s, advice": {number(`HUB_DB_PODS:=(\d+)`, "deploy", "compose", "postgres.sh"),
			number("`max_connections` of (\\d+)", "k8s", "README.md")},
	} {
		if need := tt.processes*one + 3; need > tt.most {
			t.Errorf("%s: %d processes of each service may have %d connections, and the server has %d", what, tt.processes, need, tt.most)
		}
	}
	if pods, most := number(
		`HUB_DB_PODS:=(\d+)`,
		"deploy",
		"compose",
		"postgres.sh",
	), number(
		`maxReplicas: (\d+)`,
		"k8s",
		"components",
		"service",
		"autoscaler.yaml",
	); pods != most+2 {
		t.Errorf("postgres.sh has room for %d pods of each service, and there may be %d, one that comes and one that drains", pods, most)
	}
}

func TestPrometheus(t *testing.T) {
	var file struct {
		ScrapeConfigs []struct {
			DNS []struct{ Names []string } `yaml:"dns_sd_configs"`
		} `yaml:"scrape_configs"`
	}
	if err := yaml.Unmarshal([]byte(read(t, "deploy", "prometheus", "prometheus.yml")), &file); err != nil {
		t.Fatal(err)
	}
	var got, want []string
	for _, s := range file.ScrapeConfigs {
		for _, c := range s.DNS {
			got = append(got, c.Names...)
		}
	}
	for _, s := range load(t) {
		want = append(want, s.Name)
	}
	same(t, "targets of deploy/prometheus/prometheus.yml", got, want)
}

// TestGrants: what a service's migrations grant is in its own schema, and for its own role.
func TestGrants(t *testing.T) {
	grant := regexp.MustCompile(`(?is)\bGRANT\s+(?:[^;]*?)\sON\s+(?:SCHEMA|SEQUENCE|FUNCTION|TABLE)?\s*([^;]*?)\sTO\s+([a-z_]+)`)
	for _, s := range load(t) {
		paths, err := filepath.Glob(filepath.Join(hubtest.Root(t), "services", s.Name, "postgres", "migrations", "*.sql"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range grant.FindAllStringSubmatch(string(b), -1) {
				if m[2] != s.Role() {
					t.Errorf("%s grants to %s, which is not its role %s", path, m[2], s.Role())
				}
				for _, object := range strings.Split(m[1], ",") {
					if schema, _, _ := strings.Cut(strings.TrimSpace(object), "."); schema != s.Schema() {
						t.Errorf("%s grants on %s, which is not in its schema %s", path, strings.TrimSpace(object), s.Schema())
					}
				}
			}
		}
	}
}
