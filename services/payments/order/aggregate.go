package order

import (
	"fmt"
	"slices"
	"time"

	"hub.internal/services/payments/provider"
)

// Step is an event of an order: what moved it, and what the app is told. Seq is the version that it made.
type Event struct {
	Seq      int64
	From, To Status
	Trigger  Trigger
	// About names the refund or the payment that the step is about.
	Subject string
	// Note is what an operator has written.
	Note string
	// Tells is the type of the message, and Body what is sent, as it was at this step; empty for none.
	Notification string
	Payload      []byte
}

// Book is an order with all that belongs to it, while its row is locked: what is done to it here is stored together.
type Aggregate struct {
	Order    Order
	Refunds  []Refund
	Deposits []Deposit
	// Now is the moment at which everything here happens.
	Now time.Time
	// Steps are what was done since the book was opened.
	Events []Event
	// GiveUp tells that the provider issued something that must not be paid.
	CancelAtProvider bool
}

// OpenBook begins the book of a new order.
func New(o Order) (*Aggregate, error) {
	b := &Aggregate{Order: o, Now: o.CreatedAt}
	return b, b.record(Create, Ready, "")
}

// Copy is the book as it is, for a comparison with what becomes of it.
func (b *Aggregate) Clone() *Aggregate {
	c := *b
	c.Refunds, c.Deposits = slices.Clone(b.Refunds), slices.Clone(b.Deposits)
	return &c
}

// step moves the order along a row of the table, or keeps an event beside it.
func (b *Aggregate) record(trigger Trigger, to Status, about string) error {
	o := &b.Order
	row, err := transition(o.Status, trigger, to)
	if err != nil {
		return fmt.Errorf("order %s: %w", o.Code, err)
	}
	o.Status = to
	o.Version++
	if row.From != to {
		o.ClosedAt = nil
		if to == Refunded || to == Canceled || to == Expired || to == Failed {
			o.ClosedAt = new(b.Now)
		}
	}
	s := Event{Seq: o.Version, From: row.From, To: to, Trigger: trigger, Subject: about, Notification: row.Notification}
	if row.Notification != noNotification {
		if s.Payload, err = b.notification(s); err != nil {
			return err
		}
	}
	b.Events = append(b.Events, s)
	return nil
}

// attend keeps why an operator has to look.
func (b *Aggregate) flag(why Attention, trigger Trigger, about string) error {
	b.Order.Attention = why
	return b.record(trigger, b.Order.Status, about)
}

// Apply brings the order to what its provider has answered when asked (SPEC.md 4.4). What is old news, or known
// already, changes nothing. An answer about another order is an error.
func (b *Aggregate) Apply(s provider.Snapshot) error {
	o := &b.Order
	if s.Code != o.Code {
		return fmt.Errorf("the provider answers about %q, asked about %s", s.Code, o.Code)
	}
	if s.CheckoutURL != "" && o.CheckoutURL == "" && o.Status == Ready {
		o.CheckoutURL = s.CheckoutURL // where to go on is no event
	}
	if err := b.settleDepositReturns(s); err != nil {
		return err
	}
	switch s.Status {
	case provider.PaymentIssued:
		return b.applyIssue(s)
	case provider.PaymentPaid:
		if err := b.applyPayment(s); err != nil {
			return err
		}
		return b.settleCancellations(s)
	case provider.PaymentCanceled:
		return b.applyCancellation(s)
	case provider.PaymentFailed:
		if o.Status == Ready {
			o.Failure = &Failure{"FAILED", "the provider says that the payment failed"}
			return b.record(Decline, Failed, "")
		}
	case provider.PaymentExpired:
		if o.Status == Ready || o.Status == AwaitingDeposit && b.pastDue() {
			return b.record(Lapse, Expired, "")
		}
		return b.applyReversal(s)
	}
	return nil
}

// ApplyAsked is Apply of an answer that was asked for when the order was as it is here already. Such a one tells of every refund
// that has succeeded: one that it leaves out, with a balance that says the same, has come back.
func (b *Aggregate) ApplyFresh(s provider.Snapshot) error {
	if err := b.reopenRefunds(s); err != nil {
		return err
	}
	return b.Apply(s)
}

func (b *Aggregate) reopenRefunds(s provider.Snapshot) error {
	o := &b.Order
	if s.Code != o.Code || s.PaidAt.IsZero() || !s.AddsUp() {
		return nil
	}
	if err := b.reopenDeposits(s); err != nil || s.TID != o.TID || o.Status != Paid && o.Status != Refunded {
		return err
	}
	for i := range b.Refunds {
		r := &b.Refunds[i]
		told := slices.ContainsFunc(s.Cancellations, func(c provider.Cancellation) bool { return c.TID == r.TID })
		if r.Status == RefundSucceeded && !told && r.SettledAt != nil && b.Now.After(r.SettledAt.Add(payoutGrace)) {
			if err := b.refundCameBack(r); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *Aggregate) applyIssue(s provider.Snapshot) error {
	o := &b.Order
	switch {
	case o.Status == Paid || o.Status == Refunded:
		return b.applyReversal(s)
	case o.Status != Ready || s.Account == nil:
		return nil
	case s.Amount != o.Amount:
		b.CancelAtProvider = true
		if o.Attention == AmountMismatch {
			return nil
		}
		return b.flag(AmountMismatch, Mismatch, s.TID)
	}
	return b.recordIssue(s)
}

func (b *Aggregate) recordIssue(s provider.Snapshot) error {
	o := &b.Order
	o.TID, o.Account, o.IssuedAt = s.TID, s.Account, new(b.Now)
	return b.record(Issue, AwaitingDeposit, "")
}

// deposited judges money that has arrived.
func (b *Aggregate) applyPayment(s provider.Snapshot) error {
	o := &b.Order
	d := Deposit{TID: s.TID, Amount: s.Amount, At: s.PaidAt, State: DepositStateUnapplied}
	// One that was taken back is new again when the provider holds it after all.
	if i := slices.IndexFunc(b.Deposits, d.Same); i >= 0 {
		if b.Deposits[i].State != DepositStateReversed {
			return nil
		}
		d.ID = b.Deposits[i].ID
	}
	if o.Status == Ready && s.Account != nil && s.Amount == o.Amount {
		if err := b.recordIssue(s); err != nil { // the news of the account comes with that of the deposit
			return err
		}
	}
	fits := s.Amount == o.Amount && (o.TID == "" || o.TID == s.TID)
	switch o.Status {
	case Ready, AwaitingDeposit:
		if !fits {
			d.State = DepositStateMismatch
			b.keepDeposit(d)
			return b.flag(AmountMismatch, Mismatch, s.TID)
		}
		return b.recordPayment(d, Pay)
	case Expired:
		if fits && o.Account != nil && !s.PaidAt.After(o.Account.ExpiresAt) {
			return b.recordPayment(d, PayLate)
		}
		fallthrough
	case Canceled, Failed:
		b.keepDeposit(d)
		return b.flag(LateDeposit, DepositUnused, s.TID)
	case Paid, Refunded:
		b.keepDeposit(d)
		return b.flag(DuplicateDeposit, DepositTwice, s.TID)
	}
	return nil
}

// pay applies a deposit of the whole amount.
func (b *Aggregate) recordPayment(d Deposit, trigger Trigger) error {
	o := &b.Order
	d.State = DepositStateApplied
	o.TID, o.PaidAmount, o.PaidAt = d.TID, d.Amount, new(d.At)
	b.keepDeposit(d)
	return b.record(trigger, Paid, "")
}

// hold keeps a deposit as it is now.
func (b *Aggregate) keepDeposit(d Deposit) {
	if i := slices.IndexFunc(b.Deposits, d.Same); i >= 0 {
		b.Deposits[i] = d
	} else {
		b.Deposits = append(b.Deposits, d)
	}
}

// reversed takes a deposit back that the provider says that it has taken back.
func (b *Aggregate) applyReversal(s provider.Snapshot) error {
	o := &b.Order
	i := slices.IndexFunc(b.Deposits, func(d Deposit) bool { return d.State == DepositStateApplied })
	if i < 0 || s.ReversedAt.IsZero() || b.Deposits[i].TID != s.TID || b.Deposits[i].At.After(s.ReversedAt) {
		return nil
	}
	if o.Status != Paid || o.RefundedAmount+o.PendingRefund > 0 {
		if o.Attention == ReversedAfterRefund || o.Status != Paid {
			return nil
		}
		return b.flag(ReversedAfterRefund, ReverseTooLate, s.TID)
	}
	b.Deposits[i].State = DepositStateReversed
	o.PaidAmount, o.PaidAt = 0, nil
	to := AwaitingDeposit
	if o.Account == nil || b.Now.After(o.Account.ExpiresAt) {
		to = Expired
	}
	return b.record(Reverse, to, "")
}

// canceled gives an unpaid order up, or settles the refunds of a paid one.
func (b *Aggregate) applyCancellation(s provider.Snapshot) error {
	switch b.Order.Status {
	case Ready, AwaitingDeposit:
		if !s.PaidAt.IsZero() { // paid and paid back while nobody looked
			if err := b.applyPayment(s); err != nil {
				return err
			}
			return b.settleCancellations(s)
		}
		return b.record(Cancel, Canceled, "")
	case Paid, Refunded:
		return b.settleCancellations(s)
	}
	return nil
}

// Audit compares the provider's balance with what Hub takes for refundable: unequal ones are for an operator.
func (b *Aggregate) CheckBalance(s provider.Snapshot) error {
	o := &b.Order
	if (o.Status != Paid && o.Status != Refunded) || o.PendingRefund > 0 || s.TID != o.TID || s.Balance == o.Refundable() ||
		o.Attention == BalanceDrift || s.Status == provider.PaymentIssued || s.Status == provider.PaymentExpired {
		return nil
	}
	return b.flag(BalanceDrift, BalanceDrifted, s.TID)
}

// pastDue tells that an account has waited for ten minutes longer than it should.
func (b *Aggregate) pastDue() bool {
	return b.Order.Account != nil && b.Now.After(b.Order.Account.ExpiresAt.Add(expiryGrace))
}

// Lapse ends an order that nobody pays any more. The provider, asked just now, has said that nothing was paid. It tells
// whether the time has come.
func (b *Aggregate) Expire() (bool, error) {
	o := &b.Order
	if o.Status == Ready && !b.Now.Before(o.CreatedAt.Add(ReadyFor)) || o.Status == AwaitingDeposit && b.pastDue() {
		return true, b.record(Lapse, Expired, "")
	}
	return false, nil
}

// CancelUnpaid ends an unpaid order that the provider does not let anybody pay any more.
func (b *Aggregate) CancelUnpaid() error { return b.record(Cancel, Canceled, "") }

// Decline ends an order that the provider definitely refuses.
func (b *Aggregate) Decline(why Failure) error {
	if b.Order.Status != Ready {
		return nil
	}
	b.Order.Failure = &why
	return b.record(Decline, Failed, "")
}

const (
	// lateGrace is how long after its end an account is given up.
	expiryGrace = 10 * time.Minute
	// cancelsAtOnce bounds what one look settles, while the order is locked; the next one goes on.
	maxCancellations = 200
	// returnGrace is how long after a refund a provider that does not tell of it may just be slow: no payout comes back so soon.
	payoutGrace = 5 * time.Minute
	// readyFor is how long an order waits for its payer.
	ReadyFor = 24 * time.Hour
)

// NextLook is when somebody has to look at the order again that was looked at so often since it last moved; ok is false
// for one that waits for nothing.
func (b *Aggregate) NextCheck(looks int) (at time.Time, ok bool) {
	o := b.Order
	waits := []time.Duration{2 * time.Minute, 5 * time.Minute, time.Hour, 24 * time.Hour}
	wait := waits[min(looks, len(waits)-1)]
	switch {
	case o.PendingRefund > 0 || len(b.ReturningDeposits()) > 0:
		return b.Now.Add(wait), true
	case o.Status == Ready:
		// Its day ends at a moment of its own.
		at := b.Now.Add(wait)
		if end := o.CreatedAt.Add(ReadyFor); b.Now.Before(end) && at.After(end) {
			at = end
		}
		return at, true
	case o.Status == AwaitingDeposit && o.Account != nil:
		if end := o.Account.ExpiresAt.Add(expiryGrace + time.Second); b.Now.Before(end) {
			return end, true
		}
		return b.Now.Add(waits[min(looks+1, len(waits)-1)]), true
	}
	return time.Time{}, false
}
