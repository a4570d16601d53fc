// Package payments takes money for Connected Apps: orders, deposits, refunds, and the notifications of them. It keeps what Hub
// knows and what the provider says apart, and moves an order only to what the provider has said when asked. It refuses
// to believe a webhook, to try again blindly what may have happened, and to call a provider within a transaction.
//
// A call that asks the provider takes three steps. First a transaction claims the Idempotency-Key with a lease and stores what
// is wanted, such as a READY order or a reserved refund. Then, without a transaction, the provider is asked under Hub's own
// code, which makes the request repeatable. Last a transaction applies the answer and stores it with the key. A process that
// dies in between leaves a claim behind, which the job Complete takes over when its lease is over; an answer that never came
// leaves the order as it is, and the job Resolve asks what became of it.
//
// The rules of an order are package order's, what a provider is asked and answers is package provider's, and this package has
// the Service that ties them to the store, to auth and to the receivers of apps, each behind a small interface.
package payments

import (
	"context"
	"crypto/rand"
	"log/slog"
	"time"

	"github.com/oklog/ulid/v2"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/schema"
	"hub.internal/pkg/tool"
	"hub.internal/pkg/write"
	"hub.internal/services/payments/credentials"
	"hub.internal/services/payments/order"
	"hub.internal/services/payments/provider"
)

// Store keeps orders. Its errors are faults; E_NOT_FOUND for an order that it does not have, and E_DB when it cannot
// be reached. Whatever changes an order does so with the row locked.
type Store interface {
	// Answered returns the answer of an earlier call with the key, if there is one. Without a key there is none.
	Answered(ctx context.Context, key write.Key) (tool.Result, bool, error)
	// Open claims the key and stores a new order, about which the claim is then. When the app has an order with that
	// clientOrderId already, the claim is about that KnownOrder, and nothing is stored.
	Open(ctx context.Context, key write.Key, a *order.Aggregate) (write.Claim, error)
	// Claim claims the key and changes an order by do, which names what the claim is about.
	Claim(ctx context.Context, key write.Key, code string, by Actor, do func(*order.Aggregate) (Subject, error)) (write.Claim, error)
	// Change locks an order, lets do change it, and stores what do has changed with its events, notifications and jobs. An error
	// of do rolls back. With a completion the claim is finished in the same transaction; write.ErrTakenOver when the claim is
	// somebody else's by now.
	Change(ctx context.Context, code string, by Actor, do func(*order.Aggregate) error, end *Completion) (*order.Aggregate, error)
	// Release frees a claim without an answer, so that the same key may try again; write.ErrTakenOver when it is somebody else's.
	Release(ctx context.Context, c write.Claim) error
	// Record stores a row of the audit log by itself, for what no single transaction does.
	Record(ctx context.Context, entry audit.Entry) error
	// AbandonedClaims returns claims that nobody works on any more, the oldest first; Take takes one of them over.
	AbandonedClaims(ctx context.Context, limit int) ([]write.Claim, error)
	TakeOverClaim(ctx context.Context, left write.Claim) (c write.Claim, ok bool, err error)

	// OrderOfRefund is the code of the order that a refund is of.
	OrderOfRefund(ctx context.Context, refund string) (string, error)
	// Orders returns a page of orders, newest first.
	Orders(ctx context.Context, f Filter) ([]*order.Aggregate, error)

	Operations
	Inbox
	Outbox
	Reconciliations
}

// Completion finishes a claim: Answer makes what is stored with the key, and the row of the audit log.
type Completion struct {
	Claim  write.Claim
	Answer func(*order.Aggregate) (tool.Result, audit.Entry, error)
}

// Actor is who does something to an order, as its events record it. Apps see only the part before the colon.
type Actor struct {
	// Name is app:CODE, operator:ADDRESS, provider or hub.
	Name      string
	RequestID string
	Now       time.Time
}

// Filter says which orders a list has.
type Filter struct {
	// ServiceCode and ExternalUserID are empty for an operator, who sees all.
	ServiceCode, ExternalUserID string
	// Env is empty for both.
	Env                         credentials.Env
	Status                      []order.Status
	PayMethod                   provider.PayMethod
	CreatedAfter, CreatedBefore time.Time
	// Attention has those that need an operator.
	Attention bool
	// ReadySince has those that have been READY since before a moment, Undelivered those with a message that was given up.
	ReadySince  time.Time
	Undelivered bool
	// Search is the code of an order, of a refund or of a deposit's return, a clientOrderId, a provider's id, or the number of a virtual
	// account.
	Search string
	// Before is the position below which the list goes on.
	Before Position
	Limit  int
}

// Position is an order's place in a list.
type Position struct {
	At   time.Time
	Code string
}

// App is what payments has to know of a Connected App.
type App struct {
	Active       bool
	RedirectURLs []string
	Origins      []string
	// Secrets sign its notifications: the current one, and one that is being replaced.
	Secrets []string
}

// Apps knows Connected Apps. E_NOT_FOUND for a code that none has.
type Apps interface {
	App(ctx context.Context, serviceCode string) (App, error)
}

// Credentials knows the credentials of providers in clear.
type Credentials interface {
	// Active is the one for new orders; E_DB when there is none.
	Active(ctx context.Context, provider string, env credentials.Env) (credentials.Unsealed, error)
	// ByID is the one that an order was made with.
	ByID(ctx context.Context, id schema.ID) (credentials.Unsealed, error)
	// Verifying are those that may have signed a webhook.
	Verifying(ctx context.Context, provider string) ([]credentials.Unsealed, error)
}

// Sealer keeps what must not be read in the store.
type Sealer interface {
	Seal(text, name string) ([]byte, error)
	Open(sealed []byte, name string) (string, error)
}

// Notifier makes one attempt at telling an app.
type Notifier interface {
	Send(ctx context.Context, m Delivery) Attempt
	// Next is the wait after so many failed attempts; ok is false when it was the last.
	Next(attempts int) (wait time.Duration, ok bool)
	// Check judges a URL for an app with these origins.
	Check(url string, origins []string) error
}

// Config is what a Service is made of. All members are required; the zero Config makes a Service that can only be declared, for
// the manifest.
type Config struct {
	Store       Store
	Apps        Apps
	Credentials Credentials
	Provider    provider.Port
	Notifier    Notifier
	Sealer      Sealer
	// Env is that of new orders.
	Env credentials.Env
	// PublicURL is where browsers and providers reach the gateway.
	PublicURL string
	Now       func() time.Time
	Logger    *slog.Logger
}

// Service takes money. Who calls is the caller of the context: an app for one of its users, an operator, or nobody for a job and
// for the routes that a provider or a browser calls. It is safe for concurrent use and holds no state but the bulkhead of its
// notifications, so that replicas add up.
type Service struct {
	c        Config
	bulkhead *bulkhead
}

// New returns a Service.
func New(c Config) *Service { return &Service{c, newBulkhead()} }

const (
	// Lease is how long who claimed a key has it for themselves.
	Lease = 60 * time.Second
	// KeysKept is how long an Idempotency-Key is kept.
	KeysKept = 30 * 24 * time.Hour
	// providerTimeout is what a call to the provider may take, with all that follows.
	providerTimeout = 45 * time.Second
)

// KeyReused is the refusal of a key that was used before for something else.
func KeyReused() error {
	return order.Conflict(order.CodeKeyReused, "This Idempotency-Key was used before for something else. Send a new key for a new call.", nil)
}

// RequestOf is the request id of the call that ctx belongs to.
func RequestOf(ctx context.Context) string { return caller.From(ctx).RequestID }

// now is the moment that is stored: what is answered is what can be read back.
func (s *Service) now() time.Time { return s.c.Now().UTC().Truncate(time.Millisecond) }

// newCode draws a code: the prefix and a ULID, which sorts by time and cannot be guessed.
func (s *Service) newCode(prefix string) string {
	return prefix + ulid.MustNew(ulid.Timestamp(s.c.Now()), rand.Reader).String()
}

// operatorPrefix begins the name of an operator as an actor, and the principal of their keys.
const operatorPrefix = "operator:"

// actor is the caller of ctx as an actor.
func (s *Service) actor(ctx context.Context) Actor { return s.actorOf(caller.From(ctx)) }

// actorOf is a caller as an actor.
func (s *Service) actorOf(c caller.Caller) Actor {
	a := Actor{RequestID: c.RequestID, Now: s.now()}
	switch c.Kind {
	case caller.App:
		a.Name = "app:" + c.Service
	case caller.User:
		a.Name = operatorPrefix + c.Email
	default:
		a.Name = "hub"
	}
	return a
}

// detach lets what follows a call to the provider be kept, also when the caller has gone.
func detach(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), providerTimeout)
}

// ownOrder returns an order of the caller's app and user. One of somebody else's is not there.
func (s *Service) ownOrder(ctx context.Context, code string) (*order.Aggregate, error) {
	a, err := s.c.Store.Order(ctx, code)
	if err != nil {
		return nil, err
	}
	return a, ownedBy(caller.From(ctx), a.Order)
}

// ownedBy is nil for the app and the user that an order is of, and for an operator: pages judge who is one.
func ownedBy(c caller.Caller, o order.Order) error {
	if c.Kind == caller.User || c.Kind == caller.App && o.ServiceCode == c.Service && o.ExternalUserID == c.ExternalUserID {
		return nil
	}
	return NoSuchOrder(o.Code)
}

// NoSuchOrder is the refusal for an order that is not there, or not the caller's.
func NoSuchOrder(code string) error {
	return fault.New(fault.NotFound, "There is no order %q. GET /v1/pay/orders lists yours.", code)
}
