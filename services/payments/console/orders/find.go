package orders

import (
	"context"

	"hub.internal/pkg/web"
	"hub.internal/pkg/web/i18n"
	"hub.internal/services/payments"
)

// Find returns the orders that an operator may mean: by the code of an order, of a refund or of a deposit's return, a client's or a
// provider's id, or the number of a virtual account, each whole.
func (p *Pages) Find(ctx context.Context, u web.User, text string) (found web.FindResponse, err error) {
	if !u.Is(admin) {
		return found, nil
	}
	page, _, err := p.service.List(ctx, payments.Filter{Search: text, Limit: mostFound + 1}) // one more tells that there are more
	var hits []web.Hit
	for _, a := range page {
		o := a.Order
		hits = append(hits, web.Hit{Kind: i18n.T(ctx, "Orders"), Title: o.Code,
			Note: o.Name + " · " + won(o.Amount) + " · " + said(ctx, statusBadge(o.Status)), At: &o.CreatedAt, Href: ordersPath + "/" + o.Code})
	}
	found.Add(mostFound, hits...)
	return found, err
}

// mostFound is how many orders the search in the header shows.
const mostFound = 10
