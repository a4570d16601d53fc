package paymentstest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"hub.internal/services/payments"
)

// World is a provider, who plays with it, and its clock.
type World struct {
	Provider payments.Provider
	Control  Control
	Cred     payments.Cred
	Now      func() time.Time
	Advance  func(time.Duration) time.Time
	// Webhooks waits until everything that was told has arrived, and answers what has come since it was last asked.
	Webhooks func() []Webhook
}

// Contract is what every provider has to keep to. Start makes a world of its own for each row; auto is whether virtual
// accounts are there at once.
func Contract(t *testing.T, start func(t *testing.T, auto bool) *World) {
	for name, row := range map[string]struct {
		auto bool
		run  func(*testing.T, *World)
	}{
		"issue answers the account":                   {true, issued},
		"issue answers a page":                        {false, pageFirst},
		"issue again finds the same":                  {true, issuedAgain},
		"a card is paid on the page":                  {false, cardPaid},
		"a failed attempt and a later one":            {false, failedThenPaid},
		"a deposit is paid":                           {true, deposited},
		"another amount is answered as it is":         {true, otherAmount},
		"an account expires, and money comes late":    {true, lateDeposit},
		"an account is given up":                      {true, givenUp},
		"what is paid is not given up":                {true, paidMeanwhile},
		"an expired account is given up":              {true, expiredGivenUp},
		"a page is closed":                            {false, closed},
		"a refund in parts":                           {true, refundInParts},
		"a refund of all":                             {false, refundOfAll},
		"a refund that names no account":              {true, noAccount},
		"more than is left":                           {true, moreThanLeft},
		"what went back otherwise":                    {false, wentBackOtherwise},
		"a refund that a provider declines":           {false, declinedRefund},
		"twenty times the same refund":                {false, sameRefundAtOnce},
		"a cancel on the provider's own pages":        {false, consoleCancel},
		"a deposit is reversed":                       {true, reversed},
		"a refund fails later":                        {true, failsLater},
		"an approval is undone":                       {false, undone},
		"nobody knows the payment":                    {false, notFound},
		"a declined issue has done nothing":           {true, declinedIssue},
		"an issue whose outcome is unknown":           {true, unknownIssue},
		"a refund whose outcome is unknown":           {true, unknownRefund},
		"an answer that is not to be believed":        {true, unbelievable},
		"one account for two orders":                  {true, sameAccount},
		"a webhook is told many times":                {true, toldOften},
		"webhooks are verified":                       {true, verified},
		"a webhook that was edited is a hint":         {true, edited},
		"webhooks are lost and overtaken":             {true, lost},
		"a second deposit is another payment":         {true, secondDeposit},
		"a webhook can come before the answer":        {true, webhookFirst},
		"nothing secret is in what an operator reads": {true, nothingSecret},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			row.run(t, start(t, row.auto))
		})
	}
}

const (
	code  = "po_01JZ8Q6V7R3W9K2M4N5P6Q7R8S"
	other = "po_01JZ8Q6V7R3W9K2M4N5P6Q7R8T"
	won   = int64(11_000)
)

var account = &payments.RefundAccount{BankCode: "004", AccountNumber: "1234567890123", Holder: "홍길동"}

// request asks for an order of 11,000 won.
func (w *World) request(code string, m payments.PayMethod) payments.IssueRequest {
	return payments.IssueRequest{Code: code, CreatedAt: w.Now(), Amount: won, PayMethod: m, Name: "Liter top-up",
		ReturnURL: "https://hub.example/v1/pay/return/" + code, ValidHours: 24, Holder: "Hub", Buyer: payments.Buyer{Name: "CANARY-BUYER"}}
}

func (w *World) issue(t *testing.T, m payments.PayMethod) payments.Snapshot {
	t.Helper()
	s, err := w.Provider.Issue(t.Context(), w.Cred, w.request(code, m))
	must(t, err)
	return s
}

func (w *World) ref() payments.Ref { return payments.Ref{Code: code, CreatedAt: w.Now()} }

func (w *World) get(t *testing.T) payments.Snapshot {
	t.Helper()
	s, err := w.Provider.Get(t.Context(), w.Cred, w.ref())
	must(t, err)
	return s
}

// paid issues an order and pays it.
func (w *World) paid(t *testing.T, m payments.PayMethod) payments.Ref {
	t.Helper()
	w.issue(t, m)
	if m == payments.Card {
		must(t, w.Control.Pay(code))
	} else {
		must(t, w.Control.Deposit(code, won, time.Time{}, 1))
	}
	return payments.Ref{TID: w.get(t).TID, Code: code, CreatedAt: w.Now()}
}

func refund(ref payments.Ref, refundCode string, amount int64) payments.CancelRequest {
	in := payments.CancelRequest{Ref: ref, RefundCode: refundCode, Reason: "requested [rf_FORGED]", Account: account}
	if amount > 0 {
		in.Amount = &amount
	}
	return in
}

func (w *World) truth(t *testing.T) Truth {
	t.Helper()
	truth, found := w.Control.Truth(code)
	if !found {
		t.Fatal("the provider knows no such order")
	}
	return truth
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// is checks a snapshot of the order.
func is(t *testing.T, s payments.Snapshot, status payments.PaymentStatus, amount, balance int64) {
	t.Helper()
	if s.Code != code || s.Status != status || s.Amount != amount || s.Balance != balance {
		t.Fatalf("%s is %s with %d of %d left, want %s with %d of %d", s.Code, s.Status, s.Balance, s.Amount, status, balance, amount)
	}
}

// fails checks an error, and that no other one is meant.
func fails(t *testing.T, err, want error) {
	t.Helper()
	for _, kind := range []error{payments.ErrNotSent, payments.ErrUnknown, payments.ErrNotFound, payments.ErrAlreadyPaid,
		payments.ErrAlreadyCanceled, payments.ErrUnverified} {
		if errors.Is(err, kind) != (kind == want) {
			t.Fatalf("%v, want %v alone", err, want)
		}
	}
}

// declined checks that a refusal was definite.
func declined(t *testing.T, err error, drift bool) {
	t.Helper()
	fails(t, err, nil)
	var d *payments.DeclinedError
	if !errors.As(err, &d) || d.Drift != drift || d.Code == "" {
		t.Fatalf("%v, want to be declined, drift %t", err, drift)
	}
}

func returned(t *testing.T, s payments.Snapshot, want map[string]int64) {
	t.Helper()
	got := map[string]int64{}
	for _, c := range s.Cancels {
		got[c.RefundCode] += c.Amount
		if c.TID == "" || c.At.IsZero() {
			t.Errorf("%+v", c)
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("%v went back, want %v", got, want)
	}
}

func issued(t *testing.T, w *World) {
	s := w.issue(t, payments.VBank)
	is(t, s, payments.PaymentIssued, won, won)
	if s.TID == "" || s.CheckoutURL == "" || s.Account == nil || !s.PaidAt.IsZero() || !s.ReversedAt.IsZero() {
		t.Fatalf("%+v", s)
	}
	if a := s.Account; a.Number == "" || a.BankCode != "004" || a.Holder != "Hub" || !a.ExpiresAt.Equal(w.Now().Add(24*time.Hour).Truncate(time.Second)) {
		t.Errorf("%+v", a)
	}
	byTID, err := w.Provider.Get(t.Context(), w.Cred, payments.Ref{TID: s.TID, Code: code})
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

func giveUp(w *World, ctx context.Context) (payments.Snapshot, error) {
	return w.Provider.Cancel(ctx, w.Cred, payments.CancelRequest{Ref: w.ref(), RefundCode: code + "-cancel", Reason: "canceled"})
}

func givenUp(t *testing.T, w *World) {
	w.issue(t, payments.VBank)
	for range 2 {
		s, err := giveUp(w, t.Context())
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
	s, err := giveUp(w, t.Context())
	fails(t, err, payments.ErrAlreadyPaid)
	is(t, s, payments.PaymentPaid, won, won)
	if truth := w.truth(t); truth.Cancelled != 0 {
		t.Errorf("%+v", truth)
	}
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

func refundInParts(t *testing.T, w *World) {
	ref := w.paid(t, payments.VBank)
	for range 2 { // the same refund again is the same refund
		s, err := w.Provider.Cancel(t.Context(), w.Cred, refund(ref, "rf_1", 4_000))
		must(t, err)
		is(t, s, payments.PaymentPaid, won, 7_000)
		returned(t, s, map[string]int64{"rf_1": 4_000})
	}
	s, err := w.Provider.Cancel(t.Context(), w.Cred, refund(ref, "rf_2", 7_000))
	must(t, err)
	is(t, s, payments.PaymentCanceled, won, 0)
	returned(t, w.get(t), map[string]int64{"rf_1": 4_000, "rf_2": 7_000})
	s, err = w.Provider.Cancel(t.Context(), w.Cred, refund(ref, "rf_1", 4_000))
	must(t, err)
	is(t, s, payments.PaymentCanceled, won, 0)
	if truth := w.truth(t); truth.Cancelled != won || len(truth.Cancels) != 2 {
		t.Errorf("%+v", truth)
	}
}

func refundOfAll(t *testing.T, w *World) {
	w.paid(t, payments.Card)
	in := refund(w.ref(), "rf_1", 0) // without a tid
	s, err := w.Provider.Cancel(t.Context(), w.Cred, in)
	must(t, err)
	is(t, s, payments.PaymentCanceled, won, 0)
	returned(t, s, map[string]int64{"rf_1": won})
	if s.PaidAt.IsZero() {
		t.Error("it was paid before it went back")
	}
}

func noAccount(t *testing.T, w *World) {
	in := refund(w.paid(t, payments.VBank), "rf_1", 1)
	in.Account = nil
	_, err := w.Provider.Cancel(t.Context(), w.Cred, in)
	declined(t, err, false)
	if !w.Provider.Caps(payments.VBank).NeedsRefundAccount || w.Provider.Caps(payments.Card).NeedsRefundAccount {
		t.Error("a virtual account is paid back to an account, a card is not")
	}
}

func moreThanLeft(t *testing.T, w *World) {
	ref := w.paid(t, payments.VBank)
	_, err := w.Provider.Cancel(t.Context(), w.Cred, refund(ref, "rf_1", won+1))
	declined(t, err, true)
	_, err = w.Provider.Cancel(t.Context(), w.Cred, refund(ref, "rf_2", 10_000))
	must(t, err)
	_, err = w.Provider.Cancel(t.Context(), w.Cred, refund(ref, "rf_3", 1_001))
	declined(t, err, true)
	if truth := w.truth(t); truth.Cancelled != 10_000 {
		t.Errorf("%+v", truth)
	}
}

func wentBackOtherwise(t *testing.T, w *World) {
	ref := w.paid(t, payments.Card)
	must(t, w.Control.ConsoleCancel(code, 0))
	s, err := w.Provider.Cancel(t.Context(), w.Cred, refund(ref, "rf_1", 1))
	fails(t, err, payments.ErrAlreadyCanceled)
	returned(t, s, map[string]int64{"": won})
}

func declinedRefund(t *testing.T, w *World) {
	ref := w.paid(t, payments.Card)
	for _, code := range []string{"2016", "2029"} {
		must(t, w.Control.Arm(Fault{Kind: Decline, On: OnCancel, Code: code}))
		_, err := w.Provider.Cancel(t.Context(), w.Cred, refund(ref, "rf_1", 1))
		declined(t, err, false)
	}
	s, err := w.Provider.Cancel(t.Context(), w.Cred, refund(ref, "rf_1", 1))
	must(t, err)
	is(t, s, payments.PaymentPaid, won, won-1)
}

func sameRefundAtOnce(t *testing.T, w *World) {
	ref := w.paid(t, payments.Card)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if s, err := w.Provider.Cancel(t.Context(), w.Cred, refund(ref, "rf_1", 6_000)); err != nil || s.Balance != 5_000 {
				t.Errorf("%d left, %v", s.Balance, err)
			}
		})
	}
	all.Wait()
	if truth := w.truth(t); truth.Cancelled != 6_000 {
		t.Errorf("%+v", truth)
	}
}

func consoleCancel(t *testing.T, w *World) {
	w.paid(t, payments.Card)
	must(t, w.Control.ConsoleCancel(code, 1_000))
	s := w.get(t)
	is(t, s, payments.PaymentPaid, won, 10_000)
	returned(t, s, map[string]int64{"": 1_000})
}

func reversed(t *testing.T, w *World) {
	w.paid(t, payments.VBank)
	must(t, w.Control.Reverse(code))
	s := w.get(t)
	if is(t, s, payments.PaymentIssued, won, won); !s.PaidAt.IsZero() || s.Account == nil || !s.ReversedAt.Equal(w.Now()) {
		t.Errorf("%+v", s)
	}
	ref := w.ref()
	w.Advance(25 * time.Hour)
	if s, err := w.Provider.Get(t.Context(), w.Cred, ref); err != nil || s.Status != payments.PaymentExpired || s.ReversedAt.IsZero() {
		t.Errorf("past due: %+v, %v", s, err)
	}
	must(t, w.Control.Deposit(code, won, time.Time{}, 1))
	s, err := w.Provider.Get(t.Context(), w.Cred, ref)
	must(t, err)
	if is(t, s, payments.PaymentPaid, won, won); !s.ReversedAt.IsZero() {
		t.Errorf("paid again: %+v", s)
	}
	seen := map[string]bool{}
	for _, h := range w.Webhooks() {
		e, err := w.Provider.VerifyWebhook(h.ContentType, h.Body, []payments.Cred{w.Cred})
		must(t, err)
		seen[e.Key] = true
	}
	if len(seen) != 4 {
		t.Errorf("%d keys for an account, a deposit, its reversal and another deposit", len(seen))
	}
}

func failsLater(t *testing.T, w *World) {
	ref := w.paid(t, payments.VBank)
	_, err := w.Provider.Cancel(t.Context(), w.Cred, refund(ref, "rf_1", 0))
	must(t, err)
	must(t, w.Control.FailRefundLater("rf_1"))
	s := w.get(t)
	is(t, s, payments.PaymentPaid, won, won)
	returned(t, s, map[string]int64{})
	s, err = w.Provider.Cancel(t.Context(), w.Cred, refund(ref, "rf_2", 0))
	must(t, err)
	returned(t, s, map[string]int64{"rf_2": won})
}

func undone(t *testing.T, w *World) {
	fails(t, w.Provider.NetCancel(t.Context(), w.Cred, code), payments.ErrNotFound)
	w.paid(t, payments.Card)
	must(t, w.Provider.NetCancel(t.Context(), w.Cred, code))
	must(t, w.Provider.NetCancel(t.Context(), w.Cred, code))
	is(t, w.get(t), payments.PaymentCanceled, won, 0)
}

func notFound(t *testing.T, w *World) {
	for _, ref := range []payments.Ref{w.ref(), {TID: "nobody", Code: code}} {
		_, err := w.Provider.Get(t.Context(), w.Cred, ref)
		fails(t, err, payments.ErrNotFound)
		_, err = w.Provider.Cancel(t.Context(), w.Cred, refund(ref, "rf_1", 1))
		fails(t, err, payments.ErrNotFound)
	}
}
