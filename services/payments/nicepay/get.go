package nicepay

import (
	"context"
	"errors"
	"net/url"
	"time"

	"hub.internal/services/payments/credentials"
	"hub.internal/services/payments/provider"
)

// koreanTime is where the vendor's dates are.
var koreanTime = time.FixedZone("KST", 9*60*60)

// clockDrift is how far the vendor's clock and Hub's may be apart.
const clockDrift = 10 * time.Minute

// Get implements provider.Port: by the tid where it is known, otherwise by the code and the day of the order, and
// at last by its checkout. A tid without a code is answered with the code that the vendor has. A checkout that nobody has
// begun to pay is no payment, and ErrNotFound.
func (p *Provider) Get(ctx context.Context, c credentials.Unsealed, ref provider.PaymentRef) (provider.Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	return p.get(ctx, c, ref)
}

// get is Get within a deadline that the caller has set.
func (p *Provider) get(ctx context.Context, c credentials.Unsealed, ref provider.PaymentRef) (provider.Snapshot, error) {
	if ref.TID != "" {
		return p.getAt(ctx, c, "/v1/payments/"+url.PathEscape(ref.TID), ref)
	}
	for _, day := range p.days(ref.CreatedAt) {
		s, err := p.getAt(ctx, c, "/v1/payments/find/"+url.PathEscape(ref.Code)+"?orderDate="+day, ref)
		if !errors.Is(err, provider.ErrNotFound) {
			return s, err
		}
	}
	return p.getBegun(ctx, c, ref)
}

// getBegun asks the checkout whether a payer has begun, on whatever day: an order that is not found is given up, so that it
// has to be certain.
func (p *Provider) getBegun(ctx context.Context, c credentials.Unsealed, ref provider.PaymentRef) (provider.Snapshot, error) {
	begun, err := p.checkout(ctx, c, "GET", "/v1/checkout/"+url.PathEscape(ref.Code), nil)
	if err != nil {
		return provider.Snapshot{}, undeclined(err)
	}
	switch kind := checkoutKind(begun.code()); {
	case kind == kindNoPage:
		return provider.Snapshot{}, provider.ErrNotFound
	case kind != kindDone:
		return provider.Snapshot{}, unknown("the provider answers %s", printable(begun.code()))
	case begun.OrderID != ref.Code || begun.SessionID != ref.Code:
		return provider.Snapshot{}, unknown("the checkout is about another order")
	case begun.TID == "":
		return provider.Snapshot{}, provider.ErrNotFound
	}
	ref.TID = begun.TID
	return p.getAt(ctx, c, "/v1/payments/"+url.PathEscape(ref.TID), ref)
}

// undeclined makes an unknown outcome of a refusal to answer: it says nothing of the payment.
func undeclined(err error) error {
	if declined := (*provider.DeclinedError)(nil); errors.As(err, &declined) {
		return unknown("%s", declined.Message)
	}
	return err
}

// getAt asks for a payment at one of its addresses.
func (p *Provider) getAt(ctx context.Context, c credentials.Unsealed, path string, ref provider.PaymentRef) (provider.Snapshot, error) {
	raw, err := p.call(ctx, c, "GET", path, nil)
	if err != nil {
		return provider.Snapshot{}, undeclined(err)
	}
	a, err := readAnswer(raw)
	if err != nil {
		return provider.Snapshot{}, err
	}
	if ref.TID != "" && ref.Code == "" {
		ref.Code = a.OrderID
	}
	_, secret := c.Reveal()
	switch paymentKind(a.ResultCode) {
	case kindNotFound:
		return provider.Snapshot{}, provider.ErrNotFound
	case kindDone:
		return a.snapshot(expectation{tid: ref.TID, codes: []string{ref.Code}, secret: secret}, raw)
	}
	if a.Status == "failed" || a.Status == "expired" {
		// The code is then that of the payment, not of the question.
		return a.snapshot(expectation{tid: ref.TID, codes: []string{ref.Code}, secret: secret}, raw)
	}
	return provider.Snapshot{}, unknown("the provider answers %s", printable(a.ResultCode))
}

// days are those under which the vendor may have filed an order: the one of its creation in Korea, the next one when
// that has begun, since a payer may come after midnight, and the one before for an order made right after midnight.
func (p *Provider) days(created time.Time) []string {
	const form = "20060102"
	day := created.In(koreanTime)
	out := []string{day.Format(form)}
	if next := day.AddDate(0, 0, 1).Format(form); p.now().Add(clockDrift).In(koreanTime).Format(form) >= next {
		out = append(out, next)
	}
	if before := day.Add(-clockDrift).Format(form); before != out[0] {
		out = append(out, before)
	}
	return out
}
