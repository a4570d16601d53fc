package inventory

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"hub.internal/pkg/hubtest"
)

// recorded are the ways in which the services name what they record in the audit log.
var recorded = regexp.MustCompile(
	`(?:\b(?:[eE]ntry|change|become|end|rotate|invite|act|Exports|NewTally)\(|\bTool: |\bTool, ` +
		`\w+ = |\boperation :?= ).*?"([a-z]+)\.[a-z_.]+"`,
)

// TestActsAreDeclared: what a service records in the audit log and is no tool begins with a word of its own. Otherwise nobody can tell
// that another one has recorded it.
func TestActsAreDeclared(t *testing.T) {
	root := hubtest.Root(t)
	list, err := Load(root)
	if err != nil {
		t.Fatal(err)
	}
	acts, used := list.Acts(), map[string]bool{}
	for _, s := range list {
		err := filepath.WalkDir(filepath.Join(root, "services", s.Name), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			b, err := os.ReadFile(path)
			for _, name := range recorded.FindAllStringSubmatch(string(b), -1) {
				used[name[1]] = true
				if owner := acts[name[1]]; owner != s.Name {
					t.Errorf("%s: %q is recorded by %s; %s has its acts of %q", path, name[0], s.Name, File, owner)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for word, service := range acts {
		if !used[word] {
			t.Errorf("%s has acts of %s that %s does not record: %s", File, word, service, word)
		}
	}
}
