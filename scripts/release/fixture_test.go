package main

import (
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"hub.internal/pkg/hubtest"
)

func TestMain(m *testing.M) { hubtest.Main(m) }

// fixture is a repository with one service, demo, of two modules as Hub's, which builds in no time and can be released as v0.2.0, and
// with a client that can be released as v0.3.0.
func fixture(t *testing.T) repository {
	t.Helper()
	// No clone's owner, hook or setting has a say, and no database of vulnerabilities is asked.
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	for _, who := range []string{"AUTHOR", "COMMITTER"} {
		t.Setenv("GIT_"+who+"_NAME", "Ada")
		t.Setenv("GIT_"+who+"_EMAIL", "ada@example.com")
		t.Setenv("GIT_"+who+"_DATE", "2026-02-03T04:05:06Z")
	}
	t.Setenv("GOVULNDB", "file:///nonexistent")
	dockerfile, err := os.ReadFile(filepath.Join(hubtest.Root(t), "deploy", "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	licence, err := os.ReadFile(filepath.Join(hubtest.Root(t), "LICENSE"))
	if err != nil {
		t.Fatal(err)
	}
	r := repository{root: t.TempDir()}
	r.write(t, map[string]string{
		".gitignore":           "/bin/\n",
		"LICENSE":              string(licence),
		"deploy/services.json": `{"services":[{"name":"demo","edge":true}]}`,
		"deploy/catalog.json":  "{}\n",
		// The Go that is here: none has to be fetched.
		"deploy/Dockerfile": regexp.MustCompile(
			`ARG GO=\S+`,
		).ReplaceAllString(
			string(dockerfile),
			"ARG GO="+strings.TrimPrefix(runtime.Version(), "go"),
		),
		"pkg/go.mod": "module hub.internal/pkg\n\ngo 1.26\n",
		"pkg/service/release.go": "package service\n\nvar release = \"dev\"\n\nfunc Release() " +
			"string { return release }\n",
		"services/demo/go.mod": "module hub.internal/services/demo\n\ngo 1.26\n\nrequire hub.internal/pkg " +
			"v0.0.0\n\nreplace hub.internal/pkg => ../../pkg\n",
		"services/demo/cmd/demo/main.go": "package main\n\nimport \"hub.internal/pkg/service\"\n\nfunc main() " +
			"{ println(service.Release()) }\n",
		"services/demo/demo_test.go": "package demo_test\n\nimport \"testing\"\n\nfunc TestDemo(t *testing.T) {}\n",
		"services/demo/CHANGELOG.md": "# Changelog of demo\n\n## [Unreleased]\n\n## [0.2.0] - 2026-02-03\n\n- " +
			"It says its version.\n",
		"k8s/services/demo/deployment.yaml":               "    image: hub/demo:0.2.0\n",
		"k8s/overlays/production/demo/kustomization.yaml": "  - { name: hub/demo, newTag: 0.2.0 }\n",
		"services/client/go.mod":                          "module hub.internal/services/client\n\ngo 1.26\n",
		"services/client/cmd/hub/main.go":                 "package main\n\nvar release = \"dev\"\n\nfunc main() { println(release) }\n",
		"services/client/CHANGELOG.md":                    "# Changelog of client\n\n## [0.3.0] - 2026-02-03\n\n- It says its version.\n",
		"services/other/go.mod":                           "module hub.internal/services/other\n\ngo 1.26\n",
		"services/other/other.go":                         "package other\n",
		"go.work": "go 1.26\n\nuse (\n\t./pkg\n\t./services/client\n\t./services/demo\n\t./services/" +
			"other\n)\n",
	})
	r.must(t, "init", "--quiet", "--initial-branch", trunk)
	r.commit(t)
	return r
}

func (r repository) write(t *testing.T, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(r.root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func (r repository) must(t *testing.T, args ...string) string {
	t.Helper()
	out, err := r.git(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (r repository) commit(t *testing.T) {
	t.Helper()
	r.must(t, "add", "--all")
	r.must(t, "commit", "--quiet", "--message", "x")
}

// version is one of demo.
func (r repository) version(t *testing.T, version string) edition {
	t.Helper()
	e, err := r.edition(t.Context(), "demo", version)
	if err != nil {
		t.Fatal(err)
	}
	return e
}
