package main

// A release is a tag services/NAME/vX.Y.Z of a commit on the trunk. What the tag promises is
// checked in this order, and the tag is set last: the tree is clean, the version is later than
// all before, the service's CHANGELOG and the manifests name it (ready); the service's tests pass
// alone, without the workspace; two builds with different caches are the same bytes (reproduces);
// every module has a permitted licence and none is known to be vulnerable (makeBill); the image
// builds. Nothing is pushed: a person does that, and anybody can compare what was released with
// what the tag's files make (the command digest).

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/mod/semver"

	"hub.internal/pkg/inventory"
	"hub.internal/scripts/program"
)

// trunk is the branch that releases are made of.
const trunk = "main"

// Leading zeros are none of semantic versioning's.
var released = regexp.MustCompile(`^v(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)$`)

// cut releases one service or the client: it checks all that a release stands for, builds the program twice, the image of a service and
// the bill of materials, and sets the tag last, so that what fails leaves none. Nothing is pushed.
func cut(ctx context.Context, service, version string, out, progress io.Writer) error {
	r := repository{root: "."}
	if err := r.ready(ctx, service, version); err != nil {
		return err
	}
	e, err := r.edition(ctx, service, version)
	if err != nil {
		return err
	}
	// The client has no image, and needs none of them.
	var b builder
	if e.deployed() {
		if b, err = findBuilder(ctx); err != nil {
			return err
		}
	}
	return r.cut(ctx, e, b, out, progress)
}

// cut does the work of the command, with a builder and an edition that a test may choose. The tag is the last
// step, and of the edition's revision, whatever is committed meanwhile.
func (r repository) cut(ctx context.Context, e edition, b builder, out, progress io.Writer) error {
	fmt.Fprintf(out, "testing %s alone\n", e.service)
	test := e.command(ctx, "test", "./...")
	test.Env = append(test.Env, "CGO_ENABLED=") // as go has it: tests run here, and not in the image
	test.Stdout, test.Stderr = progress, progress
	if err := test.Run(); err != nil {
		return fmt.Errorf("the tests of %s: %w", e.service, err)
	}
	fmt.Fprintf(out, "building %s %s twice\n", e.service, e.version)
	if err := e.layOut(ctx); err != nil {
		return err
	}
	if err := r.reproduces(ctx, e); err != nil {
		return err
	}
	if err := makeBill(ctx, e, out); err != nil {
		return err
	}
	made := e.program()
	if e.deployed() {
		made = e.image()
		if err := b.image(ctx, e, progress); err != nil {
			return err
		}
	}
	// The work takes minutes, and was done with the files that are here.
	if err := r.isClean(ctx); err != nil {
		return err
	}
	tag := "services/" + e.service + "/" + e.version
	if _, err := r.git(ctx, "tag", "--annotate", "--message", e.service+" "+e.version, tag, e.revision); err != nil {
		return err
	}
	fmt.Fprintf(out, "made %s and tagged %s; nothing is pushed: git push origin %s\n", made, tag, tag)
	return nil
}

// ready names everything that keeps the service from being released.
// All that stands in the way is in one error, so that a person mends it in one go.
func (r repository) ready(ctx context.Context, service, version string) error {
	if err := r.knows(service); err != nil {
		return err
	}
	if !released.MatchString(version) {
		return fmt.Errorf("%q is no version as v1.2.3", version)
	}
	var errs []error
	for _, check := range []func() error{
		func() error { return r.isClean(ctx) },
		func() error { return r.isLater(ctx, service, version) },
		func() error { return r.inChangelog(service, version) },
		func() error { return r.inManifests(service, version) },
	} {
		errs = append(errs, check())
	}
	return errors.Join(errs...)
}

// knows returns an error unless service is one of the list or the client.
func (r repository) knows(service string) error {
	list, err := inventory.Load(r.root)
	if err != nil {
		return fmt.Errorf("%w; run it at the root of the repository", err)
	}
	if service == inventory.Client {
		return nil
	}
	_, err = list.Find(service)
	return err
}

// isClean tells whether the tree is what the trunk's last commit holds.
func (r repository) isClean(ctx context.Context) error {
	branch, err := r.git(ctx, "branch", "--show-current")
	if err != nil {
		return err
	}
	changes, err := r.git(ctx, "status", "--porcelain")
	if err != nil {
		return err
	}
	var errs []error
	if branch != trunk {
		errs = append(errs, fmt.Errorf("releases are made on %s, and this is %q", trunk, branch))
	}
	if changes != "" {
		errs = append(errs, fmt.Errorf("commit or remove what git status shows:\n%s", changes))
	}
	return errors.Join(errs...)
}

// isLater tells whether the version is later than those that were released.
// Versions are compared by semantic versioning; tags of another form are passed over.
func (r repository) isLater(ctx context.Context, service, version string) error {
	tags, err := r.tags(ctx, service)
	if err != nil {
		return err
	}
	for _, tag := range tags {
		if last := strings.TrimPrefix(tag, "services/"+service+"/"); released.MatchString(last) && semver.Compare(version, last) <= 0 {
			return fmt.Errorf("%s was released as %s already", service, last)
		}
	}
	return nil
}

// inChangelog tells whether the service's CHANGELOG says what the version is, before all others.
func (r repository) inChangelog(service, version string) error {
	path := filepath.Join("services", service, "CHANGELOG.md")
	b, err := os.ReadFile(filepath.Join(r.root, path))
	if err != nil {
		return err
	}
	list, err := chapters(string(b))
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if len(list) > 0 && list[0].version == "Unreleased" {
		if list[0].text != "" {
			return fmt.Errorf("%s: what is [Unreleased] belongs to this release, or to no commit of it", path)
		}
		list = list[1:]
	}
	if len(list) == 0 || "v"+list[0].version != version {
		return fmt.Errorf("%s does not begin with `## [%s] - ` and its date", path, strings.TrimPrefix(version, "v"))
	}
	return nil
}

// inManifests tells whether the manifests of the commit run the version: who applies those of the tag runs what the tag is of.
// No manifest runs the client.
func (r repository) inManifests(service, version string) error {
	if service == inventory.Client {
		return nil
	}
	version = strings.TrimPrefix(version, "v")
	image := inventory.Service{Name: service}.Image(version)
	var errs []error
	for path, want := range map[string]string{
		filepath.Join("k8s", "services", service, "deployment.yaml"):                  `image: ` + image,
		filepath.Join("k8s", "overlays", "production", service, "kustomization.yaml"): `newTag: ` + version,
	} {
		b, err := os.ReadFile(filepath.Join(r.root, path))
		if err != nil {
			return err
		}
		if !regexp.MustCompile(`(?m)\b` + regexp.QuoteMeta(want) + `(\s|$)`).Match(b) {
			errs = append(errs, fmt.Errorf("%s does not name %s by `%s`", path, version, want))
		}
	}
	return errors.Join(errs...)
}

// reproduces builds the edition's commit elsewhere, with an empty cache, and compares.
// An empty cache shows what only a warm one would hide: a path, a time, a file that is not in git.
func (r repository) reproduces(ctx context.Context, e edition) error {
	first, err := program.Digest(e.program())
	if err != nil {
		return err
	}
	second, err := r.rebuild(ctx, e, e.revision)
	if err != nil {
		return err
	}
	if first != second {
		return fmt.Errorf("two builds of %s differ (sha256:%s and sha256:%s): it would not be known what was released", e.service, first, second)
	}
	return nil
}

// rebuild is the SHA-256 of the program that a commit's files make in a folder of their own; with an empty cache, unless the edition
// brings an environment along.
// The commit is any name that git knows: a revision or a tag.
func (r repository) rebuild(ctx context.Context, e edition, commit string) (string, error) {
	dir, err := os.MkdirTemp("", "hub-release-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	e.root = filepath.Join(dir, "sources")
	if len(e.environ) == 0 {
		e.environ = []string{"GOCACHE=" + filepath.Join(dir, "cache")}
	}
	if err := r.export(ctx, commit, e.root); err != nil {
		return "", err
	}
	if e.toolchain, err = goVersion(e.root); err != nil {
		return "", err
	}
	path := filepath.Join(dir, "service")
	if err := e.build(ctx, path); err != nil {
		return "", err
	}
	return program.Digest(path)
}
