// Package pgsim is a payment provider that moves no money: it speaks the wire of NICEPAY (checkout, payments, find,
// cancel, netcancel, signed webhooks), and has a control API by which a test or a developer plays payer, bank and
// operator, and lets things go wrong. Unlike the vendor's sandbox it pays back in part, needs no account for that, and tells of
// deposits. It knows the wire alone, nothing of Hub; everything it says is signed with its secret, and its control API wants that secret.
//
// # Control
//
// POST /_control/ACTION takes JSON and Authorization: Bearer SECRET, from loopback, too. The payer: issue, pay and fail
// {orderId}. The bank: deposit {orderId, amount, at, times}, where times repeats the webhook and not the money, reverse
// {orderId}, same-account {orderId}, fail-refund-later {refundCode}. The operator: console-cancel {orderId, amount}, tell
// {orderId}, test-webhook, webhook-url {url}. Trouble: fault {kind, on, times, ms, code}, heal. settle waits until every webhook is
// acknowledged or given up. GET /_control/calls, payments and webhooks (?orderId=) show what came, what is true and what was told.
//
// # Where the manual is silent
//
// It does not say how the vendor tells of a deposit that the bank took back, or of a payout that returned. Here the first
// is ready (or expired) again with a cancelledAt, the second keeps its entry in cancels, with a returnedAt, and counts no more.
package pgsim

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"
)

// Config is what a simulator is made of. Secret is required: it authenticates callers and signs what is told.
// ClientID is required as well: both are the user and password of HTTP Basic authentication on the vendor's routes.
type Config struct {
	ClientID, Secret string
	// PublicURL is where browsers reach the checkout page; without one it is where the request came to.
	PublicURL string
	// WebhookURL is who is told; empty for nobody.
	WebhookURL string
	// AutoIssue completes the page of a virtual account by itself, so that its account is there at once.
	AutoIssue bool
	// State names a journal that a simulator writes before it answers, and that the next one begins with.
	State string
	// Retries are the pauses before a webhook that was not acknowledged is sent again; nil is DefaultRetries.
	Retries []time.Duration
	// OpenControl lets programs of this machine use the control API without the secret.
	OpenControl bool
	// OnCall, where set, is called with each call before anything is done about it.
	OnCall func(Call)

	// Now is the provider's clock, by which accounts expire and checkouts close; nil is time.Now. Logger nil discards.
	Now    func() time.Time
	Logger *slog.Logger
}

// DefaultRetries are when a webhook is sent again: the vendor tries a few times, then never.
func DefaultRetries() []time.Duration {
	return []time.Duration{time.Second, 5 * time.Second, 30 * time.Second}
}

// Sim is a simulator: an http.Handler with its own truth. Close it. One lock guards everything: calls are short, and what is told
// of them is sent by a goroutine of its own, which Close stops. What it knows of orders is in memory; with Config.State a
// journal of it is on disk, too.
// Every method may be called by many at once.
type Sim struct {
	c      Config
	mux    *http.ServeMux
	client *http.Client

	mu       sync.Mutex
	orders   map[string]*order   // by orderId
	sessions map[string]*order   // by sessionId
	payments map[string]*payment // by tid
	refunds  map[string]*payment // by the orderId of a cancel
	numbers  int
	account  string // what the next account is numbered, when it has to be the number of another one
	faults   []*fault
	calls    []Call
	hooks    []*hook // on their way
	told     []*hook // acknowledged or given up
	hookURL  string
	journal  *journal
	changed  chan struct{} // closed, and made anew, whenever a webhook has moved on

	stop    context.CancelFunc
	running sync.WaitGroup
}

// New starts a simulator. It fails without a secret, and when the journal cannot be read or written.
func New(c Config) (*Sim, error) {
	if c.ClientID == "" || c.Secret == "" {
		return nil, errors.New("pgsim needs a client id and a secret: it signs everything")
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Retries == nil {
		c.Retries = DefaultRetries()
	}
	s := &Sim{c: c, hookURL: c.WebhookURL, client: newClient(), orders: map[string]*order{}, sessions: map[string]*order{},
		payments: map[string]*payment{}, refunds: map[string]*payment{}, changed: make(chan struct{})}
	if err := s.restore(); err != nil {
		return nil, err
	}
	s.mux = s.routes()
	var ctx context.Context
	ctx, s.stop = context.WithCancel(context.Background())
	s.running.Go(func() { s.deliver(ctx) })
	return s, nil
}

// Close ends the deliveries and closes the journal. Webhooks that are still to be sent are sent by the next simulator
// with this journal.
// It waits for the deliveries under way; a call to the simulator after it is a mistake.
func (s *Sim) Close() error {
	s.stop()
	s.running.Wait()
	s.client.CloseIdleConnections()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.journal.close()
}

// ServeHTTP implements http.Handler.
// It serves both the vendor's API and the control API, so that one address is all that a test or a stack has to know.
func (s *Sim) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	s.mux.ServeHTTP(w, r)
}

// routes are the vendor's addresses, the page of the checkout, the control API and a health probe.
// The first argument of api is what a fault names: issue, get or cancel.
func (s *Sim) routes() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/checkout", s.api("issue", s.checkout))
	mux.HandleFunc("GET /v1/checkout/{sessionId}", s.api("get", s.checkoutState))
	mux.HandleFunc("POST /v1/checkout/{sessionId}/expire", s.api("cancel", s.expire))
	mux.HandleFunc("GET /v1/payments/{tid}", s.api("get", s.payment))
	mux.HandleFunc("GET /v1/payments/find/{orderId}", s.api("get", s.find))
	mux.HandleFunc("POST /v1/payments/{tid}/cancel", s.api("cancel", s.cancel))
	mux.HandleFunc("POST /v1/payments/netcancel", s.api("cancel", s.netCancel))
	mux.HandleFunc("GET /v1/checkout/pay/{token}/{sessionId}", s.page)
	mux.HandleFunc("POST /v1/checkout/pay/{token}/{sessionId}", s.pressed)
	mux.HandleFunc("POST /_control/{action}", s.controlled(s.act))
	mux.HandleFunc("GET /_control/{what}", s.controlled(s.show))
	mux.HandleFunc("GET /_health", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	return mux
}
