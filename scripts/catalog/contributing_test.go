package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/inventory"
	"hub.internal/pkg/tool"
)

// TestATwentySecondTool does what CONTRIBUTING.md says of a tool, in files that lie over those of the repository (go build -overlay),
// and sees the tool in the manifest of its owner, in the catalog that gateways boot from, and in the table.
func TestATwentySecondTool(t *testing.T) {
	t.Setenv("GOWORK", "") // as in the repository: make test runs tests without the workspace
	t.Setenv("CGO_ENABLED", "0")
	root := hubtest.Root(t)
	t.Chdir(root)
	_, recipe, found := strings.Cut(content(t, "CONTRIBUTING.md"), "\n## A tool\n")
	recipe, _, _ = strings.Cut(recipe, "\n## ")
	code := regexp.MustCompile("(?s)```go\n(func (\\w+)Tool\\(.*?)```").FindStringSubmatch(recipe)
	example := regexp.MustCompile("`examples/(\\w+)\\.json`:\\s+`(\\[.*?\\])`").FindStringSubmatch(recipe)
	if !found || code == nil || example == nil {
		t.Fatalf("the recipe has no code or no example:\n%s", recipe)
	}
	const list = "saveMessageDraftTool(s)}"
	declared := content(t, "services/authoring/tools.go")
	if !strings.Contains(declared, list) {
		t.Fatalf("the list of tools does not end with %s", list)
	}
	name := example[1]
	overlay(t, map[string]string{
		"services/authoring/tools.go":                   strings.Replace(declared, list, "saveMessageDraftTool(s), "+code[2]+"Tool(s)}", 1),
		"services/authoring/examples/" + name + ".json": example[2],
		"services/authoring/newest.go": "package authoring\n\nimport (\n\t\"context\"\n\n\t\"hub.internal/pkg/schema\"\n" +
			"\t\"hub.internal/pkg/tool\"\n)\n\n" + code[1],
	})

	services, err := inventory.Load(root)
	if err != nil {
		t.Fatal(err)
	}
	owner, err := services.Find("authoring")
	if err != nil {
		t.Fatal(err)
	}
	now, err := manifests(inventory.Inventory{owner})
	if err != nil {
		t.Fatal(err)
	}
	var catalog tool.Catalog
	if err := json.Unmarshal([]byte(content(t, catalogFile)), &catalog); err != nil {
		t.Fatal(err)
	}
	before := count(catalog.Manifests)
	for i, m := range catalog.Manifests {
		if m.Service == "authoring" {
			catalog.Manifests[i] = now[0]
		}
	}
	if got := count(catalog.Manifests); got != before+1 {
		t.Errorf("%d tools, and %d with another one", before, got)
	}
	table, err := withTable([]byte(content(t, tableFile)), catalog.Manifests)
	if err != nil || !bytes.Contains(table, []byte("\n| `"+name+"` | query | `query` | no | authoring |")) {
		t.Errorf("%v: the table lacks %s:\n%s", err, name, table)
	}
}

func count(manifests []tool.Manifest) (n int) {
	for _, m := range manifests {
		n += len(m.Tools)
	}
	return n
}

// content is that of a file of the repository, whose root is the working folder.
func content(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.FromSlash(file))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// overlay lets go see files of the repository as they are here.
func overlay(t *testing.T, files map[string]string) {
	t.Helper()
	dir := t.TempDir()
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	replace := map[string]string{}
	for name, content := range files {
		own := filepath.Join(dir, filepath.Base(name))
		if err := os.WriteFile(own, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		replace[filepath.Join(root, filepath.FromSlash(name))] = own
	}
	b, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOFLAGS", "-overlay="+file)
}
