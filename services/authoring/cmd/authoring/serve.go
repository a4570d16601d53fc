package main

import (
	"context"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"hub.internal/pkg/config"
	"hub.internal/pkg/discover"
	"hub.internal/pkg/process"
	"hub.internal/pkg/remote"
	"hub.internal/services/authoring"
	"hub.internal/services/authoring/postgres"
)

type settings struct {
	process.Settings
	WriteStoreURL config.Secret `env:"HUB_WRITE_STORE_URL,required,notEmpty"`
	Recipients    string        `env:"HUB_DRAFT_RECIPIENTS" envDefault:"verified"`
}

func serve(ctx context.Context, environ []string) error {
	s, err := config.Load[settings](environ)
	if err != nil {
		return err
	}
	policy, err := authoring.ParsePolicy(s.Recipients)
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	store, err := postgres.Open(s.WriteStoreURL.Reveal())
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	if !slices.ContainsFunc(environ, func(v string) bool { return strings.HasPrefix(v, "GOGC=") }) {
		// Nearly all of the heap is bodies of calls, which hold no pointers: collecting them
		// early costs little time and halves what a large one leaves behind.
		debug.SetGCPercent(50)
	}
	p, err := process.Start(ctx, name, s.Settings, s)
	if err != nil {
		return err
	}
	directory, err := discover.Open(s.Directory(), p.Logger)
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	query := remote.New(remote.Options{Service: "query", Instancer: directory.Instancer("query"), Keys: p.Keys, Logger: p.Logger})
	log := store.AuditLog(p.Logger)
	p.OnStop("write store", func(context.Context) error { store.Close(); return nil })
	p.OnStop("audit log", log.Close)
	p.OnStop("query", func(context.Context) error { query.Close(); return nil })
	p.Ready("write store", store.Ready)
	service := authoring.New(authoring.Config{Store: store, Recipients: authoring.Neighbour{Client: query}, Policy: policy, Now: time.Now})
	mux := http.NewServeMux()
	p.Health(mux)
	authoring.Mount(mux, service, p.Keys, p.Logger, log)
	addr, err := p.Serve("internal", s.Addr, mux)
	if err != nil {
		return err
	}
	if err := p.Announce(name, addr); err != nil {
		return err
	}
	p.Go(p.Background(), "reaper", store.Reaper(p.Logger))
	return p.Run(ctx)
}
