package order

import (
	"fmt"
	"slices"
)

// Trigger is what moves an order, or is kept beside it as an event. Its text is stored with each event, answered to apps and a
// label of metrics, so that it never changes.
type Trigger string

// The triggers.
const (
	Create                 Trigger = "create"
	Issue                  Trigger = "issue"
	Pay                    Trigger = "pay"
	PayLate                Trigger = "pay_late"
	Decline                Trigger = "decline"
	Lapse                  Trigger = "lapse"
	Cancel                 Trigger = "cancel"
	Mismatch               Trigger = "mismatch"
	DepositUnused          Trigger = "deposit_unused"
	DepositTwice           Trigger = "deposit_twice"
	DepositApplied         Trigger = "deposit_applied"
	DepositReturned        Trigger = "deposit_returned"
	DepositReturnRequested Trigger = "deposit_return_ask"
	DepositReturnFailed    Trigger = "deposit_return_failed"
	Reverse                Trigger = "reverse"
	ReverseTooLate         Trigger = "reverse_too_late"
	RefundRequested        Trigger = "refund_ask"
	RefundPart             Trigger = "refund_part"
	RefundAll              Trigger = "refund_all"
	RefundDeclined         Trigger = "refund_declined"
	RefundReturned         Trigger = "refund_returned"
	BalanceDrifted         Trigger = "drift"
	AttentionResolved      Trigger = "resolve"
)

// The types of messages to an app.
const (
	NotifyIssued                 = "payment.vbank.issued"
	NotifyPaid                   = "payment.order.paid"
	NotifyCanceled               = "payment.order.canceled"
	NotifyExpired                = "payment.order.expired"
	NotifyFailed                 = "payment.order.failed"
	NotifyRefunded               = "payment.order.refunded"
	NotifyRefundSucceeded        = "payment.refund.succeeded"
	NotifyRefundFailed           = "payment.refund.failed"
	NotifyReversed               = "payment.deposit.reversed"
	NotifyAttention              = "payment.order.attention"
	noNotification               = ""
	noStatus              Status = ""
)

// Transition is a row of the order's state machine. A row whose From and To are the same moves nothing: it is an event that may
// be recorded beside the status, such as a refund that was asked for.
type Transition struct {
	From    Status
	Trigger Trigger
	To      Status
	// Notification is the type of the message to the app; empty for none.
	Notification string
	// Condition is the condition, as people read it.
	Condition string
}

// Transitions are the state machine (SPEC.md 4.4): what is not here does not happen. DESIGN.md has its diagram, which a test makes
// from this table.
func Transitions() []Transition {
	rows := []Transition{
		{noStatus, Create, Ready, noNotification, "the order is valid"},
		{Ready, Issue, AwaitingDeposit, NotifyIssued, "the provider has issued an account for the amount"},
		{Ready, Pay, Paid, NotifyPaid, "the provider, asked, says paid, and the amount is the order's"},
		{Ready, Decline, Failed, NotifyFailed, "the provider definitely refuses, or says that the payment failed"},
		{Ready, Lapse, Expired, NotifyExpired, "24 hours old, and the provider knows of no payment"},
		{Ready, Cancel, Canceled, NotifyCanceled, "given up before anything was paid"},
		{AwaitingDeposit, Pay, Paid, NotifyPaid, "the provider, asked, says paid, and the amount is the order's"},
		{AwaitingDeposit, Lapse, Expired, NotifyExpired, "10 minutes past due, and the provider, asked, says not paid"},
		{AwaitingDeposit, Cancel, Canceled, NotifyCanceled, "given up before anything was paid"},
		{Expired, PayLate, Paid, NotifyPaid, "deposited in time: only the news was late"},
		{Paid, Reverse, AwaitingDeposit, NotifyReversed, "the provider takes the deposit back, nothing was refunded, not yet due"},
		{Paid, Reverse, Expired, NotifyReversed, "the provider takes the deposit back, nothing was refunded, past due"},
		{Paid, RefundRequested, Paid, noNotification, "1 to the refundable amount: it is reserved"},
		{Paid, RefundPart, Paid, NotifyRefundSucceeded, "confirmed, and something is left"},
		{Paid, RefundAll, Refunded, NotifyRefunded, "confirmed, and nothing is left"},
		{Paid, RefundDeclined, Paid, NotifyRefundFailed, "the provider definitely refuses: the reserve is free again"},
		{Paid, RefundReturned, Paid, NotifyRefundFailed, "the payout of a refund came back"},
		{Refunded, RefundReturned, Paid, NotifyRefundFailed, "the payout of a refund came back"},
		{Paid, ReverseTooLate, Paid, NotifyAttention, "the provider takes the deposit back after a refund"},
	}
	stay := func(t Trigger, tells, when string, states ...Status) {
		for _, s := range states {
			rows = append(rows, Transition{s, t, s, tells, when})
		}
	}
	stay(Mismatch, NotifyAttention, "another amount than the order's was issued or deposited", Ready, AwaitingDeposit)
	stay(DepositUnused, NotifyAttention, "a deposit for an order that has ended", Expired, Canceled, Failed)
	stay(DepositTwice, NotifyAttention, "a second, distinct deposit", Paid, Refunded)
	stay(BalanceDrifted, NotifyAttention, "the provider's balance is another one", Paid, Refunded)
	stay(DepositReturnRequested, noNotification, "an operator wants a deposit paid back that was not applied", Statuses()...)
	stay(DepositReturned, noNotification, "a deposit was paid back that was not applied", Statuses()...)
	stay(DepositReturnFailed, noNotification, "the provider refuses to pay a deposit back, or its payout came back", Statuses()...)
	stay(AttentionResolved, noNotification, "an operator has looked at it", Statuses()...)
	for _, s := range []Status{Expired, Canceled, Failed} {
		rows = append(rows, Transition{s, DepositApplied, Paid, NotifyPaid, "an operator applies a late deposit of the order's amount"})
	}
	return rows
}

// Statuses lists the states of an order.
func Statuses() []Status {
	return []Status{Ready, AwaitingDeposit, Paid, Refunded, Canceled, Expired, Failed}
}

// transition finds the row of an event. A move that is in no row is a defect of the caller's, and fails the transaction: an
// order never gets into a state that the table does not lead to.
func transition(from Status, trigger Trigger, to Status) (Transition, error) {
	rows := Transitions()
	i := slices.IndexFunc(rows, func(t Transition) bool { return t.From == from && t.Trigger == trigger && t.To == to })
	if i < 0 {
		return Transition{}, fmt.Errorf("an order that is %q cannot %s to %q", from, trigger, to)
	}
	return rows[i], nil
}
