package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/inventory"
)

func TestChapters(t *testing.T) {
	for text, want := range map[string]string{
		"# Changelog\n\n## [Unreleased]\n\n## [0.2.0] - 2026-02-03\n\n### Added\n- x\n\n## [0.1.0] - 2026-01-02\n- y\n": "",
		"":                                  "",
		"## [0.2.0]\n- x\n":                 "line 1",
		"## [Unreleased] - 2026-01-01\n":    "line 1",
		"# x\n## 0.2.0 - 2026-01-01\n- x\n": "line 2",
		"## [0.2.0] - yesterday\n- x\n":     "line 1",
		"## [0.2.0] - 2026-01-01\n\n":       "[0.2.0] says nothing",
		"## [0.2.0] - 2026-01-01\n- x\n## [Unreleased]\n": "not the first",
	} {
		list, err := chapters(text)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
		if want == "" && text != "" && (len(list) != 3 || list[1] != chapter{"0.2.0", "2026-02-03", "### Added\n- x"}) {
			t.Errorf("%q: %+v", text, list)
		}
	}
}

// TestEachServiceHasAChangelog, and the client has one, that can be read. What it names as the last release is what
// Kubernetes is told to run.
func TestEachServiceHasAChangelog(t *testing.T) {
	root := hubtest.Root(t)
	list, err := inventory.Load(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(list.Names(), inventory.Client) {
		b, err := os.ReadFile(filepath.Join(root, "services", name, "CHANGELOG.md"))
		if err != nil {
			t.Error(err)
			continue
		}
		told, err := chapters(string(b))
		if err != nil || !strings.HasPrefix(string(b), "# Changelog of "+name+"\n") {
			t.Errorf("%s: %v %+v", name, err, told)
		}
		if len(told) > 0 && told[0].version == "Unreleased" {
			told = told[1:]
		}
		if len(told) == 0 {
			t.Errorf("%s was never released", name)
			continue
		}
		if err := (repository{root: root}).inManifests(name, "v"+told[0].version); err != nil {
			t.Error(err)
		}
	}
}

func TestLicences(t *testing.T) {
	const zero = "Permission to use, copy, modify, and/or distribute this software for any purpose with or without fee " +
		"is hereby granted.\n\n" +
		"THE SOFTWARE IS PROVIDED \"AS IS\" AND THE AUTHOR DISCLAIMS ALL WARRANTIES WITH REGARD TO THIS SOFTWARE INCLUDING ALL IMPLIED " +
		"WARRANTIES OF MERCHANTABILITY " +
		"AND FITNESS. IN NO EVENT SHALL THE AUTHOR BE LIABLE FOR ANY SPECIAL, DIRECT, INDIRECT, " +
		"OR CONSEQUENTIAL DAMAGES OR ANY DAMAGES WHATSOEVER RESULTING FROM " +
		"LOSS OF USE, DATA OR PROFITS, WHETHER IN AN ACTION OF CONTRACT, NEGLIGENCE OR OTHER TORTIOUS ACTION, " +
		"ARISING OUT OF OR IN CONNECTION WITH THE USE OR PERFORMANCE OF THIS SOFTWARE."
	apache, err := os.ReadFile(filepath.Join(hubtest.Root(t), "LICENSE"))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		path  string
		files map[string]string
		want  string
	}{
		"a permitted one":         {"example.com/a", map[string]string{"LICENSE": string(apache)}, ""},
		"under another name":      {"example.com/a", map[string]string{"COPYING.txt": string(apache)}, ""},
		"none":                    {"example.com/a", map[string]string{"README": string(apache)}, "no licence that is known"},
		"one that nobody knows":   {"example.com/a", map[string]string{"LICENSE": "Ask me."}, "no licence that is known"},
		"one that is not allowed": {"example.com/a", map[string]string{"LICENCE.md": zero}, "0BSD, which is not permitted"},
		"one of two":              {"example.com/a", map[string]string{"LICENSE": string(apache), "LICENSE-2": zero}, "not permitted"},
		"Hub's own":               {"hub.internal/pkg", nil, ""},
	} {
		r := repository{root: t.TempDir()}
		r.write(t, c.files)
		err := allowed(map[string]module{c.path: {Path: c.path, Version: "v1.0.0", Dir: r.root}})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestPublic(t *testing.T) {
	for address, want := range map[string]string{
		"https://user:secret@git.example.com/hub.git": "https://git.example.com/hub.git",
		"git@git.example.com:hub.git":                 "git@git.example.com:hub.git", "/srv/hub": "/srv/hub",
	} {
		if got := public(address); got != want {
			t.Errorf("%s: %s", address, got)
		}
	}
}
