package order

import (
	"fmt"
	"slices"

	"hub.internal/services/payments/provider"
)

// An order shows one case, Order.Attention, and may have several: about deposits, which end with the deposits, and those here, which
// an operator alone ends. What is open of the latter, and what an operator has seen already, is in the order's events.

// PastTriggers are those of the events that open and end the cases which an operator ends: what Aggregate.Past has.
func PastTriggers() []Trigger { return []Trigger{ReverseTooLate, BalanceDrifted, AttentionResolved} }

// standing are the cases that an operator has to end still, the newest last: that one is resolved first.
func (a *Aggregate) standing() (open []Attention) {
	for _, e := range slices.Concat(a.Past, a.Events) {
		switch e.Trigger {
		case ReverseTooLate:
			open = append(without(open, ReversedAfterRefund), ReversedAfterRefund)
		case BalanceDrifted:
			open = append(without(open, BalanceDrift), BalanceDrift)
		case AttentionResolved:
			open = open[:max(0, len(open)-1)]
		}
	}
	return open
}

// without is a list of cases without one of them.
func without(open []Attention, why Attention) []Attention {
	return slices.DeleteFunc(open, func(a Attention) bool { return a == why })
}

// standingCase is the newest case that an operator has to end still; empty for none.
func (a *Aggregate) standingCase() Attention {
	if open := a.standing(); len(open) > 0 {
		return open[len(open)-1]
	}
	return ""
}

// openCase opens a case that only an operator ends, with a note of what the provider says. It leaves one that is open as it is, and
// one that was resolved when known tells an event of the same: the provider says the same each night, and is heard when it says
// something new.
func (a *Aggregate) openCase(why Attention, about, note string, known func(Event) bool) error {
	trigger := BalanceDrifted
	if why == ReversedAfterRefund {
		trigger = ReverseTooLate
	}
	switch {
	case a.Order.Attention == why:
		return nil
	case slices.Contains(a.standing(), why):
		if a.Order.Attention == "" { // it was covered, and ended with what covered it, in a process of the release before
			a.Order.Attention = a.standingCase()
		}
		return nil
	case slices.ContainsFunc(slices.Concat(a.Past, a.Events), func(e Event) bool { return e.Trigger == trigger && known(e) }):
		return nil
	}
	err := a.flag(why, trigger, about)
	a.annotate(note)
	return err
}

// driftNote says by how much the provider's balance is another one than Hub's.
func (a *Aggregate) driftNote(s provider.Snapshot) string {
	return fmt.Sprintf("the provider's balance is off by %+d won", s.Balance-a.Order.Refundable())
}
