package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"

	"hub.internal/pkg/config"
	"hub.internal/pkg/discover"
	"hub.internal/pkg/process"
	"hub.internal/pkg/remote"
	"hub.internal/pkg/schema"
	reviewcontrol "hub.internal/services/review-control"
	"hub.internal/services/review-control/jobs"
	"hub.internal/services/review-control/postgres"
	"hub.internal/services/review-control/smtp"
)

type settings struct {
	process.Settings
	WriteStoreURL config.Secret `env:"HUB_WRITE_STORE_URL,required,notEmpty"`
	// PublicURL is where browsers reach the gateway.
	PublicURL string `env:"HUB_PUBLIC_URL,required,notEmpty"`

	SMTPAddr     string        `env:"HUB_SMTP_ADDR,required,notEmpty"`
	SMTPTLS      string        `env:"HUB_SMTP_TLS" envDefault:"starttls"`
	SMTPUser     string        `env:"HUB_SMTP_USER"`
	SMTPPassword config.Secret `env:"HUB_SMTP_PASSWORD"`
	SMTPHello    string        `env:"HUB_SMTP_HELLO"`
	MailFrom     string        `env:"HUB_MAIL_FROM,required,notEmpty"`
	MailFromName string        `env:"HUB_MAIL_FROM_NAME"`

	PerMinute int           `env:"HUB_SEND_PER_MINUTE" envDefault:"600"`
	Workers   int           `env:"HUB_SEND_WORKERS" envDefault:"4"`
	Timeout   time.Duration `env:"HUB_SEND_TIMEOUT" envDefault:"30s"`
	Retry     time.Duration `env:"HUB_SEND_RETRY" envDefault:"30s"`
	GiveUp    time.Duration `env:"HUB_SEND_GIVE_UP" envDefault:"24h"`
}

// check judges what the types of the settings do not.
func (s settings) check() error {
	between := func(name string, d, least, most time.Duration) error {
		if d < least || d > most {
			return fmt.Errorf("%s has to be between %s and %s, not %s", name, least, most, d)
		}
		return nil
	}
	var problems []error
	if u, err := url.Parse(s.PublicURL); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.RawQuery != "" || u.Fragment != "" {
		problems = append(problems, fmt.Errorf("HUB_PUBLIC_URL has to be an http or https URL, not %q", s.PublicURL))
	}
	if !schema.IsEmail(s.MailFrom) {
		problems = append(problems, fmt.Errorf("HUB_MAIL_FROM has to be a bare e-mail address, not %q", s.MailFrom))
	}
	if s.PerMinute < 1 || s.PerMinute > 60_000 {
		problems = append(problems, fmt.Errorf("HUB_SEND_PER_MINUTE has to be between 1 and 60000, not %d", s.PerMinute))
	}
	if s.Workers < 1 || s.Workers > 100 {
		problems = append(problems, fmt.Errorf("HUB_SEND_WORKERS has to be between 1 and 100, not %d", s.Workers))
	}
	problems = append(problems, between("HUB_SEND_TIMEOUT", s.Timeout, time.Second, 10*time.Minute), between("HUB_SEND_RETRY", s.Retry, time.Millisecond, time.Hour),
		between("HUB_SEND_GIVE_UP", s.GiveUp, time.Second, 30*24*time.Hour))
	return errors.Join(problems...)
}

// instance names this process: a container that starts again has the same host name and address.
func instance(addr net.Addr) string {
	host, err := os.Hostname()
	if err != nil {
		return "" // takes over nothing
	}
	return host + " " + addr.String()
}

func serve(ctx context.Context, environ []string) error {
	s, err := config.Load[settings](environ)
	if err != nil {
		return err
	}
	if err := s.check(); err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	sender, err := smtp.New(smtp.Config{Addr: s.SMTPAddr, TLS: s.SMTPTLS, User: s.SMTPUser, Password: s.SMTPPassword.Reveal(), Hello: s.SMTPHello, Timeout: s.Timeout})
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	store, err := postgres.Open(s.WriteStoreURL.Reveal(), s.Workers)
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	p, err := process.Start(ctx, name, s.Settings, s)
	if err != nil {
		return err
	}
	directory, err := discover.Open(s.Directory(), p.Logger)
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	authoring := remote.New(remote.Options{Service: "authoring", Instancer: directory.Instancer("authoring"), Keys: p.Keys, Logger: p.Logger})
	log := store.AuditLog(p.Logger)
	p.OnStop("write store", func(context.Context) error { store.Close(); return nil })
	p.OnStop("audit log", log.Close)
	p.OnStop("authoring", func(context.Context) error { authoring.Close(); return nil })
	p.OnStop("SMTP server", func(context.Context) error { sender.Close(); return nil })
	p.Ready("write store", store.Ready)
	service := reviewcontrol.New(reviewcontrol.Config{Store: store, Drafts: reviewcontrol.Neighbour{Client: authoring}, Sender: sender, PublicURL: s.PublicURL,
		From: reviewcontrol.Address{Name: s.MailFromName, Email: s.MailFrom}, SendTimeout: s.Timeout, Pace: reviewcontrol.Pace{Retry: s.Retry, GiveUp: s.GiveUp},
		PerMinute: s.PerMinute, Now: time.Now, Logger: p.Logger})
	console, err := reviewcontrol.NewConsole(service, p.Keys, p.Logger)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	p.Health(mux)
	reviewcontrol.Mount(mux, service, p.Keys, p.Logger, log)
	console.Mount(mux)
	addr, err := p.Serve("internal", s.Addr, mux)
	if err != nil {
		return err
	}
	if err := p.Announce(name, addr); err != nil {
		return err
	}
	background := p.Background()
	runner := jobs.Configure(store.Runner(p.Logger), service, store, s.Workers)
	runner.Instance = instance(addr)
	p.Go(background, "reaper", store.Reaper(p.Logger))
	p.Go(background, "jobs", runner.Run)
	return p.Run(ctx)
}
