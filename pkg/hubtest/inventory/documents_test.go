package inventory_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"hub.internal/pkg/hubtest"
)

var (
	// code is what a document shows to be typed or looked up: a fenced block, an indented line, a span.
	code = regexp.MustCompile("(?s)```.*?```|(?m-s:^    .*$)|`[^`\n]+`")
	// target is one of make's, after its name alone or with settings.
	target = regexp.MustCompile(`(?:^|[\s;(&|'"` + "`" + `])make ([a-z][a-z-]*)`)
	// program is a package that go is told to run, build or test.
	program = regexp.MustCompile(`\bgo (?:run|build|test|vet)\b[^\n;|&#` + "`" + `]*?\s(\./[\w./-]+)`)
	built   = regexp.MustCompile(`(?:^|[\s;(&|'"` + "`" + `])bin/([a-z-]+)\b`)
	// path is a file or folder, named from the root.
	path = regexp.MustCompile(`(?:^|[\s('"` + "`" + `=])((?:deploy|k8s|scripts|services|pkg)/[\w.-]+(?:/[\w.-]+)*)`)
)

// TestDocumentsNameWhatThereIs: each target of make, program, file and folder that a document tells a person to use is there.
func TestDocumentsNameWhatThereIs(t *testing.T) {
	root := hubtest.Root(t)
	targets := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^([a-z][a-z-]*):`).FindAllStringSubmatch(read(t, "Makefile"), -1) {
		targets[m[1]] = true
	}
	exists := func(path ...string) bool {
		_, err := os.Stat(filepath.Join(append([]string{root}, path...)...))
		return err == nil
	}
	builds := func(name string) bool {
		for _, pattern := range []string{"services/*/cmd/" + name, "scripts/" + name} {
			if found, err := filepath.Glob(filepath.Join(root, pattern)); err == nil && len(found) > 0 {
				return true
			}
		}
		return name == "release" || name == "image" // folders there
	}
	documents, commands := 0, 0
	err := filepath.WalkDir(root, func(file string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if err == nil && (d.Name() == "node_modules" || d.Name() == "bin" || strings.HasPrefix(d.Name(), ".") && file != root) {
				return filepath.SkipDir
			}
			return err
		}
		if filepath.Ext(file) != ".md" || d.Name() == "CHANGELOG.md" { // what a release has changed may be gone
			return nil
		}
		documents++
		name, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		dir := filepath.Dir(name)
		for _, shown := range code.FindAllString(read(t, name), -1) {
			for _, m := range target.FindAllStringSubmatch(shown, -1) {
				if commands++; !targets[m[1]] {
					t.Errorf("%s: there is no target %q of make: %s", name, m[1], shown)
				}
			}
			for _, m := range built.FindAllStringSubmatch(shown, -1) {
				if commands++; !builds(m[1]) {
					t.Errorf("%s: nothing builds bin/%s: %s", name, m[1], shown)
				}
			}
			for _, m := range program.FindAllStringSubmatch(shown, -1) {
				if at := strings.TrimSuffix(m[1], "/..."); !exists(at) && !exists(dir, at) {
					t.Errorf("%s: there is no package %s: %s", name, m[1], shown)
				}
				commands++
			}
			for _, m := range path.FindAllStringSubmatch(shown, -1) {
				at := strings.TrimRight(m[1], ".")
				if strings.Contains(at, "NAME") || strings.HasSuffix(at, "/v1.2.3") || strings.Contains(shown, "kubectl") && strings.Count(at, "/") == 1 {
					continue // of any; a tag; what a cluster has
				}
				if commands++; !exists(at) && !exists(dir, at) {
					t.Errorf("%s: there is no %s: %s", name, at, shown)
				}
			}
		}
		return nil
	})
	if err != nil || documents < 30 || commands < 100 {
		t.Errorf("%d documents with %d commands: %v", documents, commands, err)
	}
	t.Logf("%d documents with %d commands", documents, commands)
}
