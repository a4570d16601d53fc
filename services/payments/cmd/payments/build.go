package main

import (
	"context"
	"time"

	"hub.internal/pkg/service"
	"hub.internal/services/payments"
	"hub.internal/services/payments/api"
	"hub.internal/services/payments/auth"
	"hub.internal/services/payments/console"
	"hub.internal/services/payments/credentials"
	"hub.internal/services/payments/jobs"
	"hub.internal/services/payments/metrics"
	"hub.internal/services/payments/postgres"
)

// build puts the rooms together: the store, the credentials, the Service, its routes, pages and jobs. The metrics
// stand between the Service and its store, its provider and its notifier.
func build(h *service.Host, s settings) error {
	p, err := s.parts()
	if err != nil {
		return err
	}
	h.Check("payment provider", "HUB_PG_BASE_URL", p.provider.Reach)
	h.OnStop("provider", func(context.Context) error { p.provider.Close(); return nil })
	store := postgres.New(h.Store())
	safe := credentials.New(credentials.Config{Store: store, Sealer: p.sealer, Now: time.Now, Logger: h.Logger()})
	svc := payments.New(payments.Config{Store: metrics.Store(store), Apps: auth.New(h.Neighbour("auth")), Credentials: safe,
		Provider: metrics.Provider(p.provider),
		Notifier: metrics.Notifier(p.notifier), Sealer: p.sealer, Env: s.Env, PublicURL: s.PublicURL, Now: time.Now, Logger: h.Logger()})
	pages, err := console.New(console.Config{Service: svc, Credentials: safe, Trusted: h.Keys(), Logger: h.Logger()})
	if err != nil {
		return err
	}
	h.Ready("write store", store.Ready)
	h.Prove("credentials", "HUB_SECRETS_KEYSET", keysetProof(safe))
	h.Check("webhooks", "HUB_SECRETS_KEYSET", safe.CheckVerifying)
	h.Reap(store.Keys())
	h.Go("gauges", store.Sample(h.Logger(), time.Now).Run)
	h.Tools(credentials.Tools(safe)...)
	h.Routes(api.Routes(svc)...)
	h.Notifications(api.Notifications())
	h.Pages(pages)
	h.Operations(console.Operations(pages)...)
	h.Work(jobs.Runner(svc, store, time.Now))
	return nil
}

// keysetProof wants one active credential at least that opens, where there are any.
func keysetProof(s *credentials.Service) service.Proof {
	return service.Proof{Try: s.Unopenable, What: "credentials",
		None: "it opens none of the %d active credentials of providers; it is not the keyset that they were sealed with",
		Some: "active credentials were sealed with a key that HUB_SECRETS_KEYSET does not have"}
}
