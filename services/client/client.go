// Package client speaks to a gateway for a program that a person or a script has started: it sends one request, bounds
// what comes back, and tells a refusal from an answer. It refuses to know commands and terminals.
package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"hub.internal/pkg/fault"
)

// MaxAnswer bounds an answer, in bytes; the gateway's own are at most 16 MiB unless its operator allows more.
const MaxAnswer = 64 << 20

// Client asks one gateway.
type Client struct {
	// URL is the gateway's, as Address returns it; Source says where it was found: HUB_URL.
	URL, Source string
	// Key is the API key of requests that bring no credential of their own.
	Key string
	// Agent is the User-Agent.
	Agent string
	HTTP  *http.Client
}

// NewHTTP returns the client for Client.HTTP. It follows no redirect: the gateway sends none, and a key belongs to the
// address that its owner has named.
func NewHTTP() *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	// hub mcp has this many messages on their way at once.
	transport.MaxIdleConnsPerHost = 16
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// Request is one exchange.
type Request struct {
	// Path begins with a slash, and has the query in it.
	Method, Path string
	// Body is JSON; nil sends none.
	Body []byte
	// Credential is used in place of the client's key.
	Credential string
	// IdempotencyKey, when there is one, is sent as it is.
	IdempotencyKey string
	// ETag asks for an answer only when it is another one.
	ETag string
}

// Answer is that of a request which the gateway has fulfilled.
type Answer struct {
	Body []byte
	// Replayed tells that the write happened in an earlier call with the same Idempotency-Key.
	// It is the header Idempotent-Replayed.
	Replayed bool
	ETag     string
	// Unchanged tells that the answer is the one with the request's ETag; Body is empty then.
	Unchanged bool
}

// Do returns the answer, a *Failure when the gateway refused, or an *Unreachable when it did not answer.
// An answer of 2xx that is no object of JSON, a redirect, an untrusted certificate and an answer longer than MaxAnswer
// are errors of no type: asking again does not mend them.
func (c *Client) Do(ctx context.Context, r Request) (*Answer, error) {
	req, err := c.request(ctx, r)
	if err != nil {
		return nil, err
	}
	resp, err := c.HTTP.Do(req)
	if err != nil {
		return nil, c.unreachable(ctx, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNotModified && r.ETag != "" {
		return &Answer{Unchanged: true, ETag: r.ETag}, nil
	}
	if resp.StatusCode/100 == 3 {
		return nil, c.redirected(resp)
	}
	// One byte more tells an answer of just this length from a longer one.
	body, err := io.ReadAll(io.LimitReader(resp.Body, MaxAnswer+1))
	switch {
	case err != nil:
		return nil, c.unreachable(ctx, fmt.Errorf("the answer broke off: %w", err))
	case len(body) > MaxAnswer:
		return nil, fmt.Errorf("the answer is longer than %d MiB: ask for less at once", MaxAnswer>>20)
	case resp.StatusCode/100 != 2:
		return nil, c.failure(resp, body)
	case !isObject(body):
		return nil, fmt.Errorf("%s is %s, and what answers there is no Hub gateway: its answer is no JSON object", c.Source, c.URL)
	}
	return &Answer{Body: body, Replayed: resp.Header.Get("Idempotent-Replayed") == "true", ETag: resp.Header.Get("ETag")}, nil
}

// isObject tells whether an answer is one JSON object, as each answer of a gateway is.
func isObject(b []byte) bool {
	return bytes.HasPrefix(bytes.TrimSpace(b), []byte("{")) && json.Valid(b)
}

// request makes the HTTP request. Headers without a value are left out, so that the gateway does not see an empty credential or key.
func (c *Client) request(ctx context.Context, r Request) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, r.Method, c.URL+r.Path, bytes.NewReader(r.Body))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Source, err)
	}
	credential := r.Credential
	if credential == "" {
		credential = c.Key
	}
	for name, value := range map[string]string{"Authorization": "Bearer " + credential, "Idempotency-Key": r.IdempotencyKey,
		"If-None-Match": r.ETag, "User-Agent": c.Agent} {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	if r.Body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return req, nil
}

// Unreachable tells that no answer came. Whether the gateway has heard the request is not known.
type Unreachable struct {
	// Client is whom it was that did not answer.
	Client *Client
	cause  error
}

// NotReached is the error of an exchange that another program has made, with an address that source names.
func NotReached(source, address string, cause error) *Unreachable {
	return &Unreachable{&Client{URL: address, Source: source}, cause}
}

// unreachable classifies the error of an exchange without an answer: ctx's own error when somebody has interrupted it, a plain error
// for a certificate that is not trusted, which waiting does not mend, and an *Unreachable for everything else.
func (c *Client) unreachable(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	var untrusted *tls.CertificateVerificationError
	if errors.As(err, &untrusted) {
		return fmt.Errorf("%s is %s, and its certificate is not trusted: %w", c.Source, c.URL, untrusted.Unwrap())
	}
	var asked *url.Error
	if errors.As(err, &asked) {
		err = asked.Err
	}
	return &Unreachable{c, err}
}

// Error implements error.
// It is one line and names no key.
func (u *Unreachable) Error() string {
	if u.Timeout() {
		return fmt.Sprintf("%s is %s, and no answer came in time", u.Client.Source, u.Client.URL)
	}
	return fmt.Sprintf("%s is %s, and nothing answers there: %v", u.Client.Source, u.Client.URL, u.cause)
}

// Timeout tells that the time ran out.
func (u *Unreachable) Timeout() bool {
	var of net.Error
	return errors.Is(u.cause, context.DeadlineExceeded) || errors.As(u.cause, &of) && of.Timeout()
}

// Unwrap returns the cause.
func (u *Unreachable) Unwrap() error { return u.cause }

// redirected is the error of an answer that leads elsewhere. It names the host alone: what follows it may hold secrets.
func (c *Client) redirected(resp *http.Response) error {
	to, err := resp.Location()
	if err != nil {
		return fmt.Errorf("%s is %s, which answered %s: it is no Hub gateway", c.Source, c.URL, resp.Status)
	}
	return fmt.Errorf("%s is %s, which leads to %s://%s, and no key goes where it was not meant to: set %s to where the gateway is",
		c.Source, c.URL, to.Scheme, to.Host, c.Source)
}

// Failure is what the gateway answered to a request that it did not fulfil.
type Failure struct {
	// Status is that of HTTP.
	Status int
	// Code is empty when the answer was not the gateway's.
	Code               fault.Code
	Message, RequestID string
	Details            json.RawMessage
	// RetryAfter is 0 when the answer does not say.
	RetryAfter time.Duration
	// Final says that the answer calls itself one that the same call would get again.
	Final bool
}

// failure reads the envelope of an answer that is no success. Without an envelope (a proxy's page of HTML) it has the HTTP status
// alone, and nothing of the body.
func (c *Client) failure(resp *http.Response, body []byte) *Failure {
	var envelope struct {
		Error struct {
			Code      fault.Code
			Message   string
			Details   json.RawMessage
			Retryable *bool
		}
		RequestID string `json:"request_id"`
	}
	f := &Failure{Status: resp.StatusCode}
	// A date, the header's other form, is as if it were not there; so is what a proxy writes that is no number.
	if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && seconds > 0 {
		f.RetryAfter = time.Duration(min(seconds, 1<<20)) * time.Second
	}
	if err := json.Unmarshal(body, &envelope); err != nil || envelope.Error.Code == "" {
		f.Message = fmt.Sprintf("%s answered %s", c.URL, resp.Status)
		return f
	}
	f.Code, f.Message, f.RequestID, f.Details = envelope.Error.Code, envelope.Error.Message, envelope.RequestID, envelope.Error.Details
	f.Final = envelope.Error.Retryable != nil && !*envelope.Error.Retryable
	return f
}

// Error implements error: code, message and request id in a line.
func (f *Failure) Error() string {
	if f.Code == "" {
		return f.Message
	}
	return fmt.Sprintf("%s: %s (%s)", f.Code, f.Message, f.RequestID)
}

// Reason is details.code, which says more than Code, or "".
// For example REQUEST_IN_PROGRESS beside E_CONFLICT.
func (f *Failure) Reason() string {
	var details struct{ Code string }
	_ = json.Unmarshal(f.Details, &details) // details of another form have none
	return details.Code
}

// Address checks and cleans the address of a gateway. A key crosses no network in the clear: http is for this machine alone
// unless plain is true. from names where the address was found, for the error.
func Address(text, from string, plain bool) (string, error) {
	u, err := url.Parse(strings.TrimSpace(text))
	switch {
	case err != nil || u.Host == "" || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https":
		return "", fmt.Errorf("%s is no address, as https://hub.example.com is", from)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return "", fmt.Errorf("%s has more than an address, as https://hub.example.com is one", from)
	case u.Scheme == "http" && !plain && !isLoopback(u.Hostname()):
		return "", fmt.Errorf("%s is http://%s, where the key could be read on its way: use https, or --allow-http on a network that you trust",
			from, u.Host)
	}
	u.Host = strings.ToLower(u.Host)
	return strings.TrimRight(u.String(), "/"), nil
}

// isLoopback tells whether a host is this machine: localhost, a name below it (RFC 6761), or a loopback address.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || ip != nil && ip.IsLoopback()
}
