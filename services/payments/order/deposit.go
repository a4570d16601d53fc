package order

import (
	"slices"
	"time"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/schema"
	"hub.internal/services/payments/provider"
)

// DepositState says what became of money that arrived.
type DepositState string

// The states of a deposit. Mismatch and Unapplied are open cases; a Returning one is asked back of the provider.
const (
	DepositStateApplied   DepositState = "APPLIED"
	DepositStateMismatch  DepositState = "MISMATCH"
	DepositStateUnapplied DepositState = "UNAPPLIED"
	DepositStateReversed  DepositState = "REVERSED"
	DepositStateReturning DepositState = "RETURNING"
	DepositStateReturned  DepositState = "RETURNED"
)

// Deposit is money that the provider says has arrived. An order has one deposit that is applied at most. Every other one is kept
// with it all the same, until somebody has decided about it or the provider has paid it back: no money is forgotten.
type Deposit struct {
	// ID is 0 for one that is not stored yet.
	ID     schema.ID
	TID    string
	Amount int64
	At     time.Time
	State  DepositState
	// Return is how the provider was asked to pay it back; nil for one that it never was.
	Return *DepositReturn
}

// DepositReturn is the wish that the provider pays a deposit back. Like a refund it is stored before the provider is asked, and
// has a code by which it is found again.
type DepositReturn struct {
	// Code is unique at the provider, as a refund's is; TID is the provider's id of the cancellation.
	Code, TID string
	// Account is where the money goes, sealed; Masked is what is shown of it.
	Account []byte
	Masked  *provider.RefundAccount
	// Failure is why it was not paid back.
	Failure   *Failure
	SettledAt *time.Time
}

// NeedsDecision tells that somebody has to decide about the deposit.
func (d Deposit) NeedsDecision() bool {
	return d.State == DepositStateMismatch || d.State == DepositStateUnapplied
}

// Same tells whether both are one deposit: there is one of an amount at a moment.
func (d Deposit) Same(other Deposit) bool {
	return d.TID == other.TID && d.Amount == other.Amount && d.At.Equal(other.At)
}

// Deposit finds a deposit; E_NOT_FOUND when the order has none of that id.
func (a *Aggregate) Deposit(id schema.ID) (*Deposit, error) {
	i := slices.IndexFunc(a.Deposits, func(d Deposit) bool { return d.ID == id && id != 0 })
	if i < 0 {
		return nil, fault.New(fault.NotFound, "The order %s has no such deposit.", a.Order.Code)
	}
	return &a.Deposits[i], nil
}

// ApplyDeposit takes a deposit that has come too late for the payment of its order, which is paid then (SPEC.md 4.4).
// It returns E_NOT_FOUND, or E_CONFLICT with DEPOSIT_NOT_OPEN, with AMOUNT_MISMATCH for a deposit of another amount than the
// order's, with DEPOSIT_OF_APPLIED_PAYMENT while the payment that it belongs to is being paid back, or with ORDER_NOT_PAYABLE
// for an order that has not ended unpaid.
func (a *Aggregate) ApplyDeposit(id schema.ID, note string) error {
	d, err := a.Deposit(id)
	if err != nil {
		return err
	}
	o := &a.Order
	switch {
	case d.State != DepositStateUnapplied:
		return depositNotOpen(*d)
	case d.Amount != o.Amounts.Amount:
		return Conflict(CodeAmountMismatch, "The deposit is not of the order's amount: it can only be paid back.",
			map[string]any{"stored": o.Amounts.Amount, "deposited": d.Amount})
	case slices.ContainsFunc(a.ReturningDeposits(), func(r Deposit) bool { return r.TID == d.TID }):
		return Conflict(CodeSamePayment, "The provider is paying another deposit of the same payment back, and could take this one. Wait for "+
			"that.",
			map[string]any{"tid": d.TID})
	case o.Status != Expired && o.Status != Canceled && o.Status != Failed:
		return Conflict("ORDER_NOT_PAYABLE", "The order "+o.Code+" is "+string(o.Status)+": a deposit cannot be applied to it.",
			map[string]any{"status": o.Status})
	}
	o.Failure = nil
	a.clearDepositAttention(id)
	err = a.recordPayment(*d, DepositApplied)
	a.annotate(note)
	return err
}

// RequestDepositReturn keeps the wish that the provider pays an open deposit back, before it is asked. It returns E_NOT_FOUND, or
// E_CONFLICT with DEPOSIT_NOT_OPEN, or with DEPOSIT_OF_APPLIED_PAYMENT when the provider would pay back what the order was
// paid with.
func (a *Aggregate) RequestDepositReturn(id schema.ID, in DepositReturn, note string) error {
	d, err := a.Deposit(id)
	if err != nil {
		return err
	}
	if !d.NeedsDecision() {
		return depositNotOpen(*d)
	}
	if !a.CanReturnDeposit(*d) {
		return Conflict(CodeSamePayment, "The provider has this deposit under the payment that the order is paid with. "+
			"Pay it back yourself, and keep that here.", map[string]any{"tid": d.TID})
	}
	d.State, d.Return = DepositStateReturning, &in
	err = a.record(DepositReturnRequested, a.Order.Status, in.Code)
	a.annotate(note)
	return err
}

// CanReturnDeposit tells whether the provider can pay an open deposit back without touching what the order is paid with.
func (a *Aggregate) CanReturnDeposit(d Deposit) bool {
	return d.NeedsDecision() && !a.PaidWith(d.TID)
}

// PaidWith tells whether the order is paid with a payment of the provider's.
func (a *Aggregate) PaidWith(tid string) bool {
	return slices.ContainsFunc(a.Deposits, func(d Deposit) bool { return d.State == DepositStateApplied && d.TID == tid })
}

// CanApplyDeposit tells whether an open deposit can pay the order.
func (a *Aggregate) CanApplyDeposit(d Deposit) bool {
	o := a.Order
	return d.State == DepositStateUnapplied && d.Amount == o.Amounts.Amount && (o.Status == Expired || o.Status == Canceled ||
		o.Status == Failed)
}

// RecordManualReturn keeps that an operator has paid an open deposit back without Hub. It returns E_NOT_FOUND, or E_CONFLICT
// with DEPOSIT_NOT_OPEN.
func (a *Aggregate) RecordManualReturn(id schema.ID, note string) error {
	d, err := a.Deposit(id)
	if err != nil {
		return err
	}
	if !d.NeedsDecision() {
		return depositNotOpen(*d)
	}
	d.State = DepositStateReturned
	a.clearDepositAttention(id)
	err = a.record(DepositReturned, a.Order.Status, d.TID)
	a.annotate(note)
	return err
}

// ResolveAttention ends the case that an operator has looked at; one that it has covered shows then. It returns E_CONFLICT with
// NO_CASE, or with DEPOSITS_OPEN while there is money that belongs to nobody: that is applied or paid back.
func (a *Aggregate) ResolveAttention(note string) error {
	switch {
	case a.Order.Attention == "":
		return Conflict(codeNoAttention, "The order "+a.Order.Code+" needs no attention.", nil)
	case a.hasUnsettledDeposit(0):
		return Conflict(codeOpenDeposits, "A deposit of the order is neither applied nor paid back. Decide about that first.", nil)
	}
	err := a.record(AttentionResolved, a.Order.Status, "")
	a.annotate(note)
	a.Order.Attention = a.standingCase()
	return err
}

// depositNotOpen is the refusal of a decision that was made already.
func depositNotOpen(d Deposit) error {
	return Conflict(codeDepositNotOpen, "The deposit is "+string(d.State)+": nothing is to be decided about it.",
		map[string]any{"state": d.State})
}

// annotate keeps an operator's note with the last event.
func (a *Aggregate) annotate(text string) {
	if len(a.Events) > 0 {
		a.Events[len(a.Events)-1].Note = text
	}
}

// hasUnsettledDeposit tells that there is a deposit, beside one, that is neither applied nor back.
func (a *Aggregate) hasUnsettledDeposit(but schema.ID) bool {
	return slices.ContainsFunc(a.Deposits, func(d Deposit) bool {
		return (d.NeedsDecision() || d.State == DepositStateReturning) && (d.ID != but ||
			but == 0)
	})
}

// clearDepositAttention ends a case about deposits when the last of them is decided. A case that it has covered shows again.
func (a *Aggregate) clearDepositAttention(decided schema.ID) {
	switch a.Order.Attention {
	case LateDeposit, DuplicateDeposit, AmountMismatch:
		if !a.hasUnsettledDeposit(decided) {
			a.Order.Attention = a.standingCase()
		}
	}
}

// ReturningDeposits are the deposits that the provider is asked to pay back.
func (a *Aggregate) ReturningDeposits() []Deposit {
	return slices.DeleteFunc(slices.Clone(a.Deposits), func(d Deposit) bool { return d.State != DepositStateReturning })
}

// depositByReturnCode finds the deposit that a code of the provider's is the return of.
func (a *Aggregate) depositByReturnCode(code string) *Deposit {
	i := slices.IndexFunc(a.Deposits, func(d Deposit) bool { return d.Return != nil && d.Return.Code == code && code != "" })
	if i < 0 {
		return nil
	}
	return &a.Deposits[i]
}

// settleDepositReturns settles the deposits that the provider tells it has paid back. One that seemed to be refused, and was paid
// back after all, is settled too: what the provider shows is what holds.
func (a *Aggregate) settleDepositReturns(s provider.Snapshot) error {
	for _, c := range s.Cancellations {
		d := a.depositByReturnCode(c.RefundCode)
		if d == nil || d.TID != s.TID || d.Amount != c.Amount {
			continue
		}
		var err error
		switch {
		case c.Returned && (d.State == DepositStateReturned || d.State == DepositStateReturning):
			err = a.reopenDeposit(d, Failure{"RETURNED", "the payout came back"})
		case !c.Returned && (d.State == DepositStateReturning || d.NeedsDecision() && d.Return.TID == ""): // also after it seemed to refuse
			r := *d.Return
			r.TID, r.Failure, r.SettledAt = c.TID, nil, new(a.Now)
			d.State, d.Return = DepositStateReturned, &r
			a.clearDepositAttention(d.ID)
			err = a.record(DepositReturned, a.Order.Status, r.Code)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// reopenDeposits opens deposits again that a provider, asked just now, no longer tells of as paid back.
func (a *Aggregate) reopenDeposits(s provider.Snapshot) error {
	for i := range a.Deposits {
		d := &a.Deposits[i]
		if d.State != DepositStateReturned || d.TID != s.TID || d.Return == nil || d.Return.TID == "" ||
			!a.Now.After(d.Return.SettledAt.Add(payoutGrace)) ||
			slices.ContainsFunc(s.Cancellations, func(c provider.Cancellation) bool { return c.TID == d.Return.TID }) {
			continue
		}
		if err := a.reopenDeposit(d, Failure{"RETURNED", "the payout came back"}); err != nil {
			return err
		}
	}
	return nil
}

// DeclineDepositReturn opens a deposit again that the provider definitely does not pay back; any other stays as it is.
func (a *Aggregate) DeclineDepositReturn(code string, why Failure) error {
	d := a.depositByReturnCode(code)
	if d == nil || d.State != DepositStateReturning {
		return nil
	}
	return a.reopenDeposit(d, why)
}

// reopenDeposit opens a deposit again whose return has failed: it needs a decision as before, and the order needs
// attention for the reason that fits its status now.
func (a *Aggregate) reopenDeposit(d *Deposit, why Failure) error {
	r := *d.Return
	r.Failure, r.SettledAt = &why, new(a.Now)
	d.Return, d.State = &r, DepositStateUnapplied
	o := &a.Order
	switch {
	case d.Amount != o.Amounts.Amount:
		d.State = DepositStateMismatch
		o.Attention = AmountMismatch
	case o.Status == Paid || o.Status == Refunded:
		o.Attention = DuplicateDeposit
	default:
		o.Attention = LateDeposit
	}
	err := a.record(DepositReturnFailed, o.Status, r.Code)
	a.annotate(why.Message)
	return err
}
