package payments

import (
	"slices"
	"time"

	"hub.internal/pkg/fault"
)

// DepositState says what became of money that arrived.
type DepositState string

// The states of a deposit. Mismatch and Unapplied are open cases; a Returning one is asked back of the provider.
const (
	DepositIsApplied   DepositState = "APPLIED"
	DepositIsMismatch  DepositState = "MISMATCH"
	DepositIsUnapplied DepositState = "UNAPPLIED"
	DepositIsReversed  DepositState = "REVERSED"
	DepositIsReturning DepositState = "RETURNING"
	DepositIsReturned  DepositState = "RETURNED"
)

// Deposit is money that the provider says has arrived.
type Deposit struct {
	// ID is 0 for one that is not stored yet.
	ID     ID
	TID    string
	Amount int64
	At     time.Time
	State  DepositState
	// Return is how the provider was asked to pay it back; nil for one that it never was.
	Return *DepositReturn
}

// DepositReturn is the wish that the provider pays a deposit back.
type DepositReturn struct {
	// Code is unique at the provider, as a refund's is; TID is the provider's id of the cancellation.
	Code, TID string
	// Account is where the money goes, sealed; Masked is what is shown of it.
	Account []byte
	Masked  *RefundAccount
	// Failure is why it was not paid back.
	Failure   *Failure
	SettledAt *time.Time
}

// Open tells that somebody has to decide about the deposit.
func (d Deposit) Open() bool { return d.State == DepositIsMismatch || d.State == DepositIsUnapplied }

// same tells whether both are one deposit: there is one of an amount at a moment.
func (d Deposit) same(other Deposit) bool {
	return d.TID == other.TID && d.Amount == other.Amount && d.At.Equal(other.At)
}

// deposit finds a deposit; E_NOT_FOUND when the order has none of that id.
func (b *Book) deposit(id ID) (*Deposit, error) {
	i := slices.IndexFunc(b.Deposits, func(d Deposit) bool { return d.ID == id && id != 0 })
	if i < 0 {
		return nil, fault.New(fault.NotFound, "The order %s has no such deposit.", b.Order.Code)
	}
	return &b.Deposits[i], nil
}

// ApplyDeposit takes a deposit that has come too late for the payment of its order, which is paid then (SPEC.md 4.4).
// It returns E_NOT_FOUND, or E_CONFLICT with DEPOSIT_NOT_OPEN, with AMOUNT_MISMATCH for a deposit of another amount than the
// order's, with DEPOSIT_OF_APPLIED_PAYMENT while the payment that it belongs to is being paid back, or with ORDER_NOT_PAYABLE
// for an order that has not ended unpaid.
func (b *Book) ApplyDeposit(id ID, note string) error {
	d, err := b.deposit(id)
	if err != nil {
		return err
	}
	o := &b.Order
	switch {
	case d.State != DepositIsUnapplied:
		return notOpen(*d)
	case d.Amount != o.Amounts.Amount:
		return conflict(codeMismatch, "The deposit is not of the order's amount: it can only be paid back.",
			map[string]any{"stored": o.Amounts.Amount, "deposited": d.Amount})
	case slices.ContainsFunc(b.returning(), func(r Deposit) bool { return r.TID == d.TID }):
		return conflict(codeSamePayment, "The provider is paying another deposit of the same payment back, and could take this one. Wait for "+
			"that.",
			map[string]any{"tid": d.TID})
	case o.Status != Expired && o.Status != Canceled && o.Status != Failed:
		return conflict("ORDER_NOT_PAYABLE", "The order "+o.Code+" is "+string(o.Status)+": a deposit cannot be applied to it.",
			map[string]any{"status": o.Status})
	}
	o.Failure = nil
	b.ease(id)
	err = b.pay(*d, DepositApplied)
	b.note(note)
	return err
}

// AskReturn keeps the wish that the provider pays an open deposit back, before it is asked. It returns E_NOT_FOUND, or
// E_CONFLICT with DEPOSIT_NOT_OPEN, or with DEPOSIT_OF_APPLIED_PAYMENT when the provider would pay back what the order was
// paid with.
func (b *Book) AskReturn(id ID, in DepositReturn, note string) error {
	d, err := b.deposit(id)
	if err != nil {
		return err
	}
	if !d.Open() {
		return notOpen(*d)
	}
	if !b.CanAskReturn(*d) {
		return conflict(codeSamePayment, "The provider has this deposit under the payment that the order is paid with. "+
			"Pay it back yourself, and keep that here.", map[string]any{"tid": d.TID})
	}
	d.State, d.Return = DepositIsReturning, &in
	err = b.step(ReturnAsk, b.Order.Status, in.Code)
	b.note(note)
	return err
}

// CanAskReturn tells whether the provider can pay an open deposit back without touching what the order is paid with.
func (b *Book) CanAskReturn(d Deposit) bool {
	return d.Open() && !b.paidWith(d.TID)
}

// paidWith tells whether the order is paid with a payment of the provider's.
func (b *Book) paidWith(tid string) bool {
	return slices.ContainsFunc(b.Deposits, func(d Deposit) bool { return d.State == DepositIsApplied && d.TID == tid })
}

// CanApply tells whether an open deposit can pay the order.
func (b *Book) CanApply(d Deposit) bool {
	o := b.Order
	return d.State == DepositIsUnapplied && d.Amount == o.Amounts.Amount && (o.Status == Expired || o.Status == Canceled || o.Status == Failed)
}

// ReturnedByHand keeps that an operator has paid an open deposit back without Hub. It returns E_NOT_FOUND, or E_CONFLICT
// with DEPOSIT_NOT_OPEN.
func (b *Book) ReturnedByHand(id ID, note string) error {
	d, err := b.deposit(id)
	if err != nil {
		return err
	}
	if !d.Open() {
		return notOpen(*d)
	}
	d.State = DepositIsReturned
	b.ease(id)
	err = b.step(DepositReturned, b.Order.Status, d.TID)
	b.note(note)
	return err
}

// Resolve ends a case that an operator has looked at. It returns E_CONFLICT with NO_CASE, or with DEPOSITS_OPEN while
// there is money that belongs to nobody: that is applied or paid back.
func (b *Book) Resolve(note string) error {
	switch {
	case b.Order.Attention == "":
		return conflict(codeNoCase, "The order "+b.Order.Code+" needs no attention.", nil)
	case b.unsettled(0):
		return conflict(codeOpenDeposits, "A deposit of the order is neither applied nor paid back. Decide about that first.", nil)
	}
	b.Order.Attention = ""
	err := b.step(ResolveCase, b.Order.Status, "")
	b.note(note)
	return err
}

func notOpen(d Deposit) error {
	return conflict(codeDeposit, "The deposit is "+string(d.State)+": nothing is to be decided about it.", map[string]any{"state": d.State})
}

// note keeps a note with the last step.
func (b *Book) note(text string) {
	if len(b.Steps) > 0 {
		b.Steps[len(b.Steps)-1].Note = text
	}
}

// unsettled tells that there is a deposit, beside one, that is neither applied nor back.
func (b *Book) unsettled(but ID) bool {
	return slices.ContainsFunc(b.Deposits, func(d Deposit) bool {
		return (d.Open() || d.State == DepositIsReturning) && (d.ID != but ||
			but == 0)
	})
}

// ease ends a case about deposits when the last of them is decided.
func (b *Book) ease(decided ID) {
	switch b.Order.Attention {
	case LateDeposit, DuplicateDeposit, AmountMismatch:
		if !b.unsettled(decided) {
			b.Order.Attention = ""
		}
	}
}

// returning are the deposits that the provider is asked to pay back.
func (b *Book) returning() []Deposit {
	return slices.DeleteFunc(slices.Clone(b.Deposits), func(d Deposit) bool { return d.State != DepositIsReturning })
}

// returnOf finds the deposit that a code of the provider's is the return of.
func (b *Book) returnOf(code string) *Deposit {
	i := slices.IndexFunc(b.Deposits, func(d Deposit) bool { return d.Return != nil && d.Return.Code == code && code != "" })
	if i < 0 {
		return nil
	}
	return &b.Deposits[i]
}

// returns settles the deposits that the provider tells it has paid back.
func (b *Book) returns(s Snapshot) error {
	for _, c := range s.Cancels {
		d := b.returnOf(c.RefundCode)
		if d == nil || d.TID != s.TID || d.Amount != c.Amount {
			continue
		}
		var err error
		switch {
		case c.Returned && (d.State == DepositIsReturned || d.State == DepositIsReturning):
			err = b.reopen(d, Failure{"RETURNED", "the payout came back"})
		case !c.Returned && (d.State == DepositIsReturning || d.Open() && d.Return.TID == ""): // also after it seemed to refuse
			r := *d.Return
			r.TID, r.Failure, r.SettledAt = c.TID, nil, new(b.Now)
			d.State, d.Return = DepositIsReturned, &r
			b.ease(d.ID)
			err = b.step(DepositReturned, b.Order.Status, r.Code)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// returnsCameBack opens deposits again that a provider, asked just now, no longer tells of as paid back.
func (b *Book) returnsCameBack(s Snapshot) error {
	for i := range b.Deposits {
		d := &b.Deposits[i]
		if d.State != DepositIsReturned || d.TID != s.TID || d.Return == nil || d.Return.TID == "" ||
			!b.Now.After(d.Return.SettledAt.Add(returnGrace)) ||
			slices.ContainsFunc(s.Cancels, func(c ProviderCancel) bool { return c.TID == d.Return.TID }) {
			continue
		}
		if err := b.reopen(d, Failure{"RETURNED", "the payout came back"}); err != nil {
			return err
		}
	}
	return nil
}

// DeclineReturn opens a deposit again that the provider definitely does not pay back; any other stays as it is.
func (b *Book) DeclineReturn(code string, why Failure) error {
	d := b.returnOf(code)
	if d == nil || d.State != DepositIsReturning {
		return nil
	}
	return b.reopen(d, why)
}

func (b *Book) reopen(d *Deposit, why Failure) error {
	r := *d.Return
	r.Failure, r.SettledAt = &why, new(b.Now)
	d.Return, d.State = &r, DepositIsUnapplied
	o := &b.Order
	switch {
	case d.Amount != o.Amounts.Amount:
		d.State = DepositIsMismatch
		o.Attention = AmountMismatch
	case o.Status == Paid || o.Status == Refunded:
		o.Attention = DuplicateDeposit
	default:
		o.Attention = LateDeposit
	}
	err := b.step(ReturnFailed, o.Status, r.Code)
	b.note(why.Message)
	return err
}
