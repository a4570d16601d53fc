package service

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/spf13/cobra"

	"hub.internal/pkg/config"
	"hub.internal/pkg/discover"
)

// healthTimeout is longer than a readiness check may take (2 s).
const healthTimeout = 3 * time.Second

// healthCommand asks the process that listens at HUB_ADDR: an image without a shell has nothing else
// that a container's health check could run.
func healthCommand(environ []string) *cobra.Command {
	return &cobra.Command{Use: "health", Short: "Ask the service that listens at HUB_ADDR whether it may get calls", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return checkHealth(cmd.Context(), environ) }}
}

// checkHealth asks the readiness of the process that listens at HUB_ADDR, within three seconds.
func checkHealth(ctx context.Context, environ []string) error {
	s, err := config.Load[struct {
		Addr string `env:"HUB_ADDR,required,notEmpty"`
	}](environ)
	if err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(s.Addr)
	if err != nil || port == "0" {
		return fmt.Errorf("configuration: HUB_ADDR has to be host:port with the port that the service listens at, not %q", s.Addr)
	}
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		host = "localhost"
	}
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(host, port)+discover.ReadyPath, nil)
	if err != nil {
		return fmt.Errorf("configuration: HUB_ADDR: %w", err)
	}
	// The question is for this machine: no proxy answers it.
	res, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", discover.ReadyPath, res.Status)
	}
	return nil
}
