// Package metrics shows how payments go: what the provider and the receivers of apps answer, as calls of dependencies, and what
// the store has kept, as counts. It stands between the Service and what the Service uses, and changes nothing of either.
//
// Each of its three wrappers is a decorator: it embeds the interface that it measures, and overrides the methods that count.
// What waits at a moment is no count, and is measured by the store itself (postgres.Store.Sample).
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
	"hub.internal/services/payments/credentials"
	"hub.internal/services/payments/order"
	"hub.internal/services/payments/provider"
)

// Provider shows the calls of a provider, which are a dependency of its name.
func Provider(p provider.Port) provider.Port {
	return measuredProvider{p, telemetry.NewDependency(p.Name())}
}

// measuredProvider embeds the port, so that what is not measured goes straight through.
type measuredProvider struct {
	provider.Port
	calls *telemetry.Dependency
}

// done counts a call and how long it took.
func (p measuredProvider) done(ctx context.Context, operation string, start time.Time, err error) {
	p.calls.Done(ctx, operation, start, callOutcome(err))
}

// callOutcome of a call: a refusal proves that the provider works.
func callOutcome(err error) string {
	var declined *provider.DeclinedError
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &declined):
		return "declined"
	case errors.Is(err, provider.ErrNotFound):
		return "not_found"
	case errors.Is(err, provider.ErrAlreadyPaid), errors.Is(err, provider.ErrAlreadyCanceled):
		return "already"
	case errors.Is(err, provider.ErrNotSent):
		return "not_sent"
	}
	return "unknown"
}

// Issue implements provider.Port.
func (p measuredProvider) Issue(ctx context.Context, c credentials.Unsealed, r provider.IssueRequest) (s provider.Snapshot, err error) {
	defer func(start time.Time) { p.done(ctx, "issue", start, err) }(time.Now())
	return p.Port.Issue(ctx, c, r)
}

// Get implements provider.Port.
func (p measuredProvider) Get(ctx context.Context, c credentials.Unsealed, r provider.PaymentRef) (s provider.Snapshot, err error) {
	defer func(start time.Time) { p.done(ctx, "get", start, err) }(time.Now())
	return p.Port.Get(ctx, c, r)
}

// Cancel implements provider.Port.
func (p measuredProvider) Cancel(ctx context.Context, c credentials.Unsealed, r provider.CancelRequest) (s provider.Snapshot, err error) {
	defer func(start time.Time) { p.done(ctx, "cancel", start, err) }(time.Now())
	return p.Port.Cancel(ctx, c, r)
}

// Expire implements provider.Port.
func (p measuredProvider) Expire(ctx context.Context, c credentials.Unsealed, r provider.PaymentRef) (err error) {
	defer func(start time.Time) { p.done(ctx, "expire", start, err) }(time.Now())
	return p.Port.Expire(ctx, c, r)
}

// NetCancel implements provider.Port.
func (p measuredProvider) NetCancel(ctx context.Context, c credentials.Unsealed, code string) (err error) {
	defer func(start time.Time) { p.done(ctx, "netcancel", start, err) }(time.Now())
	return p.Port.NetCancel(ctx, c, code)
}

// Notifier shows the attempts to notify apps: the dependency "receiver".
func Notifier(n payments.Notifier) payments.Notifier {
	return measuredNotifier{n, telemetry.NewDependency("receiver")}
}

// measuredNotifier embeds the notifier, and measures what it sends.
type measuredNotifier struct {
	payments.Notifier
	calls *telemetry.Dependency
}

// Send implements payments.Notifier.
func (n measuredNotifier) Send(ctx context.Context, m payments.Delivery) payments.Attempt {
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

// Store counts what a store has kept: hub.payments.steps (events) by trigger, hub.payments.webhooks and
// hub.payments.notifications by outcome, and hub.payments.drift.
func Store(s payments.Store) payments.Store {
	meter := otel.Meter("hub.internal/services/payments")
	steps, err1 := meter.Int64Counter("hub.payments.steps", metric.WithDescription("Steps of orders, by what has triggered them."))
	webhooks, err2 := meter.Int64Counter("hub.payments.webhooks",
		metric.WithDescription("Webhooks by what became of them; received ones count before they are looked into."))
	notifications, err3 := meter.Int64Counter("hub.payments.notifications",
		metric.WithDescription("Attempts to notify an app by the state of the message after: pending is one that is tried again."))
	drift, err4 := meter.Int64Counter("hub.payments.drift",
		metric.WithDescription("Cases of another balance at the provider, by whatever way they were found."))
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		otel.Handle(err)
	}
	// The names of the instruments are in dashboards and alerts: they stay, whatever the code calls the same things.
	counted := countingStore{Store: s, steps: steps, webhooks: webhooks, notifications: notifications, drift: drift}
	// An alarm needs the series before the first of them.
	ctx := context.Background()
	drift.Add(ctx, 0)
	for _, row := range order.Transitions() {
		steps.Add(ctx, 0, attr("trigger", string(row.Trigger)))
	}
	for _, o := range []string{"received", outcomeLabel(payments.WebhookApplied), outcomeLabel(payments.WebhookIgnored),
		outcomeLabel(payments.WebhookUnmatched), outcomeLabel(payments.WebhookAbandoned)} {
		webhooks.Add(ctx, 0, attr("outcome", o))
	}
	for _, n := range []payments.NotificationState{payments.NotificationPending, payments.NotificationDelivered,
		payments.NotificationDead, payments.NotificationStopped} {
		notifications.Add(ctx, 0, attr("outcome", strings.ToLower(string(n))))
	}
	return counted
}

// attr is one attribute of a measurement.
func attr(name, value string) metric.MeasurementOption {
	return metric.WithAttributes(attribute.String(name, value))
}

// outcomeLabel is an outcome as a label: in lower case, as all labels are.
func outcomeLabel(o payments.WebhookOutcome) string { return strings.ToLower(string(o)) }

// countingStore embeds the store and overrides the methods that change something. A method that is renamed in
// payments.Store has to be renamed here too: the compiler does not tell.
type countingStore struct {
	payments.Store
	steps, webhooks, notifications, drift metric.Int64Counter
}

// countEvents counts the events that a change has committed. A change that failed has committed none.
func (s countingStore) countEvents(ctx context.Context, a *order.Aggregate, err error) {
	if err != nil || a == nil {
		return
	}
	for _, step := range a.Events {
		s.steps.Add(ctx, 1, attr("trigger", string(step.Trigger)))
		if step.Trigger == order.BalanceDrifted {
			s.drift.Add(ctx, 1)
		}
	}
}

// Open implements payments.Store. A key or a clientOrderId that is known opens nothing.
func (s countingStore) Open(ctx context.Context, key write.Key, a *order.Aggregate) (write.Claim, error) {
	claim, err := s.Store.Open(ctx, key, a)
	if payments.ParseSubject(claim.Resource).Kind == payments.NewOrder && !claim.Done && !claim.Resumed {
		s.countEvents(ctx, a, err)
	}
	return claim, err
}

// Claim implements payments.Store.
func (s countingStore) Claim(ctx context.Context, key write.Key, code string, by payments.Actor,
	do func(*order.Aggregate) (payments.Subject, error)) (
	write.Claim, error,
) {
	var changed *order.Aggregate // nil for a key that somebody else has claimed
	claim, err := s.Store.Claim(ctx, key, code, by, func(a *order.Aggregate) (payments.Subject, error) {
		changed = a
		return do(a)
	})
	s.countEvents(ctx, changed, err)
	return claim, err
}

// Change implements payments.Store.
func (s countingStore) Change(ctx context.Context, code string, by payments.Actor, do func(*order.Aggregate) error,
	end *payments.Completion) (
	*order.Aggregate, error,
) {
	a, err := s.Store.Change(ctx, code, by, do, end)
	s.countEvents(ctx, a, err)
	return a, err
}

// Operate implements payments.Operations.
func (s countingStore) Operate(ctx context.Context, code string, by payments.Actor, do func(*order.Aggregate) (audit.Entry, error)) (
	*order.Aggregate, error,
) {
	a, err := s.Store.Operate(ctx, code, by, do)
	s.countEvents(ctx, a, err)
	return a, err
}

// Receive implements payments.Inbox.
func (s countingStore) Receive(ctx context.Context, w payments.Webhook) error {
	err := s.Store.Receive(ctx, w)
	if err == nil {
		s.webhooks.Add(ctx, 1, attr("outcome", "received"))
	}
	return err
}

// Settle implements payments.Inbox.
func (s countingStore) Settle(ctx context.Context, w payments.Webhook, o payments.WebhookOutcome) error {
	err := s.Store.Settle(ctx, w, o)
	if err == nil {
		s.webhooks.Add(ctx, 1, attr("outcome", outcomeLabel(o)))
	}
	return err
}

// RecordAttempt implements payments.Outbox.
func (s countingStore) RecordAttempt(ctx context.Context, n payments.Notification, a payments.Attempt) error {
	err := s.Store.RecordAttempt(ctx, n, a)
	if err == nil {
		s.notifications.Add(ctx, 1, attr("outcome", strings.ToLower(string(n.State))))
	}
	return err
}
