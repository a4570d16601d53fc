package localserver

import (
	"net"
	"net/smtp"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

func deliver(addr, to, body string) error {
	return smtp.SendMail(addr, nil, "hub@hub.example", []string{to}, []byte(body))
}

func TestSMTPKeepsWholeMessages(t *testing.T) {
	var cut atomic.Bool
	dir := t.TempDir()
	s, err := StartSMTP(SMTPOptions{Dir: dir, Hooks: SMTPHooks{
		Rcpt: func(to string) error {
			if strings.HasPrefix(to, "later") {
				return Reply(451, "later")
			}
			return nil
		},
		Kept: func() error {
			if cut.Load() {
				return ErrCut
			}
			return nil
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Kill()
	count := func() int {
		names, err := MailFiles(dir)
		if err != nil {
			t.Fatal(err)
		}
		return len(names)
	}
	if err := deliver(s.Addr(), "kim@partner.example", "Subject: =?utf-8?b?w7w=?=\r\n\r\nHello\r\n.dot\r\n"); err != nil || count() != 1 {
		t.Fatalf("%v, %d mails", err, count())
	}
	names, _ := MailFiles(dir)
	m, err := OpenMail(dir, names[0])
	if err != nil || m.Subject != "ü" || m.Text != "Hello\r\n.dot\r\n" || m.DeliveredTo != "kim@partner.example" ||
		m.Header.Get("Return-Path") != "<hub@hub.example>" {
		t.Errorf("%+v, %v", m, err)
	}
	if err := deliver(s.Addr(), "later@partner.example", "x"); err == nil || !strings.HasPrefix(err.Error(), "451") || count() != 1 {
		t.Errorf("%v, %d mails", err, count())
	}
	cut.Store(true)
	if err := deliver(s.Addr(), "kim@partner.example", "\r\nx"); err == nil || count() != 2 {
		t.Errorf("a cut connection: %v, %d mails", err, count())
	}
	cut.Store(false)
	conn, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("EHLO x\r\nMAIL FROM:<a@b.example>\r\nRCPT TO:<c@d.example>\r\nDATA\r\nhalf a mess")); err != nil {
		t.Fatal(err)
	}
	s.Kill()
	if err := deliver(s.Addr(), "kim@partner.example", "x"); err == nil {
		t.Error("a killed server takes mails")
	}
	left, err := filepath.Glob(filepath.Join(dir, ".incoming-*"))
	if err != nil || len(left) > 0 || count() != 2 {
		t.Errorf("left behind: %v %v, %d mails", left, err, count())
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	if err := deliver(s.Addr(), "kim@partner.example", "x"); err != nil || count() != 3 {
		t.Errorf("started again: %v, %d mails", err, count())
	}
	if err := s.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	if err := deliver(s.Addr(), "kim@partner.example", "x"); err == nil || !strings.HasPrefix(err.Error(), "451") {
		t.Errorf("without a directory: %v", err)
	}
}

func TestSMTPAsksWhoIsThere(t *testing.T) {
	s, err := StartSMTP(SMTPOptions{Dir: t.TempDir(), User: "hub", Password: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Kill()
	if err := deliver(s.Addr(), "kim@partner.example", "x"); err == nil || !strings.HasPrefix(err.Error(), "530") {
		t.Error(err)
	}
	for password, code := range map[string]string{"wrong": "535", "secret": ""} {
		err := smtp.SendMail(
			s.Addr(),
			smtp.PlainAuth("", "hub", password, "127.0.0.1"),
			"a@b.example",
			[]string{"c@d.example"},
			[]byte("x"),
		)
		if code == "" != (err == nil) || err != nil && !strings.HasPrefix(err.Error(), code) {
			t.Errorf("%s: %v", password, err)
		}
	}
}

// TestSMTPEndsAtOnce kills servers that have hardly begun.
func TestSMTPEndsAtOnce(t *testing.T) {
	s, err := StartSMTP(SMTPOptions{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	for range 500 {
		s.Kill()
		if err := s.Start(); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestSMTPKeepsNothingOnceKilled has a message whole when the server is killed.
func TestSMTPKeepsNothingOnceKilled(t *testing.T) {
	dir := t.TempDir()
	there, release := make(chan struct{}), make(chan struct{})
	s, err := StartSMTP(SMTPOptions{Dir: dir, Hooks: SMTPHooks{Read: func() error { close(there); <-release; return nil }}})
	if err != nil {
		t.Fatal(err)
	}
	sent := make(chan error)
	go func() { sent <- deliver(s.Addr(), "kim@partner.example", "x") }()
	<-there
	s.Kill()
	close(release)
	if err := <-sent; err == nil {
		t.Error("a killed server took a mail")
	}
	if names, err := MailFiles(dir); err != nil || len(names) > 0 {
		t.Errorf("%v, %v", names, err)
	}
}
