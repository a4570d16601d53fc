package payments

import (
	"fmt"

	"hub.internal/pkg/fault"
)

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

// ResolveAmount makes the price of an order of what its caller has stated (payments.md 2.3): a tax that was not stated is
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
