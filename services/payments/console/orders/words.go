package orders

import (
	"fmt"

	"hub.internal/pkg/web"
	"hub.internal/services/payments"
)

// won is an amount as people read it.
func won(n any) string {
	text := web.Number(n)
	if text[0] == '-' {
		return "-₩" + text[1:]
	}
	return "₩" + text
}

func statusBadge(s payments.Status) web.Badge {
	kind := map[payments.Status]string{payments.AwaitingDeposit: "info", payments.Paid: "good", payments.Refunded: "warn",
		payments.Failed: "bad"}[s]
	text := map[payments.Status]string{payments.Ready: "Ready", payments.AwaitingDeposit: "Awaiting deposit", payments.Paid: "Paid",
		payments.Refunded: "Refunded",
		payments.Canceled: "Canceled", payments.Expired: "Expired", payments.Failed: "Failed"}[s]
	if text == "" {
		text = string(s)
	}
	return web.Badge{Kind: kind, Text: text}
}

// reason is what an operator is told of a case.
type reason struct{ name, text string }

var cases = map[payments.Attention]reason{
	payments.AmountMismatch: {"Other amount",
		"Another amount than the order’s was issued or deposited. Pay a deposit back; the order goes on waiting, or ends by itself."},
	payments.LateDeposit: {"Late deposit",
		"Money has come for an order that had ended. Apply the deposit, and the order is paid; or pay it back."},
	payments.DuplicateDeposit: {"Second deposit", "The order is paid, and money has come once more. Pay the second deposit back."},
	payments.ReversedAfterRefund: {"Reversed after refund", "The provider has taken the deposit back after a refund was made of it. " +
		"Settle it with the provider, and then resolve the case."},
	payments.BalanceDrift: {"Balance drift",
		"The provider has another balance than Hub. Compare the refunds here with the provider’s own pages, and then resolve the case. " +
			"While it lasts, the next question to the provider opens it again."},
}

func attentionBadge(a payments.Attention) web.Badge {
	name := cases[a].name
	if name == "" {
		name = string(a)
	}
	return web.Badge{Kind: "bad", Text: name}
}

func depositBadge(s payments.DepositState) web.Badge {
	switch s {
	case payments.DepositIsApplied:
		return web.Badge{Kind: "good", Text: "Applied"}
	case payments.DepositIsMismatch:
		return web.Badge{Kind: "bad", Text: "Other amount"}
	case payments.DepositIsUnapplied:
		return web.Badge{Kind: "bad", Text: "Not applied"}
	case payments.DepositIsReturning:
		return web.Badge{Kind: "warn", Text: "Being paid back"}
	case payments.DepositIsReturned:
		return web.Badge{Text: "Paid back"}
	case payments.DepositIsReversed:
		return web.Badge{Text: "Taken back by the bank"}
	}
	return web.Badge{Text: string(s)}
}

func refundBadge(s payments.RefundStatus) web.Badge {
	switch s {
	case payments.RefundSucceeded:
		return web.Badge{Kind: "good", Text: "Done"}
	case payments.RefundPending:
		return web.Badge{Kind: "warn", Text: "Under way"}
	case payments.RefundFailed:
		return web.Badge{Kind: "bad", Text: "Failed"}
	}
	return web.Badge{Text: string(s)}
}

func noticeBadge(s payments.NoticeState) web.Badge {
	switch s {
	case payments.NoticeDelivered:
		return web.Badge{Kind: "good", Text: "Delivered"}
	case payments.NoticePending:
		return web.Badge{Kind: "info", Text: "On its way"}
	case payments.NoticeDead:
		return web.Badge{Kind: "bad", Text: "Given up"}
	case payments.NoticeStopped:
		return web.Badge{Kind: "warn", Text: "Stopped by the app"}
	case payments.NoticeSkipped:
		return web.Badge{Text: "Nowhere to go"}
	}
	return web.Badge{Text: string(s)}
}

func outcomeBadge(o payments.Outcome) web.Badge {
	switch o {
	case payments.Received:
		return web.Badge{Kind: "info", Text: "Waits"}
	case payments.Applied:
		return web.Badge{Kind: "good", Text: "Moved the order"}
	case payments.Ignored:
		return web.Badge{Text: "Nothing new"}
	case payments.Unmatched:
		return web.Badge{Kind: "warn", Text: "No such order yet"}
	case payments.Abandoned:
		return web.Badge{Kind: "bad", Text: "No such order"}
	}
	return web.Badge{Text: string(o)}
}

var triggers = map[payments.Trigger]string{
	payments.Create: "Created", payments.Issue: "A virtual account was issued",
	payments.Pay: "Paid", payments.PayLate: "Paid in time, the news was late", payments.Decline: "The provider refuses the order",
	payments.Lapse: "Its time is over", payments.Cancel: "Given up before it was paid", payments.Mismatch: "Another amount than the order’s",
	payments.DepositUnused: "A deposit after the order had ended", payments.DepositTwice: "A second deposit",
	payments.DepositApplied: "A late deposit was applied", payments.ReturnAsk: "The provider is asked to pay a deposit back",
	payments.DepositReturned: "A deposit was paid back", payments.ReturnFailed: "A deposit was not paid back",
	payments.Reverse: "The deposit was taken back", payments.ReverseTooLate: "The deposit was taken back after a refund",
	payments.RefundAsk: "A refund was asked for", payments.RefundPart: "A part was refunded", payments.RefundAll: "All was refunded",
	payments.RefundDeclined: "The provider refuses a refund", payments.RefundReturned: "The payout of a refund came back",
	payments.Drift: "The provider has another balance", payments.ResolveCase: "The case was resolved",
}

// happened is an event in words.
func happened(t payments.Trigger) string {
	if text := triggers[t]; text != "" {
		return text
	}
	return fmt.Sprint(t)
}
