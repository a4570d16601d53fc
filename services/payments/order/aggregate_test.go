package order_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/schema"
	"hub.internal/services/payments/order"
	"hub.internal/services/payments/provider"
)

var noon = time.Date(2026, 1, 1, 3, 0, 0, 0, time.UTC)

func open(t testing.TB, method provider.PayMethod) *order.Aggregate {
	t.Helper()
	a, err := order.New(
		order.Order{Code: "po_1", Amounts: order.Amounts{Amount: 11000, Supply: 10000, VAT: 1000}, PayMethod: method, CreatedAt: noon},
	)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// sound holds a book to what is true of every order (SPEC.md 11, rows 1, 2, 4, 5, 6, 13 and 15).
func sound(a *order.Aggregate, deposited map[string]int64) error {
	o := a.Order
	var succeeded, pending, applied, received int64
	var open bool
	for _, r := range a.Refunds {
		switch r.Status {
		case order.RefundSucceeded:
			succeeded += r.Amount
		case order.RefundPending:
			pending += r.Amount
		}
	}
	for _, d := range a.Deposits {
		if d.State == order.DepositStateApplied {
			applied++
			if d.Amount != o.Amounts.Amount {
				return fmt.Errorf("a deposit of %d is applied to an order of %d", d.Amount, o.Amounts.Amount)
			}
		}
		received += d.Amount
		open = open || d.NeedsDecision() || d.State == order.DepositStateReturning
		if d.State == order.DepositStateReturning && d.Return == nil {
			return fmt.Errorf("a deposit is returning, and nobody has asked for it")
		}
	}
	var told int64
	for _, amount := range deposited {
		told += amount
	}
	paid := o.Status == order.Paid || o.Status == order.Refunded
	switch {
	case o.Amounts.Amount != o.Supply+o.VAT:
		return fmt.Errorf("the amounts do not add up: %+v", o.Amounts)
	case o.RefundedAmount != succeeded || o.PendingRefund != pending:
		return fmt.Errorf("refunded %d of %d, pending %d of %d", o.RefundedAmount, succeeded, o.PendingRefund, pending)
	case o.Refundable() < 0 || o.RefundedAmount+o.PendingRefund > o.PaidAmount || o.PaidAmount > o.Amounts.Amount:
		return fmt.Errorf("balance: %+v", o)
	case paid != (applied == 1) || applied > 1 || paid != (o.PaidAmount > 0):
		return fmt.Errorf("%s with %d applied deposits and %d paid", o.Status, applied, o.PaidAmount)
	case o.Status == order.Refunded && o.Refundable() != 0:
		return fmt.Errorf("refunded, but %d are left", o.Refundable())
	case open && o.Attention == "":
		return fmt.Errorf("there is money that belongs to nobody, and no case")
	case received != told:
		return fmt.Errorf("%d received, %d kept", told, received)
	case o.Version != int64(len(a.Events)):
		return fmt.Errorf("version %d after %d steps", o.Version, len(a.Events))
	}
	for i, s := range a.Events {
		if s.Seq != int64(i+1) || (s.Notification != "") != (len(s.Payload) > 0) {
			return fmt.Errorf("step %d: %+v", i, s)
		}
	}
	return nil
}

// TestAggregateStaysSound: whatever a provider says, in whatever order and however often, what is kept holds together.
func TestAggregateStaysSound(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		method := rapid.SampledFrom([]provider.PayMethod{provider.Card, provider.VBank}).Draw(t, "method")
		a, err := order.New(
			order.Order{Code: "po_1", Amounts: order.Amounts{Amount: 11000, Supply: 10000, VAT: 1000}, PayMethod: method, CreatedAt: noon},
		)
		if err != nil {
			t.Fatal(err)
		}
		deposited := map[string]int64{}
		for i := range rapid.IntRange(1, 30).Draw(t, "n") {
			a.Now = a.Now.Add(time.Duration(rapid.SampledFrom([]int{0, 1, 60, 3600, 100000}).Draw(t, "wait")) * time.Second)
			for n := range a.Deposits { // as the store does
				a.Deposits[n].ID = schema.ID(n + 1)
			}
			switch rapid.IntRange(0, 7).Draw(t, "do") {
			case 0:
				amount := rapid.Int64Range(1, 12000).Draw(t, "refund")
				_, _ = a.RequestRefund(order.RefundRequest{Code: fmt.Sprint("rf_", i), Amount: &amount, Reason: "x"})
			case 1:
				if p := a.PendingRefunds(); len(p) > 0 {
					err = a.DeclineRefund(p[0].Code, order.Failure{Code: "2016", Message: "no"}, false)
				}
			case 2:
				_, err = a.Expire()
			case 3:
				err = operate(t, a, i)
			default:
				err = a.Apply(optional(t, a, deposited))
			}
			if err == nil {
				err = sound(a, deposited)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	})
}

// operate is what an operator may do, with sense or without: a refusal leaves the book as it is.
func operate(t *rapid.T, a *order.Aggregate, i int) error {
	before := a.Clone()
	id := schema.ID(rapid.IntRange(0, len(a.Deposits)+1).Draw(t, "deposit"))
	var err error
	switch rapid.IntRange(0, 4).Draw(t, "operator") {
	case 0:
		err = a.ApplyDeposit(id, "n")
	case 1:
		err = a.RequestDepositReturn(id, order.DepositReturn{Code: fmt.Sprint("rf_back", i)}, "n")
	case 2:
		err = a.RecordManualReturn(id, "n")
	case 3:
		err = a.ResolveAttention("n")
	case 4:
		for _, d := range a.Deposits {
			if d.State == order.DepositStateReturning {
				return a.DeclineDepositReturn(d.Return.Code, order.Failure{Code: "2016", Message: "no"})
			}
		}
		return nil
	}
	if err == nil {
		if a.Order.Version != before.Order.Version+1 || a.Events[len(a.Events)-1].Note != "n" {
			return fmt.Errorf("one act is one step with its note: %+v", a.Events)
		}
		return nil
	}
	if !fault.Is(err, fault.Conflict) && !fault.Is(err, fault.NotFound) {
		return err
	}
	if !reflect.DeepEqual(before, a) {
		return fmt.Errorf("refused (%w), and yet %+v became %+v", err, before, a)
	}
	return nil
}

// optional is what a provider may say: sense or nonsense, but about this order.
func optional(t *rapid.T, a *order.Aggregate, deposited map[string]int64) provider.Snapshot {
	s := provider.Snapshot{Code: "po_1", TID: rapid.SampledFrom([]string{"t1", "t1", "t1", "t2"}).Draw(t, "tid"), Amount: 11000,
		Status: rapid.SampledFrom([]provider.PaymentStatus{provider.PaymentIssued, provider.PaymentPaid, provider.PaymentPaid,
			provider.PaymentCanceled, provider.PaymentFailed, provider.PaymentExpired}).Draw(t, "status")}
	if rapid.IntRange(0, 4).Draw(t, "other") == 0 {
		s.Amount = rapid.Int64Range(1, 20000).Draw(t, "amount")
	}
	if rapid.Bool().Draw(t, "account") {
		s.Account = &provider.VirtualAccount{BankCode: "004", Number: "123", ExpiresAt: noon.Add(168 * time.Hour)}
	}
	if s.Status == provider.PaymentPaid || s.Status == provider.PaymentCanceled && rapid.Bool().Draw(t, "was paid") {
		s.PaidAt = noon.Add(time.Duration(rapid.IntRange(1, 2).Draw(t, "paid at")) * time.Hour)
		ends := a.Order.Status == order.Ready || a.Order.Status == order.AwaitingDeposit
		if s.Status == provider.PaymentPaid || ends {
			deposited[fmt.Sprint(s.TID, s.Amount, s.PaidAt)] = s.Amount
		}
	}
	if rapid.IntRange(0, 5).Draw(t, "reversed") == 0 {
		s.ReversedAt = noon.Add(3 * time.Hour)
	}
	for range rapid.IntRange(0, 2).Draw(t, "cancels") {
		c := provider.Cancellation{
			TID:      rapid.SampledFrom([]string{"c1", "c2", "c3"}).Draw(t, "cancel"),
			Amount:   rapid.Int64Range(0, 12000).Draw(t, "cancelled"),
			Returned: rapid.IntRange(0, 4).Draw(t, "returned") == 0,
		}
		if p := a.PendingRefunds(); len(p) > 0 && rapid.Bool().Draw(t, "ours") {
			c.RefundCode, c.Amount = p[0].Code, p[0].Amount
		}
		for _, d := range a.Deposits {
			if d.Return != nil && d.TID == s.TID && rapid.Bool().Draw(t, "return of a deposit") {
				c.RefundCode = d.Return.Code
				if rapid.IntRange(0, 4).Draw(t, "its amount") > 0 {
					c.Amount = d.Amount
				}
				break
			}
		}
		s.Cancellations = append(s.Cancellations, c)
	}
	return s
}

// TestWhatIsRepeated: the same answer again changes nothing.
func TestWhatIsRepeated(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, _ := order.New(
			order.Order{
				Code:      "po_1",
				Amounts:   order.Amounts{Amount: 11000, Supply: 10000, VAT: 1000},
				PayMethod: provider.VBank,
				CreatedAt: noon,
			},
		)
		for range rapid.IntRange(1, 10).Draw(t, "n") {
			s := optional(t, a, map[string]int64{})
			if err := a.Apply(s); err != nil {
				t.Fatal(err)
			}
			if err := a.Apply(s); err != nil { // a deposit and its cancels may take a second look
				t.Fatal(err)
			}
			before := a.Order.Version
			if err := a.Apply(s); err != nil {
				t.Fatal(err)
			}
			if a.Order.Version != before {
				t.Fatalf("%+v moved the order at the third time, by %s", s, a.Events[before].Trigger)
			}
		}
	})
}

// TestDepositGoesBack: a deposit that goes back is asked for once, is settled by what the provider tells, opens again when its
// payout comes back, and never counts as a refund of the order.
func TestDepositGoesBack(t *testing.T) {
	t.Parallel()
	a, err := order.New(
		order.Order{
			Code:      "po_1",
			Amounts:   order.Amounts{Amount: 11000, Supply: 10000, VAT: 1000},
			PayMethod: provider.VBank,
			CreatedAt: noon,
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	paid := provider.Snapshot{Code: "po_1", TID: "t1", Status: provider.PaymentPaid, Amount: 11000, Balance: 11000, PaidAt: noon}
	second := paid
	second.TID, second.PaidAt = "t2", noon.Add(time.Hour)
	for _, s := range []provider.Snapshot{paid, second} {
		if err := a.Apply(s); err != nil {
			t.Fatal(err)
		}
	}
	for n := range a.Deposits {
		a.Deposits[n].ID = schema.ID(n + 1)
	}
	if err := a.RequestDepositReturn(1, order.DepositReturn{Code: "rf_1"}, ""); !fault.Is(err, fault.Conflict) {
		t.Errorf("what the order is paid with goes back: %v", err)
	}
	if err := a.RequestDepositReturn(2, order.DepositReturn{Code: "rf_1"}, ""); err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{"asked twice": a.RequestDepositReturn(2, order.DepositReturn{Code: "rf_2"}, ""),
		"by hand too": a.RecordManualReturn(2, ""),
		"applied too": a.ApplyDeposit(2, ""), "resolved": a.ResolveAttention("")} {
		if !fault.Is(err, fault.Conflict) {
			t.Errorf("%s: %v", what, err)
		}
	}
	back := second
	back.Status, back.Balance, back.Cancellations = provider.PaymentCanceled, 0, []provider.Cancellation{
		{TID: "c1", RefundCode: "rf_1", Amount: 11000},
	}
	for range 2 {
		if err := a.ApplyFresh(back); err != nil {
			t.Fatal(err)
		}
	}
	if d := a.Deposits[1]; d.State != order.DepositStateReturned || a.Order.Attention != "" || len(a.Refunds) != 0 ||
		a.Order.Refundable() != 11000 {
		t.Errorf("%+v %+v %+v", d, a.Order, a.Refunds)
	}
	a.Now = noon.Add(24 * time.Hour)
	for range 2 {
		if err := a.ApplyFresh(second); err != nil { // which no longer tells of the cancel
			t.Fatal(err)
		}
	}
	if d := a.Deposits[1]; !d.NeedsDecision() || a.Order.Attention != order.DuplicateDeposit || d.Return.Failure == nil {
		t.Errorf("%+v %+v", d, a.Order)
	}
	if err := a.RecordManualReturn(2, "by hand"); err != nil || a.Order.Attention != "" {
		t.Errorf("%v %+v", err, a.Order)
	}
	if err := sound(a, map[string]int64{"1": 11000, "2": 11000}); err != nil {
		t.Error(err)
	}
}
