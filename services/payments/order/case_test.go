package order_test

import (
	"testing"
	"time"

	"hub.internal/pkg/schema"
	"hub.internal/services/payments/order"
	"hub.internal/services/payments/provider"
)

// refundedBook is an order of 11,000 won that was paid at noon with the payment t1, and of which 4,000 were refunded.
func refundedBook(t *testing.T) (a *order.Aggregate, paid provider.Snapshot) {
	t.Helper()
	a = open(t, provider.VBank)
	paid = provider.Snapshot{Code: "po_1", TID: "t1", Status: provider.PaymentPaid, Amount: 11000, Balance: 11000, PaidAt: noon,
		Account: &provider.VirtualAccount{Number: "1", ExpiresAt: noon.Add(240 * time.Hour)}}
	said(t, a, paid)
	amount := int64(4000)
	if _, err := a.RequestRefund(order.RefundRequest{Code: "rf_1", Amount: &amount, Reason: "x"}); err != nil {
		t.Fatal(err)
	}
	paid.Balance, paid.Cancellations = 7000, []provider.Cancellation{{TID: "c1", RefundCode: "rf_1", Amount: 4000}}
	said(t, a, paid)
	return a, paid
}

// said is what a sweep makes of an answer of the provider's, an hour later. Deposits get their ids, as in the store.
func said(t *testing.T, a *order.Aggregate, s provider.Snapshot) {
	t.Helper()
	a.Now = a.Now.Add(time.Hour)
	if err := a.ApplyFresh(s); err != nil {
		t.Fatal(err)
	}
	if err := a.CheckBalance(s); err != nil {
		t.Fatal(err)
	}
	for n := range a.Deposits {
		a.Deposits[n].ID = schema.ID(n + 1)
	}
}

// shows holds the case that an order shows, and how many events it has.
func shows(t *testing.T, a *order.Aggregate, what string, want order.Attention, events int) {
	t.Helper()
	if a.Order.Attention != want || len(a.Events) != events {
		t.Errorf("%s: %q after %d events, want %q after %d", what, a.Order.Attention, len(a.Events), want, events)
	}
}

// resolved is an operator who has looked at the case that the order shows.
func resolved(t *testing.T, a *order.Aggregate) {
	t.Helper()
	if err := a.ResolveAttention("seen"); err != nil {
		t.Fatal(err)
	}
}

// reversed is an answer of before, after the bank has taken the deposit back.
func reversed(s provider.Snapshot, at time.Time) provider.Snapshot {
	s.Status, s.PaidAt, s.ReversedAt = provider.PaymentIssued, time.Time{}, at
	return s
}

// TestACaseEndsByWhatEndsIt: one that another has covered shows again when that is over, whatever the other ended with, and each that an
// operator ends is ended once.
func TestACaseEndsByWhatEndsIt(t *testing.T) {
	t.Parallel()
	a, paid := refundedBook(t)
	began := len(a.Events)
	off := paid
	off.Balance = 6000
	said(t, a, off)
	shows(t, a, "another balance", order.BalanceDrift, began+1)
	back := reversed(paid, noon.Add(5*time.Hour))
	said(t, a, back)
	shows(t, a, "taken back", order.ReversedAfterRefund, began+2)
	again := paid
	again.TID, again.Balance, again.PaidAt, again.Cancellations = "t2", 11000, noon.Add(6*time.Hour), nil
	said(t, a, again)
	shows(t, a, "paid again", order.DuplicateDeposit, began+3)
	said(t, a, back)
	said(t, a, off)
	shows(t, a, "the same once more", order.DuplicateDeposit, began+3)
	if err := a.RecordManualReturn(2, "by hand"); err != nil {
		t.Fatal(err)
	}
	shows(t, a, "the second deposit is back", order.ReversedAfterRefund, began+4)
	resolved(t, a)
	shows(t, a, "one is resolved", order.BalanceDrift, began+5)
	resolved(t, a)
	shows(t, a, "both are resolved", "", began+6)
}

// TestAResolvedCaseStaysResolved: until the provider says something new, such as another balance, another cancellation or another
// reversal.
func TestAResolvedCaseStaysResolved(t *testing.T) {
	t.Parallel()
	a, paid := refundedBook(t)
	events := len(a.Events)
	for what, c := range map[string]struct {
		why  order.Attention
		says []provider.Snapshot // each is news
	}{
		"reversal": {order.ReversedAfterRefund, []provider.Snapshot{
			reversed(paid, noon.Add(5*time.Hour)), reversed(paid, noon.Add(50*time.Hour))}},
		"balance": {order.BalanceDrift, []provider.Snapshot{balance(paid, 6000), balance(paid, 6500)}},
		"cancellation": {order.BalanceDrift, []provider.Snapshot{
			cancelled(balance(paid, 5000), "c2"), cancelled(balance(paid, 5000), "c3")}},
	} {
		for n, s := range c.says {
			said(t, a, s)
			events++
			shows(t, a, what, c.why, events)
			said(t, a, s)
			shows(t, a, what+" while it is open", c.why, events)
			resolved(t, a)
			events++
			for _, known := range c.says[:n+1] {
				said(t, a, known)
				shows(t, a, what+" that was resolved", "", events)
			}
		}
	}
}

// balance is an answer with another balance.
func balance(s provider.Snapshot, won int64) provider.Snapshot {
	s.Balance = won
	return s
}

// cancelled is an answer with a cancellation of more than what is left.
func cancelled(s provider.Snapshot, tid string) provider.Snapshot {
	s.Cancellations = append(s.Cancellations[:1:1], provider.Cancellation{TID: tid, Amount: 9000})
	return s
}

// TestLostRefund: a cancel under a code of Hub's is lost when neither a refund nor a deposit that was paid back has the code.
func TestLostRefund(t *testing.T) {
	t.Parallel()
	a, told := refundedBook(t)
	a.Deposits = append(a.Deposits, order.Deposit{Return: &order.DepositReturn{Code: "rf_2"}})
	told.Cancellations = append(told.Cancellations, provider.Cancellation{TID: "c2", RefundCode: "rf_2", Amount: 11000},
		provider.Cancellation{TID: "c3", RefundCode: "rf_4", Amount: 9, Returned: true}, provider.Cancellation{TID: "c4", Amount: 9})
	if lost := a.LostRefund(told, "rf_3"); lost != nil {
		t.Errorf("all is known: %+v", *lost)
	}
	told.Cancellations = append(told.Cancellations, provider.Cancellation{TID: "c5", RefundCode: "rf_5", Amount: 7})
	if lost := a.LostRefund(told, "rf_3"); lost == nil || lost.RefundCode != "rf_5" {
		t.Errorf("%+v", lost)
	}
	if lost := a.LostRefund(told, "rf_5"); lost != nil {
		t.Errorf("what is asked for is there: %+v", *lost)
	}
}
