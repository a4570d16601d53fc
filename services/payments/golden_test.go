package payments_test

import (
	"encoding/json"
	"testing"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"hub.internal/pkg/fault"
	"hub.internal/services/payments"
	"hub.internal/services/payments/order"
)

// TestGoldenPath walks SPEC.md 10 from the third step on.
func TestGoldenPath(t *testing.T) {
	t.Parallel()
	s := newShop(t, options{})
	const create = "pay.orders.create"
	input := `{"supplyAmount":10000,"vat":1000,"payMethod":"vbank","payment_notify_url":"` + s.app.url + `"}`
	first := s.must(create, "k-1", input)
	o := first.Order
	if first.Status != 201 || o.Status != order.AwaitingDeposit || o.VirtualAccount == nil || o.Amount != 11000 {
		t.Fatalf("%d %s", first.Status, first.Raw)
	}
	again := s.must(create, "k-1", input)
	if again.Status != 201 || !again.Replayed || again.Raw != first.Raw {
		t.Errorf("the replay differs: %d %v\n%s\n%s", again.Status, again.Replayed, first.Raw, again.Raw)
	}
	if nulls := s.must(
		create,
		"k-1",
		`{"vbank":null,"orderName":null,"metadata":null,`+input[1:],
	); !nulls.Replayed ||
		nulls.Raw != first.Raw {
		t.Errorf("null is not what is left out: %s", nulls.Raw)
	}
	s.refused(create, "k-1", `{"amount":5000}`, fault.Conflict, "IDEMPOTENCY_KEY_CONFLICT")
	s.deposit(o.Code, 11000, 3)
	s.becomes(o.Code, order.Paid)

	const refund = "pay.orders.refund"
	r := s.must(
		refund,
		"k-2",
		`{"code":"`+o.Code+`","amount":4000,"refundAccount":{"bankCode":"004","accountNumber":"`+accountNumber+`","holder":"Kim"}}`,
	)
	if r.Refund.Status != order.RefundSucceeded || r.Order.RefundableAmount != 7000 || r.Order.Status != order.Paid {
		t.Fatalf("%s", r.Raw)
	}
	s.refused(
		refund,
		"k-3",
		`{"code":"`+o.Code+`","amount":8000,"refundAccount":{"bankCode":"004","accountNumber":"1","holder":"Kim"}}`,
		fault.Conflict,
		"REFUND_EXCEEDS_BALANCE",
	)
	r = s.must(refund, "k-4", `{"code":"`+o.Code+`","amount":7000,"refundAccount":{"bankCode":"004","accountNumber":"1","holder":"Kim"}}`)
	if r.Order.Status != order.Refunded || r.Order.RefundableAmount != 0 {
		t.Fatalf("%s", r.Raw)
	}
	s.refused(
		refund,
		"k-5",
		`{"code":"`+o.Code+`","amount":1,"refundAccount":{"bankCode":"004","accountNumber":"1","holder":"Kim"}}`,
		fault.Conflict,
		"ORDER_NOT_REFUNDABLE",
	)
	s.settled()

	e := s.events(o.Code)
	for i, event := range e.Events {
		if event.Seq != int64(i+1) {
			t.Errorf("event %d has seq %d", i, event.Seq)
		}
	}
	want := []string{order.NotifyIssued, order.NotifyPaid, order.NotifyRefundSucceeded, order.NotifyRefunded}
	if len(e.Notifications) != len(want) {
		t.Fatalf("%d notifications: %+v", len(e.Notifications), e.Notifications)
	}
	for i, n := range e.Notifications {
		if n.Type != want[i] || n.State != payments.NotificationDelivered || len(n.Attempts) != 1 {
			t.Errorf("%+v, want %s", n, want[i])
		}
	}
	s.verified()
}

// verified holds what the app took to the library of Standard Webhooks, and each body to its event.
func (s *shop) verified() {
	s.t.Helper()
	wh, err := standardwebhooks.NewWebhook(webhookSecret)
	if err != nil {
		s.t.Fatal(err)
	}
	seen := map[string]string{}
	for _, got := range s.app.all() {
		verify := wh.Verify
		if s.still {
			verify = wh.VerifyIgnoringTimestamp
		}
		if err := verify(got.Body, got.Header); err != nil {
			s.t.Errorf("%s: %v", got.ID, err)
		}
		if body, known := seen[got.ID]; known && body != string(got.Body) {
			s.t.Errorf("%s was sent with other bytes", got.ID)
		}
		seen[got.ID] = string(got.Body)
		var m struct {
			Type string
			Data struct {
				Status string
				Seq    int64
				Order  order.View
			}
		}
		if err := json.Unmarshal(got.Body, &m); err != nil {
			s.t.Fatal(err)
		}
		if m.Data.Seq != m.Data.Order.Version || m.Data.Status != string(m.Data.Order.Status) && m.Data.Status != order.VBankIssued {
			s.t.Errorf(
				"a message says %s at %d, and its order is %s at %d",
				m.Data.Status,
				m.Data.Seq,
				m.Data.Order.Status,
				m.Data.Order.Version,
			)
		}
	}
}
