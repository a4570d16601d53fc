package main

import (
	"context"
	"fmt"
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
	for _, b := range localserver.SideBySideServers() {
		err := fetchServer(ctx, l, p, b, "for tests")
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			p.say("the tests on %s of Debian's next release are skipped: %v", b.Name, err)
		}
	}
	return nil
}

// fetchServer fetches a newer server where it is not there yet; apt's words go to a log.
func fetchServer(ctx context.Context, l layout, p progress, b localserver.SideBySide, why string) error {
	if _, err := b.Root(); err == nil {
		return nil
	}
	log, err := newLog(l, "install-"+b.Package)
	if err != nil {
		return err
	}
	defer log.Close()
	return p.step("fetching "+b.Package+" of Debian's next release "+why, func() error { return b.Fetch(ctx, log) })
}
