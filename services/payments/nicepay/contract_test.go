package nicepay_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"hub.internal/services/payments/pgsim"
	"hub.internal/services/payments/provider"
)

// TestNicepayKeepsTheContract: what the Service relies on of a provider.Port, row by row. Each has a simulator of its own; auto
// tells that virtual accounts are there at once.
func TestNicepayKeepsTheContract(t *testing.T) {
	for name, row := range map[string]struct {
		auto bool
		run  func(*testing.T, *sim)
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
			row.run(t, newSim(t, row.auto))
		})
	}
}

const (
	code  = "po_01JZ8Q6V7R3W9K2M4N5P6Q7R8S"
	other = "po_01JZ8Q6V7R3W9K2M4N5P6Q7R8T"
	won   = int64(11_000)
)

var account = &provider.RefundAccount{BankCode: "004", AccountNumber: "1234567890123", Holder: "홍길동"}

// request asks for an order of 11,000 won.
func (w *sim) request(code string, m provider.PayMethod) provider.IssueRequest {
	return provider.IssueRequest{Code: code, CreatedAt: w.clock.Now(), Amount: won, PayMethod: m, Name: "Liter top-up",
		ReturnURL: "https://hub.example/v1/pay/return/" + code, ValidHours: 24, Holder: "Hub", Buyer: provider.Buyer{Name: "CANARY-BUYER"}}
}

func (w *sim) issue(t *testing.T, m provider.PayMethod) provider.Snapshot {
	t.Helper()
	s, err := w.provider.Issue(t.Context(), cred(), w.request(code, m))
	must(t, err)
	return s
}

func (w *sim) ref() provider.PaymentRef {
	return provider.PaymentRef{Code: code, CreatedAt: w.clock.Now()}
}

func (w *sim) get(t *testing.T) provider.Snapshot {
	t.Helper()
	s, err := w.provider.Get(t.Context(), cred(), w.ref())
	must(t, err)
	return s
}

// paid issues an order and pays it.
func (w *sim) paid(t *testing.T, m provider.PayMethod) provider.PaymentRef {
	t.Helper()
	w.issue(t, m)
	if m == provider.Card {
		must(t, w.Pay(code))
	} else {
		must(t, w.Deposit(code, won, time.Time{}, 1))
	}
	return provider.PaymentRef{TID: w.get(t).TID, Code: code, CreatedAt: w.clock.Now()}
}

func refund(ref provider.PaymentRef, refundCode string, amount int64) provider.CancelRequest {
	in := provider.CancelRequest{Ref: ref, RefundCode: refundCode, Reason: "requested [rf_FORGED]", Account: account}
	if amount > 0 {
		in.Amount = &amount
	}
	return in
}

func (w *sim) truth(t *testing.T) pgsim.Truth {
	t.Helper()
	truth, found := w.Payment(code)
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
func is(t *testing.T, s provider.Snapshot, status provider.PaymentStatus, amount, balance int64) {
	t.Helper()
	if s.Code != code || s.Status != status || s.Amount != amount || s.Balance != balance {
		t.Fatalf("%s is %s with %d of %d left, want %s with %d of %d", s.Code, s.Status, s.Balance, s.Amount, status, balance, amount)
	}
}

// fails checks an error, and that no other one is meant.
func fails(t *testing.T, err, want error) {
	t.Helper()
	for _, kind := range []error{provider.ErrNotSent, provider.ErrUnknown, provider.ErrNotFound, provider.ErrAlreadyPaid,
		provider.ErrAlreadyCanceled, provider.ErrUnverified} {
		if errors.Is(err, kind) != errors.Is(want, kind) {
			t.Fatalf("%v, want %v alone", err, want)
		}
	}
}

// declined checks that a refusal was definite.
func declined(t *testing.T, err error, drift bool) {
	t.Helper()
	fails(t, err, nil)
	var d *provider.DeclinedError
	if !errors.As(err, &d) || d.Drift != drift || d.Code == "" {
		t.Fatalf("%v, want to be declined, drift %t", err, drift)
	}
}

func returned(t *testing.T, s provider.Snapshot, want map[string]int64) {
	t.Helper()
	got := map[string]int64{}
	for _, c := range s.Cancellations {
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

func notFound(t *testing.T, w *sim) {
	for _, ref := range []provider.PaymentRef{w.ref(), {TID: "nobody", Code: code}} {
		_, err := w.provider.Get(t.Context(), cred(), ref)
		fails(t, err, provider.ErrNotFound)
		_, err = w.provider.Cancel(t.Context(), cred(), refund(ref, "rf_1", 1))
		fails(t, err, provider.ErrNotFound)
	}
}
