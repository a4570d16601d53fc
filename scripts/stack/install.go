package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"hub.internal/pkg/hubtest/servers"
)

// installServers installs the servers that are missing, and what is named beside them; apt's
// words go to a log.
func installServers(ctx context.Context, l layout, p progress, also ...string) error {
	missing := servers.Missing(also...)
	if len(missing) == 0 {
		return nil
	}
	if err := l.make(); err != nil {
		return err
	}
	log, err := os.OpenFile(l.log("install"), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	return p.step("installing "+strings.Join(missing, ", "), func() error {
		if err := servers.Install(ctx, log, also...); err != nil {
			return fmt.Errorf("%w; see %s", err, l.log("install"))
		}
		return nil
	})
}
