package metrics_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"hub.internal/pkg/telemetry"
	"hub.internal/pkg/tool"
	"hub.internal/pkg/write"
	"hub.internal/services/payments"
	"hub.internal/services/payments/credentials"
	"hub.internal/services/payments/metrics"
	"hub.internal/services/payments/order"
	"hub.internal/services/payments/provider"
)

// store answers what it is told to, and keeps nothing.
type store struct {
	payments.Store
	claim write.Claim
	err   error
}

func (s store) Open(context.Context, write.Key, *order.Aggregate) (write.Claim, error) {
	return s.claim, s.err
}

func (s store) Settle(context.Context, payments.Webhook, payments.WebhookOutcome) error { return s.err }

func (s store) RecordAttempt(context.Context, payments.Notification, payments.Attempt) error {
	return s.err
}

func (s store) Change(
	_ context.Context,
	_ string,
	_ payments.Actor,
	do func(*order.Aggregate) error,
	_ *payments.Completion,
) (*order.Aggregate, error) {
	a := &order.Aggregate{}
	return a, errors.Join(do(a), s.err)
}

type fakeProvider struct {
	provider.Port
	err error
}

func (fakeProvider) Name() string { return "nicepay" }

func (p fakeProvider) Get(context.Context, credentials.Unsealed, provider.PaymentRef) (provider.Snapshot, error) {
	return provider.Snapshot{}, p.err
}

type notifier struct {
	payments.Notifier
	attempt payments.Attempt
}

func (n notifier) Send(context.Context, payments.Delivery) payments.Attempt { return n.attempt }

// TestWhatIsKeptIsCounted: and nothing else, neither what failed nor what was there before.
func TestWhatIsKeptIsCounted(t *testing.T) {
	tel, err := telemetry.Start(t.Context(), telemetry.Config{Service: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tel.Close(context.Background()) })
	ctx, away := t.Context(), errors.New("away")
	made := order.Order{Code: "po_1"}
	opened := &order.Aggregate{Order: made, Events: []order.Event{{Trigger: order.Create}}}
	for _, s := range []store{{claim: write.Claim{Resource: "po_1"}},
		{claim: write.Claim{Resource: "po_1", Done: true, Answer: tool.Result{}}},
		{claim: write.Claim{Resource: payments.Subject{Kind: payments.KnownOrder, Code: "po_0"}.String()}},
		{claim: write.Claim{Resource: "po_1"}, err: away}} {
		_, _ = metrics.Store(s).Open(ctx, write.Key{}, opened)
	}
	pay := func(a *order.Aggregate) error {
		a.Events = append(a.Events, order.Event{Trigger: order.Pay}, order.Event{Trigger: order.Mismatch},
			order.Event{Trigger: order.BalanceDrifted})
		return nil
	}
	for _, err := range []error{nil, away} {
		s := metrics.Store(store{err: err})
		_, _ = s.Change(ctx, "po_1", payments.Actor{}, pay, nil)
		_ = s.Settle(ctx, payments.Webhook{}, payments.WebhookAbandoned)
		_ = s.RecordAttempt(ctx, payments.Notification{State: payments.NotificationDead}, payments.Attempt{})
	}
	for _, err := range []error{nil, fmt.Errorf("x: %w", provider.ErrNotSent), provider.ErrUnknown, &provider.DeclinedError{Code: "1"},
		provider.ErrNotFound, away} {
		_, _ = metrics.Provider(fakeProvider{err: err}).Get(ctx, credentials.Unsealed{}, provider.PaymentRef{})
	}
	for _, a := range []payments.Attempt{{Delivered: true, Status: 204}, {Status: 503}, {Status: 410, Gone: true}, {}} {
		metrics.Notifier(notifier{attempt: a}).Send(ctx, payments.Delivery{})
	}
	w := httptest.NewRecorder()
	tel.Metrics.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	shows := func(name, labels, value string) {
		t.Helper()
		for line := range strings.Lines(w.Body.String()) {
			found := strings.HasPrefix(line, name+"{") && strings.HasSuffix(line, "} "+value+"\n")
			for label := range strings.FieldsSeq(labels) {
				found = found && strings.Contains(line, label)
			}
			if found {
				return
			}
		}
		t.Errorf("no %s{%s} %s", name, labels, value)
	}
	for trigger, n := range map[order.Trigger]string{order.Create: "1", order.Pay: "1", order.Mismatch: "1", order.BalanceDrifted: "1",
		order.Reverse: "0"} {
		shows("hub_payments_steps_total", fmt.Sprintf("trigger=%q", trigger), n)
	}
	shows("hub_payments_drift_total", "", "1") // whoever has found it, such as a webhook: it is what somebody is called for
	shows("hub_payments_webhooks_total", `outcome="abandoned"`, "1")
	shows("hub_payments_webhooks_total", `outcome="applied"`, "0")
	shows("hub_payments_notifications_total", `outcome="dead"`, "1")
	for outcome, n := range map[string]string{"ok": "1", "not_sent": "1", "unknown": "2", "declined": "1", "not_found": "1"} {
		shows("hub_dependency_duration_seconds_count", fmt.Sprintf(`dependency="nicepay" operation="get" outcome=%q`, outcome), n)
	}
	for outcome, n := range map[string]string{"ok": "1", "http_5xx": "1", "http_4xx": "1", "unanswered": "1"} {
		shows("hub_dependency_duration_seconds_count", fmt.Sprintf(`dependency="receiver" operation="notify" outcome=%q`, outcome), n)
	}
}
