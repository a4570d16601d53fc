package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"hub.internal/pkg/localserver"
)

// down stops everything that the supervisor runs. It succeeds where nothing runs.
func down(ctx context.Context, l layout, p progress) error {
	c := control{l}
	pid, err := c.pid()
	if err != nil {
		return err
	}
	if pid == 0 {
		p.say("nothing runs")
		return nil
	}
	return p.step("stopping services and servers", func() error { return c.stop(ctx) })
}

// reset removes .hub, and server data that had to be put elsewhere. Built programs stay.
func reset(ctx context.Context, l layout, p progress) error {
	if err := down(ctx, l, p); err != nil {
		return err
	}
	stores, err := filepath.Glob(l.data("*"))
	if err != nil {
		return err
	}
	return p.step("removing "+l.hub(), func() error {
		// Data of a server that runs as another user may lie elsewhere, with a link here.
		for _, dir := range stores {
			if err := errors.Join(localserver.Reclaim(ctx, dir), localserver.RemoveDir(dir)); err != nil {
				return err
			}
		}
		return os.RemoveAll(l.hub())
	})
}
