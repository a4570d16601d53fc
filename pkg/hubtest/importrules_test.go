package hubtest

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Rule says what some packages may or may not import. All patterns are import paths
// without the "hub.internal/" in front of Hub's own: "pkg/fault", "services/query/mysql",
// "github.com/jackc/pgx/v5/...". In a pattern "*" stands for one element, "..." at the end
// for any rest, also none, and "$name" for one element that is the same throughout the
// rule, so that a rule can speak of "a service's own packages". "std" is the standard
// library and "hub/..." everything of Hub's.
type Rule struct {
	// Packages are those the rule binds, Except those it spares.
	Packages, Except []string
	// Never lists what must not be imported; Only, when set, lists all that may be.
	// Allow makes exceptions from Never.
	Never, Allow, Only []string
	// Tests extends the rule to _test.go files.
	Tests bool
	// Reason is printed with a violation: why the rule is there and what to do instead.
	Reason string
}

const hubPrefix = "hub.internal/"

// Imports checks every Go file below root against the rules. Build tags are not heeded: a
// forbidden import is forbidden on every platform.
func Imports(t testing.TB, root string, rules ...Rule) {
	t.Helper()
	violations, err := importViolations(root, rules)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range violations {
		t.Error(v)
	}
}

// importViolations lists the violations, one line each.
func importViolations(root string, rules []Rule) (violations []string, err error) {
	modules := []module{}
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); path != root && (strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") ||
				name == "testdata" || name == "vendor" || name == "node_modules") {
				return fs.SkipDir
			}
			if name, err := modulePath(filepath.Join(path, "go.mod")); err == nil {
				modules = append(modules, module{dir: path, path: name})
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		found, err := checkFile(path, packagePath(modules, filepath.Dir(path)), rules)
		for _, v := range found {
			rel, relErr := filepath.Rel(root, path)
			if relErr != nil {
				return relErr
			}
			violations = append(violations, rel+v)
		}
		return err
	})
	return violations, err
}

// module is a Go module below the root.
type module struct{ dir, path string }

func modulePath(gomod string) (string, error) {
	b, err := os.ReadFile(gomod)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(b)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "module "); ok {
			return strings.TrimSpace(name), nil
		}
	}
	return "", fmt.Errorf("%s names no module", gomod)
}

// packagePath is the pattern form of the import path of dir: of its innermost module,
// which is the last one found that holds it.
func packagePath(modules []module, dir string) string {
	for _, m := range slices.Backward(modules) {
		if rel, err := filepath.Rel(m.dir, dir); err == nil && filepath.IsLocal(rel) {
			return strings.TrimPrefix(strings.TrimSuffix(m.path+"/"+filepath.ToSlash(rel), "/."), hubPrefix)
		}
	}
	return filepath.ToSlash(dir) // no module: no rule will match
}

// checkFile returns ":line: …" for each forbidden import of a file.
func checkFile(path, pkg string, rules []Rule) (violations []string, err error) {
	var bound []Rule
	for _, r := range rules {
		if r.Tests || !strings.HasSuffix(path, "_test.go") {
			bound = append(bound, r)
		}
	}
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, nil, parser.ImportsOnly)
	if err != nil {
		return nil, err
	}
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, err
		}
		for _, r := range bound {
			if !r.permits(pkg, imported) {
				violations = append(violations, fmt.Sprintf(":%d: %s must not import %s: %s",
					files.Position(spec.Pos()).Line, pkg, imported, r.Reason))
			}
		}
	}
	return violations, nil
}

// permits says whether the rule lets pkg import the path.
func (r Rule) permits(pkg, imported string) bool {
	names := map[string]string{}
	if !matchAny(r.Packages, pkg, names) || matchAny(r.Except, pkg, map[string]string{}) {
		return true
	}
	if len(r.Only) > 0 && !matchImport(r.Only, imported, names) {
		return false
	}
	return !matchImport(r.Never, imported, names) || matchImport(r.Allow, imported, names)
}

func matchImport(patterns []string, imported string, names map[string]string) bool {
	path, hub := strings.CutPrefix(imported, hubPrefix)
	first, _, _ := strings.Cut(imported, "/")
	return matchAny(patterns, path, names) ||
		hub && slices.Contains(patterns, "hub/...") ||
		!strings.Contains(first, ".") && slices.Contains(patterns, "std")
}

func matchAny(patterns []string, path string, names map[string]string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return match(p, path, names) })
}

// match compares element by element; names holds what "$name" stands for, and is filled at
// a name's first use.
func match(pattern, path string, names map[string]string) bool {
	want, have := strings.Split(pattern, "/"), strings.Split(path, "/")
	for i, w := range want {
		if w == "..." {
			return true
		}
		if i >= len(have) {
			return false
		}
		switch {
		case w == "*":
		case strings.HasPrefix(w, "$"):
			if bound, ok := names[w]; !ok {
				names[w] = have[i]
			} else if bound != have[i] {
				return false
			}
		case w != have[i]:
			return false
		}
	}
	return len(want) == len(have)
}
