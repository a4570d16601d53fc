package paymentstest

import (
	"bytes"
	"fmt"
	"net/http"
	"testing"
	"time"

	"hub.internal/services/payments"
)

func declinedIssue(t *testing.T, w *World) {
	must(t, w.Control.Arm(Fault{Kind: Decline, On: OnIssue, Code: "2152"}))
	_, err := w.Provider.Issue(t.Context(), w.Cred, w.request(code, payments.VBank))
	declined(t, err, false)
	if _, found := w.Control.Truth(code); found {
		t.Error("the provider has begun what it declined")
	}
}

func unknownIssue(t *testing.T, w *World) {
	for i, kind := range []string{TimeoutBefore, ServerError, TimeoutAfter, Garbage, WrongOrder} {
		must(t, w.Control.Arm(Fault{Kind: kind, On: OnIssue}))
		in := w.request(fmt.Sprint(code[:28], i), payments.VBank)
		_, err := w.Provider.Issue(t.Context(), w.Cred, in)
		fails(t, err, payments.ErrUnknown)
		s, err := w.Provider.Issue(t.Context(), w.Cred, in)
		must(t, err)
		if truth, _ := w.Control.Truth(in.Code); truth.Payments != 1 || s.TID != truth.TID || s.Code != in.Code {
			t.Errorf("%s: %+v of %+v", kind, s, truth)
		}
	}
	must(t, w.Control.Arm(Fault{Kind: Duplicate, On: OnIssue}))
	is(t, w.issue(t, payments.VBank), payments.PaymentIssued, won, won)
	if truth := w.truth(t); truth.Payments != 1 {
		t.Errorf("%d payments", truth.Payments)
	}
}

func unknownRefund(t *testing.T, w *World) {
	ref, left := w.paid(t, payments.VBank), won
	for _, kind := range []string{TimeoutBefore, ServerError, TimeoutAfter, Garbage, WrongOrder, Duplicate} {
		must(t, w.Control.Arm(Fault{Kind: kind, On: OnCancel}))
		in := refund(ref, "rf_"+kind, 100)
		if _, err := w.Provider.Cancel(t.Context(), w.Cred, in); kind != Duplicate {
			fails(t, err, payments.ErrUnknown)
		}
		s, err := w.Provider.Cancel(t.Context(), w.Cred, in)
		must(t, err)
		if left -= 100; s.Balance != left || w.truth(t).Cancelled != won-left {
			t.Errorf("%s: %d left, want %d, of %+v", kind, s.Balance, left, w.truth(t))
		}
	}
}

func unbelievable(t *testing.T, w *World) {
	ref := w.paid(t, payments.VBank)
	for _, kind := range []string{TimeoutBefore, TimeoutAfter, ServerError, Garbage, WrongOrder, Decline} {
		for _, ref := range []payments.Ref{ref, w.ref()} {
			must(t, w.Control.Arm(Fault{Kind: kind, On: OnGet, Code: "U104"}))
			s, err := w.Provider.Get(t.Context(), w.Cred, ref)
			if fails(t, err, payments.ErrUnknown); s.Status != "" {
				t.Errorf("%s: %+v", kind, s)
			}
		}
	}
	is(t, w.get(t), payments.PaymentPaid, won, won)
}

func sameAccount(t *testing.T, w *World) {
	first := w.issue(t, payments.VBank)
	must(t, w.Control.SameAccount(code))
	second, err := w.Provider.Issue(t.Context(), w.Cred, w.request(other, payments.VBank))
	must(t, err)
	if first.Account.Number != second.Account.Number || first.TID == second.TID {
		t.Fatalf("%+v and %+v", first, second)
	}
	must(t, w.Control.Deposit(other, won, time.Time{}, 1))
	is(t, w.get(t), payments.PaymentIssued, won, won)
}

// event verifies a webhook.
func (w *World) event(t *testing.T, h Webhook) payments.Event {
	t.Helper()
	e, err := w.Provider.VerifyWebhook(h.ContentType, h.Body, []payments.Cred{w.Cred})
	must(t, err)
	return e
}

func toldOften(t *testing.T, w *World) {
	s := w.issue(t, payments.VBank)
	first := w.Webhooks()
	if len(first) != 1 {
		t.Fatalf("%d webhooks of an account", len(first))
	}
	must(t, w.Control.Deposit(code, won, time.Time{}, 3))
	all := w.Webhooks()
	if len(all) != 3 {
		t.Fatalf("%d webhooks of a deposit", len(all))
	}
	for _, h := range all {
		e := w.event(t, h)
		if e.TID != s.TID || e.Code != code || e.Kind != payments.EventPayment {
			t.Errorf("%+v", e)
		}
		if e.Key != w.event(t, all[0]).Key || e.Key == w.event(t, first[0]).Key {
			t.Errorf("%+v", e)
		}
	}
}

func verified(t *testing.T, w *World) {
	w.issue(t, payments.VBank)
	h := w.Webhooks()[0]
	id, secret := w.Cred.Reveal()
	strange := payments.NewCred(7, payments.Sandbox, id, secret+"x")
	empty := payments.NewCred(7, payments.Sandbox, "", "")
	for _, creds := range [][]payments.Cred{nil, {strange}, {empty}} {
		_, err := w.Provider.VerifyWebhook(h.ContentType, h.Body, creds)
		fails(t, err, payments.ErrUnverified)
	}
	e, err := w.Provider.VerifyWebhook(h.ContentType, h.Body, []payments.Cred{strange, empty, w.Cred})
	must(t, err)
	if e.Cred != w.Cred {
		t.Errorf("verified with %s", e.Cred)
	}
	for _, body := range []string{"", "null", "[]", "{", `{"status":"paid"}`, string(h.Body[:len(h.Body)-1])} {
		_, err := w.Provider.VerifyWebhook(h.ContentType, []byte(body), []payments.Cred{w.Cred})
		if e, _ := w.Provider.VerifyWebhook(h.ContentType, []byte(body), []payments.Cred{w.Cred}); e.Kind != payments.EventTest {
			fails(t, err, payments.ErrUnverified)
		}
	}
	if status, kind, body := w.Provider.Ack(true); status != http.StatusOK || kind != "text/html;charset=utf-8" || body != "OK" {
		t.Errorf("%d %s %s", status, kind, body)
	}
	if status, _, body := w.Provider.Ack(false); status != http.StatusInternalServerError || body == "OK" {
		t.Errorf("%d %s", status, body)
	}
}

// edited: the signature does not cover the status (SPEC.md 12, row 12).
func edited(t *testing.T, w *World) {
	w.issue(t, payments.VBank)
	h := w.Webhooks()[0]
	was := string(w.get(t).Status)
	body := bytes.ReplaceAll(h.Body, []byte(`"status":"ready"`), []byte(`"status":"paid"`))
	body = bytes.ReplaceAll(body, []byte(`"status":"issued"`), []byte(`"status":"paid"`))
	e, err := w.Provider.VerifyWebhook(h.ContentType, body, []payments.Cred{w.Cred})
	must(t, err)
	if e.Status != "paid" || e.Key == w.event(t, h).Key {
		t.Errorf("%+v", e)
	}
	if is(t, w.get(t), payments.PaymentIssued, won, won); was != "issued" {
		t.Errorf("it was %s", was)
	}
	body = bytes.ReplaceAll(h.Body, []byte(`"amount":11000`), []byte(`"amount":1100`))
	_, err = w.Provider.VerifyWebhook(h.ContentType, body, []payments.Cred{w.Cred})
	fails(t, err, payments.ErrUnverified)
}

func lost(t *testing.T, w *World) {
	must(t, w.Control.Arm(Fault{Kind: Drop, On: OnWebhook}))
	w.issue(t, payments.VBank)
	if n := len(w.Webhooks()); n != 0 {
		t.Fatalf("%d webhooks", n)
	}
	must(t, w.Control.Arm(Fault{Kind: Duplicate, On: OnWebhook}))
	must(t, w.Control.Deposit(code, won, time.Time{}, 1))
	if n := len(w.Webhooks()); n != 2 {
		t.Fatalf("%d webhooks", n)
	}
	must(t, w.Control.Arm(Fault{Kind: WrongOrder, On: OnWebhook}))
	must(t, w.Control.ConsoleCancel(code, 1))
	if all := w.Webhooks(); len(all) != 1 || w.event(t, all[0]).Code == code {
		t.Errorf("%d webhooks", len(all))
	}
	must(t, w.Control.Arm(Fault{Kind: Garbage, On: OnWebhook}))
	must(t, w.Control.ConsoleCancel(code, 1))
	for _, h := range w.Webhooks() {
		_, err := w.Provider.VerifyWebhook(h.ContentType, h.Body, []payments.Cred{w.Cred})
		fails(t, err, payments.ErrUnverified)
	}
	s := w.get(t)
	is(t, s, payments.PaymentPaid, won, won-2)
}

func secondDeposit(t *testing.T, w *World) {
	ref := w.paid(t, payments.VBank)
	w.Webhooks()
	must(t, w.Control.Deposit(code, won, time.Time{}, 1))
	all := w.Webhooks()
	if len(all) != 1 {
		t.Fatalf("%d webhooks", len(all))
	}
	e := w.event(t, all[0])
	if e.TID == ref.TID || e.Code != code {
		t.Fatalf("%+v", e)
	}
	s, err := w.Provider.Get(t.Context(), w.Cred, payments.Ref{TID: e.TID, Code: code})
	must(t, err)
	is(t, s, payments.PaymentPaid, won, won)
	if got := w.get(t); got.TID != ref.TID {
		t.Errorf("the order is paid by %s, want %s", got.TID, ref.TID)
	}
	if truth := w.truth(t); truth.Paid != 2*won || truth.Payments != 2 {
		t.Errorf("%+v", truth)
	}
}

func webhookFirst(t *testing.T, w *World) {
	must(t, w.Control.Arm(Fault{Kind: WebhookFirst, On: OnIssue}))
	w.issue(t, payments.VBank)
}

func nothingSecret(t *testing.T, w *World) {
	ref := w.paid(t, payments.VBank)
	s, err := w.Provider.Cancel(t.Context(), w.Cred, refund(ref, "rf_1", 1))
	must(t, err)
	_, secret := w.Cred.Reveal()
	for _, canary := range []string{secret, account.AccountNumber, "CANARY-BUYER", "signature"} {
		if bytes.Contains(s.Raw, []byte(canary)) {
			t.Errorf("%q is in %s", canary, s.Raw)
		}
	}
	if len(s.Raw) == 0 {
		t.Error("an operator sees nothing")
	}
}
