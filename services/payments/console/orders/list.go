package orders

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/web"
	"hub.internal/pkg/web/i18n"
	"hub.internal/services/payments"
	"hub.internal/services/payments/credentials"
	"hub.internal/services/payments/order"
	"hub.internal/services/payments/provider"
)

const (
	// onPage is how many orders a page has.
	onPage = 50
	// mostFirst is how many cases stand above the list.
	mostFirst = 5
	// mostDays bounds the plot.
	mostDays   = 92
	exportPath = ordersPath + "/export"
	// exportLimit is how many orders one export has.
	exportLimit = 100_000
)

// listPage is the list, or what of it was looked for.
type listPage struct {
	Filter  filter
	Choices []web.Choice
	// First are the newest cases; Cases counts them all.
	First  []order.Order
	Cases  payments.AttentionCounts
	All    string // the address of all cases
	Orders []order.Order
	// Totals and Sum are over all pages of the list, of the orders of one environment, Env; Plot is nil when there is nothing to draw.
	Env    credentials.Env
	Totals []payments.StatusTotal
	Sum    payments.StatusTotal
	Plot   *web.Plot
	Pager  web.Pager
	Export string
	Limit  int
}

// list shows a page of orders. The first page also has the newest cases, the sums and the plot; further ones have the
// list alone.
// A time that is none is status 422, with the form and without a list. Pages go by keyset pagination: after is a moment and a code.
func (p *Pages) list(w http.ResponseWriter, r *http.Request) error {
	ctx, q, now := r.Context(), r.URL.Query(), p.now()
	f := filterOf(ctx, q, now, p.service.Env())
	// A form sends its empty fields too; the address without them is the one to keep.
	for name := range q {
		if q.Get(name) == "" {
			return web.Go(w, r, f.Address(ordersPath, "after", q.Get("after")))
		}
	}
	page := listPage{Filter: f, Export: f.Address(exportPath, "", ""), Limit: exportLimit, All: filter{}.Address(ordersPath, "show",
		showAttention),
		Pager: web.Pager{Label: i18n.T(ctx, "More orders"), Key: "n"}}
	before, further := positionOf(q.Get("after"))
	if further {
		page.Pager.Back = web.Link{Text: i18n.T(ctx, "Newest"), Href: f.Address(ordersPath, "", "")}
		f.Before = before
	}
	status := 0
	if f.Wrong {
		status = http.StatusUnprocessableEntity
	} else if err := p.loadList(r, &page, f, now, !further); err != nil {
		return err
	}
	return p.site.Render(w, r, "orders", web.Page{Title: i18n.T(ctx, "Orders"), Wide: true, Status: status, Data: page,
		Lead: i18n.T(ctx, "What Connected Apps have ordered, newest first."),
		Keys: []web.Key{{Press: "j", Does: i18n.T(ctx, "Next order")}, {Press: "k", Does: i18n.T(ctx, "The order before")},
			{Press: "o", Does: i18n.T(ctx, "Open the order")}, {Press: "n", Does: i18n.T(ctx, "Next page")}}})
}

// loadList reads what the page shows.
// The counts of cases are read for each page, because the choices above the list show them.
func (p *Pages) loadList(r *http.Request, page *listPage, f filter, now time.Time, first bool) (err error) {
	ctx, reports := r.Context(), p.service.Reports()
	if page.Cases, err = reports.AttentionCounts(ctx, now.Add(-payments.StuckFor)); err != nil {
		return err
	}
	page.choices(ctx, f)
	f.Limit = onPage
	aggregates, next, err := p.service.List(ctx, f.Filter)
	if err != nil {
		return err
	}
	page.Orders = ordersOf(aggregates)
	if next != nil {
		page.Pager.Next = web.Link{Text: i18n.T(ctx, "Older"), Href: f.Address(ordersPath, "after", cursorOf(*next))}
	}
	if !first {
		return nil
	}
	if !f.Searches() && page.Cases.Flagged > 0 {
		aggregates, _, err := p.service.List(ctx, payments.Filter{Attention: true, Limit: mostFirst})
		if err != nil {
			return err
		}
		page.First = ordersOf(aggregates)
	}
	sums := f.sums(p.service.Env())
	page.Env = sums.Env
	if page.Totals, err = reports.Totals(ctx, sums); err != nil {
		return err
	}
	page.addTotals()
	return p.plot(r, page, sums, now)
}

// ordersOf leaves of aggregates what a row of the list shows.
func ordersOf(aggregates []*order.Aggregate) []order.Order {
	list := make([]order.Order, len(aggregates))
	for i, a := range aggregates {
		list[i] = a.Order
	}
	return list
}

// choices are the parts of the list, with how many are in those that somebody has to look at.
// A count of -1 is shown as none. A choice drops the filter: a case is found however old it is.
func (l *listPage) choices(ctx context.Context, f filter) {
	for _, c := range []struct {
		show, text string
		count      int
	}{{showAll, i18n.T(ctx, "All"), -1}, {showAttention, i18n.T(ctx, "Need attention"), l.Cases.Flagged},
		{showStuck, i18n.T(ctx, "Ready for over an hour"), l.Cases.Stuck},
		{showUndelivered, i18n.T(ctx, "Notification given up"), l.Cases.Undelivered}} {
		l.Choices = append(l.Choices, web.Choice{Text: c.text, Href: filter{}.Address(ordersPath, "show", c.show), Active: f.Show == c.show,
			Count: c.count})
	}
}

// addTotals orders the totals as statuses go, and adds them up.
func (l *listPage) addTotals() {
	slices.SortFunc(l.Totals, func(a, b payments.StatusTotal) int {
		return slices.Index(order.Statuses(), a.Status) - slices.Index(order.Statuses(), b.Status)
	})
	for _, t := range l.Totals {
		l.Sum.Orders, l.Sum.Amount, l.Sum.Paid = l.Sum.Orders+t.Orders, l.Sum.Amount+t.Amount, l.Sum.Paid+t.Paid
		l.Sum.Refunded, l.Sum.Pending = l.Sum.Refunded+t.Refunded, l.Sum.Pending+t.Pending
	}
}

// korea is where the days of the plot begin.
var korea = time.FixedZone("KST", 9*60*60)

// plot draws what was paid and paid back by day, of the orders that are added up.
func (p *Pages) plot(r *http.Request, page *listPage, f payments.Filter, now time.Time) error {
	ctx, to := r.Context(), now
	if !f.CreatedBefore.IsZero() && f.CreatedBefore.Before(now) {
		to = f.CreatedBefore
	}
	from := f.CreatedAfter
	// Two fewer: midnight adds up to a day at the begin, and the last day is not over.
	if oldest := to.Add(-(mostDays - 2) * oneDay); from.Before(oldest) {
		from = oldest
	}
	from = midnight(from)
	days, err := p.service.Reports().Days(ctx, f, from)
	if err != nil || len(days) == 0 {
		return err
	}
	// Days are Korea's, where the payers and their banks are.
	plot := web.Plot{ID: "days", Title: i18n.T(ctx, "Paid and refunded"), Caption: i18n.T(ctx, "Won paid and refunded by day in Korea"),
		Kind: "bars", Unit: "won", Step: int(oneDay.Seconds()), Zone: 9 * 60 * 60, Series: []web.Series{
			{Label: i18n.T(ctx, "Paid"), Color: "--accent"}, {Label: i18n.T(ctx, "Refunded"), Color: "--warn-fill"}}}
	known := map[string]payments.DailyTotal{}
	for _, d := range days {
		// A day without payments has no row in the store, and a bar of zero in the plot.
		known[d.At.In(korea).Format(time.DateOnly)] = d
	}
	for at := from; !at.After(to); at = at.Add(oneDay) { // there is no summer time in Korea
		d := known[at.Format(time.DateOnly)]
		plot.Rows = append(plot.Rows, web.PlotRow{At: at, Name: at.Format(time.DateOnly), Values: []web.PlotValue{
			{Raw: strconv.FormatInt(d.Paid, 10), Text: won(d.Paid)}, {Raw: strconv.FormatInt(d.Refunded, 10), Text: won(d.Refunded)}}})
	}
	page.Plot = &plot
	return nil
}

// midnight is when the day in Korea began.
func midnight(at time.Time) time.Time {
	y, m, d := at.In(korea).Date()
	return time.Date(y, m, d, 0, 0, 0, 0, korea)
}

// exportColumns is the header of the export; programs read it, so that names stay and new ones come at the end.
var exportColumns = []string{"code", "status", "attention", "app", "external_user_id", "client_order_id", "name", "pay_method", "env",
	"currency", "amount",
	"supply_amount", "vat", "paid", "refunded", "pending_refund", "refundable", "provider", "provider_id", "bank", "virtual_account",
	"expires_at", "created_at",
	"issued_at", "paid_at", "closed_at", "version"}

// export streams what was looked for as CSV. Who has asked for what is in the audit log before the first byte.
// The rows are streamed, so an error in the middle can only break off. One row at the end says when the limit has cut it.
func (p *Pages) export(w http.ResponseWriter, r *http.Request) error {
	now := p.now()
	f := filterOf(r.Context(), r.URL.Query(), now, p.service.Env())
	if f.Wrong {
		return fault.New(fault.Validation, "From and to have to be times such as 2026-01-31 09:30, in UTC or in the zone of the address.")
	}
	if err := p.service.RecordExport(r.Context(), "pay.orders.export", f.detail()); err != nil {
		return err
	}
	return web.Export(w, r, "orders-"+now.UTC().Format("20060102-150405"), exportColumns, func(row func(cells ...string) error) error {
		var last order.Order
		more, err := p.service.Reports().Export(r.Context(), f.Filter, exportLimit, func(o order.Order) error {
			last = o
			return row(record(o)...)
		})
		if err != nil || !more {
			return err
		}
		return row(fmt.Sprintf("NOT COMPLETE: an export has at most %d orders. Export what is older with to=%s.", exportLimit,
			// One second later, because "to" excludes its moment and the rows of that second may be cut in two: some come twice, none is
			// missing.
			last.CreatedAt.UTC().Truncate(time.Second).Add(time.Second).Format(time.RFC3339)))
	})
}

// record is an order as a row of the export, in the order of exportColumns.
// Times are RFC 3339 in UTC and amounts are whole won, without a sign for the currency. What is not known is an empty cell.
func record(o order.Order) []string {
	n := func(n int64) string { return strconv.FormatInt(n, 10) }
	at := func(t *time.Time) string {
		if t == nil || t.IsZero() {
			return ""
		}
		return t.UTC().Format(time.RFC3339)
	}
	var account provider.VirtualAccount
	if o.Account != nil {
		account = *o.Account
	}
	return []string{o.Code, string(o.Status), string(o.Attention), o.ServiceCode, o.ExternalUserID, o.ClientOrderID, o.Name,
		string(o.PayMethod), string(o.Env), "KRW",
		n(o.Amounts.Amount), n(o.Supply), n(o.VAT), n(o.PaidAmount), n(o.RefundedAmount), n(o.PendingRefund), n(o.Refundable()),
		o.Provider, o.TID, account.BankName,
		account.Number, at(&account.ExpiresAt), at(&o.CreatedAt), at(o.IssuedAt), at(o.PaidAt), at(o.ClosedAt), n(o.Version)}
}
