package nicepay_test

import (
	"bytes"
	"fmt"
	"net/http"
	"testing"
	"time"

	"hub.internal/services/payments/credentials"
	"hub.internal/services/payments/pgsim"
	"hub.internal/services/payments/provider"
)

func declinedIssue(t *testing.T, w *sim) {
	must(t, w.Arm(pgsim.Fault{Kind: pgsim.Decline, On: "issue", Code: "2152"}))
	_, err := w.provider.Issue(t.Context(), cred(), w.request(code, provider.VBank))
	declined(t, err, false)
	if _, found := w.Payment(code); found {
		t.Error("the provider has begun what it declined")
	}
}

func unknownIssue(t *testing.T, w *sim) {
	for i, kind := range []string{pgsim.TimeoutBefore, pgsim.ServerError, pgsim.TimeoutAfter, pgsim.Garbage, pgsim.WrongOrder} {
		must(t, w.Arm(pgsim.Fault{Kind: kind, On: "issue"}))
		in := w.request(fmt.Sprint(code[:28], i), provider.VBank)
		_, err := w.provider.Issue(t.Context(), cred(), in)
		fails(t, err, provider.ErrUnknown)
		s, err := w.provider.Issue(t.Context(), cred(), in)
		must(t, err)
		if truth, _ := w.Payment(in.Code); len(truth.Payments) != 1 || s.TID != truth.TID || s.Code != in.Code {
			t.Errorf("%s: %+v of %+v", kind, s, truth)
		}
	}
	must(t, w.Arm(pgsim.Fault{Kind: pgsim.Duplicate, On: "issue"}))
	is(t, w.issue(t, provider.VBank), provider.PaymentIssued, won, won)
	if truth := w.truth(t); len(truth.Payments) != 1 {
		t.Errorf("%d payments", len(truth.Payments))
	}
}

func unknownRefund(t *testing.T, w *sim) {
	ref, left := w.paid(t, provider.VBank), won
	for _, kind := range []string{pgsim.TimeoutBefore, pgsim.ServerError, pgsim.TimeoutAfter, pgsim.Garbage, pgsim.WrongOrder,
		pgsim.Duplicate} {
		must(t, w.Arm(pgsim.Fault{Kind: kind, On: "cancel"}))
		in := refund(ref, "rf_"+kind, 100)
		if _, err := w.provider.Cancel(t.Context(), cred(), in); kind != pgsim.Duplicate {
			fails(t, err, provider.ErrUnknown)
		}
		s, err := w.provider.Cancel(t.Context(), cred(), in)
		must(t, err)
		if left -= 100; s.Balance != left || w.truth(t).Cancelled != won-left {
			t.Errorf("%s: %d left, want %d, of %+v", kind, s.Balance, left, w.truth(t))
		}
	}
}

func unbelievable(t *testing.T, w *sim) {
	ref := w.paid(t, provider.VBank)
	for _, kind := range []string{pgsim.TimeoutBefore, pgsim.TimeoutAfter, pgsim.ServerError, pgsim.Garbage, pgsim.WrongOrder, pgsim.Decline} {
		for _, ref := range []provider.PaymentRef{ref, w.ref()} {
			must(t, w.Arm(pgsim.Fault{Kind: kind, On: "get", Code: "U104"}))
			s, err := w.provider.Get(t.Context(), cred(), ref)
			if fails(t, err, provider.ErrUnknown); s.Status != "" {
				t.Errorf("%s: %+v", kind, s)
			}
		}
	}
	is(t, w.get(t), provider.PaymentPaid, won, won)
}

func sameAccount(t *testing.T, w *sim) {
	first := w.issue(t, provider.VBank)
	must(t, w.SameAccount(code))
	second, err := w.provider.Issue(t.Context(), cred(), w.request(other, provider.VBank))
	must(t, err)
	if first.Account.Number != second.Account.Number || first.TID == second.TID {
		t.Fatalf("%+v and %+v", first, second)
	}
	must(t, w.Deposit(other, won, time.Time{}, 1))
	is(t, w.get(t), provider.PaymentIssued, won, won)
}

// event verifies a webhook.
func (w *sim) event(t *testing.T, h webhook) provider.WebhookEvent {
	t.Helper()
	e, err := w.provider.VerifyWebhook(h.ContentType, h.Body, []credentials.Unsealed{cred()})
	must(t, err)
	return e
}

func toldOften(t *testing.T, w *sim) {
	s := w.issue(t, provider.VBank)
	first := w.webhooks(t)
	if len(first) != 1 {
		t.Fatalf("%d webhooks of an account", len(first))
	}
	must(t, w.Deposit(code, won, time.Time{}, 3))
	all := w.webhooks(t)
	if len(all) != 3 {
		t.Fatalf("%d webhooks of a deposit", len(all))
	}
	for _, h := range all {
		e := w.event(t, h)
		if e.TID != s.TID || e.Code != code || e.Kind != provider.WebhookOfPayment {
			t.Errorf("%+v", e)
		}
		if e.Key != w.event(t, all[0]).Key || e.Key == w.event(t, first[0]).Key {
			t.Errorf("%+v", e)
		}
	}
}

func verified(t *testing.T, w *sim) {
	w.issue(t, provider.VBank)
	h := w.webhooks(t)[0]
	id, secret := cred().Reveal()
	strange := credentials.NewUnsealed(7, credentials.Sandbox, id, secret+"x")
	empty := credentials.NewUnsealed(7, credentials.Sandbox, "", "")
	for _, creds := range [][]credentials.Unsealed{nil, {strange}, {empty}} {
		_, err := w.provider.VerifyWebhook(h.ContentType, h.Body, creds)
		fails(t, err, provider.ErrUnverified)
	}
	e, err := w.provider.VerifyWebhook(h.ContentType, h.Body, []credentials.Unsealed{strange, empty, cred()})
	must(t, err)
	if e.Credential != cred() {
		t.Errorf("verified with %s", e.Credential)
	}
	for _, body := range []string{"", "null", "[]", "{", `{"status":"paid"}`, string(h.Body[:len(h.Body)-1])} {
		_, err := w.provider.VerifyWebhook(h.ContentType, []byte(body), []credentials.Unsealed{cred()})
		if e, _ := w.provider.VerifyWebhook(h.ContentType, []byte(body), []credentials.Unsealed{cred()}); e.Kind != provider.WebhookTrial {
			fails(t, err, provider.ErrUnverified)
		}
	}
	if status, kind, body := w.provider.Ack(true); status != http.StatusOK || kind != "text/html;charset=utf-8" || body != "OK" {
		t.Errorf("%d %s %s", status, kind, body)
	}
	if status, _, body := w.provider.Ack(false); status != http.StatusInternalServerError || body == "OK" {
		t.Errorf("%d %s", status, body)
	}
}

// edited: the signature does not cover the status (SPEC.md 12, row 12).
func edited(t *testing.T, w *sim) {
	w.issue(t, provider.VBank)
	h := w.webhooks(t)[0]
	was := string(w.get(t).Status)
	body := bytes.ReplaceAll(h.Body, []byte(`"status":"ready"`), []byte(`"status":"paid"`))
	body = bytes.ReplaceAll(body, []byte(`"status":"issued"`), []byte(`"status":"paid"`))
	e, err := w.provider.VerifyWebhook(h.ContentType, body, []credentials.Unsealed{cred()})
	must(t, err)
	if e.Status != "paid" || e.Key == w.event(t, h).Key {
		t.Errorf("%+v", e)
	}
	if is(t, w.get(t), provider.PaymentIssued, won, won); was != "issued" {
		t.Errorf("it was %s", was)
	}
	body = bytes.ReplaceAll(h.Body, []byte(`"amount":11000`), []byte(`"amount":1100`))
	_, err = w.provider.VerifyWebhook(h.ContentType, body, []credentials.Unsealed{cred()})
	fails(t, err, provider.ErrUnverified)
}

func lost(t *testing.T, w *sim) {
	must(t, w.Arm(pgsim.Fault{Kind: pgsim.Drop, On: "webhook"}))
	w.issue(t, provider.VBank)
	if n := len(w.webhooks(t)); n != 0 {
		t.Fatalf("%d webhooks", n)
	}
	must(t, w.Arm(pgsim.Fault{Kind: pgsim.Duplicate, On: "webhook"}))
	must(t, w.Deposit(code, won, time.Time{}, 1))
	if n := len(w.webhooks(t)); n != 2 {
		t.Fatalf("%d webhooks", n)
	}
	must(t, w.Arm(pgsim.Fault{Kind: pgsim.WrongOrder, On: "webhook"}))
	must(t, w.ConsoleCancel(code, 1))
	if all := w.webhooks(t); len(all) != 1 || w.event(t, all[0]).Code == code {
		t.Errorf("%d webhooks", len(all))
	}
	must(t, w.Arm(pgsim.Fault{Kind: pgsim.Garbage, On: "webhook"}))
	must(t, w.ConsoleCancel(code, 1))
	for _, h := range w.webhooks(t) {
		_, err := w.provider.VerifyWebhook(h.ContentType, h.Body, []credentials.Unsealed{cred()})
		fails(t, err, provider.ErrUnverified)
	}
	s := w.get(t)
	is(t, s, provider.PaymentPaid, won, won-2)
}

func secondDeposit(t *testing.T, w *sim) {
	ref := w.paid(t, provider.VBank)
	w.webhooks(t)
	must(t, w.Deposit(code, won, time.Time{}, 1))
	all := w.webhooks(t)
	if len(all) != 1 {
		t.Fatalf("%d webhooks", len(all))
	}
	e := w.event(t, all[0])
	if e.TID == ref.TID || e.Code != code {
		t.Fatalf("%+v", e)
	}
	s, err := w.provider.Get(t.Context(), cred(), provider.PaymentRef{TID: e.TID, Code: code})
	must(t, err)
	is(t, s, provider.PaymentPaid, won, won)
	if got := w.get(t); got.TID != ref.TID {
		t.Errorf("the order is paid by %s, want %s", got.TID, ref.TID)
	}
	if truth := w.truth(t); truth.Paid != 2*won || len(truth.Payments) != 2 {
		t.Errorf("%+v", truth)
	}
}

func webhookFirst(t *testing.T, w *sim) {
	must(t, w.Arm(pgsim.Fault{Kind: pgsim.WebhookFirst, On: "issue"}))
	w.issue(t, provider.VBank)
}

func nothingSecret(t *testing.T, w *sim) {
	ref := w.paid(t, provider.VBank)
	s, err := w.provider.Cancel(t.Context(), cred(), refund(ref, "rf_1", 1))
	must(t, err)
	_, secret := cred().Reveal()
	for _, canary := range []string{secret, account.AccountNumber, "CANARY-BUYER", "signature"} {
		if bytes.Contains(s.Raw, []byte(canary)) {
			t.Errorf("%q is in %s", canary, s.Raw)
		}
	}
	if len(s.Raw) == 0 {
		t.Error("an operator sees nothing")
	}
}
