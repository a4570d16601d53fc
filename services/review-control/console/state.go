package console

import (
	"cmp"
	"context"
	"strings"
	"time"

	"hub.internal/pkg/web"
	"hub.internal/pkg/web/i18n"
	reviewcontrol "hub.internal/services/review-control"
	"hub.internal/services/review-control/triage"
)

// state is the badge of whatever has one, in English; "Unknown" for what the table does not have, such as a state of a later release.
func state(of any) web.Badge {
	if badge, known := stateBadges[of]; known {
		return badge
	}
	return web.Badge{Text: i18n.N("Unknown")}
}

// stateText is the word on the badge.
func stateText(ctx context.Context, of any) string { return i18n.From(ctx).Text(state(of).Text) }

// stateBadges has the word and the colour of each status of a draft, choice about a mail and state of a delivery.
var stateBadges = map[any]web.Badge{
	reviewcontrol.Drafted:    {Text: i18n.N("Draft")},
	reviewcontrol.InReview:   {Kind: "info", Text: i18n.N("In review")},
	reviewcontrol.Approved:   {Kind: "good", Text: i18n.N("Approved")},
	reviewcontrol.Rejected:   {Kind: "bad", Text: i18n.N("Rejected")},
	reviewcontrol.Sent:       {Kind: "good", Text: i18n.N("Sent")},
	reviewcontrol.Cancelled:  {Text: i18n.N("Cancelled")},
	reviewcontrol.Pending:    {Text: i18n.N("To decide")},
	reviewcontrol.Approve:    {Kind: "good", Text: i18n.N("Approved")},
	reviewcontrol.Reject:     {Kind: "bad", Text: i18n.N("Rejected")},
	reviewcontrol.NotDue:     {Text: i18n.N("Not sent")},
	reviewcontrol.Queued:     {Kind: "info", Text: i18n.N("Waiting to be sent")},
	reviewcontrol.Sending:    {Kind: "info", Text: i18n.N("Being sent")},
	reviewcontrol.Delivered:  {Kind: "good", Text: i18n.N("Sent")},
	reviewcontrol.Failed:     {Kind: "bad", Text: i18n.N("Failed")},
	reviewcontrol.Changed:    {Kind: "bad", Text: i18n.N("Not sent: content changed")},
	reviewcontrol.Suppressed: {Kind: "warn", Text: i18n.N("Suppressed")},
	reviewcontrol.Unknown:    {Kind: "warn", Text: i18n.N("Unknown")},
}

// flagged is a flag as people see it.
type flagged struct {
	Name  string
	Badge web.Badge
	// Says is a sentence about the mail.
	Says string
}

// flaggedOf are flags as people see them, the gravest first.
func flaggedOf(ctx context.Context, f triage.Flag) (list []flagged) {
	for _, one := range f.Each() {
		says := one.Says()
		says = i18n.From(ctx).Text(strings.ToUpper(says[:1]) + says[1:] + ".")
		list = append(list, flagged{one.Name(), flagBadges[one], says})
	}
	return list
}

// What rooms below the console say in English, and the page in its reader's language.
var _ = []string{
	// The flags, as flaggedOf has them.
	i18n.N("A link in it names another host than it leads to."),
	i18n.N("Its recipient is on the suppression list."),
	i18n.N("A look at its preview does not tell all of it."),
	i18n.N("Its subject does not begin with the mark that mails have to have here."),
	i18n.N("Its text lacks the line that mails have to have here, about opting out for example."),
	i18n.N("What stands beside it is of somebody else than its recipient's partner."),
	i18n.N("It calls its recipient otherwise than the contact is called."),
	i18n.N("It has Markdown, which is read as it is written, or a text that was to be replaced."),
	i18n.N("It is from an address of a provider that lets nobody else send for it."),
	i18n.N("Its recipient has had this very text, or is about to, or it was rejected before."),
	i18n.N("A text in it or beside it reads like an instruction to a machine."),
	i18n.N("Its recipient is not in the segment."),
	i18n.N("Another mail of the draft goes to the same address."),
	i18n.N("Something was taken out of it."),
	i18n.N("It is longer than three screens, or wider than a desk shows it."),
	i18n.N("Its recipient or their partner has had another mail lately, or is about to."),
	// The warnings about a body.
	i18n.N("all that it says is in pictures, which are not loaded here"),
	i18n.N("nothing in it can be read"),
}

// flagBadges name the flags, by how grave they are.
var flagBadges = map[triage.Flag]web.Badge{
	triage.Misleading: {Kind: "bad", Text: i18n.N("Misleading link")},
	triage.Suppressed: {Kind: "bad", Text: i18n.N("Suppressed since")},
	triage.Warned:     {Kind: "warn", Text: i18n.N("Look closely")},
	triage.Unmarked:   {Kind: "bad", Text: i18n.N("No mark")},
	triage.NoFooter:   {Kind: "bad", Text: i18n.N("No footer")},
	triage.Stray:      {Kind: "bad", Text: i18n.N("Another's context")},
	triage.Misnamed:   {Kind: "warn", Text: i18n.N("Another's name")},
	triage.Unfinished: {Kind: "warn", Text: i18n.N("Unfinished text")},
	triage.Forged:     {Kind: "warn", Text: i18n.N("Private sender")},
	triage.Repeated:   {Kind: "warn", Text: i18n.N("Repeated")},
	triage.PromptLike: {Kind: "warn", Text: i18n.N("Prompt-like text")},
	triage.Outside:    {Kind: "warn", Text: i18n.N("Not in the segment")},
	triage.Duplicate:  {Kind: "warn", Text: i18n.N("Address twice")},
	triage.Removed:    {Kind: "warn", Text: i18n.N("Markup taken out")},
	triage.Large:      {Kind: "", Text: i18n.N("May need scrolling")},
	triage.Recent:     {Kind: "", Text: i18n.N("Recent mail")},
}

// reasons are those to choose from when a mail is rejected.
func reasons(ctx context.Context) []web.Option {
	list := []web.Option{{Value: "", Text: i18n.T(ctx, "No reason given")}}
	for _, r := range reviewcontrol.Reasons() {
		list = append(list, web.Option{Value: string(r), Text: i18n.From(ctx).Text(reasonText(r))})
	}
	return list
}

// reasonText is a reason in English words; one of a later release is shown as it is.
func reasonText(r reviewcontrol.Reason) string { return cmp.Or(reasonTexts[r], string(r)) }

// reasonTexts has the words for each reason to reject a mail.
var reasonTexts = map[reviewcontrol.Reason]string{
	reviewcontrol.WrongRecipient: i18n.N("Wrong person or company"),
	reviewcontrol.WrongContent:   i18n.N("Wrong or untrue content"),
	reviewcontrol.WrongTone:      i18n.N("Tone or language"),
	reviewcontrol.WrongTime:      i18n.N("Not now"),
	reviewcontrol.AlreadyAsked:   i18n.N("Asked already"),
	reviewcontrol.OtherReason:    i18n.N("Another reason"),
}

// bars are what is done of a draft: its review, and the sending of what was approved.
type bars struct {
	Status           reviewcontrol.Status
	Counts           reviewcontrol.Counts
	Review, Delivery web.Bar
	// Delivers tells that mails are, or were, on their way.
	Delivers bool
	// Last tells what the last decision brings, while there is one mail left.
	Last string
}

// barsOf are the bars of a draft with these counts.
func barsOf(ctx context.Context, status reviewcontrol.Status, c reviewcontrol.Counts) bars {
	n := web.Number
	return bars{
		Status: status, Counts: c,
		Review: web.Bar{
			Total: c.Total(),
			Label: i18n.T(ctx, "%s of %s decided: %s approved, %s rejected", n(c.Decided()), n(c.Total()), n(c.Approved), n(c.Rejected)),
			Parts: []web.Part{{Kind: "good", Count: c.Approved}, {Kind: "bad", Count: c.Rejected}},
		},
		Delivery: web.Bar{
			Total: c.Approved,
			Label: i18n.T(ctx, "%s of %s mails: %s sent, %s failed, %s suppressed, %s unknown",
				n(c.Approved-c.Waiting()), n(c.Approved), n(c.Sent), n(c.Failed), n(c.Suppressed), n(c.Unknown)),
			Parts: []web.Part{{Kind: "good", Count: c.Sent}, {Kind: "bad", Count: c.Failed}, {Kind: "warn", Count: c.Suppressed + c.Unknown}},
		},
		Delivers: status == reviewcontrol.Approved || status == reviewcontrol.Sent || c.Sent+c.Failed+c.Suppressed+c.Unknown > 0,
		Last:     last(ctx, status, c),
	}
}

// last tells what the last decision of a review brings; empty before.
func last(ctx context.Context, status reviewcontrol.Status, c reviewcontrol.Counts) string {
	switch {
	case status != reviewcontrol.InReview || c.Pending != 1:
		return ""
	case c.Approved == 0:
		return i18n.T(ctx, "One mail is left. Your decision ends the review: if you approve it, it is sent; if you reject it, nothing is.")
	case c.Approved == 1:
		return i18n.T(ctx, "One mail is left. Your decision ends the review: if you approve it, 2 mails are sent; if you reject it, 1.")
	}
	return i18n.T(ctx, "One mail is left. Your decision ends the review: if you approve it, %s mails are sent; if you reject it, %s.",
		web.Number(c.Approved+1), web.Number(c.Approved))
}

// instant is a time as scripts read it, clock as people do.
func instant(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// clock is a time of the day in UTC.
func clock(t time.Time) string { return t.UTC().Format("15:04:05 UTC") }
