package nicepay_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"hub.internal/services/payments/credentials"
	"hub.internal/services/payments/nicepay"
	"hub.internal/services/payments/pgsim"
	"hub.internal/services/payments/provider"
)

// tid is the vendor's id of the payment in true answers.
const tid = "simhub001m03012601151800000001"

var created = time.Date(2026, 1, 15, 9, 0, 0, 0, time.UTC)

// liar answers what a test says.
func liar(t *testing.T, answer http.HandlerFunc) *nicepay.Provider {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	return adapter(t, nicepay.Config{BaseURL: server.URL, Timeout: 2 * time.Second})
}

func adapter(t *testing.T, c nicepay.Config) *nicepay.Provider {
	t.Helper()
	c.Now = func() time.Time { return created.Add(time.Minute) }
	p, err := nicepay.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// paid is a true answer.
func paid() map[string]any {
	return map[string]any{
		"resultCode":   "0000",
		"resultMsg":    "ok",
		"tid":          tid,
		"cancelledTid": nil,
		"orderId":      code,
		"ediDate":      "2026-01-15T18:05:00.000+0900",
		"status":       "paid",
		"paidAt":       "2026-01-15T18:05:00.000+0900",
		"failedAt":     "0",
		"cancelledAt":  "0",
		"payMethod":    "vbank",
		"amount":       11000,
		"balanceAmt":   11000,
		"currency":     "KRW",
		"cancels":      nil,
		"coupon":       nil,
		"cashReceipts": nil,
		"vbank": map[string]any{"vbankCode": "004", "vbankName": "국민은행", "vbankNumber": "95000000000002",
			"vbankExpDate": "2026-01-22T18:00:00.000+0900", "vbankHolder": "Hub"},
	}
}

func encoded(t testing.TB, m map[string]any) string {
	t.Helper()
	if _, has := m["signature"]; !has {
		amount, _ := m["amount"].(int)
		m["signature"] = pgsim.Signature(fmt.Sprint(m["tid"]), int64(amount), fmt.Sprint(m["ediDate"]), secret)
	}
	raw, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// with is a true answer with something in it changed.
func with(t testing.TB, changes map[string]any) string {
	m := paid()
	maps.Copy(m, changes)
	return encoded(t, m)
}

func cancelOf(amount any, tid, at, reason string) map[string]any {
	return map[string]any{"tid": tid, "amount": amount, "cancelledAt": at, "reason": reason, "receiptUrl": "", "couponAmt": 0}
}

// TestLies: what cannot be believed leaves the outcome unknown, and never a snapshot.
func TestLies(t *testing.T) {
	at := "2026-01-15T19:00:00.000+0900"
	for name, body := range map[string]string{
		"another tid":            with(t, map[string]any{"tid": "simhub001m03012601151800000002"}),
		"a tid that is no tid":   with(t, map[string]any{"tid": "../x"}),
		"another order":          with(t, map[string]any{"orderId": "po_01JZ8Q6V7R3W9K2M4N5P6Q7R8T"}),
		"no signature":           with(t, map[string]any{"signature": ""}),
		"a null signature":       with(t, map[string]any{"signature": nil}),
		"a wrong signature":      with(t, map[string]any{"signature": strings.Repeat("0", 64)}),
		"signed without secret":  with(t, map[string]any{"signature": pgsim.Signature(tid, 11000, "2026-01-15T18:05:00.000+0900", "")}),
		"another amount's":       strings.Replace(with(t, nil), `"amount":11000`, `"amount":1100`, 1),
		"a negative amount":      with(t, map[string]any{"amount": -11000}),
		"no amount":              with(t, map[string]any{"amount": 0}),
		"a fraction":             with(t, map[string]any{"amount": 11000.5}),
		"a whole fraction":       strings.Replace(with(t, nil), `"amount":11000`, `"amount":11000.0`, 1),
		"an exponent":            strings.Replace(with(t, nil), `"amount":11000`, `"amount":11e3`, 1),
		"a number as text":       with(t, map[string]any{"amount": "11000"}),
		"more than int64":        strings.Replace(with(t, nil), `"amount":11000`, `"amount":9223372036854775808`, 1),
		"more than 12 digits":    with(t, map[string]any{"amount": 1_000_000_000_000}),
		"more left than there":   with(t, map[string]any{"balanceAmt": 11001}),
		"less than nothing left": with(t, map[string]any{"balanceAmt": -1}),
		"another currency":       with(t, map[string]any{"currency": "USD"}),
		"an unknown status":      with(t, map[string]any{"status": "settled"}),
		"no status":              with(t, map[string]any{"status": ""}),
		"paid at no time":        with(t, map[string]any{"paidAt": "0"}),
		"paid some day":          with(t, map[string]any{"paidAt": "yesterday"}),
		"paid in the year 1":     with(t, map[string]any{"paidAt": "0001-01-15T18:05:00.000+0900"}),
		"a code for paid":        with(t, map[string]any{"resultCode": "9002"}),
		"a name twice":           strings.Replace(with(t, nil), `{"`, `{"status":"paid","`, 1),
		"other letters":          strings.Replace(with(t, nil), `"orderId"`, `"ORDERID"`, 1),
		"two texts":              with(t, nil) + with(t, nil),
		"half a text":            with(t, nil)[:100],
		"a list":                 "[" + with(t, nil) + "]",
		"null":                   "null",
		"nothing":                "",
		"html":                   "<html>It works</html>",
		"broken UTF-8":           strings.Replace(with(t, nil), "ok", "\xff", 1),
		"too long":               `{"resultMsg":"` + strings.Repeat("x", 1<<20) + `"}`,
		"went back twice":        with(t, map[string]any{"cancels": []any{cancelOf(1, "c1", at, ""), cancelOf(1, "c1", at, "")}}),
		"more went back":         with(t, map[string]any{"cancels": []any{cancelOf(6000, "c1", at, ""), cancelOf(6000, "c2", at, "")}}),
		"less than nothing back": with(t, map[string]any{"cancels": []any{cancelOf(-1, "c1", at, "")}}),
		"overflow in what went": with(t, map[string]any{"cancels": []any{cancelOf(int64(9223372036854775807), "c1", at, ""),
			cancelOf(2, "c2", at, "")}}),
		"back at no time":        with(t, map[string]any{"cancels": []any{cancelOf(1, "c1", "soon", "")}}),
		"an account that is not": with(t, map[string]any{"vbank": map[string]any{"vbankNumber": "<b>1</b>", "vbankExpDate": at}}),
		"an account for ever":    with(t, map[string]any{"vbank": map[string]any{"vbankNumber": "123", "vbankExpDate": "0"}}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := liar(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) })
			s, err := p.Get(t.Context(), cred(), provider.PaymentRef{TID: tid, Code: code, CreatedAt: created})
			unknownAlone(t, err)
			if s.Status != "" || s.TID != "" || s.Raw != nil {
				t.Errorf("believed: %s %s", s.TID, s.Status)
			}
			_, err = p.Cancel(
				t.Context(),
				cred(),
				provider.CancelRequest{Ref: provider.PaymentRef{TID: tid, Code: code, CreatedAt: created},
					RefundCode: "rf_1", Reason: "x", Amount: new(int64(4000))},
			)
			unknownAlone(t, err)
		})
	}
	p := liar(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, with(t, nil)) })
	if s, err := p.Get(t.Context(), cred(), provider.PaymentRef{TID: tid, Code: code}); err != nil || s.Status != provider.PaymentPaid {
		t.Errorf("the truth: %+v, %v", s, err)
	}
}

func unknownAlone(t *testing.T, err error) {
	t.Helper()
	var declined *provider.DeclinedError
	if !errors.Is(err, provider.ErrUnknown) || errors.Is(err, provider.ErrNotSent) || errors.Is(err, provider.ErrNotFound) ||
		errors.As(err, &declined) {
		t.Fatalf("%v, want unknown", err)
	}
	silent(t, err)
}

// silent checks that nothing secret is in an error.
func silent(t *testing.T, err error) {
	t.Helper()
	if text := fmt.Sprintf(
		"%v %+v",
		err,
		err,
	); strings.Contains(text, secret) || strings.Contains(text, clientID) ||
		strings.Contains(text, "Basic") {
		t.Errorf("%s", text)
	}
}

// TestCancelIsProven: a cancel that the vendor calls done is done when the payment shows it.
func TestCancelIsProven(t *testing.T) {
	at := "2026-01-15T19:00:00.000+0900"
	shows := func(c ...any) string {
		return with(t, map[string]any{"resultCode": "2211", "status": "partialCancelled", "balanceAmt": 7000, "cancels": c})
	}
	for name, row := range map[string]struct {
		answer, later string
		good          bool
	}{
		"as the vendor says now": {answer: strings.Replace(shows(cancelOf(4000, "c1", at, "[rf_1]")), "2211", "0000", 1), good: true},
		"it is shown":            {answer: shows(cancelOf(4000, "c1", at, "requested [rf_1]")), good: true},
		"it is shown later": {answer: shows(), later: strings.Replace(shows(cancelOf(4000, "c1", at, "[rf_1]")), "2211", "0000", 1),
			good: true},
		"it is never shown":       {answer: shows(), later: with(t, nil)},
		"another one is shown":    {answer: shows(cancelOf(4000, "c1", at, "[rf_2]")), later: with(t, nil)},
		"another amount is shown": {answer: shows(cancelOf(4001, "c1", at, "[rf_1]")), later: with(t, nil)},
		"the last code counts":    {answer: shows(cancelOf(4000, "c1", at, "[rf_1] [rf_2]")), later: with(t, nil)},
		"named by the refund": {answer: strings.Replace(shows(cancelOf(4000, "c1", at, "[rf_1]")), `"orderId":"`+code, `"orderId":"rf_1`,
			1), good: true},
		"a code that nobody knows": {answer: strings.Replace(shows(), "2211", "Z999", 1)},
		"the vendor's own fault":   {answer: `{"resultCode":"A299","resultMsg":"API 지연처리 발생."}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var sent atomic.Bool
			p := liar(t, func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.Method == http.MethodPost:
					sent.Store(true)
					_, _ = io.WriteString(w, row.answer)
				case sent.Load():
					_, _ = io.WriteString(w, row.later)
				default:
					_, _ = io.WriteString(w, with(t, nil))
				}
			})
			s, err := p.Cancel(
				t.Context(),
				cred(),
				provider.CancelRequest{Ref: provider.PaymentRef{TID: tid, Code: code, CreatedAt: created},
					RefundCode: "rf_1", Reason: "x", Amount: new(int64(4000))},
			)
			if row.good && (err != nil || s.Code != code || len(s.Cancellations) != 1) {
				t.Fatalf("%+v, %v", s, err)
			}
			if !row.good {
				unknownAlone(t, err)
			}
		})
	}
}

// TestCheckoutIsProven: a checkout is the one that was asked for, with a page to go to.
func TestCheckoutIsProven(t *testing.T) {
	good := map[string]any{
		"resultCode": "0000",
		"sessionId":  code,
		"orderId":    code,
		"amount":     11000,
		"url":        "https://pay.nicepay.co.kr/v1/checkout/pay/t/s",
		"status":     "ready",
	}
	change := func(name string, v any) string {
		m := maps.Clone(good)
		m[name] = v
		raw, _ := json.Marshal(m)
		return string(raw)
	}
	for name, row := range map[string]struct {
		body string
		ok   bool
	}{
		"the truth": {change("x", 1), true}, "the manual's spelling": {strings.Replace(change("x", 1), "resultCode", "resulCode", 1), true},
		"another order": {change("orderId", "po_2"), false}, "another session": {change("sessionId", "po_2"), false},
		"another amount": {change("amount", 1100), false}, "no page": {change("url", ""), false},
		"a page that is code": {change("url", "javascript:alert(1)"), false},
		"a page of somebody":  {change("url", "https://u@pay.nicepay.co.kr/"), false},
		"no code":             {change("resultCode", ""), false}, "a fault": {change("resultCode", "A299"), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := liar(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodGet {
					w.WriteHeader(http.StatusNotFound)
					_, _ = io.WriteString(w, `{"resultCode":"U126"}`)
					return
				}
				_, _ = io.WriteString(w, row.body)
			})
			s, err := p.Issue(
				t.Context(),
				cred(),
				provider.IssueRequest{
					Code:      code,
					CreatedAt: created,
					Amount:    11000,
					PayMethod: provider.Card,
					Name:      "x",
					ReturnURL: "https://hub.example/",
				},
			)
			if row.ok != (err == nil) {
				t.Fatalf("%+v, %v", s, err)
			}
			if !row.ok {
				unknownAlone(t, err)
			}
		})
	}
}

// TestTransport: what never left is not sent, what left is unknown.
func TestTransport(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refused := "http://" + free.Addr().String()
	free.Close()
	secured := httptest.NewUnstartedServer(http.NotFoundHandler())
	secured.Config.ErrorLog = log.New(io.Discard, "", 0)
	secured.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	secured.StartTLS()
	t.Cleanup(secured.Close)
	for name, base := range map[string]string{"refused": refused, "a name that nobody has": "http://nobody.invalid",
		"a certificate of nobody": secured.URL} {
		t.Run(name, func(t *testing.T) {
			p := adapter(t, nicepay.Config{BaseURL: base, Timeout: 5 * time.Second})
			_, err := p.Issue(t.Context(), cred(), provider.IssueRequest{Code: code, Amount: 1})
			if !errors.Is(err, provider.ErrNotSent) || errors.Is(err, provider.ErrUnknown) {
				t.Errorf("%v", err)
			}
			silent(t, err)
			_, err = p.Cancel(
				t.Context(),
				cred(),
				provider.CancelRequest{Ref: provider.PaymentRef{Code: code, CreatedAt: created}, RefundCode: "rf_1"},
			)
			if !errors.Is(err, provider.ErrNotSent) || errors.Is(err, provider.ErrUnknown) {
				t.Errorf("%v", err)
			}
		})
	}
	for name, answer := range map[string]http.HandlerFunc{
		"it breaks": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"a redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/v1/payments/"+tid, http.StatusTemporaryRedirect)
		},
		"another": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
		},
		"a fault": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) },
		"a fault, said": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(500)
			_, _ = io.WriteString(w, with(t, nil))
		},
		"too many calls": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) },
		"nothing there":  func(w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) },
		"half of it": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "5000")
			_, _ = io.WriteString(w, with(t, nil))
		},
	} {
		t.Run(name, func(t *testing.T) {
			var calls atomic.Int32
			p := liar(t, func(w http.ResponseWriter, r *http.Request) { calls.Add(1); answer(w, r) })
			_, err := p.Get(t.Context(), cred(), provider.PaymentRef{TID: tid, Code: code})
			unknownAlone(t, err)
			_, err = p.Issue(t.Context(), cred(), provider.IssueRequest{Code: code, Amount: 1})
			unknownAlone(t, err)
			if n := calls.Load(); n != 2 {
				t.Errorf("%d calls: none is made twice, and no redirect is followed", n)
			}
		})
	}
	t.Run("silence", func(t *testing.T) {
		server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		}))
		t.Cleanup(server.Close)
		p := adapter(t, nicepay.Config{BaseURL: server.URL, Timeout: 50 * time.Millisecond})
		_, err := p.Issue(t.Context(), cred(), provider.IssueRequest{Code: code, Amount: 1})
		unknownAlone(t, err)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := p.Issue(ended, cred(), provider.IssueRequest{Code: code, Amount: 1}); !errors.Is(err, provider.ErrNotSent) {
			t.Errorf("a caller that is gone: %v", err)
		}
	})
	for name, row := range map[string]struct {
		status int
		body   string
		drift  bool
	}{
		"a code says more than its status": {403, `{"resultCode":"2032","resultMsg":"취소금액이 취소가능금액보다 큼"}`, true},
		"a status alone":                   {401, ``, false},
		"a page":                           {403, `<html>`, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := liar(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodGet {
					_, _ = io.WriteString(w, with(t, nil))
					return
				}
				w.WriteHeader(row.status)
				_, _ = io.WriteString(w, row.body)
			})
			_, err := p.Cancel(
				t.Context(),
				cred(),
				provider.CancelRequest{Ref: provider.PaymentRef{TID: tid, Code: code}, RefundCode: "rf_1"},
			)
			var declined *provider.DeclinedError
			if !errors.As(err, &declined) || declined.Drift != row.drift {
				t.Errorf("%v", err)
			}
		})
	}
	t.Run("a wrong credential", func(t *testing.T) {
		s := newSim(t, true)
		wrong := credentials.NewUnsealed(7, credentials.Sandbox, clientID, "wrong")
		var declined *provider.DeclinedError
		if _, err := s.provider.Issue(t.Context(), wrong, provider.IssueRequest{Code: code, Amount: 1}); !errors.As(err, &declined) {
			t.Errorf("%v", err)
		}
		_, err := s.provider.Get(t.Context(), wrong, provider.PaymentRef{TID: tid, Code: code})
		unknownAlone(t, err)
	})
}

// TestNoProxy: the environment sends nothing elsewhere.
func TestNoProxy(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
	p := adapter(t, nicepay.Config{BaseURL: "http://nobody.invalid"})
	_, err := p.Get(t.Context(), cred(), provider.PaymentRef{TID: tid, Code: code})
	if err == nil || strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("%v", err)
	}
}
