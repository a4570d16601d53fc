package payments

import "slices"

// cancels settles the refunds that the provider tells of.
func (b *Book) cancels(s Snapshot) error {
	if o := &b.Order; o.TID != s.TID || o.Status != Paid && o.Status != Refunded {
		return nil
	}
	for began, i := b.Order.Version, 0; i < len(s.Cancels) && b.Order.Version < began+cancelsAtOnce; i++ {
		if b.returnOf(s.Cancels[i].RefundCode) != nil {
			continue
		}
		if err := b.cancel(s.Cancels[i]); err != nil {
			return err
		}
	}
	return nil
}

func (b *Book) cancel(c ProviderCancel) error {
	o := &b.Order
	r := b.refund(c.RefundCode)
	if i := slices.IndexFunc(b.Refunds, func(r Refund) bool { return r.TID == c.TID && c.TID != "" }); i >= 0 {
		r = &b.Refunds[i]
	}
	twice := r != nil && r.TID != "" && r.TID != c.TID
	switch {
	case c.Returned:
		if r != nil && !twice && r.Status == RefundSucceeded {
			return b.returned(r)
		}
		return nil
	case twice:
		return b.paidTwice(c)
	case r != nil && (r.Status == RefundSucceeded || r.Status == RefundFailed && r.TID != ""):
		return nil // known, or come back since
	case r != nil && r.Amount == c.Amount && (r.Status == RefundPending || c.Amount <= o.Refundable()) && o.Status == Paid:
		return b.succeed(r, c.TID)
	case r == nil && b.mayHaveLeft(c):
		return b.unasked(c)
	case o.Attention == BalanceDrift:
		return nil
	}
	return b.attend(BalanceDrift, Drift, c.TID)
}

// paidTwice keeps that the provider has paid back once more under the code of a refund: an operator has to know.
func (b *Book) paidTwice(c ProviderCancel) error {
	if b.mayHaveLeft(c) {
		if err := b.unasked(c); err != nil {
			return err
		}
	}
	if b.Order.Attention == BalanceDrift {
		return nil
	}
	return b.attend(BalanceDrift, Drift, c.TID)
}

// mayHaveLeft tells whether a refund that Hub did not ask for fits into what is left.
func (b *Book) mayHaveLeft(c ProviderCancel) bool {
	return b.Order.Status == Paid && c.Amount > 0 && c.Amount <= b.Order.Refundable()
}

// unasked keeps a refund that the provider has made by itself.
func (b *Book) unasked(c ProviderCancel) error {
	b.Refunds = append(b.Refunds, Refund{Code: consoleRefund(c.TID), Amount: c.Amount, Status: RefundFailed, Source: SourceProvider,
		Reason: c.Reason, CreatedAt: b.Now})
	return b.succeed(&b.Refunds[len(b.Refunds)-1], c.TID)
}
