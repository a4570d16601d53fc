package hubtest_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"hub.internal/pkg/hubtest"
)

// TestCommentsNameWhatTheyExplain: a comment that begins with a name begins with the name of what stands below it. What was
// renamed or moved has left its old one there.
func TestCommentsNameWhatTheyExplain(t *testing.T) {
	root := hubtest.Root(t)
	for _, dir := range []string{"pkg", "services", "scripts", "deploy", "k8s"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, _ os.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") {
				return err
			}
			wrong, err := misnamed(path, nil)
			for _, w := range wrong {
				t.Error(w)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestMisnamedCommentsAreFound(t *testing.T) {
	const source = `package p

// open opens.
func open() {}

// shut closes.
func closes() {}

// Reads a line.
func read() {}

type (
	// kind is one.
	sort int
)

// first and second are two.
const first, second = 1, 2
`
	wrong, err := misnamed("p.go", source)
	want := []string{"p.go:6: shut is not closes", "p.go:13: kind is not sort"}
	if err != nil || !slices.Equal(wrong, want) {
		t.Errorf("%v, %v; want %v", wrong, err, want)
	}
}

var lowerWord = regexp.MustCompile(`^[a-z][A-Za-z0-9_]*`)

// misnamed lists the doc comments of a file that begin with another name; source is what the parser takes.
func misnamed(path string, source any) (wrong []string, err error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	check := func(doc *ast.CommentGroup, names ...*ast.Ident) {
		first := lowerWord.FindString(doc.Text())
		named := func(n *ast.Ident) bool { return n.Name == first }
		if first != "" && len(names) > 0 && !slices.ContainsFunc(names, named) {
			wrong = append(wrong, fmt.Sprintf("%s:%d: %s is not %s", path, files.Position(doc.Pos()).Line, first, names[0].Name))
		}
	}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			check(d.Doc, d.Name)
		case *ast.GenDecl:
			for _, s := range d.Specs {
				var doc *ast.CommentGroup
				var names []*ast.Ident
				switch s := s.(type) {
				case *ast.TypeSpec:
					doc, names = s.Doc, []*ast.Ident{s.Name}
				case *ast.ValueSpec:
					doc, names = s.Doc, s.Names
				}
				if doc == nil && !d.Lparen.IsValid() {
					doc = d.Doc
				}
				check(doc, names...)
			}
		}
	}
	return wrong, nil
}
