package main

import (
	"errors"
	"fmt"
	"net/url"
	"time"

	"hub.internal/pkg/config"
	"hub.internal/pkg/schema"
	"hub.internal/pkg/service"
	"hub.internal/pkg/text"
)

// settings are read from the environment; OPERATING.md tells them.
type settings struct {
	service.Settings
	// PublicURL is where browsers reach the gateway.
	PublicURL string `env:"HUB_PUBLIC_URL,required,notEmpty"`

	SMTPAddr     string        `env:"HUB_SMTP_ADDR,required,notEmpty"`
	SMTPTLS      string        `env:"HUB_SMTP_TLS" envDefault:"starttls"`
	SMTPUser     string        `env:"HUB_SMTP_USER"`
	SMTPPassword config.Secret `env:"HUB_SMTP_PASSWORD"`
	SMTPHello    string        `env:"HUB_SMTP_HELLO"`
	MailFrom     string        `env:"HUB_MAIL_FROM,required,notEmpty"`
	MailFromName string        `env:"HUB_MAIL_FROM_NAME"`

	// MailMark and MailFooter are what each mail has to have: see triage.Policy.
	MailMark   string `env:"HUB_MAIL_MARK"`
	MailFooter string `env:"HUB_MAIL_FOOTER"`

	// PerMinute bounds the mails of all replicas together, Workers those that one replica hands over at once. Delay is how long
	// mails wait after the last decision, Timeout bounds connecting and one hand-over, Retry is the first pause after a mail was
	// put off, and GiveUp ends its tries.
	PerMinute int           `env:"HUB_SEND_PER_MINUTE" envDefault:"600"`
	Delay     time.Duration `env:"HUB_SEND_DELAY" envDefault:"30s"`
	Workers   int           `env:"HUB_SEND_WORKERS" envDefault:"4"`
	Timeout   time.Duration `env:"HUB_SEND_TIMEOUT" envDefault:"30s"`
	Retry     time.Duration `env:"HUB_SEND_RETRY" envDefault:"30s"`
	GiveUp    time.Duration `env:"HUB_SEND_GIVE_UP" envDefault:"24h"`
}

// maxPolicy bounds what each mail has to have, in bytes.
const maxPolicy = 500

// Check judges what the types of the settings do not.
func (s settings) Check() error {
	between := func(name string, d, least, most time.Duration) error {
		if d < least || d > most {
			return fmt.Errorf("%s has to be between %s and %s, not %s", name, least, most, d)
		}
		return nil
	}
	var problems []error
	if u, err := url.Parse(s.PublicURL); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.RawQuery != "" ||
		u.Fragment != "" {
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
	for name, policy := range map[string]string{"HUB_MAIL_MARK": s.MailMark, "HUB_MAIL_FOOTER": s.MailFooter} {
		if len(policy) > maxPolicy || text.OneLine(policy) != policy || !text.IsPrintable(policy) {
			problems = append(problems, fmt.Errorf("%s has to be one line of at most %d bytes, without blanks around it", name, maxPolicy))
		}
	}
	problems = append(problems, between("HUB_SEND_DELAY", s.Delay, 0, time.Hour),
		between("HUB_SEND_TIMEOUT", s.Timeout, time.Second, 10*time.Minute),
		between("HUB_SEND_RETRY", s.Retry, time.Millisecond, time.Hour),
		between("HUB_SEND_GIVE_UP", s.GiveUp, time.Second, 30*24*time.Hour))
	return errors.Join(problems...)
}
