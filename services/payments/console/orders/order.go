package orders

import (
	"net/http"
	"slices"

	"hub.internal/pkg/web"
	"hub.internal/pkg/web/i18n"
	"hub.internal/services/payments"
	"hub.internal/services/payments/order"
)

// mostWebhooks is how many webhooks of an order its page shows, the newest.
const mostWebhooks = 50

// orderPage is an order, and what belongs to it.
type orderPage struct {
	order.Order
	Refundable int64
	Refund     refundCard
	Case       string
	// Resolves tells that the case can be ended: no deposit is open.
	Resolves bool
	Deposits []depositRow
	Refunds  []order.Refund
	Events   []payments.RecordedEvent
	Notices  []noticeRow
	Webhooks []payments.Webhook
	// Most is how many webhooks are shown at most.
	Most int
}

// noticeRow is a notification with its last attempt, and those before it, newest first.
type noticeRow struct {
	payments.NotificationHistory
	Last   *payments.Attempt
	Before []payments.Attempt
}

// depositRow is a deposit with what may be done about it.
type depositRow struct {
	order.Deposit
	Applies, Returns bool
	Path             string
}

// order shows an order with all that belongs to it: deposits, refunds, events, notifications and webhooks, newest
// first.
// E_NOT_FOUND for a code that no order has. What may be done is offered by the aggregate's own rules (CanApplyDeposit and others).
func (p *Pages) order(w http.ResponseWriter, r *http.Request) error {
	ctx, code := r.Context(), r.PathValue("code")
	a, err := p.service.Reports().Order(ctx, code)
	if err != nil {
		return err
	}
	page := orderPage{Order: a.Order, Refundable: a.Order.Refundable(), Case: cases[a.Order.Attention].text,
		Resolves: a.Order.Attention != "", Refunds: a.Refunds, Most: mostWebhooks}
	for _, d := range a.Deposits {
		page.Deposits = append(page.Deposits, depositRow{d, a.CanApplyDeposit(d), a.CanReturnDeposit(d),
			ordersPath + "/" + code + "/deposits/" + d.ID.String()})
		page.Resolves = page.Resolves && !d.NeedsDecision() && d.State != order.DepositStateReturning
	}
	h, err := p.service.Reports().History(ctx, code)
	if err != nil {
		return err
	}
	if page.Refund, err = p.refundCard(ctx, a.Order); err != nil {
		return err
	}
	page.Events = h.Events
	slices.Reverse(page.Events)
	for _, n := range slices.Backward(h.Notifications) {
		row := noticeRow{NotificationHistory: n}
		slices.Reverse(row.Attempts)
		if len(row.Attempts) > 0 {
			row.Last, row.Before = &row.Attempts[0], row.Attempts[1:]
		}
		page.Notices = append(page.Notices, row)
	}
	if page.Webhooks, err = p.service.Reports().Webhooks(ctx, code, mostWebhooks); err != nil {
		return err
	}
	return p.site.Render(w, r, "order", web.Page{Title: code, Lead: a.Order.Name, Wide: true, Data: page,
		Crumbs: []web.Link{{Text: i18n.T(ctx, "Orders"), Href: ordersPath}}})
}

// reconcile asks the provider now.
// A provider that does not answer is E_DB, which the order's page tells. Asking twice does no harm.
func (p *Pages) reconcile(w http.ResponseWriter, r *http.Request) error {
	code := r.PathValue("code")
	answer, err := p.service.Reconcile(r.Context(), code, nil)
	status := said(r.Context(), statusBadge(answer.Order.Status))
	return back(w, r, code, i18n.T(r.Context(), "The provider was asked. The order is %s.", status), err)
}

// redeliver sends a notification again.
// E_CONFLICT for one that is still on its way.
func (p *Pages) redeliver(w http.ResponseWriter, r *http.Request) error {
	ctx, code := r.Context(), r.PathValue("code")
	return back(w, r, code, i18n.T(ctx, "The notification is on its way again, the same bytes under the same id."),
		p.service.Redeliver(ctx, code, r.PathValue("id")))
}
