package smtp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/wneessen/go-mail/smtp"
)

const (
	// maxIdle connections wait for the next mail, each for idleTime: less than what servers
	// grant (RFC 5321 4.5.3.2.7 asks for five minutes, many give less).
	maxIdle  = 8
	idleTime = 20 * time.Second
	// checkTime is how long a connection that waited may take to answer, quitTime how long
	// the good-bye.
	checkTime = 5 * time.Second
	quitTime  = time.Second
)

// connection is one that is ready for a mail: greeted, encrypted, logged in. Those that wait for the next mail are kept by the
// Client, and end by themselves after idleTime.
type connection struct {
	*smtp.Client
	raw    net.Conn
	expiry *time.Timer // while it waits
}

// within has the connection break off at the deadline, or when ctx ends before release is
// called. Without release the deadline stays.
func (k *connection) within(ctx context.Context, deadline time.Time) (release func() bool) {
	_ = k.raw.SetDeadline(deadline) // of a closed connection the next step tells
	return context.AfterFunc(ctx, func() { _ = k.raw.SetDeadline(time.Unix(1, 0)) })
}

// connection returns one that waited and still answers, or a new one.
func (c *Client) connection(ctx context.Context) (*connection, error) {
	for k := c.waiting(); k != nil; k = c.waiting() {
		release := k.within(ctx, deadlineOf(ctx, checkTime))
		err := k.Reset()
		if release() && err == nil {
			return k, nil
		}
		_ = k.raw.Close()
	}
	return c.connect(ctx)
}

// Check connects and logs in, as for a mail, and sends none.
func (c *Client) Check(ctx context.Context) error {
	k, err := c.connect(ctx)
	if err != nil {
		return err
	}
	_ = k.raw.SetDeadline(deadlineOf(ctx, checkTime))
	defer k.raw.Close()
	return k.Quit()
}

// connect makes a connection.
func (c *Client) connect(ctx context.Context) (k *connection, err error) {
	deadline := deadlineOf(ctx, c.c.Timeout)
	dialing, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	raw, err := new(net.Dialer).DialContext(dialing, "tcp", c.c.Addr)
	if err != nil {
		return nil, err
	}
	k = &connection{raw: raw}
	release := k.within(ctx, deadline)
	defer func() {
		if !release() {
			err = errors.Join(ctx.Err(), err)
		}
		if err != nil {
			_ = raw.Close()
		}
	}()
	if c.c.TLS == TLS {
		encrypted := tls.Client(raw, c.tls)
		if err := encrypted.HandshakeContext(dialing); err != nil {
			return nil, err
		}
		raw = encrypted
	}
	if k.Client, err = smtp.NewClient(raw, c.host); err != nil {
		return nil, err
	}
	k.SkipSMTPUTF8(true) // the addresses are ASCII; not every server on the way knows the extension
	if err := k.Hello(c.c.Hello); err != nil {
		return nil, err
	}
	if c.c.TLS == StartTLS {
		if offered, _ := k.Extension("STARTTLS"); !offered {
			return nil, errors.New("it does not offer STARTTLS, and without it mails are not sent (HUB_SMTP_TLS)")
		}
		if err := k.StartTLS(c.tls); err != nil {
			return nil, fmt.Errorf("STARTTLS: %w", err)
		}
	}
	return k, c.logIn(k)
}

// logIn logs in, with the best mechanism that the server offers.
func (c *Client) logIn(k *connection) error {
	if c.c.User == "" {
		return nil
	}
	_, offered := k.Extension("AUTH")
	mechanisms := strings.Fields(strings.ToUpper(offered))
	for _, known := range []struct {
		name string
		auth smtp.Auth
	}{
		{"SCRAM-SHA-256", smtp.ScramSHA256Auth(c.c.User, c.c.Password)},
		{"PLAIN", smtp.PlainAuth("", c.c.User, c.c.Password, c.host, false)},
		{"LOGIN", smtp.LoginAuth(c.c.User, c.c.Password, c.host, false)},
	} {
		if slices.Contains(mechanisms, known.name) {
			if err := k.Auth(known.auth); err != nil {
				return fmt.Errorf("it refused the log-in (HUB_SMTP_USER, HUB_SMTP_PASSWORD): %w", err)
			}
			return nil
		}
	}
	return fmt.Errorf("it offers no log-in that is known here: AUTH %s", offered)
}

// sizeLimit is the size in bytes that the server takes (RFC 1870).
func (k *connection) sizeLimit() (limit int, known bool) {
	_, text := k.Extension("SIZE")
	limit, err := strconv.Atoi(text)
	return limit, err == nil && limit > 0
}

// waiting takes a connection from those that wait; nil when there is none.
func (c *Client) waiting() *connection {
	c.mu.Lock()
	defer c.mu.Unlock()
	last := len(c.idle) - 1
	if last < 0 {
		return nil
	}
	k := c.idle[last]
	c.idle = c.idle[:last]
	k.expiry.Stop() // too late does no harm: it finds the connection gone
	return k
}

// keep lets a connection wait for the next mail.
func (c *Client) keep(k *connection) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || len(c.idle) == maxIdle {
		_ = k.raw.Close()
		return
	}
	k.expiry = time.AfterFunc(idleTime, func() { c.expire(k) })
	c.idle = append(c.idle, k)
}

// expire ends a connection that waited long enough.
func (c *Client) expire(k *connection) {
	c.mu.Lock()
	i := slices.Index(c.idle, k)
	if i >= 0 {
		c.idle = slices.Delete(c.idle, i, i+1)
	}
	c.mu.Unlock()
	if i >= 0 {
		k.quit()
	}
}

// quit says good-bye.
func (k *connection) quit() {
	k.expiry.Stop()
	_ = k.raw.SetDeadline(time.Now().Add(quitTime))
	_ = k.Quit() // the server may be gone
	_ = k.raw.Close()
}
