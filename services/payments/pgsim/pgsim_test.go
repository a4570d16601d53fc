package pgsim_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"hub.internal/pkg/hubtest"
	"hub.internal/services/payments/pgsim"
)

const secret = "CANARY-SECRET"

// bench is a simulator behind a server, and who takes its webhooks.
type bench struct {
	*pgsim.Sim
	t     *testing.T
	url   string
	clock *hubtest.Clock

	mu     sync.Mutex
	hooks  []map[string]any
	answer func(http.ResponseWriter, int)
}

func start(t *testing.T, change func(*pgsim.Config)) *bench {
	t.Helper()
	b := &bench{t: t, clock: hubtest.NewClock(time.Time{})}
	taker := httptest.NewServer(http.HandlerFunc(b.take))
	t.Cleanup(taker.Close)
	c := pgsim.Config{ClientID: "client", Secret: secret, WebhookURL: taker.URL, AutoIssue: true, Now: b.clock.Now,
		Retries: []time.Duration{time.Millisecond, time.Millisecond}}
	if change != nil {
		change(&c)
	}
	s, err := pgsim.New(c)
	if err != nil {
		t.Fatal(err)
	}
	b.Sim = s
	t.Cleanup(func() { s.Close() })
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	b.url = server.URL
	return b
}

func (b *bench) take(w http.ResponseWriter, r *http.Request) {
	var m map[string]any
	body, _ := io.ReadAll(r.Body)
	_ = json.Unmarshal(body, &m)
	b.mu.Lock()
	b.hooks = append(b.hooks, m)
	n, answer := len(b.hooks), b.answer
	b.mu.Unlock()
	if answer != nil {
		answer(w, n)
		return
	}
	w.Header().Set("Content-Type", "text/html;charset=utf-8")
	_, _ = io.WriteString(w, "OK")
}

// told waits for all webhooks and lists what of each was told.
func (b *bench) told(member string) (out []string) {
	b.t.Helper()
	b.settle()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range b.hooks {
		out = append(out, fmt.Sprint(m[member]))
	}
	return out
}

func (b *bench) settle() {
	b.t.Helper()
	if err := b.Settle(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
}

// send makes a call of the wire, and answers its result code.
func (b *bench) send(method, path string, body map[string]any) (string, map[string]any) {
	b.t.Helper()
	status, m := b.sendAs("client", secret, method, path, body)
	if status == 0 {
		return "broken", nil
	}
	return fmt.Sprint(m["resultCode"]), m
}

func (b *bench) sendAs(id, key, method, path string, body map[string]any) (int, map[string]any) {
	b.t.Helper()
	raw, _ := json.Marshal(body)
	r, err := http.NewRequestWithContext(b.t.Context(), method, b.url+path, bytes.NewReader(raw))
	if err != nil {
		b.t.Fatal(err)
	}
	r.SetBasicAuth(id, key)
	return b.do(r)
}

func (b *bench) do(r *http.Request) (int, map[string]any) {
	b.t.Helper()
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, nil
	}
	defer response.Body.Close()
	var m map[string]any
	_ = json.NewDecoder(response.Body).Decode(&m)
	return response.StatusCode, m
}

// control asks for an action, and answers its status.
func (b *bench) control(action string, body any) int {
	b.t.Helper()
	raw, _ := json.Marshal(body)
	r, _ := http.NewRequestWithContext(b.t.Context(), http.MethodPost, b.url+"/_control/"+action, bytes.NewReader(raw))
	r.Header.Set("Authorization", "Bearer "+secret)
	status, _ := b.do(r)
	return status
}

func (b *bench) issue(id, method string) (string, map[string]any) {
	b.t.Helper()
	return b.send(
		"POST",
		"/v1/checkout",
		map[string]any{"sessionId": id, "orderId": id, "method": method, "amount": 11000, "goodsName": "Liter",
			"returnUrl": "https://shop.example/return", "vbankHolder": "Hub", "vbankValidHours": 24},
	)
}

// tid is that of the payment of an order.
func (b *bench) tid(id string) string {
	b.t.Helper()
	truth, _ := b.Payment(id)
	return truth.TID
}

func (b *bench) cancel(id string, body map[string]any) string {
	b.t.Helper()
	code, _ := b.send("POST", "/v1/payments/"+b.tid(id)+"/cancel", body)
	return code
}

type m = map[string]any

func want[T comparable](t *testing.T, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestWire: what the vendor documents for each call, in its codes.
func TestWire(t *testing.T) {
	b := start(t, nil)
	code, first := b.issue("po_1", "vbank")
	want(t, code, "0000")
	want(t, first["status"], any("ready"))
	code, _ = b.issue("po_1", "vbank")
	want(t, code, "A127")
	code, _ = b.issue("po_2", "cash")
	want(t, code, "U110")
	code, _ = b.send(
		"POST",
		"/v1/checkout",
		m{"sessionId": "po_2", "orderId": "po_2", "method": "card", "amount": 0, "goodsName": "x", "returnUrl": "https://x.example"},
	)
	want(t, code, "U127")
	code, _ = b.send(
		"POST",
		"/v1/checkout",
		m{"sessionId": "po_2", "orderId": "po_2", "method": "card", "amount": "1", "goodsName": "x", "returnUrl": "https://x.example"},
	)
	want(t, code, "U125")
	_, got := b.send("GET", "/v1/payments/find/po_1?orderDate=20260115", nil)
	want(t, got["status"], any("ready"))
	code, _ = b.send("GET", "/v1/payments/find/po_1?orderDate=20260114", nil)
	want(t, code, "U126")
	status, _ := b.sendAs("client", "wrong", "GET", "/v1/payments/find/po_1?orderDate=20260115", nil)
	want(t, status, http.StatusUnauthorized)

	account := m{"reason": "r [rf_0]", "orderId": "rf_0", "refundAccount": "1", "refundBankCode": "004", "refundHolder": "H"}
	with := func(more m) m {
		out := m{}
		for _, part := range []m{account, more} {
			for k, v := range part {
				out[k] = v
			}
		}
		return out
	}
	want(t, b.cancel("po_1", with(m{"cancelAmt": 1})), "2011") // a part of what is not paid
	want(t, b.control("deposit", m{"orderId": "po_1", "amount": 11000, "times": 2}), 200)
	want(t, b.cancel("po_1", m{"orderId": "rf_1"}), "U100")
	want(t, b.cancel("po_1", with(m{"cancelAmt": 0})), "2010")
	want(t, b.cancel("po_1", with(m{"cancelAmt": 11001})), "2026")
	want(t, b.cancel("po_1", with(m{"cancelAmt": 4000, "orderId": "rf_1"})), "2211")
	want(t, b.cancel("po_1", with(m{"cancelAmt": 4000, "orderId": "rf_1"})), "2015")
	want(t, b.cancel("po_1", with(m{"cancelAmt": 7001, "orderId": "rf_2"})), "2032")
	want(t, b.cancel("po_1", with(m{"cancelAmt": 1, "orderId": "rf_2", "taxFreeAmt": 1})), "U319")
	want(t, b.cancel("po_1", with(m{"orderId": "rf_2"})), "2211")
	want(t, b.cancel("po_1", with(m{"orderId": "rf_3"})), "2013")
	code, _ = b.send("POST", "/v1/payments/nobody/cancel", account)
	want(t, code, "2012")
	want(t, strings.Join(b.told("status"), " "), "ready paid paid partialCancelled cancelled")
	truth, _ := b.Payment("po_1")
	want(t, fmt.Sprint(truth.Status, " ", truth.Paid, " ", truth.Cancelled), "cancelled 11000 11000")

	b.issue("po_3", "vbank")
	b.clock.Advance(25 * time.Hour)
	want(t, b.cancel("po_3", account), "2016")
	code, _ = b.send("POST", "/v1/payments/netcancel", m{"orderId": "po_3"})
	want(t, code, "2014")
	b.issue("po_4", "card")
	want(t, b.control("pay", m{"orderId": "po_4"}), 200)
	b.clock.Advance(2 * time.Hour)
	code, _ = b.send("POST", "/v1/payments/netcancel", m{"orderId": "po_4"})
	want(t, code, "2020")
}

// TestAcknowledgement: 200, text/html and OK, or it is told again (SPEC.md 12, row 15).
func TestAcknowledgement(t *testing.T) {
	for name, row := range map[string]struct {
		status     int
		kind, body string
		times      int
	}{
		"as the manual says": {200, "text/html;charset=utf-8", "OK", 1},
		"with a line break":  {200, "text/html", "OK\n", 1},
		"another status":     {500, "text/html", "OK", 3},
		"created":            {201, "text/html", "OK", 3},
		"another type":       {200, "application/json", "OK", 3},
		"another body":       {200, "text/html", "ok", 3},
		"no body":            {200, "text/html", "", 3},
		"a redirect":         {302, "text/html", "OK", 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := start(t, nil)
			b.answer = func(w http.ResponseWriter, _ int) {
				w.Header().Set("Content-Type", row.kind)
				w.Header().Set("Location", "/")
				w.WriteHeader(row.status)
				_, _ = io.WriteString(w, row.body)
			}
			b.issue("po_1", "vbank")
			want(t, len(b.told("tid")), row.times)
			all := b.Webhooks()
			if len(all) != 1 || len(all[0].Attempts) != row.times || !all[0].Done || (all[0].Attempts[0].Error == "") != (row.times == 1) {
				t.Errorf("%+v", all)
			}
		})
	}
}

func TestWebhooksAreToldInTheirOrder(t *testing.T) {
	b := start(t, nil)
	for i := range 20 {
		b.issue(fmt.Sprint("po_", i), "vbank")
		b.control("deposit", m{"orderId": fmt.Sprint("po_", i), "amount": 11000})
		b.control("console-cancel", m{"orderId": fmt.Sprint("po_", i), "amount": 1})
	}
	b.settle()
	got := map[string][]string{}
	for _, h := range b.hooks {
		got[fmt.Sprint(h["orderId"])] = append(got[fmt.Sprint(h["orderId"])], fmt.Sprint(h["status"]))
	}
	for id, statuses := range got {
		if !slices.Equal(statuses, []string{"ready", "paid", "partialCancelled"}) {
			t.Errorf("%s: %v", id, statuses)
		}
	}
	b.hooks = nil
	want(t, b.control("fault", m{"kind": "reorder", "on": "webhook"}), 200)
	b.issue("po_r", "vbank")
	b.control("deposit", m{"orderId": "po_r", "amount": 11000})
	want(t, strings.Join(b.told("status"), " "), "paid ready")
}

// TestRestart: what was answered survives, and what was not told is told.
func TestRestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	away := func(c *pgsim.Config) {
		c.State, c.WebhookURL, c.Retries = path, "http://127.0.0.1:1/", []time.Duration{time.Hour}
	}
	b := start(t, away)
	b.issue("po_1", "vbank")
	b.control("deposit", m{"orderId": "po_1", "amount": 11000})
	b.issue("po_2", "card")
	refund := m{
		"reason":         "[rf_1]",
		"orderId":        "rf_1",
		"cancelAmt":      4000,
		"refundAccount":  "1",
		"refundBankCode": "004",
		"refundHolder":   "H",
	}
	want(t, b.cancel("po_1", refund), "2211")
	before := b.Payments()
	b.Close()
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = file.WriteString(`{"order":{"OrderID":"po_3","Amo`) // killed while it wrote
	file.Close()

	b = start(t, func(c *pgsim.Config) { c.State = path })
	want(t, fmt.Sprint(b.Payments()), fmt.Sprint(before))
	again := b.told("status") // they were all tried before, and go as they can
	slices.Sort(again)
	want(t, strings.Join(again, " "), "paid partialCancelled ready")
	want(t, b.cancel("po_1", refund), "2015")
	code, _ := b.issue("po_1", "vbank")
	want(t, code, "A127")
	b.issue("po_4", "vbank")
	if truth, _ := b.Payment("po_4"); truth.TID == b.tid("po_1") || truth.Account == before[0].Account {
		t.Errorf("%+v", truth)
	}
	b.told("status")
	b.Close()
	b = start(t, func(c *pgsim.Config) { c.State = path })
	if n := len(b.told("status")); n != 0 {
		t.Errorf("%d webhooks are told again that were acknowledged", n)
	}
	if _, err := pgsim.New(pgsim.Config{ClientID: "x", Secret: "y", State: "/dev/null/x"}); err == nil {
		t.Error("a journal that cannot be written")
	}
}

// TestControl: who does not know the secret decides nothing, and mistakes are told.
func TestControl(t *testing.T) {
	b := start(t, nil)
	b.issue("po_1", "vbank")
	for _, token := range []string{"", "Bearer ", "Bearer x", "Basic " + secret, secret} {
		for _, path := range []string{"/_control/deposit", "/_control/calls", "/_control/payments"} {
			method := http.MethodGet
			if strings.HasSuffix(path, "deposit") {
				method = http.MethodPost
			}
			r, _ := http.NewRequestWithContext(t.Context(), method, b.url+path, strings.NewReader(`{"orderId":"po_1","amount":11000}`))
			r.Header.Set("Authorization", token)
			if status, _ := b.do(r); status != http.StatusUnauthorized {
				t.Errorf("%s %q: %d", path, token, status)
			}
		}
	}
	truth, _ := b.Payment("po_1")
	want(t, truth.Paid, 0)
	want(t, b.control("deposit", m{"orderId": "po_1", "amount": 11000, "colour": "red"}), 400)
	want(t, b.control("dance", m{}), 404)
	for action, body := range map[string]m{"deposit": {"orderId": "po_9", "amount": 1}, "reverse": {"orderId": "po_1"},
		"console-cancel":    {"orderId": "po_1", "amount": 1},
		"fail-refund-later": {"refundCode": "rf_1"}, "fault": {"kind": "fire", "on": "issue"}, "webhook-url": {"url": "ftp://x"},
		"pay": {"orderId": "po_1"}, "issue": {"orderId": "po_1"}} {
		want(t, b.control(action, body), 409)
	}
	want(t, b.control("webhook-url", m{"url": ""}), 200)
	want(t, b.control("deposit", m{"orderId": "po_1", "amount": 11000, "at": "2026-01-15T08:00:00Z"}), 200)
	want(t, strings.Join(b.told("status"), " "), "ready")
	if _, err := pgsim.New(pgsim.Config{ClientID: "client"}); err == nil {
		t.Error("a simulator without a secret")
	}
}

// TestCalls: every call is kept, with what was done to it, and without a secret.
func TestCalls(t *testing.T) {
	var seen []string
	b := start(t, func(c *pgsim.Config) { c.OnCall = func(c pgsim.Call) { seen = append(seen, c.On) } })
	want(t, b.control("fault", m{"kind": "timeout-after", "on": "issue"}), 200)
	want(t, b.control("fault", m{"kind": "500", "on": "cancel", "times": 1}), 200)
	b.issue("po_1", "vbank")
	b.control("deposit", m{"orderId": "po_1", "amount": 11000})
	body := m{
		"reason":         "r",
		"orderId":        "rf_1",
		"cancelAmt":      4000,
		"refundAccount":  "1234567890",
		"refundBankCode": "004",
		"refundHolder":   "H",
	}
	b.cancel("po_1", body)
	b.cancel("po_1", body)
	b.send("GET", "/v1/payments/"+b.tid("po_1"), nil)
	var got []string
	for _, c := range b.Calls() {
		got = append(got, fmt.Sprint(c.Seq, c.On, " ", c.OrderID, " ", c.Code, " ", c.Amount, " ", c.Result, " ", c.Fault))
	}
	expected := []string{
		"1issue po_1  11000 0000 timeout-after",
		"2cancel po_1 rf_1 4000  500",
		"3cancel po_1 rf_1 4000 2211 ",
		"4get po_1  0 0000 ",
	}
	if !slices.Equal(got, expected) || !slices.Equal(seen, []string{"issue", "cancel", "cancel", "get"}) {
		t.Errorf("%q %v", got, seen)
	}
	raw, _ := json.Marshal(b.Calls())
	for _, canary := range []string{secret, "1234567890", "Basic"} {
		if bytes.Contains(raw, []byte(canary)) {
			t.Errorf("%q is in %s", canary, raw)
		}
	}
}

// TestPage: a payer pays without a script, and comes back by a form.
func TestPage(t *testing.T) {
	b := start(t, func(c *pgsim.Config) { c.AutoIssue = false })
	_, made := b.send("POST", "/v1/checkout", m{"sessionId": "po_1", "orderId": "po_1", "method": "card", "amount": 11000,
		"goodsName": "<script>alert(1)</script>", "returnUrl": "https://shop.example/return?x=1"})
	page := fmt.Sprint(made["url"])
	status, text := get(t, page)
	want(t, status, 200)
	if strings.Contains(text, "<script>alert") || !strings.Contains(text, "11,000 won") || strings.Contains(text, secret) {
		t.Error(text)
	}
	status, text = press(t, page, "fail")
	want(t, status, 200)
	want(t, field(text, "success"), "false")
	status, text = press(t, page, "pay")
	want(t, status, 200)
	if !strings.Contains(text, `action="https://shop.example/return?x=1"`) || !strings.Contains(text, "Return to the shop") {
		t.Error(text)
	}
	want(t, field(text, "orderId"), "po_1")
	want(t, field(text, "status"), "paid")
	want(
		t,
		field(text, "signature"),
		pgsim.Signature(field(text, "tid"), 11000, strings.ReplaceAll(field(text, "ediDate"), "&#43;", "+"), secret),
	)
	status, _ = press(t, page, "pay")
	want(t, status, 409)
	status, _ = press(t, page, "steal")
	want(t, status, 400)
	status, _ = get(t, page+"x")
	want(t, status, 404)
	want(t, strings.Join(b.told("status"), " "), "failed paid")

	_, made = b.issue("po_2", "vbank")
	page = fmt.Sprint(made["url"])
	_, text = press(t, page, "issue")
	if !strings.Contains(text, "waits for the deposit") || field(text, "status") != "ready" {
		t.Error(text)
	}
	_, made = b.issue("po_3", "vbank")
	code, _ := b.send("POST", "/v1/checkout/po_3/expire", m{})
	want(t, code, "0000")
	status, _ = press(t, fmt.Sprint(made["url"]), "issue")
	want(t, status, 410)
	want(t, b.tid("po_3"), "")
}

func get(t *testing.T, page string) (int, string) {
	t.Helper()
	response, err := http.Get(page)
	return read(t, response, err)
}

func press(t *testing.T, page, button string) (int, string) {
	t.Helper()
	response, err := http.PostForm(page, url.Values{"press": {button}})
	return read(t, response, err)
}

func read(t *testing.T, response *http.Response, err error) (int, string) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(response.Body)
	return response.StatusCode, string(text)
}

func field(page, name string) string {
	found := regexp.MustCompile(`name="` + name + `" value="([^"]*)"`).FindStringSubmatch(page)
	if found == nil {
		return ""
	}
	return found[1]
}

// TestServe: a simulator is for this machine, unless it is told otherwise.
func TestServe(t *testing.T) {
	c := pgsim.Config{ClientID: "client", Secret: secret}
	for _, addr := range []string{"0.0.0.0:0", ":0", "192.168.1.1:0", "example.com:0", "127.0.0.1"} {
		if err := pgsim.Serve(t.Context(), addr, false, c); err == nil {
			t.Errorf("it listens at %s", addr)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := pgsim.Serve(ended, "127.0.0.1:0", false, c); err != nil && !strings.Contains(err.Error(), "canceled") {
		t.Error(err)
	}
}

// TestManyAtOnce: two hundred deposits are told of, each once.
func TestManyAtOnce(t *testing.T) {
	b := start(t, nil)
	var all sync.WaitGroup
	for worker := range 4 {
		all.Go(func() {
			for i := range 50 {
				id := fmt.Sprint("po_", worker, "_", i)
				b.issue(id, "vbank")
				if err := b.Deposit(id, 11000, time.Time{}, 1); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	want(t, len(b.told("tid")), 400)
	tids := map[string]bool{}
	for _, truth := range b.Payments() {
		tids[truth.TID] = true
	}
	want(t, len(tids), 200)
}
