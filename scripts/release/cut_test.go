package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"

	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/inventory"
	"hub.internal/scripts/program"
)

// noImages stands for docker where a test is not about images.
var noImages = builder{name: "true"}

// cached is an environment with the cache that is here: one release of a test is built without.
var cached = []string{"GOFLAGS="}

// TestWhatKeepsAServiceFromARelease: each is named, and all of them at once.
func TestWhatKeepsAServiceFromARelease(t *testing.T) {
	r := fixture(t)
	r.must(t, "tag", "services/demo/v0.1.0")
	for name, c := range map[string]struct {
		service, version string
		files            map[string]string
		git              []string
		want             []string
	}{
		"nothing":         {version: "v0.2.0"},
		"no such service": {service: "nobody", version: "v0.2.0", want: []string{`no service "nobody"`}},
		"no version":      {version: "0.2.0", want: []string{"no version as v1.2.3"}},
		"a candidate":     {version: "v0.2.0-rc.1", want: []string{"no version as v1.2.3"}},
		"released": {version: "v0.1.0", want: []string{"was released as v0.1.0 already", "does not begin with `## [0.1.0] - ",
			"does not name 0.1.0"}},
		"older":    {version: "v0.0.9", want: []string{"was released as v0.1.0 already"}},
		"not told": {version: "v0.3.0", want: []string{"does not begin with `## [0.3.0] - "}},
		"another branch": {version: "v0.2.0", git: []string{"switch", "--quiet", "--create", "other"},
			want: []string{`made on main, and this is "other"`}},
		"a changed file": {version: "v0.2.0", files: map[string]string{"deploy/catalog.json": "{ }"}, want: []string{"deploy/catalog.json"}},
		"a new file": {version: "v0.2.0", files: map[string]string{"services/demo/x.go": "package demo"},
			want: []string{"services/demo/x.go"}},
		"told as unreleased": {version: "v0.2.0", files: map[string]string{"services/demo/CHANGELOG.md": "## [Unreleased]\n- x\n## " +
			"[0.2.0] - 2026-02-03\n- y\n"}, want: []string{"[Unreleased] belongs", "git status"}},
		"not in the manifests": {version: "v0.2.0", files: map[string]string{"k8s/services/demo/deployment.yaml": "image: hub/demo:0.2.0-rc.1\n"},
			want: []string{"deployment.yaml does not name 0.2.0 by `image: hub/demo:0.2.0`", "git status"}},
		"not in production": {version: "v0.2.0", files: map[string]string{"k8s/overlays/production/demo/kustomization.yaml": "{ newTag: " +
			"0.1.0 }\n"}, want: []string{"by `newTag: 0.2.0`"}},
		"told in no form": {version: "v0.2.0", files: map[string]string{"services/demo/CHANGELOG.md": "## 0.2.0\n- y\n"},
			want: []string{"line 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			if c.service == "" {
				c.service = "demo"
			}
			r.write(t, c.files)
			if c.git != nil {
				r.must(t, c.git...)
			}
			err := r.ready(t.Context(), c.service, c.version)
			if (err == nil) != (c.want == nil) {
				t.Errorf("%v", err)
			}
			for _, want := range c.want {
				if err != nil && !strings.Contains(err.Error(), want) {
					t.Errorf("%v does not say %q", err, want)
				}
			}
			r.must(t, "switch", "--quiet", trunk)
			r.must(t, "reset", "--quiet", "--hard")
			r.must(t, "clean", "--quiet", "--force", "-d")
		})
	}
}

// TestARelease has a tag, a program that says so, and a bill of what is in it. One that fails on the way has no tag.
func TestARelease(t *testing.T) {
	r := fixture(t)
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"a test fails": {map[string]string{"services/demo/demo_test.go": "package demo_test\n\nimport \"testing\"\n\nfunc TestDemo(t " +
			"*testing.T) { t.Fatal() }\n"}, "the tests of demo"},
		"it needs others": {map[string]string{"services/demo/cmd/demo/other.go": "package main\n\nimport _ \"hub.internal/services/other\"\n"},
			"hub.internal/services/other"},
	} {
		before := r.must(t, "rev-parse", "HEAD")
		r.write(t, c.files)
		r.commit(t)
		var log bytes.Buffer
		if err := r.cut(
			t.Context(),
			r.version(t, "v0.2.0"),
			noImages,
			io.Discard,
			&log,
		); err == nil ||
			!strings.Contains(err.Error()+log.String(), c.want) {
			t.Errorf("%s: %v %s", name, err, log.String())
		}
		if tags := r.must(t, "tag"); tags != "" {
			t.Errorf("%s: tagged %s", name, tags)
		}
		r.must(t, "reset", "--quiet", "--hard", before)
	}

	var out bytes.Buffer
	e := r.version(t, "v0.2.0")
	if err := r.cut(t.Context(), e, noImages, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	if tags, at := r.must(
		t,
		"tag",
	), r.must(
		t,
		"rev-parse",
		"services/demo/v0.2.0^{commit}",
	); tags != "services/demo/v0.2.0" ||
		at != e.revision {
		t.Errorf("tags %s at %s", tags, at)
	}
	for _, want := range []string{"git push origin services/demo/v0.2.0", "NOT CHECKED", "nothing is pushed", "hub/demo:0.2.0"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s does not say %q", out.String(), want)
		}
	}
	if said, err := exec.Command(e.program()).CombinedOutput(); err != nil || string(said) != "v0.2.0\n" {
		t.Errorf("the program says %v %q", err, said)
	}
	f, err := os.Open(filepath.Join(e.dir(), "sbom.cdx.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var b cdx.BOM
	if err := cdx.NewBOMDecoder(f, cdx.BOMFileFormatJSON).Decode(&b); err != nil {
		t.Fatal(err)
	}
	sum, err := program.Digest(e.program())
	if err != nil {
		t.Fatal(err)
	}
	self, parts := b.Metadata.Component, *b.Components
	if self.Version != "v0.2.0" || (*self.Hashes)[0].Value != sum || b.Metadata.Timestamp != "2026-02-03T04:05:06Z" || len(parts) != 2 ||
		parts[0].Name != "std" || parts[1].Name != "hub.internal/pkg" || parts[1].Version != "v0.2.0" ||
		len(*(*b.Dependencies)[0].Dependencies) != 2 {
		t.Errorf("%+v %+v", self, parts)
	}
	if again, err := r.rebuild(
		t.Context(),
		edition{service: "demo", version: "v0.2.0", environ: cached},
		"services/demo/v0.2.0",
	); err != nil ||
		again != sum {
		t.Errorf("of the tag's files: %v %s, not %s", err, again, sum)
	}
	if err := r.ready(t.Context(), "demo", "v0.2.0"); err == nil {
		t.Error("it can be released twice")
	}
}

// TestAReleaseIsOfWhatWasTested: what is committed while the image builds is not in the tag, and what is changed and not committed keeps
// the release from having one.
func TestAReleaseIsOfWhatWasTested(t *testing.T) {
	for name, c := range map[string]struct{ does, want string }{
		"a commit": {"echo 'package main' > services/demo/cmd/demo/late.go && git add --all && git commit --quiet --message late", ""},
		"a change": {"echo 'package main' > services/demo/cmd/demo/late.go", "late.go"},
	} {
		t.Run(name, func(t *testing.T) {
			r := fixture(t)
			e := r.version(t, "v0.2.0")
			e.environ = cached
			b := builder{name: filepath.Join(t.TempDir(), "build")}
			if err := os.WriteFile(b.name, []byte("#!/bin/sh\ncd "+r.root+" && "+c.does+"\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			err := r.cut(t.Context(), e, b, io.Discard, io.Discard)
			if c.want != "" {
				if tags := r.must(t, "tag"); err == nil || !strings.Contains(err.Error(), c.want) || tags != "" {
					t.Errorf("%v, tags %q", err, tags)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if at := r.must(t, "rev-parse", "services/demo/v0.2.0^{commit}"); at != e.revision || at == r.must(t, "rev-parse", "HEAD") {
				t.Errorf("%s is tagged, and %s was tested", at, e.revision)
			}
		})
	}
}

// TestAReleaseOfTheClient has a tag, a program that says so, and a bill, and neither manifests nor an image.
func TestAReleaseOfTheClient(t *testing.T) {
	r := fixture(t)
	if err := r.ready(t.Context(), inventory.Client, "v0.3.0"); err != nil {
		t.Fatal(err)
	}
	e, err := r.edition(t.Context(), inventory.Client, "v0.3.0")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := r.cut(t.Context(), e, builder{name: "false"}, &out, io.Discard); err != nil || strings.Contains(out.String(), "hub/client") {
		t.Fatalf("%v %s", err, out.String())
	}
	if tags := r.must(t, "tag"); tags != "services/client/v0.3.0" {
		t.Errorf("tags %s", tags)
	}
	if said, err := exec.Command(
		filepath.Join(r.root, "bin", "release", "client", "hub"),
	).CombinedOutput(); err != nil ||
		string(said) != "v0.3.0\n" {
		t.Errorf("the program says %v %q", err, said)
	}
	bill, err := os.ReadFile(filepath.Join(e.dir(), "sbom.cdx.json"))
	if err != nil || !strings.Contains(string(bill), "pkg:golang/hub.internal/services/client@v0.3.0") ||
		strings.Contains(string(bill), "hub:image") {
		t.Errorf("%v %s", err, bill)
	}
}

// TestTwoBuildsAreOne: other folders, another day and another commit with the same sources make the same program, and
// others another. A release (TestARelease) builds without a cache, too.
func TestTwoBuildsAreOne(t *testing.T) {
	r := fixture(t)
	first := r.version(t, "v0.2.0")
	if err := first.layOut(t.Context()); err != nil {
		t.Fatal(err)
	}
	other := repository{root: filepath.Join(t.TempDir(), "elsewhere")}
	if err := r.export(t.Context(), "HEAD", other.root); err != nil {
		t.Fatal(err)
	}
	other.must(t, "init", "--quiet", "--initial-branch", trunk)
	t.Setenv("GIT_COMMITTER_DATE", "2027-01-01T00:00:00Z")
	other.write(t, map[string]string{"services/other/other.go": "package other // changed\n"})
	other.commit(t)
	second := other.version(t, "v0.2.0")
	if err := second.layOut(t.Context()); err != nil {
		t.Fatal(err)
	}
	a, err := program.Digest(first.program())
	if err != nil {
		t.Fatal(err)
	}
	b, err := program.Digest(second.program())
	if err != nil || a != b {
		t.Errorf("%v: %s and %s", err, a, b)
	}
	r.write(
		t,
		map[string]string{
			"pkg/service/release.go": "package service\n\nvar release = \"dev\"\n\nfunc Release() string { return release + \"\" + \"x\" }\n",
		},
	)
	r.commit(t)
	first.environ, first.revision = cached, "HEAD"
	if err := r.reproduces(t.Context(), first); err == nil {
		t.Error("builds of other sources are called the same")
	}
}

// TestTheDockerfileBuildsTheSame holds the stage of deploy/Dockerfile to what make image does in its place.
func TestTheDockerfileBuildsTheSame(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(hubtest.Root(t), "deploy", "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	flags := (edition{version: "${VERSION}"}).flags()
	name, ldflags, _ := strings.Cut(flags[len(flags)-1], "=")
	for _, want := range []string{"GOWORK=off", "CGO_ENABLED=0", strings.Join(flags[:len(flags)-1], " ") + " " + name + `="` + ldflags + `"`} {
		if !strings.Contains(text, want) {
			t.Errorf("deploy/Dockerfile has no %s", want)
		}
	}
	last := text[strings.LastIndex(text, "\nFROM "):]
	if !strings.HasPrefix(last, "\nFROM scratch\n") || strings.Contains(last, "\nRUN ") || !strings.Contains(last, "\nUSER 65532:65532\n") {
		t.Errorf("the image is made of\n%s", last)
	}
}
