package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/inventory"
	"hub.internal/pkg/tool"
)

// TestATwentySecondTool does what CONTRIBUTING.md says of a tool, in files that lie over those of the repository (go build -overlay),
// and sees the tool in the manifest of its owner, in the catalog that gateways boot from, and in the table.
func TestATwentySecondTool(t *testing.T) {
	r := readRecipe(t, "A tool")
	r.overlay(t, "services/authoring/tools.go", "newestSegmentTool(s)", map[string]string{
		"services/authoring/examples/newest_segment.json": r.example,
		"services/authoring/newest.go": "package authoring\n\nimport (\n\t\"context\"\n\n\t\"hub.internal/pkg/schema\"\n" +
			"\t\"hub.internal/pkg/tool\"\n)\n\n" + r.code,
	})

	var catalog tool.Catalog
	if err := json.Unmarshal([]byte(content(t, catalogFile)), &catalog); err != nil {
		t.Fatal(err)
	}
	before := count(catalog.Manifests)
	for i, m := range catalog.Manifests {
		if m.Service == "authoring" {
			catalog.Manifests[i] = manifestOf(t, "authoring")
		}
	}
	if got := count(catalog.Manifests); got != before+1 {
		t.Errorf("%d tools, and %d with another one", before, got)
	}
	table, err := withTable([]byte(content(t, tableFile)), catalog.Manifests)
	if err != nil || !bytes.Contains(table, []byte("\n| `newest_segment` | query | `query` | no | authoring |")) {
		t.Errorf("%v: the table lacks newest_segment:\n%s", err, table)
	}
}

// TestAnotherRoute does what CONTRIBUTING.md says of a route, and sees it in its owner's manifest.
func TestAnotherRoute(t *testing.T) {
	r := readRecipe(t, "A route of /v1")
	r.overlay(t, "services/payments/api/routes.go", "methodsRoute()", map[string]string{
		"services/payments/api/examples/pay.methods.json": r.example,
		"services/payments/api/methods.go": "package api\n\nimport (\n\t\"context\"\n\t\"net/http\"\n\n" +
			"\t\"hub.internal/pkg/schema\"\n\t\"hub.internal/pkg/tool\"\n)\n\n" + r.code,
	})
	if !slices.ContainsFunc(manifestOf(t, "payments").Routes, func(route tool.RouteSpec) bool { return route.Path == "/v1/pay/methods" }) {
		t.Error("payments' manifest lacks the route")
	}
}

// TestTheNextMigration: the number that CONTRIBUTING.md gives a new migration is not taken.
func TestTheNextMigration(t *testing.T) {
	t.Chdir(hubtest.Root(t))
	named := regexp.MustCompile("`(\\d{5})_\\w+\\.sql` in (services/\\S+/migrations)").FindStringSubmatch(content(t, "CONTRIBUTING.md"))
	if named == nil {
		t.Fatal("CONTRIBUTING.md names no migration")
	}
	there, err := filepath.Glob(named[2] + "/*.sql")
	if err != nil || len(there) == 0 {
		t.Fatal(err, "there are no migrations in", named[2])
	}
	if next := fmt.Sprintf("%05d", len(there)+1); named[1] != next {
		t.Errorf("CONTRIBUTING.md calls the next migration %s, but it is %s", named[1], next)
	}
}

// recipe is what a section of CONTRIBUTING.md says to write: Go code, and the file of its example.
type recipe struct{ code, example string }

// readRecipe reads a recipe, and goes to the root of the repository.
func readRecipe(t *testing.T, section string) recipe {
	t.Helper()
	t.Setenv("GOWORK", "") // as in the repository: make test runs tests without the workspace
	t.Setenv("CGO_ENABLED", "0")
	t.Chdir(hubtest.Root(t))
	_, text, found := strings.Cut(content(t, "CONTRIBUTING.md"), "\n## "+section+"\n")
	text, _, _ = strings.Cut(text, "\n## ")
	code := regexp.MustCompile("(?s)```go\n(.*?)```").FindStringSubmatch(text)
	example := regexp.MustCompile("`\\S*examples/[\\w.]+\\.json`:\\s+`(\\[.*?\\])`").FindStringSubmatch(text)
	if !found || code == nil || example == nil {
		t.Fatalf("the recipe %q has no code or no example:\n%s", section, text)
	}
	return recipe{code[1], example[1]}
}

// overlay lays the recipe's files over the repository, and the file listed with added behind the last element of its list.
func (r recipe) overlay(t *testing.T, listed, added string, files map[string]string) {
	t.Helper()
	text := content(t, listed)
	list := regexp.MustCompile(`\[\]tool\.(?:Tool|APIRoute)\{[^}]+`).FindString(text)
	if list == "" {
		t.Fatalf("%s has no list of tools or routes", listed)
	}
	files[listed] = strings.Replace(text, list, list+", "+added, 1)
	overlay(t, files)
}

// manifestOf builds the service and asks it.
func manifestOf(t *testing.T, service string) tool.Manifest {
	t.Helper()
	services, err := inventory.Load(".")
	if err != nil {
		t.Fatal(err)
	}
	owner, err := services.Find(service)
	if err != nil {
		t.Fatal(err)
	}
	list, err := manifests(inventory.Inventory{owner})
	if err != nil {
		t.Fatal(err)
	}
	return list[0]
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
