// Package metrics shows how payments go: what the provider and the receivers of apps answer, as calls of dependencies, and what
// the store has kept, as counts. It stands between the Service and what the Service uses, and changes nothing of either.
package metrics

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/telemetry"
	"hub.internal/pkg/write"
	"hub.internal/services/payments"
)

// Provider shows the calls of a provider, which are a dependency of its name.
func Provider(p payments.Provider) payments.Provider {
	return measuredProvider{p, telemetry.NewDependency(p.Name())}
}

type measuredProvider struct {
	payments.Provider
	calls *telemetry.Dependency
}

func (p measuredProvider) done(ctx context.Context, operation string, start time.Time, err error) {
	p.calls.Done(ctx, operation, start, outcome(err))
}

// outcome of a call: a refusal proves that the provider works.
func outcome(err error) string {
	var declined *payments.DeclinedError
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &declined):
		return "declined"
	case errors.Is(err, payments.ErrNotFound):
		return "not_found"
	case errors.Is(err, payments.ErrAlreadyPaid), errors.Is(err, payments.ErrAlreadyCanceled):
		return "already"
	case errors.Is(err, payments.ErrNotSent):
		return "not_sent"
	}
	return "unknown"
}

// Issue implements payments.Provider.
func (p measuredProvider) Issue(ctx context.Context, c payments.Cred, r payments.IssueRequest) (s payments.Snapshot, err error) {
	defer func(start time.Time) { p.done(ctx, "issue", start, err) }(time.Now())
	return p.Provider.Issue(ctx, c, r)
}

// Get implements payments.Provider.
func (p measuredProvider) Get(ctx context.Context, c payments.Cred, r payments.Ref) (s payments.Snapshot, err error) {
	defer func(start time.Time) { p.done(ctx, "get", start, err) }(time.Now())
	return p.Provider.Get(ctx, c, r)
}

// Cancel implements payments.Provider.
func (p measuredProvider) Cancel(ctx context.Context, c payments.Cred, r payments.CancelRequest) (s payments.Snapshot, err error) {
	defer func(start time.Time) { p.done(ctx, "cancel", start, err) }(time.Now())
	return p.Provider.Cancel(ctx, c, r)
}

// Expire implements payments.Provider.
func (p measuredProvider) Expire(ctx context.Context, c payments.Cred, r payments.Ref) (err error) {
	defer func(start time.Time) { p.done(ctx, "expire", start, err) }(time.Now())
	return p.Provider.Expire(ctx, c, r)
}

// NetCancel implements payments.Provider.
func (p measuredProvider) NetCancel(ctx context.Context, c payments.Cred, code string) (err error) {
	defer func(start time.Time) { p.done(ctx, "netcancel", start, err) }(time.Now())
	return p.Provider.NetCancel(ctx, c, code)
}

// Notifier shows the attempts to notify apps: the dependency "receiver".
func Notifier(n payments.Notifier) payments.Notifier {
	return measuredNotifier{n, telemetry.NewDependency("receiver")}
}

type measuredNotifier struct {
	payments.Notifier
	calls *telemetry.Dependency
}

// Send implements payments.Notifier.
func (n measuredNotifier) Send(ctx context.Context, m payments.Outgoing) payments.Attempt {
	start := time.Now()
	a := n.Notifier.Send(ctx, m)
	said := "unanswered"
	switch {
	case a.Delivered:
		said = "ok"
	case a.Status >= 100:
		said = "http_" + strconv.Itoa(a.Status/100) + "xx"
	}
	n.calls.Done(ctx, "notify", start, said)
	return a
}

// Store counts what a store has kept: hub.payments.steps by trigger, hub.payments.webhooks and
// hub.payments.notifications by outcome, and hub.payments.drift.
func Store(s payments.Store) payments.Store {
	meter := otel.Meter("hub.internal/services/payments")
	steps, err1 := meter.Int64Counter("hub.payments.steps", metric.WithDescription("Steps of orders, by what has triggered them."))
	webhooks, err2 := meter.Int64Counter("hub.payments.webhooks",
		metric.WithDescription("Webhooks by what became of them; received ones count before they are looked into."))
	notifications, err3 := meter.Int64Counter("hub.payments.notifications",
		metric.WithDescription("Attempts to notify an app by the state of the message after: pending is one that is tried again."))
	drift, err4 := meter.Int64Counter("hub.payments.drift",
		metric.WithDescription("Orders of which a sweep has found another balance at the provider."))
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		otel.Handle(err)
	}
	counted := countingStore{Store: s, steps: steps, webhooks: webhooks, notifications: notifications, drift: drift}
	// An alarm needs the series before the first of them.
	ctx := context.Background()
	drift.Add(ctx, 0)
	for _, t := range []payments.Trigger{payments.Create, payments.Issue, payments.Pay, payments.PayLate, payments.Decline, payments.Lapse,
		payments.Cancel, payments.Mismatch, payments.DepositUnused, payments.DepositTwice, payments.DepositApplied, payments.DepositReturned,
		payments.ReturnAsk, payments.ReturnFailed, payments.Reverse, payments.ReverseTooLate, payments.RefundAsk, payments.RefundPart,
		payments.RefundAll, payments.RefundDeclined, payments.RefundReturned, payments.Drift, payments.ResolveCase} {
		steps.Add(ctx, 0, with("trigger", string(t)))
	}
	for _, o := range []string{"received", outcomeOf(payments.Applied), outcomeOf(payments.Ignored),
		outcomeOf(payments.Unmatched), outcomeOf(payments.Abandoned)} {
		webhooks.Add(ctx, 0, with("outcome", o))
	}
	for _, n := range []payments.NoticeState{payments.NoticePending, payments.NoticeDelivered, payments.NoticeDead, payments.NoticeStopped} {
		notifications.Add(ctx, 0, with("outcome", strings.ToLower(string(n))))
	}
	return counted
}

func with(name, value string) metric.MeasurementOption {
	return metric.WithAttributes(attribute.String(name, value))
}

func outcomeOf(o payments.Outcome) string { return strings.ToLower(string(o)) }

type countingStore struct {
	payments.Store
	steps, webhooks, notifications, drift metric.Int64Counter
}

func (s countingStore) stepped(ctx context.Context, b *payments.Book, err error) {
	if err != nil || b == nil {
		return
	}
	for _, step := range b.Steps {
		s.steps.Add(ctx, 1, with("trigger", string(step.Trigger)))
	}
}

// Open implements payments.Store. A key or a clientOrderId that is known opens nothing.
func (s countingStore) Open(ctx context.Context, key write.Key, b *payments.Book) (write.Claim, error) {
	claim, err := s.Store.Open(ctx, key, b)
	if claim.Resource == b.Order.Code && !claim.Done && !claim.Resumed {
		s.stepped(ctx, b, err)
	}
	return claim, err
}

// Claim implements payments.Store.
func (s countingStore) Claim(ctx context.Context, key write.Key, code string, by payments.Actor,
	do func(*payments.Book) (string, error)) (
	write.Claim, error,
) {
	var changed *payments.Book // nil for a key that somebody else has claimed
	claim, err := s.Store.Claim(ctx, key, code, by, func(b *payments.Book) (string, error) {
		changed = b
		return do(b)
	})
	s.stepped(ctx, changed, err)
	return claim, err
}

// Change implements payments.Store.
func (s countingStore) Change(ctx context.Context, code string, by payments.Actor, do func(*payments.Book) error, end *payments.Ending) (
	*payments.Book, error,
) {
	b, err := s.Store.Change(ctx, code, by, do, end)
	s.stepped(ctx, b, err)
	return b, err
}

// Act implements payments.Desk.
func (s countingStore) Act(ctx context.Context, code string, by payments.Actor, do func(*payments.Book) (audit.Entry, error)) (
	*payments.Book, error,
) {
	b, err := s.Store.Act(ctx, code, by, do)
	s.stepped(ctx, b, err)
	return b, err
}

// Receive implements payments.Inbox.
func (s countingStore) Receive(ctx context.Context, w payments.Webhook) error {
	err := s.Store.Receive(ctx, w)
	if err == nil {
		s.webhooks.Add(ctx, 1, with("outcome", "received"))
	}
	return err
}

// Settle implements payments.Inbox.
func (s countingStore) Settle(ctx context.Context, w payments.Webhook, o payments.Outcome) error {
	err := s.Store.Settle(ctx, w, o)
	if err == nil {
		s.webhooks.Add(ctx, 1, with("outcome", outcomeOf(o)))
	}
	return err
}

// Attempted implements payments.Outbox.
func (s countingStore) Attempted(ctx context.Context, n payments.Notice, a payments.Attempt) error {
	err := s.Store.Attempted(ctx, n, a)
	if err == nil {
		s.notifications.Add(ctx, 1, with("outcome", strings.ToLower(string(n.State))))
	}
	return err
}

// AddSweep implements payments.Schedule.
func (s countingStore) AddSweep(ctx context.Context, r payments.SweepReport) error {
	err := s.Store.AddSweep(ctx, r)
	if err == nil {
		s.drift.Add(ctx, int64(r.Drifted))
	}
	return err
}
