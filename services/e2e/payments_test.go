package e2e_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"hub.internal/pkg/hubtest"
)

// TestPayments is what apps, payers and the provider see of payments, over two gateways.
func TestPayments(t *testing.T) {
	t.Parallel()
	x := newShop(t, 2)
	for name, test := range map[string]func(*testing.T, *shop){
		"the guide's golden path": goldenPath, "the guide's client in Go": goClient, "the guide's client in TypeScript": typescriptClient,
		"one token is good once": oneToken, "credentials": payCredentials, "a link is required": linkRequired, "replays": replays,
		"forms of answers": answerForms, "webhooks": payWebhooks, "a payer's browser": payersBrowser,
		"an operator refunds": operatorRefund, "three clicks": threeClicks,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, x)
		})
	}
	// What runs in parallel has ended when the cleanup runs.
	t.Cleanup(func() {
		for what, secret := range map[string]string{"the app's secret": x.secret, "its notification secret": x.webhookSecret,
			"the provider's": simSecret} {
			if strings.Contains(x.logs.String(), strings.TrimPrefix(secret, "whsec_")) {
				t.Errorf("%s is in a log", what)
			}
		}
	})
}

// oneToken: 64 copies of one token, at two gateways at once, make one order.
func oneToken(t *testing.T, x *shop) {
	var all sync.WaitGroup
	var good, refused atomic.Int64
	token := x.token(shopUser)
	for i := range 64 {
		at := []string{x.url, "http://" + x.addr["gateway-2"]}[i%2]
		all.Go(func() {
			r, err := x.send(
				context.Background(),
				at,
				"POST",
				"/v1/pay/orders",
				`{"amount":6400,"metadata":{"of":"one token"}}`,
				"Authorization",
				"Bearer "+token,
			)
			switch {
			case err == nil && r.status == 201:
				good.Add(1)
			case err == nil && r.status == 401 && r.Error.Code == "E_AUTH_INVALID":
				refused.Add(1)
			default:
				t.Errorf("%v %d %s", err, r.status, r.raw)
			}
		})
	}
	all.Wait()
	made := strings.Count(x.v1(t, "GET", "/v1/pay/orders?limit=100&payMethod=card", "").raw, "one token")
	if good.Load() != 1 || refused.Load() != 63 || made != 1 {
		t.Errorf("%d good, %d refused, %d orders", good.Load(), refused.Load(), made)
	}
}

// payCredentials: tokens and keys open what is theirs, and nothing else.
func payCredentials(t *testing.T, x *shop) {
	for name, c := range map[string]struct {
		method, path, credential string
		status                   int
		code                     string
	}{
		"nothing":            {"POST", "/v1/pay/orders", "", 401, "E_AUTH_MISSING"},
		"an API key":         {"POST", "/v1/pay/orders", "Bearer " + x.key, 401, "E_AUTH_INVALID"},
		"a token for a tool": {"POST", "/api/tools/search_brands", "Bearer " + x.token(shopUser), 401, "E_AUTH_INVALID"},
		"another secret": {"GET", "/v1/pay/orders", "Bearer " + serviceJWT("hss_other", "", map[string]any{"iss": "shop"}), 401,
			"E_AUTH_INVALID"},
		"an app that is not": {"GET", "/v1/pay/orders", "Bearer " + serviceJWT(x.secret, "", map[string]any{"iss": "nobody"}), 401,
			"E_AUTH_INVALID"},
		"an old token": {"GET", "/v1/pay/orders", "Bearer " +
			serviceJWT(x.secret, "", map[string]any{"iss": "shop", "iat": 1, "exp": 2}), 403, "E_AUTH_EXPIRED"},
		"a good one":           {"GET", "/v1/pay/orders", "Bearer " + x.token(shopUser), 200, ""},
		"a path that is not":   {"GET", "/v1/pay/nothing", "Bearer " + x.token(shopUser), 404, "E_NOT_FOUND"},
		"an order that is not": {"GET", "/v1/pay/orders/po_01JZ8Q6V7R3W9K2M4N5P6Q7R8S", "Bearer " + x.token(shopUser), 404, "E_NOT_FOUND"},
		"another's order, unseen": {"GET", "/v1/pay/orders/" + x.made(t, `{"amount":1}`).Code, "Bearer " + x.token("somebody"), 401,
			"ACCOUNT_LINK_REQUIRED"},
	} {
		body := ""
		if c.method == "POST" {
			body = `{"amount":11000}`
		}
		r, err := x.send(context.Background(), x.url, c.method, c.path, body, "Authorization", c.credential)
		if err != nil || r.status != c.status || r.Error.Code != c.code {
			t.Errorf("%s: %v %d %s", name, err, r.status, r.raw)
		}
	}
}

// linkRequired: the answer says in two places where to go, a user allows it there in a browser, and pays.
func linkRequired(t *testing.T, x *shop) {
	const newcomer = "newcomer-4711"
	r := x.v1(t, "POST", "/v1/pay/orders", `{"amount":11000}`, "Authorization", "Bearer "+x.token(newcomer))
	var top struct {
		LinkURL string `json:"link_url"`
	}
	var details struct {
		Code, Reason string
		LinkURL      string `json:"link_url"`
		ExpiresAt    string `json:"expires_at"`
	}
	if json.Unmarshal([]byte(r.raw), &top) != nil || json.Unmarshal(r.Error.Details, &details) != nil {
		t.Fatalf("%s", r.raw)
	}
	if r.status != 401 || r.Error.Code != "ACCOUNT_LINK_REQUIRED" || details.Code != "ACCOUNT_LINK_REQUIRED" ||
		details.Reason != "NOT_LINKED" || details.ExpiresAt == "" ||
		top.LinkURL != details.LinkURL ||
		!strings.HasPrefix(top.LinkURL, x.url+"/connect?t=") ||
		strings.Contains(top.LinkURL, newcomer) {
		t.Fatalf("%d %s", r.status, r.raw)
	}
	grace := x.person("Grace Hopper")
	p := newPage(t, x.url)
	p.Open(strings.TrimPrefix(top.LinkURL, x.url))
	p.signIn(grace.Email, grace.Password)
	p.Sees("The corner shop")
	p.Button("Allow").Click()
	p.Sees("is linked")
	if r := x.v1(t, "POST", "/v1/pay/orders", `{"amount":11000}`, "Authorization", "Bearer "+x.token(newcomer)); r.status != 201 {
		t.Errorf("after the link: %d %s", r.status, r.raw)
	}
}

// replays: the same key with a new token is the same answer, also at another gateway; for something else it is a conflict.
func replays(t *testing.T, x *shop) {
	const body = `{"supplyAmount":10000,"vat":1000,"payMethod":"vbank"}`
	first := x.v1(t, "POST", "/v1/pay/orders", body, "Idempotency-Key", "replayed")
	again := x.v1At(
		t,
		"http://"+x.addr["gateway-2"],
		"POST",
		"/v1/pay/orders",
		` {"payMethod":"vbank", "vat":1000,"supplyAmount":10000}`,
		"Idempotency-Key",
		`"replayed"`,
	)
	if first.status != 201 || again.status != 201 || string(first.Data) != string(again.Data) ||
		again.header.Get("Idempotent-Replayed") != "true" ||
		first.header.Get("Idempotent-Replayed") != "" ||
		first.RequestID == again.RequestID {
		t.Errorf("%d %s\n%d %v %s", first.status, first.raw, again.status, again.header, again.raw)
	}
	code := orderOf(t, first).Code
	for name, r := range map[string]reply{
		"another body":  x.v1(t, "POST", "/v1/pay/orders", `{"amount":5000}`, "Idempotency-Key", "replayed"),
		"another route": x.v1(t, "POST", "/v1/pay/orders/"+code+"/cancel", `{}`, "Idempotency-Key", "replayed"),
	} {
		if r.status != 409 || r.Error.Code != "E_CONFLICT" || !strings.Contains(string(r.Error.Details), `"IDEMPOTENCY_KEY_CONFLICT"`) ||
			strings.Contains(r.raw, code) {
			t.Errorf("%s: %d %s", name, r.status, r.raw)
		}
	}
	known := x.made(t, `{"amount":5000,"clientOrderId":"own-1"}`)
	if r := x.v1(
		t,
		"POST",
		"/v1/pay/orders",
		`{"amount":5000,"clientOrderId":"own-1"}`,
	); r.status != 200 ||
		orderOf(t, r).Code != known.Code {
		t.Errorf("the app's own id again: %d %s", r.status, r.raw)
	}
}

// answerForms: 200, 201, 202, 303 and text pass the gateway as payments gives them.
func answerForms(t *testing.T, x *shop) {
	o := x.made(t, `{"amount":12000,"returnUrl":"`+x.echo+`/return","payment_notify_url":"`+x.echo+`/forms"}`)
	resp, _ := plain(t, "GET", x.url+"/v1/pay/return/"+o.Code, "", "")
	if to := resp.Header.Get("Location"); resp.StatusCode != 303 || to != x.echo+"/return?code="+o.Code+"&status=READY" {
		t.Errorf("the way back: %d %s", resp.StatusCode, to)
	}
	x.control(t, "pay", `{"orderId":"`+o.Code+`"}`)
	x.becomes(t, o.Code, "PAID")
	form := url.Values{"orderId": {o.Code}, "status": {"failed"}, "success": {"false"}}.Encode() // whatever a browser says
	resp, _ = plain(t, "POST", x.url+"/v1/pay/return/"+o.Code, "application/x-www-form-urlencoded", form)
	if to := resp.Header.Get("Location"); resp.StatusCode != 303 || !strings.HasSuffix(to, "&status=PAID") {
		t.Errorf("the way back of a form: %d %s", resp.StatusCode, to)
	}
	if resp, body := plain(t, "GET", x.url+"/v1/pay/return/po_01JZ8Q6V7R3W9K2M4N5P6Q7R8S", "", ""); resp.StatusCode != 404 {
		t.Errorf("the way back of no order: %d %s", resp.StatusCode, body)
	}
	var told struct {
		Notifications []struct{ ID, State string }
	}
	hubtest.Eventually(t, "the app is told", func() bool {
		r := x.v1(t, "GET", "/v1/pay/orders/"+o.Code+"/events", "")
		return r.status == 200 && json.Unmarshal(r.Data, &told) == nil && len(told.Notifications) == 1 &&
			told.Notifications[0].State == "DELIVERED"
	})
	r := x.v1(t, "POST", "/v1/pay/orders/"+o.Code+"/notifications/"+told.Notifications[0].ID+"/redeliver", `{}`)
	if r.status != 202 {
		t.Errorf("redeliver: %d %s", r.status, r.raw)
	}
	hubtest.Eventually(t, "it is told again, in the same bytes", func() bool {
		_, body := plain(t, "GET", x.echo+"/messages?order="+o.Code, "", "")
		var got struct{ Messages []struct{ ID, Body string } }
		return json.Unmarshal([]byte(body), &got) == nil && len(got.Messages) == 2 && got.Messages[0] == got.Messages[1]
	})
	if r := x.v1(t, "GET", "/v1/pay/orders?limit=1&status=PAID", ""); r.status != 200 || r.Count != 1 {
		t.Errorf("list: %d %s", r.status, r.raw)
	}
}

// payWebhooks: who has not signed with the provider's secret is nobody, and what is signed is only a hint.
func payWebhooks(t *testing.T, x *shop) {
	o := x.made(t, `{"amount":11000,"payMethod":"vbank"}`)
	hook := func(secret, status string) string {
		const tid, at = "simhub001m03012026010100000000", "2026-01-01T00:00:00.000+0900"
		signature := sha256.Sum256([]byte(tid + "11000" + at + secret))
		return fmt.Sprintf(
			`{"resultCode":"0000","resultMsg":"","tid":%q,"orderId":%q,"ediDate":%q,"amount":11000,"status":%q,"payMethod":"vbank","signature":%q}`,
			tid,
			o.Code,
			at,
			status,
			hex.EncodeToString(signature[:]),
		)
	}
	const address, kind = "/v1/pay/webhooks/nicepay", "application/json"
	if resp, body := plain(t, "POST", x.url+address, kind, hook("another secret", "paid")); resp.StatusCode != 401 {
		t.Errorf("a wrong signature: %d %s", resp.StatusCode, body)
	}
	if resp, body := plain(t, "POST", x.url+"/v1/pay/webhooks/other", kind, hook(simSecret, "paid")); resp.StatusCode != 404 {
		t.Errorf("another provider: %d %s", resp.StatusCode, body)
	}
	for name, body := range map[string]string{"a signed one that lies": hook(simSecret, "paid"),
		"the vendor's trial": `{"tid":"x","orderId":"y","ediDate":"z","amount":1,"signature":"0","resultCode":"0000","status":"",` +
			`"payMethod":""}`} {
		resp, said := plain(t, "POST", x.url+address, kind, body)
		if resp.StatusCode != http.StatusOK || said != "OK" || resp.Header.Get("Content-Type") != "text/html;charset=utf-8" {
			t.Errorf("%s: %d %v %q", name, resp.StatusCode, resp.Header, said)
		}
	}
	x.control(t, "settle", `{}`)
	if got := orderOf(t, x.v1(t, "POST", "/v1/pay/orders/"+o.Code+"/reconcile", `{}`)); got.Status != "AWAITING_DEPOSIT" {
		t.Errorf("a lie makes the order %s", got.Status)
	}
	x.control(t, "deposit", `{"orderId":"`+o.Code+`","amount":11000,"times":3}`)
	x.becomes(t, o.Code, "PAID")
}

// payersBrowser: a payer pays on the provider's page, and comes back to the shop, whose receiver shows what it was told.
func payersBrowser(t *testing.T, x *shop) {
	installAxe(t)
	o := x.made(
		t,
		`{"amount":1250000,"orderName":"A liter top-up with a name that is rather long for a small window","returnUrl":"`+x.echo+
			`/return","payment_notify_url":"`+x.echo+`/browser"}`,
	)
	p := newPage(t, x.sim)
	p.Open(strings.TrimPrefix(o.CheckoutURL, x.sim))
	p.Sees("1,250,000 won")
	p.Inspect("checkout")
	p.Button("Pay by card").Click()
	p.Sees("Back in the shop")
	if want := x.echo + "/return?code=" + o.Code + "&status=PAID"; p.URL() != want {
		t.Errorf("the browser is at %s, not at %s", p.URL(), want)
	}
	p.Inspect("shop-return")
	p.went(x.echo)
	p.went(x.url)
	x.becomes(t, o.Code, "PAID")
	p.Open(strings.TrimPrefix(o.CheckoutURL, x.sim))
	p.Sees("The order is paid.")
	p.Inspect("checkout-paid")

	x.control(t, "console-cancel", `{"orderId":"`+o.Code+`","amount":250000}`)
	app := newPage(t, x.echo)
	app.eventually("the app is told twice", func() bool {
		app.Open("/?order=" + o.Code)
		return strings.Contains(app.Text(), "payment.refund.succeeded")
	})
	app.Inspect("notifications")
	app.Link("payment.order.paid").Click()
	app.Sees("webhook-signature")
	app.Inspect("notification")
	app.Open("/?order=none")
	app.Inspect("notifications-none")
}
