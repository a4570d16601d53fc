package nicepay_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"hub.internal/services/payments/credentials"
	"hub.internal/services/payments/nicepay"
	"hub.internal/services/payments/provider"
)

// TestRequests holds what is sent to the manual, byte by byte.
func TestRequests(t *testing.T) {
	var mu sync.Mutex
	var sent []string
	p := liar(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		sent = append(sent, fmt.Sprintf("%s %s %s", r.Method, r.URL, body))
		mu.Unlock()
		if r.Header.Get("Authorization") != "Basic "+base64.StdEncoding.EncodeToString([]byte(clientID+":"+secret)) {
			t.Error("it is not Basic clientId:secretKey")
		}
		if len(r.TransferEncoding) != 0 || r.Method == http.MethodPost && r.Header.Get("Content-Type") != "application/json;charset=utf-8" {
			t.Errorf("%v %v", r.TransferEncoding, r.Header)
		}
		if r.Method == http.MethodGet && r.URL.Path == "/v1/payments/"+tid {
			_, _ = io.WriteString(w, with(t, nil))
			return
		}
		w.WriteHeader(http.StatusInternalServerError)
	})
	ref := provider.PaymentRef{TID: tid, Code: code, CreatedAt: created}
	bought := provider.IssueRequest{Code: code, CreatedAt: created, Amount: 11000, PayMethod: provider.VBank, Name: `A "cup|of" tea`,
		ReturnURL: "https://hub.example/r", ValidHours: 168, Holder: "Hub", Buyer: provider.Buyer{Name: "홍길동", Email: "a@b.c", Tel: "0101"}}
	_, _ = p.Issue(t.Context(), cred(), bought)
	bought.PayMethod, bought.TaxFree, bought.Buyer = provider.Card, true, provider.Buyer{}
	_, _ = p.Issue(t.Context(), cred(), bought)
	_, _ = p.Get(t.Context(), cred(), ref)
	_, _ = p.Get(t.Context(), cred(), provider.PaymentRef{Code: code, CreatedAt: created})
	in := provider.CancelRequest{Ref: ref, RefundCode: "rf_1", Reason: "broken [rf_2]", Amount: new(int64(4000)), TaxFree: true,
		Account: &provider.RefundAccount{BankCode: "004", AccountNumber: "123", Holder: "홍길동"}}
	_, _ = p.Cancel(t.Context(), cred(), in)
	in.Amount, in.Account, in.Reason = nil, nil, strings.Repeat("가", 100)
	_, _ = p.Cancel(t.Context(), cred(), in)
	_ = p.Expire(t.Context(), cred(), ref)
	_ = p.NetCancel(t.Context(), cred(), code)
	want := []string{
		`POST /v1/checkout {"sessionId":"` + code + `","orderId":"` + code + `","method":"vbank","amount":11000,"goodsName":"A -cup-of- tea",` +
			`"returnUrl":"https://hub.example/r","vbankHolder":"Hub","vbankValidHours":168,"buyerName":"홍길동","buyerTel":"0101",` +
			`"buyerEmail":"a@b.c"}`,
		`POST /v1/checkout {"sessionId":"` + code + `","orderId":"` + code + `","method":"card","amount":11000,"goodsName":"A -cup-of- tea",` +
			`"returnUrl":"https://hub.example/r","taxFreeAmt":11000}`,
		`GET /v1/payments/` + tid + ` `,
		`GET /v1/payments/find/` + code + `?orderDate=20260115 `,
		`GET /v1/payments/` + tid + ` `,
		`POST /v1/payments/` + tid + `/cancel {"reason":"broken (rf_2) [rf_1]","orderId":"rf_1","cancelAmt":4000,"refundAccount":"123",` +
			`"refundBankCode":"004","refundHolder":"홍길동","taxFreeAmt":4000}`,
		`GET /v1/payments/` + tid + ` `,
		`POST /v1/payments/` + tid + `/cancel {"reason":"` + strings.Repeat("가", 31) + ` [rf_1]","orderId":"rf_1"}`,
		`POST /v1/checkout/` + code + `/expire {}`,
		`POST /v1/payments/netcancel {"orderId":"` + code + `"}`,
	}
	if !slices.Equal(sent, want) {
		t.Errorf("sent\n%s\nwant\n%s", strings.Join(sent, "\n"), strings.Join(want, "\n"))
	}
}

// TestDays: an order is filed under a day of Korea, and its payer may come on the next one.
func TestDays(t *testing.T) {
	kst := time.FixedZone("KST", 9*3600)
	for name, row := range map[string]struct {
		created time.Duration // after midnight in Korea, of 15 January
		asked   time.Duration
		want    []string
	}{
		"by day":                {12 * time.Hour, 12 * time.Hour, []string{"20260115"}},
		"in UTC it is the 14th": {8 * time.Hour, 9 * time.Hour, []string{"20260115"}},
		"right after midnight":  {5 * time.Minute, 6 * time.Minute, []string{"20260115", "20260114"}},
		"right before midnight": {24*time.Hour - time.Minute, 24*time.Hour - time.Second, []string{"20260115", "20260116"}},
		"asked the next day":    {12 * time.Hour, 30 * time.Hour, []string{"20260115", "20260116"}},
	} {
		t.Run(name, func(t *testing.T) {
			var days []string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(http.StatusNotFound)
				if r.URL.Path == "/v1/checkout/"+code {
					_, _ = io.WriteString(w, `{"resultCode":"P040","resultMsg":"세션키에 해당하는 주문정보가 존재하지 않습니다."}`)
					return
				}
				days = append(days, r.URL.Query().Get("orderDate"))
				_, _ = io.WriteString(w, `{"resultCode":"U126","resultMsg":"orderId가 존재 하지 않습니다."}`)
			}))
			defer server.Close()
			midnight := time.Date(2026, 1, 15, 0, 0, 0, 0, kst)
			p, err := nicepay.New(nicepay.Config{BaseURL: server.URL, Now: func() time.Time { return midnight.Add(row.asked) }})
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			_, err = p.Get(t.Context(), cred(), provider.PaymentRef{Code: code, CreatedAt: midnight.Add(row.created).UTC()})
			if !errors.Is(err, provider.ErrNotFound) || !slices.Equal(days, row.want) {
				t.Errorf("asked %v, want %v; %v", days, row.want, err)
			}
		})
	}
}

// TestHosts: production speaks with the public internet alone.
func TestHosts(t *testing.T) {
	for _, base := range []string{"nicepay", "ftp://pg.example.com", "http://", "https://u:p@pg.example.com", "https://pg.example.com?x=1",
		"https://pg.example.com#x"} {
		if nicepay.CheckHost(false, base) == nil {
			t.Errorf("%q is a base URL", base)
		}
	}
	for _, base := range []string{"http://127.0.0.1:8090", "http://pgsim:8090", "https://sandbox-api.nicepay.co.kr", "http://[::1]"} {
		if err := nicepay.CheckHost(false, base); err != nil {
			t.Errorf("%s: %v", base, err)
		}
	}
	for _, host := range []string{"127.0.0.1", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "[::1]", "[::ffff:127.0.0.1]",
		"[::ffff:10.0.0.1]", "10.1.2.3",
		"172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "[::]", "[fe80::1%25eth0]", "[fc00::1]", "[64:ff9b::7f00:1]",
		"[2002:7f00:1::]",
		"224.0.0.1", "255.255.255.255", "168.63.129.16", "192.88.99.1", "[2001:10::1]", "[2620:4f:8000::1]", "[3fff::1]", "[5f00::1]",
		"localhost", "LOCALHOST.", "x.localhost", "pgsim", "pgsim.default.svc", "pg.default.svc.cluster.local", "db.internal", "printer.lan"} {
		if nicepay.CheckHost(true, "https://"+host+"/") == nil {
			t.Errorf("production takes payments from %s", host)
		}
	}
	if nicepay.CheckHost(true, "http://api.nicepay.co.kr") == nil {
		t.Error("production speaks in clear")
	}
	for _, base := range []string{"", nicepay.SandboxURL, nicepay.ProductionURL, "https://121.133.126.83"} {
		if err := nicepay.CheckHost(true, base); err != nil {
			t.Errorf("%s: %v", base, err)
		}
	}
	if _, err := nicepay.New(nicepay.Config{Production: true, BaseURL: "https://pgsim:8443"}); err == nil {
		t.Error("production started with a simulator")
	}
}

// TestDialsAreGuarded: a name of the public internet that leads home is found out before a byte is sent.
func TestDialsAreGuarded(t *testing.T) {
	reached := false
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))
	defer server.Close()
	client := nicepay.GuardedClient()
	defer client.CloseIdleConnections()
	response, err := client.Get(server.URL)
	if err == nil {
		response.Body.Close()
	}
	if err == nil || reached || !strings.Contains(err.Error(), "private address") {
		t.Errorf("reached %t, %v", reached, err)
	}
}

// TestTestWebhook: the vendor's trial of an address, as issue 15 of its manual shows it.
func TestTestWebhook(t *testing.T) {
	p := adapter(t, nicepay.Config{})
	e, err := p.VerifyWebhook(
		"application/json;charset=utf-8",
		[]byte(`{"tid":"UTWEBHOOKm05012609082226211306","orderId":"202609082226213280",`+
			`"ediDate":"2026-09-08T22:26:21.337+0900","amount":10000,`+
			`"signature":"616ee2bdbd3a0a8e65bac0f86c3942e35bce96db1d352cea8b29ed8f60feca81",`+
			`"resultCode":"0000","resultMsg":"","status":"","payMethod":""}`),
		[]credentials.Unsealed{cred()},
	)
	if err != nil || e.Kind != provider.WebhookTrial || e.TID != "" || e.Code != "" {
		t.Errorf("%+v, %v", e, err)
	}
	if _, err := p.VerifyWebhook("text/html", []byte(`{"status":"","payMethod":""}`), nil); err == nil {
		t.Error("a page is a webhook")
	}
	s := newSim(t, true)
	s.TestWebhook()
	for _, h := range s.webhooks(t) {
		if e, err := s.provider.VerifyWebhook(h.ContentType, h.Body, nil); err != nil || e.Kind != provider.WebhookTrial {
			t.Errorf("%+v, %v", e, err)
		}
	}
}

func TestTextsAreTrimmed(t *testing.T) {
	for _, text := range []string{"", "tea", strings.Repeat("차", 40), strings.Repeat("a", 39) + "차", "a\xffb", "line\nbreak\x00",
		strings.Repeat("👩‍👧", 20)} {
		if out := nicepay.Trimmed(text, 40); len(out) > 40 || !utf8.ValidString(out) || strings.ContainsAny(out, "\n") {
			t.Errorf("%q is %q", text, out)
		}
	}
}

// FuzzAnswer: an answer never panics, and what is believed is signed, of the payment that was asked for, and within its bounds.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte(with(f, nil)))
	f.Add(
		[]byte(
			with(
				f,
				map[string]any{
					"status":     "partialCancelled",
					"balanceAmt": 1,
					"cancels":    []any{cancelOf(10999, "c1", "2026-01-15T19:00:00+0900", "x [rf_1]")},
				},
			),
		),
	)
	f.Add([]byte(`{"resultCode":"0000","status":"ready","tid":"` + tid + `","orderId":"` + code + `","amount":1}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		out, err := nicepay.Snapshot(raw, tid, code, secret)
		if err != nil {
			return
		}
		s := out.(provider.Snapshot)
		var back int64
		for _, c := range s.Cancellations {
			if !c.Returned {
				back += c.Amount
			}
		}
		if s.TID != tid || s.Code != code || s.Amount < 1 || s.Balance < 0 || s.Balance > s.Amount || back > s.Amount {
			t.Errorf("%+v", s)
		}
		if s.Status == provider.PaymentPaid && (s.PaidAt.IsZero() || s.Amount != 11000) {
			t.Errorf("nobody has signed %+v", s)
		}
	})
}

// FuzzWebhook: a webhook never panics, and is verified by who knows the secret alone.
func FuzzWebhook(f *testing.F) {
	f.Add("application/json", []byte(with(f, nil)))
	f.Add("application/json;charset=utf-8", []byte(`{"status":"","payMethod":""}`))
	f.Add("", []byte(`null`))
	p, err := nicepay.New(nicepay.Config{})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, kind string, raw []byte) {
		e, err := p.VerifyWebhook(kind, raw, []credentials.Unsealed{credentials.NewUnsealed(1, credentials.Production, "", ""), cred()})
		if err == nil && e.Kind == provider.WebhookOfPayment &&
			(e.Credential != cred() || e.TID != tid || len(e.Code) > 64 || len(e.Key) != 64) {
			t.Errorf("%+v", e)
		}
	})
}

// TestWhoNeedsAnAccount: the vendor pays a deposit back to an account that it has to be told; a simulator does not.
func TestWhoNeedsAnAccount(t *testing.T) {
	t.Parallel()
	for base, needs := range map[string]bool{"": true, "http://127.0.0.1:1": false} {
		p, err := nicepay.New(nicepay.Config{BaseURL: base})
		if err != nil {
			t.Fatal(err)
		}
		if caps := p.Capabilities(provider.VBank); caps.NeedsRefundAccount != needs {
			t.Errorf("%q: %+v", base, caps)
		}
	}
}
