package nicepay_test

import (
	"context"
	"testing"
	"time"

	"hub.internal/services/payments/provider"
)

func issued(t *testing.T, w *sim) {
	s := w.issue(t, provider.VBank)
	is(t, s, provider.PaymentIssued, won, won)
	if s.TID == "" || s.CheckoutURL == "" || s.Account == nil || !s.PaidAt.IsZero() {
		t.Fatalf("%+v", s)
	}
	due := w.clock.Now().Add(24 * time.Hour).Truncate(time.Second)
	if a := s.Account; a.Number == "" || a.BankCode != "004" || a.Holder != "Hub" || !a.ExpiresAt.Equal(due) {
		t.Errorf("%+v", a)
	}
	byTID, err := w.provider.Get(t.Context(), cred(), provider.PaymentRef{TID: s.TID, Code: code})
	must(t, err)
	is(t, byTID, provider.PaymentIssued, won, won)
	byTID, err = w.provider.Get(t.Context(), cred(), provider.PaymentRef{TID: s.TID})
	must(t, err)
	is(t, byTID, provider.PaymentIssued, won, won)
}

func pageFirst(t *testing.T, w *sim) {
	s := w.issue(t, provider.VBank)
	is(t, s, provider.PaymentIssued, won, won)
	if s.TID != "" || s.CheckoutURL == "" || s.Account != nil {
		t.Fatalf("%+v", s)
	}
	_, err := w.provider.Get(t.Context(), cred(), w.ref())
	fails(t, err, provider.ErrNotFound)
	must(t, w.Issue(code))
	if s := w.get(t); s.Account == nil || s.TID == "" {
		t.Errorf("%+v", s)
	}
	if again := w.issue(t, provider.VBank); again.Account == nil || again.CheckoutURL != s.CheckoutURL {
		t.Errorf("%+v", again)
	}
}

func issuedAgain(t *testing.T, w *sim) {
	first, second := w.issue(t, provider.VBank), w.issue(t, provider.VBank)
	if first.TID != second.TID || first.Account.Number != second.Account.Number || first.CheckoutURL != second.CheckoutURL {
		t.Errorf("%+v, then %+v", first, second)
	}
	if n := len(w.truth(t).Payments); n != 1 {
		t.Errorf("%d payments", n)
	}
	in := w.request(code, provider.VBank)
	in.Amount++
	_, err := w.provider.Issue(t.Context(), cred(), in)
	fails(t, err, provider.ErrUnknown)
}

func cardPaid(t *testing.T, w *sim) {
	ref := w.paid(t, provider.Card)
	s, err := w.provider.Get(t.Context(), cred(), ref)
	must(t, err)
	is(t, s, provider.PaymentPaid, won, won)
	if !s.PaidAt.Equal(w.clock.Now().Truncate(time.Millisecond)) || s.Account != nil || len(s.Cancellations) != 0 {
		t.Errorf("%+v", s)
	}
}

func failedThenPaid(t *testing.T, w *sim) {
	w.issue(t, provider.Card)
	must(t, w.Fail(code))
	is(t, w.get(t), provider.PaymentFailed, won, won)
	must(t, w.Pay(code))
	is(t, w.get(t), provider.PaymentPaid, won, won)
}

// daysLater: an order is found on whatever day its payer comes.
func daysLater(t *testing.T, w *sim) {
	ref := w.ref()
	w.clock.Advance(40 * time.Hour)
	w.issue(t, provider.VBank)
	w.clock.Advance(20 * time.Hour)
	_, err := w.provider.Get(t.Context(), cred(), ref)
	fails(t, err, provider.ErrNotFound)
	must(t, w.Issue(code))
	s, err := w.provider.Get(t.Context(), cred(), ref)
	must(t, err)
	is(t, s, provider.PaymentIssued, won, won)
}

func deposited(t *testing.T, w *sim) {
	w.issue(t, provider.VBank)
	at := w.clock.Now().Add(-time.Minute).Truncate(time.Second)
	must(t, w.Deposit(code, won, at, 1))
	s := w.get(t)
	is(t, s, provider.PaymentPaid, won, won)
	if !s.PaidAt.Equal(at) {
		t.Errorf("paid at %s, want %s", s.PaidAt, at)
	}
}

func otherAmount(t *testing.T, w *sim) {
	w.issue(t, provider.VBank)
	must(t, w.Deposit(code, won-1, time.Time{}, 1))
	is(t, w.get(t), provider.PaymentPaid, won-1, won-1)
}

func lateDeposit(t *testing.T, w *sim) {
	created := w.clock.Now()
	w.issue(t, provider.VBank)
	w.clock.Advance(25 * time.Hour)
	ref := provider.PaymentRef{Code: code, CreatedAt: created}
	s, err := w.provider.Get(t.Context(), cred(), ref)
	must(t, err)
	is(t, s, provider.PaymentExpired, won, won)
	at := created.Add(23 * time.Hour).Truncate(time.Second)
	must(t, w.Deposit(code, won, at, 1))
	s, err = w.provider.Get(t.Context(), cred(), ref)
	must(t, err)
	is(t, s, provider.PaymentPaid, won, won)
	if !s.PaidAt.Equal(at) {
		t.Errorf("paid at %s, want %s", s.PaidAt, at)
	}
}

func giveUp(ctx context.Context, w *sim) (provider.Snapshot, error) {
	return w.provider.Cancel(ctx, cred(), provider.CancelRequest{Ref: w.ref(), RefundCode: code + "-cancel", Reason: "canceled"})
}

func givenUp(t *testing.T, w *sim) {
	w.issue(t, provider.VBank)
	for range 2 {
		s, err := giveUp(t.Context(), w)
		must(t, err)
		if is(t, s, provider.PaymentCanceled, won, 0); !s.PaidAt.IsZero() {
			t.Errorf("%+v", s)
		}
	}
	if truth := w.truth(t); len(truth.Cancels) != 1 || truth.Cancelled != 0 || !truth.Cancels[0].Unpaid {
		t.Errorf("%+v", truth)
	}
}

func paidMeanwhile(t *testing.T, w *sim) {
	w.issue(t, provider.VBank)
	must(t, w.Deposit(code, won, time.Time{}, 1))
	s, err := giveUp(t.Context(), w)
	fails(t, err, provider.ErrAlreadyPaid)
	is(t, s, provider.PaymentPaid, won, won)
	if truth := w.truth(t); truth.Cancelled != 0 {
		t.Errorf("%+v", truth)
	}
	must(t, w.ConsoleCancel(code, 0))
	_, err = giveUp(t.Context(), w)
	fails(t, err, provider.ErrAlreadyPaid)
}

func expiredGivenUp(t *testing.T, w *sim) {
	created := w.clock.Now()
	w.issue(t, provider.VBank)
	w.clock.Advance(25 * time.Hour)
	s, err := w.provider.Cancel(t.Context(), cred(), provider.CancelRequest{Ref: provider.PaymentRef{Code: code, CreatedAt: created},
		RefundCode: code + "-cancel", Reason: "canceled"})
	must(t, err)
	is(t, s, provider.PaymentExpired, won, won)
}

func closed(t *testing.T, w *sim) {
	fails(t, w.provider.Expire(t.Context(), cred(), w.ref()), provider.ErrNotFound)
	w.issue(t, provider.VBank)
	must(t, w.provider.Expire(t.Context(), cred(), w.ref()))
	must(t, w.provider.Expire(t.Context(), cred(), w.ref()))
	if err := w.Issue(code); err == nil {
		t.Error("the payer has begun on a page that is closed")
	}
	in := w.request(other, provider.Card)
	_, err := w.provider.Issue(t.Context(), cred(), in)
	must(t, err)
	must(t, w.Pay(other))
	fails(t, w.provider.Expire(t.Context(), cred(), provider.PaymentRef{Code: other, CreatedAt: w.clock.Now()}), provider.ErrAlreadyPaid)
}
