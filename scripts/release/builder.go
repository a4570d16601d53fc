package main

// Docker and buildah make the same image of deploy/Dockerfile; which of them is here decides. Both are given the
// program that was built before, so that what is released is what was compared and checked.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// builder is a program that makes images of a Dockerfile.
type builder struct {
	// The program, as it is called.
	name string
	// before are arguments ahead of the command, after those behind it.
	before, after []string
}

// findBuilder is docker where its engine answers, else buildah.
func findBuilder(ctx context.Context) (builder, error) {
	if exec.CommandContext(ctx, "docker", "info").Run() == nil {
		// An attestation would hold the time at which it was made.
		return builder{name: "docker", after: []string{"--provenance=false"}}, nil
	}
	if b := newBuildah(); b.able(ctx) {
		return b, nil
	}
	return builder{}, errors.New("neither a Docker engine (`docker info`) nor a buildah of 1.28 or later is here; " +
		"buildah is a package of Debian and Ubuntu: apt-get install --no-install-recommends buildah")
}

// able tells whether the program is here, and new enough to take a directory in place of a stage.
func (b builder) able(ctx context.Context) bool {
	help, err := exec.CommandContext(ctx, b.name, "build", "--help").Output()
	return err == nil && bytes.Contains(help, []byte("--build-context"))
}

// newBuildah is buildah, with options ahead of its commands. It runs no step of the Dockerfile, so that no privilege is needed.
func newBuildah(before ...string) builder {
	return builder{name: "buildah", before: before, after: []string{"--isolation=chroot", "--layers=false", "--identity-label=false"}}
}

// image makes the image of what was laid out: the program is not built in the Dockerfile's stage, but given in its place.
// What the builder prints goes to progress.
func (b builder) image(ctx context.Context, e edition, progress io.Writer) error {
	stage, err := filepath.Abs(e.stage())
	if err != nil {
		return err
	}
	// Times in the image are those of the commit, so that a second build has the same.
	epoch := fmt.Sprint(e.at.Unix())
	args := append(append([]string{}, b.before...), "build")
	args = append(args, b.after...)
	if b.name == "buildah" {
		args = append(args, "--timestamp="+epoch)
	} else {
		args = append(args, "--build-arg=SOURCE_DATE_EPOCH="+epoch)
	}
	args = append(args, "--build-context=build="+stage)
	for name, value := range map[string]string{"SERVICE": e.service, "VERSION": e.plain(), "REVISION": e.revision, "SOURCE": e.source,
		"CREATED": e.at.UTC().Format(time.RFC3339)} {
		args = append(args, "--build-arg="+name+"="+value)
	}
	args = append(args, "--file="+filepath.Join(e.root, "deploy", "Dockerfile"), "--tag="+e.image(), stage)
	cmd := exec.CommandContext(ctx, b.name, args...)
	cmd.Stdout, cmd.Stderr = progress, progress
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s build: %w", b.name, err)
	}
	return nil
}

// archive writes the image to a file as `docker save` does. It holds the image's name as docker knows it, so that whoever loads the
// file has the image that a pod asks for: buildah by itself puts localhost/ before a name without a registry.
func (b builder) archive(ctx context.Context, e edition, path string, progress io.Writer) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	// buildah writes beside what an archive holds already.
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	args := append([]string{}, b.before...)
	if b.name == "buildah" {
		args = append(args, "push", e.image(), "docker-archive:"+path+":"+e.image())
	} else {
		args = append(args, "save", "--output", path, e.image())
	}
	cmd := exec.CommandContext(ctx, b.name, args...)
	cmd.Stdout, cmd.Stderr = progress, progress
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %s: %w", b.name, args[len(b.before)], err)
	}
	return nil
}
