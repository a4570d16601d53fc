package mcp_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"hub.internal/pkg/hubtest"
	"hub.internal/services/gateway/mcp"
)

// nodeVersion is that of the npm package of Node that runs the clients where the system's is too old.
const nodeVersion, leastMajor, leastMinor = "22.23.3", 22, 19

var clients struct {
	once      sync.Once
	dir, node string
	err       error
}

// installClients makes the npm packages of testdata/clients available, once a machine, and a Node that runs them.
func installClients(t testing.TB) (dir, node string) {
	t.Helper()
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("no %s here; the transport is tried with the official clients from npm, too", program)
		}
	}
	clients.once.Do(func() {
		cache, err := os.UserCacheDir()
		if err != nil {
			clients.err = err
			return
		}
		clients.dir = filepath.Join(cache, "hub", "mcp-clients-1")
		clients.err = install(clients.dir, "ci", func() error {
			for _, name := range []string{"package.json", "package-lock.json"} {
				b, err := os.ReadFile(filepath.Join("testdata", "clients", name))
				if err := errors.Join(err, os.WriteFile(filepath.Join(clients.dir, name), b, 0o644)); err != nil {
					return err
				}
			}
			return nil
		})
		if clients.err == nil {
			clients.node, clients.err = findNode(cache)
		}
	})
	if clients.err != nil {
		t.Fatal(clients.err)
	}
	return clients.dir, clients.node
}

func findNode(cache string) (string, error) {
	out, err := exec.Command("node", "--version").Output()
	if err != nil {
		return "", err
	}
	var major, minor int
	if _, err := fmt.Sscanf(
		string(out),
		"v%d.%d.",
		&major,
		&minor,
	); err == nil &&
		(major > leastMajor || major == leastMajor && minor >= leastMinor) {
		return exec.LookPath("node")
	}
	arch := map[string]string{"amd64": "x64"}[runtime.GOARCH]
	if arch == "" {
		arch = runtime.GOARCH
	}
	name := "node-" + runtime.GOOS + "-" + arch
	dir := filepath.Join(cache, "hub", name+"-"+nodeVersion)
	err = install(dir, "install", func() error {
		return os.WriteFile(
			filepath.Join(dir, "package.json"),
			[]byte(`{"private":true,"dependencies":{"`+name+`":"`+nodeVersion+`"}}`),
			0o644,
		)
	})
	return filepath.Join(dir, "node_modules", name, "bin", "node"), err
}

func install(dir, how string, prepare func() error) error {
	if _, err := os.Stat(filepath.Join(dir, "node_modules", ".package-lock.json")); err == nil {
		return nil
	}
	if err := errors.Join(os.MkdirAll(dir, 0o755), prepare()); err != nil {
		return err
	}
	cmd := exec.Command("npm", how, "--ignore-scripts", "--no-audit", "--no-fund")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("npm %s: %w: %s", how, err, out)
	}
	return nil
}

// front is one address for all gateways, which take turns.
func (e *fixture) front(t testing.TB) (address string, turns *atomic.Int64) {
	t.Helper()
	turns = &atomic.Int64{}
	server := httptest.NewServer(e.turns(t, "", turns))
	t.Cleanup(server.Close)
	return server.URL, turns
}

// turns passes requests to the gateways in turn, with the key for clients that have none.
func (e *fixture) turns(t testing.TB, key string, turns *atomic.Int64) http.Handler {
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		to, err := url.Parse(e.urls[int(turns.Add(1))%len(e.urls)])
		if err != nil {
			t.Error(err)
		}
		r.SetURL(to)
		if key != "" {
			r.Out.Header.Set("Authorization", "Bearer "+key)
		}
	}}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// A server closes the body when its answer begins, and ReverseProxy ends an exchange whose body it has not read to its end by then.
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		r.Body = io.NopCloser(bytes.NewReader(b))
		proxy.ServeHTTP(w, r)
	})
}

type said struct {
	StructuredContent struct {
		Error struct{ Code string }
	}
	IsError bool
	Meta    map[string]any `json:"_meta"`
	Content []struct{ Text string }
	Thrown  *struct {
		Code    int
		Message string
	}
}

// TestTheOfficialClient drives both transports, before two gateways that take turns.
func TestTheOfficialClient(t *testing.T) {
	t.Parallel()
	dir, node := installClients(t)
	script, err := filepath.Abs(filepath.Join("testdata", "clients", "drive.mjs"))
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"http", "stdio"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			e := newFixture(t)
			address, turns := e.front(t)
			args := []string{script, kind, address + mcp.Path, noSQL}
			if kind == "stdio" {
				args = []string{script, kind, buildHub(t), address, noSQL}
			}
			cmd := exec.CommandContext(t.Context(), node, args...)
			cmd.Dir, cmd.Env = dir, append(os.Environ(), "SEGMENT="+string(e.catalog.Entry("create_segment").Spec.Examples[0].Request))
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			if err := cmd.Run(); err != nil {
				t.Fatalf("%v\n%s", err, stderr.String())
			}
			var out struct {
				Version                                              struct{ Name, Version string }
				Instructions                                         string
				Tools                                                []string
				Read, Failure, First, Again, Unkeyed, Scope, Unknown said
			}
			if err := json.Unmarshal(stdout.Bytes(), &out); err != nil {
				t.Fatalf("%v\n%s", err, stdout.String())
			}
			allowed := len(e.catalog.Entries()) - 1 // all but execute_read_sql
			for what, c := range map[string]struct {
				holds bool
				got   any
			}{
				"version":      {out.Version.Name == "hub", out.Version},
				"instructions": {strings.HasPrefix(out.Instructions, mcp.Instructions+" Today is "), out.Instructions},
				"tools":        {len(out.Tools) == allowed, out.Tools},
				"turns":        {turns.Load() >= 10, turns.Load()},
				"read":         {!out.Read.IsError && len(out.Read.Content) == 1, out.Read},
				"failure":      {out.Failure.IsError && out.Failure.StructuredContent.Error.Code == "E_VALIDATION", out.Failure},
				"first":        {!out.First.IsError && out.First.Thrown == nil && out.First.Meta["hub/replayed"] == nil, out.First},
				"again":        {out.Again.Meta["hub/replayed"] == true, out.Again},
				"unkeyed":      {!out.Unkeyed.IsError && out.Unkeyed.Meta["hub/replayed"] == nil, out.Unkeyed},
				"scope":        {out.Scope.IsError && out.Scope.StructuredContent.Error.Code == "E_SCOPE", out.Scope},
				"unknown":      {out.Unknown.Thrown != nil && out.Unknown.Thrown.Code == -32602, out.Unknown},
			} {
				if !c.holds {
					t.Errorf("%s: %+v", what, c.got)
				}
			}
		})
	}
}

var hub struct {
	once sync.Once
	path string
	err  error
}

// buildHub builds the client (services/client), whose command mcp is the stdio transport.
func buildHub(t testing.TB) string {
	t.Helper()
	hub.once.Do(func() {
		hub.path = filepath.Join(hubtest.Root(t), ".hub", "test", "hub")
		cmd := exec.Command("go", "build", "-o", hub.path, "./cmd/hub")
		cmd.Dir = filepath.Join(hubtest.Root(t), "services", "client") // its module builds alone, with the workspace and without
		if out, err := cmd.CombinedOutput(); err != nil {
			hub.err = fmt.Errorf("%w: %s", err, out)
		}
	})
	if hub.err != nil {
		t.Fatal(hub.err)
	}
	return hub.path
}

// TestTheInspector lists and calls with the command line of the protocol's inspector.
func TestTheInspector(t *testing.T) {
	t.Parallel()
	dir, node := installClients(t)
	e := newFixture(t)
	program := filepath.Join(dir, "node_modules", "@modelcontextprotocol", "inspector", "clients", "launcher", "build", "index.js")
	address, _ := e.front(t)
	hubProgram := buildHub(t)
	for transport, how := range map[string][]string{
		"http":  {address + mcp.Path, "--transport", "http", "--header", "Authorization: Bearer " + allScopes},
		"stdio": {"-e", "HUB_URL=" + address, "-e", "HUB_API_KEY=" + allScopes, hubProgram, "mcp"},
	} {
		for _, ask := range [][]string{{"--method", "tools/list"},
			{"--method", "tools/call", "--tool-name", "get_brand", "--tool-arg", "brandId=1"}} {
			cmd := exec.CommandContext(t.Context(), node, append(append([]string{program, "--cli"}, how...), ask...)...)
			cmd.Dir, cmd.Env = dir, append(os.Environ(), "PATH="+filepath.Dir(node)+string(os.PathListSeparator)+os.Getenv("PATH"))
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			if err != nil || !bytes.Contains(out, []byte(`"execute_read_sql"`)) && !bytes.Contains(out, []byte(`"structuredContent"`)) {
				t.Errorf("%s %v: %v\n%.2000s\n%.200s", transport, ask, err, stderr.String(), out)
			}
		}
	}
}

// TestConformance runs those server scenarios of the protocol's suite that ask for no tools of their own.
func TestConformance(t *testing.T) {
	t.Parallel()
	dir, node := installClients(t)
	server := httptest.NewUnstartedServer(nil)
	front := "http://" + server.Listener.Addr().String()
	e := newFixture(t, func(o *mcp.Options) { o.PublicURL = front })
	server.Config.Handler = e.turns(t, allScopes, &atomic.Int64{})
	server.Start()
	t.Cleanup(server.Close)
	passed := regexp.MustCompile(`Passed: (\d+)/(\d+), 0 failed`)
	for _, scenario := range []string{"server-initialize", "ping", "tools-list", "resources-list", "prompts-list",
		"dns-rebinding-protection"} {
		cmd := exec.CommandContext(
			t.Context(),
			node,
			filepath.Join(dir, "node_modules", "@modelcontextprotocol", "conformance", "dist", "index.js"),
			"server",
			"--url",
			front+mcp.Path,
			"--scenario",
			scenario,
		)
		cmd.Dir = t.TempDir()
		out, err := cmd.CombinedOutput()
		if m := passed.FindSubmatch(out); err != nil || m == nil || !bytes.Equal(m[1], m[2]) {
			t.Errorf("%s: %v\n%s", scenario, err, out)
		}
	}
}
