package paymentstest

import (
	"errors"
	"fmt"
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
		"a payer who comes days later":                {false, daysLater},
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
		"a refund of what was reversed":               {true, refundAfterReversal},
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
		if errors.Is(err, kind) != errors.Is(want, kind) {
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
		if !c.Returned {
			got[c.RefundCode] += c.Amount
		}
		if c.TID == "" || c.At.IsZero() {
			t.Errorf("%+v", c)
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("%v went back, want %v", got, want)
	}
}

func notFound(t *testing.T, w *World) {
	for _, ref := range []payments.Ref{w.ref(), {TID: "nobody", Code: code}} {
		_, err := w.Provider.Get(t.Context(), w.Cred, ref)
		fails(t, err, payments.ErrNotFound)
		_, err = w.Provider.Cancel(t.Context(), w.Cred, refund(ref, "rf_1", 1))
		fails(t, err, payments.ErrNotFound)
	}
}
