package orders

import (
	"context"
	"fmt"

	"hub.internal/pkg/web"
	"hub.internal/pkg/web/i18n"
	"hub.internal/services/payments"
	"hub.internal/services/payments/credentials"
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

// said is the text of a badge in the language of who is answered.
func said(ctx context.Context, b web.Badge) string { return i18n.From(ctx).Text(b.Text) }

// statusBadge is the badge of an order's status.
func statusBadge(s order.Status) web.Badge { return badgeOf(statusBadges, s) }

// statusBadges has the words and the colour of each status.
var statusBadges = map[order.Status]web.Badge{
	order.Ready: {Text: i18n.N("Ready")}, order.AwaitingDeposit: {Kind: "info", Text: i18n.N("Awaiting deposit")},
	order.Paid: {Kind: "good", Text: i18n.N("Paid")}, order.Refunded: {Kind: "warn", Text: i18n.N("Refunded")},
	order.Canceled: {Text: i18n.N("Canceled")}, order.Expired: {Text: i18n.N("Expired")}, order.Failed: {Kind: "bad", Text: i18n.N("Failed")},
}

// envBadge is the badge of an environment.
func envBadge(e credentials.Env) web.Badge { return badgeOf(envBadges, e) }

// envBadges has the words for each environment.
var envBadges = map[credentials.Env]web.Badge{
	credentials.Production: {Kind: "info", Text: i18n.N("Production")}, credentials.Sandbox: {Text: i18n.N("Sandbox")},
}

// reason is what an operator is told of a case.
type reason struct{ name, text string }

// cases tells an operator for each reason of attention what has happened and what to do.
var cases = map[order.Attention]reason{
	order.AmountMismatch: {i18n.N("Other amount"),
		i18n.N("Another amount than the order’s was issued or deposited. Pay a deposit back; the order goes on waiting, or ends by itself.")},
	order.LateDeposit: {i18n.N("Late deposit"),
		i18n.N("Money has come for an order that had ended. Apply the deposit, and the order is paid; or pay it back.")},
	order.DuplicateDeposit: {i18n.N("Second deposit"),
		i18n.N("The order is paid, and money has come once more. Pay the second deposit back.")},
	order.ReversedAfterRefund: {i18n.N("Reversed after refund"),
		i18n.N("The provider has taken the deposit back after a refund was made of it. " +
			"Settle it with the provider, and then resolve the case.")},
	order.BalanceDrift: {i18n.N("Balance drift"),
		i18n.N("The provider has another balance than Hub. Compare the refunds here with the provider’s own pages, and then resolve the case. " +
			"It shows again when the provider says something new.")},
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
	order.DepositStateApplied:   {Kind: "good", Text: i18n.N("Applied")},
	order.DepositStateMismatch:  {Kind: "bad", Text: i18n.N("Other amount")},
	order.DepositStateUnapplied: {Kind: "bad", Text: i18n.N("Not applied")},
	order.DepositStateReturning: {Kind: "warn", Text: i18n.N("Being paid back")},
	order.DepositStateReturned:  {Text: i18n.N("Paid back")},
	order.DepositStateReversed:  {Text: i18n.N("Taken back by the bank")},
}

// refundBadge is the badge of a refund's state.
func refundBadge(s order.RefundStatus) web.Badge { return badgeOf(refundBadges, s) }

// refundBadges has the words for each state of a refund.
var refundBadges = map[order.RefundStatus]web.Badge{
	order.RefundSucceeded: {Kind: "good", Text: i18n.N("Done")},
	order.RefundPending:   {Kind: "warn", Text: i18n.N("Under way")},
	order.RefundFailed:    {Kind: "bad", Text: i18n.N("Failed")},
}

// noticeBadge is the badge of a notification's state.
func noticeBadge(s payments.NotificationState) web.Badge { return badgeOf(notificationBadges, s) }

// notificationBadges has the words for each state of a notification.
var notificationBadges = map[payments.NotificationState]web.Badge{
	payments.NotificationDelivered: {Kind: "good", Text: i18n.N("Delivered")},
	payments.NotificationPending:   {Kind: "info", Text: i18n.N("On its way")},
	payments.NotificationDead:      {Kind: "bad", Text: i18n.N("Given up")},
	payments.NotificationStopped:   {Kind: "warn", Text: i18n.N("Stopped by the app")},
	payments.NotificationSkipped:   {Text: i18n.N("Nowhere to go")},
}

// outcomeBadge is the badge of what became of a webhook.
func outcomeBadge(o payments.WebhookOutcome) web.Badge { return badgeOf(outcomeBadges, o) }

// outcomeBadges has the words for what became of a webhook.
var outcomeBadges = map[payments.WebhookOutcome]web.Badge{
	payments.WebhookReceived:  {Kind: "info", Text: i18n.N("Waits")},
	payments.WebhookApplied:   {Kind: "good", Text: i18n.N("Moved the order")},
	payments.WebhookIgnored:   {Text: i18n.N("Nothing new")},
	payments.WebhookUnmatched: {Kind: "warn", Text: i18n.N("No such order yet")},
	payments.WebhookAbandoned: {Kind: "bad", Text: i18n.N("Given up")},
}

// triggers tells each event of the history in words.
var triggers = map[order.Trigger]string{
	order.Create:                 i18n.N("Created"),
	order.Issue:                  i18n.N("A virtual account was issued"),
	order.Pay:                    i18n.N("Paid"),
	order.PayLate:                i18n.N("Paid in time, the news was late"),
	order.Decline:                i18n.N("The provider refuses the order"),
	order.Lapse:                  i18n.N("Its time is over"),
	order.Cancel:                 i18n.N("Given up before it was paid"),
	order.Mismatch:               i18n.N("Another amount than the order’s"),
	order.DepositUnused:          i18n.N("A deposit after the order had ended"),
	order.DepositTwice:           i18n.N("A second deposit"),
	order.DepositApplied:         i18n.N("A late deposit was applied"),
	order.DepositReturnRequested: i18n.N("The provider is asked to pay a deposit back"),
	order.DepositReturned:        i18n.N("A deposit was paid back"),
	order.DepositReturnFailed:    i18n.N("A deposit was not paid back"),
	order.Reverse:                i18n.N("The deposit was taken back"),
	order.ReverseTooLate:         i18n.N("The deposit was taken back after a refund"),
	order.RefundRequested:        i18n.N("A refund was asked for"),
	order.RefundPart:             i18n.N("A part was refunded"),
	order.RefundAll:              i18n.N("All was refunded"),
	order.RefundDeclined:         i18n.N("The provider refuses a refund"),
	order.RefundReturned:         i18n.N("The payout of a refund came back"),
	order.BalanceDrifted:         i18n.N("The provider has another balance"),
	order.AttentionResolved:      i18n.N("The case was resolved"),
}

// happened is an event in words.
func happened(t order.Trigger) string {
	if text := triggers[t]; text != "" {
		return text
	}
	return fmt.Sprint(t)
}
