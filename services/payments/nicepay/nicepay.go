// Package nicepay speaks with NICEPAY (github.com/nicepayments/nicepay-manual): checkout, payments, find, cancel, expire,
// netcancel and webhooks. It believes little. An answer counts when it can be read whole, is signed where it claims
// money, and is about the payment that was asked for; everything else leaves the outcome unknown. It never tries again
// by itself, follows no redirect, and heeds no proxy of its environment.
//
// # Keys and hosts
//
// Orders go through the hosted checkout, which needs a key pair of the kind «client approval + Basic auth». Keys of the
// sandbox and of production differ, and so do their hosts (sandbox-api.nicepay.co.kr, api.nicepay.co.kr); a credential
// says which it is for. One base URL in the settings stands in for both hosts: for the simulator (services/payments/pgsim),
// which speaks the same wire and, unlike the vendor's sandbox, pays back in part and tells of deposits. A process for
// production refuses a base URL within a private network, when it starts and whenever it dials.
//
// # What is not known
//
// Before a connection stands nothing was sent (ErrNotSent). From then on, whatever goes wrong, the vendor may have done
// it (ErrUnknown): ask with Get. A cancel asks by itself before it is sent, and believes no «done» that the payment does
// not show. A refusal is definite (DeclinedError) for the vendor's codes that say so, and for a checkout for all codes but
// those of a fault of the vendor's own.
//
// # Webhooks
//
// The vendor signs the tid, the amount and the time of a webhook, but neither its status nor its orderId. A webhook of an
// account that was issued, edited to «paid», still verifies: it is a hint to ask, and nothing more. The trial that the
// vendor sends when an address is registered has no status, and a signature that nobody can verify (issue 15 of its
// manual); it has to be acknowledged, and means nothing.
package nicepay

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"hub.internal/services/payments/credentials"
	"hub.internal/services/payments/provider"
)

// The hosts of NICEPAY.
const (
	SandboxURL    = "https://sandbox-api.nicepay.co.kr"
	ProductionURL = "https://api.nicepay.co.kr"
)

// How long the vendor's manual lets a caller wait.
const (
	DialTimeout = 5 * time.Second
	Timeout     = 30 * time.Second
)

// Config is what a Provider is made of. The zero Config is for the hosts of NICEPAY, from a process that is not for production.
type Config struct {
	// BaseURL stands in for the hosts of NICEPAY, such as http://127.0.0.1:8090.
	BaseURL string
	// Production refuses everything but the public internet and https.
	Production bool
	// DialTimeout and Timeout are the constants of this package where they are 0. Timeout is for a whole method.
	DialTimeout, Timeout time.Duration

	Now func() time.Time
}

// Provider implements provider.Port. It holds no state but connections, so that a process can be killed at any moment.
type Provider struct {
	base *url.URL
	// production is false for a process in which a stand-in may be anybody.
	production bool
	client     *http.Client
	timeout    time.Duration
	now        func() time.Time
}

var _ provider.Port = (*Provider)(nil)

// New returns a provider. It fails for a base URL that CheckHost refuses.
func New(c Config) (*Provider, error) {
	p := &Provider{production: c.Production, timeout: c.Timeout, now: c.Now}
	if err := CheckHost(c.Production, c.BaseURL); err != nil {
		return nil, err
	}
	if c.BaseURL != "" {
		base, err := url.Parse(strings.TrimSuffix(c.BaseURL, "/"))
		if err != nil {
			return nil, fmt.Errorf("the base URL of the provider cannot be read: %w", err)
		}
		p.base = base
	}
	if p.timeout == 0 {
		p.timeout = Timeout
	}
	if p.now == nil {
		p.now = time.Now
	}
	if c.DialTimeout == 0 {
		c.DialTimeout = DialTimeout
	}
	p.client = newClient(c.DialTimeout, c.Production)
	return p, nil
}

// Close gives up the connections that nobody uses.
func (p *Provider) Close() { p.client.CloseIdleConnections() }

// Reach tells whether the provider's host answers at all; without a credential it answers nothing else.
func (p *Provider) Reach(ctx context.Context) error {
	host := SandboxURL
	if p.production {
		host = ProductionURL
	}
	if p.base != nil {
		host = p.base.String()
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodHead, host, nil)
	if err != nil {
		return err
	}
	answer, err := p.client.Do(request)
	if err != nil {
		return err
	}
	return answer.Body.Close()
}

// Name implements provider.Port.
func (p *Provider) Name() string { return "nicepay" }

// maxValidHours is what Hub allows; the vendor would wait longer.
const maxValidHours = 720

// Capabilities implements provider.Port. A virtual account is paid back to an account that the refund has to name; a stand-in
// for the vendor moves no money, and does without.
func (p *Provider) Capabilities(m provider.PayMethod) provider.Capabilities {
	switch m {
	case provider.VBank:
		return provider.Capabilities{PartialRefund: true, NeedsRefundAccount: p.base == nil, MaxValidHours: maxValidHours}
	case provider.Card:
		return provider.Capabilities{PartialRefund: true}
	}
	return provider.Capabilities{}
}

// Ack implements provider.Port: without a body of OK, in text/html, a webhook has failed for the vendor.
func (p *Provider) Ack(ok bool) (status int, contentType, body string) {
	if ok {
		return http.StatusOK, "text/html;charset=utf-8", "OK"
	}
	return http.StatusInternalServerError, "text/html;charset=utf-8", "FAIL"
}

// host is where a credential is good for.
func (p *Provider) host(env credentials.Env) string {
	switch {
	case p.base != nil:
		return p.base.String()
	case env == credentials.Production:
		return ProductionURL
	}
	return SandboxURL
}
