package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"hub.internal/pkg/localserver"
)

// installServers installs the servers that are missing, and what is named beside them; apt's
// words go to a log.
func installServers(ctx context.Context, l layout, p progress, also ...string) error {
	// The usual case: nothing is missing, and nothing is printed.
	missing := localserver.Missing(also...)
	if len(missing) == 0 {
		return nil
	}
	log, err := newLog(l, "install")
	if err != nil {
		return err
	}
	defer log.Close()
	return p.step("installing "+strings.Join(missing, ", "), func() error {
		if err := localserver.Install(ctx, log, also...); err != nil {
			return fmt.Errorf("%w; see %s", err, l.log("install"))
		}
		return nil
	})
}

// fetchBeside fetches the newer servers that tests of the source run on. A machine that cannot have them, because its
// system is another one or its mirror has none, gets a line: the tests on them are skipped.
func fetchBeside(ctx context.Context, l layout, p progress) error {
	err := fetchServers(ctx, l, p, "for tests", localserver.SideBySideServers()...)
	if err != nil && ctx.Err() == nil {
		p.say("the tests on servers of Debian's next release that are not there are skipped: %s", strings.ReplaceAll(err.Error(), "\n", "; "))
		return nil
	}
	return err
}

// fetchServers fetches the newer servers that are not there yet; apt's words go to a log. What one of them lacks keeps none of the
// others away.
func fetchServers(ctx context.Context, l layout, p progress, why string, servers ...localserver.SideBySide) error {
	servers = slices.DeleteFunc(servers, func(b localserver.SideBySide) bool { _, err := b.Root(); return err == nil })
	if len(servers) == 0 {
		return nil
	}
	log, err := newLog(l, "install-beside")
	if err != nil {
		return err
	}
	defer log.Close()
	var next *localserver.NextRelease
	if err := p.step("reading the packages of Debian's next release", func() (err error) {
		next, err = localserver.ReadNextRelease(ctx, log)
		return err
	}); err != nil {
		return err
	}
	defer next.Close()
	for _, b := range servers {
		err = errors.Join(err, p.step("fetching "+b.Package+" of Debian's next release "+why, func() error { return next.Fetch(ctx, b, log) }))
	}
	return err
}
