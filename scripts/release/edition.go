package main

// An edition is the one description of a build that all commands share: the flags, the environment and the places of a
// release, whether it is tagged in the end or only tried.

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"

	"hub.internal/pkg/inventory"
)

// edition is what is built: one service or the client, of the sources below root, at a version.
type edition struct {
	root, service string
	// version is that of the tag, as v1.2.3, or inventory.Development.
	version string
	// revision is the commit, with +dirty where the sources differ from it; source is where the repository is.
	revision, source string
	// at is when the sources are from: of the commit, so that a second build tells the same.
	at time.Time
	// toolchain is Go's, as go1.26.8.
	toolchain string
	// quick leaves paths of this machine in the program: a test has a build cache with those.
	quick bool
	// environ is added to the environment of the build.
	environ []string
}

// goVersion is the Go that a release is built with, as deploy/Dockerfile has it.
// A release is built with this one also where another Go is installed: the go command fetches it.
func goVersion(root string) (string, error) {
	b, err := os.ReadFile(filepath.Join(root, "deploy", "Dockerfile"))
	if err != nil {
		return "", err
	}
	m := regexp.MustCompile(`(?m)^ARG GO=(\d+\.\d+\.\d+)$`).FindSubmatch(b)
	if m == nil {
		return "", fmt.Errorf("deploy/Dockerfile names no Go as `ARG GO=1.2.3`")
	}
	return "go" + string(m[1]), nil
}

// plain is the version without the tag's v, as images have it.
func (e edition) plain() string { return strings.TrimPrefix(e.version, "v") }

// image is the image's name.
func (e edition) image() string { return inventory.Service{Name: e.service}.Image(e.plain()) }

// dir is where everything that is made of the service lies.
func (e edition) dir() string { return filepath.Join(e.root, "bin", "release", e.service) }

// stage is the directory that stands for the Dockerfile's stage build.
func (e edition) stage() string { return filepath.Join(e.dir(), "root") }

// deployed tells whether what is released runs in an image. The client is a program that people start: it has none.
func (e edition) deployed() bool { return e.service != inventory.Client }

// program is the built program: of a service at its place among the image's files.
func (e edition) program() string {
	if !e.deployed() {
		return filepath.Join(e.dir(), path.Base(inventory.ClientProgram))
	}
	return filepath.Join(e.stage(), "out", "service")
}

// mainPackage is the package of the program, below the module.
func (e edition) mainPackage() string {
	if !e.deployed() {
		return "./cmd/" + path.Base(inventory.ClientProgram)
	}
	return "./cmd/" + e.service
}

// module is the folder of the service's Go module.
func (e edition) module() string { return filepath.Join(e.root, "services", e.service) }

// flags are those of deploy/Dockerfile. The version control's stamp would differ between a clone and a copy of the same sources.
func (e edition) flags() []string {
	version := "hub.internal/pkg/service.release"
	if !e.deployed() {
		version = "main.release"
	}
	list := []string{"-trimpath", "-buildvcs=false", inventory.BuildTags, "-ldflags=-s -w -buildid= -X " + version + "=" + e.version}
	if e.quick {
		list = list[1:]
	}
	return list
}

// command is the go command in the service's module, alone as in a release: without the workspace, and without cgo.
// Go's own variables of the caller, such as GOFLAGS, must not change what is released.
func (e edition) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = e.module()
	cmd.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0", "GOFLAGS=", "GOEXPERIMENT=", "GOOS=linux", "GOARCH="+runtime.GOARCH,
		"GOTOOLCHAIN="+cmp.Or(e.toolchain, "local"))
	cmd.Env = append(cmd.Env, e.environ...)
	return cmd
}

// build makes the program at path, which is absolute.
func (e edition) build(ctx context.Context, path string) error {
	args := append(append([]string{"build"}, e.flags()...), "-o", path, e.mainPackage())
	if out, err := e.command(ctx, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s does not build alone: %w: %s", e.service, err, out)
	}
	return nil
}

// layOut makes the files of the image, from the moment of the commit and readable for all; of the client it makes the program
// alone.
func (e edition) layOut(ctx context.Context) error {
	if !e.deployed() {
		path, err := filepath.Abs(e.program())
		if err != nil {
			return err
		}
		return e.build(ctx, path)
	}
	stage, err := filepath.Abs(e.stage())
	if err != nil {
		return err
	}
	if err := os.RemoveAll(stage); err != nil {
		return err
	}
	out := filepath.Join(stage, "out")
	if err := os.MkdirAll(filepath.Join(out, "etc", "hub"), 0o755); err != nil {
		return err
	}
	if err := e.build(ctx, filepath.Join(out, "service")); err != nil {
		return err
	}
	catalog, err := os.ReadFile(filepath.Join(e.root, "deploy", "catalog.json"))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(out, "etc", "hub", "catalog.json"), catalog, 0o644); err != nil {
		return err
	}
	// Parents come last: a change in a directory is one of its time.
	modes := []struct {
		path string
		mode os.FileMode
	}{{"service", 0o755}, {"etc/hub/catalog.json", 0o644}, {"etc/hub", 0o755}, {"etc", 0o755}, {".", 0o755}}
	for _, m := range modes { // the umask has had its say, and a directory's time is that of its last entry
		path := filepath.Join(out, filepath.FromSlash(m.path))
		if err := os.Chmod(path, m.mode); err != nil {
			return err
		}
		if err := os.Chtimes(path, e.at, e.at); err != nil {
			return err
		}
	}
	return nil
}
