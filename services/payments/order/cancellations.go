package order

import (
	"slices"

	"hub.internal/services/payments/provider"
)

// settleCancellations settles the refunds that the provider tells of: those that Hub has asked for, and those that somebody has
// made on the provider's own pages, which become refunds of the order too. Cancellations of deposits that are returned are
// settleDepositReturns' and skipped here.
func (a *Aggregate) settleCancellations(s provider.Snapshot) error {
	if o := &a.Order; o.TID != s.TID || o.Status != Paid && o.Status != Refunded {
		return nil
	}
	for began, i := a.Order.Version, 0; i < len(s.Cancellations) && a.Order.Version < began+maxCancellations; i++ {
		if a.depositByReturnCode(s.Cancellations[i].RefundCode) != nil {
			continue
		}
		if err := a.settleCancellation(s, s.Cancellations[i]); err != nil {
			return err
		}
	}
	return nil
}

// settleCancellation settles one. It is matched by the provider's id first and by Hub's code second, since the
// provider has been seen to use a code twice. What fits nothing that Hub knows is drift.
func (a *Aggregate) settleCancellation(s provider.Snapshot, c provider.Cancellation) error {
	o := &a.Order
	r := a.Refund(c.RefundCode)
	if i := slices.IndexFunc(a.Refunds, func(r Refund) bool { return r.TID == c.TID && c.TID != "" }); i >= 0 {
		r = &a.Refunds[i]
	}
	twice := r != nil && r.TID != "" && r.TID != c.TID
	switch {
	case c.Returned:
		if r != nil && !twice && r.Status == RefundSucceeded {
			return a.refundCameBack(r)
		}
		return nil
	case twice:
		return a.flagDoubleRefund(s, c)
	case r != nil && (r.Status == RefundSucceeded || r.Status == RefundFailed && r.TID != ""):
		return nil // known, or come back since
	case r != nil && r.Amount == c.Amount && (r.Status == RefundPending || c.Amount <= o.Refundable()) && o.Status == Paid:
		return a.settleRefund(r, c.TID)
	case r == nil && a.coversCancellation(c):
		return a.recordProviderRefund(c)
	}
	return a.flagCancellation(s, c)
}

// flagDoubleRefund keeps that the provider has paid back once more under the code of a refund. The second payout is recorded as a
// refund of the provider's where the balance leaves so much, and the order needs an operator.
func (a *Aggregate) flagDoubleRefund(s provider.Snapshot, c provider.Cancellation) error {
	if a.coversCancellation(c) {
		if err := a.recordProviderRefund(c); err != nil {
			return err
		}
	}
	return a.flagCancellation(s, c)
}

// flagCancellation keeps that a cancellation is more than what Hub knows of.
func (a *Aggregate) flagCancellation(s provider.Snapshot, c provider.Cancellation) error {
	return a.openCase(BalanceDrift, c.TID, a.driftNote(s), func(e Event) bool { return e.Subject == c.TID })
}

// coversCancellation tells whether a refund that Hub did not ask for fits into what is left.
func (a *Aggregate) coversCancellation(c provider.Cancellation) bool {
	return a.Order.Status == Paid && c.Amount > 0 && c.Amount <= a.Order.Refundable()
}

// recordProviderRefund keeps a refund that the provider has made by itself.
func (a *Aggregate) recordProviderRefund(c provider.Cancellation) error {
	a.Refunds = append(a.Refunds, Refund{Code: providerRefundCode(c.TID), Amount: c.Amount, Status: RefundFailed, Source: SourceProvider,
		Reason: c.Reason, CreatedAt: a.Now})
	return a.settleRefund(&a.Refunds[len(a.Refunds)-1], c.TID)
}
