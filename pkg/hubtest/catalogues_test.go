package hubtest_test

import (
	"encoding/json"
	"errors"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/tool"
	"hub.internal/pkg/web/i18n"
)

var missing = flag.Bool("missing", false, "print what the catalogues lack, as JSON to be filled in")

// english are rooms with pages that are in English alone: the API's reference, which quotes the API, and tools of developers.
var english = []string{"services/gateway/reference", "scripts/mailsink", "scripts/echo"}

// TestCatalogues holds that each message of the console is in each language, and that no catalogue has one that nobody says.
func TestCatalogues(t *testing.T) {
	root := hubtest.Root(t)
	const layout = "pkg/web"
	for _, l := range i18n.Languages[1:] {
		anywhere := map[string]bool{} // said by any room: what several say may be the layout's
		common := catalogue(t, filepath.Join(root, layout, "layout", l.Code()+".json"))
		for _, room := range append(roomsWithPages(t, root), layout) {
			folder := "pages"
			if room == layout {
				folder = "layout"
			}
			own := catalogue(t, filepath.Join(root, room, folder, l.Code()+".json"))
			messages := messagesOf(t, filepath.Join(root, room), folder)
			if room == layout {
				messages = append(messages, namesOfRoutes(t, root)...)
			}
			lacks := map[string]string{}
			for _, m := range messages {
				anywhere[m] = true
				if own[m] == "" && common[m] == "" {
					lacks[m] = ""
				}
			}
			for m := range own {
				if !slices.Contains(messages, m) && !(room == layout && anywhere[m]) {
					t.Errorf("%s/%s/%s.json has %q, which nobody says", room, folder, l.Code(), m)
				}
				if room != layout && common[m] != "" {
					t.Errorf("%s/%s/%s.json has %q, which the layout has", room, folder, l.Code(), m)
				}
			}
			if len(lacks) > 0 {
				t.Errorf("%s/%s/%s.json lacks %d messages of %d: go test ./pkg/hubtest -run TestCatalogues -args -missing", room, folder, l.Code(),
					len(lacks), len(messages))
			}
			if *missing && len(lacks) > 0 {
				e := json.NewEncoder(os.Stdout)
				e.SetEscapeHTML(false)
				e.SetIndent("", "  ")
				_ = e.Encode(lacks)
			}
		}
	}
}

func catalogue(t *testing.T, path string) (messages map[string]string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(b, &messages)
	}
	if err != nil {
		t.Errorf("%s: %v", path, err)
	}
	return messages
}

// namesOfRoutes are the names of tabs and pages, which the layout shows.
func namesOfRoutes(t *testing.T, root string) (names []string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, "deploy", "catalog.json"))
	var c tool.Catalog
	if err == nil {
		err = json.Unmarshal(b, &c)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range c.Manifests {
		for _, r := range m.Console {
			if r.Tab != "" && r.Title != "" {
				names = append(names, r.Tab, r.Title)
			}
		}
	}
	return names
}

// roomsWithPages are the folders that have a folder of pages.
func roomsWithPages(t *testing.T, root string) (rooms []string) {
	t.Helper()
	for _, pattern := range []string{"services/*/pages", "services/*/*/pages", "services/*/*/*/pages", "scripts/*/pages"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, dir := range found {
			room, err := filepath.Rel(root, filepath.Dir(dir))
			if err != nil {
				t.Fatal(err)
			}
			if room = filepath.ToSlash(room); !slices.Contains(english, room) {
				rooms = append(rooms, room)
			}
		}
	}
	return rooms
}

// messagesOf are those of a room: of its pages, its scripts, and its code with that of the rooms below it that have no pages.
func messagesOf(t *testing.T, room, folder string) (messages []string) {
	t.Helper()
	err := filepath.WalkDir(room, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != room {
			if _, err := os.Stat(filepath.Join(path, "pages")); err == nil {
				return fs.SkipDir
			}
		}
		switch in := filepath.Base(filepath.Dir(path)); {
		case strings.HasSuffix(path, "_test.go"):
		case filepath.Ext(path) == ".html" && in == folder:
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			found, err := i18n.Messages(string(b))
			messages = append(messages, found...)
			return err
		case filepath.Ext(path) == ".js" && in == "assets":
			b, err := os.ReadFile(path)
			messages = append(messages, i18n.InScript(b)...)
			return err
		case filepath.Ext(path) == ".go":
			found, err := messagesInCode(path)
			messages = append(messages, found...)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(messages)
	return slices.Compact(messages)
}

// messagesInCode are the literals that a file hands to i18n.T and N and to web.PluralIn, whichever package calls them.
func messagesInCode(path string) (messages []string, err error) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		name := ""
		switch f := call.Fun.(type) {
		case *ast.SelectorExpr:
			if in, ok := f.X.(*ast.Ident); ok {
				name = in.Name + "." + f.Sel.Name
			}
		case *ast.Ident:
			name = f.Name
		}
		at, before := map[string]int{"i18n.T": 1, "i18n.N": 0, "web.PluralIn": 3, "PluralIn": 3, "c.Plural": 3}[name], ""
		switch {
		case name == "i18n.N", at == 1:
		case at == 3:
			before = "{1} "
		default:
			return true
		}
		if at < len(call.Args) {
			if s, ok := literal(call.Args[at]); ok {
				messages = append(messages, before+s)
			}
		}
		return true
	})
	return messages, nil
}

// literal is a string as it stands in code, also in several parts that are put together.
func literal(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		s, err := strconv.Unquote(e.Value)
		return s, e.Kind == token.STRING && err == nil
	case *ast.BinaryExpr:
		left, ok := literal(e.X)
		right, also := literal(e.Y)
		return left + right, e.Op == token.ADD && ok && also
	}
	return "", false
}
