package pgsim

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// stopLimit bounds the end of what is being answered.
const stopLimit = 5 * time.Second

// Serve answers at an address until ctx ends. Unless remote is set, the address has to be one of this machine alone:
// who reaches a simulator sees what is to be paid.
// It ends without an error when ctx ends, after what is being answered has been answered, for stopLimit at most.
func Serve(ctx context.Context, addr string, remote bool, c Config) error {
	host, _, err := net.SplitHostPort(addr)
	if ip := net.ParseIP(host); err != nil || !remote && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("HUB_PGSIM_ADDR is %q, not an address of this machine alone such as 127.0.0.1:8090; "+
			"HUB_PGSIM_REMOTE=true allows others", addr)
	}
	s, err := New(c)
	if err != nil {
		return err
	}
	defer s.Close()
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: s, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	s.c.Logger.Info("simulating a payment provider", "addr", listener.Addr().String(), "webhooks", s.c.WebhookURL, "state", s.c.State)
	select {
	case err = <-ended:
	case <-ctx.Done():
		stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopLimit)
		defer cancel()
		err = server.Shutdown(stopping)
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
