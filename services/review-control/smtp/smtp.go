// Package smtp hands mails to an SMTP server (RFC 5321, 3207, 4954): the one place where
// mail leaves Hub. It refuses to decide whether a mail may leave, to try again, and to log in
// over a connection that is not encrypted.
package smtp

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/textproto"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/wneessen/go-mail/smtp"

	"hub.internal/pkg/telemetry"
	"hub.internal/pkg/text"
	reviewcontrol "hub.internal/services/review-control"
	"hub.internal/services/review-control/mailer"
)

// The values of Config.TLS.
const (
	// StartTLS begins in the clear and refuses to go on like that.
	StartTLS = "starttls"
	// TLS is encrypted from the first byte (port 465).
	TLS = "tls"
	// None is for a server on the same machine.
	None = "none"
)

// Config says where mails go.
type Config struct {
	// Addr is host:port.
	Addr string
	// TLS is StartTLS, TLS or None.
	TLS string
	// User and Password log in, unless User is empty.
	User, Password string
	// Hello is the name to greet with; empty is the machine's.
	Hello string
	// Timeout bounds connecting, and again the hand-over; 0 means 30 s.
	Timeout time.Duration
	// RootCAs verify the server; nil means the system's.
	RootCAs *x509.CertPool
}

// maxReason bounds what is told of a failure, in characters.
const maxReason = 300

// Client hands mails to one server. It may be used by many at once.
type Client struct {
	c    Config
	host string
	tls  *tls.Config
	// calls are those of the dependency smtp: a mail each, from the connection to the answer.
	calls *telemetry.Dependency

	mu     sync.Mutex
	idle   []*connection
	closed bool
}

var _ reviewcontrol.Sender = (*Client)(nil)

// New prepares a client. It does not connect. An error names the setting to mend.
func New(c Config) (*Client, error) {
	host, port, err := net.SplitHostPort(c.Addr)
	number, portErr := strconv.Atoi(port)
	if err != nil || portErr != nil || host == "" || number < 1 || number > 65535 {
		return nil, fmt.Errorf("HUB_SMTP_ADDR has to be host:port, not %q", c.Addr)
	}
	switch c.TLS {
	case StartTLS, TLS:
	case None:
		if c.User != "" {
			return nil, errors.New("HUB_SMTP_USER needs HUB_SMTP_TLS=starttls or tls: a password is not sent in the clear")
		}
	default:
		return nil, fmt.Errorf("HUB_SMTP_TLS has to be %s, %s or %s, not %q", StartTLS, TLS, None, c.TLS)
	}
	if c.Hello == "" {
		if c.Hello, err = os.Hostname(); err != nil || c.Hello == "" {
			c.Hello = "localhost"
		}
	}
	if strings.ContainsFunc(c.Hello, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return nil, fmt.Errorf("HUB_SMTP_HELLO has to be a host name, not %q", c.Hello)
	}
	if c.Timeout == 0 {
		c.Timeout = 30 * time.Second
	}
	return &Client{c: c, host: host, tls: &tls.Config{ServerName: host, RootCAs: c.RootCAs, MinVersion: tls.VersionTLS12},
		calls: telemetry.NewDependency("smtp")}, nil
}

// Close ends the connections that wait. Those in use end with their mail.
func (c *Client) Close() {
	c.mu.Lock()
	idle := c.idle
	c.idle, c.closed = nil, true
	c.mu.Unlock()
	var ending sync.WaitGroup
	for _, k := range idle {
		ending.Go(k.quit)
	}
	ending.Wait()
}

// Send implements reviewcontrol.Sender. Until begin has returned, the end of ctx ends it too.
// From then on only the deadlines of ctx and of Config.Timeout do: what was begun shall have
// an outcome, although the process is asked to stop.
func (c *Client) Send(ctx context.Context, m mailer.Message, begin func(context.Context) error) (err error) {
	defer func(start time.Time) { c.calls.Done(ctx, "send", start, outcome(err)) }(time.Now())
	mail, err := compose(m)
	if err != nil {
		return c.failure(mailer.Never, "The mail cannot be sent", err)
	}
	k, err := c.connection(ctx)
	if err != nil {
		return c.failure(mailer.Later, "The mail server could not be used", err)
	}
	if limit, known := k.sizeLimit(); known && len(mail.data) > limit {
		c.keep(k)
		return c.failure(mailer.Never, "The mail is too large",
			fmt.Errorf("it has %d bytes, and the mail server takes %d", len(mail.data), limit))
	}
	if err := begin(ctx); err != nil {
		c.keep(k)
		return err
	}
	_ = k.raw.SetDeadline(deadlineOf(ctx, c.c.Timeout)) // of a closed connection the next step tells
	at, err := k.handOver(mail)
	if err == nil {
		c.keep(k)
		return nil
	}
	var reply *textproto.Error
	if !errors.As(err, &reply) {
		_ = k.raw.Close() // in whatever state it is
		if at == afterEnd {
			return c.failure(mailer.Perhaps,
				"The mail was handed over whole, but the mail server's answer did not come; it may have arrived", err)
		}
		return c.failure(mailer.Later, "The connection to the mail server broke before the mail was handed over", err)
	}
	c.keep(k) // that it is broken would be found before its next use
	return c.failure(verdict(reply.Code, at), map[step]string{
		sender: "The mail server did not take the sender", recipient: "The mail server did not take the recipient",
		content: "The mail server did not take the mail", afterEnd: "The mail server did not take the mail",
	}[at], err)
}

// outcome is ok, the verdict on a mail that was not or perhaps not taken, or "stopped" for one that was not to be sent after all.
func outcome(err error) string {
	var failed *mailer.SendError
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &failed):
		return string(failed.Verdict)
	}
	return "stopped"
}

// verdict is what a reply means for the mail.
func verdict(code int, at step) mailer.Verdict {
	switch {
	case code == 530, code == 534, code == 535, code == 538: // about the log-in, not about the mail
		return mailer.Later
	case code >= 500 && code <= 599:
		return mailer.Never
	case code >= 400 && code <= 499 || at != afterEnd:
		return mailer.Later
	}
	return mailer.Perhaps // a reply that no server should give to a mail
}

// failure is an error with a reason in one line for people.
func (c *Client) failure(v mailer.Verdict, what string, cause error) *mailer.SendError {
	said := strings.ToValidUTF8(cause.Error(), "\ufffd")
	var reply *textproto.Error
	if errors.As(cause, &reply) { // without quotes and escapes
		said = strings.ReplaceAll(said, strings.ToValidUTF8(reply.Error(), "\ufffd"),
			fmt.Sprintf("%d %s", reply.Code, strings.ToValidUTF8(reply.Msg, "\ufffd")))
	}
	var timeout net.Error
	switch {
	case errors.Is(cause, context.Canceled):
		said = "sending was stopped"
	case errors.As(cause, &timeout) && timeout.Timeout():
		said = "it did not answer in time"
	}
	if c.c.Password != "" && strings.Contains(said, c.c.Password) { // a server may repeat what it was sent
		said = strings.ReplaceAll(said, c.c.Password, "…")
		cause = errors.New(said) // for the log
	}
	reason := what + ": " + text.OneLine(text.Printable(said))
	return &mailer.SendError{Verdict: v, Reason: text.Shorten(reason, maxReason), Cause: cause}
}

// step is how far a hand-over came.
type step int

const (
	sender step = iota
	recipient
	// content is everything up to the final dot.
	content
	// afterEnd: the final dot was sent.
	afterEnd
)

// handOver runs the transaction. A *textproto.Error is the server's answer; after any other
// the connection is of no use.
func (k *connection) handOver(m mail) (step, error) {
	if err := k.Mail("<" + m.from + ">"); err != nil {
		return sender, err
	}
	if err := k.Rcpt("<" + m.to + ">"); err != nil {
		return recipient, err
	}
	writer, err := k.Data()
	if err != nil {
		return content, err
	}
	// Close of go-mail's writer does not tell whether the dot was sent; what it wraps does. A
	// connection that breaks in writing breaks before the dot's line is whole: it is last.
	data := writer.(*smtp.DataCloser).WriteCloser
	_, err = data.Write(m.data)
	if err == nil {
		err = data.Close()
	}
	if err != nil {
		// A server that had enough may have said why before it hung up.
		var reply *textproto.Error
		if _, _, said := k.Text.ReadResponse(250); errors.As(said, &reply) {
			return content, reply
		}
		return content, err
	}
	_, _, err = k.Text.ReadResponse(2)
	return afterEnd, err
}

// deadlineOf is the end of a time-out that begins now, or of ctx if that is sooner.
func deadlineOf(ctx context.Context, timeout time.Duration) time.Time {
	end := time.Now().Add(timeout)
	if other, ok := ctx.Deadline(); ok && other.Before(end) {
		return other
	}
	return end
}
