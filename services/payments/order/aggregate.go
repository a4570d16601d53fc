package order

import (
	"fmt"
	"slices"
	"time"

	"hub.internal/pkg/schema"
	"hub.internal/services/payments/provider"
)

// Event is something that has happened to an order: what moved it, from where to where, and the notification that its app
// gets. Seq is the version of the order that it made, which also orders the notifications. Events are only appended.
type Event struct {
	Seq      int64
	From, To Status
	Trigger  Trigger
	// Subject is the code of the refund, or the provider's id of the payment, that the event is about; empty for others.
	Subject string
	// Note is what an operator has written.
	Note string
	// Notification is the type of the message to the app, empty for none. Payload is the body as it is sent: it is made with the
	// event, so that a later attempt tells of the order as it was then (SPEC.md 9).
	Notification string
	Payload      []byte
}

// Aggregate is an order with all that belongs to it, while its row is locked: what is done to it here is stored together.
// For example, ApplyFresh of a snapshot that shows a deposit appends to Deposits, sets Order.Status to Paid and records one
// event, and the store commits the three with the notification and its job.
type Aggregate struct {
	Order    Order
	Refunds  []Refund
	Deposits []Deposit
	// Now is the moment at which everything here happens.
	Now time.Time
	// Past are the events of before by which cases that an operator ends were opened and ended, oldest first: those of PastTriggers.
	Past []Event
	// Events are what has happened since the aggregate was read; the store appends them.
	Events []Event
	// CancelAtProvider tells that the provider issued something that must not be paid, such as an account for another amount.
	// Whoever has committed the aggregate asks the provider to cancel it, best effort.
	CancelAtProvider bool
}

// New is the aggregate of an order that is made now, with the event of that.
func New(o Order) (*Aggregate, error) {
	a := &Aggregate{Order: o, Now: o.CreatedAt}
	return a, a.record(Create, Ready, "")
}

// Clone is the aggregate as it is, for a comparison with what becomes of it.
func (a *Aggregate) Clone() *Aggregate {
	c := *a
	c.Refunds, c.Deposits = slices.Clone(a.Refunds), slices.Clone(a.Deposits)
	return &c
}

// record moves the order along a row of the table, or keeps an event beside it.
func (a *Aggregate) record(trigger Trigger, to Status, about string) error {
	o := &a.Order
	row, err := transition(o.Status, trigger, to)
	if err != nil {
		return fmt.Errorf("order %s: %w", o.Code, err)
	}
	// Every event raises the version, also one that leaves the status: whoever has seen the order before it finds that out.
	o.Status = to
	o.Version++
	if row.From != to {
		o.ClosedAt = nil
		if to == Refunded || to == Canceled || to == Expired || to == Failed {
			o.ClosedAt = new(a.Now)
		}
	}
	s := Event{Seq: o.Version, From: row.From, To: to, Trigger: trigger, Subject: about, Notification: row.Notification}
	if row.Notification != noNotification {
		if s.Payload, err = a.notification(s); err != nil {
			return err
		}
	}
	a.Events = append(a.Events, s)
	return nil
}

// flag sets why the order needs an operator, and records that as an event beside its status.
func (a *Aggregate) flag(why Attention, trigger Trigger, about string) error {
	a.Order.Attention = why
	return a.record(trigger, a.Order.Status, about)
}

// Apply brings the order to what its provider has answered when asked (SPEC.md 4.4). What is old news, or known
// already, changes nothing. An answer about another order is an error.
func (a *Aggregate) Apply(s provider.Snapshot) error {
	o := &a.Order
	if s.Code != o.Code {
		return fmt.Errorf("the provider answers about %q, asked about %s", s.Code, o.Code)
	}
	if s.CheckoutURL != "" && o.CheckoutURL == "" && o.Status == Ready {
		o.CheckoutURL = s.CheckoutURL // where to go on is no event
	}
	if err := a.settleDepositReturns(s); err != nil {
		return err
	}
	// The status of the payment decides what may happen; that of the order decides what does. A status that is older news than
	// what the order knows falls through every case and changes nothing.
	switch s.Status {
	case provider.PaymentIssued:
		return a.applyIssue(s)
	case provider.PaymentPaid:
		if err := a.applyPayment(s); err != nil {
			return err
		}
		return a.settleCancellations(s)
	case provider.PaymentCanceled:
		return a.applyCancellation(s)
	case provider.PaymentFailed:
		if o.Status == Ready {
			o.Failure = &Failure{"FAILED", "the provider says that the payment failed"}
			return a.record(Decline, Failed, "")
		}
	case provider.PaymentExpired:
		if !a.awaitsAnother(s) && (o.Status == Ready || o.Status == AwaitingDeposit && a.pastDue()) {
			return a.record(Lapse, Expired, "")
		}
		return a.applyReversal(s)
	}
	return nil
}

// ApplyFresh is Apply of an answer that was asked for when the order was as it is here already. Such a one tells of every refund
// that has succeeded: one that it leaves out, with a balance that says the same, has come back.
func (a *Aggregate) ApplyFresh(s provider.Snapshot) error {
	if err := a.reopenRefunds(s); err != nil {
		return err
	}
	return a.Apply(s)
}

// reopenRefunds finds refunds, and returns of deposits, that came back without a word. It needs a snapshot whose
// cancellations add up to its balance, since one that leaves something out by mistake must not undo a refund; and it
// leaves the provider payoutGrace, since a refund of just now may not be told of yet.
func (a *Aggregate) reopenRefunds(s provider.Snapshot) error {
	o := &a.Order
	if s.Code != o.Code || s.PaidAt.IsZero() || !s.AddsUp() {
		return nil
	}
	if err := a.reopenDeposits(s); err != nil || s.TID != o.TID || o.Status != Paid && o.Status != Refunded {
		return err
	}
	for i := range a.Refunds {
		r := &a.Refunds[i]
		told := slices.ContainsFunc(s.Cancellations, func(c provider.Cancellation) bool { return c.TID == r.TID })
		if r.Status == RefundSucceeded && !told && r.SettledAt != nil && a.Now.After(r.SettledAt.Add(payoutGrace)) {
			if err := a.refundCameBack(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// applyIssue takes the account that the provider has issued. One for another amount than the order's is never shown to
// the payer: the provider is to cancel it, and an operator is told.
func (a *Aggregate) applyIssue(s provider.Snapshot) error {
	o := &a.Order
	switch {
	case o.Status == Paid || o.Status == Refunded:
		return a.applyReversal(s)
	case o.Status != Ready || s.Account == nil:
		return nil
	case s.Amount != o.Amount:
		a.CancelAtProvider = true
		if o.Attention == AmountMismatch {
			return nil
		}
		return a.flag(AmountMismatch, Mismatch, s.TID)
	}
	return a.recordIssue(s)
}

// recordIssue keeps the account, and lets the order wait for its deposit.
func (a *Aggregate) recordIssue(s provider.Snapshot) error {
	o := &a.Order
	o.TID, o.Account, o.IssuedAt = s.TID, s.Account, new(a.Now)
	return a.record(Issue, AwaitingDeposit, "")
}

// applyPayment judges money that has arrived.
func (a *Aggregate) applyPayment(s provider.Snapshot) error {
	o := &a.Order
	d := Deposit{TID: s.TID, Amount: s.Amount, At: s.PaidAt, State: DepositStateUnapplied}
	// One that was taken back is new again when the provider holds it after all.
	if i := slices.IndexFunc(a.Deposits, d.Same); i >= 0 {
		if a.Deposits[i].State != DepositStateReversed {
			return nil
		}
		d.ID = a.Deposits[i].ID
	}
	if o.Status == Ready && s.Account != nil && s.Amount == o.Amount {
		if err := a.recordIssue(s); err != nil { // the news of the account comes with that of the deposit
			return err
		}
	}
	// One payment for the whole amount pays an order. Anything else is kept for an operator: Hub neither adds deposits up nor
	// pays change back by itself.
	fits := s.Amount == o.Amount && (o.TID == "" || o.TID == s.TID)
	switch o.Status {
	case Ready, AwaitingDeposit:
		if !fits {
			d.State = DepositStateMismatch
			a.keepDeposit(d)
			return a.flag(AmountMismatch, Mismatch, s.TID)
		}
		return a.recordPayment(d, Pay)
	case Expired:
		if fits && o.Account != nil && !s.PaidAt.After(o.Account.ExpiresAt) {
			return a.recordPayment(d, PayLate)
		}
		fallthrough
	case Canceled, Failed:
		a.keepDeposit(d)
		return a.flag(LateDeposit, DepositUnused, s.TID)
	case Paid, Refunded:
		a.keepDeposit(d)
		return a.flag(DuplicateDeposit, DepositTwice, s.TID)
	}
	return nil
}

// recordPayment applies a deposit of the whole amount.
func (a *Aggregate) recordPayment(d Deposit, trigger Trigger) error {
	o := &a.Order
	d.State = DepositStateApplied
	o.TID, o.PaidAmount, o.PaidAt = d.TID, d.Amount, new(d.At)
	a.keepDeposit(d)
	return a.record(trigger, Paid, "")
}

// keepDeposit keeps a deposit as it is now.
func (a *Aggregate) keepDeposit(d Deposit) {
	if i := slices.IndexFunc(a.Deposits, d.Same); i >= 0 {
		a.Deposits[i] = d
	} else {
		a.Deposits = append(a.Deposits, d)
	}
}

// applyReversal takes a deposit back that the provider says that it has taken back.
func (a *Aggregate) applyReversal(s provider.Snapshot) error {
	o := &a.Order
	i := slices.IndexFunc(a.Deposits, func(d Deposit) bool { return d.State == DepositStateApplied })
	if i < 0 || s.ReversedAt.IsZero() || a.Deposits[i].TID != s.TID || a.Deposits[i].At.After(s.ReversedAt) {
		return nil
	}
	if o.Status != Paid {
		return nil
	}
	if o.RefundedAmount+o.PendingRefund > 0 {
		note := "the bank took it back at " + schema.Moment(s.ReversedAt)
		return a.openCase(ReversedAfterRefund, s.TID, note, func(e Event) bool { return e.Subject == s.TID && e.Note == note })
	}
	a.Deposits[i].State = DepositStateReversed
	o.PaidAmount, o.PaidAt = 0, nil
	to := AwaitingDeposit
	if o.Account == nil || a.Now.After(o.Account.ExpiresAt) {
		to = Expired
	}
	return a.record(Reverse, to, "")
}

// applyCancellation gives an unpaid order up, or settles the refunds of a paid one.
func (a *Aggregate) applyCancellation(s provider.Snapshot) error {
	switch a.Order.Status {
	case Ready, AwaitingDeposit:
		if !s.PaidAt.IsZero() { // paid and paid back while nobody looked
			if err := a.applyPayment(s); err != nil {
				return err
			}
			return a.settleCancellations(s)
		}
		if a.awaitsAnother(s) {
			return nil
		}
		return a.record(Cancel, Canceled, "")
	case Paid, Refunded:
		return a.settleCancellations(s)
	}
	return nil
}

// awaitsAnother tells that the order waits for another payment than the snapshot's, of which the end of that one says nothing.
func (a *Aggregate) awaitsAnother(s provider.Snapshot) bool {
	return a.Order.TID != "" && s.TID != "" && a.Order.TID != s.TID
}

// CheckBalance compares the provider's balance with what Hub takes for refundable: unequal ones are for an operator.
func (a *Aggregate) CheckBalance(s provider.Snapshot) error {
	o := &a.Order
	if (o.Status != Paid && o.Status != Refunded) || o.PendingRefund > 0 || s.TID != o.TID || s.Balance == o.Refundable() ||
		s.Status == provider.PaymentIssued || s.Status == provider.PaymentExpired {
		return nil
	}
	note := a.driftNote(s)
	return a.openCase(BalanceDrift, s.TID, note, func(e Event) bool { return e.Note == note })
}

// pastDue tells that an account has waited for ten minutes longer than it should.
func (a *Aggregate) pastDue() bool {
	return a.Order.Account != nil && a.Now.After(a.Order.Account.ExpiresAt.Add(expiryGrace))
}

// Expire ends an order that nobody pays any more. The provider, asked just now, has said that nothing was paid. It tells
// whether the time has come.
func (a *Aggregate) Expire() (bool, error) {
	o := &a.Order
	if o.Status == Ready && !a.Now.Before(o.CreatedAt.Add(ReadyFor)) || o.Status == AwaitingDeposit && a.pastDue() {
		return true, a.record(Lapse, Expired, "")
	}
	return false, nil
}

// CancelUnpaid ends an unpaid order that the provider does not let anybody pay any more. It returns what DepositsDecided returns.
func (a *Aggregate) CancelUnpaid() error {
	if err := a.DepositsDecided(); err != nil {
		return err
	}
	return a.record(Cancel, Canceled, "")
}

// DepositsDecided returns E_CONFLICT with ORDER_NOT_CANCELABLE while the order has a deposit of another amount that is not paid back: an
// app that reads CANCELED takes it that nobody has money in it.
func (a *Aggregate) DepositsDecided() error {
	if !a.hasUnsettledDeposit(0) {
		return nil
	}
	return Conflict(CodeNotCancelable, "The order "+a.Order.Code+" has a deposit of another amount. It can be canceled once that is paid "+
		"back, which an operator of Hub decides.", map[string]any{"status": a.Order.Status})
}

// Decline ends an order that the provider definitely refuses.
func (a *Aggregate) Decline(why Failure) error {
	if a.Order.Status != Ready {
		return nil
	}
	a.Order.Failure = &why
	return a.record(Decline, Failed, "")
}

const (
	// expiryGrace is how long after its end an account is given up.
	expiryGrace = 10 * time.Minute
	// maxCancellations bounds how many cancellations one snapshot settles while the order is locked; the next one goes on.
	maxCancellations = 200
	// payoutGrace is how long after a refund a provider that does not tell of it may just be slow: no payout comes back so soon.
	payoutGrace = 5 * time.Minute
	// ReadyFor is how long an order waits for its payer.
	ReadyFor = 24 * time.Hour
)

// NextCheck is when the order has to be reconciled with its provider next, after so many checks since it last moved; ok is
// false for one that waits for nothing. What is pending is asked about after 2 minutes, 5 minutes, an hour, and then each
// day. A virtual account waits for its end, because a deposit before that is told by a webhook.
func (a *Aggregate) NextCheck(checks int) (at time.Time, ok bool) {
	o := a.Order
	waits := []time.Duration{2 * time.Minute, 5 * time.Minute, time.Hour, 24 * time.Hour}
	wait := waits[min(checks, len(waits)-1)]
	switch {
	case o.PendingRefund > 0 || len(a.ReturningDeposits()) > 0:
		return a.Now.Add(wait), true
	case o.Status == Ready:
		// Its day ends at a moment of its own.
		at := a.Now.Add(wait)
		if end := o.CreatedAt.Add(ReadyFor); a.Now.Before(end) && at.After(end) {
			at = end
		}
		return at, true
	case o.Status == AwaitingDeposit && o.Account != nil:
		if end := o.Account.ExpiresAt.Add(expiryGrace + time.Second); a.Now.Before(end) {
			return end, true
		}
		return a.Now.Add(waits[min(checks+1, len(waits)-1)]), true
	}
	return time.Time{}, false
}
