// Command pgsim is a payment provider that moves no money, for tests and the local stack.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"hub.internal/pkg/config"
	"hub.internal/services/payments/pgsim"
)

// settings are read from the environment; OPERATING.md tells them.
type settings struct {
	Addr       string        `env:"HUB_PGSIM_ADDR" envDefault:"127.0.0.1:8090"`
	Remote     bool          `env:"HUB_PGSIM_REMOTE"`
	ClientID   string        `env:"HUB_PGSIM_CLIENT_ID" envDefault:"pgsim"`
	Secret     config.Secret `env:"HUB_PGSIM_SECRET,required,notEmpty"`
	PublicURL  string        `env:"HUB_PGSIM_PUBLIC_URL"`
	WebhookURL string        `env:"HUB_PGSIM_WEBHOOK_URL"`
	AutoIssue  bool          `env:"HUB_PGSIM_AUTO_ISSUE" envDefault:"true"`
	State      string        `env:"HUB_PGSIM_STATE"`
	// OpenControl is for the local stack: programs of this machine decide there what was paid.
	OpenControl bool `env:"HUB_PGSIM_OPEN_CONTROL"`
}

// main serves the simulator until it is told to stop.
func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	s, err := config.Load[settings](os.Environ())
	if err == nil {
		err = pgsim.Serve(ctx, s.Addr, s.Remote, pgsim.Config{ClientID: s.ClientID, Secret: s.Secret.Reveal(), PublicURL: s.PublicURL,
			WebhookURL: s.WebhookURL, AutoIssue: s.AutoIssue, State: s.State, OpenControl: s.OpenControl,
			Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "pgsim: "+err.Error())
		os.Exit(1)
	}
}
