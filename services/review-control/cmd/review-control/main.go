// Command review-control is the service where people decide on mails, and that sends them.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"hub.internal/pkg/rpc"
	"hub.internal/pkg/service"
	"hub.internal/pkg/tool"
	reviewcontrol "hub.internal/services/review-control"
	"hub.internal/services/review-control/auth"
	"hub.internal/services/review-control/authoring"
	"hub.internal/services/review-control/backlog"
	"hub.internal/services/review-control/console"
	"hub.internal/services/review-control/jobs"
	"hub.internal/services/review-control/mailer"
	"hub.internal/services/review-control/postgres"
	"hub.internal/services/review-control/queue"
	"hub.internal/services/review-control/smtp"
	"hub.internal/services/review-control/suppression"
	"hub.internal/services/review-control/triage"
)

// program is what the shell of all services needs to know of this one.
var program = service.Program[settings]{Name: "review-control", Short: "The service where people decide on mails, and that sends them",
	Migrate: postgres.Migrate, Manifest: manifest, Build: build,
	// The workers have a connection each beside those of the calls.
	Connections: func(s settings) int { return 10 + s.Workers }}

// manifest is what review-control tells the gateway. It is made without a store, so that `review-control manifest` needs none.
func manifest() tool.Manifest {
	return rpc.Manifest("review-control", queue.Tools(queue.New(reviewcontrol.New(reviewcontrol.Config{}), nil)),
		append(backlog.Operations(nil), console.Operations(nil)...), console.Routes()...)
}

func main() { os.Exit(program.Main()) }

// build puts the rooms together: the store, the clients of authoring and auth, the sender, the Service, its pages and its
// jobs. Nothing runs before all of them are made.
func build(h *service.Host, s settings) error {
	sender, err := smtp.New(smtp.Config{Addr: s.SMTPAddr, TLS: s.SMTPTLS, User: s.SMTPUser, Password: s.SMTPPassword.Reveal(),
		Hello: s.SMTPHello, Timeout: s.Timeout})
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	h.Check("SMTP server", "HUB_SMTP_ADDR", sender.Check)
	h.OnStop("SMTP server", func(context.Context) error { sender.Close(); return nil })
	store := postgres.New(h.Store())
	list := suppression.New(store, time.Now)
	svc := reviewcontrol.New(reviewcontrol.Config{
		Store: store, Suppressions: list, Drafts: authoring.New(h.Neighbour("authoring")),
		Keys: auth.New(h.Neighbour("auth"), time.Now), Sender: sender, PublicURL: s.PublicURL,
		From: mailer.Address{Name: s.MailFromName, Email: s.MailFrom}, SendTimeout: s.Timeout, PerMinute: s.PerMinute, SendDelay: s.Delay,
		Pace: mailer.Pace{Retry: s.Retry, GiveUp: s.GiveUp}, Policy: triage.Policy{Mark: s.MailMark, Footer: s.MailFooter},
		Logger: h.Logger(),
	})
	q := queue.New(svc, store)
	pages, err := console.New(svc, list, h.Keys(), h.Logger())
	if err != nil {
		return err
	}
	h.Ready("write store", store.Ready)
	h.Reap(store.Keys())
	h.Go("gauges", store.Sample(h.Logger(), time.Now).Run)
	h.Tools(queue.Tools(q)...)
	h.Operations(backlog.Operations(store)...)
	h.Pages(pages)
	h.Operations(console.Operations(pages)...)
	h.Work(jobs.Runner(svc, q, list, store, s.Workers))
	return nil
}
