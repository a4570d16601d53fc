package payments_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"hub.internal/pkg/hubtest"
	"hub.internal/services/payments"
	"hub.internal/services/payments/notify"
	"hub.internal/services/payments/order"
	"hub.internal/services/payments/pgsim"
)

// TestOneLookOfMany: an order leaves a job behind with each move; one of them asks the provider when it is time, and the others, early or
// beside it, do not (SPEC.md 8.4).
func TestOneLookOfMany(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	s, clock := idleShop(t, options{onCall: func(c pgsim.Call) {
		if c.On == "get" {
			asked.Add(1)
		}
	}})
	s.arm(pgsim.TimeoutBefore, "issue", 1)
	o := s.order("")
	looks := func(what string, want int64) (waits []time.Duration) {
		t.Helper()
		asked.Store(0)
		all := make([]time.Duration, 8)
		for _, err := range together(len(all), func(i int) (err error) {
			all[i], err = s.service.ResolveDue(t.Context(), o.Code)
			return err
		}) {
			s.do(err)
		}
		if n := asked.Load(); n != want {
			t.Errorf("%s: the provider was asked %d times", what, n)
		}
		for _, wait := range all {
			if wait > 0 {
				waits = append(waits, wait)
			}
		}
		return waits
	}
	if waits := looks("too early", 0); len(waits) != 0 {
		t.Errorf("%v", waits)
	}
	clock.Advance(2 * time.Minute)
	s.arm(pgsim.ServerError, "get", 1)
	if waits := looks("the provider is away", 1); len(waits) != 1 || waits[0] != 2*time.Minute {
		t.Errorf("%v", waits)
	}
	clock.Advance(time.Minute)
	looks("between two looks", 0)
	clock.Advance(time.Minute)
	looks("the provider is back", 3) // by its day and by its page before it is asked for the account, and once after
	if o = s.show(o.Code); o.Status != order.AwaitingDeposit {
		t.Errorf("%+v", o)
	}
	clock.Advance(time.Hour)
	looks("a week too early", 0)
	clock.Advance(168 * time.Hour)
	looks("past due", 1)
	if o = s.show(o.Code); o.Status != order.Expired {
		t.Errorf("%+v", o)
	}
	if n := s.rows(`SELECT count(*) FROM payments.orders WHERE look_at IS NOT NULL`); n != 0 {
		t.Errorf("%d orders are looked at for ever", n)
	}
}

// TestMissingJobsAreAdded: once each (SPEC.md 8.4).
func TestMissingJobsAreAdded(t *testing.T) {
	t.Parallel()
	s, clock := idleShop(t, options{})
	s.order("")
	s.do(s.sim.Settle(t.Context()))
	if _, err := s.super.Exec(t.Context(), `DELETE FROM payments.river_job`); err != nil {
		t.Fatal(err)
	}
	s.do(s.store.AddMissing(t.Context(), clock.Now()))
	if n := s.rows(`SELECT count(*) FROM payments.river_job`); n != 0 {
		t.Errorf("%d jobs are added that are not late", n)
	}
	for range 3 {
		s.do(s.store.AddMissing(t.Context(), clock.Now().Add(169*time.Hour)))
	}
	got := fmt.Sprint(s.texts(`SELECT kind || ' ' || count(*) FROM payments.river_job GROUP BY kind ORDER BY kind`))
	if got != "[look_into_webhook 1 notify 1 resolve_order 1]" {
		t.Errorf("%s", got)
	}
}

// TestSlowTransactionLosesNoMessage: one that began earlier and commits later is told of all the same (SPEC.md 12, row 30).
func TestSlowTransactionLosesNoMessage(t *testing.T) {
	t.Parallel()
	s := newShop(t, options{})
	slow, fast := s.paid(), s.paid()
	held, release := make(chan struct{}), make(chan struct{})
	done := make(chan error, 1)
	go func() {
		_, err := s.store.Change(t.Context(), slow.Code, payments.Actor{Name: "hub", Now: time.Now()}, func(a *order.Aggregate) error {
			_, err := a.RequestRefund(order.RefundRequest{Code: "rf_slow", Reason: "x"})
			if err == nil {
				err = a.DeclineRefund("rf_slow", order.Failure{Code: "1", Message: "no"}, false)
			}
			close(held)
			<-release
			return err
		}, nil)
		done <- err
	}()
	<-held
	s.must(refund, "", refundOf(fast.Code, 11000))
	hubtest.Eventually(t, "the fast one is told", func() bool {
		return s.rows(`SELECT count(*) FROM payments.notices WHERE type = $1 AND state = 'DELIVERED'`, order.NotifyRefunded) == 1
	})
	close(release)
	s.do(<-done)
	hubtest.Eventually(t, "the slow one is told", func() bool {
		return s.rows(`SELECT count(*) FROM payments.notices WHERE type = $1 AND state = 'DELIVERED'`, order.NotifyRefundFailed) == 1
	})
	s.verified()
}

// TestRedeliveryOutlivesAnOldAttempt: the last of ten attempts ends while somebody asks for the message again; that is not lost.
func TestRedeliveryOutlivesAnOldAttempt(t *testing.T) {
	t.Parallel()
	s, clock := idleShop(t, options{})
	inside, release := make(chan struct{}), make(chan struct{})
	var calls atomic.Int64
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if calls.Add(1) == 10 {
			close(inside)
			<-release
		}
		if calls.Load() < 11 {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	t.Cleanup(slow.Close)
	o := s.must(create, "", `{"amount":11000,"payMethod":"vbank","payment_notify_url":"`+slow.URL+`"}`).Order
	id := s.events(o.Code).Notifications[0].ID
	attempt := func(ctx context.Context) error { _, err := s.service.Notify(ctx, id); return err }
	for range 9 {
		s.do(attempt(t.Context()))
		clock.Advance(time.Minute)
	}
	done := make(chan error, 1)
	go func() { done <- attempt(context.WithoutCancel(t.Context())) }()
	<-inside
	if a := s.must(redeliver, "", `{"code":"`+o.Code+`","id":"`+id+`"}`); a.Status != http.StatusAccepted {
		t.Errorf("%d", a.Status)
	}
	close(release)
	s.do(<-done)
	s.do(attempt(t.Context()))
	n := s.events(o.Code).Notifications[0]
	if n.State != payments.NotificationDelivered || len(n.Attempts) != 11 {
		t.Errorf("%+v", n)
	}
}

// TestRedeliveriesAreOneChain: however often a message is asked for that is on its way, there is one job that is due, and an attempt of
// the schedule is made once (SPEC.md 9.3). A job of before, which comes while the next attempt is far, ends.
func TestRedeliveriesAreOneChain(t *testing.T) {
	t.Parallel()
	var schedule notify.Schedule
	if err := schedule.UnmarshalText([]byte("0s,1h,1h")); err != nil {
		t.Fatal(err)
	}
	s, clock := idleShop(t, options{change: func(c *payments.Config) {
		c.Notifier = notify.New(notify.Config{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, AllowHTTP: true,
			Schedule: schedule, Now: c.Now})
	}})
	s.app.answer(http.StatusInternalServerError)
	o := s.order("")
	id := s.events(o.Code).Notifications[0].ID
	again := func(int) error { _, err := s.call(redeliver, "", `{"code":"`+o.Code+`","id":"`+id+`"}`); return err }
	jobs := func() int64 {
		return s.rows(`SELECT count(*) FROM payments.river_job WHERE kind = 'notify' AND finalized_at IS NULL AND args->>'id' = $1`, id)
	}
	attempt := func(want bool) {
		t.Helper()
		before := len(s.app.all())
		wait, err := s.service.Notify(t.Context(), id)
		if made := len(s.app.all()) - before; err != nil || (made == 1) != want || !want && wait != 0 {
			t.Errorf("%d attempts, and the job comes again after %s: %v", made, wait, err)
		}
	}
	asked := func() {
		t.Helper()
		for _, err := range together(8, again) {
			if err != nil {
				t.Error(err)
			}
		}
	}
	asked()
	if n := jobs(); n != 1 { // which the order has left
		t.Errorf("%d jobs", n)
	}
	attempt(true)
	attempt(false) // by a job of before
	asked()
	attempt(true) // at once, and not in an hour
	attempt(false)
	for range 2 {
		clock.Advance(2 * time.Hour)
		attempt(true)
	}
	if got := s.events(o.Code).Notifications[0]; got.State != payments.NotificationDead || len(got.Attempts) != 4 {
		t.Errorf("%+v", got)
	}
	if _, err := s.super.Exec(t.Context(), `UPDATE payments.river_job SET state = 'running' WHERE kind = 'notify'`); err != nil {
		t.Fatal(err)
	}
	asked()
	if n := jobs(); n != 2 { // one that runs may be at its end
		t.Errorf("%d jobs", n)
	}
	before := len(s.app.all())
	for _, err := range together(8, func(int) error { _, err := s.service.Notify(t.Context(), id); return err }) {
		s.do(err)
	}
	if made := len(s.app.all()) - before; made != 1 {
		t.Errorf("eight jobs at once make %d attempts", made)
	}
	asked()
	s.app.answer(http.StatusOK)
	attempt(true)
	if got := s.events(o.Code).Notifications[0]; got.State != payments.NotificationDelivered || len(got.Attempts) != 6 {
		t.Errorf("%+v", got)
	}
}

// TestTakenOverCallChangesNothing: who finds their claim taken over stores neither an answer nor what comes with it.
func TestTakenOverCallChangesNothing(t *testing.T) {
	t.Parallel()
	const lease = 30 * time.Millisecond
	var slow atomic.Bool
	s, _ := idleShop(t, options{lease: lease, onCall: func(c pgsim.Call) {
		if c.On == "cancel" && slow.CompareAndSwap(true, false) {
			time.Sleep(5 * lease) // the first who asks comes late
		}
	}})
	o := s.paidIdle()
	before := s.rows(`SELECT count(*) FROM audit.calls`)
	slow.Store(true)
	var answers [6]answer
	for i, err := range together(len(answers), func(i int) (err error) {
		time.Sleep(time.Duration(i) * lease / 2)
		answers[i], err = s.call(refund, "k", refundOf(o.Code, 4000))
		return err
	}) {
		if err != nil && detail(err) != "REQUEST_IN_PROGRESS" {
			t.Errorf("%v", err)
		}
		if err == nil && answers[i].Refund.Amount != 4000 {
			t.Errorf("%s", answers[i].Raw)
		}
	}
	last := s.must(refund, "k", refundOf(o.Code, 4000))
	for _, a := range answers {
		if a.Raw != "" && a.Raw != last.Raw {
			t.Errorf("%s\nand\n%s", a.Raw, last.Raw)
		}
	}
	if truth := s.truth(o.Code); truth.Cancelled != 4000 || len(truth.Cancels) != 1 || len(last.Order.Refunds) != 1 {
		t.Errorf("%+v", truth)
	}
	if n := s.rows(`SELECT count(*) FROM audit.calls`) - before; n != 1 {
		t.Errorf("%d rows in the audit log", n)
	}
}
