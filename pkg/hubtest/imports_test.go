package hubtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestImportRulesFindViolations(t *testing.T) {
	root := t.TempDir()
	for name, content := range map[string]string{
		"pkg/go.mod":               "module hub.internal/pkg\n",
		"pkg/fault/fault.go":       "package fault\nimport \"errors\"\nvar _ = errors.New\n",
		"pkg/tool/tool.go":         "package tool\nimport _ \"hub.internal/pkg/fault\"\nimport _ \"hub.internal/services/a\"\n",
		"services/a/go.mod":        "module hub.internal/services/a\n",
		"services/a/a.go":          "package a\nimport _ \"hub.internal/services/a/postgres\"\nimport _ \"hub.internal/services/b\"\n",
		"services/a/postgres/p.go": "package postgres\nimport _ \"github.com/jackc/pgx/v5/pgxpool\"\n",
		"services/a/a_test.go":     "package a\nimport _ \"github.com/jackc/pgx/v5\"\n",
		"services/a/testdata/x.go": "package broken\nimport (",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	rules := []Rule{
		{Packages: []string{"services/$x/..."}, Never: []string{"services/..."}, Allow: []string{"services/$x/..."}, Reason: "siblings"},
		{Packages: []string{"pkg/..."}, Never: []string{"services/..."}, Reason: "mechanism"},
		{Packages: []string{"pkg/fault"}, Only: []string{"std"}, Reason: "leaf"},
		{
			Packages: []string{"services/..."},
			Except:   []string{"services/*/postgres"},
			Never:    []string{"github.com/jackc/pgx/..."},
			Tests:    true,
			Reason:   "driver",
		},
	}
	got, err := importViolations(root, rules)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"pkg/tool/tool.go:3: pkg/tool must not import hub.internal/services/a: mechanism",
		"services/a/a.go:3: services/a must not import hub.internal/services/b: siblings",
		"services/a/a_test.go:2: services/a must not import github.com/jackc/pgx/v5: driver",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("violations:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
