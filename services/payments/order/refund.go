package order

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"hub.internal/pkg/fault"
	"hub.internal/services/payments/provider"
)

// RefundStatus is the state of a refund.
type RefundStatus string

// The states of a refund. A succeeded one fails when its payout comes back.
const (
	RefundPending   RefundStatus = "PENDING"
	RefundSucceeded RefundStatus = "SUCCEEDED"
	RefundFailed    RefundStatus = "FAILED"
)

// RefundPrefix begins the code of each refund, and of each deposit that is paid back.
const RefundPrefix = "rf_"

// Who asked for a refund.
const (
	SourceAPI      = "api"
	SourceProvider = "provider"
)

// Refund is money that is paid back. It is stored as pending, with its amount reserved, before the provider hears of it: so a
// refund that was made is never one that Hub does not know.
type Refund struct {
	Code   string
	Amount int64
	Status RefundStatus
	// Source is api, or provider for one that was made in the provider's own console.
	Source string
	// TID is the provider's id of the cancellation.
	TID    string
	Reason string
	// Account is where the money goes, sealed; Masked is what is shown of it.
	Account []byte
	Masked  *provider.RefundAccount
	Failure *Failure

	CreatedAt time.Time
	SettledAt *time.Time
}

// The details.code of conflicts about an order.
const (
	CodeNotRefundable    = "ORDER_NOT_REFUNDABLE"
	CodeExceedsBalance   = "REFUND_EXCEEDS_BALANCE"
	CodeTooManyRefunds   = "TOO_MANY_REFUNDS"
	CodeAmountMismatch   = "AMOUNT_MISMATCH"
	CodeNotCancelable    = "ORDER_NOT_CANCELABLE"
	CodeProviderDeclined = "PROVIDER_DECLINED"
	CodeRefundNotKnown   = "REFUND_NOT_KNOWN"
	CodeClientOrderTaken = "CLIENT_ORDER_ID_TAKEN"
	CodeClientOrderEnv   = "CLIENT_ORDER_ID_OTHER_ENV"
	CodeKeyReused        = "IDEMPOTENCY_KEY_CONFLICT"
	CodeInProgress       = fault.RequestInProgress
	codeOrderChanged     = "ORDER_CHANGED"
	codeDepositNotOpen   = "DEPOSIT_NOT_OPEN"
	CodeSamePayment      = "DEPOSIT_OF_APPLIED_PAYMENT"
	CodeDepositGone      = "DEPOSIT_GONE"
	codeOpenDeposits     = "DEPOSITS_OPEN"
	codeNoAttention      = "NO_CASE"
)

// Conflict is E_CONFLICT with details.code, by which a program tells one conflict from another, and more details.
func Conflict(code, message string, details map[string]any) error {
	all := map[string]any{"code": code}
	for name, value := range details {
		all[name] = value
	}
	return fault.New(fault.Conflict, "%s", message).With(all)
}

// ConflictCode is details.code of an E_CONFLICT; empty for any other error.
func ConflictCode(err error) string {
	switch details := fault.From(err).Details.(type) {
	case map[string]any:
		code, _ := details["code"].(string)
		return code
	case map[string]string:
		return details["code"]
	}
	return ""
}

// RefundRequest is the wish for a refund. A nil Amount is all that can be paid back.
type RefundRequest struct {
	Code    string
	Amount  *int64
	Reason  string
	Account []byte
	Masked  *provider.RefundAccount
	// ExpectedRefundable is what the caller takes the refundable amount for, if it says so.
	ExpectedRefundable *int64
}

// MaxRefunds is how many refunds of an order can be asked for, those that failed among them: each answer has all of them, and is kept
// with its key. One that is made at the provider is kept however many there are.
const MaxRefunds = 200

// RequestRefund reserves the amount of a refund that is then asked of the provider. In this order it returns E_CONFLICT with
// ORDER_NOT_REFUNDABLE, TOO_MANY_REFUNDS, AMOUNT_MISMATCH, REFUND_NOT_KNOWN or REFUND_EXCEEDS_BALANCE.
func (a *Aggregate) RequestRefund(in RefundRequest) (Refund, error) {
	o := &a.Order
	left := o.Refundable()
	if o.Status != Paid {
		return Refund{}, Conflict(CodeNotRefundable, "The order "+o.Code+" is "+string(o.Status)+"; only a PAID one can be refunded.",
			map[string]any{"status": o.Status})
	}
	if len(a.Refunds) >= MaxRefunds {
		return Refund{}, Conflict(CodeTooManyRefunds, fmt.Sprintf("The order %s has %d refunds, and takes no more. "+
			"What is left can be paid back at the provider.", o.Code, len(a.Refunds)), map[string]any{"refunds": len(a.Refunds)})
	}
	if in.ExpectedRefundable != nil && *in.ExpectedRefundable != left {
		return Refund{}, Conflict(CodeAmountMismatch, "What can be refunded is not what expectedRefundable says. Look at the order again.",
			map[string]any{"expected": *in.ExpectedRefundable, "refundable": left})
	}
	if code, lost := a.takenOver(); lost != nil && in.ExpectedRefundable == nil {
		return Refund{}, Conflict(CodeRefundNotKnown, RefundNotKnown(code, lost.Amount), nil)
	}
	amount := left
	if in.Amount != nil {
		amount = *in.Amount
	}
	if amount > left || left == 0 || amount < 1 {
		return Refund{}, Conflict(CodeExceedsBalance, "The refund is more than what can be refunded of the order.",
			map[string]any{"requested": amount, "refundable": left})
	}
	r := Refund{Code: in.Code, Amount: amount, Status: RefundPending, Source: SourceAPI, Reason: in.Reason, Account: in.Account,
		Masked: in.Masked, CreatedAt: a.Now}
	o.PendingRefund += amount
	a.Refunds = append(a.Refunds, r)
	return r, a.record(RefundRequested, Paid, r.Code)
}

// Refund finds a refund by its code; nil when the order has none.
func (a *Aggregate) Refund(code string) *Refund {
	i := slices.IndexFunc(a.Refunds, func(r Refund) bool { return r.Code == code })
	if i < 0 || code == "" {
		return nil
	}
	return &a.Refunds[i]
}

// settleRefund settles a refund that the provider confirms. It frees the reserve of a pending one.
func (a *Aggregate) settleRefund(r *Refund, tid string) error {
	o := &a.Order
	if r.Status == RefundPending {
		o.PendingRefund -= r.Amount
	}
	o.RefundedAmount += r.Amount
	r.Status, r.TID, r.Failure, r.SettledAt = RefundSucceeded, tid, nil, new(a.Now)
	if o.RefundedAmount == o.PaidAmount {
		return a.record(RefundAll, Refunded, r.Code)
	}
	return a.record(RefundPart, Paid, r.Code)
}

// DeclineRefund ends a pending refund that the provider definitely refuses; any other stays as it is. With drift the
// provider's balance is not what Hub takes it for, and the order needs an operator.
func (a *Aggregate) DeclineRefund(code string, why Failure, drift bool) error {
	if r := a.Refund(code); r != nil && r.Status == RefundPending {
		a.Order.PendingRefund -= r.Amount
		r.Status, r.Failure, r.SettledAt = RefundFailed, &why, new(a.Now)
		if err := a.record(RefundDeclined, Paid, r.Code); err != nil {
			return err
		}
	}
	if drift && (a.Order.Status == Paid || a.Order.Status == Refunded) {
		return a.openCase(BalanceDrift, code, "", func(e Event) bool { return e.Subject == code })
	}
	return nil
}

// refundCameBack undoes a refund whose payout came back.
func (a *Aggregate) refundCameBack(r *Refund) error {
	a.Order.RefundedAmount -= r.Amount
	r.Status, r.Failure, r.SettledAt = RefundFailed, &Failure{"RETURNED", "the payout came back"}, new(a.Now)
	return a.record(RefundReturned, Paid, r.Code)
}

// PendingRefunds are those whose outcome is not known yet. The job of the order asks the provider about each of them.
func (a *Aggregate) PendingRefunds() []Refund {
	return slices.DeleteFunc(slices.Clone(a.Refunds), func(r Refund) bool { return r.Status != RefundPending })
}

// providerRefundCode names a refund that was made at the provider: the same one for the same cancellation, so that a repeated snapshot
// adds no second refund.
func providerRefundCode(tid string) string {
	sum := sha256.Sum256([]byte(tid))
	return RefundPrefix + strings.ToUpper(hex.EncodeToString(sum[:13]))
}

// ownCode finds the code of a refund of Hub's in a reason, where the provider keeps it.
var ownCode = regexp.MustCompile(`\[(` + RefundPrefix + `[0-9A-Z]{26})\]`)

// LostRefund finds what the provider has paid back under a code of Hub's that the order does not know: the store was restored to a moment
// before that refund, and its key is lost too. nil without one, and while the provider tells of the refund that is asked for.
func (a *Aggregate) LostRefund(s provider.Snapshot, asked string) (lost *provider.Cancellation) {
	for i, c := range s.Cancellations {
		known := a.depositByReturnCode(c.RefundCode) != nil ||
			slices.ContainsFunc(a.Refunds, func(r Refund) bool { return r.Code == c.RefundCode || r.TID == c.TID && c.TID != "" })
		switch {
		case c.RefundCode == asked:
			return nil
		case lost == nil && !known && !c.Returned && strings.HasPrefix(c.RefundCode, RefundPrefix):
			lost = &s.Cancellations[i]
		}
	}
	return lost
}

// takenOver finds what LostRefund has found once it is a refund of the order. Whether a call asks for it again or for one more, nobody can
// tell but the caller, who states what can be refunded with it in mind.
func (a *Aggregate) takenOver() (code string, lost *Refund) {
	for i, r := range a.Refunds {
		if r.Source != SourceProvider || r.Status != RefundSucceeded {
			continue
		}
		if found := ownCode.FindStringSubmatch(r.Reason); found != nil && a.Refund(found[1]) == nil {
			return found[1], &a.Refunds[i]
		}
	}
	return "", nil
}

// RefundNotKnown is what is said of a refund that was lost.
func RefundNotKnown(code string, amount int64) string {
	return fmt.Sprintf("The provider has paid %d back as Hub's refund %s, which Hub has lost by a restore; nothing was done now. "+
		"The order shows it as the provider's. It may be the one that you ask for: compare. For one more, state expectedRefundable.",
		amount, code)
}

// CheckVersion returns E_CONFLICT with ORDER_CHANGED unless the order is as somebody has seen it.
func (a *Aggregate) CheckVersion(version int64) error {
	if a.Order.Version == version {
		return nil
	}
	return Conflict(codeOrderChanged, "The order has changed since you looked at it, and nothing was done. Look again.",
		map[string]any{"version": a.Order.Version})
}
