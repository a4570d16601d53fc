package e2e_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"hub.internal/pkg/hubtest"
)

// operatorRefund: an administrator refunds parts of an order with the keyboard alone, in a wide and in a narrow window; the app is told.
func operatorRefund(t *testing.T, x *shop) {
	installAxe(t)
	o := x.made(t, `{"amount":1000000,"payMethod":"vbank","orderName":"Spring campaign","payment_notify_url":"`+x.echo+`/refunds"}`)
	x.becomes(t, o.Code, "AWAITING_DEPOSIT")
	x.control(t, "deposit", `{"orderId":"`+o.Code+`","amount":1000000}`)
	x.becomes(t, o.Code, "PAID")
	path := "/admin/orders/" + o.Code
	p := x.signedIn(t, x.owner, "/admin")
	p.Press("/")
	p.Field("Search everything").Fill(o.Code)
	p.Press(kb.Enter)
	p.Sees("Spring campaign")
	if p.Path() != path {
		t.Errorf("the code of an order leads to %s", p.Path())
	}
	p.Inspect("order")
	for i, window := range []struct {
		width         int64
		typed, left   string
		before, after string
	}{{1280, "300000", "₩700,000", "₩1,000,000", "₩300,000"}, {390, "250000", "₩450,000", "₩700,000", "₩250,000"}} {
		p.Look("light", window.width)
		p.Open(path)
		p.tabTo("Amount in won")
		p.Field("Amount in won").Fill(window.typed)
		p.Press(kb.Enter)
		p.Sees("Refund " + window.after + " in the sandbox?")
		p.Sees(window.after + " of " + window.before + " go back to the payer; " + window.left + " stay refundable.")
		if i == 0 {
			p.Inspect("refund")
			p.tabTo("Reason")
			p.Press(kb.Enter) // nothing is typed yet: the browser asks for it
			p.Sees("in the sandbox?")
		}
		p.Look("light", window.width)
		p.tabTo("Reason")
		p.Field("Reason").Fill("The campaign was cut short")
		p.Press(kb.Tab)
		p.Field("Amount, once more").Fill(window.typed)
		p.tabTo("Refund " + window.after)
		p.Press(kb.Enter)
		p.Sees(window.after + " went back. " + window.left + " can still be refunded.")
		if i == 0 {
			p.Inspect("order-refunded")
		}
	}
	p.Back() // to the form of a refund that was made
	p.Sees("The order has changed since you looked at it, and nothing was refunded now. What can be refunded is ₩450,000")
	if got := orderOf(t, x.v1(t, "GET", "/v1/pay/orders/"+o.Code, "")); got.Status != "PAID" || got.RefundableAmount != 450000 {
		t.Errorf("%+v", got)
	}
	hubtest.Eventually(t, "the app is told of both", func() bool {
		_, told := plain(t, http.MethodGet, x.echo+"/?order="+o.Code, "", "")
		return strings.Count(told, "payment.refund.succeeded") >= 2
	})
	hubtest.Eventually(t, "both are in the audit log", func() bool {
		return query[int](t, x.suite, `SELECT count(*) FROM audit.calls WHERE tool = 'pay.orders.refund' AND outcome = 'ok'
			AND external_user_id = $1 AND detail ->> 'order' = $2`, x.owner.Email, o.Code)[0] == 2
	})
}

// tabTo presses Tab until the keyboard is at something of this name.
func (p *page) tabTo(name string) {
	p.t.Helper()
	for range 60 {
		p.Press(kb.Tab)
		var at string
		p.Evaluate("document.activeElement.labels?.[0]?.innerText || document.activeElement.innerText || ''", &at)
		if at == name {
			return
		}
	}
	p.t.Fatalf("Tab does not come to %q", name)
}
