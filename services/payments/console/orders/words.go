package orders

import (
	"fmt"

	"hub.internal/pkg/web"
	"hub.internal/services/payments"
	"hub.internal/services/payments/order"
)

// won is an amount as people read it.
func won(n any) string {
	text := web.Number(n)
	if text[0] == '-' {
		return "-₩" + text[1:]
	}
	return "₩" + text
}

func statusBadge(s order.Status) web.Badge {
	kind := map[order.Status]string{order.AwaitingDeposit: "info", order.Paid: "good", order.Refunded: "warn",
		order.Failed: "bad"}[s]
	text := map[order.Status]string{order.Ready: "Ready", order.AwaitingDeposit: "Awaiting deposit", order.Paid: "Paid",
		order.Refunded: "Refunded",
		order.Canceled: "Canceled", order.Expired: "Expired", order.Failed: "Failed"}[s]
	if text == "" {
		text = string(s)
	}
	return web.Badge{Kind: kind, Text: text}
}

// reason is what an operator is told of a case.
type reason struct{ name, text string }

var cases = map[order.Attention]reason{
	order.AmountMismatch: {"Other amount",
		"Another amount than the order’s was issued or deposited. Pay a deposit back; the order goes on waiting, or ends by itself."},
	order.LateDeposit: {"Late deposit",
		"Money has come for an order that had ended. Apply the deposit, and the order is paid; or pay it back."},
	order.DuplicateDeposit: {"Second deposit", "The order is paid, and money has come once more. Pay the second deposit back."},
	order.ReversedAfterRefund: {"Reversed after refund", "The provider has taken the deposit back after a refund was made of it. " +
		"Settle it with the provider, and then resolve the case."},
	order.BalanceDrift: {"Balance drift",
		"The provider has another balance than Hub. Compare the refunds here with the provider’s own pages, and then resolve the case. " +
			"While it lasts, the next question to the provider opens it again."},
}

func attentionBadge(a order.Attention) web.Badge {
	name := cases[a].name
	if name == "" {
		name = string(a)
	}
	return web.Badge{Kind: "bad", Text: name}
}

func depositBadge(s order.DepositState) web.Badge {
	switch s {
	case order.DepositStateApplied:
		return web.Badge{Kind: "good", Text: "Applied"}
	case order.DepositStateMismatch:
		return web.Badge{Kind: "bad", Text: "Other amount"}
	case order.DepositStateUnapplied:
		return web.Badge{Kind: "bad", Text: "Not applied"}
	case order.DepositStateReturning:
		return web.Badge{Kind: "warn", Text: "Being paid back"}
	case order.DepositStateReturned:
		return web.Badge{Text: "Paid back"}
	case order.DepositStateReversed:
		return web.Badge{Text: "Taken back by the bank"}
	}
	return web.Badge{Text: string(s)}
}

func refundBadge(s order.RefundStatus) web.Badge {
	switch s {
	case order.RefundSucceeded:
		return web.Badge{Kind: "good", Text: "Done"}
	case order.RefundPending:
		return web.Badge{Kind: "warn", Text: "Under way"}
	case order.RefundFailed:
		return web.Badge{Kind: "bad", Text: "Failed"}
	}
	return web.Badge{Text: string(s)}
}

func noticeBadge(s payments.NotificationState) web.Badge {
	switch s {
	case payments.NotificationDelivered:
		return web.Badge{Kind: "good", Text: "Delivered"}
	case payments.NotificationPending:
		return web.Badge{Kind: "info", Text: "On its way"}
	case payments.NotificationDead:
		return web.Badge{Kind: "bad", Text: "Given up"}
	case payments.NotificationStopped:
		return web.Badge{Kind: "warn", Text: "Stopped by the app"}
	case payments.NotificationSkipped:
		return web.Badge{Text: "Nowhere to go"}
	}
	return web.Badge{Text: string(s)}
}

func outcomeBadge(o payments.WebhookOutcome) web.Badge {
	switch o {
	case payments.WebhookReceived:
		return web.Badge{Kind: "info", Text: "Waits"}
	case payments.WebhookApplied:
		return web.Badge{Kind: "good", Text: "Moved the order"}
	case payments.WebhookIgnored:
		return web.Badge{Text: "Nothing new"}
	case payments.WebhookUnmatched:
		return web.Badge{Kind: "warn", Text: "No such order yet"}
	case payments.WebhookAbandoned:
		return web.Badge{Kind: "bad", Text: "No such order"}
	}
	return web.Badge{Text: string(o)}
}

var triggers = map[order.Trigger]string{
	order.Create: "Created", order.Issue: "A virtual account was issued",
	order.Pay: "Paid", order.PayLate: "Paid in time, the news was late", order.Decline: "The provider refuses the order",
	order.Lapse: "Its time is over", order.Cancel: "Given up before it was paid", order.Mismatch: "Another amount than the order’s",
	order.DepositUnused: "A deposit after the order had ended", order.DepositTwice: "A second deposit",
	order.DepositApplied: "A late deposit was applied", order.DepositReturnRequested: "The provider is asked to pay a deposit back",
	order.DepositReturned: "A deposit was paid back", order.DepositReturnFailed: "A deposit was not paid back",
	order.Reverse: "The deposit was taken back", order.ReverseTooLate: "The deposit was taken back after a refund",
	order.RefundRequested: "A refund was asked for", order.RefundPart: "A part was refunded", order.RefundAll: "All was refunded",
	order.RefundDeclined: "The provider refuses a refund", order.RefundReturned: "The payout of a refund came back",
	order.BalanceDrifted: "The provider has another balance", order.AttentionResolved: "The case was resolved",
}

// happened is an event in words.
func happened(t order.Trigger) string {
	if text := triggers[t]; text != "" {
		return text
	}
	return fmt.Sprint(t)
}
