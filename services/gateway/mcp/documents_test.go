package mcp_test

import (
	"bytes"
	"encoding/json"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/service"
	"hub.internal/services/gateway/mcp"
)

var block = regexp.MustCompile("(?s)```(json|sh)\n(.*?)```")

// connection is an entry of a client's configuration.
type connection struct {
	Type, URL, Command string
	Args               []string
	Headers, Env       map[string]string
}

// section is the part of a document, named from the root, below a heading.
func section(t *testing.T, file, title string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(hubtest.Root(t), filepath.FromSlash(file)))
	if err != nil {
		t.Fatal(err)
	}
	_, part, found := strings.Cut(string(text), "\n## "+title+"\n")
	if !found {
		t.Fatalf("%s has no section %q", file, title)
	}
	part, _, _ = strings.Cut(part, "\n## ")
	return part
}

// TestTheGuideConnects: each block of the section on MCP leads to the tools, with the address and the key of this test
// in the place of its own.
func TestTheGuideConnects(t *testing.T) {
	t.Parallel()
	section := section(t, "services/gateway/CLIENTS.md", "MCP")
	e := newFixture(t)
	ours := strings.NewReplacer(
		"http://127.0.0.1:8080",
		e.urls[0],
		"crm_…",
		allScopes,
		"${env:HUB_API_KEY}",
		allScopes,
		"${input:hub-key}",
		allScopes,
		"/path/to/hub/bin/hub",
		buildHub(t),
	)
	list := `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	kinds := map[string]int{}
	for _, b := range block.FindAllStringSubmatch(section, -1) {
		if b[1] == "sh" {
			kinds["script"]++
			script(t, e, b[2])
			continue
		}
		var file struct {
			MCPServers map[string]connection `json:"mcpServers"`
			Servers    map[string]connection `json:"servers"`
		}
		if err := json.Unmarshal([]byte(ours.Replace(b[2])), &file); err != nil {
			t.Fatalf("%v\n%s", err, b[2])
		}
		c, cursor := file.MCPServers["hub"]
		if !cursor {
			c = file.Servers["hub"]
		}
		if c.Command == "" {
			kinds["http"]++
			a := e.send(t, "POST", c.URL, "", list, "Authorization", c.Headers["Authorization"])
			if len(a.Result.Tools) != len(e.catalog.Entries()) || !cursor && c.Type != "http" {
				t.Errorf("%s\n%d %.300s", b[2], a.status, a.body)
			}
			continue
		}
		kinds["stdio"]++
		cmd := exec.CommandContext(t.Context(), c.Command, c.Args...)
		for name, value := range c.Env {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
		cmd.Stdin = strings.NewReader(list + "\n")
		out, err := cmd.Output()
		if err != nil || bytes.Count(out, []byte("\n")) != 1 || !bytes.Contains(out, []byte(`"execute_read_sql"`)) {
			t.Errorf("%v %.300s", err, out)
		}
	}
	if kinds["script"] != 2 || kinds["http"] != 2 || kinds["stdio"] != 1 {
		t.Errorf("%v", kinds)
	}
}

// TestTheFirstCallRuns: the README's call in a shell, and a script without a library.
func TestTheFirstCallRuns(t *testing.T) {
	t.Parallel()
	e := newFixture(t)
	for language, c := range map[string]struct{ file, title, program, option, want string }{
		"sh":     {"README.md", "A first call", "sh", "-ec", `"tool":"search_brands","count":`},
		"python": {"services/gateway/CLIENTS.md", "A script", "python3", "-c", "1 ['"},
	} {
		found := regexp.MustCompile("(?s)```" + language + "\n(.*?)```").FindStringSubmatch(section(t, c.file, c.title))
		if found == nil {
			t.Fatalf("there is no block of %s", language)
		}
		for _, program := range []string{c.program, "curl"} {
			if _, err := exec.LookPath(program); err != nil {
				t.Skipf("no %s here; the block is run with it", program)
			}
		}
		cmd := exec.CommandContext(t.Context(), c.program, c.option, found[1])
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "HUB_URL=" + e.urls[0], "HUB_API_KEY=" + allScopes}
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), c.want) {
			t.Errorf("%s: %v\n%s", language, err, out)
		}
	}
}

// TestThePagesOfDocsRun: each call in the reference, as it can be copied there, is taken; the index leads to all of them, and each page
// is one for all.
func TestThePagesOfDocsRun(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("no curl here; the page's calls are run with it")
	}
	e := newFixture(t)
	index := e.send(t, "GET", e.urls[0]+"/docs", "", "")
	leads := map[string]bool{}
	row := regexp.MustCompile(`<tr data-for="([a-zA-Z0-9_.]+)"[^>]*><td><a href="(/docs/[^"#]+)#([^"]+)">`)
	for _, link := range row.FindAllStringSubmatch(index.body, -1) {
		if leads[link[2]] = true; link[1] != link[3] {
			t.Errorf("%s leads to %s", link[1], link[3])
		}
	}
	var calls [][]string
	for path := range leads {
		page := e.send(t, "GET", e.urls[0]+path, "", "")
		if page.status != 200 || page.header.Get("Etag") == "" || !strings.Contains(index.body, `href="`+path+`">`) {
			t.Errorf("%s: %d", path, page.status)
		}
		calls = append(calls,
			regexp.MustCompile(`(?s)<pre id="([a-z_]+)-curl-([0-9]+)"[^>]*><code>(.*?)</code>`).FindAllStringSubmatch(page.body, -1)...)
	}
	if len(calls) < len(e.catalog.Entries()) {
		t.Fatalf("%d calls on %d pages", len(calls), len(leads))
	}
	for path, status := range map[string]int{"/docs/apps": 200, "/docs/": 404, "/docs/tools": 404, "/docs/tools/nothing": 404} {
		if page := e.send(t, "GET", e.urls[0]+path, "", ""); page.status != status {
			t.Errorf("%s: %d", path, page.status)
		}
	}
	tools := map[string]bool{}
	for _, c := range calls {
		if tools[c[1]] {
			continue // another example of it
		}
		tools[c[1]] = true
		cmd := exec.CommandContext(t.Context(), "sh", "-ec", html.UnescapeString(c[3]))
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HUB_URL=" + e.urls[0], "HUB_API_KEY=" + allScopes}
		if out, err := cmd.CombinedOutput(); err != nil || !strings.HasPrefix(string(out), `{"ok":true,"tool":"`+c[1]+`"`) {
			t.Errorf("%v\n%s\n%.300s", err, c[3], out)
		}
	}
	if len(tools) != len(e.catalog.Entries()) {
		t.Errorf("%d tools have a call", len(tools))
	}
}

// script runs a block of the shell. Where it names claude, a stand-in hears how it was called.
func script(t *testing.T, e *fixture, text string) {
	t.Helper()
	if _, err := exec.LookPath("curl"); err != nil && strings.HasPrefix(text, "curl") {
		t.Skip("no curl here")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "claude"), []byte("#!/bin/sh\nprintf '%s\\n' \"$@\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-ec", text)
	cmd.Env = []string{"PATH=" + dir + string(os.PathListSeparator) + os.Getenv("PATH"), "HUB_URL=" + e.urls[0], "HUB_API_KEY=" + allScopes}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, text, out)
	}
	if strings.HasPrefix(text, "claude") {
		want := "mcp\nadd\n--transport\nhttp\nhub\n" + e.urls[0] + "/mcp\n--header\nAuthorization: Bearer " + allScopes + "\n"
		if string(out) != want {
			t.Errorf("%s", out)
		}
		return
	}
	var a answer
	if err := json.Unmarshal(out, &a); err != nil || a.Result.IsError || a.Result.StructuredContent == nil {
		t.Errorf("%v %s", err, out)
	}
}

// TestServerJSON holds what registries are told to the version and to the address (schema of 2025-12-11).
func TestServerJSON(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile(filepath.Join(hubtest.Root(t), "server.json"))
	if err != nil {
		t.Fatal(err)
	}
	type variable struct {
		Description          string
		IsRequired, IsSecret bool
	}
	var server struct {
		Schema      string `json:"$schema"`
		Name        string
		Title       string
		Description string
		Version     string
		Remotes     []struct {
			Type, URL string
			Variables map[string]variable
			Headers   []struct {
				Name, Description, Value string
				IsRequired, IsSecret     bool
				Variables                map[string]variable
			}
		}
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&server); err != nil || !jsontext.Value(b).IsValid() {
		t.Fatal(err)
	}
	e := newFixture(t)
	r := server.Remotes[0]
	address := strings.ReplaceAll(r.URL, "{hub_url}", e.urls[0])
	key := strings.ReplaceAll(r.Headers[0].Value, "{api_key}", allScopes)
	a := e.send(t, "POST", address, "", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, r.Headers[0].Name, key)
	switch {
	case server.Version != service.Version, server.Schema != "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
		!regexp.MustCompile(`^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$`).MatchString(server.Name), len(server.Description) > 100,
		r.Type != "streamable-http",
		!strings.HasSuffix(r.URL, mcp.Path), len(a.Result.Tools) != len(e.catalog.Entries()), !r.Variables["hub_url"].IsRequired,
		!r.Headers[0].Variables["api_key"].IsSecret:
		t.Errorf("%s\n%d", b, a.status)
	}
}
