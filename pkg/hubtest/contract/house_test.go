package contract

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hub.internal/pkg/hubtest"
)

// TestEveryEndIsHeld: no client of a neighbour and no stand-in for one is written beside this package.
//   - An operation of a neighbour is a variable, and the package's Contracts lists its Contract.
//   - The service's tests hand Contracts to Clients.
//   - Tests make a stand-in's operations with Fake, or with Lie.
func TestEveryEndIsHeld(t *testing.T) {
	services := filepath.Join(hubtest.Root(t), "services")
	folders, err := filepath.Glob(filepath.Join(services, "*"))
	if err != nil || len(folders) == 0 {
		t.Fatalf("no services: %v", err)
	}
	catalog, err := load(hubtest.Root(t))
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, m := range catalog.Manifests {
		for _, o := range m.Operations {
			paths = append(paths, o.Path)
		}
	}
	held := 0
	for _, folder := range folders {
		name := filepath.Base(folder)
		if name == "e2e" { // it runs the real services
			continue
		}
		packages, tests := parse(t, folder)
		for dir, files := range packages {
			clients, listed := clientsOf(files)
			for _, problem := range unheld(clients, listed) {
				t.Errorf("%s: %s", dir, problem)
			}
			if held += len(clients); len(clients) > 0 && !slices.ContainsFunc(tests, handsOver(files[0].Name.Name)) {
				t.Errorf("%s: no test of %s hands its Contracts to contract.Clients", dir, name)
			}
		}
		for _, file := range tests {
			for _, problem := range makeshift(file, paths) {
				t.Errorf("%s: %s", file.Name.Name, problem)
			}
		}
	}
	if held == 0 {
		t.Error("no service has a client")
	}
}

// parse reads the Go files of a service: those of its packages by folder, and those of its tests.
func parse(t *testing.T, folder string) (packages map[string][]*ast.File, tests []*ast.File) {
	t.Helper()
	packages = map[string][]*ast.File{}
	files := token.NewFileSet()
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		switch {
		case err != nil:
		case strings.HasSuffix(path, "_test.go"):
			tests = append(tests, file)
		default:
			packages[filepath.Dir(path)] = append(packages[filepath.Dir(path)], file)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return packages, tests
}

// clientsOf lists the package's operations of neighbours by the variable that holds each, "" for one
// that stands alone, and the variables that Contracts lists.
func clientsOf(files []*ast.File) (clients, listed []string) {
	for _, file := range files {
		named := map[ast.Expr]string{}
		for _, decl := range file.Decls {
			switch d := decl.(type) {
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if v, ok := spec.(*ast.ValueSpec); ok && len(v.Values) == len(v.Names) {
						for i := range v.Values {
							named[v.Values[i]] = v.Names[i].Name
						}
					}
				}
			case *ast.FuncDecl:
				if d.Recv == nil && d.Name.Name == "Contracts" {
					ast.Inspect(d, func(n ast.Node) bool {
						if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == "Contract" {
							if x, ok := s.X.(*ast.Ident); ok {
								listed = append(listed, x.Name)
							}
						}
						return true
					})
				}
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if l, ok := n.(*ast.CompositeLit); ok {
				if index, ok := l.Type.(*ast.IndexListExpr); ok && selects(index.X, "remote", "Operation") {
					clients = append(clients, named[l])
				}
			}
			return true
		})
	}
	return clients, listed
}

func unheld(clients, listed []string) (problems []string) {
	for _, c := range clients {
		switch {
		case c == "":
			problems = append(problems, "a remote.Operation has to be a variable of the package, so that Contracts can list it")
		case !slices.Contains(listed, c):
			problems = append(problems, "Contracts has to list "+c+".Contract()")
		}
	}
	return problems
}

// handsOver tells whether a file calls contract.Clients with what the package's Contracts returns.
func handsOver(name string) func(*ast.File) bool {
	return func(file *ast.File) (found bool) {
		ast.Inspect(file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && selects(call.Fun, "contract", "Clients") && len(call.Args) > 0 {
				list, ok := call.Args[len(call.Args)-1].(*ast.CallExpr)
				found = found || ok && selects(list.Fun, name, "Contracts")
			}
			return true
		})
		return found
	}
}

// makeshift lists where a test serves an operation that nothing holds.
func makeshift(file *ast.File, paths []string) (problems []string) {
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		if selects(call.Fun, "rpc", "New") {
			problems = append(problems, "rpc.New in a test: a stand-in's operation is made with contract.Fake, or with contract.Lie")
		}
		if s, ok := call.Fun.(*ast.SelectorExpr); ok && len(call.Args) > 0 && (s.Sel.Name == "Handle" || s.Sel.Name == "HandleFunc") {
			pattern, ok := call.Args[0].(*ast.BasicLit)
			if ok && slices.ContainsFunc(paths, func(path string) bool { return strings.Contains(pattern.Value, path) }) {
				problems = append(problems, s.Sel.Name+"("+pattern.Value+"): a stand-in's operation is made with contract.Fake, or with contract.Lie")
			}
		}
		return true
	})
	return problems
}

func selects(e ast.Expr, x, name string) bool {
	s, ok := e.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	id, ok := s.X.(*ast.Ident)
	return ok && id.Name == x && s.Sel.Name == name
}

func TestWhatIsNotHeldIsFound(t *testing.T) {
	source := func(body string) *ast.File {
		t.Helper()
		file, err := parser.ParseFile(token.NewFileSet(), "x.go", "package client\n"+body, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		return file
	}
	for body, want := range map[string]int{
		`var get = remote.Operation[in, out]{Path: "/internal/x"}
		 func Contracts() []remote.Contract { return []remote.Contract{get.Contract()} }`: 0,
		`var get = remote.Operation[in, out]{Path: "/internal/x"}`: 1,
		`var get, set = remote.Operation[in, out]{}, remote.Operation[in, out]{}
		 func Contracts() []remote.Contract { return []remote.Contract{get.Contract()} }`: 1,
		`func ask() { remote.Operation[in, out]{Path: "/internal/x"}.Call(ctx, c, in{}) }`: 1,
	} {
		if problems := unheld(clientsOf([]*ast.File{source(body)})); len(problems) != want {
			t.Errorf("%s: %q", body, problems)
		}
	}
	for body, want := range map[string]bool{
		`func TestX() { contract.Clients(t, "a", "b", client.Contracts()...) }`: true,
		`func TestX() { contract.Clients(t, "a", "b", other.Contracts()...) }`:  false,
		`func TestX() { _ = client.Contracts() }`:                               false,
	} {
		file := source(body)
		file.Name.Name = "client_test"
		if handsOver("client")(file) != want {
			t.Errorf("%s: want %v", body, want)
		}
	}
	for body, want := range map[string]int{
		`func f() { contract.Fake(t, "a", d, do) }`:               0,
		`func f() { rpc.New(d, do) }`:                             1,
		`func f() { mux.Handle("POST /internal/drafts/get", h) }`: 1,
		`func f() { mux.HandleFunc("GET /internal/secret", h) }`:  0,
	} {
		if problems := makeshift(source(body), []string{"/internal/drafts/get"}); len(problems) != want {
			t.Errorf("%s: %q", body, problems)
		}
	}
}
