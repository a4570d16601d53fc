package e2e_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/inventory"
)

// program is one that was built, and the setting that its image brings along.
type program struct {
	path string
	// of is where it is from: a tag or a commit. Empty for those of the working tree.
	of string
	// environ is what its image sets.
	environ []string
}

// previous are the programs of all services as they were released last, by the services' names: of the highest tag below this commit,
// or of the commit in deploy/baseline. They are built as a release is, each module alone, and kept in the user's cache. A clone
// without tags or history has none: the error says so.
func previous(t testing.TB) (map[string]program, error) {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, err
	}
	list, of := map[string]program{}, map[string]string{}
	for _, s := range house {
		name, commit, err := lastRelease(t, s.Name)
		if err != nil {
			return nil, err
		}
		dir := filepath.Join(cache, "hub", "previous", commit)
		of[dir] = commit
		list[s.Name] = program{
			path:    filepath.Join(dir, "bin", s.Name),
			of:      name,
			environ: []string{"HUB_CATALOG=" + filepath.Join(dir, "src", "deploy", "catalog.json")},
		}
	}
	for dir, commit := range of {
		if err := checkOut(t, commit, filepath.Join(dir, "src")); err != nil {
			return nil, err
		}
	}
	var builds errgroup.Group
	builds.SetLimit(2) // a link is one thread's work
	for _, s := range house {
		builds.Go(func() error { return buildPrevious(t.Context(), s, list[s.Name].path) })
	}
	return list, builds.Wait()
}

var released = regexp.MustCompile(`/v\d+\.\d+\.\d+$`)

// lastRelease is the tag of a service's last release before this commit, and its commit.
func lastRelease(t testing.TB, service string) (name, commit string, err error) {
	t.Helper()
	tags, err := git(t, "tag", "--list", "services/"+service+"/v*", "--merged", "HEAD", "--no-contains", "HEAD", "--sort=-v:refname")
	if err != nil {
		return "", "", err
	}
	for tag := range strings.FieldsSeq(tags) {
		if released.MatchString(tag) {
			commit, err = git(t, "rev-parse", tag+"^{commit}")
			return tag, commit, err
		}
	}
	b, err := os.ReadFile(filepath.Join(hubtest.Root(t), "deploy", "baseline"))
	if err != nil {
		return "", "", err
	}
	for line := range strings.Lines(string(b)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			commit = line
		}
	}
	if _, err := git(t, "cat-file", "-e", commit+"^{commit}"); err != nil {
		return "", "", fmt.Errorf("%s has no tag in this clone, and the commit in deploy/baseline is not in it either: %w", service, err)
	}
	return commit, commit, nil
}

func git(t testing.TB, args ...string) (string, error) {
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = hubtest.Root(t)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, out)
	}
	return strings.TrimSpace(string(out)), nil
}

// checkOut writes the files of a commit to dir, which is whole when it is there: another run may be at it.
func checkOut(t testing.TB, commit, dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	made, err := os.MkdirTemp(filepath.Dir(dir), "src-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(made)
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `git archive "$1" | tar -x -C "$2"`, "sh", commit, made)
	cmd.Dir = hubtest.Root(t)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("git archive %s: %w: %s", commit, err, out)
	}
	if err := os.Rename(made, dir); err != nil && !os.IsExist(err) {
		if _, there := os.Stat(dir); there != nil {
			return err
		}
	}
	return nil
}

// buildPrevious builds a program at path from the sources beside it, with the flags of `make check`, whose objects the build cache
// has: what a release adds to them changes no program's doing.
func buildPrevious(ctx context.Context, s inventory.Service, path string) error {
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	made := fmt.Sprintf("%s.%d", path, os.Getpid())
	cmd := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-ldflags=-s -w", "-o", made, "./cmd/"+s.Name)
	cmd.Dir = filepath.Join(filepath.Dir(filepath.Dir(path)), "src", "services", s.Name)
	cmd.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("the previous %s does not build: %w: %s", s.Name, err, out)
	}
	return os.Rename(made, path)
}
