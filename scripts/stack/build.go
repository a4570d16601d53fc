package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"hub.internal/pkg/inventory"
)

// build builds the programs into bin/. Without cgo, as for the container image, so that a
// machine needs no C compiler; without the version control's stamp, so that a commit alone
// does not make other programs, which `up` would restart.
func build(ctx context.Context, l layout, services inventory.Inventory) error {
	packages, err := programs(l, services)
	if err != nil {
		return err
	}
	log, err := os.OpenFile(l.log("build"), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.CommandContext(ctx, "go", append([]string{"build", "-buildvcs=false", "-o", l.path("bin") + "/"}, packages...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = l.root, log, log
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	err = cmd.Run()
	if errors.Is(err, exec.ErrNotFound) {
		return errors.New("go is not on the PATH: install Go (the version in go.work) from https://go.dev/dl")
	}
	if err != nil {
		return withLog(fmt.Errorf("go build: %w", err), l.log("build"))
	}
	return nil
}
