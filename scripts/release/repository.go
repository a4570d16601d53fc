package main

// What git knows is asked of git itself: a library would have its own idea of a clean tree.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// repository is a git clone.
type repository struct{ root string }

// git is what git answers, without the last line's end.
func (r repository) git(ctx context.Context, args ...string) (string, error) {
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = r.root, &out, &errs
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(errs.String()))
	}
	return strings.TrimRight(out.String(), "\n"), nil
}

// edition is the one that the working tree holds.
func (r repository) edition(ctx context.Context, service, version string) (edition, error) {
	e := edition{root: r.root, service: service, version: version, source: "unknown"}
	var err error
	if e.toolchain, err = goVersion(r.root); err != nil {
		return e, err
	}
	if e.revision, err = r.git(ctx, "rev-parse", "HEAD"); err != nil {
		return e, err
	}
	changes, err := r.git(ctx, "status", "--porcelain")
	if err != nil {
		return e, err
	}
	if changes != "" {
		e.revision += "+dirty"
	}
	// The time of the commit, in seconds since 1970.
	at, err := r.git(ctx, "log", "-1", "--format=%ct")
	if err != nil {
		return e, err
	}
	seconds, err := strconv.ParseInt(at, 10, 64)
	if err != nil {
		return e, fmt.Errorf("the time of the last commit: %w", err)
	}
	e.at = time.Unix(seconds, 0)
	if origin, err := r.git(ctx, "remote", "get-url", "origin"); err == nil {
		e.source = public(origin)
	}
	return e, nil
}

// public is an address without the name and password that it may hold.
func public(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address // git@host:path, which holds no password
	}
	u.User = nil
	return u.String()
}

// tags are those of releases of a service, the newest first.
func (r repository) tags(ctx context.Context, service string) ([]string, error) {
	out, err := r.git(ctx, "tag", "--list", "services/"+service+"/v*", "--sort=-v:refname")
	return strings.Fields(out), err
}

// export writes the files of a commit below dir.
// What is not in the commit is not there: a build of it needs nothing else.
func (r repository) export(ctx context.Context, commit, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	archive := exec.CommandContext(ctx, "git", "archive", "--format=tar", commit)
	archive.Dir = r.root
	unpack := exec.CommandContext(ctx, "tar", "-x", "-C", dir)
	var err error
	if unpack.Stdin, err = archive.StdoutPipe(); err != nil {
		return err
	}
	if err := unpack.Start(); err != nil {
		return err
	}
	return errors.Join(archive.Run(), unpack.Wait())
}
