// Package notify tells a Connected App's receiver what has happened: one attempt at a time, signed as Standard Webhooks says
// (SPEC.md 9). It refuses to follow redirects, to use a proxy, to keep cookies, and to connect to addresses that are not on
// the Internet, whatever a name resolves to. It stores nothing and decides nothing about further attempts but their schedule.
package notify

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"hub.internal/pkg/text"
	"hub.internal/services/payments"
)

// What one attempt may take.
const (
	dialTimeout  = 5 * time.Second
	totalTimeout = 15 * time.Second
	// maxAnswer bounds what of an answer is read, in bytes, and kept what of that is kept.
	maxAnswer  = 16 << 10
	keptAnswer = 500
	// maxRetryAfter bounds what a receiver can ask for.
	maxRetryAfter = 24 * time.Hour
	// minSecret is the least that Standard Webhooks takes for a key, in bytes.
	minSecret = 24
)

// Config says how notifications are sent.
type Config struct {
	// Allow are addresses that are sent to although they are not on the Internet (HUB_NOTIFY_ALLOW_CIDRS).
	Allow []netip.Prefix
	// AllowHTTP is for outside of production.
	AllowHTTP bool
	// Roots are whom certificates are believed from; nil is the system's.
	Roots *x509.CertPool
	// Resolver resolves names; nil is the system's.
	Resolver *net.Resolver
	// Timeout bounds an attempt as a whole; 0 means 15 s.
	Timeout time.Duration
	// Schedule says when a notification is sent again.
	Schedule Schedule
	// Now is the clock of the signature; nil is the system's.
	Now func() time.Time
}

// Sender sends notifications. It is safe for concurrent use and holds no connection.
type Sender struct {
	c      Config
	client *http.Client
}

// New prepares a sender.
func New(c Config) *Sender {
	if c.Timeout == 0 {
		c.Timeout = totalTimeout
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	dialer := &net.Dialer{Timeout: dialTimeout, KeepAlive: -1, Resolver: c.Resolver, Control: Guard{c.Allow}.control(c.AllowHTTP)}
	// A transport of its own, without a proxy of the environment and without connections that are kept: each attempt resolves
	// the name anew, and each connection is judged by the address that it is made to.
	return &Sender{c, &http.Client{
		Transport: &http.Transport{
			DialContext: dialer.DialContext, TLSHandshakeTimeout: dialTimeout, DisableKeepAlives: true, DisableCompression: true,
			MaxResponseHeaderBytes: maxAnswer, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: c.Roots},
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

var _ payments.Notifier = (*Sender)(nil)

// Check implements payments.Notifier, as CheckURL does.
func (s *Sender) Check(url string, origins []string) error {
	return CheckURL(url, origins, s.c.AllowHTTP)
}

// Next implements payments.Notifier, as Schedule does.
func (s *Sender) Next(attempts int) (wait time.Duration, ok bool) { return s.c.Schedule.Next(attempts) }

// Send makes one attempt, within 15 seconds.
func (s *Sender) Send(ctx context.Context, m payments.Delivery) payments.Attempt {
	started := time.Now()
	outcome := s.send(ctx, m)
	outcome.Took = time.Since(started)
	return outcome
}

// send is Send without the time that it took.
func (s *Sender) send(ctx context.Context, m payments.Delivery) payments.Attempt {
	ctx, cancel := context.WithTimeout(ctx, s.c.Timeout)
	defer cancel()
	request, err := s.request(ctx, m)
	if err != nil {
		return payments.Attempt{Error: err.Error()}
	}
	response, err := s.client.Do(request)
	if err != nil {
		return payments.Attempt{Error: explain(ctx, err)}
	}
	defer response.Body.Close()
	// How an answer goes on after its status makes no difference.
	answer, _ := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	outcome := payments.Attempt{Status: response.StatusCode, Answer: printable(answer)}
	switch outcome.Status / 100 {
	case 2:
		outcome.Delivered = true
	case 3:
		outcome.Error = fmt.Sprintf("answered %d: redirects are not followed", outcome.Status)
	default:
		outcome.Gone = outcome.Status == http.StatusGone
		outcome.Error = fmt.Sprintf("answered %d", outcome.Status)
		if outcome.Status == http.StatusTooManyRequests || outcome.Status == http.StatusServiceUnavailable {
			outcome.RetryAfter = retryAfter(response.Header.Get("Retry-After"), s.c.Now())
		}
	}
	return outcome
}

// validID is the form of a message's id: it is signed, and a dot in it would make the signed text ambiguous.
var validID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,100}$`)

// request is the signed request. Its errors are shown to operators, and hold nothing secret.
func (s *Sender) request(ctx context.Context, m payments.Delivery) (*http.Request, error) {
	if !validID.MatchString(m.ID) {
		return nil, errors.New("the message has no id")
	}
	if _, err := parseURL(m.URL, s.c.AllowHTTP); err != nil {
		return nil, fmt.Errorf("the URL cannot be used: %w", err)
	}
	// The time is that of the attempt: receivers refuse signatures that are older than a few minutes.
	now := s.c.Now()
	signatures, err := signAll(m, now)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, m.URL, bytes.NewReader(m.Body))
	if err != nil {
		return nil, errors.New("the URL cannot be used")
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "Hub-Webhooks/1")
	request.Header.Set(standardwebhooks.HeaderWebhookID, m.ID)
	request.Header.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(now.Unix(), 10))
	request.Header.Set(standardwebhooks.HeaderWebhookSignature, signatures)
	return request, nil
}

// signAll returns the signatures of all secrets, separated by spaces.
func signAll(m payments.Delivery, at time.Time) (string, error) {
	signatures := make([]string, 0, len(m.Secrets))
	for _, secret := range m.Secrets {
		// The library takes any key, an empty one too.
		encoded, isOne := strings.CutPrefix(secret, "whsec_")
		key, err := base64.StdEncoding.DecodeString(encoded)
		if !isOne || err != nil || len(key) < minSecret {
			return "", errors.New("a signing secret of the app cannot be used")
		}
		signer, err := standardwebhooks.NewWebhookRaw(key)
		if err != nil {
			return "", errors.New("a signing secret of the app cannot be used")
		}
		signature, err := signer.Sign(m.ID, at, m.Body)
		if err != nil {
			return "", errors.New("the message cannot be signed")
		}
		signatures = append(signatures, signature)
	}
	if len(signatures) == 0 {
		return "", errors.New("the app has no signing secret")
	}
	return strings.Join(signatures, " "), nil
}

// explain says in few words what went wrong. What the network has said stays behind: it names addresses. A name without an
// address and one with a forbidden address sound alike, so that nobody learns which names are known inside.
func explain(ctx context.Context, err error) string {
	var name *net.DNSError
	var certificate *tls.CertificateVerificationError
	var dial *net.OpError
	var timeout net.Error
	isDial := errors.As(err, &dial) && dial.Op == "dial"
	switch {
	case errors.Is(err, errRefused), errors.As(err, &name) && !name.IsTimeout:
		return "the host has no address that notifications are sent to"
	case ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded):
		return "the attempt was broken off"
	case errors.As(err, &certificate):
		return "the certificate of the host does not hold"
	case isDial && errors.As(err, &timeout) && timeout.Timeout():
		return "no connection in time"
	case errors.As(err, &timeout) && timeout.Timeout():
		return "no answer in time"
	case isDial:
		return "no connection"
	}
	return "the connection broke, or the answer is not one of HTTP"
}

// retryAfter reads the header of that name (RFC 9110, 10.2.3): seconds, or a date.
func retryAfter(text string, now time.Time) time.Duration {
	var d time.Duration
	if seconds, err := strconv.ParseUint(text, 10, 63); err == nil {
		d = maxRetryAfter
		if seconds < uint64(maxRetryAfter/time.Second) {
			d = time.Duration(seconds) * time.Second
		}
	} else if at, err := http.ParseTime(text); err == nil {
		d = at.Sub(now)
	}
	return min(max(d, 0), maxRetryAfter)
}

// printable is the beginning of an answer as text that can be shown.
func printable(answer []byte) string {
	shown := strings.Map(func(r rune) rune {
		if r == '\n' || unicode.IsPrint(r) && r != utf8.RuneError {
			return r
		}
		return '.'
	}, string(answer[:min(len(answer), 4*keptAnswer)]))
	return text.HeadBytes(shown, keptAnswer)
}
