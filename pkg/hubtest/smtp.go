package hubtest

import (
	"testing"

	"hub.internal/pkg/localserver"
)

// SMTP is a mail server of the test's own.
type SMTP struct {
	*localserver.SMTP
	t testing.TB
}

// NewSMTP starts a server that keeps mails in a directory of the test, and ends with it.
func NewSMTP(t testing.TB, o localserver.SMTPOptions) *SMTP {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	s, err := localserver.StartSMTP(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Kill)
	return &SMTP{s, t}
}

// Mails are those taken so far, oldest first.
// A message that cannot be read fails the test, and the others are there.
func (s *SMTP) Mails() []localserver.Mail {
	s.t.Helper()
	names, err := localserver.MailFiles(s.Dir())
	if err != nil {
		s.t.Fatal(err)
	}
	mails := make([]localserver.Mail, len(names))
	for i, name := range names {
		if mails[i], err = localserver.OpenMail(s.Dir(), name); err != nil {
			s.t.Errorf("%s: %v", name, err)
		}
	}
	return mails
}
