package payments_test

import (
	"encoding/json"
	"fmt"
	"html"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/hubtest"
	"hub.internal/services/payments"
	"hub.internal/services/payments/order"
	"hub.internal/services/payments/pgsim"
)

// idleDesk has no jobs, and a clock that a test moves. With needs the provider wants to be told an account.
func idleDesk(t *testing.T, needs bool, onCall func(pgsim.Call)) (*desk, *hubtest.Clock) {
	t.Helper()
	clock := hubtest.NewClock(time.Time{})
	d := newDesk(t, options{idle: true, now: clock.Now, onCall: onCall, change: func(c *payments.Config) {
		if needs {
			c.Provider = needy{c.Provider}
		}
	}})
	d.still = true
	return d, clock
}

var hidden = regexp.MustCompile(`<input type="hidden" name="(key|refundable|amount)" value="([^"]*)">`)

// offer is what the form on an order's page sends when an amount is typed into it.
func (d *desk) offer(code, amount string) url.Values {
	d.t.Helper()
	v := url.Values{"amount": {amount}}
	for _, m := range hidden.FindAllStringSubmatch(d.page("/admin/orders/"+code), -1) {
		v.Set(m[1], m[2])
	}
	if v.Get("key") == "" || v.Get("refundable") == "" {
		d.t.Fatalf("the page of %s offers no refund: %v", code, v)
	}
	return v
}

// confirmed is what the page that asks sends, with what is typed there.
func (d *desk) confirmed(code, amount string, typed ...string) url.Values {
	d.t.Helper()
	page := d.page("/admin/orders/" + code + "/refund?" + d.offer(code, amount).Encode())
	v := url.Values{"typed": {amount}, "reason": {"Kim sent it back"}}
	for _, m := range hidden.FindAllStringSubmatch(page, -1) {
		v.Set(m[1], html.UnescapeString(m[2]))
	}
	for i := 0; i+1 < len(typed); i += 2 {
		v.Set(typed[i], typed[i+1])
	}
	return v
}

// refundRows are the rows of the audit log about refunds of an order, as outcome, who and detail.
func (d *desk) refundRows(code string) []string {
	d.t.Helper()
	return d.texts(`SELECT concat_ws(' ', outcome, external_user_id, detail) FROM audit.calls
		WHERE tool = 'pay.orders.refund' AND detail->>'order' = $1 ORDER BY at, id`, code)
}

func TestOperatorRefunds(t *testing.T) {
	t.Parallel()
	d, _ := idleDesk(t, true, nil)
	o := d.paidIdle()
	refund := "/admin/orders/" + o.Code + "/refund"
	page := d.page("/admin/orders/"+o.Code, "Amount in won", "All that can be refunded is ₩11,000.", "Who has the role admin may refund.")
	if !strings.Contains(page, `type="number" value="11000" required="" min="1" max="11000"`) {
		t.Error("the amount has no bounds")
	}
	d.page(refund+"?"+d.offer(o.Code, "4000").Encode(), "Refund ₩4,000 in the sandbox?", "no money moves", "svc for u-77",
		"₩4,000 of ₩11,000 go back to the account that you name here; ₩7,000 stay refundable.", "Type 4,000 to confirm.")
	form := d.confirmed(o.Code, "4000", append([]string{"typed", "₩4,000"}, payersAccount...)...)
	d.says(refund, form, "₩4,000 went back. ₩7,000 can still be refunded.")
	// Back, and sent again: the first answer counts. With something else in it, nothing happens.
	d.says(refund, form, "₩4,000 went back. ₩7,000 can still be refunded.")
	other := url.Values{}
	for name, value := range form {
		other[name] = value
	}
	other.Set("reason", "another one")
	d.says(refund, other, "sent before with something else in it")
	d.page("/admin/orders/"+o.Code, "₩4,000", "Kim sent it back", "004 ****", "operator:"+operator, "!"+accountNumber)
	// All that is left.
	d.page(refund+"?"+d.offer(o.Code, "7000").Encode(), "All of ₩7,000 go back")
	d.says(refund, d.confirmed(o.Code, "7000", payersAccount...), "₩7,000 went back. Nothing is left to refund.")
	d.page("/admin/orders/"+o.Code, "all of it went back", "!Amount in won")
	d.says(refund, form, "₩4,000 went back.") // an answer is kept, whatever became of the order

	a, truth := d.book(o.Code), d.truth(o.Code)
	if a.Order.Status != order.Refunded || len(a.Refunds) != 2 || truth.Cancelled != 11000 || a.Refunds[0].Source != order.SourceAPI {
		t.Errorf("%+v %+v of %+v", a.Order, a.Refunds, truth)
	}
	if part, all := d.told(o.Code, order.NotifyRefundSucceeded), d.told(o.Code, order.NotifyRefunded); part != 1 || all != 1 {
		t.Errorf("the app was told of %d and %d", part, all)
	}
	rows := d.refundRows(o.Code)
	if len(rows) != 3 || !strings.HasPrefix(rows[0], "ok "+operator) || !strings.Contains(rows[0], `"amount": 4000`) ||
		!strings.Contains(rows[0], `"status": "SUCCEEDED"`) || !strings.Contains(rows[1], "IDEMPOTENCY_KEY_CONFLICT") {
		t.Errorf("%q", rows)
	}
	if n := d.rows(`SELECT count(*) FROM payments.refunds WHERE account IS NULL OR position($1 IN encode(account, 'escape')) > 0`,
		accountNumber); n != 0 {
		t.Errorf("%d accounts are not sealed", n)
	}
	d.noCanary()
}

// TestRefundFormIsRefused: what is wrong with it is said at its field, and nothing is kept; no page shows the account's number again.
func TestRefundFormIsRefused(t *testing.T) {
	t.Parallel()
	d, _ := idleDesk(t, true, nil)
	o := d.paidIdle()
	refund := "/admin/orders/" + o.Code + "/refund"
	good := func(more ...string) url.Values { return d.confirmed(o.Code, "4000", append(payersAccount, more...)...) }
	for name, bad := range map[string]struct{ field, value, says string }{
		"amount 0":           {"amount", "0", "amount: This must be a whole number of won, at least 1."},
		"amount -1":          {"amount", "-1", "amount: This must be a whole number of won, at least 1."},
		"amount 1.5":         {"amount", "1.5", "amount: This must be a whole number of won, at least 1."},
		"no amount":          {"amount", "", "amount: This must be a whole number of won, at least 1."},
		"another typed":      {"typed", "40000", "This must be the amount, 4000."},
		"nothing typed":      {"typed", "", "This must be the amount, 4000."},
		"no reason":          {"reason", " ", "This is needed: who looks at it later wants to know."},
		"a long reason":      {"reason", strings.Repeat("가", 101), "This must be at most 100 characters on one line."},
		"two lines":          {"reason", "a\nb", "This must be at most 100 characters on one line."},
		"no bank":            {"bankCode", "", "This must be three digits."},
		"no account":         {"accountNumber", "", "This must be 1 to 16 digits."},
		"a long account":     {"accountNumber", accountNumber + "0", "This must be 1 to 16 digits."},
		"no holder":          {"holder", "", "This must be 1 to 10 characters on one line."},
		"a holder, 2 lines":  {"holder", "a\nb", "This must be 1 to 10 characters on one line."},
		"no key":             {"key", "", "The form does not say which refund it is."},
		"a key of one's own": {"key", "mine", "The form does not say which refund it is."},
	} {
		w := d.send(ada("admin"), "POST", refund, good(bad.field, bad.value))
		if w.Code != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d", name, w.Code)
		}
		d.has(w, bad.says)
	}
	for amount, form := range map[string]url.Values{"over": good("amount", "11001", "typed", "11001"),
		"far over": good("amount", "1000000000000", "typed", "1000000000000")} {
		if said := d.post(refund, form); !strings.Contains(said, "more than what can be refunded") {
			t.Errorf("%s: %s", amount, said)
		}
	}
	// The first step refuses the same, before anything is asked for.
	for _, amount := range []string{"0", "-1", "1.5", "11001", "", "x"} {
		if w := d.send(ada("admin"), "GET", refund+"?"+d.offer(o.Code, amount).Encode(), nil); w.Code != http.StatusSeeOther {
			t.Errorf("the page asks about %q: %d", amount, w.Code)
		}
	}
	if a := d.book(o.Code); len(a.Refunds) != 0 || a.Order.PendingRefund != 0 || d.truth(o.Code).Cancelled != 0 {
		t.Errorf("%+v %+v", a.Order, a.Refunds)
	}
	d.noCanary()
}

// TestOneRefundOfManyForms: two tabs, or a double click, refund once.
func TestOneRefundOfManyForms(t *testing.T) {
	t.Parallel()
	d, _ := idleDesk(t, false, nil)
	tabs, click := d.paidIdle(), d.paidIdle()
	twice := d.confirmed(click.Code, "4000")
	var codes [8]string
	var forms [8]url.Values
	for i := range forms {
		codes[i], forms[i] = click.Code, twice
		if i%2 == 0 {
			codes[i], forms[i] = tabs.Code, d.confirmed(tabs.Code, "4000")
		}
	}
	together(len(forms), func(i int) error {
		if w := d.send(ada("admin"), "POST", "/admin/orders/"+codes[i]+"/refund", forms[i]); w.Code != http.StatusSeeOther {
			t.Errorf("%d: %d %s", i, w.Code, w.Body)
		}
		return nil
	})
	for _, code := range []string{tabs.Code, click.Code} {
		if a, truth := d.book(code), d.truth(code); len(a.Refunds) != 1 || a.Order.RefundedAmount != 4000 || len(truth.Cancels) != 1 ||
			d.told(code, order.NotifyRefundSucceeded) != 1 {
			t.Errorf("%+v %+v of %+v", a.Order, a.Refunds, truth)
		}
	}
	ok := func(code string) (n int) {
		for _, row := range d.refundRows(code) {
			if strings.HasPrefix(row, "ok ") {
				n++
			}
		}
		return n
	}
	if ok(tabs.Code) != 1 || ok(click.Code) != 1 {
		t.Errorf("%q %q", d.refundRows(tabs.Code), d.refundRows(click.Code))
	}
}

func TestStaleRefundPage(t *testing.T) {
	t.Parallel()
	d, _ := idleDesk(t, false, nil)
	o := d.paidIdle()
	refund := "/admin/orders/" + o.Code + "/refund"
	first, second := d.offer(o.Code, "4000"), d.confirmed(o.Code, "4000")
	d.must("pay.orders.refund", "", `{"code":"`+o.Code+`","amount":1000}`)
	const moved = "nothing was refunded now. What can be refunded is ₩10,000"
	d.says(refund, second, moved)
	w := d.send(ada("admin"), "GET", refund+"?"+first.Encode(), nil)
	if w.Code != http.StatusSeeOther || len(w.Result().Cookies()) == 0 {
		t.Errorf("a page asks about a balance that is gone: %d", w.Code)
	}
	if a := d.book(o.Code); len(a.Refunds) != 1 {
		t.Errorf("%+v", a.Refunds)
	}
	if rows := d.refundRows(o.Code); len(rows) != 2 || !strings.HasPrefix(rows[1], "E_CONFLICT "+operator) ||
		!strings.Contains(rows[1], "AMOUNT_MISMATCH") {
		t.Errorf("%q", rows)
	}
}

func TestUnknownRefundOfAnOperator(t *testing.T) {
	t.Parallel()
	d, clock := idleDesk(t, false, nil)
	for _, kind := range []string{pgsim.TimeoutBefore, pgsim.TimeoutAfter} {
		o := d.paidIdle()
		refund := "/admin/orders/" + o.Code + "/refund"
		d.arm(kind, "cancel", 1)
		form := d.confirmed(o.Code, "11000")
		at := clock.Now().Add(2 * time.Minute).UTC().Format("15:04 UTC")
		d.says(refund, form, "nobody knows yet whether ₩11,000 went back. Hub asks again at "+at+". Do not refund it again.")
		d.says(refund, form, "nobody knows yet") // sent again, it asks nobody
		d.page("/admin/orders/"+o.Code, "The provider has not answered yet. Hub asks again "+clock.Now().Add(2*time.Minute).UTC().
			Format("2006-01-02 15:04"), "Do not refund it again.", "₩11,000 of it is being refunded.", "!Amount in won")
		if rows := d.refundRows(o.Code); len(rows) != 1 || !strings.Contains(rows[0], `"status": "PENDING"`) {
			t.Errorf("%s: %q", kind, rows)
		}
		clock.Advance(3 * time.Minute)
		d.resolve(o.Code)
		d.resolve(o.Code)
		if a, truth := d.book(o.Code), d.truth(o.Code); a.Order.Status != order.Refunded || truth.Cancelled != 11000 || len(truth.Cancels) != 1 {
			t.Errorf("%s: %+v of %+v", kind, a.Order, truth)
		}
		d.says(refund, form, "₩11,000 went back.") // and is told what is known by now
	}
}

func TestRefundOfAnOperatorIsDeclined(t *testing.T) {
	t.Parallel()
	d, _ := idleDesk(t, true, nil)
	o := d.paidIdle()
	refund := "/admin/orders/" + o.Code + "/refund"
	d.do(d.sim.Arm(pgsim.Fault{Kind: pgsim.Decline, On: "cancel", Code: "2016"}))
	form := d.confirmed(o.Code, "4000", payersAccount...)
	d.says(refund, form, "The payment provider refuses this refund: ")
	d.page("/admin/orders/"+o.Code, "Failed", "(2016)", "All that can be refunded is ₩11,000.")
	if rows := d.refundRows(o.Code); len(rows) != 1 || !strings.HasPrefix(rows[0], "E_CONFLICT "+operator) ||
		!strings.Contains(rows[0], "PROVIDER_DECLINED") || !strings.Contains(rows[0], "2016") || !strings.Contains(rows[0], `"amount": 4000`) {
		t.Errorf("%q", rows)
	}
	if n := d.told(o.Code, order.NotifyRefundFailed); n != 1 {
		t.Errorf("told %d times", n)
	}
	d.says(refund, form, "₩4,000 went back.") // the key is free, and the balance is as it was seen
	d.noCanary()
}

// TestRefundInProduction: the page that asks says where it is, and what else speaks against it.
func TestRefundInProduction(t *testing.T) {
	t.Parallel()
	d, _ := idleDesk(t, false, nil)
	o := d.paidIdle()
	if _, err := d.super.Exec(t.Context(), `UPDATE payments.orders SET env = 'production', attention = 'BALANCE_DRIFT' WHERE code = $1`,
		o.Code); err != nil {
		t.Fatal(err)
	}
	d.page("/admin/orders/"+o.Code+"/refund?"+d.offer(o.Code, "11000").Encode(), "Refund ₩11,000 in production?",
		"This is production: money moves. The order needs attention: The provider has another balance than Hub.", "!sandbox")
}

// TestNothingToRefund: the page says why, a form of before says the same, and a hand-made one does nothing.
func TestNothingToRefund(t *testing.T) {
	t.Parallel()
	d, _ := idleDesk(t, false, nil)
	waits, ended := d.order(""), d.order("")
	d.must("pay.orders.cancel", "", `{"code":"`+ended.Code+`"}`)
	for code, why := range map[string]string{waits.Code: "It is not paid yet", ended.Code: "It has ended without being paid"} {
		d.page("/admin/orders/"+code, why, "!Amount in won")
		refund := "/admin/orders/" + code + "/refund"
		form := url.Values{"key": {payments.NewFormKey()}, "amount": {"4000"}, "refundable": {"11000"}, "typed": {"4000"}, "reason": {"x"}}
		if w := d.send(ada("admin"), "GET", refund+"?"+form.Encode(), nil); w.Code != http.StatusSeeOther {
			t.Errorf("%s: %d", refund, w.Code)
		}
		d.says(refund, form, "only a PAID one can be refunded")
	}
	if w := d.send(ada("admin"), "POST", "/admin/orders/po_none/refund", url.Values{}); w.Code != http.StatusNotFound {
		t.Errorf("of no order: %d", w.Code)
	}
}

// TestRefundNeedsTheRole: nobody but an administrator refunds, whatever they send.
func TestRefundNeedsTheRole(t *testing.T) {
	t.Parallel()
	d, _ := idleDesk(t, false, nil)
	o := d.paidIdle()
	form := d.confirmed(o.Code, "4000")
	for _, who := range []caller.Caller{ada("reviewer"), ada(), {Kind: caller.Visitor, RequestID: "req_1"}} {
		for _, method := range []string{"GET", "POST"} {
			w := d.send(who, method, "/admin/orders/"+o.Code+"/refund?"+d.offer(o.Code, "4000").Encode(), form)
			want := http.StatusForbidden
			if who.Kind == caller.Visitor {
				want = http.StatusUnauthorized
			}
			if w.Code != want || want == http.StatusForbidden && !strings.Contains(w.Body.String(), "for users with the role admin") {
				t.Errorf("%s as %v: %d", method, who.Roles, w.Code)
			}
		}
	}
	if a := d.book(o.Code); len(a.Refunds) != 0 {
		t.Errorf("%+v", a.Refunds)
	}
}

// TestLeftRefundOfAnOperator: whoever ends the call of a process that has gone records it in the operator's name.
func TestLeftRefundOfAnOperator(t *testing.T) {
	t.Parallel()
	const lease = 20 * time.Millisecond
	var config payments.Config
	d := newDesk(t, options{idle: true, lease: lease, change: func(c *payments.Config) { config = *c }})
	o := d.paidIdle()
	store := &dies{Store: d.store}
	config.Store, config.Logger = store, slog.New(slog.DiscardHandler)
	dying := payments.New(config)
	ctx := caller.With(t.Context(), ada("admin"))
	form := payments.RefundForm{Key: payments.NewFormKey(), Amount: 4000, Typed: "4000", Refundable: 11000, Reason: "x"}
	if _, err := dying.RefundAsOperator(ctx, o.Code, form); err == nil {
		t.Fatal("it did not die")
	}
	time.Sleep(2 * lease)
	d.do(d.service.Complete(t.Context()))
	if a := d.book(o.Code); a.Order.RefundedAmount != 4000 || len(d.truth(o.Code).Cancels) != 1 {
		t.Errorf("%+v", a.Order)
	}
	said := d.texts(`SELECT row_to_json(c)::text FROM audit.calls c WHERE tool = 'pay.orders.refund' AND outcome = 'ok'`)
	var row struct {
		Service string `json:"service"`
		User    string `json:"external_user_id"`
	}
	if len(said) != 1 || json.Unmarshal([]byte(said[0]), &row) != nil || row.Service != "console" || row.User != operator {
		t.Errorf("%q", said)
	}
	actors := d.texts(`SELECT DISTINCT actor FROM payments.order_events WHERE trigger IN ('refund_requested', 'refund_part')`)
	if fmt.Sprint(actors) != "[operator:"+operator+"]" {
		t.Errorf("%v", actors)
	}
	if made, err := d.service.RefundAsOperator(ctx, o.Code, form); err != nil || made.Amount != 4000 {
		t.Errorf("%+v %v", made, err)
	}
}
