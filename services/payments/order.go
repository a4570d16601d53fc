// Package payments takes money for Connected Apps: orders, deposits, refunds, and what is told of them. It keeps what Hub
// knows and what the provider says apart, and moves an order only to what the provider has said when asked. It refuses
// to believe a webhook, to try again blindly what may have happened, and to call a provider within a transaction.
package payments

import (
	"fmt"
	"slices"
	"time"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/schema"
)

// ID is the identity of a row.
type ID = schema.ID

// Status is the state of an order's record.
type Status string

// The states of an order. Refunds are possible in Paid alone, so a partly refunded order stays there.
const (
	Ready           Status = "READY"
	AwaitingDeposit Status = "AWAITING_DEPOSIT"
	Paid            Status = "PAID"
	Refunded        Status = "REFUNDED"
	Canceled        Status = "CANCELED"
	Expired         Status = "EXPIRED"
	Failed          Status = "FAILED"
)

// VBankIssued is what the browser and the first notification of a virtual account are told; no record has it.
const VBankIssued = "VBANK_ISSUED"

// Attention is why an operator has to look at an order; empty for most.
type Attention string

// What an operator has to look at.
const (
	AmountMismatch      Attention = "AMOUNT_MISMATCH"
	LateDeposit         Attention = "LATE_DEPOSIT"
	DuplicateDeposit    Attention = "DUPLICATE_DEPOSIT"
	ReversedAfterRefund Attention = "REVERSED_AFTER_REFUND"
	BalanceDrift        Attention = "BALANCE_DRIFT"
)

// Buyer is who pays, as far as the app says.
type Buyer struct {
	Name  string `json:"name,omitempty"`
	Email string `json:"email,omitempty"`
	Tel   string `json:"tel,omitempty"`
}

// VBankAccount is a virtual account that waits for a deposit.
type VBankAccount struct {
	BankCode  string
	BankName  string
	Number    string
	Holder    string
	ExpiresAt time.Time
}

// RefundAccount is where a refund goes. It is stored sealed, and answered masked.
type RefundAccount struct {
	BankCode      string `json:"bankCode"`
	AccountNumber string `json:"accountNumber"`
	Holder        string `json:"holder"`
}

// Order is the record of an order.
type Order struct {
	ID   ID
	Code string
	// ServiceCode is the app, ExternalUserID its user, HubUser the account linked to that one.
	ServiceCode, ExternalUserID, HubUser string

	Env          Env
	Provider     string
	CredentialID ID
	// TID is the provider's id of the payment.
	TID string

	Status Status
	// Version counts the transitions; it is the seq of their events and messages.
	Version int64
	Amounts
	// PaidAmount was deposited, RefundedAmount paid back, PendingRefund is reserved for refunds under way.
	PaidAmount, RefundedAmount, PendingRefund int64

	PayMethod     PayMethod
	ClientOrderID string
	Name          string
	NotifyURL     string
	ReturnURL     string
	ValidHours    int
	Holder        string
	Buyer         Buyer
	Metadata      map[string]string
	CheckoutURL   string
	Account       *VBankAccount
	Attention     Attention
	// Failure is the provider's code and text of a refusal.
	Failure *Failure

	CreatedAt                  time.Time
	IssuedAt, PaidAt, ClosedAt *time.Time
}

// Failure is why an order or a refund failed, in the provider's words.
type Failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Same tells whether nothing was done to the order since other.
func (o Order) Same(other Order) bool {
	return o.Version == other.Version && o.TID == other.TID && o.CheckoutURL == other.CheckoutURL && o.Attention == other.Attention
}

// Refundable is what can be paid back still, in won.
func (o Order) Refundable() int64 { return o.PaidAmount - o.RefundedAmount - o.PendingRefund }

// MaxAmount is the most that an order can cost, in won.
const MaxAmount = 100_000_000

// Amounts are the price of an order, in won: Amount is Supply and VAT.
type Amounts struct {
	Amount, Supply, VAT int64
	// TaxFree tells that the supply amount was stated, and no tax beside it.
	TaxFree bool
}

// What a price can break.
const (
	RuleMissing  = "MISSING"
	RuleSum      = "SUM"
	RuleRange    = "RANGE"
	RuleNegative = "NEGATIVE"
)

// ResolveAmount makes the price of an order of what its caller has stated (SPEC.md 5.1): a tax that was not stated is
// never added to a supply amount, and the amount alone holds a tax of 1/11. It returns BAD_AMOUNT with the rule that
// is broken.
func ResolveAmount(amount, supply, vat *int64) (Amounts, error) {
	for _, v := range []*int64{amount, supply, vat} {
		if v != nil && *v < 0 {
			return Amounts{}, badAmount(RuleNegative, "amount, supplyAmount and vat must not be negative")
		}
		if v != nil && *v > MaxAmount {
			return Amounts{}, badAmount(RuleRange, outOfRange)
		}
	}
	var a Amounts
	switch {
	case amount == nil && supply == nil:
		return Amounts{}, badAmount(RuleMissing, "amount or supplyAmount is needed")
	case supply != nil:
		a.Supply = *supply
		if vat != nil {
			a.VAT = *vat
		}
		a.Amount, a.TaxFree = a.Supply+a.VAT, a.VAT == 0
		if amount != nil && *amount != a.Amount {
			return Amounts{}, badAmount(RuleSum, fmt.Sprintf("amount is %d, but supplyAmount + vat is %d", *amount, a.Amount))
		}
	case vat != nil:
		a.Amount, a.VAT, a.Supply = *amount, *vat, *amount-*vat
		if a.Supply < 0 {
			return Amounts{}, badAmount(RuleSum, "vat is more than amount")
		}
	default:
		a.Amount, a.VAT = *amount, *amount/11
		a.Supply = a.Amount - a.VAT
	}
	if a.Amount < 1 || a.Amount > MaxAmount {
		return Amounts{}, badAmount(RuleRange, outOfRange)
	}
	return a, nil
}

var outOfRange = fmt.Sprintf("the total must be between 1 and %d won", MaxAmount)

func badAmount(rule, message string) error {
	return fault.New(fault.BadAmount, "The price does not hold: %s.", message).
		With(map[string]string{"code": string(fault.BadAmount), "rule": rule})
}

// Trigger is what moves an order, or is kept beside it as an event.
type Trigger string

// The triggers.
const (
	Create          Trigger = "create"
	Issue           Trigger = "issue"
	Pay             Trigger = "pay"
	PayLate         Trigger = "pay_late"
	Decline         Trigger = "decline"
	Lapse           Trigger = "lapse"
	Cancel          Trigger = "cancel"
	Mismatch        Trigger = "mismatch"
	DepositUnused   Trigger = "deposit_unused"
	DepositTwice    Trigger = "deposit_twice"
	DepositApplied  Trigger = "deposit_applied"
	DepositReturned Trigger = "deposit_returned"
	ReturnAsk       Trigger = "deposit_return_ask"
	ReturnFailed    Trigger = "deposit_return_failed"
	Reverse         Trigger = "reverse"
	ReverseTooLate  Trigger = "reverse_too_late"
	RefundAsk       Trigger = "refund_ask"
	RefundPart      Trigger = "refund_part"
	RefundAll       Trigger = "refund_all"
	RefundDeclined  Trigger = "refund_declined"
	RefundReturned  Trigger = "refund_returned"
	Drift           Trigger = "drift"
	ResolveCase     Trigger = "resolve"
)

// The types of messages to an app.
const (
	TellIssued              = "payment.vbank.issued"
	TellPaid                = "payment.order.paid"
	TellCanceled            = "payment.order.canceled"
	TellExpired             = "payment.order.expired"
	TellFailed              = "payment.order.failed"
	TellRefunded            = "payment.order.refunded"
	TellRefundDone          = "payment.refund.succeeded"
	TellRefundFailed        = "payment.refund.failed"
	TellReversed            = "payment.deposit.reversed"
	TellAttention           = "payment.order.attention"
	tellNothing             = ""
	nowhere          Status = ""
)

// Transition is a row of the order's state machine.
type Transition struct {
	From    Status
	Trigger Trigger
	To      Status
	// Tells is the type of the message to the app; empty for none.
	Tells string
	// When is the condition, as people read it.
	When string
}

// Transitions are the state machine (SPEC.md 4.4): what is not here does not happen.
func Transitions() []Transition {
	rows := []Transition{
		{nowhere, Create, Ready, tellNothing, "the order is valid"},
		{Ready, Issue, AwaitingDeposit, TellIssued, "the provider has issued an account for the amount"},
		{Ready, Pay, Paid, TellPaid, "the provider, asked, says paid, and the amount is the order's"},
		{Ready, Decline, Failed, TellFailed, "the provider definitely refuses"},
		{Ready, Lapse, Expired, TellExpired, "24 hours old, and the provider knows of no payment"},
		{Ready, Cancel, Canceled, TellCanceled, "given up before anything was paid"},
		{AwaitingDeposit, Pay, Paid, TellPaid, "the provider, asked, says paid, and the amount is the order's"},
		{AwaitingDeposit, Lapse, Expired, TellExpired, "10 minutes past due, and the provider, asked, says not paid"},
		{AwaitingDeposit, Cancel, Canceled, TellCanceled, "given up before anything was paid"},
		{Expired, PayLate, Paid, TellPaid, "deposited in time: only the news was late"},
		{Paid, Reverse, AwaitingDeposit, TellReversed, "the provider takes the deposit back, nothing was refunded, not yet due"},
		{Paid, Reverse, Expired, TellReversed, "the provider takes the deposit back, nothing was refunded, past due"},
		{Paid, RefundAsk, Paid, tellNothing, "1 to the refundable amount: it is reserved"},
		{Paid, RefundPart, Paid, TellRefundDone, "confirmed, and something is left"},
		{Paid, RefundAll, Refunded, TellRefunded, "confirmed, and nothing is left"},
		{Paid, RefundDeclined, Paid, TellRefundFailed, "the provider definitely refuses: the reserve is free again"},
		{Paid, RefundReturned, Paid, TellRefundFailed, "the payout of a refund came back"},
		{Refunded, RefundReturned, Paid, TellRefundFailed, "the payout of a refund came back"},
		{Paid, ReverseTooLate, Paid, TellAttention, "the provider takes the deposit back after a refund"},
	}
	stay := func(t Trigger, tells, when string, states ...Status) {
		for _, s := range states {
			rows = append(rows, Transition{s, t, s, tells, when})
		}
	}
	stay(Mismatch, TellAttention, "another amount than the order's was issued or deposited", Ready, AwaitingDeposit)
	stay(DepositUnused, TellAttention, "a deposit for an order that has ended", Expired, Canceled, Failed)
	stay(DepositTwice, TellAttention, "a second, distinct deposit", Paid, Refunded)
	stay(Drift, TellAttention, "the provider's balance is another one", Paid, Refunded)
	stay(ReturnAsk, tellNothing, "an operator wants a deposit paid back that was not applied", Statuses()...)
	stay(DepositReturned, tellNothing, "a deposit was paid back that was not applied", Statuses()...)
	stay(ReturnFailed, tellNothing, "the provider refuses to pay a deposit back, or its payout came back", Statuses()...)
	stay(ResolveCase, tellNothing, "an operator has looked at it", Statuses()...)
	for _, s := range []Status{Expired, Canceled, Failed} {
		rows = append(rows, Transition{s, DepositApplied, Paid, TellPaid, "an operator applies a late deposit of the order's amount"})
	}
	return rows
}

// Statuses lists the states of an order.
func Statuses() []Status {
	return []Status{Ready, AwaitingDeposit, Paid, Refunded, Canceled, Expired, Failed}
}

// transition finds the row of a step. A pair that is in no row is a defect of the caller's.
func transition(from Status, trigger Trigger, to Status) (Transition, error) {
	rows := Transitions()
	i := slices.IndexFunc(rows, func(t Transition) bool { return t.From == from && t.Trigger == trigger && t.To == to })
	if i < 0 {
		return Transition{}, fmt.Errorf("an order that is %q cannot %s to %q", from, trigger, to)
	}
	return rows[i], nil
}
