package smtp

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/localserver"
	"hub.internal/services/review-control/mailer"
)

// message is a mail of plain text.
func message() mailer.Message {
	return mailer.Message{
		ID: "0123456789abcdef@hub.example", Date: time.Date(2026, 1, 15, 9, 0, 0, 0, time.UTC),
		Content: mailer.Content{From: mailer.Address{Name: "Kim", Email: "kim@company.example"},
			To:     mailer.Address{Name: "Lee", Email: "lee@partner.example"},
			Sender: mailer.Address{Name: "Hub", Email: "hub@hub.example"}, Subject: "Hello", Text: "Hello Lee\n.\nBye\n"},
		Unsubscribe: "https://hub.example/unsubscribe/abc",
	}
}

func client(t *testing.T, c Config) *Client {
	t.Helper()
	if c.TLS == "" {
		c.TLS = None
	}
	if c.Timeout == 0 {
		c.Timeout = hubtest.Patience
	}
	made, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(made.Close)
	return made
}

// send sends a mail; begun tells whether the hand-over was begun.
func send(ctx context.Context, c *Client, m mailer.Message) (begun bool, err error) {
	err = c.Send(ctx, m, func(context.Context) error { begun = true; return nil })
	return begun, err
}

// expect checks what a failed sending says.
func expect(t *testing.T, err error, verdict mailer.Verdict, reason string) {
	t.Helper()
	var e *mailer.SendError
	switch {
	case verdict == "" && err == nil:
	case verdict == "":
		t.Errorf("not sent: %v", err)
	case !errors.As(err, &e):
		t.Errorf("%v (%T) is no SendError", err, err)
	case e.Verdict != verdict || !strings.Contains(e.Reason, reason):
		t.Errorf("%s: %s; want %s: …%s…", e.Verdict, e.Reason, verdict, reason)
	case strings.ContainsAny(e.Reason, "\r\n") || len([]rune(e.Reason)) > maxReason || e.Cause == nil:
		t.Errorf("reason %q, cause %v", e.Reason, e.Cause)
	}
}

func answer(code int, text string) func() error {
	return func() error { return localserver.Reply(code, text) }
}

func answerTo(code int, text string) func(string) error {
	return func(string) error { return localserver.Reply(code, text) }
}

func cut() error { return localserver.ErrCut }

func cutTo(string) error { return localserver.ErrCut }

func TestVerdicts(t *testing.T) {
	for name, c := range map[string]struct {
		hooks   localserver.SMTPHooks
		verdict mailer.Verdict
		reason  string
		begun   bool
		kept    int
	}{
		"taken":               {localserver.SMTPHooks{}, "", "", true, 1},
		"greeting 554":        {localserver.SMTPHooks{Connect: answer(554, "go away")}, mailer.Later, "could not be used", false, 0},
		"greeting 421":        {localserver.SMTPHooks{Connect: answer(421, "busy")}, mailer.Later, "could not be used", false, 0},
		"cut in the greeting": {localserver.SMTPHooks{Connect: cut}, mailer.Later, "could not be used", false, 0},
		"MAIL 451": {localserver.SMTPHooks{Mail: answerTo(451, "later")}, mailer.Later,
			"did not take the sender: 451 4.0.0 later", true, 0},
		"MAIL 421": {localserver.SMTPHooks{Mail: answerTo(421, "closing")}, mailer.Later, "421 4.0.0 closing", true, 0},
		"MAIL 550": {localserver.SMTPHooks{Mail: answerTo(550, "no")}, mailer.Never, "did not take the sender: 550 5.0.0 no",
			true, 0},
		"MAIL 530":    {localserver.SMTPHooks{Mail: answerTo(530, "log in first")}, mailer.Later, "530 5.0.0 log in first", true, 0},
		"cut in MAIL": {localserver.SMTPHooks{Mail: cutTo}, mailer.Later, "broke before the mail was handed over", true, 0},
		"RCPT 450": {localserver.SMTPHooks{Rcpt: answerTo(450, "mailbox busy")}, mailer.Later,
			"did not take the recipient: 450 4.0.0 mailbox busy", true, 0},
		"RCPT 550": {localserver.SMTPHooks{Rcpt: answerTo(550, "nobody\nhere")}, mailer.Never,
			"did not take the recipient: 550 nobody", true, 0},
		"RCPT 550, long": {localserver.SMTPHooks{Rcpt: answerTo(550, strings.Repeat("very ", 70)+"long")}, mailer.Never,
			"very very", true, 0},
		"cut in RCPT": {localserver.SMTPHooks{Rcpt: cutTo}, mailer.Later, "broke before the mail was handed over", true, 0},
		"after the mail 451": {localserver.SMTPHooks{Read: answer(451, "disk full")}, mailer.Later,
			"did not take the mail: 451 4.0.0 disk full", true, 0},
		"after the mail 554": {localserver.SMTPHooks{Read: answer(554, "spam")}, mailer.Never, "did not take the mail: 554 5.0.0 spam",
			true, 0},
		"cut, not kept":            {localserver.SMTPHooks{Read: cut}, mailer.Perhaps, "may have arrived", true, 0},
		"cut, kept":                {localserver.SMTPHooks{Kept: cut}, mailer.Perhaps, "may have arrived", true, 1},
		"kept, and then an excuse": {localserver.SMTPHooks{Kept: answer(452, "sorry")}, mailer.Later, "452 4.0.0 sorry", true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := hubtest.NewSMTP(t, localserver.SMTPOptions{Hooks: c.hooks})
			begun, err := send(t.Context(), client(t, Config{Addr: s.Addr()}), message())
			expect(t, err, c.verdict, c.reason)
			if kept := len(s.Mails()); begun != c.begun || kept != c.kept {
				t.Errorf("begun %v, %d mails kept", begun, kept)
			}
		})
	}
}

// script is a server that answers each line it waits for, and then does as it is told.
func script(t *testing.T, serve func(conn net.Conn, read func(prefix string))) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	t.Cleanup(running.Wait)
	t.Cleanup(func() { listener.Close() })
	running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				defer conn.Close()
				_ = conn.SetDeadline(time.Now().Add(2 * hubtest.Patience))
				_ = conn.(*net.TCPConn).SetReadBuffer(1 << 16) // a large mail does not fit
				lines := bufio.NewReader(conn)
				serve(conn, func(prefix string) {
					for {
						line, err := lines.ReadString('\n')
						if err != nil || strings.HasPrefix(line, prefix) {
							return
						}
					}
				})
			})
		}
	})
	return listener.Addr().String()
}

// upTo answers everything up to DATA, and then says what is given.
func upTo(data string, then func(conn net.Conn, read func(string))) func(net.Conn, func(string)) {
	return func(conn net.Conn, read func(string)) {
		fmt.Fprint(conn, "220 hello\r\n")
		read("EHLO")
		fmt.Fprint(conn, "250 hello\r\n")
		read("MAIL")
		fmt.Fprint(conn, "250 ok\r\n")
		read("RCPT")
		fmt.Fprint(conn, "251 will forward\r\n")
		read("DATA")
		fmt.Fprint(conn, data)
		then(conn, read)
	}
}

func nothing(net.Conn, func(string)) {}

func untilClosed(conn net.Conn, _ func(string)) { _, _ = io.Copy(io.Discard, conn) }

// say answers the end of the mail.
func say(text string) func(net.Conn, func(string)) {
	return func(conn net.Conn, read func(string)) { read(".\r\n"); fmt.Fprint(conn, text) }
}

// stillness is a time-out for servers that fall silent at some point: up to there, a busy
// machine has to come.
const stillness = 4 * time.Second

func TestVerdictsOfStrangeServers(t *testing.T) {
	large := message()
	large.Text = strings.Repeat("A line of a large mail that no socket buffers.\n", 170_000)
	for name, c := range map[string]struct {
		serve   func(net.Conn, func(string))
		mail    mailer.Message
		timeout time.Duration
		verdict mailer.Verdict
		reason  string
		begun   bool
	}{
		"silent":  {untilClosed, message(), 200 * time.Millisecond, mailer.Later, "did not answer in time", false},
		"no SMTP": {func(c net.Conn, _ func(string)) { fmt.Fprint(c, "SSH-2.0-x\r\n") }, message(), 0, mailer.Later, "could not be used", false},
		"EHLO and HELO 550": {func(c net.Conn, read func(string)) {
			fmt.Fprint(c, "220 x\r\n")
			read("EHLO")
			fmt.Fprint(c, "550 a\r\n")
			read("HELO")
			fmt.Fprint(c, "550 b\r\n")
		}, message(), 0, mailer.Later, "550", false},
		"DATA 451":           {upTo("451 not now\r\n", untilClosed), message(), 0, mailer.Later, "451 not now", true},
		"DATA 554":           {upTo("554 no\r\n", untilClosed), message(), 0, mailer.Never, "554 no", true},
		"DATA 250":           {upTo("250 ok\r\n", untilClosed), message(), 0, mailer.Later, "did not take the mail", true},
		"DATA nonsense":      {upTo("what?\r\n", untilClosed), message(), 0, mailer.Later, "broke before", true},
		"cut at DATA":        {upTo("", nothing), message(), 0, mailer.Later, "broke before", true},
		"silent at DATA":     {upTo("", untilClosed), message(), stillness, mailer.Later, "did not answer in time", true},
		"end 250":            {upTo("354 go\r\n", say("250 taken\r\n")), message(), 0, "", "", true},
		"end 252":            {upTo("354 go\r\n", say("252 taken\r\n")), message(), 0, "", "", true},
		"end 354":            {upTo("354 go\r\n", say("354 what?\r\n")), message(), 0, mailer.Perhaps, "", true},
		"end nonsense":       {upTo("354 go\r\n", say("ok\r\n")), message(), 0, mailer.Perhaps, "may have arrived", true},
		"end half an answer": {upTo("354 go\r\n", say("25")), message(), 0, mailer.Perhaps, "may have arrived", true},
		"end 535":            {upTo("354 go\r\n", say("535 log in\r\n")), message(), 0, mailer.Later, "535", true},
		"silent at the end":  {upTo("354 go\r\n", untilClosed), message(), stillness, mailer.Perhaps, "did not answer in time", true},
		"cut in the middle": {upTo("354 go\r\n", func(_ net.Conn, read func(string)) { read("A line") }), large, 0, mailer.Later,
			"broke before", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begun, err := send(t.Context(), client(t, Config{Addr: script(t, c.serve), Timeout: c.timeout}), c.mail)
			expect(t, err, c.verdict, c.reason)
			if begun != c.begun {
				t.Errorf("begun %v", begun)
			}
		})
	}
}

// TestAServerThatStopsReading has a mail's data stay where they are.
func TestAServerThatStopsReading(t *testing.T) {
	t.Parallel()
	large := message()
	large.Text = strings.Repeat("A line of a large mail that no socket buffers.\n", 170_000)
	over := make(chan struct{})
	c := client(t, Config{Addr: script(t, upTo("354 go\r\n", func(net.Conn, func(string)) { <-over })), Timeout: stillness})
	begun, err := send(t.Context(), c, large)
	close(over)
	expect(t, err, mailer.Later, "did not answer in time")
	if !begun {
		t.Error("not begun")
	}
}

// A server that has had enough may say so before the mail is whole.
func TestAnEarlyAnswerCounts(t *testing.T) {
	t.Parallel()
	large := message()
	large.Text = strings.Repeat("A line of a large mail that no socket buffers.\n", 170_000)
	over := make(chan struct{})
	c := client(t, Config{Addr: script(t, upTo("354 go\r\n", func(conn net.Conn, read func(string)) {
		read("A line")
		fmt.Fprint(conn, "552 too much\r\n")
		// Without reading on: the client's writing has to end by its time-out, not by a reset
		// that would throw the answer away.
		<-over
	})), Timeout: stillness})
	_, err := send(t.Context(), c, large)
	close(over)
	var e *mailer.SendError
	if !errors.As(err, &e) || e.Verdict == mailer.Perhaps {
		t.Error(err)
	}
}

func TestWithoutAServer(t *testing.T) {
	port, err := localserver.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	begun, err := send(t.Context(), client(t, Config{Addr: fmt.Sprintf("127.0.0.1:%d", port)}), message())
	expect(t, err, mailer.Later, "connection refused")
	if begun {
		t.Error("begun")
	}
}

func TestAMailLargerThanTheServerTakes(t *testing.T) {
	addr := script(t, func(conn net.Conn, read func(string)) {
		fmt.Fprint(conn, "220 hello\r\n")
		read("EHLO")
		fmt.Fprint(conn, "250-hello\r\n250 SIZE 500\r\n")
		untilClosed(conn, read)
	})
	m := message()
	m.Text = strings.Repeat("x", 1000)
	begun, err := send(t.Context(), client(t, Config{Addr: addr}), m)
	expect(t, err, mailer.Never, "the mail server takes 500")
	if begun {
		t.Error("begun")
	}
}

func TestBeginDecides(t *testing.T) {
	var connections atomic.Int32
	s := hubtest.NewSMTP(t, localserver.SMTPOptions{Hooks: localserver.SMTPHooks{Connect: func() error { connections.Add(1); return nil }}})
	c := client(t, Config{Addr: s.Addr()})
	stop := errors.New("not this one")
	if err := c.Send(t.Context(), message(),
		func(context.Context) error { return stop }); err != stop { //nolint:errorlint // as it is, not wrapped
		t.Errorf("%v", err)
	}
	if _, err := send(t.Context(), c, message()); err != nil {
		t.Error(err)
	}
	if n := len(s.Mails()); n != 1 || connections.Load() != 1 {
		t.Errorf("%d mails over %d connections", n, connections.Load())
	}
}

func TestContext(t *testing.T) {
	s := hubtest.NewSMTP(t, localserver.SMTPOptions{})
	c := client(t, Config{Addr: s.Addr()})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	begun, err := send(ended, c, message())
	expect(t, err, mailer.Later, "sending was stopped")
	if begun || len(s.Mails()) != 0 {
		t.Error("begun after the end")
	}
	t.Run("ended while connecting", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		c := client(t, Config{Addr: script(t, func(conn net.Conn, read func(string)) {
			fmt.Fprint(conn, "220 hello\r\n")
			read("EHLO")
			cancel()
			untilClosed(conn, read)
		})})
		_, err := send(ctx, c, message())
		expect(t, err, mailer.Later, "sending was stopped")
	})
	t.Run("ended after begin", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		if err := c.Send(ctx, message(), func(context.Context) error { cancel(); return nil }); err != nil || len(s.Mails()) != 1 {
			t.Errorf("what was begun has no outcome: %v", err)
		}
	})
	t.Run("deadline", func(t *testing.T) {
		release := make(chan struct{})
		slow := hubtest.NewSMTP(t, localserver.SMTPOptions{Hooks: localserver.SMTPHooks{Read: func() error { <-release; return nil }}})
		defer close(release)
		c := client(t, Config{Addr: slow.Addr(), Timeout: time.Minute})
		ctx, cancel := context.WithTimeout(t.Context(), stillness)
		defer cancel()
		began := time.Now()
		_, err := send(ctx, c, message())
		expect(t, err, mailer.Perhaps, "did not answer in time")
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("ended after %v", took)
		}
	})
}

func TestConnectionsAreUsedAgain(t *testing.T) {
	var connections atomic.Int32
	s := hubtest.NewSMTP(t, localserver.SMTPOptions{Hooks: localserver.SMTPHooks{
		Connect: func() error { connections.Add(1); return nil },
		Rcpt: func(to string) error {
			if strings.HasPrefix(to, "no") {
				return localserver.Reply(550, "no")
			}
			return nil
		},
	}})
	c := client(t, Config{Addr: s.Addr()})
	for i := range 6 {
		m := message()
		if i == 2 {
			m.To.Email = "nobody@partner.example"
		}
		if _, err := send(t.Context(), c, m); (err != nil) != (i == 2) {
			t.Fatal(i, err)
		}
	}
	if n := connections.Load(); n != 1 {
		t.Errorf("%d connections for six mails", n)
	}
	// The server ends, and with it the connection that waits; the next mail meets a new one.
	s.Kill()
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := send(t.Context(), c, message()); err != nil {
		t.Error(err)
	}
	if n, mails := connections.Load(), len(s.Mails()); n != 2 || mails != 6 {
		t.Errorf("%d connections, %d mails", n, mails)
	}
	c.mu.Lock()
	k := c.idle[0]
	c.mu.Unlock()
	c.expire(k)
	c.expire(k) // somebody took it first
	if _, err := k.raw.Write([]byte("NOOP\r\n")); err == nil {
		t.Error("an expired connection is open")
	}
	if _, err := send(t.Context(), c, message()); err != nil {
		t.Error(err)
	}
	c.Close()
	if _, err := send(t.Context(), c, message()); err != nil || len(c.idle) != 0 {
		t.Errorf("after Close: %v, %d connections wait", err, len(c.idle))
	}
}

func TestManyAtOnce(t *testing.T) {
	var connections atomic.Int32
	s := hubtest.NewSMTP(t, localserver.SMTPOptions{Hooks: localserver.SMTPHooks{Connect: func() error { connections.Add(1); return nil }}})
	c := client(t, Config{Addr: s.Addr()})
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			for range 10 {
				if _, err := send(t.Context(), c, message()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if n := len(s.Mails()); n != 200 {
		t.Errorf("%d mails", n)
	}
	if len(c.idle) > maxIdle || connections.Load() > 200 {
		t.Errorf("%d wait, of %d", len(c.idle), connections.Load())
	}
}

// certificate is one for 127.0.0.1, and who trusts it.
func certificate(t *testing.T) (*tls.Config, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, MinVersion: tls.VersionTLS12}, pool
}

// encrypted is a server that is encrypted from the first byte, in front of one that is not.
func encrypted(t *testing.T, config *tls.Config, behind string) string {
	t.Helper()
	return script(t, func(conn net.Conn, _ func(string)) {
		inner, err := net.Dial("tcp", behind)
		if err != nil {
			t.Error(err)
			return
		}
		outer := tls.Server(conn, config)
		var back sync.WaitGroup
		back.Go(func() { _, _ = io.Copy(outer, inner); outer.Close() })
		_, _ = io.Copy(inner, outer)
		inner.Close()
		back.Wait()
	})
}

func TestEncryptionAndLogIn(t *testing.T) {
	config, pool := certificate(t)
	const password = "secret of the mail server"
	plain := hubtest.NewSMTP(t, localserver.SMTPOptions{})
	open := hubtest.NewSMTP(t, localserver.SMTPOptions{TLS: config})
	closed := hubtest.NewSMTP(t, localserver.SMTPOptions{TLS: config, User: "hub", Password: password})
	for name, c := range map[string]struct {
		config  Config
		verdict mailer.Verdict
		reason  string
	}{
		"STARTTLS":                {Config{Addr: open.Addr(), TLS: StartTLS, RootCAs: pool}, "", ""},
		"STARTTLS and log-in":     {Config{Addr: closed.Addr(), TLS: StartTLS, RootCAs: pool, User: "hub", Password: password}, "", ""},
		"TLS":                     {Config{Addr: encrypted(t, config, plain.Addr()), TLS: TLS, RootCAs: pool}, "", ""},
		"STARTTLS is not offered": {Config{Addr: plain.Addr(), TLS: StartTLS, RootCAs: pool}, mailer.Later, "does not offer STARTTLS"},
		"unknown certificate":     {Config{Addr: open.Addr(), TLS: StartTLS, RootCAs: x509.NewCertPool()}, mailer.Later, "certificate"},
		"other host": {Config{Addr: "localhost" + strings.TrimPrefix(open.Addr(), "127.0.0.1"), TLS: StartTLS, RootCAs: pool},
			mailer.Later, "localhost"},
		"TLS with a plain server": {Config{Addr: plain.Addr(), TLS: TLS, RootCAs: pool}, mailer.Later, "could not be used"},
		"TLS, unknown": {Config{Addr: encrypted(t, config, plain.Addr()), TLS: TLS, RootCAs: x509.NewCertPool()}, mailer.Later,
			"certificate"},
		"wrong password": {Config{Addr: closed.Addr(), TLS: StartTLS, RootCAs: pool, User: "hub", Password: "wrong password"},
			mailer.Later, "refused the log-in (HUB_SMTP_USER, HUB_SMTP_PASSWORD): 535"},
		"no password": {Config{Addr: closed.Addr(), TLS: StartTLS, RootCAs: pool}, mailer.Later, "530"},
		"no log-in offered": {Config{Addr: open.Addr(), TLS: StartTLS, RootCAs: pool, User: "hub", Password: password}, mailer.Later,
			"offers no log-in"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := send(t.Context(), client(t, c.config), message())
			expect(t, err, c.verdict, c.reason)
			if err != nil && c.config.Password != "" && strings.Contains(err.Error(), c.config.Password) {
				t.Errorf("the password is told: %v", err)
			}
		})
	}
	if n := len(open.Mails()) + len(closed.Mails()) + len(plain.Mails()); n != 3 {
		t.Errorf("%d mails", n)
	}
}

// A server that repeats what it was sent must not make the password known.
func TestAnEchoedPasswordIsNotTold(t *testing.T) {
	config, pool := certificate(t)
	addr := script(t, func(conn net.Conn, _ func(string)) {
		conn = tls.Server(conn, config)
		lines := bufio.NewReader(conn)
		fmt.Fprint(conn, "220 hello\r\n")
		for _, reply := range []string{"250-hello\r\n250 AUTH PLAIN\r\n", "535 no, hunter2-hunter2 is wrong\r\n", "501 ok\r\n"} {
			if _, err := lines.ReadString('\n'); err != nil {
				return
			}
			fmt.Fprint(conn, reply)
		}
	})
	_, err := send(t.Context(), client(t, Config{Addr: addr, TLS: TLS, RootCAs: pool, User: "hub", Password: "hunter2-hunter2"}), message())
	expect(t, err, mailer.Later, "535 no, … is wrong")
	if cause := errors.Unwrap(err); cause == nil || strings.Contains(cause.Error(), "hunter2") {
		t.Errorf("the log would have %v", cause)
	}
}

func TestNewNamesTheSetting(t *testing.T) {
	for name, c := range map[string]Config{
		"HUB_SMTP_ADDR":          {Addr: "mail.example", TLS: None},
		"HUB_SMTP_ADDR has":      {Addr: ":25", TLS: None},
		"HUB_SMTP_ADDR has to":   {Addr: "mail.example:99999", TLS: None},
		"HUB_SMTP_ADDR has to b": {Addr: "mail.example:smtp", TLS: None},
		"HUB_SMTP_TLS":           {Addr: "mail.example:25"},
		"HUB_SMTP_TLS has":       {Addr: "mail.example:25", TLS: "yes"},
		"HUB_SMTP_USER":          {Addr: "mail.example:25", TLS: None, User: "hub", Password: "x"},
		"HUB_SMTP_HELLO":         {Addr: "mail.example:25", TLS: TLS, Hello: "a\r\nb"},
	} {
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestCheck: a check logs in as for a mail, and leaves.
func TestCheck(t *testing.T) {
	t.Parallel()
	s := hubtest.NewSMTP(t, localserver.SMTPOptions{})
	c := client(t, Config{Addr: s.Addr()})
	if err := c.Check(t.Context()); err != nil {
		t.Error(err)
	}
	if n := len(s.Mails()); n != 0 {
		t.Errorf("%d mails", n)
	}
	s.Kill()
	if err := c.Check(t.Context()); err == nil {
		t.Error("nobody is there, and nothing is wrong")
	}
}
