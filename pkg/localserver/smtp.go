package localserver

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
)

// maxMail bounds a message.
const maxMail = 64 << 20

// ErrCut, from a hook, breaks the connection without an answer.
var ErrCut = errors.New("cut")

// Reply, from a hook, is an answer of the server: Reply(451, "try later").
func Reply(code int, text string) error {
	return &smtp.SMTPError{Code: code, EnhancedCode: smtp.EnhancedCodeNotSet, Message: text}
}

// SMTPHooks change what the server does; a nil one changes nothing. They may wait.
type SMTPHooks struct {
	// Connect answers a new connection.
	Connect func() error
	// Mail and Rcpt answer MAIL FROM and RCPT TO.
	Mail, Rcpt func(address string) error
	// Read runs when the message is there and not yet kept, and Kept when it is kept and the
	// client has not been told.
	Read, Kept func() error
}

// SMTPOptions say where and how an SMTP server runs.
type SMTPOptions struct {
	// Addr is where it listens; "" takes a free port of 127.0.0.1.
	Addr string
	// Dir gets a file for each message, NAME.eml: whole and on disk before the client is told.
	Dir string
	// TLS offers STARTTLS.
	TLS *tls.Config
	// User and Password, when set, are needed to send; without TLS too.
	User, Password string
	Hooks          SMTPHooks
}

// SMTP takes mails, and delivers none: each becomes a file. It runs in this process. It may
// be killed and started again, at the same address.
type SMTP struct {
	o SMTPOptions

	mu       sync.Mutex
	server   *smtp.Server
	listener net.Listener
	stopped  chan struct{}

	// keeping is held to keep a message, and to change alive: the server that may.
	// Sessions that keep a message hold it for reading, so that Kill waits for them.
	keeping sync.RWMutex
	alive   *smtp.Server
}

// StartSMTP starts a server.
func StartSMTP(o SMTPOptions) (*SMTP, error) {
	if o.Addr == "" {
		port, err := FreePort()
		if err != nil {
			return nil, err
		}
		o.Addr = fmt.Sprintf("127.0.0.1:%d", port)
	}
	s := &SMTP{o: o}
	return s, s.Start()
}

// Addr is host:port.
func (s *SMTP) Addr() string { return s.o.Addr }

// Dir is where the messages are.
func (s *SMTP) Dir() string { return s.o.Dir }

// Start listens again after Kill or Stop.
func (s *SMTP) Start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	listener, err := net.Listen("tcp", s.o.Addr)
	if err != nil {
		return fmt.Errorf("smtp: %w", err)
	}
	s.o.Addr = listener.Addr().String()
	server := smtp.NewServer(smtp.BackendFunc(s.session))
	server.Domain, server.TLSConfig, server.AllowInsecureAuth = "localhost", s.o.TLS, true
	server.MaxMessageBytes, server.MaxRecipients = maxMail, 100
	server.ReadTimeout, server.WriteTimeout = time.Minute, time.Minute
	server.ErrorLog = log.New(io.Discard, "", 0)
	stopped := make(chan struct{})
	s.server, s.listener, s.stopped = server, listener, stopped
	s.revive(server)
	go func() {
		defer close(stopped)
		_ = server.Serve(listener) // ends by Kill or Stop
	}()
	return nil
}

// Kill breaks every connection, whatever it is in the middle of. No file changes afterwards.
// It returns when the last session has ended.
func (s *SMTP) Kill() {
	_ = s.end((*smtp.Server).Close) // what it says is that connections broke
}

// Stop lets the mails that are being taken end.
func (s *SMTP) Stop(ctx context.Context) error {
	return s.end(func(server *smtp.Server) error { return server.Shutdown(ctx) })
}

// end ends the server in one of two ways, and waits until no session keeps a message.
func (s *SMTP) end(how func(*smtp.Server) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server == nil {
		return nil
	}
	err := how(s.server)
	_ = s.listener.Close() // how does so unless the server had not yet begun to serve
	<-s.stopped
	s.server = nil
	s.revive(nil)
	return err
}

// revive lets the sessions of that server keep messages, and no others.
func (s *SMTP) revive(server *smtp.Server) {
	s.keeping.Lock()
	defer s.keeping.Unlock()
	s.alive = server
}

// session begins a connection; the hook may refuse it.
func (s *SMTP) session(c *smtp.Conn) (smtp.Session, error) {
	x := &smtpSession{server: s, conn: c, allowed: s.o.User == ""}
	return x, x.hook(s.o.Hooks.Connect)
}

// smtpSession is one connection.
type smtpSession struct {
	server  *SMTP
	conn    *smtp.Conn
	allowed bool
	from    string
	to      []string
}

var _ smtp.AuthSession = (*smtpSession)(nil)

// hook runs a hook; one that cuts closes the connection.
// What the hook returns is the server's answer; nil lets the server go on.
func (x *smtpSession) hook(run func() error) error {
	if run == nil {
		return nil
	}
	err := run()
	if errors.Is(err, ErrCut) {
		_ = x.conn.Conn().Close() // it is broken on purpose
	}
	return err
}

// AuthMechanisms implements smtp.AuthSession.
func (x *smtpSession) AuthMechanisms() []string {
	if x.server.o.User == "" {
		return nil
	}
	return []string{sasl.Plain}
}

// Auth implements smtp.AuthSession.
func (x *smtpSession) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if user != x.server.o.User || password != x.server.o.Password {
			return Reply(535, "wrong user or password")
		}
		x.allowed = true
		return nil
	}), nil
}

// Mail implements smtp.Session.
func (x *smtpSession) Mail(from string, _ *smtp.MailOptions) error {
	if !x.allowed {
		return Reply(530, "authentication is needed")
	}
	x.from = from
	return x.hook(bound(x.server.o.Hooks.Mail, from))
}

// Rcpt implements smtp.Session.
func (x *smtpSession) Rcpt(to string, _ *smtp.RcptOptions) error {
	if err := x.hook(bound(x.server.o.Hooks.Rcpt, to)); err != nil {
		return err
	}
	x.to = append(x.to, to)
	return nil
}

// bound is a hook with its address, nil where there is no hook.
func bound(run func(string) error, address string) func() error {
	if run == nil {
		return nil
	}
	return func() error { return run(address) }
}

// Data implements smtp.Session.
func (x *smtpSession) Data(r io.Reader) error {
	body, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	if err := x.hook(x.server.o.Hooks.Read); err != nil {
		return err
	}
	if err := x.server.keep(x.conn.Server(), x.from, x.to, body); err != nil {
		return Reply(451, "the message could not be kept: "+err.Error())
	}
	return x.hook(x.server.o.Hooks.Kept)
}

// Reset implements smtp.Session.
func (x *smtpSession) Reset() { x.from, x.to = "", nil }

// Logout implements smtp.Session.
func (x *smtpSession) Logout() error { return nil }

// keep writes a message with its envelope, as a mailbox does. The name sorts by time; a file
// has its name when it is whole.
func (s *SMTP) keep(by *smtp.Server, from string, to []string, body []byte) error {
	s.keeping.RLock()
	defer s.keeping.RUnlock()
	if s.alive != by {
		return errors.New("the server was killed")
	}
	var random [4]byte
	_, _ = rand.Read(random[:]) // it never fails
	f, err := os.CreateTemp(s.o.Dir, ".incoming-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // there is none once it has its name
	envelope := fmt.Sprintf("Return-Path: <%s>\r\nDelivered-To: %s\r\n", from, strings.Join(to, ", "))
	_, err = f.WriteString(envelope)
	if err == nil {
		_, err = f.Write(body)
	}
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	name := time.Now().UTC().Format("20060102T150405.000000000Z") + "-" + hex.EncodeToString(random[:]) + MailSuffix
	return os.Rename(f.Name(), filepath.Join(s.o.Dir, name))
}
