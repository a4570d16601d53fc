package pgsim

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"
)

// What nobody could do to an order as it is.
var (
	errNoOrder   = errors.New("there is no such order")
	errNotPaid   = errors.New("the order is not paid")
	errNoBalance = errors.New("the amount is not between 1 and what is left")
)

// Issue gives an order its virtual account, as the payer's press of the button does.
// A card order, and one that has an account already, are refused with an error; so is a checkout whose page is closed.
func (s *Sim) Issue(orderID string) error {
	return s.press(orderID, func(o *order) (*payment, error) {
		if o.Method != methodVBank || o.payment() != nil {
			return nil, errors.New("the order does not wait for an account")
		}
		return s.issueAccount(o), nil
	})
}

// Pay pays an order by card, as the payer's press of the button does. An attempt that has failed does not stand in the way.
// The order is paid at once, as an approved card is: nothing waits.
func (s *Sim) Pay(orderID string) error {
	return s.press(orderID, func(o *order) (*payment, error) {
		if p := o.payment(); o.Method != methodCard || p != nil && p.Status != failed {
			return nil, errors.New("the order does not wait for a card")
		}
		p := s.begin(o)
		p.Status, p.PaidAt = paid, s.c.Now()
		return p, nil
	})
}

// Fail lets an attempt to pay an order fail.
// A failed attempt can be followed by another one, so that the order has two payments with a tid each.
func (s *Sim) Fail(orderID string) error {
	return s.press(orderID, func(o *order) (*payment, error) {
		if p := o.payment(); p != nil && p.Status != failed {
			return nil, errors.New("the order does not wait for a payer")
		}
		p := s.begin(o)
		p.Status, p.FailedAt = failed, s.c.Now()
		return p, nil
	})
}

// Deposit moves money to the account of an order, at a time (now, when it is zero), and tells of it a number of times.
// An order that is paid, cancelled, failed, or reversed after a refund gets a second payment with a tid of its own: the
// money has come all the same.
// Any amount is taken, the order's or not: the bank knows no price. Amounts are won, from 1 up to twelve digits.
func (s *Sim) Deposit(orderID string, amount int64, at time.Time, times int) error {
	if amount < 1 || amount > 999_999_999_999 {
		return errors.New("a deposit has an amount")
	}
	return s.changeTold(orderID, max(times, 1), func(o *order) (*payment, error) {
		p := o.payment()
		// The new payment has the account of the one before it, since it is the same account that the money went to.
		if p == nil || p.Status != ready || len(p.Cancels) > 0 {
			before := p
			p = s.begin(o)
			if before != nil {
				p.Due, p.BankCode, p.BankName, p.Number, p.Owner = before.Due, before.BankCode, before.BankName, before.Number, before.Owner
			}
		}
		p.Status, p.Amount, p.PaidAt, p.CancelledAt = paid, amount, at, time.Time{}
		if at.IsZero() {
			p.PaidAt = s.c.Now()
		}
		return p, nil
	})
}

// Reverse takes the deposit of an order back to its payer, as the bank does: the account waits again.
// Receivers tell it from a cancel by the status, which is ready (or expired) again, with a cancelledAt.
func (s *Sim) Reverse(orderID string) error {
	return s.change(orderID, func(o *order) (*payment, error) {
		p := o.payment()
		if p == nil || !p.holdsMoney() {
			return nil, errNotPaid
		}
		p.Status, p.Amount, p.PaidAt, p.CancelledAt = ready, o.Amount, time.Time{}, s.c.Now()
		return p, nil
	})
}

// ConsoleCancel gives money back as an operator does on the provider's own pages: Hub has not asked for it. An amount
// of 0 is all that is left.
// A payment that was not paid is given up as a whole, and a part of it is refused, as the vendor's cancel has it.
func (s *Sim) ConsoleCancel(orderID string, amount int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.orders[orderID]
	if o == nil || o.payment() == nil {
		return errNoOrder
	}
	p := o.payment()
	left := p.Amount - p.cancelled()
	switch amount = cmp.Or(amount, left); {
	case p.Status != paid && p.Status != ready:
		return errNotPaid
	case amount < 1 || amount > left || p.Status == ready && amount != left:
		return errNoBalance
	}
	c := s.takeBack(p, amount, "", "console")
	s.kept(o)
	s.notify(s.tellCancel(o, p, c))
	return nil
}

// FailRefundLater lets money that was paid back return: the refund of that code fails after it was confirmed.
// It can return once. The balance of the payment is then as if the refund had not been.
func (s *Sim) FailRefundLater(refundCode string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.refunds[refundCode]
	if p == nil {
		return errors.New("there is no such refund")
	}
	i := slices.IndexFunc(p.Cancels, func(c *cancel) bool { return c.Code == refundCode })
	if !p.Cancels[i].Returned.IsZero() || p.Status != paid {
		return errors.New("the refund cannot fail any more")
	}
	p.Cancels[i].Returned = s.c.Now()
	o := s.orders[p.OrderID]
	s.kept(o)
	s.notify(s.tellCancel(o, p, p.Cancels[i]))
	return nil
}

// SameAccount lets the next account that is issued have the number of this order's: accounts are used again.
// A receiver that finds an order by the number of an account books the money of one payer for another: SPEC.md 8.2 forbids
// it.
func (s *Sim) SameAccount(orderID string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.orders[orderID]
	if o == nil || o.payment() == nil || o.payment().Number == "" {
		return errNoOrder
	}
	s.account = o.payment().Number
	return nil
}

// Tell sends the webhook of an order again, as it is now.
// It has a new ediDate and so a new signature: it is another webhook about the same state, and not a repetition of the same
// bytes.
func (s *Sim) Tell(orderID string) error {
	return s.change(orderID, func(o *order) (*payment, error) {
		if o.payment() == nil {
			return nil, errNoOrder
		}
		return o.payment(), nil
	})
}

// TestWebhook sends the vendor's trial of a webhook's address: without a status, and with a signature that nobody can verify.
// A receiver has to acknowledge it and to store nothing (SPEC.md 8.2).
func (s *Sim) TestWebhook() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.c.Now()
	s.push("", fmt.Appendf(nil, `{"tid":"UTWEBHOOKm0501%s0001","orderId":"%s0001","ediDate":%q,"amount":10000,"signature":%q,`+
		`"resultCode":"0000","resultMsg":"","status":"","payMethod":""}`, now.In(kst).Format("060102150405"),
		now.In(kst).Format("20060102150405"), wireTime(now), Signature("", 0, "", "nobody knows")), fault{})
}

// SetWebhookURL says who is told from now on; empty is nobody.
// Only http and https with a host are URLs here. It is in the journal, for the next simulator that is configured without
// one.
func (s *Sim) SetWebhookURL(target string) error {
	if u, err := url.Parse(target); err != nil || target != "" && (u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		return fmt.Errorf("%q is no URL to send webhooks to", target)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hookURL = target
	s.journal.add(entry{URL: &target})
	return nil
}

// press is what a payer does on the page of a checkout, as long as that is open.
func (s *Sim) press(orderID string, act func(*order) (*payment, error)) error {
	return s.change(orderID, func(o *order) (*payment, error) {
		if s.isClosed(o) {
			return nil, errors.New("the page of the checkout is closed")
		}
		return act(o)
	})
}

// isClosed tells whether the page of a checkout takes no payer any more.
func (s *Sim) isClosed(o *order) bool { return !o.Expired.IsZero() || s.c.Now().After(o.ClosesAt) }

// change is changeTold, told of once.
func (s *Sim) change(orderID string, act func(*order) (*payment, error)) error {
	return s.changeTold(orderID, 1, act)
}

// changeTold does something to an order, writes it down, and tells of the payment a number of times, with the same bytes.
func (s *Sim) changeTold(orderID string, times int, act func(*order) (*payment, error)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.orders[orderID]
	if o == nil {
		return errNoOrder
	}
	p, err := act(o)
	if err != nil {
		return err
	}
	s.kept(o)
	// Each repetition is a copy, since a fault may change what it tells.
	for a := s.tell(o, p); times > 0; times-- {
		s.notify(new(*a))
	}
	return nil
}

// Truth is what the provider holds about an order.
// Tests compare it with what Hub has in its books: no difference may stay when everything has settled.
type Truth struct {
	OrderID string `json:"orderId"`
	// Status is that of the payment that counts; empty when nobody has begun to pay.
	Status string `json:"status"`
	TID    string `json:"tid"`
	Method string `json:"method"`
	Amount int64  `json:"amount"`
	// Paid is what has come in and was not reversed, Cancelled what of it has gone back: of all payments together.
	Paid      int64    `json:"paid"`
	Cancelled int64    `json:"cancelled"`
	Account   string   `json:"account,omitempty"`
	Payments  []Money  `json:"payments"`
	Cancels   []Return `json:"cancels"`
	// Closed tells that the checkout page was closed.
	Closed bool `json:"closed"`
}

// Money is a payment of an order.
type Money struct {
	TID    string    `json:"tid"`
	Status string    `json:"status"`
	Amount int64     `json:"amount"`
	PaidAt time.Time `json:"paidAt,omitzero"`
}

// Return is money that went back, or a payment that was given up.
type Return struct {
	TID string `json:"tid"`
	// Code is the orderId that has asked for it; empty for the provider's own pages.
	Code   string    `json:"code"`
	Amount int64     `json:"amount"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
	// Failed tells that the money has returned.
	Failed bool `json:"failed"`
	// Unpaid tells that no money moved: the payment was given up before a deposit.
	Unpaid bool `json:"unpaid"`
}

// Payments is the provider's truth, an entry an order, by their ids.
func (s *Sim) Payments() []Truth {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Truth, 0, len(s.orders))
	for _, o := range s.orders {
		out = append(out, s.truth(o))
	}
	slices.SortFunc(out, func(a, b Truth) int { return cmp.Compare(a.OrderID, b.OrderID) })
	return out
}

// Payment is the provider's truth about an order; false when there is none.
func (s *Sim) Payment(orderID string) (Truth, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.orders[orderID]
	if o == nil {
		return Truth{}, false
	}
	return s.truth(o), true
}

// truth reads the order; the lock is held.
func (s *Sim) truth(o *order) Truth {
	t := Truth{OrderID: o.OrderID, Method: o.Method, Amount: o.Amount, Closed: !o.Expired.IsZero(), Payments: []Money{}, Cancels: []Return{}}
	if p := o.payment(); p != nil {
		t.Status, t.TID, t.Account = p.status(s.c.Now()), p.TID, p.Number
	}
	for _, p := range o.Payments {
		t.Payments = append(t.Payments, Money{p.TID, p.status(s.c.Now()), p.Amount, p.PaidAt})
		if p.Status == paid {
			t.Paid += p.Amount
			t.Cancelled += p.cancelled()
		}
		for _, c := range p.Cancels {
			// Unpaid is true of what was given up before a deposit: no money is in it.
			t.Cancels = append(t.Cancels, Return{c.TID, c.Code, c.Amount, c.Reason, c.At, !c.Returned.IsZero(), p.Status != paid})
		}
	}
	return t
}
