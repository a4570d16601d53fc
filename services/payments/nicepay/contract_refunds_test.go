package nicepay_test

import (
	"sync"
	"testing"
	"time"

	"hub.internal/services/payments/credentials"
	"hub.internal/services/payments/pgsim"
	"hub.internal/services/payments/provider"
)

func refundInParts(t *testing.T, w *sim) {
	ref := w.paid(t, provider.VBank)
	for range 2 { // the same refund again is the same refund
		s, err := w.provider.Cancel(t.Context(), cred(), refund(ref, "rf_1", 4_000))
		must(t, err)
		is(t, s, provider.PaymentPaid, won, 7_000)
		returned(t, s, map[string]int64{"rf_1": 4_000})
	}
	s, err := w.provider.Cancel(t.Context(), cred(), refund(ref, "rf_2", 7_000))
	must(t, err)
	is(t, s, provider.PaymentCanceled, won, 0)
	returned(t, w.get(t), map[string]int64{"rf_1": 4_000, "rf_2": 7_000})
	s, err = w.provider.Cancel(t.Context(), cred(), refund(ref, "rf_1", 4_000))
	must(t, err)
	is(t, s, provider.PaymentCanceled, won, 0)
	if truth := w.truth(t); truth.Cancelled != won || len(truth.Cancels) != 2 {
		t.Errorf("%+v", truth)
	}
}

func refundOfAll(t *testing.T, w *sim) {
	w.paid(t, provider.Card)
	in := refund(w.ref(), "rf_1", 0) // without a tid
	s, err := w.provider.Cancel(t.Context(), cred(), in)
	must(t, err)
	is(t, s, provider.PaymentCanceled, won, 0)
	returned(t, s, map[string]int64{"rf_1": won})
	if s.PaidAt.IsZero() {
		t.Error("it was paid before it went back")
	}
}

func noAccount(t *testing.T, w *sim) {
	in := refund(w.paid(t, provider.VBank), "rf_1", 1)
	in.Account = nil
	_, err := w.provider.Cancel(t.Context(), cred(), in)
	if w.provider.Capabilities(provider.VBank).NeedsRefundAccount {
		declined(t, err, false)
	} else {
		must(t, err)
	}
	if w.provider.Capabilities(provider.Card).NeedsRefundAccount {
		t.Error("a card is paid back as it was paid")
	}
}

func moreThanLeft(t *testing.T, w *sim) {
	ref := w.paid(t, provider.VBank)
	_, err := w.provider.Cancel(t.Context(), cred(), refund(ref, "rf_1", won+1))
	declined(t, err, true)
	_, err = w.provider.Cancel(t.Context(), cred(), refund(ref, "rf_2", 10_000))
	must(t, err)
	_, err = w.provider.Cancel(t.Context(), cred(), refund(ref, "rf_3", 1_001))
	declined(t, err, true)
	if truth := w.truth(t); truth.Cancelled != 10_000 {
		t.Errorf("%+v", truth)
	}
}

func wentBackOtherwise(t *testing.T, w *sim) {
	ref := w.paid(t, provider.Card)
	must(t, w.ConsoleCancel(code, 0))
	s, err := w.provider.Cancel(t.Context(), cred(), refund(ref, "rf_1", 1))
	fails(t, err, provider.ErrAlreadyCanceled)
	returned(t, s, map[string]int64{"": won})
}

func declinedRefund(t *testing.T, w *sim) {
	ref := w.paid(t, provider.Card)
	for _, code := range []string{"2016", "2029"} {
		must(t, w.Arm(pgsim.Fault{Kind: pgsim.Decline, On: "cancel", Code: code}))
		_, err := w.provider.Cancel(t.Context(), cred(), refund(ref, "rf_1", 1))
		declined(t, err, false)
	}
	s, err := w.provider.Cancel(t.Context(), cred(), refund(ref, "rf_1", 1))
	must(t, err)
	is(t, s, provider.PaymentPaid, won, won-1)
}

func sameRefundAtOnce(t *testing.T, w *sim) {
	ref := w.paid(t, provider.Card)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if s, err := w.provider.Cancel(t.Context(), cred(), refund(ref, "rf_1", 6_000)); err != nil || s.Balance != 5_000 {
				t.Errorf("%d left, %v", s.Balance, err)
			}
		})
	}
	all.Wait()
	if truth := w.truth(t); truth.Cancelled != 6_000 {
		t.Errorf("%+v", truth)
	}
}

func consoleCancel(t *testing.T, w *sim) {
	w.paid(t, provider.Card)
	must(t, w.ConsoleCancel(code, 1_000))
	s := w.get(t)
	is(t, s, provider.PaymentPaid, won, 10_000)
	returned(t, s, map[string]int64{"": 1_000})
}

func reversed(t *testing.T, w *sim) {
	w.paid(t, provider.VBank)
	must(t, w.Reverse(code))
	s := w.get(t)
	at := w.clock.Now().Truncate(time.Millisecond)
	if is(t, s, provider.PaymentIssued, won, won); !s.PaidAt.IsZero() || s.Account == nil || !s.ReversedAt.Equal(at) {
		t.Errorf("%+v", s)
	}
	w.clock.Advance(time.Minute)
	must(t, w.Deposit(code, won, time.Time{}, 1))
	s = w.get(t)
	if is(t, s, provider.PaymentPaid, won, won); !s.ReversedAt.IsZero() {
		t.Errorf("%+v", s)
	}
	seen := map[string]bool{}
	for _, h := range w.webhooks(t) {
		e, err := w.provider.VerifyWebhook(h.ContentType, h.Body, []credentials.Unsealed{cred()})
		must(t, err)
		seen[e.Key] = true
	}
	if len(seen) != 4 {
		t.Errorf("%d keys for an account, a deposit, its reversal and another deposit", len(seen))
	}
}

func refundAfterReversal(t *testing.T, w *sim) {
	ref := w.paid(t, provider.VBank)
	must(t, w.Reverse(code))
	_, err := w.provider.Cancel(t.Context(), cred(), refund(ref, "rf_1", 0))
	declined(t, err, true)
	if truth := w.truth(t); truth.Paid != 0 || truth.Cancelled != 0 {
		t.Errorf("%+v", truth)
	}
}

func failsLater(t *testing.T, w *sim) {
	ref := w.paid(t, provider.VBank)
	_, err := w.provider.Cancel(t.Context(), cred(), refund(ref, "rf_1", 0))
	must(t, err)
	must(t, w.FailRefundLater("rf_1"))
	s := w.get(t)
	is(t, s, provider.PaymentPaid, won, won)
	if returned(
		t,
		s,
		map[string]int64{},
	); len(s.Cancellations) != 1 || s.Cancellations[0].RefundCode != "rf_1" ||
		!s.Cancellations[0].Returned {
		t.Errorf("%+v", s.Cancellations)
	}
	_, err = w.provider.Cancel(t.Context(), cred(), refund(ref, "rf_1", 0))
	declined(t, err, false)
	s, err = w.provider.Cancel(t.Context(), cred(), refund(ref, "rf_2", 0))
	must(t, err)
	returned(t, s, map[string]int64{"rf_2": won})
}

func undone(t *testing.T, w *sim) {
	fails(t, w.provider.NetCancel(t.Context(), cred(), code), provider.ErrNotFound)
	w.paid(t, provider.Card)
	must(t, w.provider.NetCancel(t.Context(), cred(), code))
	must(t, w.provider.NetCancel(t.Context(), cred(), code))
	is(t, w.get(t), provider.PaymentCanceled, won, 0)
}
