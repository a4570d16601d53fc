package paymentstest

import (
	"context"
	"testing"
	"time"

	"hub.internal/services/payments"
)

func issued(t *testing.T, w *World) {
	s := w.issue(t, payments.VBank)
	is(t, s, payments.PaymentIssued, won, won)
	if s.TID == "" || s.CheckoutURL == "" || s.Account == nil || !s.PaidAt.IsZero() {
		t.Fatalf("%+v", s)
	}
	due := w.Now().Add(24 * time.Hour).Truncate(time.Second)
	if a := s.Account; a.Number == "" || a.BankCode != "004" || a.Holder != "Hub" || !a.ExpiresAt.Equal(due) {
		t.Errorf("%+v", a)
	}
	byTID, err := w.Provider.Get(t.Context(), w.Cred, payments.Ref{TID: s.TID, Code: code})
	must(t, err)
	is(t, byTID, payments.PaymentIssued, won, won)
	byTID, err = w.Provider.Get(t.Context(), w.Cred, payments.Ref{TID: s.TID})
	must(t, err)
	is(t, byTID, payments.PaymentIssued, won, won)
}

func pageFirst(t *testing.T, w *World) {
	s := w.issue(t, payments.VBank)
	is(t, s, payments.PaymentIssued, won, won)
	if s.TID != "" || s.CheckoutURL == "" || s.Account != nil {
		t.Fatalf("%+v", s)
	}
	_, err := w.Provider.Get(t.Context(), w.Cred, w.ref())
	fails(t, err, payments.ErrNotFound)
	must(t, w.Control.Begin(code))
	if s := w.get(t); s.Account == nil || s.TID == "" {
		t.Errorf("%+v", s)
	}
	if again := w.issue(t, payments.VBank); again.Account == nil || again.CheckoutURL != s.CheckoutURL {
		t.Errorf("%+v", again)
	}
}

func issuedAgain(t *testing.T, w *World) {
	first, second := w.issue(t, payments.VBank), w.issue(t, payments.VBank)
	if first.TID != second.TID || first.Account.Number != second.Account.Number || first.CheckoutURL != second.CheckoutURL {
		t.Errorf("%+v, then %+v", first, second)
	}
	if n := w.truth(t).Payments; n != 1 {
		t.Errorf("%d payments", n)
	}
	in := w.request(code, payments.VBank)
	in.Amount++
	_, err := w.Provider.Issue(t.Context(), w.Cred, in)
	fails(t, err, payments.ErrUnknown)
}

func cardPaid(t *testing.T, w *World) {
	ref := w.paid(t, payments.Card)
	s, err := w.Provider.Get(t.Context(), w.Cred, ref)
	must(t, err)
	is(t, s, payments.PaymentPaid, won, won)
	if !s.PaidAt.Equal(w.Now().Truncate(time.Millisecond)) || s.Account != nil || len(s.Cancels) != 0 {
		t.Errorf("%+v", s)
	}
}

func failedThenPaid(t *testing.T, w *World) {
	w.issue(t, payments.Card)
	must(t, w.Control.Fail(code))
	is(t, w.get(t), payments.PaymentFailed, won, won)
	must(t, w.Control.Pay(code))
	is(t, w.get(t), payments.PaymentPaid, won, won)
}

// daysLater: an order is found on whatever day its payer comes.
func daysLater(t *testing.T, w *World) {
	ref := w.ref()
	w.Advance(40 * time.Hour)
	w.issue(t, payments.VBank)
	w.Advance(20 * time.Hour)
	_, err := w.Provider.Get(t.Context(), w.Cred, ref)
	fails(t, err, payments.ErrNotFound)
	must(t, w.Control.Begin(code))
	s, err := w.Provider.Get(t.Context(), w.Cred, ref)
	must(t, err)
	is(t, s, payments.PaymentIssued, won, won)
}

func deposited(t *testing.T, w *World) {
	w.issue(t, payments.VBank)
	at := w.Now().Add(-time.Minute).Truncate(time.Second)
	must(t, w.Control.Deposit(code, won, at, 1))
	s := w.get(t)
	is(t, s, payments.PaymentPaid, won, won)
	if !s.PaidAt.Equal(at) {
		t.Errorf("paid at %s, want %s", s.PaidAt, at)
	}
}

func otherAmount(t *testing.T, w *World) {
	w.issue(t, payments.VBank)
	must(t, w.Control.Deposit(code, won-1, time.Time{}, 1))
	is(t, w.get(t), payments.PaymentPaid, won-1, won-1)
}

func lateDeposit(t *testing.T, w *World) {
	created := w.Now()
	w.issue(t, payments.VBank)
	w.Advance(25 * time.Hour)
	ref := payments.Ref{Code: code, CreatedAt: created}
	s, err := w.Provider.Get(t.Context(), w.Cred, ref)
	must(t, err)
	is(t, s, payments.PaymentExpired, won, won)
	at := created.Add(23 * time.Hour).Truncate(time.Second)
	must(t, w.Control.Deposit(code, won, at, 1))
	s, err = w.Provider.Get(t.Context(), w.Cred, ref)
	must(t, err)
	is(t, s, payments.PaymentPaid, won, won)
	if !s.PaidAt.Equal(at) {
		t.Errorf("paid at %s, want %s", s.PaidAt, at)
	}
}

func giveUp(ctx context.Context, w *World) (payments.Snapshot, error) {
	return w.Provider.Cancel(ctx, w.Cred, payments.CancelRequest{Ref: w.ref(), RefundCode: code + "-cancel", Reason: "canceled"})
}

func givenUp(t *testing.T, w *World) {
	w.issue(t, payments.VBank)
	for range 2 {
		s, err := giveUp(t.Context(), w)
		must(t, err)
		if is(t, s, payments.PaymentCanceled, won, 0); !s.PaidAt.IsZero() {
			t.Errorf("%+v", s)
		}
	}
	if truth := w.truth(t); len(truth.Cancels) != 1 || truth.Cancelled != 0 || !truth.Cancels[0].Unpaid {
		t.Errorf("%+v", truth)
	}
}

func paidMeanwhile(t *testing.T, w *World) {
	w.issue(t, payments.VBank)
	must(t, w.Control.Deposit(code, won, time.Time{}, 1))
	s, err := giveUp(t.Context(), w)
	fails(t, err, payments.ErrAlreadyPaid)
	is(t, s, payments.PaymentPaid, won, won)
	if truth := w.truth(t); truth.Cancelled != 0 {
		t.Errorf("%+v", truth)
	}
	must(t, w.Control.ConsoleCancel(code, 0))
	_, err = giveUp(t.Context(), w)
	fails(t, err, payments.ErrAlreadyPaid)
}

func expiredGivenUp(t *testing.T, w *World) {
	created := w.Now()
	w.issue(t, payments.VBank)
	w.Advance(25 * time.Hour)
	s, err := w.Provider.Cancel(t.Context(), w.Cred, payments.CancelRequest{Ref: payments.Ref{Code: code, CreatedAt: created},
		RefundCode: code + "-cancel", Reason: "canceled"})
	must(t, err)
	is(t, s, payments.PaymentExpired, won, won)
}

func closed(t *testing.T, w *World) {
	fails(t, w.Provider.Expire(t.Context(), w.Cred, w.ref()), payments.ErrNotFound)
	w.issue(t, payments.VBank)
	must(t, w.Provider.Expire(t.Context(), w.Cred, w.ref()))
	must(t, w.Provider.Expire(t.Context(), w.Cred, w.ref()))
	if err := w.Control.Begin(code); err == nil {
		t.Error("the payer has begun on a page that is closed")
	}
	in := w.request(other, payments.Card)
	_, err := w.Provider.Issue(t.Context(), w.Cred, in)
	must(t, err)
	must(t, w.Control.Pay(other))
	fails(t, w.Provider.Expire(t.Context(), w.Cred, payments.Ref{Code: other, CreatedAt: w.Now()}), payments.ErrAlreadyPaid)
}
