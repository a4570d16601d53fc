package order_test

import (
	"fmt"
	"testing"
	"time"

	"hub.internal/services/payments/order"
	"hub.internal/services/payments/provider"
)

// paidBook is the book of an order that is paid, with a refund of 4,000 won under way.
func paidBook(t *testing.T) (*order.Aggregate, provider.Snapshot) {
	t.Helper()
	a := open(t, provider.Card)
	s := provider.Snapshot{TID: "t1", Code: "po_1", Status: provider.PaymentPaid, Amount: 11000, Balance: 11000, PaidAt: noon}
	amount := int64(4000)
	if err := a.Apply(s); err != nil {
		t.Fatal(err)
	}
	if _, err := a.RequestRefund(order.RefundRequest{Code: "rf_1", Amount: &amount, Reason: "x"}); err != nil {
		t.Fatal(err)
	}
	return a, s
}

// TestRefundPaidTwice: a provider that has paid a refund back twice under its one code has moved money twice. The books
// have both, and an operator hears of it once.
func TestRefundPaidTwice(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		second        int64
		refunded      int64
		refunds, said int
	}{
		"and it fits":             {4000, 8000, 2, 1},
		"and all of it went":      {7000, 11000, 2, 1},
		"and more than there was": {9000, 4000, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, s := paidBook(t)
			s.Cancellations = []provider.Cancellation{{TID: "c1", RefundCode: "rf_1", Amount: 4000, At: noon}}
			if err := a.ApplyFresh(s); err != nil || a.Order.Attention != "" {
				t.Fatal(err, a.Order.Attention)
			}
			s.Cancellations = append(s.Cancellations, provider.Cancellation{TID: "c2", RefundCode: "rf_1", Amount: row.second, At: noon})
			for range 3 {
				if err := a.ApplyFresh(s); err != nil {
					t.Fatal(err)
				}
			}
			drifts := 0
			for _, step := range a.Events {
				if step.Trigger == order.BalanceDrifted {
					drifts++
				}
			}
			if a.Order.RefundedAmount != row.refunded || len(a.Refunds) != row.refunds || a.Order.Attention != order.BalanceDrift ||
				drifts != row.said {
				t.Errorf("%+v %+v, %d drifts", a.Order, a.Refunds, drifts)
			}
			if err := sound(a, map[string]int64{"": 11000}); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestOtherPayoutsReturn: that a second payout of a refund came back says nothing of the first one.
func TestOtherPayoutsReturn(t *testing.T) {
	t.Parallel()
	a, s := paidBook(t)
	s.Cancellations = []provider.Cancellation{{TID: "c1", RefundCode: "rf_1", Amount: 4000, At: noon}}
	if err := a.Apply(s); err != nil {
		t.Fatal(err)
	}
	s.Cancellations = append(s.Cancellations, provider.Cancellation{TID: "c2", RefundCode: "rf_1", Amount: 4000, At: noon, Returned: true})
	if err := a.Apply(s); err != nil || a.Order.RefundedAmount != 4000 {
		t.Errorf("%v: %+v", err, a.Order)
	}
}

// TestRefusedReturnThatWasMade: a return that seemed to be refused, and that the provider tells of all the same, has been made.
func TestRefusedReturnThatWasMade(t *testing.T) {
	t.Parallel()
	a, s := paidBook(t)
	second := s
	second.TID, second.PaidAt = "t2", noon.Add(time.Minute)
	if err := a.Apply(second); err != nil {
		t.Fatal(err)
	}
	a.Deposits[0].ID, a.Deposits[1].ID = 1, 2
	if err := a.RequestDepositReturn(2, order.DepositReturn{Code: "rf_back"}, ""); err != nil {
		t.Fatal(err)
	}
	if err := a.DeclineDepositReturn("rf_back", order.Failure{Code: "2016", Message: "no"}); err != nil {
		t.Fatal(err)
	}
	second.Cancellations = []provider.Cancellation{{TID: "c9", RefundCode: "rf_back", Amount: 11000, At: noon}}
	if err := a.Apply(second); err != nil || a.Deposits[1].State != order.DepositStateReturned || a.Order.Attention != "" {
		t.Errorf("%v: %+v %+v", err, a.Order, a.Deposits)
	}
}

// TestManyRefundsNobodyAskedFor: as many as an answer of the provider can hold are kept, some at each look.
func TestManyRefundsNobodyAskedFor(t *testing.T) {
	t.Parallel()
	a := open(t, provider.Card)
	s := provider.Snapshot{TID: "t1", Code: "po_1", Status: provider.PaymentPaid, Amount: 11000, PaidAt: noon}
	for n := range 2000 {
		s.Cancellations = append(s.Cancellations, provider.Cancellation{TID: fmt.Sprint("c", n), Amount: 1, At: noon})
	}
	for before := int64(0); before != a.Order.Version; {
		before = a.Order.Version
		if err := a.ApplyFresh(s); err != nil {
			t.Fatal(err)
		}
	}
	if a.Order.RefundedAmount != 2000 {
		t.Errorf("%+v", a.Order)
	}
	if last := a.Events[len(a.Events)-1]; len(last.Payload) > 20<<10 {
		t.Errorf("a message has %d bytes", len(last.Payload))
	}
}

// TestManyCancellations: however many a provider tells of, one snapshot is settled in short transactions, and the next ones go on.
func TestManyCancellations(t *testing.T) {
	t.Parallel()
	s := provider.Snapshot{Code: "po_1", TID: "t1", Status: provider.PaymentPaid, Amount: 11000, Balance: 10000, PaidAt: noon}
	for i := range 1000 {
		s.Cancellations = append(s.Cancellations, provider.Cancellation{TID: fmt.Sprint("c", i), Amount: 1, At: noon})
	}
	a := open(t, provider.Card)
	for want := range 6 {
		if err := a.ApplyFresh(s); err != nil || a.Order.RefundedAmount != int64(min(200*(want+1), 1000)) {
			t.Fatalf("after %d looks: %d, %v", want+1, a.Order.RefundedAmount, err)
		}
	}
	before := a.Order.Version
	if err := a.ApplyFresh(s); err != nil || a.Order.Version != before {
		t.Errorf("%v", err)
	}
	for _, step := range a.Events {
		if len(step.Payload) > 20<<10 {
			t.Fatalf("%d bytes of a message", len(step.Payload))
		}
	}
}

// TestNewsOfAnotherPayment: that another payment of the order was given up, or has run out, says nothing of the one that it waits for.
func TestNewsOfAnotherPayment(t *testing.T) {
	t.Parallel()
	for _, status := range []provider.PaymentStatus{provider.PaymentCanceled, provider.PaymentExpired} {
		for tid, want := range map[string]order.Status{"t0": order.AwaitingDeposit, "t1": map[provider.PaymentStatus]order.Status{
			provider.PaymentCanceled: order.Canceled, provider.PaymentExpired: order.Expired}[status]} {
			a := open(t, provider.VBank)
			issued := provider.Snapshot{TID: "t1", Code: "po_1", Status: provider.PaymentIssued, Amount: 11000, Balance: 11000,
				Account: &provider.VirtualAccount{Number: "1", ExpiresAt: noon.Add(time.Hour)}}
			said(t, a, issued)
			a.Now = noon.Add(2 * time.Hour)
			if said(t, a, provider.Snapshot{TID: tid, Code: "po_1", Status: status, Amount: 5000}); a.Order.Status != want {
				t.Errorf("%s is %s: the order is %s", tid, status, a.Order.Status)
			}
			if tid == "t1" {
				continue
			}
			paid := issued
			paid.Status, paid.PaidAt = provider.PaymentPaid, noon.Add(time.Minute)
			if said(t, a, paid); a.Order.Status != order.Paid || a.Order.Attention != "" {
				t.Errorf("what it waited for was paid, and it is %s %s", a.Order.Status, a.Order.Attention)
			}
		}
	}
}
