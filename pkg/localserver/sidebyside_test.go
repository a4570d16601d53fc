package localserver

import (
	"os"
	"path/filepath"
	"testing"
)

// TestDebianSource reads both forms of apt's files, among those of others.
func TestDebianSource(t *testing.T) {
	for name, c := range map[string]struct{ file, text, want string }{
		"fields": {"sources.list.d/debian.sources", "Types: deb\n# a comment: of theirs\nURIs: http://mirror.example/debian\n" +
			"Suites: bookworm bookworm-updates\nComponents: main\nSigned-By: /usr/share/keyrings/archive.gpg\n\n" +
			"Types: deb\nURIs: http://mirror.example/debian-security\nSuites: bookworm-security\n",
			"deb [signed-by=/usr/share/keyrings/archive.gpg] http://mirror.example/debian sid main"},
		"a line": {"sources.list", "# deb http://old.example/debian bookworm main\ndeb-src http://src.example/debian bookworm main\n" +
			"deb http://mirror.example/debian trixie main contrib\n", "deb http://mirror.example/debian sid main"},
		"a line with options": {"sources.list.d/d.list", "deb [arch=amd64 signed-by=/k.gpg] http://mirror.example/debian stable main\n",
			"deb [signed-by=/k.gpg] http://mirror.example/debian sid main"},
		"another distribution": {"sources.list.d/u.sources", "Types: deb\nURIs: http://mirror.example/ubuntu\nSuites: noble\n", ""},
		"another's packages":   {"sources.list.d/n.list", "deb http://other.example/debian nodistro main\n", ""},
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, c.file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(c.text), 0o644); err != nil {
			t.Fatal(err)
		}
		if got, err := debianSource(dir); got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s: %q, %v; want %q", name, got, err, c.want)
		}
	}
}
