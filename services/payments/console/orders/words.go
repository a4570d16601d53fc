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

// badgeOf finds the badge of a state. A state of a later release, which the table does not have, is shown as it is.
func badgeOf[S ~string](badges map[S]web.Badge, state S) web.Badge {
	if badge, known := badges[state]; known {
		return badge
	}
	return web.Badge{Text: string(state)}
}

// statusBadge is the badge of an order's status.
func statusBadge(s order.Status) web.Badge { return badgeOf(statusBadges, s) }

// statusBadges has the words and the colour of each status.
var statusBadges = map[order.Status]web.Badge{
	order.Ready: {Text: "Ready"}, order.AwaitingDeposit: {Kind: "info", Text: "Awaiting deposit"},
	order.Paid: {Kind: "good", Text: "Paid"}, order.Refunded: {Kind: "warn", Text: "Refunded"},
	order.Canceled: {Text: "Canceled"}, order.Expired: {Text: "Expired"}, order.Failed: {Kind: "bad", Text: "Failed"},
}

// reason is what an operator is told of a case.
type reason struct{ name, text string }

// cases tells an operator for each reason of attention what has happened and what to do.
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

// attentionBadge names a case. All of them are bad news.
func attentionBadge(a order.Attention) web.Badge {
	name := cases[a].name
	if name == "" {
		name = string(a)
	}
	return web.Badge{Kind: "bad", Text: name}
}

// depositBadge is the badge of a deposit's state.
func depositBadge(s order.DepositState) web.Badge { return badgeOf(depositBadges, s) }

// depositBadges has the words for each state of a deposit.
var depositBadges = map[order.DepositState]web.Badge{
	order.DepositStateApplied:   {Kind: "good", Text: "Applied"},
	order.DepositStateMismatch:  {Kind: "bad", Text: "Other amount"},
	order.DepositStateUnapplied: {Kind: "bad", Text: "Not applied"},
	order.DepositStateReturning: {Kind: "warn", Text: "Being paid back"},
	order.DepositStateReturned:  {Text: "Paid back"},
	order.DepositStateReversed:  {Text: "Taken back by the bank"},
}

// refundBadge is the badge of a refund's state.
func refundBadge(s order.RefundStatus) web.Badge { return badgeOf(refundBadges, s) }

// refundBadges has the words for each state of a refund.
var refundBadges = map[order.RefundStatus]web.Badge{
	order.RefundSucceeded: {Kind: "good", Text: "Done"},
	order.RefundPending:   {Kind: "warn", Text: "Under way"},
	order.RefundFailed:    {Kind: "bad", Text: "Failed"},
}

// noticeBadge is the badge of a notification's state.
func noticeBadge(s payments.NotificationState) web.Badge { return badgeOf(notificationBadges, s) }

// notificationBadges has the words for each state of a notification.
var notificationBadges = map[payments.NotificationState]web.Badge{
	payments.NotificationDelivered: {Kind: "good", Text: "Delivered"},
	payments.NotificationPending:   {Kind: "info", Text: "On its way"},
	payments.NotificationDead:      {Kind: "bad", Text: "Given up"},
	payments.NotificationStopped:   {Kind: "warn", Text: "Stopped by the app"},
	payments.NotificationSkipped:   {Text: "Nowhere to go"},
}

// outcomeBadge is the badge of what became of a webhook.
func outcomeBadge(o payments.WebhookOutcome) web.Badge { return badgeOf(outcomeBadges, o) }

// outcomeBadges has the words for what became of a webhook.
var outcomeBadges = map[payments.WebhookOutcome]web.Badge{
	payments.WebhookReceived:  {Kind: "info", Text: "Waits"},
	payments.WebhookApplied:   {Kind: "good", Text: "Moved the order"},
	payments.WebhookIgnored:   {Text: "Nothing new"},
	payments.WebhookUnmatched: {Kind: "warn", Text: "No such order yet"},
	payments.WebhookAbandoned: {Kind: "bad", Text: "No such order"},
}

// triggers tells each event of the history in words.
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
