package order_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"hub.internal/pkg/fault"
	"hub.internal/services/payments/order"
)

// TestPrices holds ResolveAmount to each row of SPEC.md 5.1, and to its bounds.
func TestPrices(t *testing.T) {
	t.Parallel()
	n := func(v int64) *int64 { return &v }
	for name, row := range map[string]struct {
		amount, supply, vat *int64
		want                order.Amounts
		rule                string
	}{
		"nothing":                   {rule: order.RuleMissing},
		"vat alone":                 {vat: n(1), rule: order.RuleMissing},
		"amount and supply":         {amount: n(100), supply: n(100), want: order.Amounts{Amount: 100, Supply: 100, TaxFree: true}},
		"amount and another supply": {amount: n(101), supply: n(100), rule: order.RuleSum},
		"all three": {amount: n(11000), supply: n(10000), vat: n(1000),
			want: order.Amounts{Amount: 11000, Supply: 10000, VAT: 1000}},
		"all three, not adding up":     {amount: n(11000), supply: n(10000), vat: n(999), rule: order.RuleSum},
		"amount and vat":               {amount: n(11000), vat: n(1000), want: order.Amounts{Amount: 11000, Supply: 10000, VAT: 1000}},
		"amount and a vat of 0":        {amount: n(11000), vat: n(0), want: order.Amounts{Amount: 11000, Supply: 11000}},
		"vat is all of amount":         {amount: n(5), vat: n(5), want: order.Amounts{Amount: 5, VAT: 5}},
		"more vat than amount":         {amount: n(10), vat: n(11), rule: order.RuleSum},
		"supply alone":                 {supply: n(10000), want: order.Amounts{Amount: 10000, Supply: 10000, TaxFree: true}},
		"supply and vat":               {supply: n(10000), vat: n(1000), want: order.Amounts{Amount: 11000, Supply: 10000, VAT: 1000}},
		"supply and a vat of 0":        {supply: n(10000), vat: n(0), want: order.Amounts{Amount: 10000, Supply: 10000, TaxFree: true}},
		"amount alone":                 {amount: n(11000), want: order.Amounts{Amount: 11000, Supply: 10000, VAT: 1000}},
		"amount alone, rounded down":   {amount: n(10999), want: order.Amounts{Amount: 10999, Supply: 10000, VAT: 999}},
		"the least":                    {amount: n(1), want: order.Amounts{Amount: 1, Supply: 1}},
		"the most":                     {amount: n(100_000_000), want: order.Amounts{Amount: 100_000_000, Supply: 90_909_091, VAT: 9_090_909}},
		"one more than the most":       {amount: n(100_000_001), rule: order.RuleRange},
		"nothing to pay":               {amount: n(0), rule: order.RuleRange},
		"a supply of nothing":          {supply: n(0), rule: order.RuleRange},
		"a supply of nothing, and vat": {supply: n(0), vat: n(1), want: order.Amounts{Amount: 1, VAT: 1}},
		"the sum is one too many":      {supply: n(99_999_999), vat: n(2), rule: order.RuleRange},
		"the sum is the most": {supply: n(99_999_999), vat: n(1),
			want: order.Amounts{Amount: 100_000_000, Supply: 99_999_999, VAT: 1}},
		"a sum that wraps around":        {supply: n(math.MaxInt64), vat: n(math.MaxInt64), rule: order.RuleRange},
		"a sum that wraps to the amount": {amount: n(0), supply: n(math.MaxInt64), vat: n(1), rule: order.RuleRange},
		"2^63-1":                         {amount: n(math.MaxInt64), rule: order.RuleRange},
		"-1":                             {amount: n(-1), rule: order.RuleNegative},
		"the least of all":               {amount: n(math.MinInt64), rule: order.RuleNegative},
		"a negative supply":              {supply: n(-1), rule: order.RuleNegative},
		"a negative vat":                 {amount: n(10), vat: n(-1), rule: order.RuleNegative},
		"vat that makes up for supply":   {amount: n(10), supply: n(11), vat: n(-1), rule: order.RuleNegative},
		"a negative vat alone":           {vat: n(-1), rule: order.RuleNegative},
	} {
		got, err := order.ResolveAmount(row.amount, row.supply, row.vat)
		if row.rule == "" {
			if err != nil || got != row.want {
				t.Errorf("%s: %+v, %v", name, got, err)
			}
			continue
		}
		f := fault.From(err)
		if f.Code != fault.BadAmount || fmt.Sprint(f.Details) != fmt.Sprint(map[string]string{"code": "BAD_AMOUNT", "rule": row.rule}) {
			t.Errorf("%s: %+v, %v, want rule %s", name, got, err, row.rule)
		}
	}
}

// TestMachineIsClosed: what is not in the table of SPEC.md 4.4 does not happen, and what an ended order can still become is
// in it by intent.
func TestMachineIsClosed(t *testing.T) {
	t.Parallel()
	type step struct {
		from    order.Status
		trigger order.Trigger
		to      order.Status
	}
	known := map[step]bool{}
	var triggers []order.Trigger
	for _, row := range order.Transitions() {
		s := step{row.From, row.Trigger, row.To}
		if known[s] {
			t.Errorf("%v is there twice", s)
		}
		known[s] = true
		if !slices.Contains(triggers, row.Trigger) {
			triggers = append(triggers, row.Trigger)
		}
		if row.Condition == "" {
			t.Errorf("%v does not say when", s)
		}
	}
	refused := 0
	for _, from := range append(order.Statuses(), "") {
		for _, trigger := range triggers {
			for _, to := range append(order.Statuses(), "") {
				_, err := order.TransitionOf(from, trigger, to)
				if (err == nil) != known[step{from, trigger, to}] {
					t.Errorf("%q %s %q: %v", from, trigger, to, err)
				}
				if err != nil {
					refused++
				}
			}
		}
	}
	if refused < 1000 {
		t.Errorf("%d steps were refused", refused)
	}
	// Money makes an order PAID from these alone, and a refund is asked for in PAID alone (SPEC.md 11, row 15).
	var paid, asked []order.Status
	for s := range known {
		if s.to == order.Paid && s.from != order.Paid && s.from != order.Refunded && s.trigger != order.DepositApplied {
			paid = append(paid, s.from)
		}
		if s.trigger == order.RefundRequested {
			asked = append(asked, s.from)
		}
	}
	slices.Sort(paid)
	if !slices.Equal(paid, []order.Status{order.AwaitingDeposit, order.Expired, order.Ready}) ||
		!slices.Equal(asked, []order.Status{order.Paid}) {
		t.Errorf("paid from %v, refunds asked for in %v", paid, asked)
	}
}
