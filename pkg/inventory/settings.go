package inventory

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// shell is the package of what every program has.
const shell = "./pkg/service"

// Setting is a variable that a program reads (pkg/config).
type Setting struct {
	Name string
	// Default is its value when nobody sets it; Required says that there is none.
	Default  string
	Required bool
	// Secret says that its value never shows: it belongs into a file, as NAME_FILE.
	Secret bool
}

// Settings are what a service's program reads, by its commands.
type Settings struct {
	Serve, Migrate []Setting
}

// Find returns a setting by its name.
func Find(settings []Setting, name string) (Setting, bool) {
	n := slices.IndexFunc(settings, func(s Setting) bool { return s.Name == name })
	if n < 0 {
		return Setting{}, false
	}
	return settings[n], true
}

// SettingsOf reads the settings of a service from its source: the struct `settings` and those in functions
// that are called migrate, of its program and of pkg/service. Commands for people have settings beside these.
func SettingsOf(root string, s Service) (Settings, error) {
	var all Settings
	for _, dir := range []string{shell, s.Program()} {
		paths, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(dir), "*.go"))
		if err != nil {
			return all, err
		}
		for _, path := range paths {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			if err := all.read(path); err != nil {
				return all, fmt.Errorf("%s: %w", path, err)
			}
		}
	}
	if len(all.Serve) == 0 || len(all.Migrate) == 0 {
		return all, fmt.Errorf("no settings of %s found in %s", s.Name, s.Program())
	}
	return all, nil
}

// read adds the settings of one source file. It looks for the tag env of struct fields.
func (s *Settings) read(path string) error {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	var problems []error
	collect := func(node ast.Node, into *[]Setting) {
		ast.Inspect(node, func(n ast.Node) bool {
			if field, ok := n.(*ast.Field); ok && field.Tag != nil {
				found, err := setting(field)
				if err != nil {
					problems = append(problems, err)
				} else if found.Name != "" {
					*into = append(*into, found)
				}
			}
			return true
		})
	}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if t, ok := spec.(*ast.TypeSpec); ok && strings.EqualFold(t.Name.Name, "settings") {
					collect(t, &s.Serve)
				}
			}
		case *ast.FuncDecl:
			if d.Name.Name == "migrate" {
				collect(d, &s.Migrate)
			}
		}
	}
	return errors.Join(problems...)
}

// setting reads a field's tags; its name is empty when the field is none.
func setting(field *ast.Field) (Setting, error) {
	text, err := strconv.Unquote(field.Tag.Value)
	if err != nil {
		return Setting{}, err
	}
	tag := reflect.StructTag(text)
	options := strings.Split(tag.Get("env"), ",")
	s := Setting{Name: options[0], Default: tag.Get("envDefault"), Required: slices.Contains(options, "required")}
	if t, ok := field.Type.(*ast.SelectorExpr); ok {
		// What config masks, and the key that masks itself.
		s.Secret = t.Sel.Name == "Secret" || t.Sel.Name == "SigningKey"
	}
	return s, nil
}
