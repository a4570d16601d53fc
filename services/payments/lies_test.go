package payments_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/tool"
	"hub.internal/services/payments"
	"hub.internal/services/payments/api"
	"hub.internal/services/payments/credentials"
	"hub.internal/services/payments/order"
	"hub.internal/services/payments/pgsim"
	"hub.internal/services/payments/provider"
)

// TestDepositThatIsGoneIsNotApplied: money that went back since an operator has looked pays no order.
func TestDepositThatIsGoneIsNotApplied(t *testing.T) {
	t.Parallel()
	for name, gone := range map[string]func(*pgsim.Sim, string) error{
		"paid back at the provider": func(s *pgsim.Sim, code string) error { return s.ConsoleCancel(code, 0) },
		"a part of it":              func(s *pgsim.Sim, code string) error { return s.ConsoleCancel(code, 1000) },
		"taken back by the bank":    func(s *pgsim.Sim, code string) error { return s.Reverse(code) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, options{})
			o := d.late(11000)
			path := d.depositPath(o.Code)
			form := d.form(path + "/apply")
			d.do(gone(d.sim, o.Code))
			d.settled()
			form.Set("version", d.form(path+"/apply").Get("version"))
			d.says(path+"/apply", form, "does not hold this deposit")
			if got := d.show(o.Code); got.Status != order.Canceled {
				t.Errorf("%+v", got)
			}
		})
	}
}

// TestUnreachableProviderAppliesNothing: who cannot be asked about a deposit does not hold it.
func TestUnreachableProviderAppliesNothing(t *testing.T) {
	t.Parallel()
	d := newDesk(t, options{})
	o := d.late(11000)
	d.do(d.sim.Arm(pgsim.Fault{Kind: pgsim.TimeoutBefore, On: "get", Times: 50}))
	a := d.book(o.Code)
	err := d.service.ApplyDeposit(t.Context(), payments.OrderVersion{Code: o.Code, Version: a.Order.Version}, a.Deposits[0].ID, "")
	if !fault.Is(err, fault.DB) || d.show(o.Code).Status != order.Canceled {
		t.Errorf("%v: %+v", err, d.show(o.Code))
	}
}

// TestReturnLeavesWhatPays: a deposit of the payment that the order was paid with meanwhile is not paid back, for that
// would take the money of the order.
func TestReturnLeavesWhatPays(t *testing.T) {
	t.Parallel()
	s, clock := idleShop(t, options{})
	created := clock.Now()
	o := s.must(create, "", `{"amount":11000,"payMethod":"vbank","vbank":{"validHours":1}}`).Order
	clock.Advance(time.Hour + 11*time.Minute)
	s.resolve(o.Code)
	s.do(s.sim.Deposit(o.Code, 11000, clock.Now(), 1))
	s.drain()
	ctx := t.Context()
	a, err := s.store.Order(ctx, o.Code)
	s.do(err)
	s.arm(pgsim.TimeoutBefore, "cancel", 1)
	by := provider.RefundAccount{BankCode: "004", AccountNumber: accountNumber, Holder: "Kim"}
	if _, err := s.service.ReturnDeposit(
		ctx,
		payments.OrderVersion{Code: o.Code, Version: a.Order.Version},
		a.Deposits[0].ID,
		&by,
		"",
	); err != nil {
		t.Fatal(err)
	}
	// The bank takes it back, and tells of another one into the same account that was in time.
	s.do(s.sim.Reverse(o.Code))
	s.drain()
	s.do(s.sim.Deposit(o.Code, 11000, created.Add(30*time.Minute), 1))
	s.drain()
	if got := s.show(o.Code); got.Status != order.Paid {
		t.Fatalf("%+v", got)
	}
	s.resolve(o.Code)
	if truth := s.truth(o.Code); truth.Cancelled != 0 {
		t.Errorf("the provider has paid back %+v", truth)
	}
	if a, err = s.store.Order(ctx, o.Code); err != nil || !a.Deposits[0].NeedsDecision() || a.Order.Attention == "" {
		t.Errorf("%v: %+v %+v", err, a.Order, a.Deposits)
	}
}

// TestOneSignatureFillsNoInbox: a webhook's signature covers its payment alone, so that who has seen one can make as many others
// as they like. Some are kept; of all others the order is looked at, once for many, also one that waits for its deposit and one that waits
// for nothing (SPEC.md 8.2).
func TestOneSignatureFillsNoInbox(t *testing.T) {
	t.Parallel()
	s, clock := idleShop(t, options{})
	o := s.order("")
	s.drain()
	s.do(s.service.Sweep(t.Context())) // which finds nothing, and is not due again today
	p := s.truth(o.Code).Payments[0]
	looks := func() int64 {
		return s.rows(`SELECT count(*) FROM payments.river_job WHERE kind = 'resolve_order' AND args->>'code' = $1 AND scheduled_at <= $2`,
			o.Code, clock.Now().Add(time.Minute))
	}
	waiting := func() int64 {
		return s.rows(`SELECT count(*) FROM payments.river_job WHERE kind = 'resolve_order' AND args->>'asked' = 'true'
			AND finalized_at IS NULL`)
	}
	edit := func(n int) []byte { return s.hook(p, fmt.Sprintf("po_edited%d", n), "paid") }
	for n := range 260 {
		if !s.acked(edit(n)) {
			t.Fatalf("%d is not acknowledged: %s", n, s.logs)
		}
	}
	if n := s.rows(`SELECT count(*) FROM payments.webhooks WHERE code LIKE 'po_edited%'`); n > 200 || n < 190 {
		t.Errorf("%d are kept", n)
	}
	if n := looks(); n != 1 {
		t.Errorf("%d looks at the order", n)
	}
	if !s.acked(edit(0)) || looks() != 1 { // a repetition
		t.Error("one that is kept is told again")
	}
	next := s.texts(`SELECT look_at::text FROM payments.orders WHERE code = $1`, o.Code)
	s.work(slog.New(slog.NewTextHandler(s.logs, nil)), clock.Now)
	hubtest.Eventually(t, "the order was looked at", func() bool { return waiting() == 0 })
	if again := s.texts(`SELECT look_at::text FROM payments.orders WHERE code = $1`, o.Code); !slices.Equal(again, next) {
		t.Errorf("it is checked by itself at %v, not at %v", again, next)
	}
	s.deposit(o.Code, 11000, 1)
	s.becomes(o.Code, order.Paid)
	s.settled()
	clock.Advance(10 * time.Minute)
	s.do(s.sim.Reverse(o.Code))
	s.becomes(o.Code, order.AwaitingDeposit)
	if n := s.rows(`SELECT count(*) FROM payments.webhooks WHERE code = $1 AND claims <> 'ready'`, o.Code); n != 0 {
		t.Errorf("%d of the deposit's webhooks are kept", n)
	}
	p.TID = "tid-of-nobody"
	for n := range 200 {
		if !s.acked(edit(n)) {
			t.Fatalf("%d of no order is not acknowledged", n)
		}
	}
	if s.acked(edit(200)) {
		t.Error("what is neither kept nor looked at is acknowledged")
	}
}

// TestOrdersAreNobodys: who is neither the order's app nor an operator sees no order, whatever lets them come so far.
func TestOrdersAreNobodys(t *testing.T) {
	t.Parallel()
	s, _ := idleShop(t, options{})
	o := s.order("")
	mine := caller.From(as(t.Context(), "svc", "u-77"))
	for name, change := range map[string]func(*caller.Caller){
		"nobody":          func(c *caller.Caller) { *c = caller.Caller{} },
		"a visitor":       func(c *caller.Caller) { c.Kind = caller.Visitor },
		"an agent":        func(c *caller.Caller) { c.Kind = caller.Key },
		"a service":       func(c *caller.Caller) { *c = caller.Itself("query") },
		"another app":     func(c *caller.Caller) { c.Service = "svc2" },
		"another user":    func(c *caller.Caller) { c.ExternalUserID = "u-78" },
		"an app's nobody": func(c *caller.Caller) { c.ExternalUserID = "" },
	} {
		who := mine
		change(&who)
		ctx := caller.With(t.Context(), who)
		_, shown := s.service.Order(ctx, o.Code)
		_, history := s.service.History(ctx, o.Code)
		_, reconciled := s.service.Reconcile(ctx, o.Code, nil)
		page, _, err := s.service.List(ctx, payments.Filter{Limit: 10})
		if !fault.Is(shown, fault.NotFound) || !fault.Is(history, fault.NotFound) || !fault.Is(reconciled, fault.NotFound) || err != nil ||
			len(page) > 0 {
			t.Errorf("%s: %v, %v, %v, %d orders, %v", name, shown, history, reconciled, len(page), err)
		}
	}
}

// origins are those of the one app that there is, which an administrator changes.
type origins struct {
	apps
	allowed atomic.Pointer[[]string]
}

func (o *origins) App(ctx context.Context, code string) (payments.App, error) {
	a, err := o.apps.App(ctx, code)
	if allowed := o.allowed.Load(); allowed != nil {
		a.Origins = *allowed
	}
	return a, err
}

// TestNoNoticeToAnOriginThatWasRemoved: what an administrator has taken off the list is told nothing, whenever the order was made.
func TestNoNoticeToAnOriginThatWasRemoved(t *testing.T) {
	t.Parallel()
	var list origins
	s, clock := idleShop(t, options{change: func(c *payments.Config) { c.Apps = &list }})
	o := s.order("")
	list.allowed.Store(&[]string{"https://svc.example"})
	s.drain()
	if took := s.app.all(); len(took) != 0 {
		t.Errorf("it was told %d times", len(took))
	}
	if n := s.rows(`SELECT count(*) FROM payments.notice_attempts WHERE NOT delivered AND error LIKE '%origin is none%'`); n != 1 {
		t.Errorf("%d attempts\n%s", n, s.logs)
	}
	list.allowed.Store(&[]string{s.app.url})
	clock.Advance(2 * time.Second)
	s.drain()
	if s.told(o.Code, order.NotifyIssued) != 1 || len(s.app.all()) != 1 {
		t.Errorf("%d were told once it is on the list again", len(s.app.all()))
	}
}

// TestSlowReceiversTakeNotAllTurns: an app whose receivers hang keeps a few workers busy, and nobody else's.
func TestSlowReceiversTakeNotAllTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		take := payments.NewBulkhead()
		must := func(app string) func() {
			t.Helper()
			done, wait := take(app)
			if wait > 0 {
				t.Fatalf("%s waits for %s", app, wait)
			}
			return done
		}
		var hanging []func()
		for range 16 { // nobody knows yet
			hanging = append(hanging, must("slow"))
		}
		time.Sleep(15 * time.Second)
		for _, done := range hanging {
			done()
		}
		for n := range 4 {
			hanging[n] = must("slow")
		}
		if _, wait := take("slow"); wait < 5*time.Second || wait > 10*time.Second {
			t.Errorf("the fifth of a slow app waits for %s", wait)
		}
		for range 16 {
			defer must("other")()
		}
		hanging[0]()
		hanging[0] = must("slow") // one's end is another's turn
		for n := range 4 {
			hanging[n]()
		}
		time.Sleep(time.Minute + time.Second)
		for range 16 { // it has recovered
			defer must("slow")()
		}
	})
}

// hurried keeps the longest that a call to the provider might have taken.
type hurried struct {
	provider.Port
	longest atomic.Int64
}

func (h *hurried) Get(ctx context.Context, c credentials.Unsealed, ref provider.PaymentRef) (provider.Snapshot, error) {
	left := time.Duration(1 << 62)
	if end, ok := ctx.Deadline(); ok {
		left = time.Until(end)
	}
	h.longest.Store(max(h.longest.Load(), int64(left)))
	return h.Port.Get(ctx, c, ref)
}

// TestLeftCallsEndWithinTheirLease: whoever takes a call over is done with it, or has given up, before another can take it.
func TestLeftCallsEndWithinTheirLease(t *testing.T) {
	t.Parallel()
	const lease = 50 * time.Millisecond
	slow := &hurried{}
	var config payments.Config
	s, _ := idleShop(t, options{lease: lease, change: func(c *payments.Config) {
		slow.Port = c.Provider
		c.Provider = slow
		config = *c
	}})
	o := s.paidIdle()
	store := &dies{Store: s.store}
	store.at.Store(1)
	config.Store, config.Logger = store, slog.New(slog.DiscardHandler)
	dying := *s
	dying.service, dying.routes = payments.New(config), map[string]tool.APIRoute{}
	for _, r := range api.Routes(dying.service) {
		dying.routes[r.Spec.Name] = r
	}
	if _, err := dying.call(refund, "left", refundOf(o.Code, 4000)); err == nil {
		t.Fatal("it did not die")
	}
	time.Sleep(lease + 10*time.Millisecond)
	slow.longest.Store(0)
	s.do(s.service.Complete(t.Context()))
	if n := s.rows(`SELECT count(*) FROM payments.idempotency_keys WHERE state = 'running'`); n != 0 {
		t.Errorf("%d calls are left", n)
	}
	if longest := time.Duration(slow.longest.Load()); longest == 0 || longest >= payments.Lease {
		t.Errorf("a call that was taken over may take %s, its lease is %s", longest, payments.Lease)
	}
}
