package payments_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"hub.internal/pkg/fault"
	"hub.internal/services/payments/credentials"
	"hub.internal/services/payments/order"
	"hub.internal/services/payments/pgsim"
)

// TestOneWebhookManyTimesAtOnce: a hundred copies make one transition and one message, and each is acknowledged (SPEC.md 12, row 6).
func TestOneWebhookManyTimesAtOnce(t *testing.T) {
	t.Parallel()
	s := newShop(t, options{})
	o := s.order("")
	s.arm(pgsim.Drop, "webhook", 1)
	s.deposit(o.Code, 11000, 1)
	body := s.hook(s.truth(o.Code).Payments[0], o.Code, "paid")
	for i, err := range together(100, func(int) error {
		if !s.acked(body) {
			return http.ErrAbortHandler
		}
		return nil
	}) {
		if err != nil {
			t.Errorf("copy %d is not acknowledged", i)
		}
	}
	s.becomes(o.Code, order.Paid)
	s.settled()
	if n := s.happened(o.Code, order.Pay); n != 1 || s.told(o.Code, order.NotifyPaid) != 1 {
		t.Errorf("%d transitions, %d messages", n, s.told(o.Code, order.NotifyPaid))
	}
	if n := s.rows(`SELECT count(*) FROM payments.webhooks WHERE claims = 'paid'`); n != 1 {
		t.Errorf("%d in the inbox", n)
	}
	s.verified()
}

// TestWebhookWithinTheCall: what the provider tells while it is asked, or before its answer is stored, is not lost, and not
// overwritten by what was read before (SPEC.md 12, rows 7 and 8).
func TestWebhookWithinTheCall(t *testing.T) {
	t.Parallel()
	var during atomic.Pointer[func(pgsim.Call)]
	s, _ := idleShop(t, options{onCall: func(c pgsim.Call) {
		if do := during.Load(); do != nil {
			(*do)(c)
		}
	}})
	s.arm(pgsim.WebhookFirst, "issue", 1)
	o := s.order("")
	s.drain()
	if o = s.show(o.Code); o.Status != order.AwaitingDeposit || s.happened(o.Code, order.Issue) != 1 {
		t.Errorf("%+v", o)
	}
	// The deposit comes, and is applied, between the provider's answer and the moment at which it is stored.
	var code atomic.Value
	paid := func(c pgsim.Call) {
		if c.On != "get" || !code.CompareAndSwap(nil, c.OrderID) {
			return
		}
		s.deposit(c.OrderID, 11000, 1)
		s.drain()
	}
	during.Store(&paid)
	o = s.order("")
	during.Store(nil)
	s.drain()
	if shown := s.show(o.Code); shown.Status != order.Paid || s.happened(o.Code, order.Pay) != 1 || s.told(o.Code, order.NotifyPaid) != 1 {
		t.Errorf("answered %s, is %+v", o.Status, shown)
	}
	// A reversal comes while the provider is asked for a refund.
	o = s.paidIdle()
	fired := false
	refunded := func(c pgsim.Call) {
		if c.On == "cancel" && !fired {
			fired = true
			s.do(s.sim.ConsoleCancel(o.Code, 3000))
			s.drain()
		}
	}
	during.Store(&refunded)
	r := s.must(refund, "", refundOf(o.Code, 4000))
	during.Store(nil)
	s.drain()
	if got := s.show(o.Code); got.RefundedAmount != 7000 || got.RefundableAmount != 4000 || s.truth(o.Code).Cancelled != 7000 {
		t.Errorf("%s, then %+v", r.Raw, got)
	}
}

// TestNewsInAnyOrder: all permutations of what the provider tells end in what it holds (SPEC.md 12, row 9; SPEC.md 11, rows 9 and 11).
func TestNewsInAnyOrder(t *testing.T) {
	t.Parallel()
	s, _ := idleShop(t, options{})
	for _, news := range [][]string{{"ready", "paid", "cancelled"}, {"ready", "cancelled", "paid"}, {"paid", "ready", "cancelled"},
		{"paid", "cancelled", "ready"}, {"cancelled", "ready", "paid"}, {"cancelled", "paid", "ready"}} {
		for _, truth := range []order.Status{order.AwaitingDeposit, order.Paid, order.Refunded, order.Canceled} {
			s.arm(pgsim.Drop, "webhook", 3)
			o := s.order("")
			switch truth {
			case order.Paid:
				s.deposit(o.Code, 11000, 1)
			case order.Refunded:
				s.deposit(o.Code, 11000, 1)
				s.do(s.sim.ConsoleCancel(o.Code, 0))
			case order.Canceled:
				s.do(s.sim.ConsoleCancel(o.Code, 0))
			}
			s.sim.Heal()
			for _, status := range news {
				if !s.acked(s.hook(s.truth(o.Code).Payments[0], o.Code, status)) {
					t.Errorf("%s is not acknowledged", status)
				}
				s.round()
			}
			if got := s.show(o.Code); got.Status != truth {
				t.Errorf("%v ends in %s, not %s", news, got.Status, truth)
			}
		}
	}
}

// TestMessagesSayWhatWas: the body is of the step that it is about, however late it goes out (SPEC.md 12, row 10).
func TestMessagesSayWhatWas(t *testing.T) {
	t.Parallel()
	s, clock := idleShop(t, options{})
	s.app.answer(http.StatusServiceUnavailable)
	o := s.paidIdle()
	s.must(refund, "", refundOf(o.Code, 4000))
	s.must(refund, "", refundOf(o.Code, 7000))
	clock.Advance(time.Hour)
	s.drain()
	s.app.answer(http.StatusOK)
	clock.Advance(24 * time.Hour)
	s.drain()
	s.verified()
	if n := s.rows(`SELECT count(*) FROM payments.notices n JOIN payments.order_events e ON e.order_id = n.order_id AND e.seq = n.seq
		JOIN payments.orders o ON o.id = n.order_id WHERE o.code = $1 AND n.state = 'DELIVERED'
		AND convert_from(n.body, 'UTF8')::jsonb #>> '{data,order,status}' = e.to_status AND (convert_from(n.body,
			'UTF8')::jsonb #>> '{data,seq}')::bigint = e.seq`, o.Code); n != 4 {
		t.Errorf("%d of 4 messages say what was", n)
	}
}

// TestWithoutAStoreNothingIsAcknowledged: the provider sends it again, and then it is applied (SPEC.md 12, row 11).
func TestWithoutAStoreNothingIsAcknowledged(t *testing.T) {
	t.Parallel()
	s, _ := idleShop(t, options{})
	o := s.order("")
	s.drain()
	if _, err := s.super.Exec(t.Context(), `ALTER TABLE payments.webhooks RENAME TO away`); err != nil {
		t.Fatal(err)
	}
	s.deposit(o.Code, 11000, 1)
	for attempts := 0; attempts < 2; {
		hooks := s.sim.Webhooks()
		last := hooks[len(hooks)-1]
		if attempts = len(last.Attempts); attempts > 0 && last.Attempts[0].Status != http.StatusInternalServerError {
			t.Fatalf("%+v", last.Attempts)
		}
	}
	if _, err := s.super.Exec(t.Context(), `ALTER TABLE payments.away RENAME TO webhooks`); err != nil {
		t.Fatal(err)
	}
	s.drain()
	if o = s.show(o.Code); o.Status != order.Paid || s.happened(o.Code, order.Pay) != 1 {
		t.Errorf("%+v", o)
	}
}

// TestWebhooksAreHints: the signature does not cover what they claim (SPEC.md 12, row 12), a number of an account says
// nothing (row 17), and one that nobody has signed leaves nothing behind (13).
func TestWebhooksAreHints(t *testing.T) {
	t.Parallel()
	s, _ := idleShop(t, options{})
	o := s.order("")
	s.do(s.sim.SameAccount(o.Code))
	other := s.order("")
	s.drain()
	if o.VirtualAccount.AccountNumber != other.VirtualAccount.AccountNumber {
		t.Fatalf("%+v, %+v", o.VirtualAccount, other.VirtualAccount)
	}
	waiting := s.truth(o.Code).Payments[0]
	if !s.acked(s.hook(waiting, o.Code, "paid")) {
		t.Error("not acknowledged")
	}
	s.round()
	if o = s.show(o.Code); o.Status != order.AwaitingDeposit {
		t.Errorf("an edited webhook makes it %s", o.Status)
	}
	s.deposit(other.Code, 11000, 1)
	// The deposit of one, told as that of the other.
	if !s.acked(s.hook(s.truth(other.Code).Payments[0], o.Code, "paid")) {
		t.Error("not acknowledged")
	}
	s.drain()
	if o, other = s.show(o.Code), s.show(other.Code); o.Status != order.AwaitingDeposit || other.Status != order.Paid {
		t.Errorf("%s, %s", o.Status, other.Status)
	}
	before := s.rows(`SELECT count(*) FROM payments.webhooks`)
	signed := s.hook(waiting, o.Code, "ready")
	for what, body := range map[string][]byte{
		"amount":    bytes.Replace(signed, []byte(`"amount":11000`), []byte(`"amount":11001`), 1),
		"tid":       bytes.Replace(signed, []byte(waiting.TID), []byte(strings.Repeat("x", 30)), 1),
		"signature": bytes.Replace(signed, []byte(`"signature":"`), []byte(`"signature":"0`), 1),
		"none":      []byte(`{"tid":"x","orderId":"y","status":"paid","amount":11000}`),
		"no JSON":   []byte(`OK`), "nothing": nil, "too long": bytes.Repeat([]byte(" "), 1<<17),
	} {
		if s.acked(body) {
			t.Errorf("%s: acknowledged", what)
		}
	}
	if err := s.service.Receive(t.Context(), "tosspay", "application/json", signed); !fault.Is(err, fault.NotFound) {
		t.Errorf("%v", err)
	}
	if n := s.rows(`SELECT count(*) FROM payments.webhooks`); n != before {
		t.Errorf("%d rows were left", n-before)
	}
}

// TestTrialOfTheAddress: the provider's trial, which nobody can verify, is answered in the exact form, and nothing is stored
// (SPEC.md 12, rows 14 and 15).
func TestTrialOfTheAddress(t *testing.T) {
	t.Parallel()
	s, _ := idleShop(t, options{})
	s.sim.TestWebhook()
	s.do(s.sim.Settle(t.Context()))
	hooks := s.sim.Webhooks()
	if a := hooks[0].Attempts; len(a) != 1 || a[0].Status != http.StatusOK || a[0].Error != "" {
		t.Errorf("%+v", a)
	}
	if status, kind, body := s.tell(
		t.Context(),
		"application/json",
		hooks[0].Body,
	); status != 200 || kind != "text/html;charset=utf-8" ||
		body != "OK" {
		t.Errorf("%d %s %s", status, kind, body)
	}
	if n := s.rows(`SELECT count(*) FROM payments.webhooks`); n != 0 {
		t.Errorf("%d rows", n)
	}
}

// TestLateDeposits: in time is by the bank's time, not by that of the news (SPEC.md 12, rows 18 and 19).
func TestLateDeposits(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		paidAt time.Duration // after the account's end
		want   order.Status
	}{
		"a second before": {-time.Second, order.Paid},
		"at the end":      {0, order.Paid},
		"a second after":  {time.Second, order.Expired},
		"an hour after":   {time.Hour, order.Expired},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, clock := idleShop(t, options{})
			created := clock.Now()
			o := s.must(
				create,
				"",
				`{"amount":11000,"payMethod":"vbank","vbank":{"validHours":72},"payment_notify_url":"`+s.app.url+`"}`,
			).Order
			ends := created.Add(72 * time.Hour)
			if o.VirtualAccount.ExpiresAt != ends.Format("2006-01-02T15:04:05.000Z") {
				t.Errorf("72 hours end at %s", o.VirtualAccount.ExpiresAt)
			}
			clock.Advance(72*time.Hour + 10*time.Minute)
			s.resolve(o.Code)
			if got := s.show(o.Code); got.Status != order.AwaitingDeposit {
				t.Errorf("ten minutes past due it is %s", got.Status)
			}
			clock.Advance(time.Second)
			s.resolve(o.Code)
			if got := s.show(o.Code); got.Status != order.Expired || got.ClosedAt == nil {
				t.Fatalf("%+v", got)
			}
			s.do(s.sim.Deposit(o.Code, 11000, ends.Add(row.paidAt), 1))
			s.drain()
			got := s.show(o.Code)
			if late := got.Attention != nil &&
				*got.Attention == order.LateDeposit; got.Status != row.want ||
				late != (row.want == order.Expired) {
				t.Errorf("%+v", got)
			}
			if n := s.rows(
				`SELECT count(*) FROM payments.deposits WHERE state = CASE $1 WHEN 'PAID' THEN 'APPLIED' ELSE 'UNAPPLIED' END`,
				string(row.want),
			); n != 1 {
				t.Errorf("%d deposits", n)
			}
		})
	}
}

// TestLostWebhooks: with none of them delivered, a look at the end of an account, or the nightly one, pays the order all the same
// (SPEC.md 12, row 20).
func TestLostWebhooks(t *testing.T) {
	t.Parallel()
	s, clock := idleShop(t, options{})
	s.do(s.sim.SetWebhookURL(""))
	byLook, bySweep, unpaid := s.order(""), s.order(""), s.order("")
	s.deposit(byLook.Code, 11000, 1)
	clock.Advance(168*time.Hour + 11*time.Minute)
	s.resolve(byLook.Code)
	s.resolve(unpaid.Code)
	if o := s.show(byLook.Code); o.Status != order.Paid {
		t.Errorf("%+v", o)
	}
	if o := s.show(unpaid.Code); o.Status != order.Expired || s.told(o.Code, order.NotifyExpired) != 1 {
		t.Errorf("%+v", o)
	}
	s.deposit(bySweep.Code, 11000, 1)
	s.do(s.service.Sweep(t.Context()))
	if o := s.show(bySweep.Code); o.Status != order.Paid {
		t.Errorf("%+v", o)
	}
	if n := s.rows(`SELECT count(*) FROM payments.sweeps WHERE checked = 1 AND moved = 1 AND failed = 0 AND drifted = 0`); n != 1 {
		t.Errorf("%v", s.texts(`SELECT to_json(s)::text FROM payments.sweeps s`))
	}
	s.do(s.service.Sweep(t.Context())) // not twice a night
	if n := s.rows(`SELECT count(*) FROM payments.sweeps`); n != 1 {
		t.Errorf("%d sweeps", n)
	}
}

// TestSweepWithoutAProvider: one that could compare next to nothing is no comparison: it is made again within the hour, not at once and
// not the night after, and the age of the last comparison, of which somebody is told, goes on (SPEC.md 8.4).
func TestSweepWithoutAProvider(t *testing.T) {
	t.Parallel()
	s, clock := idleShop(t, options{})
	s.do(s.sim.SetWebhookURL(""))
	age := func() (seconds float64) {
		t.Helper()
		readings, err := s.store.Sample(slog.New(slog.DiscardHandler), clock.Now).Ask(t.Context())
		s.do(err)
		for _, r := range readings {
			if r.Gauge == "hub.payments.sweep.age" {
				seconds = r.Value
			}
		}
		return seconds
	}
	sweep := func(wantSweeps int64, wantAge time.Duration) {
		t.Helper()
		s.do(s.service.Sweep(t.Context()))
		if n := s.rows(`SELECT count(*) FROM payments.sweeps`); n != wantSweeps || age() != wantAge.Seconds() {
			t.Errorf("%d sweeps, want %d; the last comparison is %v s old, want %s", n, wantSweeps, age(), wantAge)
		}
	}
	sweep(1, 0) // there is nothing to compare yet
	orders := []order.View{s.order(""), s.order(""), s.order("")}
	for _, o := range orders {
		s.deposit(o.Code, 11000, 1)
	}
	clock.Advance(21 * time.Hour)
	s.arm(pgsim.ServerError, "get", 5)
	sweep(2, 21*time.Hour)
	clock.Advance(time.Minute)
	sweep(2, 21*time.Hour+time.Minute) // another replica's turn
	clock.Advance(time.Hour)
	sweep(3, 22*time.Hour+time.Minute) // two of three are not compared
	clock.Advance(time.Hour)
	s.arm(pgsim.ServerError, "get", 1)
	sweep(4, 0) // one alone is not: the night after
	clock.Advance(19 * time.Hour)
	sweep(4, 19*time.Hour)
	clock.Advance(time.Hour)
	sweep(5, 0)
	for _, o := range orders {
		if o = s.show(o.Code); o.Status != order.Paid {
			t.Errorf("%+v", o)
		}
	}
}

// TestFailedThenPaid: money that comes after the order has failed is an operator's, and not silent (SPEC.md 12, row 21).
func TestFailedThenPaid(t *testing.T) {
	t.Parallel()
	s, _ := idleShop(t, options{})
	o := s.must(create, "", `{"amount":11000,"payment_notify_url":"`+s.app.url+`"}`).Order
	if o.Status != order.Ready || o.CheckoutURL == nil {
		t.Fatalf("%+v", o)
	}
	s.do(s.sim.Fail(o.Code))
	s.drain()
	if o = s.show(o.Code); o.Status != order.Failed || o.Failure == nil || s.told(o.Code, order.NotifyFailed) != 1 {
		t.Fatalf("%+v", o)
	}
	s.do(s.sim.Pay(o.Code))
	s.drain()
	if o = s.show(
		o.Code,
	); o.Status != order.Failed || o.Attention == nil || *o.Attention != order.LateDeposit || o.PaidAmount != 0 ||
		s.told(o.Code, order.NotifyAttention) != 1 {
		t.Errorf("%+v", o)
	}
}

// TestOtherAmounts: they are never PAID, and never added up (SPEC.md 4.4).
func TestOtherAmounts(t *testing.T) {
	t.Parallel()
	s, _ := idleShop(t, options{})
	o := s.order("")
	s.deposit(o.Code, 5000, 2)
	s.drain()
	s.deposit(o.Code, 6000, 1)
	s.drain()
	got := s.show(o.Code)
	if got.Status != order.AwaitingDeposit || got.PaidAmount != 0 || got.Attention == nil || *got.Attention != order.AmountMismatch {
		t.Errorf("%+v", got)
	}
	if n := s.rows(`SELECT sum(amount) FROM payments.deposits WHERE state = 'MISMATCH'`); n != 11000 {
		t.Errorf("%d won are kept as open", n)
	}
	if _, err := s.call(pull, "", `{"code":"`+o.Code+`"}`); detail(err) != "AMOUNT_MISMATCH" {
		t.Errorf("%v", err)
	}
	s.refused(pull, "", `{"code":"`+o.Code+`","amount":5000}`, fault.Conflict, "AMOUNT_MISMATCH")
	paid := s.paidIdle()
	s.deposit(paid.Code, 11000, 3)
	s.drain()
	if paid = s.show(
		paid.Code,
	); paid.PaidAmount != 11000 || *paid.Attention != order.DuplicateDeposit ||
		s.happened(paid.Code, order.DepositTwice) != 1 {
		t.Errorf("%+v", paid)
	}
}

// TestWebhookOfNobody: one about an order that is not there, or not yet, waits for it, and is given up in the end (SPEC.md 8.2).
func TestWebhookOfNobody(t *testing.T) {
	t.Parallel()
	s, clock := idleShop(t, options{})
	o := s.order("")
	s.drain()
	p := s.truth(o.Code).Payments[0]
	if !s.acked(s.hook(p, "po_01JZ8Q6V7R3W9K2M4N5P6Q7R8S", "paid")) {
		t.Error("not acknowledged")
	}
	key := s.texts(`SELECT event_key FROM payments.webhooks WHERE outcome = ''`)[0]
	for i, want := range []time.Duration{10 * time.Second, time.Minute, 10 * time.Minute, time.Hour, 24 * time.Hour, 0} {
		again, err := s.service.ProcessWebhook(t.Context(), "nicepay", credentials.Sandbox, key)
		if err != nil || again != want {
			t.Errorf("%d: %v, %v, want %v", i, again, err, want)
		}
	}
	if n := s.rows(
		`SELECT count(*) FROM payments.webhooks WHERE outcome = 'ABANDONED'`,
	); n != 1 ||
		!strings.Contains(s.logs.String(), "level=ERROR") {
		t.Errorf("%d are given up", n)
	}
	// One that names another payment's order is never answered about it: it does not stay for ever.
	other := s.order("")
	s.drain()
	if !s.acked(s.hook(p, other.Code, "paid")) {
		t.Error("not acknowledged")
	}
	key = s.texts(`SELECT event_key FROM payments.webhooks WHERE outcome = ''`)[0]
	if _, err := s.service.ProcessWebhook(t.Context(), "nicepay", credentials.Sandbox, key); !fault.Is(err, fault.DB) {
		t.Errorf("%v", err)
	}
	clock.Advance(4 * 24 * time.Hour)
	if again, err := s.service.ProcessWebhook(t.Context(), "nicepay", credentials.Sandbox, key); err != nil || again != 0 {
		t.Errorf("%v, %v", again, err)
	}
	if n := s.rows(`SELECT count(*) FROM payments.webhooks WHERE outcome = 'ABANDONED'`); n != 2 {
		t.Errorf("%d are given up", n)
	}
}

// TestBrowsersComeBack: whoever knows the address of the return cannot make Hub ask the provider more than once in two seconds.
func TestBrowsersComeBack(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	s, clock := idleShop(t, options{onCall: func(c pgsim.Call) {
		if c.On == "get" {
			asked.Add(1)
		}
	}})
	o := s.must(create, "", `{"amount":11000,"returnUrl":"https://svc.example/done"}`).Order
	for second := range 3 {
		asked.Store(0)
		for _, err := range together(40, patiently(func(int) error {
			where, status, err := s.service.Return(t.Context(), o.Code)
			if want := "https://svc.example/done?code=" + o.Code + "&status="; !strings.HasPrefix(where, want) || status == "" {
				return fmt.Errorf("%s, %s, %w", where, status, err)
			}
			return err
		})) {
			if err != nil {
				t.Error(err)
			}
		}
		if n := asked.Load(); n > 2 { // one look is up to two days of the provider's
			t.Errorf("second %d: the provider was asked %d times", second, n)
		}
		clock.Advance(2100 * time.Millisecond)
	}
	s.do(s.sim.Pay(o.Code))
	if where, status, err := s.service.Return(
		t.Context(),
		o.Code,
	); err != nil || status != "PAID" ||
		!strings.HasSuffix(where, "&status=PAID") {
		t.Errorf("%s, %s, %v", where, status, err)
	}
	if _, _, err := s.service.Return(t.Context(), "po_01JZ8Q6V7R3W9K2M4N5P6Q7R8S"); !fault.Is(err, fault.NotFound) {
		t.Errorf("%v", err)
	}
}
