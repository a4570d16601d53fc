// Package order is the aggregate of an order: the order with its refunds and its deposits, the state machine as a table, and
// the rules that say what an answer of the provider, a wish of an app or a decision of an operator does to it.
//
// An Aggregate is read under the lock of its row. A method of it changes it in memory and records events; the store then
// writes what has changed, the events, the notifications and the jobs in one transaction (the transactional outbox). No
// method reads a clock, a store or a provider: Now is set by whoever has locked the order, so that the same calls give the
// same events, and tests need no server.
//
// Money has one invariant: what was deposited is applied to the order, held for an operator, on its way back, back with its
// payer, or reversed by the bank. What was paid is refunded, reserved for a refund, or refundable. TestAggregateStaysSound
// holds random histories to it.
package order

import (
	"fmt"
	"time"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/schema"
	"hub.internal/services/payments/credentials"
	"hub.internal/services/payments/provider"
)

// Status is the state of an order's record. Transitions has the moves between them.
type Status string

// The states of an order. Ready has been made and waits for its payer. AwaitingDeposit has a virtual account. Paid has been
// paid in full; refunds are possible in Paid alone, so a partly refunded order stays there. The other four are ends, but an
// end is not for ever: money that comes late can still pay an Expired order, and an operator can apply it to any that
// ended unpaid.
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

// Attention is why an order needs an operator; empty for most. It stands beside the status and never blocks a transition:
// what the provider says goes on being applied.
type Attention string

// The reasons. The provider's word alone settles none of them.
const (
	// AmountMismatch: another amount than the order's was issued or deposited. Hub applies no part of a price.
	AmountMismatch Attention = "AMOUNT_MISMATCH"
	// LateDeposit: money has come for an order that had ended.
	LateDeposit Attention = "LATE_DEPOSIT"
	// DuplicateDeposit: money has come once more for an order that is paid.
	DuplicateDeposit Attention = "DUPLICATE_DEPOSIT"
	// ReversedAfterRefund: the bank has taken a deposit back of which a part was refunded already.
	ReversedAfterRefund Attention = "REVERSED_AFTER_REFUND"
	// BalanceDrift: the provider's balance is not what Hub's refunds leave.
	BalanceDrift Attention = "BALANCE_DRIFT"
)

// Order is the record of an order: the row that is locked for every change, and what lists and answers show. Amounts are whole
// won, and none of them is ever negative.
type Order struct {
	ID   schema.ID
	Code string
	// ServiceCode is the app, ExternalUserID its user, HubUser the account linked to that one.
	ServiceCode, ExternalUserID, HubUser string

	Env          credentials.Env
	Provider     string
	CredentialID schema.ID
	// TID is the provider's id of the payment.
	TID string

	Status Status
	// Version counts the transitions; it is the seq of their events and messages.
	Version int64
	Amounts
	// PaidAmount was deposited, RefundedAmount paid back, PendingRefund is reserved for refunds under way.
	PaidAmount, RefundedAmount, PendingRefund int64

	PayMethod     provider.PayMethod
	ClientOrderID string
	Name          string
	NotifyURL     string
	ReturnURL     string
	ValidHours    int
	Holder        string
	Buyer         provider.Buyer
	Metadata      map[string]string
	CheckoutURL   string
	Account       *provider.VirtualAccount
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

// SchemaTitle implements schema.Titled.
func (Failure) SchemaTitle() string { return "PaymentFailure" }

// Unchanged tells whether nothing was done to the order since other.
func (o Order) Unchanged(other Order) bool {
	return o.Version == other.Version && o.TID == other.TID && o.CheckoutURL == other.CheckoutURL && o.Attention == other.Attention
}

// Refundable is what can be paid back still, in won. A pending refund has reserved its amount, so that two refunds at once
// cannot both be promised the same money.
func (o Order) Refundable() int64 { return o.PaidAmount - o.RefundedAmount - o.PendingRefund }

// MaxAmount is the most that an order can cost, in won. It is a guard against a slip of the keyboard, not a limit of the provider.
const MaxAmount = 100_000_000

// Amounts are the price of an order, in won: Amount is Supply and VAT. For example 11,000 alone is 10,000 and a tax of 1,000;
// a supply amount of 10,000 without a tax is 10,000 and tax free.
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

// outOfRange is the message of RuleRange.
var outOfRange = fmt.Sprintf("the total must be between 1 and %d won", MaxAmount)

// badAmount is BAD_AMOUNT with the rule that is broken, for programs, and a sentence for people.
func badAmount(rule, message string) error {
	return fault.New(fault.BadAmount, "The price does not hold: %s.", message).
		With(map[string]string{"code": string(fault.BadAmount), "rule": rule})
}
