package orders

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/web"
	"hub.internal/pkg/web/i18n"
	"hub.internal/services/payments"
	"hub.internal/services/payments/credentials"
	"hub.internal/services/payments/order"
	"hub.internal/services/payments/provider"
)

// refundCard is what an order's page offers of refunds.
type refundCard struct {
	// WhyNot tells why nothing can be refunded; it is empty when something can.
	WhyNot string
	// Key is the form's: whatever is sent of it, and however often, is one refund.
	Key string
	// Amount begins as all that can be refunded. Least and most are told to the browser, and judged again by confirmRefund and the
	// Service.
	Amount web.Field
	// Next is when the provider is asked again about a refund whose outcome is not known.
	Next *time.Time
}

// refundCard is that of an order.
// The key is drawn when the page is made (an idempotency key), so a form that is sent twice refunds once.
func (p *Pages) refundCard(ctx context.Context, o order.Order) (c refundCard, err error) {
	left := o.Refundable()
	c = refundCard{WhyNot: whyNoRefund(ctx, o), Key: payments.NewFormKey(), Amount: web.Field{Name: "amount",
		Label: i18n.T(ctx, "Amount in won"), Type: "number", Value: strconv.FormatInt(left, 10), Min: p.leastRefund(o), Max: left,
		Required: true, Autocomplete: "off", Hint: i18n.T(ctx, "All that can be refunded is %s.", won(left))}}
	if c.Amount.Min > 1 {
		c.Amount.Hint = i18n.T(ctx, "The provider refunds no part of it: all of %s or nothing.", won(left))
	}
	if o.PendingRefund > 0 {
		c.Next, err = p.service.NextCheck(ctx, o.Code)
	}
	return c, err
}

// leastRefund is the least that the provider refunds of an order.
// Where the provider refunds no part, least and most are the same amount.
func (p *Pages) leastRefund(o order.Order) int64 {
	if p.service.Capabilities(o).PartialRefund {
		return 1
	}
	return max(1, o.Refundable())
}

// whyNoRefund tells why nothing of an order can be refunded; empty when something can.
func whyNoRefund(ctx context.Context, o order.Order) string {
	switch o.Status {
	case order.Paid:
		if o.Refundable() > 0 {
			return ""
		}
		return i18n.T(ctx, "Nothing is left to refund: %s of it is being refunded.", won(o.PendingRefund))
	case order.Refunded:
		return i18n.T(ctx, "Nothing is left to refund: all of it went back.")
	case order.Ready, order.AwaitingDeposit:
		return i18n.T(ctx, "It is not paid yet, and only what was paid can be refunded.")
	}
	return i18n.T(ctx, "It has ended without being paid, and only what was paid can be refunded. "+
		"Money that came later is a deposit, and is paid back as that.")
}

// refundForm is what a form says of a refund. What is no amount is -1.
func refundForm(form url.Values) payments.RefundForm {
	return payments.RefundForm{Key: form.Get("key"), Amount: payments.ParseWon(form.Get("amount")),
		Refundable: payments.ParseWon(form.Get("refundable")), Typed: form.Get("typed"), Reason: form.Get("reason")}
}

// confirmRefund asks before a refund, unless the order is not any more as it was seen.
// The amount comes in the address: this is a GET, which changes nothing. What is refused leads back to the order with the reason.
func (p *Pages) confirmRefund(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	a, err := p.service.Reports().Order(ctx, r.PathValue("code"))
	if err != nil {
		return err
	}
	f, o := refundForm(r.URL.Query()), a.Order
	left, least := o.Refundable(), p.leastRefund(o)
	why := whyNoRefund(ctx, o)
	switch {
	case why != "":
	case f.Refundable != left:
		why = refundMoved(ctx, left)
	case f.Amount < least || f.Amount > left:
		why = i18n.T(ctx, "Nothing was refunded. The amount has to be in whole won, from %s to %s.", won(least), won(left))
	default:
		return p.askForRefund(w, r, o, f, nil, nil)
	}
	web.Wrong(w, r, why)
	return web.Go(w, r, ordersPath+"/"+o.Code)
}

// askForRefund answers the page that asks, with what was typed before and what is wrong with it.
// It shows the environment first: whoever tests in the sandbox must not refund in production by mistake.
func (p *Pages) askForRefund(w http.ResponseWriter, r *http.Request, o order.Order, f payments.RefundForm, form url.Values,
	wrong error) error {
	ctx := r.Context()
	amount, whom, needsAccount := won(f.Amount), i18n.T(ctx, "the payer"), p.service.Capabilities(o).NeedsRefundAccount
	fields := []*web.Field{
		{Name: "reason", Label: i18n.T(ctx, "Reason"), Required: true, MaxLength: payments.MaxReason, Autocomplete: "off",
			Hint: i18n.T(ctx, "The provider and the app see it. Write no account numbers.")},
		{Name: "typed", Label: i18n.T(ctx, "Amount, once more"), Required: true, MaxLength: 15, Autocomplete: "off",
			Hint: i18n.T(ctx, "Type %s to confirm.", web.Number(f.Amount))},
	}
	switch {
	case needsAccount:
		whom = i18n.T(ctx, "the account that you name here")
		fields = append(accountFields(ctx, true), fields...)
	case o.PayMethod == provider.Card:
		whom = i18n.T(ctx, "the payer’s card")
	}
	c := web.Confirmation{
		Text:   i18n.T(ctx, "%s of %s go back to %s; %s stay refundable.", amount, won(f.Refundable), whom, won(f.Refundable-f.Amount)),
		Hidden: map[string]string{"key": f.Key, "amount": strconv.FormatInt(f.Amount, 10), "refundable": strconv.FormatInt(f.Refundable, 10)},
		Facts: []web.Fact{{Label: i18n.T(ctx, "Environment"), Value: i18n.T(ctx, "Sandbox: no money moves")}, orderFact(ctx, o),
			{Label: i18n.T(ctx, "App"), Value: i18n.T(ctx, "%s for %s", o.ServiceCode, o.ExternalUserID)}},
		Button: i18n.T(ctx, "Refund %s", amount), Keep: web.Link{Text: i18n.T(ctx, "Refund nothing"), Href: ordersPath + "/" + o.Code}}
	if f.Amount == f.Refundable {
		c.Text = i18n.T(ctx, "All of %s go back to %s; nothing stays refundable.", amount, whom)
	}
	c.Text += " " + i18n.T(ctx, "The app is told. That cannot be taken back.")
	title := i18n.T(ctx, "Refund %s in the sandbox?", amount)
	if o.Env == credentials.Production {
		title, c.Facts[0].Value = i18n.T(ctx, "Refund %s in production?", amount), i18n.T(ctx, "Production: money moves")
		c.Warning = i18n.T(ctx, "This is production: money moves.") + " "
	}
	if o.Attention != "" {
		c.Warning += i18n.T(ctx, "The order needs attention: %s", i18n.From(ctx).Text(cases[o.Attention].text))
	}
	if o.Name != "" {
		c.Facts = append(c.Facts, web.Fact{Label: i18n.T(ctx, "What was sold"), Value: o.Name})
	}
	return p.ask(w, r, title, o.Code, c, fields, form, wrong)
}

// refund does what was asked about, and tells what the provider has answered.
// Its outcomes are success, failure and unknown. Unknown is told apart, because a second refund would pay twice.
func (p *Pages) refund(w http.ResponseWriter, r *http.Request, form url.Values) error {
	ctx, code := r.Context(), r.PathValue("code")
	a, err := p.service.Reports().Order(ctx, code)
	if err != nil {
		return err
	}
	f := refundForm(form)
	if p.service.Capabilities(a.Order).NeedsRefundAccount {
		f.Account = accountOf(form)
	}
	made, refused := p.service.RefundAsOperator(ctx, code, f)
	if fault.Is(refused, fault.Validation) {
		return p.askForRefund(w, r, a.Order, f, form, refused)
	}
	if a, err = p.service.Reports().Order(ctx, code); err != nil {
		return err
	}
	left := a.Order.Refundable()
	switch {
	case refused != nil && order.ConflictCode(refused) == order.CodeAmountMismatch:
		web.Wrong(w, r, refundMoved(ctx, left))
	case refused != nil && order.ConflictCode(refused) == order.CodeKeyReused:
		web.Wrong(w, r, i18n.T(ctx, "This form was sent before with something else in it, and that is what counts. Nothing more was refunded."))
	case refused != nil && order.ConflictCode(refused) == order.CodeInProgress:
		web.Wrong(w, r, i18n.T(ctx, "This form was sent before, and the provider has not answered yet. Do not refund again."))
	case refused != nil:
		return back(w, r, code, "", refused)
	case made.Status == order.RefundSucceeded && left == 0:
		web.Done(w, r, i18n.T(ctx, "%s went back. Nothing is left to refund.", won(made.Amount)))
	case made.Status == order.RefundSucceeded:
		web.Done(w, r, i18n.T(ctx, "%s went back. %s can still be refunded.", won(made.Amount), won(left)))
	case made.Status == order.RefundFailed:
		web.Wrong(w, r, i18n.T(ctx, "%s did not go back: %s. %s can be refunded.", won(made.Amount),
			strings.TrimRight(made.Failure.Message, "."), won(left)))
	default:
		return p.tellUnknownRefund(w, r, code, made)
	}
	return web.Go(w, r, ordersPath+"/"+code)
}

// tellUnknownRefund tells that nobody knows yet what became of a refund, and when Hub asks.
func (p *Pages) tellUnknownRefund(w http.ResponseWriter, r *http.Request, code string, made order.Refund) error {
	ctx := r.Context()
	next, err := p.service.NextCheck(ctx, code)
	if err != nil {
		return err
	}
	when := i18n.T(ctx, "soon")
	if next != nil {
		when = i18n.T(ctx, "at %s", next.UTC().Format("15:04 UTC"))
	}
	web.Wrong(w, r, i18n.T(ctx, "The provider did not answer: nobody knows yet whether %s went back. Hub asks again %s. "+
		"Do not refund it again.", won(made.Amount), when))
	return web.Go(w, r, ordersPath+"/"+code)
}

// refundMoved tells that an order is another one than its page said.
func refundMoved(ctx context.Context, left int64) string {
	return i18n.T(ctx, "The order has changed since you looked at it, and nothing was refunded now. What can be refunded is %s: "+
		"look at its refunds, and begin again if you still want to.", won(left))
}
