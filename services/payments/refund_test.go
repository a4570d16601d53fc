package payments_test

import (
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/schema"
	"hub.internal/services/payments"
	"hub.internal/services/payments/nicepay"
	"hub.internal/services/payments/order"
	"hub.internal/services/payments/pgsim"
	"hub.internal/services/payments/provider"
)

const (
	create    = "pay.orders.create"
	refund    = "pay.orders.refund"
	cancel    = "pay.orders.cancel"
	pull      = "pay.orders.reconcile"
	redeliver = "pay.notifications.redeliver"
)

// paidIdle is paid without jobs.
func (s *shop) paidIdle() order.View {
	s.t.Helper()
	o := s.order("")
	s.deposit(o.Code, 11000, 1)
	s.drain()
	if o = s.show(o.Code); o.Status != order.Paid {
		s.t.Fatalf("%+v\n%s", o, s.logs)
	}
	return o
}

// TestRefundsAtOnceShareOneBalance: of fifty refunds of 60 % each exactly one is made (SPEC.md 12, row 1).
func TestRefundsAtOnceShareOneBalance(t *testing.T) {
	t.Parallel()
	s, _ := idleShop(t, options{})
	o := s.paidIdle()
	made := 0
	for i, err := range together(50, patiently(func(i int) error {
		_, err := s.call(refund, fmt.Sprint("k-", i), refundOf(o.Code, 6600))
		return err
	})) {
		switch {
		case err == nil:
			made++
		case detail(err) != "REFUND_EXCEEDS_BALANCE":
			t.Errorf("%d: %v", i, err)
		}
	}
	o = s.show(o.Code)
	if truth := s.truth(
		o.Code,
	); made != 1 || truth.Cancelled != 6600 || o.RefundedAmount != 6600 || o.RefundableAmount != 4400 ||
		len(o.Refunds) != 1 {
		t.Errorf("%d made, %d went back, %+v", made, truth.Cancelled, o)
	}
	// The store refuses too, were nobody to lock and to look.
	for _, change := range []string{`pending_refund = 4401`, `refunded_amount = 11001`, `paid_amount = 11001`, `refunded_amount = -1`} {
		if _, err := s.pool.Exec(
			t.Context(),
			`UPDATE payments.orders SET `+change+` WHERE code = $1`,
			o.Code,
		); err == nil ||
			!strings.Contains(err.Error(), "23514") {
			t.Errorf("%s: %v", change, err)
		}
	}
}

// TestRefundsHaveBounds: nothing negative, nothing but whole won, and no more than there is (SPEC.md 12, row 2).
func TestRefundsHaveBounds(t *testing.T) {
	t.Parallel()
	s, _ := idleShop(t, options{})
	o := s.paidIdle()
	for _, amount := range []string{"-1", "0", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "1.5", "1.0", "1e3",
		`"1"`, "100000001", "true", "[]", "null"} {
		s.refused(refund, "", `{"code":"`+o.Code+`","amount":`+amount+`,`+account+`}`, fault.Validation, "")
	}
	s.refused(refund, "", refundOf(o.Code, 11001), fault.Conflict, "REFUND_EXCEEDS_BALANCE")
	s.refused(refund, "", refundOf(o.Code, order.MaxAmount), fault.Conflict, "REFUND_EXCEEDS_BALANCE")
	s.refused(refund, "", `{"code":"`+o.Code+`","amount":1,"expectedRefundable":null,`+account+`}`, fault.Validation, "")
	for _, name := range []string{"amount", "supplyAmount", "vat"} {
		s.refused("pay.orders.create", "", `{"payMethod":"card","`+name+`":null}`, fault.Validation, "")
	}
	s.refused(refund, "", `{"code":"`+o.Code+`","amount":1,"extra":1,`+account+`}`, fault.Validation, "")
	for _, expected := range []int64{10999, 0, -1, math.MaxInt64} {
		s.refused(
			refund,
			"",
			fmt.Sprintf(`{"code":%q,"amount":1,"expectedRefundable":%d,%s}`, o.Code, expected, account),
			fault.Conflict,
			"AMOUNT_MISMATCH",
		)
	}
	if o = s.show(o.Code); o.RefundableAmount != 11000 || len(o.Refunds) != 0 || s.truth(o.Code).Cancelled != 0 {
		t.Errorf("%+v", o)
	}
	if r := s.must(refund, "", `{"code":"`+o.Code+`","expectedRefundable":11000,`+account+`}`); r.Order.Status != order.Refunded {
		t.Errorf("%s", r.Raw)
	}
}

// TestOnlyWhatWasPaidIsRefunded: the limit is what was paid, not what was ordered (SPEC.md 12, row 3).
func TestOnlyWhatWasPaidIsRefunded(t *testing.T) {
	t.Parallel()
	s, clock := idleShop(t, options{})
	o := s.order("")
	s.refused(refund, "", refundOf(o.Code, 1), fault.Conflict, "ORDER_NOT_REFUNDABLE")
	s.deposit(o.Code, 11000, 1)
	s.drain()
	clock.Advance(time.Minute)
	s.do(s.sim.Reverse(o.Code))
	s.drain()
	if o = s.show(o.Code); o.Status != order.AwaitingDeposit || o.PaidAmount != 0 || o.PaidAt != nil {
		t.Fatalf("%+v", o)
	}
	s.refused(refund, "", refundOf(o.Code, 1), fault.Conflict, "ORDER_NOT_REFUNDABLE")
	for _, ended := range []func(code string){func(code string) { s.must(cancel, "", `{"code":"`+code+`"}`) }} {
		o := s.order("")
		ended(o.Code)
		s.refused(refund, "", refundOf(o.Code, 1), fault.Conflict, "ORDER_NOT_REFUNDABLE")
	}
}

// TestRefundIsReservedBeforeTheProviderHears: when the provider sees the call, the reserve is committed (SPEC.md 12, row 4).
func TestRefundIsReservedBeforeTheProviderHears(t *testing.T) {
	t.Parallel()
	var s *shop
	var heard atomic.Int64
	s, _ = idleShop(t, options{onCall: func(c pgsim.Call) {
		if c.On != "cancel" {
			return
		}
		heard.Add(1)
		var pending, reserved int64
		var keys int
		err := s.super.QueryRow(
			t.Context(),
			`SELECT o.pending_refund, r.amount, (SELECT count(*) FROM payments.idempotency_keys WHERE resource = r.code AND state = 'running')
			FROM payments.refunds r JOIN payments.orders o ON o.id = r.order_id WHERE r.code = $1 AND r.status = 'PENDING'`,
			c.Code,
		).Scan(
			&pending,
			&reserved,
			&keys,
		)
		if err != nil || pending != 4000 || reserved != c.Amount || keys != 1 {
			t.Errorf("the provider hears of %s, pending %d of %d, %d keys, %v", c.Code, pending, reserved, keys, err)
		}
		// No transaction of Hub's waits for the provider.
		var open int
		if err := s.super.QueryRow(
			t.Context(),
			`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND usename = 'hub_payments'
			AND state LIKE 'idle in transaction%'`,
		).Scan(
			&open,
		); err != nil ||
			open != 0 {
			t.Errorf("%d transactions are open, %v", open, err)
		}
	}})
	o := s.paidIdle()
	s.must(refund, "k", refundOf(o.Code, 4000))
	if heard.Load() != 1 {
		t.Errorf("heard %d times", heard.Load())
	}
}

// TestRefundThatComesBack: REFUNDED becomes PAID, the balance is there again, the app is told once, and another refund works
// (SPEC.md 12, row 5).
func TestRefundThatComesBack(t *testing.T) {
	t.Parallel()
	for _, part := range []int64{11000, 4000} {
		t.Run(fmt.Sprint(part), func(t *testing.T) {
			t.Parallel()
			s, clock := idleShop(t, options{})
			o := s.paidIdle()
			r := s.must(refund, "k", refundOf(o.Code, part))
			s.drain()
			clock.Advance(24 * time.Hour)
			s.do(s.sim.FailRefundLater(r.Refund.Code))
			s.drain()
			o = s.show(o.Code)
			if o.Status != order.Paid || o.RefundableAmount != 11000 || o.RefundedAmount != 0 || o.ClosedAt != nil || o.Attention != nil ||
				o.Refunds[0].Status != order.RefundFailed || o.Refunds[0].Failure.Code != "RETURNED" {
				t.Fatalf("%+v", o)
			}
			if n := s.told(o.Code, order.NotifyRefundFailed); n != 1 {
				t.Errorf("told %d times", n)
			}
			s.resolve(o.Code)
			again := s.must(refund, "k2", refundOf(o.Code, 11000))
			if again.Order.Status != order.Refunded || s.truth(o.Code).Cancelled != 11000 {
				t.Errorf("%s", again.Raw)
			}
			if replay := s.must(refund, "k", refundOf(o.Code, part)); !replay.Replayed || replay.Raw != r.Raw {
				t.Errorf("the first answer has changed: %s", replay.Raw)
			}
		})
	}
}

// TestRefundsOfAnOrderAreBounded: an order takes 200, after which the answer says so; one that is made at the provider is kept all the
// same, and the order's history has no bodies of its messages (SPEC.md 6.1).
func TestRefundsOfAnOrderAreBounded(t *testing.T) {
	t.Parallel()
	s, _ := idleShop(t, options{})
	o := s.paidIdle()
	_, err := s.super.Exec(t.Context(), `INSERT INTO payments.refunds (code, order_id, amount, status, source, reason, failure, created_at,
		settled_at) SELECT 'rf_' || n, id, 1, 'FAILED', 'api', 'x', '{"code":"1","message":"no"}', created_at, created_at
		FROM payments.orders, generate_series(1, 199) AS n WHERE code = $1`, o.Code)
	s.do(err)
	last := s.must(refund, "k-200", refundOf(o.Code, 1000))
	s.refused(refund, "k-201", refundOf(o.Code, 1000), fault.Conflict, "TOO_MANY_REFUNDS")
	if again := s.must(refund, "k-200", refundOf(o.Code, 1000)); !again.Replayed || again.Raw != last.Raw {
		t.Errorf("the last is answered otherwise: %s", again.Raw)
	}
	s.do(s.sim.ConsoleCancel(o.Code, 10000))
	s.drain()
	if got := s.show(o.Code); got.Status != order.Refunded || len(got.Refunds) != 201 {
		t.Errorf("%s with %d refunds", got.Status, len(got.Refunds))
	}
	h, err := s.store.History(t.Context(), o.Code)
	s.do(err)
	for _, n := range h.Notifications {
		if n.Body != nil || n.Type == "" || n.URL != s.app.url || n.State == "" {
			t.Errorf("%+v", n)
		}
	}
}

// TestAResolvedCaseIsTheSameEachNight: what an operator has resolved is not opened again by a sweep that finds the same, and the app is
// told once; another deposit opens a case of its own.
func TestAResolvedCaseIsTheSameEachNight(t *testing.T) {
	t.Parallel()
	s, clock := idleShop(t, options{})
	o := s.paidIdle()
	s.must(refund, "k", refundOf(o.Code, 4000))
	clock.Advance(10 * time.Minute)
	s.do(s.sim.Reverse(o.Code))
	s.drain()
	change := func(do func(*order.Aggregate) error) {
		t.Helper()
		_, err := s.store.Change(t.Context(), o.Code, payments.Actor{Name: "operator:ada", Now: clock.Now()}, do, nil)
		s.do(err)
	}
	change(func(a *order.Aggregate) error { return a.ResolveAttention("claimed from the payer") })
	for night := range 3 {
		clock.Advance(21 * time.Hour)
		s.do(s.service.Sweep(t.Context()))
		if got := s.show(o.Code); got.Attention != nil || s.told(o.Code, order.NotifyAttention) != 1 {
			t.Errorf("night %d: told %d times, %+v", night, s.told(o.Code, order.NotifyAttention), got)
		}
	}
	s.deposit(o.Code, 11000, 1)
	s.drain()
	if got := s.show(o.Code); got.Attention == nil || *got.Attention != order.DuplicateDeposit {
		t.Fatalf("%+v", got)
	}
	change(func(a *order.Aggregate) error { return a.RecordManualReturn(a.Deposits[1].ID, "by hand") })
	if got := s.show(o.Code); got.Attention != nil {
		t.Errorf("%+v", got)
	}
}

// TestDepositIsReversed: with nothing refunded the account waits again, or is past due; after a refund an operator looks
// (SPEC.md 12, row 16).
func TestDepositIsReversed(t *testing.T) {
	t.Parallel()
	s, clock := idleShop(t, options{})
	plain, late, refunded := s.paidIdle(), s.paidIdle(), s.paidIdle()
	s.must(refund, "k", refundOf(refunded.Code, 4000))
	clock.Advance(10 * time.Minute)
	for _, code := range []string{plain.Code, refunded.Code} {
		s.do(s.sim.Reverse(code))
		s.drain()
		s.resolve(code)
	}
	if o := s.show(plain.Code); o.Status != order.AwaitingDeposit || o.PaidAmount != 0 || s.told(o.Code, order.NotifyReversed) != 1 {
		t.Errorf("%+v", o)
	}
	o := s.show(refunded.Code)
	if o.Status != order.Paid || o.Attention == nil || *o.Attention != order.ReversedAfterRefund ||
		s.told(o.Code, order.NotifyAttention) != 1 {
		t.Errorf("%+v", o)
	}
	clock.Advance(200 * time.Hour)
	s.do(s.sim.Reverse(late.Code))
	s.drain()
	if o := s.show(late.Code); o.Status != order.Expired || o.PaidAmount != 0 {
		t.Errorf("%+v", o)
	}
	s.do(s.service.Sweep(t.Context()))
	if again := s.show(refunded.Code); again.Version != o.Version {
		t.Errorf("%+v", again)
	}
	// It waits again: another deposit pays it, and that one counts alone.
	o = s.paidIdle()
	clock.Advance(time.Minute)
	s.do(s.sim.Reverse(o.Code))
	s.drain()
	clock.Advance(time.Minute)
	s.deposit(o.Code, 11000, 2)
	s.drain()
	if o = s.show(
		o.Code,
	); o.Status != order.Paid || s.rows(`SELECT count(*) FROM payments.deposits d JOIN payments.orders o ON o.id = d.order_id
		WHERE o.code = $1 AND d.state = 'APPLIED'`, o.Code) != 1 ||
		s.told(o.Code, order.NotifyPaid) != 2 {
		t.Errorf("%+v", o)
	}
}

// TestUnknownOutcomesAreFoundOut: whatever becomes of the answer of an issue or a refund, it is made once (SPEC.md 12,
// row 22; SPEC.md 11, row 7).
func TestUnknownOutcomesAreFoundOut(t *testing.T) {
	t.Parallel()
	s, clock := idleShop(t, options{})
	for _, kind := range []string{pgsim.TimeoutBefore, pgsim.TimeoutAfter, pgsim.ServerError, pgsim.Garbage, pgsim.WrongOrder,
		pgsim.Duplicate} {
		s.arm(kind, "issue", 1)
		o := s.order("issue " + kind)
		if kind != pgsim.Duplicate && (o.Status != order.Ready || o.VirtualAccount != nil) {
			t.Fatalf("%s: %+v", kind, o)
		}
		if o.Status == order.Ready && kind != pgsim.TimeoutAfter && kind != pgsim.Garbage && kind != pgsim.WrongOrder {
			if _, known := s.sim.Payment(o.Code); known {
				t.Errorf("%s: the provider has heard of it", kind)
			}
		}
		clock.Advance(3 * time.Minute)
		s.resolve(o.Code)
		if o = s.show(o.Code); o.Status != order.AwaitingDeposit || len(s.truth(o.Code).Payments) != 1 {
			t.Fatalf("%s: %+v", kind, o)
		}
		s.deposit(o.Code, 11000, 1)
		s.drain()
		s.arm(kind, "cancel", 1)
		r := s.must(refund, "refund "+kind, refundOf(o.Code, 4000))
		if kind != pgsim.Duplicate &&
			(r.Refund.Status != order.RefundPending || r.Order.RefundableAmount != 7000 || r.Order.PendingRefundAmount != 4000) {
			t.Fatalf("%s: %s", kind, r.Raw)
		}
		clock.Advance(3 * time.Minute)
		s.resolve(o.Code)
		s.resolve(o.Code)
		o = s.show(o.Code)
		truth := s.truth(o.Code)
		if o.RefundedAmount != 4000 || o.PendingRefundAmount != 0 || truth.Cancelled != 4000 || len(truth.Cancels) != 1 ||
			o.Attention != nil {
			t.Fatalf("%s: %+v of %+v", kind, o, truth)
		}
		if replay := s.must(refund, "refund "+kind, refundOf(o.Code, 4000)); replay.Raw != r.Raw || !replay.Replayed {
			t.Errorf("%s: the answer has changed: %s", kind, replay.Raw)
		}
	}
}

// TestProviderRefuses: a definite refusal ends the order or frees the reserve, and the key is free for another try (SPEC.md 6.1;
// SPEC.md 12, row 26).
func TestProviderRefuses(t *testing.T) {
	t.Parallel()
	s, _ := idleShop(t, options{})
	s.arm(pgsim.Decline, "issue", 1)
	input := `{"amount":11000,"payMethod":"vbank","payment_notify_url":"` + s.app.url + `"}`
	s.refused(create, "k", input, fault.Conflict, "PROVIDER_DECLINED")
	first := s.must(create, "k", input)
	if first.Replayed || first.Order.Status != order.AwaitingDeposit {
		t.Errorf("%s", first.Raw)
	}
	if again := s.must(create, "k", input); !again.Replayed || again.Raw != first.Raw {
		t.Errorf("%s", again.Raw)
	}
	if failed := s.rows(
		`SELECT count(*) FROM payments.orders WHERE status = 'FAILED' AND failure IS NOT NULL AND closed_at IS NOT NULL`,
	); failed != 1 {
		t.Errorf("%d failed", failed)
	}
	o := s.paidIdle()
	for _, code := range []string{"2016", "2026"} { // the second one says that less is left there
		s.do(s.sim.Arm(pgsim.Fault{Kind: pgsim.Decline, On: "cancel", Code: code}))
		s.refused(refund, "r", refundOf(o.Code, 11000), fault.Conflict, "PROVIDER_DECLINED")
		if o = s.show(o.Code); o.RefundableAmount != 11000 || (o.Attention != nil) != (code == "2026") {
			t.Errorf("%s: %+v", code, o)
		}
	}
	if r := s.must(refund, "r", refundOf(o.Code, 11000)); r.Order.Status != order.Refunded || r.Replayed {
		t.Errorf("%s", r.Raw)
	}
	if n := s.told(o.Code, order.NotifyRefundFailed); n != 2 {
		t.Errorf("told %d times", n)
	}
}

// TestConsoleRefund: what the provider has paid back of itself is a refund, too (SPEC.md 4.4).
func TestConsoleRefund(t *testing.T) {
	t.Parallel()
	s, _ := idleShop(t, options{})
	o := s.paidIdle()
	s.do(s.sim.ConsoleCancel(o.Code, 1000))
	s.do(s.sim.ConsoleCancel(o.Code, 1000))
	s.drain()
	s.drain()
	s.refused(refund, "", refundOf(o.Code, 9001), fault.Conflict, "REFUND_EXCEEDS_BALANCE")
	if o = s.show(
		o.Code,
	); o.RefundedAmount != 2000 || len(o.Refunds) != 2 || o.Refunds[0].Source != order.SourceProvider ||
		o.Attention != nil {
		t.Errorf("%+v", o)
	}
	s.do(s.sim.ConsoleCancel(o.Code, 0))
	s.drain()
	if o = s.show(
		o.Code,
	); o.Status != order.Refunded || s.told(o.Code, order.NotifyRefunded) != 1 ||
		s.told(o.Code, order.NotifyRefundSucceeded) != 2 {
		t.Errorf("%+v", o)
	}
}

// TestRefundMeetsConsoleRefund: the provider says that less is left than Hub thinks; nothing is paid back twice.
func TestRefundMeetsConsoleRefund(t *testing.T) {
	t.Parallel()
	s, clock := idleShop(t, options{})
	o := s.paidIdle()
	s.arm(pgsim.Drop, "webhook", 1)
	s.do(s.sim.ConsoleCancel(o.Code, 8000))
	if _, err := s.call(refund, "k", refundOf(o.Code, 5000)); detail(err) != "PROVIDER_DECLINED" {
		t.Errorf("%v", err)
	}
	clock.Advance(21 * time.Hour)
	s.do(s.service.Sweep(t.Context()))
	o = s.show(o.Code)
	if truth := s.truth(o.Code); truth.Cancelled != 8000 || o.RefundedAmount != 8000 || o.PendingRefundAmount != 0 || o.Attention == nil {
		t.Errorf("%+v of %+v", o, truth)
	}
	if r := s.must(refund, "k", refundOf(o.Code, 3000)); r.Order.Status != order.Refunded {
		t.Errorf("%s", r.Raw)
	}
}

// TestARestoreRefundsNothingTwice: the provider has made a refund after the backup that the store is of, so that neither its key nor its
// row is known. The call is not made again, whether the provider's webhook was looked into or not; one more is made for who says what is
// left.
func TestARestoreRefundsNothingTwice(t *testing.T) {
	t.Parallel()
	for _, told := range []bool{false, true} {
		for _, amount := range []int64{5000, 11000} {
			t.Run(fmt.Sprint(amount, " told ", told), func(t *testing.T) {
				t.Parallel()
				s, _ := idleShop(t, options{})
				o := s.paidIdle()
				if !told {
					s.arm(pgsim.Drop, "webhook", 1)
				}
				s.refundLost(o.Code, amount)
				s.drain()
				first, then := "REFUND_NOT_KNOWN", "REFUND_NOT_KNOWN"
				if amount == o.PaidAmount { // nothing is left of it as soon as Hub knows
					then = "ORDER_NOT_REFUNDABLE"
				}
				if told {
					first = then
				}
				s.refused(refund, "k", refundOf(o.Code, amount), fault.Conflict, first)
				s.refused(refund, "k", refundOf(o.Code, amount), fault.Conflict, then)
				stated := func(left int64) string {
					return fmt.Sprintf(`{"code":%q,"amount":5000,"expectedRefundable":%d,%s}`, o.Code, left, account)
				}
				after, truth := s.show(o.Code), s.truth(o.Code)
				if truth.Cancelled != amount || after.RefundedAmount != amount || after.PendingRefundAmount != 0 || after.Attention != nil {
					t.Fatalf("%+v of %+v", after, truth)
				}
				if amount < o.PaidAmount {
					s.refused(refund, "k", stated(11000), fault.Conflict, "AMOUNT_MISMATCH")
					if s.must(refund, "k", stated(6000)); s.truth(o.Code).Cancelled != 10000 {
						t.Errorf("one more: %+v", s.truth(o.Code))
					}
				}
			})
		}
	}
}

// refundLost is a refund of Hub's that the store has lost: the provider alone has it.
func (s *shop) refundLost(code string, amount int64) {
	s.t.Helper()
	a, err := s.store.Order(s.t.Context(), code)
	s.do(err)
	adapter, err := nicepay.New(nicepay.Config{BaseURL: s.wire, Now: time.Now, Timeout: 5 * time.Second})
	s.do(err)
	defer adapter.Close()
	_, err = adapter.Cancel(s.t.Context(), cred, provider.CancelRequest{Ref: provider.PaymentRef{TID: a.Order.TID, Code: code,
		CreatedAt: a.Order.CreatedAt}, RefundCode: "rf_01JZ0000000000000000000000", Reason: "too late", Amount: &amount,
		Account: &provider.RefundAccount{BankCode: "004", AccountNumber: "1", Holder: "Kim"}})
	s.do(err)
}

// TestCancelOrder: what waits is given up; what was paid meanwhile is paid; what has ended stays (SPEC.md 4.4).
func TestCancelOrder(t *testing.T) {
	t.Parallel()
	s, clock := idleShop(t, options{})
	o := s.order("")
	code := `{"code":"` + o.Code + `"}`
	a := s.must(cancel, "k", code)
	if a.Order.Status != order.Canceled || s.truth(o.Code).Status != "cancelled" {
		t.Errorf("%s", a.Raw)
	}
	if again := s.must(cancel, "k", code); !again.Replayed || again.Raw != a.Raw {
		t.Errorf("%s", again.Raw)
	}
	s.refused(cancel, "", code, fault.Conflict, "ORDER_NOT_CANCELABLE")

	o = s.order("")
	s.arm(pgsim.Drop, "webhook", 1)
	s.deposit(o.Code, 11000, 1) // nobody has told
	s.refused(cancel, "k2", `{"code":"`+o.Code+`"}`, fault.Conflict, "ORDER_NOT_CANCELABLE")
	if o = s.show(o.Code); o.Status != order.Paid || s.truth(o.Code).Cancelled != 0 {
		t.Errorf("%+v", o)
	}

	o = s.order("")
	s.arm(pgsim.TimeoutBefore, "cancel", 1)
	if _, err := s.call(cancel, "k3", `{"code":"`+o.Code+`"}`); !fault.Is(err, fault.DB) {
		t.Errorf("%v", err)
	}
	if a := s.must(cancel, "k3", `{"code":"`+o.Code+`"}`); a.Order.Status != order.Canceled || a.Replayed {
		t.Errorf("%s", a.Raw)
	}
	o = s.order("")
	s.arm(pgsim.TimeoutAfter, "cancel", 1)
	if _, err := s.call(cancel, "k4", `{"code":"`+o.Code+`"}`); !fault.Is(err, fault.DB) {
		t.Errorf("%v", err)
	}
	s.resolve(o.Code)
	if o = s.show(o.Code); o.Status != order.Canceled {
		t.Errorf("%+v", o)
	}

	o = s.order("") // past its end, but not given up by itself yet
	clock.Advance(168*time.Hour + time.Minute)
	if a, err := s.call(cancel, "k5", `{"code":"`+o.Code+`"}`); err != nil || a.Order.Status != order.Canceled {
		t.Errorf("%s, %v", a.Raw, err)
	}
}

// TestCancelOrderWithAnotherDeposit: one that has taken another amount is not given up while that money is nobody's, says why, and is given
// up once the money is back, whoever has paid it back (SPEC.md 6.2).
func TestCancelOrderWithAnotherDeposit(t *testing.T) {
	t.Parallel()
	t.Run("that the bank has taken back", func(t *testing.T) {
		t.Parallel()
		s, _ := idleShop(t, options{})
		o := s.order("")
		s.deposit(o.Code, 10999, 1)
		s.drain()
		s.do(s.sim.Reverse(o.Code))
		s.drain()
		if _, err := s.call(cancel, "k", `{"code":"`+o.Code+`"}`); detail(err) != "ORDER_NOT_CANCELABLE" {
			t.Errorf("%v", err)
		}
	})
	for name, manual := range map[string]bool{"with its account": false, "on the provider's page": true} {
		for how, back := range map[string]func(s *shop, seen payments.OrderVersion, id schema.ID) error{
			"by the provider": func(s *shop, seen payments.OrderVersion, id schema.ID) error {
				to := &provider.RefundAccount{BankCode: "004", AccountNumber: accountNumber, Holder: "Kim"}
				_, err := s.service.ReturnDeposit(s.t.Context(), seen, id, to, "")
				return err
			},
			"by hand": func(s *shop, seen payments.OrderVersion, id schema.ID) error {
				return s.service.RecordManualReturn(s.t.Context(), seen, id, "10999", "by hand")
			},
		} {
			t.Run(name+", "+how, func(t *testing.T) {
				t.Parallel()
				s, clock := idleShop(t, options{manual: manual})
				o, late := s.order(""), s.order("")
				for _, code := range []string{o.Code, late.Code} {
					s.deposit(code, 10999, 1)
				}
				s.drain()
				input := `{"code":"` + o.Code + `"}`
				if _, err := s.call(cancel, "k", input); detail(err) != "ORDER_NOT_CANCELABLE" ||
					!strings.Contains(fmt.Sprint(err), "deposit") {
					t.Errorf("%v", err)
				}
				for _, code := range []string{o.Code, late.Code} {
					a, err := s.store.Order(t.Context(), code)
					s.do(err)
					s.do(back(s, payments.OrderVersion{Code: code, Version: a.Order.Version}, a.Deposits[0].ID))
				}
				a := s.must(cancel, "k", input) // the refusal has left the key free
				if a.Order.Status != order.Canceled || a.Order.Attention != nil {
					t.Errorf("%s", a.Raw)
				}
				clock.Advance(168*time.Hour + 11*time.Minute)
				s.resolve(late.Code)
				if late = s.show(late.Code); late.Status != order.Expired {
					t.Errorf("one whose time is over is %s", late.Status)
				}
			})
		}
	}
}
