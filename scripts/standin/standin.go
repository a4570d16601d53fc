// Package standin is what the programs that stand in for the world have in common: the mail sink and the receiver of
// notifications show what they took on pages of their own. They are for one machine: they refuse to listen where others
// reach them, because whoever asks sees everything, and know no session.
package standin

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/web"
)

// stopLimit bounds the end of what is being shown.
const stopLimit = 5 * time.Second

// Loopback is an error for an address, host:port, that is not of this machine alone.
func Loopback(addr string) error {
	host, _, err := net.SplitHostPort(addr)
	if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsLoopback() {
		return fmt.Errorf("%q is not an address of this machine alone, such as 127.0.0.1:8025", addr)
	}
	return nil
}

// Serve listens at addr, which has to be a Loopback, and serves until ctx ends; what is being answered then has five
// seconds.
func Serve(ctx context.Context, addr string, h http.Handler, logger *slog.Logger) error {
	if err := Loopback(addr); err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 15 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }() // Shutdown ends it
	logger.Info("showing what comes", "url", "http://"+listener.Addr().String())
	select {
	case err = <-failed:
	case <-ctx.Done():
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopLimit)
	defer cancel()
	return errors.Join(err, server.Shutdown(ending))
}

// Pages makes the pages of a stand-in, by the patterns of http.ServeMux, with its assets and its health check at
// /healthz. make gets the site that they render with, whose templates are in files, in pages/.
func Pages(name string, files embed.FS, logger *slog.Logger, make func(*web.Site) map[string]web.Handler) (*http.ServeMux, error) {
	site, err := web.New(web.Options{Service: name, Files: files, English: true, Logger: logger})
	if err != nil {
		return nil, err
	}
	// The caller adds what is no page, such as a receiver.
	mux := http.NewServeMux()
	mux.Handle("GET /assets/"+name+"/", site.Assets())
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	for pattern, page := range make(site) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			web.Secure(w.Header())
			// Cookies belong to a machine, whatever the port: those of a console here are not ours.
			r.Header.Del("Cookie")
			r = r.WithContext(caller.With(r.Context(), caller.Caller{}))
			if err := page(w, r); err != nil {
				site.Fail(w, r, err)
			}
		})
	}
	return mux, nil
}
