package inventory_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/inventory"
)

// TestAServiceIsItsDomain holds main and the build function of each service to 40 lines together. What a service
// has in common with the others is pkg/service's.
func TestAServiceIsItsDomain(t *testing.T) {
	root := hubtest.Root(t)
	services, err := inventory.Load(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range services {
		paths, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(s.Program()), "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		lines := map[string]int{}
		for _, path := range paths {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			files := token.NewFileSet()
			file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range file.Decls {
				if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil {
					lines[f.Name.Name] = files.Position(f.End()).Line - files.Position(f.Pos()).Line + 1
				}
			}
		}
		const most = 40
		n := lines["main"] + lines["build"]
		t.Logf("%s: %d lines", s.Name, n)
		if lines["main"] == 0 || lines["build"] == 0 || n > most {
			t.Errorf("main and build of %s have %d and %d lines; both have to be there, with at most %d together",
				s.Name, lines["main"], lines["build"], most)
		}
	}
}
