package order

import (
	"slices"

	"hub.internal/services/payments/provider"
)

// cancels settles the refunds that the provider tells of.
func (b *Aggregate) settleCancellations(s provider.Snapshot) error {
	if o := &b.Order; o.TID != s.TID || o.Status != Paid && o.Status != Refunded {
		return nil
	}
	for began, i := b.Order.Version, 0; i < len(s.Cancellations) && b.Order.Version < began+maxCancellations; i++ {
		if b.depositByReturnCode(s.Cancellations[i].RefundCode) != nil {
			continue
		}
		if err := b.settleCancellation(s.Cancellations[i]); err != nil {
			return err
		}
	}
	return nil
}

func (b *Aggregate) settleCancellation(c provider.Cancellation) error {
	o := &b.Order
	r := b.Refund(c.RefundCode)
	if i := slices.IndexFunc(b.Refunds, func(r Refund) bool { return r.TID == c.TID && c.TID != "" }); i >= 0 {
		r = &b.Refunds[i]
	}
	twice := r != nil && r.TID != "" && r.TID != c.TID
	switch {
	case c.Returned:
		if r != nil && !twice && r.Status == RefundSucceeded {
			return b.refundCameBack(r)
		}
		return nil
	case twice:
		return b.flagDoubleRefund(c)
	case r != nil && (r.Status == RefundSucceeded || r.Status == RefundFailed && r.TID != ""):
		return nil // known, or come back since
	case r != nil && r.Amount == c.Amount && (r.Status == RefundPending || c.Amount <= o.Refundable()) && o.Status == Paid:
		return b.settleRefund(r, c.TID)
	case r == nil && b.coversCancellation(c):
		return b.recordProviderRefund(c)
	case o.Attention == BalanceDrift:
		return nil
	}
	return b.flag(BalanceDrift, BalanceDrifted, c.TID)
}

// paidTwice keeps that the provider has paid back once more under the code of a refund: an operator has to know.
func (b *Aggregate) flagDoubleRefund(c provider.Cancellation) error {
	if b.coversCancellation(c) {
		if err := b.recordProviderRefund(c); err != nil {
			return err
		}
	}
	if b.Order.Attention == BalanceDrift {
		return nil
	}
	return b.flag(BalanceDrift, BalanceDrifted, c.TID)
}

// mayHaveLeft tells whether a refund that Hub did not ask for fits into what is left.
func (b *Aggregate) coversCancellation(c provider.Cancellation) bool {
	return b.Order.Status == Paid && c.Amount > 0 && c.Amount <= b.Order.Refundable()
}

// unasked keeps a refund that the provider has made by itself.
func (b *Aggregate) recordProviderRefund(c provider.Cancellation) error {
	b.Refunds = append(b.Refunds, Refund{Code: providerRefundCode(c.TID), Amount: c.Amount, Status: RefundFailed, Source: SourceProvider,
		Reason: c.Reason, CreatedAt: b.Now})
	return b.settleRefund(&b.Refunds[len(b.Refunds)-1], c.TID)
}
